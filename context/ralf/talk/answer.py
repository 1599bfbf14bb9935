"""Reads a model's answer, holds it against the record, and carries the kept entries of a route on by it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ralf.model.entries import Message
from ralf.model.handover import KEPT, NAMES, Author, Carried, Ended, HandOver, Kept, Kind, next_id
from ralf.talk.names import Quotes, Shown, marked, names_in, plain, sentences
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.frozen import dataclass, replace
from ralf.text.patterns import regex

MOST_TEXT, MOST_NEW, MOST_ANSWER = 500, 12, 40_000
"""Characters of a text, new entries of a list, characters of a whole answer."""

_MOST_READ, _MOST_TRIES = 400_000, 200  # characters in which an object is looked for; places at which it may begin

FORM: dict[str, Any] = {
    "now": "",
    "why": "",
    "next": [""],
    "open": [""],
    "done": [""],
    "facts": [""],
    "decisions": [{"text": "", "words": "", "line": 0, "reason": "", "rejected": [""]}],
    "avoid": [{"what": "", "why": "", "line": 0}],
    "lasting": [{"text": "", "words": "", "line": 0}],
    "ended": [{"id": "", "why": "", "words": "", "line": 0}],
}
"""An answer with nothing in it: every key, and of each list one item."""

_KINDS: tuple[Kind, ...] = (*KEPT, "lasting")

_KEYS: dict[Kind, str] = {"decision": "decisions", "fact": "facts"}  # of FORM, where they are not the kinds

_GIVES_WAY: tuple[Kind, ...] = ("fact", "done", "avoid", "open", "lasting", "decision")

_MARKS = regex(r"^(?:[>=~+|\-\s]|[#*](?=[#*\s])|`{3,}+)+(?=\S)")


def schema(form: Any = FORM) -> dict[str, Any]:
    """The JSON schema of an answer: closed, every property required, as providers with a strict mode need it."""
    if isinstance(form, dict):
        inner = {name: schema(value) for name, value in form.items()}
        return {"type": "object", "additionalProperties": False, "required": list(inner), "properties": inner}
    if isinstance(form, list):
        return {"type": "array", "items": schema(form[0])}
    return {"type": "integer" if isinstance(form, int) else "string"}


class BadAnswer(ValueError):
    """An answer that cannot be read; the message says in one line what is wrong with it. Worth another try."""


class Refused(BadAnswer):
    """An answer with nothing in it, or with too much that the record does not have. Not worth another try."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What says that an entry is over: `why` may be "#2", the second new decision, which takes its place."""

    id: str
    why: str = ""
    words: str = ""
    line: int = 0


class Answer(NamedTuple):
    """An answer as it was read: what it says of the moment, new entries, and what it holds for ended."""

    moment: HandOver
    kept: tuple[Kept, ...] = ()
    ended: tuple[Ending, ...] = ()


# ---- reading ----


def last_object(text: str) -> dict[str, Any] | None:
    """The last complete object that has one of the keys, else the last one; fences and prose around it are nothing."""
    decoder = json.JSONDecoder(strict=False)
    text = text[-_MOST_READ:]
    found: list[dict[str, Any]] = []
    at, tries = text.find("{"), 0
    while at >= 0 and tries < _MOST_TRIES:
        try:
            value, end = decoder.raw_decode(text, at)
            found.append(value)
        except (ValueError, RecursionError):
            end, tries = at + 1, tries + 1
        at = text.find("{", end)
    known = [value for value in found if value.keys() & FORM.keys()] or found
    return known[-1] if known else None


