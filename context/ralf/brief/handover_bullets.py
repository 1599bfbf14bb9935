"""The hand-over as bullets, those that are needed most first, and as a section of the route file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from ralf.brief.quoting import clock, indented, quotation
from ralf.model import OF_A_PERSON, Decision, RouteContext
from ralf.model.handover import KEPT, MOST_IN_FILE, NAMES, Author, Carried, HandOver, Kept, Kind, Part
from ralf.text.cleaning import one_line
from ralf.text.frozen import dataclass, replace
from ralf.text.patterns import regex
from ralf.text.tokens import estimate

_STRUCTURE = regex(r"(?m)^[^\S\n]*+(?:#|```|~~~|<|>{7} )")

NOT_FOUND = " (not found in the record: "

_ENDS = tuple(".!?\u2026:;\u3002\uff01\uff1f")

_BECAUSE, NOT = " Because: ", " Not: "


@dataclass(frozen=True, slots=True)
class Bullet:
    """A bullet or paragraph: its part and number, the heading of that part, its text at each length, an entry's id."""

    kind: Kind
    heading: str
    place: tuple[int, int]
    levels: Sequence[str]
    id: str = ""

    @property
    def key(self) -> str:
        """Its key among the pieces of a brief."""
        return f"hand-{self.kind}-{self.place[0]}-{self.place[1]}"


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


def ordered(bullets: Iterable[Bullet]) -> list[Bullet]:
    """The bullets in the order in which they get the budget."""
    found = list(bullets)
    return [one for kind, which in _NEEDED for one in [one for one in found if one.kind == kind][which]]


def bullets_of(carried: Carried, day: str = "", above: HandOver | None = None) -> Iterator[Bullet]:
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
            found = [(levels_of(entry, day, above), entry.id) for entry in entries.pop(part.kind, ())]
        else:
            found = [([_safe(item) + _marks(last.marks, item)], "") for item in part.items if item]
        for place, (levels, id_) in enumerate(found if part.kind != "lasting" else ()):
            yield Bullet(part.kind, heading, (number, place), levels, id_)


def _safe(text: str) -> str:
    """A text as it was written; with a heading or a fence in it, as a quotation."""
    return quotation(text) if _STRUCTURE.search(text) else indented(text)


def author(one: HandOver | Kept) -> str:
    """Who wrote it, in words."""
    return _AUTHORS.get(one.author) or one_line(f"model {one.model}")


def time_of(at: str, day: str = "") -> str:
    """A time for readers, on one line: a file from elsewhere may hold any text there."""
    return one_line(clock(at, day)) if at else ""


_AUTHORS: dict[Author, str] = {
    "person": "the person",
    "agent": "the agent",
    "file": "the file",
    "import": "somebody else (import)",
}


def _marks(marks: Iterable[str], text: str) -> str:
    found = [mark for mark in marks if mark in text]
    return f"{NOT_FOUND}{', '.join(found)})" if found else ""


def levels_of(entry: Kept, day: str = "", above: HandOver | None = None) -> list[str]:
    """An entry in one line, without and with the options that were turned down; `above`: the hand-over under whose
    heading it stands, whose author and time go without saying.
    """
    is_said = above is not None and (entry.author, entry.at) == (above.author, above.at)
    who = f"the {entry.by}" if entry.by else author(entry)
    who = "" if is_said and entry.by in ("", entry.author) and entry.author != "import" else who
    parts = ", ".join(filter(None, (who, "" if is_said else time_of(entry.at, day))))
    head = f"- {entry.id}{f' ({parts})' if parts else ''} "
    return [one_line(f"{head}{text}") for text in _said(entry)]


def _said(entry: Kept) -> list[str]:
    """What an entry says, without and with the options that were turned down."""
    text = f"{entry.text}{tail(entry)}"
    text = f"{_stopped(text)}{_BECAUSE}{entry.reason}" if entry.reason else text
    return [text, f"{_stopped(text)}{NOT}{'; '.join(entry.rejected)}"] if entry.rejected else [text]


def _stopped(text: str) -> str:
    """A text that something follows, with a full stop where it has no end."""
    return text if text.endswith(_ENDS) else f"{text}."


def tail(entry: Kept) -> str:
    """What stands behind the text of an entry: names that were not found, and the words that it rests on."""
    marks = _marks(entry.marks, " ".join((entry.text, entry.reason, *entry.rejected)))
    at_line = "" if entry.by else f"the person at line {entry.line}: "
    return f'{marks} \u2014 {at_line}"{entry.words}"' if entry.words else marks


def said(carried: Carried, *, is_old: bool = False) -> Iterator[tuple[str, str]]:
    """All that is handed over, each with the heading of its part."""
    for bullet in bullets_of(carried):
        then = ", then" if is_old and bullet.kind in ("now", "next") else ""
        yield bullet.heading.lower() + then, bullet.levels[-1].removeprefix("- ")


# ---- in the route file ----

HEADING = "## Hand-over"

_ROOM = 1_600  # tokens of the section in a route file, by estimate


def section(carried: Carried) -> tuple[str, frozenset[str]]:
    """The section `## Hand-over` of the route file, "" where there is nothing, and the ids of the entries in it: whole,
    and no more than there is room for, those that are needed most. The moment is always whole.
    """
    chosen, left = list[Bullet](), _ROOM
    for bullet in ordered(bullets_of(carried, above=carried.last)):
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
    who = f"*Written by {author(last)}, {time_of(last.at)}" if last is not None else "*Written by several"
    who += f"; entries that stand in the front matter alone: {more}*" if more else "*"
    return "\n".join([HEADING, who, "", *body]).rstrip() + "\n", frozenset(ids)


def handed_over(context: RouteContext) -> Carried:
    """What a route hands over, with the decisions that no other section has; nothing before a first hand-over."""
    if context.handover.last is None:
        return Carried()
    carried = context.carried
    apart = {item.id for item in context.decisions if item.kind == "rule" or item.pinned or is_in_talk(item, context)}
    kept = tuple(entry for entry in carried.kept if entry.id not in apart)
    return replace(carried, kept=kept)


def handed_in_brief(context: RouteContext) -> Carried:
    """The same without what the person decided: that stands above a hand-over."""
    carried = handed_over(context)
    theirs = {item.id for item in context.decisions if item.origin in OF_A_PERSON}
    return replace(carried, kept=tuple(entry for entry in carried.kept if entry.id not in theirs))


def is_in_talk(item: Decision, context: RouteContext) -> bool:
    """Whether the talk has a decision: a person's answer stands there with what it answers."""
    return item.origin == "answer" and bool(context.sessions)
