"""What a person or an agent records by hand: decisions, edits of the file, drops and reverts."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ralf import project as projects, routing
from ralf.document import merge
from ralf.document.merge import Change
from ralf.document.tree import BadTree, Tree, from_tree, to_tree
from ralf.errors import Busy, NotFound, UsageError
from ralf.model import Checkpoint, Decision, RouteContext
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import cap, edits, fold, history, shared, state
from ralf.route.cap import is_buried, tombstone
from ralf.route.comparing import Told
from ralf.route.edits import labelled
from ralf.route.history import Difference
from ralf.route.load import load_state
from ralf.route.write import open_route, utc_now
from ralf.storage import journal
from ralf.storage.journal import Record
from ralf.text import cleaning
from ralf.text.cleaning import clean, one_line

# ---- recording a decision by hand ----


UNKNOWN = "unknown"
"""The origin of what a writer records without saying whose it is: never the user's."""

ORIGINS = ("user", "agent", "human-edit", "import", UNKNOWN)

KINDS = ("decision", "rule", "failed-approach")


def record_decision(
    route: str,
    decision: str,
    *,
    rationale: str = "",
    alternatives: Iterable[str] = (),
    supersedes: str | None = None,
    origin: str | None = None,
    kind: str = "decision",
    pinned: bool = False,
    root: str | os.PathLike[str] | None = None,
    warn: Callable[[str], None] | None = None,
) -> Decision:
    """Record a decision in a route, and return it with its label; durable when this returns.

    The route file shows it then, too, unless another writer waited: then it is that one which shows both.

    route         made when it does not exist
    decision      what was decided; `rationale`: why
    alternatives  what was rejected, each "option: why not" or the option alone
    supersedes    label of the decision that this one replaces, as `why` takes it, folded out of the file or not; it is
                  marked superseded
    origin        user, agent, human-edit, import or unknown; None: recorded and shown as unknown, never as the user's
    kind          decision, rule or failed-approach; `pinned`: never folded
    warn          told what else there is to know: that an editor holds the file, that a save was set aside

    A decision that is already active in the same words is returned as it is. Raises UsageError (a refused name, nothing
    said, an agent's decision that a person dropped), NotFound (nothing to supersede), Busy, OSError.
    """
    said = clean(decision).strip()
    if not said:
        raise UsageError(
            route, "a decision needs words", f'ralf context decide {cleaning.slug(route)} "TEXT" --because "WHY"'
        )
    origin = origin_of(route, origin)
    if kind not in KINDS:
        raise UsageError(route, f"kind is one of {', '.join(KINDS)}")
    project = projects.find(root)
    route = routing.check_new(project, route)
    if supersedes:
        supersedes = history.label(supersedes, "DEC")
    redacted = redactor_for(project).text
    made = Decision(
        kind=kind,
        pinned=pinned,
        timestamp=utc_now(),
        decision=redacted(said),
        rationale=redacted(clean(rationale).strip()),
        alternatives=tuple(redacted(text) for item in alternatives if (text := clean(item).strip())),
        supersedes=supersedes or "",
        origin=origin,
    )
    with open_route(project, route) as writer:
        writer.absorb_edits()
        stone = next(iter(cap.covering(cap.of(writer.context), made)), None)
        if origin == "agent" and stone is not None:
            raise UsageError(route, f"{stone.id} says the same and was dropped: only a person may decide it again")
        replaced = edits.by_label(writer.context.decisions, supersedes or "")
        if supersedes and replaced is None and writer.context.folded.decision_count:
            replaced = history.decision_of(project, route, supersedes)
        if supersedes and replaced is None:
            replaced = shared.decision_of(project, route, supersedes)
        if replaced is not None and replaced.id != supersedes:  # in other letters, or as another clone calls it
            supersedes = replaced.id
            made = replace(made, supersedes=supersedes)
        words = edits.said(made)
        decisions = writer.context.decisions
        for known in decisions:
            if known.status != "active" or edits.said(known) != words:
                continue
            if not supersedes and _adds_nothing(made, known):
                return known
            if not _adds_nothing(made, known):
                made = replace(made, supersedes=supersedes or known.id)
            elif known.supersedes:
                what = f"{known.id} says the same and replaces {known.supersedes} already"
                raise Busy(route, what, "say it in other words")
        if supersedes:
            _check_replaceable(route, supersedes, replaced)
        payload = labelled(writer.context, "decision", {"decision": to_tree(made)}, project.git.clone)
        writer.append("decision", payload, id=f"decision-{uuid.uuid4().hex}")
        writer.render_file()
    if warn is not None:
        for warning in writer.warnings:
            warn(warning)
    return from_tree(Decision, payload["decision"])


