"""The layout of a shared route file, in which git itself merges what several clones have decided. Pure.

git merges two changes of a file where at least one unchanged line lies between them. So the list of decisions has 64
lines that never change, the slots, and each clone writes below one of them, chosen by its tag:

    decisions:
      #: 0
      …
      #: 17
      #: 3fa9c1 r13-0f3a9b2c4d5e        the newest record of this clone that the file shows
      - id: "DEC-012"
        …
        clone: "3fa9c1"
      #: 18

What every record would change is left out: the revision and the lineage, which those lines say for each clone; the
counter of labels, where the labels say it; and our part above the history. So is what its "Now" says: it is
transcript, which stays where it is. Readers of an earlier version take the lines for comments.
What a clone has accepted is an import there, so accepting changes a line of each item that the file has. That line is
the second one of its item, the one of its other labels below it; of `active_work` it is the first, above a line that
never changes, and `goal_origin` stands below the decisions: so it is beside none that another clone changes while it
works.
The order of the list is that of the labels. Decisions whose labels are no such numbers stand below the last line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from ralf.model import Decision, Header, RouteContext
from ralf.text.cleaning import one_line
from ralf.text.patterns import regex

SLOTS = 64
"""Two clones that never met share a slot, and then conflict, one time in so many."""

_SLOT = "  #: {}"

_MARK = regex(r"  #: (?:([0-9]{1,2})|([0-9a-f]{6}) (r[0-9]{1,9}-[0-9a-f]{12}))[ \t]*\Z")

_ENTRY = regex(r"([0-9a-f]{6}) (r([0-9]{1,9})-[0-9a-f]{12})\Z")

_LABEL = regex(r"DEC-([0-9]{1,9})\Z")


def tag_of(key: bytes) -> str:
    """The tag of a clone, six hexadecimal digits, from the key of its seals, which it does not tell."""
    return hashlib.blake2b(b"clone", key=key, digest_size=3).hexdigest()


def entry(tag: str, lineage: str) -> str:
    """One of `Header.clones`."""
    return f"{tag} {lineage}"


def parsed(clone: str) -> tuple[str, str, int]:
    """Tag, lineage and revision of one of `Header.clones`; "", "" and 0 of what is none."""
    found = _ENTRY.match(clone)
    return (found[1], found[2], int(found[3])) if found else ("", "", 0)


def newest(clones: Iterable[str]) -> tuple[str, ...]:
    """Of each clone the entry of the highest revision, by tag."""
    known: dict[str, tuple[int, str]] = {}
    for clone in clones:
        tag, _, revision = parsed(clone)
        if tag:
            known[tag] = max(known.get(tag, (0, "")), (revision, clone))
    return tuple(clone for _, (_, clone) in sorted(known.items()))


def slot_of(decision: Decision) -> int:
    """The slot of a decision: that of the clone which recorded it; one that nobody signed has that of its words, and
    one with a label that is no number the last.
    """
    if not _LABEL.match(decision.id):
        return SLOTS - 1
    return _slot(decision.clone or one_line(decision.decision).casefold())


def _slot(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:4], "big") % SLOTS


def can_spread(decisions: Sequence[Decision]) -> bool:
    """Whether the order of the labels that are numbers is that of the list, so that a reader finds it again; the others
    need only be there, and be different.
    """
    numbers = [int(found[1]) for item in decisions if (found := _LABEL.match(item.id))]
    others = [item.id for item in decisions if not _LABEL.match(item.id)]
    return all(one < other for one, other in pairwise([0, *numbers])) and len({"", *others}) == len(others) + 1


def lines(pieces: Sequence[str], decisions: Sequence[Decision], clones: Iterable[str]) -> Iterator[str]:
    """The lines of a list of decisions, laid out.

    pieces  the lines of each decision, as it stands in an ordinary list
    clones  as `Header.clones`, that of the writer among them
    """
    slots: dict[int, list[str]] = {}
    for clone in newest(clones):
        slots.setdefault(_slot(parsed(clone)[0]), []).append(_SLOT.format(clone))
    for piece, decision in zip(pieces, decisions, strict=True):
        slots.setdefault(slot_of(decision), []).append(piece)
    yield "decisions:"
    for number in range(SLOTS):
        yield _SLOT.format(number)
        yield from slots.get(number, ())


_ORIGIN = regex(r" +origin: \"[a-z-]+\"\Z")

_OF_ACCEPTING = regex(r"    (?:origin: \"[a-z-]+\"|aliases: \[[^\n]*\])\Z")

_LABELLED = regex(r"  - (?:checkpoint_)?id: \"[A-Za-z0-9-]+\"\Z")


def with_origin_apart(piece: str) -> str:
    """The lines of an item of a list with its origin and its aliases, if it has any, below its label: what another
    clone changes when it accepts an item stands together, and the status beside neither.
    """
    first, *rest = piece.split("\n")
    if not _LABELLED.match(first):
        return piece
    moved = [line for line in rest if _OF_ACCEPTING.match(line)]
    return "\n".join((first, *moved, *(line for line in rest if line not in moved)))


_WORK, _BELOW_ORIGIN = "active_work:", "  #: work"


def work_lines(pieces: Sequence[str]) -> list[str]:
    """The lines of the active work, laid out."""
    if not pieces or pieces[0] != _WORK:
        return list(pieces)  # in one line
    origin = [line for line in pieces[1:] if line.startswith("  origin: ") and _ORIGIN.match(line)]
    return [_WORK, *origin, _BELOW_ORIGIN, *(line for line in pieces[1:] if line not in origin)]


def without_marks(front: str) -> tuple[str, list[str] | None]:
    """Front matter without the lines of the layout, and the clones that they name; None for another layout."""
    marks, is_whole = _marks(front)
    if not marks:
        return front, None
    kept = "\n".join(line for place, line in enumerate(front.split("\n")) if place not in marks)
    return kept, [clone for clone in marks.values() if clone] if is_whole else None


def _marks(front: str) -> tuple[dict[int, str], bool]:
    """The lines of the layout, by their place, each with the clone that it names, "" for a slot; and whether the list
    of decisions has all of the slots. Where it has not, lines are what is left of a layout if one names a clone;
    otherwise a person wrote them.
    """
    lines = front.split("\n") if "\n  #: " in front else []
    if "decisions:" not in lines:
        return {}, False
    marks: dict[int, str] = {}
    slots: set[str] = set()
    first = lines.index("decisions:") + 1
    for place, line in enumerate(lines[first:], start=first):
        if line and line[0] not in " #-":
            break  # the next key
        if mark := _MARK.match(line):
            marks[place] = entry(mark[2], mark[3]) if mark[2] else ""
            slots.add(mark[1] or "")
    is_whole = slots.issuperset(map(str, range(SLOTS)))
    if _WORK in lines:
        begin = lines.index(_WORK)
        marks |= {place: "" for place in (begin + 1, begin + 2) if lines[place : place + 1] == [_BELOW_ORIGIN]}
    return marks if is_whole or any(marks.values()) else {}, is_whole


def line_in(front: str, number: int) -> int:
    """The number that a line of `without_marks` has in the front matter itself; both from 0."""
    marks, _ = _marks(front)
    kept = [place for place in range(front.count("\n") + 1) if place not in marks]
    return kept[number] if number < len(kept) else number


def bare_header(header: Header, decisions: Sequence[Decision]) -> Header:
    """The header of a file in this layout, without what its other lines say."""
    count = header.decision_count if header.decision_count != _last(decisions) else 0
    return replace(header, revision=0, lineage="", clones=(), decision_count=count)


def _last(decisions: Sequence[Decision]) -> int:
    return max((int(found[1]) for item in decisions if (found := _LABEL.match(item.id))), default=0)


def as_read(context: RouteContext, clones: Iterable[str]) -> RouteContext:
    """What a file in this layout says: its decisions in the order of their labels, its counter; its revision and its
    lineage are those of the newest record that it shows, whichever clone's that is.
    """
    known = newest(clones)
    decisions = _told_apart(sorted(context.decisions, key=order))
    _, lineage, revision = max(map(parsed, known), key=lambda one: (one[2], one[1]), default=("", "", 0))
    header = context.context_checkpoint
    count = max(header.decision_count, _last(decisions))
    header = replace(header, clones=known, lineage=lineage, revision=revision, decision_count=count)
    body = replace(context.body, is_spread=True)
    return replace(context, context_checkpoint=header, decisions=decisions, body=body)


def _told_apart(decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """The decisions, each under a label of its own: clones that each gave one to another decision both have it in a
    file that git merged. The later one gets the next free label, and keeps the old one as an alias. Of two that are the
    same in everything one is left out; of a copy in other words it is the lower one that is new.
    """
    count = _last(decisions)
    bearers: dict[str, list[_Labelled]] = {}  # by the label in the file
    for item in decisions:
        known = bearers.setdefault(item.id, []) if item.id else []
        if any(item == other for other, _ in known):
            continue
        label = item.id
        if known:
            count += 1
            label = f"DEC-{count:03d}"
            if any((item.clone, item.timestamp) == (other.clone, other.timestamp) for other, _ in known):
                item = replace(item, clone="", timestamp="")  # a copy, which nobody has recorded yet
        known.append(_Labelled(item, label))
    made = [one for known in bearers.values() for one in known]
    if all(len(known) == 1 for known in bearers.values()) and _are_linked(made, bearers):
        return tuple(decisions)
    others: dict[str, list[_Labelled]] = {}  # by the labels in other clones
    for one in made:
        for alias in one.item.aliases:
            others.setdefault(alias, []).append(one)
    unlabelled = [item for item in decisions if not item.id]
    return tuple(sorted([*(_relinked(one, bearers, others) for one in made), *unlabelled], key=order))


class _Labelled(NamedTuple):
    """A decision of a file, and its label of now."""

    item: Decision
    label: str


_Bearers = Mapping[str, Sequence[_Labelled]]


def _are_linked(made: Sequence[_Labelled], bearers: _Bearers) -> bool:
    """Whether each decision that another has replaced says the same of it."""
    links = ((one.item, other.item) for one in made for other in bearers.get(one.item.supersedes, ()))
    return all(other.superseded_by == item.id for item, other in links)


def _relinked(one: _Labelled, bearers: _Bearers, others: _Bearers) -> Decision:
    """A decision under its label of now, with links to those of the decisions that are meant. Of several that bear a
    label, here or in another clone, it is the one that names this decision, too; else a clone means its own.
    """

    item, label = one

    def meant(name: str, back: str) -> _Labelled | None:
        link = getattr(item, name)
        here = [other for other in bearers.get(link, ()) if other is not one]
        elsewhere = [other for other in others.get(link, ()) if other is not one and other not in here]
        mutual = [other for other in (*here, *elsewhere) if getattr(other.item, back) == item.id != ""]
        for known in (mutual, here):
            if known:
                return next((other for other in known if other.item.clone == item.clone), known[0])
        return None

    old, new = meant(_OLD, _NEW), meant(_NEW, _OLD)
    aliases = item.aliases if label == item.id else (*item.aliases, item.id)
    made = replace(
        item,
        id=label,
        aliases=tuple(name for name in dict.fromkeys(aliases) if name != label),
        supersedes=old.label if old is not None else item.supersedes,
        superseded_by=new.label if new is not None else item.superseded_by,
    )
    return item if made == item else made


_OLD, _NEW = "supersedes", "superseded_by"


def order(item: Decision) -> tuple[Any, ...]:
    """By what the decisions of a file in this layout are sorted: the label's number; those without one are last."""
    label = _LABEL.match(item.id)
    if label is None:
        return (1, 0, "") if not item.id else (1, 1, item.id)
    return 0, int(label[1]), item.timestamp


