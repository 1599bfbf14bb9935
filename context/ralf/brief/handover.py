"""The hand-over in a brief and in the route file: entries whole or not at all, those that are needed most first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import groupby

from ralf.brief.filling import Piece, size
from ralf.brief.lines import clock, indented, quotation
from ralf.document.bullets import parts_of
from ralf.model.entries import Entry, Item, Message, Step
from ralf.model.handover import KEPT, MOST_IN_FILE, NAMES, Author, Carried, HandOver, Kept, Kind, Part
from ralf.talk.handover_text import Bullet, Section, sections_of
from ralf.talk.names import plain
from ralf.text import cleaning
from ralf.text.cleaning import one_line
from ralf.text.patterns import regex
from ralf.text.tokens import estimate

FIRST, BETWEEN, LAST = 1.0, 5.5, 9.5
"""Sections of the brief: a fresh hand-over; an old one, behind the log; its `now` and `next`, behind all else."""

_LATE = 2_500  # tokens of a brief from which an old `now` and `next` are shown

_STRUCTURE = regex(r"(?m)^[^\S\n]*+(?:#|```|~~~|<|>{7} )")

_NOT_FOUND = " (not found in the record: "

_ENDS = tuple(".!?\u2026:;\u3002\uff01\uff1f")

Grant = tuple[str, int]


@dataclass(frozen=True)
class Since:
    """What came after a hand-over: messages, calls, and whether all of that was nothing but reading."""

    messages: int = 0
    calls: int = 0
    is_fresh: bool = True


def since(handover: HandOver, entries: Iterable[Entry]) -> Since:
    """What of some entries came after a hand-over: a message, an edit, a script or a check makes it old."""
    after = [entry for entry in entries if entry.at > handover.at]
    messages = [entry for entry in after if isinstance(entry, Message) and entry.form not in ("ran", "unsent")]
    steps = [entry for entry in after if isinstance(entry, Step)]
    is_fresh = not messages and not any(step.files or step.checks or _is_script(step) for step in steps)
    return Since(len(messages), len(steps), is_fresh)


def _is_script(step: Step) -> bool:
    """Whether a command holds a script: what that edits is not read."""
    return step.kind == "command" and "<<" in step.object


# ---- in the brief ----


@dataclass
class Shown:
    """The pieces of a hand-over, and the order in which they get the budget; `late`: of those that come last."""

    pieces: dict[str, Piece] = field(default_factory=dict)
    grants: list[Grant] = field(default_factory=list)
    late: list[Grant] = field(default_factory=list)
    is_fresh: bool = True


def shown(carried: Carried, after: Since, items: Sequence[Item] = (), day: str = "") -> Shown:
    """A hand-over as pieces of a brief.

    items  the to-do list: an old next step whose to-do is completed is not shown
    day    the one that goes without saying
    """
    last, found = carried.last or HandOver(), Shown(is_fresh=after.is_fresh)
    when, head = _clock(last.at, day), f"### Hand-over, by {author(last)}"
    heads = {
        FIRST: f"{head} {when}",
        BETWEEN: f"{head}\nWritten {when}, {after.messages} messages and {after.calls} calls ago",
        LAST: f"### Said in the hand-over of {when}, before what came since",
    }

    def is_done(bullet: _Bullet) -> bool:
        return not after.is_fresh and bullet.kind == "next" and _is_completed(bullet.levels[0], items)

    needed = _ordered(bullet for bullet in _bullets(carried, day, last) if not is_done(bullet))
    for bullet in needed:
        section = FIRST if after.is_fresh else LAST if bullet.kind in ("now", "next") else BETWEEN
        top = [(f"hand-{section}", heads[section]), (f"hand-{bullet.place[0]}", f"{bullet.heading}:")]
        found.pieces[bullet.key] = Piece(
            (section, *bullet.place),
            [*map(cleaning.shown, bullet.levels)],
            [(key, cleaning.shown(text)) for key, text in top],
        )
        (found.late if section == LAST else found.grants).append((bullet.key, 0))
    found.grants += [(one.key, 1) for one in needed if one.kind == "decision" and len(one.levels) > 1]
    return found


@dataclass(frozen=True)
class _Bullet:
    """A bullet or paragraph: its part and number, the heading of that part, its text at each length, an entry's id."""

    kind: Kind
    heading: str
    place: tuple[int, int]
    levels: Sequence[str]
    id: str = ""

    @property
    def key(self) -> str:
        return f"hand-{self.place[0]}-{self.place[1]}"


