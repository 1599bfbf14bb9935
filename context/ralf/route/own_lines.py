"""What a person wrote into our part of a route file: changed bullets are edits, other lines become notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ralf.brief import handover_reading
from ralf.brief.handover_bullets import HEADING, handed_over
from ralf.document.bullets import bullet_of
from ralf.model import Carried, Decision, Kept, RouteContext
from ralf.model.kept import decision_of
from ralf.route import routefile
from ralf.route.filed import HEADINGS, KINDS, brief_of


def with_own_lines(found: RouteContext, base: RouteContext | None = None, *, is_whole: bool = True) -> RouteContext:
    """What a file says, with what a person changed in the bullets above the history, and with the other lines that they
    wrote into our part there as notes: the next write makes that part anew.

    base      what the file showed before; None where that is not known
    is_whole  whether what is missing was taken out
    """
    if not found.body.is_brief_edited:
        return found
    then = base if base is not None else found
    known = {line.strip() for line in brief_of(then).split("\n")}
    ours, theirs = _sections(brief_of(then)), _sections(found.body.brief)
    read = [heading for heading in KINDS if heading in theirs and (heading in ours or heading != HEADING)]
    before = {heading: _read(heading, ours.get(heading, []), then) for heading in read}
    after = {heading: _read(heading, theirs[heading], then) for heading in read}
    edited = _with_entries(found, before, after, is_whole=is_whole)
    own = [found.body.before, "\n".join(_own(theirs, read, known))]
    now = base.active_work.now if base is not None else ""
    return replace(
        edited,
        active_work=replace(edited.active_work, now=now),
        body=replace(edited.body, before="\n\n".join(filter(None, own)), brief="", is_brief_edited=False),
    )


def _sections(brief: str) -> dict[str, list[str]]:
    """The lines of our part by the heading of ours above them; "" for none."""
    found: dict[str, list[str]] = {"": []}
    heading = ""
    for line in brief.split("\n"):
        if line.rstrip() in HEADINGS and line.rstrip() not in found:
            heading = line.rstrip()
            found[heading] = []
        else:
            found[heading].append(line)
    return found


def _read(heading: str, lines: Sequence[str], base: RouteContext) -> Carried:
    """What the lines of one of our sections say."""
    if heading == HEADING:
        return handover_reading.parse("\n".join(lines), handed_over(base))
    entries = {item.id: bullet_of(item, in_file=True).removeprefix("- ").rstrip() for item in base.active_decisions}
    carried = replace(base.carried, last=None)
    return replace(carried, kept=tuple(handover_reading.listed("\n".join(lines), carried, entries)))


def _with_entries(
    found: RouteContext, before: Mapping[str, Carried], after: Mapping[str, Carried], *, is_whole: bool
) -> RouteContext:
    """What a file says, with the entries of its sections as they are after an edit.

    before, after  what each section said and says
    is_whole       whether what is missing was taken out
    """
    was = {entry.id: (entry, heading) for heading, one in before.items() for entry in one.kept}
    there = {entry.id: (entry, heading) for heading, one in after.items() for entry in one.kept if entry.id}
    changed = {id_: placed for id_, placed in there.items() if placed != was.get(id_)}
    moment = after.get(HEADING, Carried()).last
    # Where somebody took the heading "Decided" alone out, its bullets stand in the moment now.
    gone = {id_ for id_ in was if id_ not in there and id_ not in repr(moment)} if is_whole else set()
    new = [
        (entry, KINDS[heading])
        for heading, one in after.items()
        for entry in one.kept
        if not entry.id and entry not in before[heading].kept
    ]
    decided = [
        replace(decision_of(entry), kind=kind) if kind else decision_of(entry)
        for entry, kind in new
        if entry.kind in _ARE_DECISIONS
    ]
    known = {item.decision for item in found.decisions}  # the front matter may have the same one, with its label
    others = [entry for entry, _ in new if entry.kind not in _ARE_DECISIONS]
    handed = found.handover
    is_new = moment is not None and moment != before[HEADING].last
    return replace(
        found,
        decisions=(
            *(_reworded(item, *changed.get(item.id, ())) for item in found.decisions if item.id not in gone),
            *(item for item in decided if item.decision not in known),
        ),
        handover=replace(
            handed,
            last=moment if is_new else handed.last,
            kept=(
                *(entry for entry in others if entry.kind != "lasting"),
                *(changed.get(entry.id, (entry,))[0] for entry in handed.kept if entry.id not in gone),
            ),
            offers=(*(entry for entry in others if entry.kind == "lasting"), *handed.offers),
        ),
    )


_ARE_DECISIONS = ("decision", "avoid")


def _reworded(item: Decision, entry: Kept | None = None, heading: str = "") -> Decision:
    """A decision as a person worded it in a bullet, and of the kind of the section in which it stands now."""
    if entry is None:
        return item
    new, kind = decision_of(entry), KINDS[heading]
    return replace(
        item,
        kind=item.kind if kind and item.pinned else kind or new.kind,
        decision=new.decision,
        rationale=new.rationale,
        alternatives=new.alternatives,
        not_found=(),
    )


def _own(sections: Mapping[str, Sequence[str]], read: Sequence[str], known: set[str]) -> Iterator[str]:
    """The lines of a part that are none of ours, below the name of the section in which they stood: of a hand-over that
    was read there are none, of a list they belong to no bullet.
    """
    for heading, lines in sections.items():
        if heading in read:
            lines = [] if heading == HEADING else "\n".join(handover_reading.paragraphs("\n".join(lines))).split("\n")
        own = [routefile.as_note(line) for line in lines if line.strip() and line.strip() not in known]
        if own and heading:
            yield f"(written under {heading.removeprefix('## ')})"
        yield from own
