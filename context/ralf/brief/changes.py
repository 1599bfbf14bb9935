"""What changed between two contexts, and edits that said otherwise, in lines for a reader."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

from ralf.format import merge
from ralf.format.codec import Tree, shared, to_tree
from ralf.format.merge import find
from ralf.model import BODY, FEW_ENTRIES, ActiveWork, Carried, Checkpoint, Decision, Facts, RouteContext
from ralf.text.cleaning import clean, one_line, trimmed

# ---- changes between two contexts ----

SUBJECTS = ("goal", "handover", "decisions", "work", "checkpoints", "facts", "notes", "unresolved", "other")
"""What is told of, in this order."""

_LONGEST_VALUE = 300  # characters of one value that are told; the changes as data have it whole

_SHORT = 120  # of one of two values between which a field changed

_MOST = 1_500  # of a text

_DIGITS = 10  # of a checkpoint's number

_NAMED = 6  # facts of a kind that are named, the others are counted

_LINKS = ("status", "supersedes", "superseded_by", "source", "further_sources", "timestamp")

_PLACES = {
    "before": "text above the history",
    "preface": "text below the heading of the history",
    "after": "text below the history",
    "below": "text below the footer",
    "crlf": "line ends",
    "bom": "byte order mark",
    "comments": "comments of the front matter",
}


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that changed.

    subject  one of `SUBJECTS`
    what     added, changed, gone; of decisions also superseded, reversed, done, dropped, active again
    id       DEC-003, cp-002, the name of a field, a kind of facts
    text     in words, on one line
    """

    subject: str
    what: str
    id: str
    text: str


def in_words(before: RouteContext, after: RouteContext) -> tuple[Told, ...]:
    """What changed, subject by subject; what the cap has moved out of the file has not changed."""
    parts: Iterable[Iterator[Told]] = (
        _goal(before, after),
        _handover(before.handover, after.handover),
        _decisions(before.decisions, after.decisions),
        _changes_of_work(before.active_work, after.active_work),
        _checkpoints(before, after),
        _changes_of_facts(before, after),
        _notes(before, after),
        _unresolved(before, after),
        _other(before, after),
    )
    return tuple(
        replace(told, id=value(told.id), text=trimmed(one_line(told.text), _MOST)) for part in parts for told in part
    )


def place(at: Sequence[str]) -> str:
    """The place of a change in words: `DEC-003 rationale`, `checkpoint 2`, `next steps`."""
    first, *rest = at or ("",)
    if first == "decisions" and rest:
        return " ".join([rest[0], *map(_plain, rest[1:])])
    if first == BODY and len(rest) > 1 and rest[0] == "sections":
        name = rest[1]
        section = f"section {name.removeprefix('### ')}" if name.startswith("#") else f"checkpoint {name}"
        return " ".join([section, *map(_plain, rest[2:])])
    if first == BODY:
        return _PLACES.get(rest[0], rest[0]) if rest else "the text"
    if first in ("active_work", "facts", "checkpoint_history") and rest:
        return " ".join([_plain(rest[0]), *rest[1:]])
    return " ".join([_plain(first), *rest])


def value(found: Any, most: int = _LONGEST_VALUE) -> str:
    """A value of a tree on one line, long ones cut."""
    if found is None or found == [] or found == "":
        return "nothing"
    if isinstance(found, list) and not any(isinstance(item, (dict, list)) for item in found):
        found = "; ".join(map(str, found))
    return trimmed(one_line(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)), most)


# ---- subjects ----