_NEEDED: tuple[tuple[Kind, slice], ...] = (
    ("now", slice(None)),
    ("next", slice(2)),
    ("open", slice(2)),
    ("decision", slice(5)),
    ("avoid", slice(2)),
    ("done", slice(1)),
    ("why", slice(None)),
    ("next", slice(2, None)),
    ("", slice(None)),
    ("decision", slice(5, 10)),
    ("fact", slice(2)),
    ("open", slice(2, None)),
    ("done", slice(1, None)),
    ("fact", slice(2, None)),
    ("decision", slice(10, None)),
    ("avoid", slice(2, None)),
)
"""The order in which the bullets of each kind get the budget."""


def _ordered(bullets: Iterable[_Bullet]) -> list[_Bullet]:
    found = list(bullets)
    return [one for kind, which in _NEEDED for one in [one for one in found if one.kind == kind][which]]


def _bullets(carried: Carried, day: str = "", above: HandOver | None = None) -> Iterator[_Bullet]:
    """What is handed over, part by part as it was written, else in the fixed order."""
    last = carried.last or HandOver()
    moment = {"now": (last.now,), "why": (last.why,), "next": tuple(f"- {one}" for one in last.next)}
    parts = [*last.parts]
    written = {part.kind for part in parts}
    parts += [Part(kind, "", moment.get(kind, ())) for kind in NAMES if kind and kind not in written]
    entries = {kind: carried.current(kind) for kind in KEPT}
    for number, part in enumerate(parts):
        heading = one_line(part.heading) or NAMES[part.kind].capitalize()
        if part.kind in KEPT:
            found = [(_levels(entry, day, above), entry.id) for entry in entries.pop(part.kind, ())]
        else:
            found = [([_safe(item) + _marks(last.marks, item)], "") for item in part.items if item]
        for place, (levels, id_) in enumerate(found if part.kind != "lasting" else ()):
            yield _Bullet(part.kind, heading, (number, place), levels, id_)


def _safe(text: str) -> str:
    """A text as it was written; with a heading or a fence in it, as a quotation."""
    return quotation(text) if _STRUCTURE.search(text) else indented(text)


def author(one: HandOver | Kept) -> str:
    """Who wrote it, in words."""
    return _AUTHORS.get(one.author) or one_line(f"model {one.model}")


def _clock(at: str, day: str = "") -> str:
    return one_line(clock(at, day))  # a file from elsewhere may hold any text there


_AUTHORS: dict[Author, str] = {
    "person": "the person",
    "agent": "the agent",
    "file": "the file",
    "import": "somebody else (import)",
}


def _marks(marks: Iterable[str], text: str) -> str:
    found = [mark for mark in marks if mark in text]
    return f"{_NOT_FOUND}{', '.join(found)})" if found else ""


def _levels(entry: Kept, day: str = "", above: HandOver | None = None) -> list[str]:
    """An entry in one line, without and with the options that were turned down; `above`: the hand-over under whose
    heading it stands, whose author and time go without saying.
    """
    is_said = above is not None and (entry.author, entry.at) == (above.author, above.at)
    who = f"the {entry.by}" if entry.by else author(entry)
    who = "" if is_said and entry.by in ("", entry.author) and entry.author != "import" else who
    parts = ", ".join(filter(None, (who, "" if is_said else _clock(entry.at, day))))
    head = f"- {entry.id}{f' ({parts})' if parts else ''} "
    return [one_line(f"{head}{text}") for text in _said(entry)]


def _said(entry: Kept) -> list[str]:
    """What an entry says, without and with the options that were turned down."""
    text = f"{entry.text}{_tail(entry)}"
    text = f"{_stopped(text)}{_BECAUSE}{entry.reason}" if entry.reason else text
    return [text, f"{_stopped(text)}{_NOT}{'; '.join(entry.rejected)}"] if entry.rejected else [text]


def _stopped(text: str) -> str:
    """A text that something follows, with a full stop where it has no end."""
    return text if text.endswith(_ENDS) else f"{text}."