def laid_out(context: RouteContext, tag: str) -> RouteContext:
    """The context as the clone of this tag writes it, without what the transcript says of now, in whatever layout; "":
    as in a project that shares nothing. Lists in another order have the ordinary layout.
    """
    is_spread = bool(tag) and bool(context.lineage) and can_spread(context.decisions)
    header, body = context.context_checkpoint, replace(context.body, is_spread=is_spread)
    if is_spread:
        header = replace(header, clones=(*header.clones, entry(tag, header.lineage)))
    if tag:
        context = replace(context, active_work=replace(context.active_work, last_output="", now=""))
    return replace(context, context_checkpoint=header, body=body)


def with_output(context: RouteContext, base: RouteContext | None, tag: str = "") -> RouteContext:
    """What a file in this layout, or of a clone with a tag, says, with what it leaves out: what the last tool call
    printed, and where in the list a decision stands whose label is no number.
    """
    if base is None or not (context.body.is_spread or tag):
        return context
    if context.body.is_spread:
        context = replace(context, decisions=_in_order_of(base.decisions, context.decisions))
    work, known = context.active_work, base.active_work
    if work.last_output and work.now:
        return context
    output, now = work.last_output or known.last_output, work.now or known.now
    return replace(context, active_work=replace(work, last_output=output, now=now))