def _goal(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    if before.goal != after.goal:
        yield Told("goal", _kind(before.goal, after.goal), "goal", _from_to(before.goal, after.goal))


_OF_WRITING = ("author", "model", "at", "session", "parts", "marks")


def _handover(before: Carried, after: Carried) -> Iterator[Told]:
    """What is handed over otherwise than before: of the moment part by part, and entries that came and went."""
    was, now = ({} if one.last is None else to_tree(one.last) for one in (before, after))
    for key in dict.fromkeys((*was, *now)):
        one, other = was.get(key), now.get(key)
        if one != other and key not in _OF_WRITING:
            yield Told("handover", _kind(one, other), key, f"{_plain(key)}: {_from_to(one, other)}")
    old, new = ({entry.id: entry for entry in one.kept} for one in (before, after))
    for id_ in dict.fromkeys((*old, *new)):
        one, other = (value(side[id_].text) if id_ in side else None for side in (old, new))
        if one != other:
            yield Told("handover", _kind(one, other), id_, _from_to(one, other))


def _decisions(before: Sequence[Decision], after: Sequence[Decision]) -> Iterator[Told]:
    was, now = _numbered(before), _numbered(after)
    for key, item in now.items():
        if key not in was:
            yield Told("decisions", "added" if item.status == "active" else item.status, item.id, _claim(item))
        elif item != was[key]:
            yield from _decision(was[key], item)
    for key, item in was.items():
        if key not in now:
            yield Told("decisions", "gone", item.id, value(item.decision))


def _numbered(decisions: Sequence[Decision]) -> dict[tuple[str, int], Decision]:
    """Decisions by their id, and which of those that have it: whoever edits the file may copy one."""
    counts: Counter[str] = Counter()
    found = {}
    for item in decisions:
        found[item.id, counts[item.id]] = item
        counts[item.id] += 1
    return found


def _decision(before: Decision, after: Decision) -> Iterator[Told]:
    if before.status != after.status:
        by = f" by {value(after.superseded_by)}" if after.superseded_by else ""
        what = "active again" if after.status == "active" else after.status
        yield Told("decisions", what, after.id, f"{value(after.decision)}{by and f' ({value(after.status)}{by})'}")
    elif before.superseded_by != after.superseded_by:
        yield Told("decisions", "changed", after.id, f"superseded by {value(after.superseded_by)}")
    one, other = to_tree(before), to_tree(after)
    for key in sorted(one.keys() | other.keys(), key=[*other, *one].index):
        if key not in _LINKS and one.get(key) != other.get(key):
            yield Told("decisions", "changed", after.id, f"{_plain(key)}: {_from_to(one.get(key), other.get(key))}")


def _claim(item: Decision) -> str:
    rejected = f"Rejected: {value(list(item.alternatives))}" if item.alternatives else ""
    reason = f"Because: {value(item.rationale)}" if item.rationale else ""
    instead = f"Replaces {value(item.supersedes)}" if item.supersedes else ""
    parts = filter(None, [value(item.decision), reason, rejected, instead])
    return " ".join(part if part.endswith((".", "!", "?", "…")) else f"{part}." for part in parts)


_NOT_TOLD = ("extra", "now")  # what is known of now follows from the others


def _changes_of_work(before: ActiveWork, after: ActiveWork) -> Iterator[Told]:
    one, other = to_tree(before), to_tree(after)
    keys = [field.name for field in fields(ActiveWork) if field.name not in _NOT_TOLD]
    for key in [*keys, *sorted((one.keys() | other.keys()) - {*keys, *_NOT_TOLD})]:
        was, now = one.get(key), other.get(key)
        if was == now:
            continue
        if isinstance(was or [], list) and isinstance(now or [], list):
            listed_before, listed = _listed_values(was or []), _listed_values(now or [])
            news = [text for text in listed if text not in listed_before]
            gone = [text for text in listed_before if text not in listed]
            yield from (Told("work", "added", key, f"{_plain(key)}: {text}") for text in news)
            yield from (Told("work", "gone", key, f"{_plain(key)}: {text}") for text in gone)
            if not news and not gone:
                yield Told("work", "changed", key, f"{_plain(key)}: in another order")
        else:
            yield Told("work", _kind(was, now), key, f"{_plain(key)}: {_from_to(was, now)}")


def _listed_values(items: list[Any]) -> list[str]:
    """To-dos, steps and files as a person reads them."""
    said = []
    for item in items:
        if isinstance(item, dict):
            status = f" [{item['status']}]" if "status" in item else ""
            what = item.get("content") or item.get("description") or item.get("path") or value(item)
            result = f" → {item['result']}" if item.get("result") else ""
            item = f"{what}{status}{result}"
        said.append(value(item))
    return said


def _checkpoints(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    was = {entry.checkpoint_id: entry for entry in before.checkpoint_history}
    now = {entry.checkpoint_id: entry for entry in after.checkpoint_history}
    for name, entry in now.items():
        if name not in was and not _older(name, was):
            yield Told("checkpoints", "added", name, _title(entry))
        elif name in was and was[name].summarizer != entry.summarizer:
            yield Told("checkpoints", "changed", name, f"improved by {value(entry.summarizer)}: {_title(entry)}")
    for name, entry in was.items():
        if name not in now and not _older(name, now):
            yield Told("checkpoints", "gone", name, _title(entry))
    texts = [{_section_id(s.number, s.title): s for s in context.body.sections} for context in (before, after)]
    for name in texts[0].keys() & texts[1].keys():
        if texts[0][name] != texts[1][name] and was.get(name) == now.get(name):
            yield Told("checkpoints", "changed", name, f"section: {value(texts[1][name].title)}")
    for what, here, there in (("added", texts[1], texts[0]), ("gone", texts[0], texts[1])):
        for name, section in here.items():
            if name.startswith("#") and name not in there:
                yield Told("checkpoints", what, name, value(section.text))


def _older(name: str, others: Collection[str]) -> bool:
    """Whether a checkpoint is older than all others: then the cap has moved it out of the file, no more."""
    return len(others) >= FEW_ENTRIES and all(checkpoint_number(name) < checkpoint_number(other) for other in others)


def checkpoint_number(name: str) -> int:
    """The number in a checkpoint's name, `cp-012`; 0 for another name."""
    digits = name.removeprefix("cp-")
    return int(digits) if digits.isdecimal() and len(digits) < _DIGITS else 0


def _section_id(number: int | None, title: str) -> str:
    return f"cp-{number:03d}" if number is not None else f"### {title}"


def _title(entry: Checkpoint) -> str:
    return value(entry.summary_ref.partition(": ")[2] or entry.summary_ref.lstrip("# "))


def _changes_of_facts(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    for field in fields(Facts):
        if field.name == "extra":
            continue
        was = _known(getattr(before.facts, field.name))
        now = _known(getattr(after.facts, field.name))
        news = [name for name in now if name not in was]
        gone = [name for name in was if name not in now]
        other = [name for name in now if name in was and now[name] != was[name]]
        for what, names in (("added", news), ("changed", other), ("gone", gone)):
            if what == "gone" and after.folded.fact_count > before.folded.fact_count:
                continue
            if names:
                more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
                shown = ", ".join(trimmed(one_line(name), 80) for name in names[-_NAMED:])
                noun = field.name if len(names) > 1 else field.name[:-1]
                yield Told("facts", what, field.name, f"{len(names)} {noun}: {shown}{more}")


def _known(facts: Sequence[Any]) -> dict[str, str]:
    """The facts of a kind by what they are of, with what is said of them."""
    found = {}
    for fact in facts:
        tree = {"name": fact} if isinstance(fact, str) else to_tree(replace(fact, last=""))
        name = str(next(iter(tree.values()), ""))
        said = {key: inner for key, inner in tree.items() if key not in ("runs", "failures")}
        found[name] = json.dumps(said, sort_keys=True)
    return found


def _notes(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    for key, name in _PLACES.items():
        was, now = getattr(before.body, key, None), getattr(after.body, key, None)
        if was != now:
            text = f"{name}: {value(now)}" if isinstance(now, str) else name
            yield Told("notes", _kind(was, now), name, text)


def _unresolved(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    was, now = before.unresolved, after.unresolved
    for what, here, there in (("added", now, was), ("gone", was, now)):
        yield from (
            Told("unresolved", what, place(e.at), f"also: {value([*map(_worded, e.also)])}")
            for e in here
            if e not in there
        )


def _other(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    for key in dict.fromkeys([*before.extra, *after.extra]):
        was, now = before.extra.get(key), after.extra.get(key)
        if was != now or (key in before.extra) != (key in after.extra):
            yield Told("other", _kind(was, now), key, f"{key}: {_from_to(was, now)}")


def _kind(was: Any, now: Any) -> str:
    return "added" if not was else "gone" if not now else "changed"


def _from_to(was: Any, now: Any) -> str:
    return f"{value(was, _SHORT)} → {value(now, _SHORT)}" if was else value(now)


def _plain(key: str) -> str:
    return key.replace("_", " ")


# ---- unresolved edits: the person's value stands, the other is kept beside it ----

KEY = "unresolved"

_NOBODY_S = frozenset({"context_checkpoint", "facts", "checkpoint_history", "folded", "dropped", "forgotten", KEY})
"""What is counted and extracted, not said: there the person's value stands, and that is all."""

_CLAIM = ("decision", "rationale", "alternatives", "status")

_DEEPEST = 3  # levels of a value that fit into the front matter below its entry; a deeper one stands as JSON


def of_edit(base: Tree, newest: Tree, changes: Sequence[merge.Change]) -> list[merge.Change]:
    """The entries that an edit adds: for each field that `newest` has changed, too, since `base`."""
    known = [(tuple(entry.get("at", ())), entry.get("also", [])) for entry in newest.get(KEY, ())]

    def before(at: tuple[str, ...]) -> list[Any]:
        return [one for place, also in known if place[: len(at)] == at for one in also]

    return [
        {"at": [KEY, "/".join(at)], "value": {"at": list(at), "also": [*before(at), _cleaned(_flat(other))]}}
        for at, other in merge.conflicts(base, newest, changes)
        if at[0] not in _NOBODY_S and not _only_said_again(base, newest, at)
    ]


def _cleaned(value: Any) -> Any:
    """A value whose texts may stand in front matter: a section may hold control characters, YAML may not."""
    if isinstance(value, dict):
        return {key: _cleaned(inner) for key, inner in value.items()}
    return [*map(_cleaned, value)] if isinstance(value, list) else clean(value) if isinstance(value, str) else value


def settled(before: RouteContext, after: RouteContext) -> RouteContext:
    """`after`, the route one record later, without the entries whose field has got another value by it."""
    if not before.unresolved:
        return after
    was, now = shared(before), shared(after)
    left = tuple(
        entry
        for entry in after.unresolved
        if entry not in before.unresolved or find(was, entry.at) == find(now, entry.at)
    )
    return replace(after, unresolved=left)


def told_unresolved(context: RouteContext) -> Iterator[str]:
    """Each entry on one line: the place, what stands there, and what was said, too."""
    tree = to_tree(context) if context.unresolved else {}
    for entry in context.unresolved:
        yield f"{place(entry.at)}: {value(_worded(find(tree, entry.at)))}; also said: {said(entry.also)}"


def said(values: Sequence[Any]) -> str:
    """The values that do not stand, on one line."""
    return "; or: ".join(value(_worded(one)) for one in values)


_UNSAID = frozenset(("id", "kind", "clone", "timestamp", "origin", "source", "further_sources", "aliases"))


def _worded(found: Any) -> Any:
    """A value as a person reads it: an item by its words, not as data."""
    if isinstance(found, str) and found[:1] in ("{", "["):  # one that was too deep for the front matter
        with suppress(ValueError, RecursionError):
            found = json.loads(found)
    if isinstance(found, dict):
        told = ((key, value(_worded(inner))) for key, inner in found.items() if key not in _UNSAID and inner)
        return "; ".join(f"{_plain(key)}: {text}" for key, text in told)
    if isinstance(found, list) and any(isinstance(item, (dict, list)) for item in found):
        return " / ".join(value(_worded(item)) for item in found)
    return found


def places(changes: Sequence[merge.Change]) -> list[str]:
    """The fields for which the changes of an edit add an entry, in words."""
    return [
        place(change["value"]["at"])
        for change in changes
        if len(change["at"]) > 1 and change["at"][0] == KEY and isinstance(change.get("value"), dict)
    ]


def _flat(other: Any) -> Any:
    """A value as the front matter can hold it."""
    return other if _depth(other) <= _DEEPEST else json.dumps(other, ensure_ascii=False)


def _only_said_again(base: Tree, newest: Tree, at: Sequence[str]) -> bool:
    """Whether a decision says what it said: only where it was found has become more."""
    if at[0] != "decisions":
        return False
    was, now = find(base, at[:2]), find(newest, at[:2])
    if not isinstance(was, dict) or not isinstance(now, dict):  # gone, or the list as a whole
        return False
    return all(was.get(key) == now.get(key) for key in _CLAIM)


def _depth(found: Any) -> int:
    if isinstance(found, dict):
        found = list(found.values())
    return 1 + max(map(_depth, found), default=0) if isinstance(found, list) else 0
