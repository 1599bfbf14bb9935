"""The route file of a context: our part stands above the history, and what a person wrote into that becomes a note."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ralf.brief import handover, wording
from ralf.brief.recorded import handed_over
from ralf.model import Carried, Decision, HandOver, Kept, RouteContext
from ralf.model.kept import decision_of
from ralf.route import routefile
from ralf.text import tokens
from ralf.text.cleaning import shown

_last: tuple[RouteContext, bytes] | None = None
"""What was rendered last: a record names the file before it is written. Replaced as a whole: threads may be looking."""


def content_of(context: RouteContext) -> bytes:
    """The bytes of a context's route file: always the same for the same context."""
    global _last
    last = _last
    if last is None or last[0] != context:
        body = replace(context.body, brief=brief_of(context), is_brief_edited=False)
        last = _last = context, routefile.render(replace(context, body=body)).encode()
    return last[1]


def brief_of(context: RouteContext) -> str:
    """Our part above the history of a context's file: hand-over, rules, what the record says of now, decisions."""
    text, ids = handover.section(handed_over(context))
    held = [item for item in reversed(context.active_decisions) if item.id not in ids]
    rules = [item for item in held if item.kind == "rule" or item.pinned]
    now = context.active_work.now
    parts: dict[str, Iterable[str]] = {
        handover.HEADING: [shown(text).removeprefix(handover.HEADING)],
        _RULES_HEADING: _listed(rules, _RULES),
        routefile.NOW: [now] if tokens.estimate(now) <= _NOW and routefile.can_be_now(now) else [],
        _DECIDED_HEADING: _listed([item for item in held if item not in rules], _DECIDED),
    }
    joined = {heading: "".join(lines).strip("\n") for heading, lines in parts.items()}
    return "\n\n".join(f"{heading}\n\n{text}" for heading, text in joined.items() if text)


_NOW, _RULES, _DECIDED = 1_900, 300, 250  # tokens, by estimate


_RULES_HEADING, _DECIDED_HEADING = "## Rules", "## Decisions"

_KINDS = {_RULES_HEADING: "rule", _DECIDED_HEADING: "decision"}

_EDITABLE = (handover.HEADING, *_KINDS)

_HEADINGS = (*_EDITABLE, routefile.NOW)


def _listed(decisions: Sequence[Decision], most: int) -> Iterator[str]:
    """Decisions, a line each, the newest first, and how many more are in force."""
    size = 0
    for number, item in enumerate(decisions):
        line = wording.decision(item)
        size += tokens.estimate(line)
        if size > most:
            yield f"- and {len(decisions) - number} older: in the front matter\n"
            break
        yield shown(line)


def with_own_lines(found: RouteContext, base: RouteContext | None = None, *, is_whole: bool = True) -> RouteContext:
    """What a file says, with what a person changed in the bullets above the history, and with the other lines that they
    wrote into our part there as notes: the next write makes that part anew.

    base      what the file showed before; None where that is not known
    is_whole  whether what is missing was taken out
    """
    if not found.body.is_brief_edited:
        return found
    then = base if base is not None else found
    now = base.active_work.now if base is not None else ""
    edited = _with_bullets(replace(found, active_work=replace(found.active_work, now=now)), then, is_whole=is_whole)
    known = {line for one in (edited, then) for line in brief_of(one).split("\n")}
    notes = "\n\n".join(filter(None, [found.body.before, "\n".join(_own(edited.body.brief, known))]))
    return replace(edited, body=replace(edited.body, before=notes, brief="", is_brief_edited=False))


def _with_bullets(found: RouteContext, base: RouteContext, *, is_whole: bool) -> RouteContext:
    """What a file says, with what its bullets above the history say otherwise than ours did, and without these: one
    that is changed, added or removed below `## Hand-over`, `## Rules` or `## Decisions`.
    """
    ours, theirs = _sections(brief_of(base)), _sections(found.body.brief)
    read = [
        (heading, _read(heading, ours.get(heading, []), base), _read(heading, theirs[heading], base))
        for heading in _EDITABLE
        if heading in theirs and (heading in ours or heading != handover.HEADING)
    ]
    there = {entry.id for _, _, after in read for entry in after.kept}
    for heading, before, after in read:
        was = {entry.id for entry in before.kept} if is_whole else set()
        gone = {id_ for id_ in was if id_ not in there and not _is_in_moment(id_, after)}
        found = _with_entries(found, before, after, gone, _KINDS.get(heading, ""))
    return replace(found, body=replace(found.body, brief=_without_bullets(theirs, {heading for heading, *_ in read})))