def _in_order_of(known: Sequence[Decision], decisions: tuple[Decision, ...]) -> tuple[Decision, ...]:
    """Decisions as a file in this layout has them, in the order in which the known ones stand, the others behind."""
    if all(_LABEL.match(item.id) for item in decisions):
        return decisions
    places = {item.id: place for place, item in enumerate(known)}
    return tuple(sorted(decisions, key=lambda item: places.get(item.id, len(places))))


def as_of(context: RouteContext, tag: str) -> RouteContext:
    """What a file in this layout says to a clone: revision and lineage are its own where it has a record there."""
    header = context.context_checkpoint
    own = next((one for one in header.clones if parsed(one)[0] == tag), "") if context.body.is_spread and tag else ""
    if not own:
        return context
    _, lineage, revision = parsed(own)
    others = tuple(one for one in header.clones if one != own)
    return replace(context, context_checkpoint=replace(header, lineage=lineage, revision=revision, clones=others))


def as_merged(context: RouteContext, ours: RouteContext) -> RouteContext:
    """What a file in this layout says that shows more records of other clones than ours has merged: its lineage is that
    of the newest, and it names ours among those that it goes on from. Any other file as it is.
    """
    if not context.body.is_spread:
        return context
    header = context.context_checkpoint
    known = {tag: revision for tag, _, revision in map(parsed, ours.context_checkpoint.clones)}
    if not any(revision > known.get(tag, 0) for tag, _, revision in map(parsed, header.clones)):
        return context
    _, lineage, revision = max(map(parsed, header.clones), key=lambda one: (one[2], one[1]))
    joined = tuple(dict.fromkeys((*header.joined, header.lineage)))
    return replace(context, context_checkpoint=replace(header, lineage=lineage, revision=revision, joined=joined))