def _tail(entry: Kept) -> str:
    """What stands behind the text of an entry: names that were not found, and the words that it rests on."""
    marks = _marks(entry.marks, " ".join((entry.text, entry.reason, *entry.rejected)))
    at_line = "" if entry.by else f"the person at line {entry.line}: "
    return f'{marks} \u2014 {at_line}"{entry.words}"' if entry.words else marks


def _is_completed(step: str, items: Iterable[Item]) -> bool:
    """Whether a to-do that a next step names, by its number or its words, is completed."""
    words, numbers = plain(step), {word.strip(".,:;()") for word in step.split()}
    done = [item for item in items if item.status == "completed"]
    return any(f"#{item.id}" in numbers or plain(item.text) in words for item in done)


def said(carried: Carried, *, is_old: bool = False) -> Iterator[tuple[str, str]]:
    """All that is handed over, each with the heading of its part."""
    for bullet in _bullets(carried):
        then = ", then" if is_old and bullet.kind in ("now", "next") else ""
        yield bullet.heading.lower() + then, bullet.levels[-1].removeprefix("- ")


# ---- beside the record ----


def interleaved(
    pieces: Mapping[str, Piece], record: Iterable[Grant], handed: Shown, first: Sequence[str] = ("last", "status")
) -> Iterator[Grant]:
    """The grants of the record and of the hand-over in one order that does not depend on the budget.

    Each comes at the smallest budget at which it fits in its share: of a fresh hand-over min(85 %, max(850, 60 %)), of
    an old one 60 %, the rest the record's. So a larger budget never shows less, and neither leaves room unused.

    pieces  of both
    first   keys of the record that come before all else
    """
    leading = [(key, 0) for key in first]

    def due(grants: Iterable[Grant], kind: str, least: float = 0) -> Iterator[tuple[float, Grant]]:
        used, levels = 0, dict[str, int]()
        for key, level in grants:
            texts = pieces[key].levels if key in pieces else ()
            level = min(level, len(texts) - 1)
            if level > levels.get(key, -1):
                before = size(texts[levels[key]])[0] if key in levels else 0
                used += max(0, size(texts[level])[0] - before)
                levels[key] = level
                yield (0.0 if (key, level) in leading else max(least, _due(used, kind))), (key, level)

    share = "fresh" if handed.is_fresh else "old"
    streams = [due([*leading, *record], f"beside {share}"), due(handed.grants, share), due(handed.late, share, _LATE)]
    for _, grant in merge(*streams, key=lambda one: one[0]):
        yield grant


def _due(count: int, kind: str) -> float:
    """The smallest budget in whose share so many tokens fit."""
    if kind == "fresh":
        return count / 0.85 if count <= 850 else count / 0.6
    if kind == "beside fresh":
        return count / 0.15 if count <= 150 else max(count + 850, count / 0.4)
    return count / (0.6 if kind == "old" else 0.4)


# ---- in the route file ----

HEADING = "## Hand-over"

_WRITTEN = regex(r"\*Written by .*\*")

_ID = regex(r"((?:OPEN|DONE|FACT|DEC)-[\w-]+)(?: \([^()]*\))?:? +(.*)")

_INDENT = regex(r"(?m)^(?:> ?|  )")

_ROOM = 1_600  # tokens of the section in a route file, by estimate

_BECAUSE, _NOT = " Because: ", " Not: "

_MORE = regex(r"and [0-9,]+ older: in the front matter")


def section(carried: Carried) -> tuple[str, frozenset[str]]:
    """The section `## Hand-over` of the route file, "" where there is nothing, and the ids of the entries in it: whole,
    and no more than there is room for, those that are needed most. The moment is always whole.
    """
    chosen, left = list[_Bullet](), _ROOM
    for bullet in _ordered(_bullets(carried, above=carried.last)):
        if bullet.place[1] < MOST_IN_FILE.get(bullet.kind, bullet.place[1] + 1):
            left -= estimate(bullet.levels[-1])
            if left >= 0 or bullet.kind not in KEPT:
                chosen.append(bullet)
    if not chosen:
        return "", frozenset()
    body, parts = [], groupby(sorted(chosen, key=lambda one: one.place), key=lambda one: (one.place[0], one.heading))
    for (_, heading), bullets in parts:
        body += [f"**{heading}:**", *(bullet.levels[-1] for bullet in bullets), ""]
    last, ids = carried.last, [bullet.id for bullet in chosen if bullet.kind in KEPT]
    more = sum(len(carried.current(kind)) for kind in KEPT) - len(ids)
    who = f"*Written by {author(last)}, {_clock(last.at)}" if last is not None else "*Written by several"
    who += f"; entries that stand in the front matter alone: {more}*" if more else "*"
    return "\n".join([HEADING, who, "", *body]).rstrip() + "\n", frozenset(ids)