def _sections(brief: str) -> dict[str, list[str]]:
    """The lines of our part by the heading of ours above them, which stands first among them; "" for none."""
    found: dict[str, list[str]] = {"": []}
    heading = ""
    for line in brief.split("\n"):
        if line.rstrip() in _HEADINGS and line.rstrip() not in found:
            heading = line.rstrip()
            found[heading] = []
        found[heading].append(line)
    return found


def _read(heading: str, lines: Sequence[str], base: RouteContext) -> Carried:
    """What the lines of one of our sections say."""
    if heading == handover.HEADING:
        return handover.parse("\n".join(lines), handed_over(base))
    entries = {item.id: wording.decision(item).removeprefix("- ").rstrip() for item in base.active_decisions}
    carried = replace(base.carried, last=None)
    return replace(carried, kept=tuple(handover.listed("\n".join(lines[1:]), carried, entries)))


def _with_entries(found: RouteContext, before: Carried, after: Carried, gone: set[str], kind: str) -> RouteContext:
    """What a file says, with the entries of one section as they are after an edit.

    gone  the ids of those that were taken out
    kind  of the decisions in it, "" for what the entries say
    """
    was = {entry.id: entry for entry in before.kept}
    changed = {entry.id: entry for entry in after.kept if entry.id and entry != was.get(entry.id)}
    new = [entry for entry in after.kept if not entry.id and entry not in before.kept]
    added = [_of_kind(decision_of(entry), kind) for entry in new if entry.kind in ("decision", "avoid")]
    there = {item.decision for item in found.decisions}  # the front matter may have the same one, with its label
    decided = [item for item in added if item.decision not in there]
    decisions = (_reworded(item, changed.get(item.id), kind) for item in found.decisions if item.id not in gone)
    handed, others = found.handover, [entry for entry in new if entry.kind not in ("decision", "avoid")]
    kept = (changed.get(entry.id, entry) for entry in handed.kept if entry.id not in gone)
    return replace(
        found,
        decisions=(*decisions, *decided),
        handover=replace(
            handed,
            last=after.last if after.last != before.last else handed.last,
            kept=(*(entry for entry in others if entry.kind != "lasting"), *kept),
            offers=(*(entry for entry in others if entry.kind == "lasting"), *handed.offers),
        ),
    )


def _is_in_moment(id_: str, after: Carried) -> bool:
    """Whether an entry stands in the moment now: somebody took its heading alone out."""
    last = after.last or HandOver()
    return id_ in "\n".join([last.now, last.why, *last.next, *(item for part in last.parts for item in part.items)])


def _of_kind(item: Decision, kind: str) -> Decision:
    return replace(item, kind=kind) if kind else item


def _reworded(item: Decision, entry: Kept | None, kind: str) -> Decision:
    """A decision as a person worded it in a bullet, and of the kind of the section in which it stands now."""
    if entry is None:
        return item
    new = _of_kind(decision_of(entry), item.kind if kind and item.pinned else kind)
    return replace(
        item, kind=new.kind, decision=new.decision, rationale=new.rationale, alternatives=new.alternatives, not_found=()
    )


def _without_bullets(sections: Mapping[str, Sequence[str]], read: Collection[str]) -> str:
    """Our part without what was read in it: of the hand-over nothing is left, of a list what belongs to no bullet."""
    left: list[str] = []
    for heading, lines in sections.items():
        if heading not in read:
            left += lines
        elif heading != handover.HEADING:
            left += [heading, *handover.paragraphs("\n".join(lines[1:]))]
    return "\n".join(left)


def _own(brief: str, known: set[str]) -> Iterator[str]:
    """The lines of a part that are none of ours, below the name of the section in which they stood."""
    kept = {line.strip() for line in known}
    heading = told = ""
    for line in brief.split("\n"):
        if line.startswith("## ") and line.strip() in kept:
            heading = line[3:]
        elif line.strip() and line.strip() not in kept:
            if heading != told:
                told = heading
                yield f"(written under {heading})"
            yield routefile.as_note(line)