def origin_of(route: str, origin: str | None) -> str:
    """The origin that is recorded; UsageError for one that is none."""
    if origin is not None and origin not in ORIGINS:
        raise UsageError(route, f"origin is one of {', '.join(ORIGINS)}")
    return origin or UNKNOWN


def _adds_nothing(new: Decision, known: Decision) -> bool:
    """Whether a decision in the same words has no reason, rejected option or weight that the known one lacks."""
    return (
        new.rationale in ("", known.rationale)
        and set(new.alternatives) <= set(known.alternatives)
        and (new.kind, new.pinned) in (("decision", False), (known.kind, known.pinned))
    )


def _check_replaceable(route: str, label: str, found: Decision | None) -> None:
    if found is None:
        raise NotFound(route, f"has no decision {label} to supersede", f"ralf context show {route}")
    if found.status != "active":
        by = f" by {found.superseded_by}" if found.superseded_by else ""
        raise Busy(route, f"{label} is {found.status}{by} already", f"ralf context show {route} --section decisions")


# ---- taking in what a person changed in the file, and dropping a decision ----


@dataclass(frozen=True, slots=True)
class Dropped:
    """A decision as it stands after it was dropped; `changed`: whether this call did it, or it was dropped before."""

    route: str
    decision: Decision
    changed: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """A route file that shows the newest revision; `damage`: why it cannot be read, "" for nothing."""

    route: str
    path: Path
    revision: int
    damage: str = ""


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What a person changed in a route file, and is in the journal now.

    revision  that the route has come to
    words     what changed, subject by subject; () for nothing
    changes   the same as data (`ralf.document.merge`)
    warnings  what the caller should know of: fields that changed in the journal meanwhile, too
    damage    why the file cannot be read: then nothing was taken in, and nothing of it is lost; "" for fine
    """

    route: str
    revision: int
    words: tuple[Told, ...] = ()
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()
    damage: str = ""


def open_file(route: str, *, root: str | os.PathLike[str] | None = None) -> Opened:
    """Make a route's file show all that the journal has, what a person changed in it before included.

    Raises RouteNotFound, UsageError (a refused name), Busy, OSError, DamagedJournal.
    """
    project, found = routing.find(route, root)
    with open_route(project, found) as writer:
        writer.absorb_edits()
        writer.render_file()
        return Opened(found, project.route_file(found), writer.context.revision, writer.damage)


def take_in(route: str, *, since: int | None = None, root: str | os.PathLike[str] | None = None) -> TakenIn:
    """Take in at once what a person changed in a route's file, and tell it.

    since  a revision: edits that another writer has taken in after it are told, too; None: only what this call takes in

    Durable when this returns, and the file shows it. Raises RouteNotFound, UsageError (a refused name), Busy, OSError,
    DamagedJournal.
    """
    project, found = routing.find(route, root)
    known = since if since is not None else _revision(project, found)
    with open_route(project, found) as writer:
        writer.absorb_edits()
        writer.render_file()
        warnings, damage, revision = tuple(writer.warnings), writer.damage, writer.context.revision
    edits = [
        record
        for _, record in journal.read(project.store, found)
        if record.revision > known and record.kind in ("edit", "import")
    ]
    words: list[Told] = []
    changes: list[Change] = []
    for edit in edits:
        moments = f"r{edit.revision - 1}", f"r{edit.revision}"
        contexts = history.contexts_at(project, found, moments)
        one, other = ((moment, contexts[moment]) for moment in moments)
        words += history.between(project, found, one, other).words
        changes += edit.payload.get("changes", ())
    return TakenIn(found, revision, tuple(words), tuple(changes), warnings, damage)


def change(route: str, fields: Mapping[str, Any], *, root: str | os.PathLike[str] | None = None) -> Path:
    """Take in what a program changed in a route's front matter, as an edit of the file, but as an agent's: what
    it says anew of a decision has that origin. The file's path.

    fields  the front matter's keys that are to hold something else, as plain data: all others stay. With the header of
            an earlier revision they are merged with what has come since, as an edit of that file is

    Without a change nothing is written; a route that is not there is made. Durable when this returns, and the file
    shows it. Raises UsageError (a refused name, data that no route file holds, a route of which something is foreign),
    Busy (also for what was loaded before the route was merged into another), OSError, DamagedJournal.
    """
    project = projects.find(root)
    named, route = route, routing.check_new(project, route)
    found = routing.known(project, route) or route
    served = load_state(project, found)
    if served is not None and served.context.foreign:  # what was loaded may hold it
        raise UsageError(found, "holds what your ralf did not write", f"ralf context trust {found}")
    with open_route(project, found) as writer:
        writer.absorb_edits()
        base = _loaded(project, writer.context, fields)
        header = fields.get("context_checkpoint")
        mark = header.get("mark") if isinstance(header, Mapping) else None
        if (
            named.casefold() != found.casefold() and mark and mark != base.context_checkpoint.mark
        ):  # its labels are others'
            raise Busy(found, f"took in {named} after this was loaded", f"ralf context show {found} --json")
        try:
            edited = _of_an_agent(base, from_tree(RouteContext, {**to_tree(base), **fields}))
        except BadTree as error:
            raise UsageError(found, str(error), f"ralf context show {found} --json") from None
        changes = [
            state.redacted(project, one)
            for one in edits.changes_of_edit(base, state.with_route(edited, found), writer.context)
        ]
        if changes:
            payload = {"timestamp": utc_now(), "changes": changes, "origin": "agent"}
            writer.append("edit", payload, id=f"change-{uuid.uuid4().hex}")
            writer.render_file()
    return project.route_file(found)


def _of_an_agent(base: RouteContext, edited: RouteContext) -> RouteContext:
    """The context with an agent's origin for each decision that is new in it, or says something else than before."""
    before = {item.id: item for item in base.decisions if item.id}

    def whose(item: Decision) -> Decision:
        was = before.get(item.id)
        said = (item.decision, item.rationale, item.kind, item.pinned)
        is_same = was is not None and said == (was.decision, was.rationale, was.kind, was.pinned)
        return replace(item, origin=was.origin if was is not None and is_same else "agent")

    return replace(edited, decisions=tuple(map(whose, edited.decisions)))