def parse(text: str, carried: Carried) -> Carried:
    """What a section says: the moment, and the entries that stand in it. `carried`: what it was rendered from.

    A bullet that nobody changed is its entry again; a changed or a new one is the file's, and a new one has no id.
    """
    lines = [line for line in text.split("\n") if line != HEADING and not _WRITTEN.fullmatch(line)]
    parts = list(sections_of("\n".join(lines)))
    last = carried.last or HandOver(author="file")
    written = {part.kind for part in last.parts}
    made = tuple(
        Part(part.kind, part.heading, () if part.is_kept else tuple(map(_unmarked, part.bullets)))
        for part in parts
        if part.kind in written or not part.is_kept
    )
    of_parts = HandOver(parts=made)
    is_free = bool(last.parts) or any(part.kind == "" for part in made)
    moment = replace(last, now=of_parts.now, why=of_parts.why, next=of_parts.next, parts=made if is_free else ())
    return replace(carried, last=moment, kept=tuple(_entries(parts, carried)))


def listed(text: str, carried: Carried, lines: Mapping[str, str]) -> Iterator[Kept]:
    """The decisions in a list of the file, as `parse` reads the entries of a section.

    lines  by the ids of decisions: their lines as they are listed, without "- "
    """
    bullets = [bullet for bullet in _bullets_of(text) if bullet.mark and not _MORE.fullmatch(one_line(bullet.text))]
    return _entries([Section("decision", bullets=bullets)], carried, lines)


def paragraphs(text: str) -> list[str]:
    """What stands in a list of the file and is no bullet."""
    return [bullet.text for bullet in _bullets_of(text) if not bullet.mark]


def _bullets_of(text: str) -> list[Bullet]:
    return [bullet for part in sections_of(f"**Decided:**\n{text}") for bullet in part.bullets]


def _entries(parts: Iterable[Section], carried: Carried, lines: Mapping[str, str] | None = None) -> Iterator[Kept]:
    """The entries in a section; a second one of an id is a new one.

    lines  by the ids of entries: their lines as they are shown
    """
    known = {entry.id: entry for entry in carried.kept if entry.ended is None}
    if lines is None:
        lines = {id_: _levels(entry, above=carried.last)[-1].removeprefix("- ") for id_, entry in known.items()}
    shown = ((lines.get(id_, ""), entry) for id_, entry in known.items())
    ours = {words: entry for line, entry in shown for words in (line, entry.text)}  # somebody may take the id out
    seen = set[str]()
    for kind, bullet in ((one.kind, bullet) for one in parts if one.is_kept for bullet in one.bullets):
        entry = ours.get(one_line(bullet.text))
        if entry is None or KEPT.get(kind) != KEPT[entry.kind]:
            entry = _entry(kind, bullet, known)
        elif entry.id in seen:  # a copy
            continue
        yield replace(entry, kind=kind, id="" if entry.id in seen else entry.id)
        seen.update(filter(None, [entry.id]))


def _unmarked(bullet: Bullet) -> str:
    """A bullet of the moment without what `section` adds to it."""
    text = _INDENT.sub("", bullet.mark + bullet.text)
    return text.rpartition(_NOT_FOUND)[0] if _NOT_FOUND in text and text.endswith(")") else text


def _entry(kind: Kind, bullet: Bullet, known: Mapping[str, Kept]) -> Kept:
    """A bullet that was changed or added; the words of a message are changed by no edit."""
    text = one_line(bullet.text)
    found = _ID.fullmatch(text)
    old = known.get(found[1]) if found else None
    if found is not None and old is not None:
        text = found[2].replace(_tail(old), "")
    made = old if old is not None and KEPT.get(kind) == KEPT[old.kind] else Kept(kind)
    text, reason, options = parts_of(text)
    options = (*options, *bullet.rejected)
    return replace(made, text=text, reason=reason or bullet.reason, rejected=options, author="file", model="", marks=())