def answer_of(tree: Mapping[str, Any]) -> Answer:
    """The answer that a JSON object holds: a missing key is empty, an odd one is ignored, a wrong type is BadAnswer."""
    given = _value(tree, FORM, "the answer")
    every = {kind: list(_entries(kind, given[_KEYS.get(kind, kind)])) for kind in _KINDS}
    kept = {kind: entries[:MOST_NEW] for kind, entries in every.items()}
    moment = HandOver(_text(given["now"]), _text(given["why"]), _texts(given["next"])[:MOST_NEW])
    size = sum(map(len, (moment.now, moment.why, *moment.next)))
    size += sum(_size(entry) for entries in kept.values() for entry in entries)
    for kind in _GIVES_WAY:
        while size > MOST_ANSWER and kept[kind]:
            size -= _size(kept[kind].pop())
    entries = tuple(entry for kind in _KINDS for entry in kept[kind])
    ended = tuple(Ending(**{**one, "id": one["id"].strip("[]() "), "why": _text(one["why"])}) for one in given["ended"])
    if not (moment or entries or ended):
        raise Refused("the answer says nothing")
    lost = {NAMES[kind]: len(every[kind]) - len(kept[kind]) for kind in _KINDS}
    left_out = tuple(f"{count} {name}" for name, count in lost.items() if count)
    return Answer(replace(moment, left_out=left_out), entries, ended)


def _value(value: Any, form: Any, at: str) -> Any:
    """A value in its form, with "", 0 and [] for what is missing; BadAnswer where it is of another type."""
    if not isinstance(value, type(form)) or isinstance(value, bool):
        words = {dict: "object", list: "list", int: "whole number", str: "text"}
        raise BadAnswer(f"{at} is no {words[type(form)]}")
    if isinstance(form, list):
        return [_value(item, form[0], f"{at}[{place}]") for place, item in enumerate(value)]
    if isinstance(form, dict):
        return {name: _value(value.get(name, type(one)()), one, f"{at}.{name}") for name, one in form.items()}
    return value


def _entries(kind: Kind, items: Sequence[Any]) -> Iterator[Kept]:
    for item in items:
        one: Mapping[str, Any] = {"text": item} if isinstance(item, str) else item
        if text := _text(one.get("text") or one.get("what") or ""):
            yield Kept(
                kind=kind,
                text=text,
                words=one.get("words", ""),
                line=one.get("line", 0),
                reason=_text(one.get("reason") or one.get("why") or ""),
                rejected=_texts(one.get("rejected", ())),
            )


def _text(value: str) -> str:
    """A text on one line, without marks at its start that Markdown takes for a heading, a quote or a fence."""
    text = one_line(clean(value))
    return trimmed(_MARKS.sub("", text) if text.strip(" #>=~+|*-`") else "", MOST_TEXT)


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(_text, values))))


def _size(entry: Kept) -> int:
    return sum(map(len, (entry.text, entry.words, entry.reason, *entry.rejected)))


# ---- what the record says of it ----


def checked(
    answer: Answer, shown: Shown, quotes: Quotes, *, model: str, at: str = "", session: str = ""
) -> tuple[HandOver, tuple[Kept, ...]]:
    """The hand-over and the new entries of an answer, with whose words they rest on and the names that were not found.

    at  the end of the segment. Refused if more than a third of all sentences have such a name.
    """
    moment = replace(answer.moment, model=model, at=at, session=session)
    founded = [replace(_founded(entry, quotes), model=model, at=at, session=session) for entry in answer.kept]
    texts = [moment.now, moment.why, *moment.next]
    texts += [text for entry in founded for text in (entry.text, entry.reason, *entry.rejected)]
    parts = [sentence for text in texts for sentence in sentences(text)]
    wrong = [names for sentence in parts if (names := shown.missing(sentence))]
    if len(wrong) * 3 > len(parts):
        every = ", ".join(dict.fromkeys(name for names in wrong for name in names))
        raise Refused(f"{len(wrong)} of {len(parts)} sentences name what is not in the record: {trimmed(every, 200)}")
    return marked(moment, founded, shown)