def _loaded(project: Project, newest: RouteContext, fields: Mapping[str, Any]) -> RouteContext:
    """The context that fields were changed in: of the revision that their header names in this history, else the
    newest.
    """
    header = fields.get("context_checkpoint")
    revision = header.get("revision") if isinstance(header, Mapping) else None
    if not isinstance(revision, int) or not 0 < revision < newest.revision:
        return newest
    moment = f"r{revision}"
    base = history.contexts_at(project, newest.route, [moment])[moment]
    return base if header is not None and header.get("mark") == base.context_checkpoint.mark else newest


def _revision(project: Project, route: str) -> int:
    """The newest revision in a route's journal, 0 where there is none."""
    record = journal.newest(project.store, route)
    return record.revision if record is not None else 0


def drop(route: str, id: str, *, because: str = "", root: str | os.PathLike[str] | None = None) -> Dropped:  # noqa: A002
    """Drop a decision of a route, of any status, for good: no transcript and no model brings it back.

    id       its label, as `why` takes it: `DEC-003`, `dec-3`; also of one that the file has folded away
    because  why; kept in the record

    Durable, and shown, as a decision is (`record_decision`), which brings the same text back. Raises RouteNotFound,
    NotFound (no such decision), UsageError (a refused name), Busy, OSError, DamagedJournal.
    """
    project, found = routing.find(route, root)
    label = history.label(id, "DEC")
    with open_route(project, found) as writer:
        writer.absorb_edits()
        decision = decision_of(project, writer.context, label)
        if decision is None:
            decision = shared.decision_of(project, found, label)
        if decision is None or is_buried(writer.context.forgotten, decision.id):
            raise NotFound(found, f"has no decision {label}", f"ralf context show {found} --section decisions")
        if is_buried(writer.context.dropped, decision.id):
            return Dropped(found, decision, changed=False)
        payload = {
            "tombstone": to_tree(tombstone(decision)),
            "because": clean(because).strip(),
            "timestamp": utc_now(),
        }
        writer.append("drop", payload, id=f"drop-{decision.id}-{uuid.uuid4().hex}")
        writer.render_file()
    return Dropped(found, replace(decision, status="dropped"), changed=True)


def decision_of(project: Project, context: RouteContext, label: str) -> Decision | None:
    """The decision of this label, in a route's context or, where that has folded it away, in its journal."""
    return edits.by_label(context.decisions, label) or history.decision_of(project, context.route, label)


# ---- revert: a new record and a new checkpoint, never a removal ----


@dataclass(frozen=True, slots=True)
class Reverted:
    """What a revert came to.

    checkpoint  the new checkpoint that says so; None where nothing was done: a dry run, or the route is so already
    to          what it went back to: `cp-002` or `r12`
    difference  what changed by it, or would change
    warnings    what the caller should know of; `damage`: what is wrong with the route file, which then stays as it is
    """

    route: str
    to: str
    checkpoint: Checkpoint | None
    difference: Difference
    warnings: tuple[str, ...] = ()
    damage: str = ""


def revert(
    route: str,
    to: str,
    *,
    because: str = "",
    dry_run: bool = False,
    root: str | os.PathLike[str] | None = None,
) -> Reverted:
    """Give a route the content that it had right after a checkpoint or revision; durable when this returns.

    to       `cp-002`, `2`, or `r12`; `because`: why
    dry_run  only say what would change

    Edits that wait in the route file are taken in first, so that the journal has them. What was taken of transcripts is
    not taken again, no label is given twice, and all that is undone stays in the journal: a revert to the revision
    before this one brings it back. Raises RouteNotFound, NotFound (no such checkpoint or revision), UsageError (a
    refused name), Busy, DamagedJournal, OSError.
    """
    project, found = routing.find(route, root)
    moment = history.label(to)
    if dry_run:
        then = history.contexts_at(project, found, [moment])[moment]
        now = history.at_present(project, found)
        payload = revert_payload(now, then, moment, because=because, timestamp=utc_now())
        would = fold.apply(now, Record(now.revision + 1, fold.REVERT, payload))
        told = history.between(project, found, (history.NOW, now), (moment, now if is_as(now, then) else would))
        return Reverted(found, moment, None, told)
    with open_route(project, found) as writer:
        writer.absorb_edits()
        then = history.contexts_at(project, found, [moment])[moment]
        now = writer.context
        if is_as(now, then):
            told = history.between(project, found, (history.NOW, now), (moment, now))
            return Reverted(found, moment, None, told, tuple(writer.warnings), writer.damage)
        payload = revert_payload(now, then, moment, because=because, timestamp=utc_now())
        after = writer.append(fold.REVERT, payload, id=f"revert-{then.revision}-{uuid.uuid4().hex}")
        writer.render_file()
        warnings, damage = tuple(writer.warnings), writer.damage
    told = history.between(project, found, (f"r{now.revision}", now), (f"r{after.revision}", after))
    return Reverted(found, moment, after.checkpoint_history[-1], told, warnings, damage)


_STAYS = ("context_checkpoint", "forgotten")
"""What is no content: the books, and what was purged, which no revert brings back."""


def revert_payload(
    now: RouteContext, then: RouteContext, moment: str, *, because: str, timestamp: str
) -> dict[str, Any]:
    """The record that gives `now` the content of `then`, which is named by `moment`: `cp-002` or `r12`."""
    named = f"checkpoint {int(moment[3:])}" if moment.startswith("cp-") else f"revision {then.revision}"
    because = one_line(clean(because))
    return {
        "to": moment,
        "to_revision": then.revision,
        "number": fold.next_number(now),
        "timestamp": timestamp,
        "title": f"Reverted to {named}",
        "because": because,
        "text": _text(now, then, because),
        "changes": changes_back(now, then),
    }


def _text(now: RouteContext, then: RouteContext, because: str) -> str:
    """The section of a revert. It names what went and came, and repeats none of it: that may be why it went."""
    lines = [f"- Because: {because}"] if because else []
    for word, before, after in (("Undone", now, then), ("Back", then, now)):
        entries = {entry.checkpoint_id for entry in after.checkpoint_history}
        decisions = {item.id for item in after.decisions}
        found = [entry.checkpoint_id for entry in before.checkpoint_history if entry.checkpoint_id not in entries]
        found += [item.id for item in before.decisions if item.id not in decisions]
        if found:
            lines.append(f"- {word}: {', '.join(map(one_line, found))}")
    lines.append(f"- To take this back: `ralf context revert {now.route} r{now.revision}`")
    return "\n".join(lines)


def changes_back(now: RouteContext, then: RouteContext) -> list[merge.Change]:
    """The changes that give `now` the content of `then`."""
    return merge.diff(_content(now), _content(then))


def is_as(now: RouteContext, then: RouteContext) -> bool:
    """Whether two contexts hold the same but for what reverts say of themselves."""
    return not changes_back(without_reverts(now), without_reverts(then))


def without_reverts(context: RouteContext) -> RouteContext:
    """A context without the entries and sections of its reverts."""
    own = {entry.checkpoint_id for entry in context.checkpoint_history if entry.reason == fold.REVERT}
    sections = tuple(s for s in context.body.sections if s.number is None or f"cp-{s.number:03d}" not in own)
    entries = tuple(entry for entry in context.checkpoint_history if entry.checkpoint_id not in own)
    return replace(context, checkpoint_history=entries, body=replace(context.body, sections=sections))


def _content(context: RouteContext) -> Tree:
    return {key: inner for key, inner in to_tree(context).items() if key not in _STAYS}