def _founded(entry: Kept, quotes: Quotes) -> Kept:
    """An entry with the words of the message that it rests on; without any, the person's message at its line."""
    found = quotes.find(entry.words, entry.line)
    if found is None:
        return replace(entry, words=quotes.beside(entry.line))
    words, message = found
    by: Literal["person", "agent"] = "person" if isinstance(message, Message) else "agent"
    return replace(entry, words=words, line=message.line, by=by)


# ---- carrying on ----


def carry(
    before: Carried,
    handover: HandOver,
    kept: Sequence[Kept],
    endings: Iterable[Ending] = (),
    *,
    quotes: Quotes | None = None,
    taken: Iterable[str] = (),
    tag: str = "",
    again: bool = False,
) -> Carried:
    """What a route hands over after a new hand-over: new entries with ids first, the old ones word for word.

    endings  what the writer holds for ended; what it may not end becomes an open question
    quotes   the messages in which the words of endings are looked for
    taken    ids that others have in the route
    tag      what stands behind the number of a decision's id, where its clone shares what it decides
    again    the same author hands over again, and nothing was done since: the entries of the last one with names that
             were not found are ended
    """
    old = {entry.id: entry for entry in before.kept}
    if again and before.last is not None:
        for entry in before.kept:
            if entry.marks and (entry.author, entry.at) == (handover.author, before.last.at) and entry.ended is None:
                old[entry.id] = replace(entry, ended=Ended(handover.author, "handed over again", handover.at))
    current = {(entry.kind, plain(entry.text)): entry.id for entry in old.values() if entry.ended is None}
    offered = {plain(entry.text) for entry in before.offers}
    new: list[Kept] = []

    def add(entry: Kept) -> str:
        """The id of an entry, which is a new one unless a current one says the same."""
        key = entry.kind, plain(entry.text)
        if key not in current:
            found = next_id(KEPT[entry.kind], [*old, *taken, *(one.id for one in new)])
            current[key] = f"{found}-{tag}" if tag and entry.kind in ("decision", "avoid") else found
            new.append(replace(entry, id=current[key]))
        return current[key]

    ids = [(entry.kind, add(entry)) for entry in kept if entry.kind in KEPT]
    decisions = [id_ for kind, id_ in ids if kind == "decision"]
    named = {f"#{number}": id_ for number, id_ in enumerate(decisions, start=1)}
    offers = [one for one in kept if one.kind == "lasting" and _can_be_offered(one) and plain(one.text) not in offered]
    for ending in endings:
        known = old.get(ending.id)
        if known is None or known.ended is not None:
            continue
        why = named.get(ending.why, ending.why)
        if _may_end(known, ending, handover.author, quotes):
            old[ending.id] = replace(known, ended=Ended(handover.author, why, handover.at))
        else:
            text = f"the {handover.author} holds {ending.id} for ended: {why}"
            made = Kept("open", text, author=handover.author, model=handover.model)
            add(replace(made, at=handover.at, session=handover.session))
    is_newer = before.last is None or (handover.at >= before.last.at and bool(handover))
    return Carried(handover if is_newer else before.last, (*new, *old.values()), (*offers, *before.offers))


def _can_be_offered(entry: Kept) -> bool:
    """Whether it rests on found words of the person, or names something and all of that is in the record."""
    return not entry.marks and (entry.by == "person" or bool(names_in(entry.text)))


def _may_end(entry: Kept, ending: Ending, author: Author, quotes: Quotes | None) -> bool:
    """Whether this author may end an entry: each ends what the like of it or a model wrote, the person everything; a
    model ends an agent's entry by later words of the person, and never one of the person or of the file.
    """
    if author in ("person", "file") or entry.author in ("model", author):
        return True
    found = quotes.find(ending.words, ending.line, persons=True) if quotes is not None else None
    message = found[1] if found else None
    if not isinstance(message, Message) or entry.author != "agent":
        return False
    is_here = entry.line and entry.session == message.session
    return message.line > entry.line if is_here else message.at > entry.at
