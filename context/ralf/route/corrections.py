"""What a person or an agent records by hand: decisions, drops, edits of the file, pins."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ralf import project as projects, routing
from ralf.document.merge import Change
from ralf.document.tree import BadTree, from_tree, to_tree
from ralf.errors import Busy, NotFound, UsageError
from ralf.model import OF_A_PERSON, Decision, Pin, RouteContext
from ralf.model.entries import Message
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import cap, edits
from ralf.route.closing import CLOSED
from ralf.route.entries import sessions_of
from ralf.route.family import redacted
from ralf.route.load import context_at, load_state
from ralf.route.write import RouteWriter, open_route, utc_now
from ralf.text import cleaning
from ralf.text.cleaning import clean, trimmed
from ralf.text.frozen import dataclass, replace

# ---- decisions ----

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
    said, an agent's decision that a person dropped, or that would replace a person's), NotFound (nothing to supersede),
    Busy, OSError.
    """
    text = clean(decision).strip()
    if not text:
        raise UsageError(route, "a decision needs words", f'ralf decide {cleaning.slug(route)} "TEXT" --because "WHY"')
    origin = origin_of(route, origin)
    if kind not in KINDS:
        raise UsageError(route, f"kind is one of {', '.join(KINDS)}")
    project = projects.find(root)
    route = routing.check_new(project, route)
    text_of = redactor_for(project).text
    new = Decision(
        kind=kind,
        pinned=pinned,
        timestamp=utc_now(),
        decision=text_of(text),
        rationale=text_of(clean(rationale).strip()),
        alternatives=tuple(text_of(one) for item in alternatives if (one := clean(item).strip())),
        origin=origin,
    )
    with open_route(project, route) as writer:
        stone = next(iter(cap.covering(cap.of(writer.context), new)), None)
        if origin == "agent" and stone is not None:
            raise UsageError(route, f"{stone.id} says the same and was dropped: only a person may decide it again")
        words = edits.said(new)
        same = next((one for one in writer.context.active_decisions if edits.said(one) == words), None)
        if supersedes:
            old = _known(project, writer.context, supersedes, is_replaced=True)
            if origin == "agent" and old.origin in OF_A_PERSON:
                hint = (
                    f"record it without that; a person has it replaced: ralf decide {route} TEXT --supersedes {old.id}"
                )
                raise UsageError(route, f"{old.id} is a person's decision, and an agent replaces none", hint)
            new = replace(new, supersedes=old.id)
        elif same is not None:
            is_taken_over = origin in OF_A_PERSON and same.origin not in OF_A_PERSON  # by a person, in the same words
            if (_adds_nothing(new, same) and not is_taken_over) or (origin == "agent" and same.origin in OF_A_PERSON):
                return same
            new = replace(new, supersedes=same.id)
        payload = edits.labelled(writer.context, "decision", {"decision": to_tree(new)}, project.git.clone)
        writer.append("decision", payload)
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


def _known(project: Project, context: RouteContext, label: str, *, is_replaced: bool = False) -> Decision:
    """The decision that `label` names, folded out of the file or not. NotFound; Busy for one that is to be replaced and
    holds no more.
    """
    from ralf.route import history  # few decisions replace one

    label, hint = history.label(label, "DEC"), f"ralf show {context.route} --section decisions"
    found = history.decision_of(project, context, label)
    if found is None or cap.is_buried(context.forgotten, found.id):
        alike = [item.id for item in context.decisions if item.id.startswith(f"{label}-")]
        what = f"has {'several' if alike else 'no'} decision{'s' * bool(alike)} {label}"
        what += f": {', '.join(alike)}" if alike else " to supersede" if is_replaced else ""
        raise NotFound(context.route, what, hint)
    if is_replaced and found.status != "active":
        by = f" by {found.superseded_by}" if found.superseded_by else ""
        raise Busy(context.route, f"{found.id} is {found.status}{by} already", hint)
    return found


@dataclass(frozen=True, slots=True)
class Dropped:
    """A decision as it stands after it was dropped; `changed`: whether this call did it, or it was dropped before."""

    route: str
    decision: Decision
    changed: bool


def drop(
    route: str,
    id: str,  # noqa: A002
    *,
    because: str = "",
    origin: str | None = None,
    root: str | os.PathLike[str] | None = None,
) -> Dropped:
    """Drop a decision of a route, of any status, for good: no transcript and no model brings it back.

    id       its label, as `why` takes it: `DEC-003`, `dec-3`; also of one that the file has folded away
    because  why; kept in the record
    origin   who drops it, as `record_decision` takes it; an agent drops no decision of a person's

    Durable, and shown, as a decision is (`record_decision`), which brings the same text back. Raises RouteNotFound,
    NotFound (no such decision), UsageError (a refused name, a person's decision), Busy, OSError, DamagedJournal.
    """
    project, found = routing.find(route, root)
    with open_route(project, found) as writer:
        decision = _known(project, writer.context, id)
        if cap.is_buried(writer.context.dropped, decision.id):
            return Dropped(found, decision, changed=False)
        if origin == "agent" and decision.origin in OF_A_PERSON:
            hint = f"a person drops it, in a terminal of their own: ralf undo {found} {decision.id}"
            raise UsageError(found, f"{decision.id} is a person's decision, and an agent drops none", hint)
        said = {"origin": origin_of(found, origin)} if origin is not None else {}
        stone = to_tree(cap.tombstone(decision))
        writer.append("drop", {"tombstone": stone, "because": clean(because).strip(), "timestamp": utc_now(), **said})
    return Dropped(found, replace(decision, status="dropped"), changed=True)


# ---- edits ----


@dataclass(frozen=True, slots=True)
class Absorbed:
    """A route file after what a person changed in it was recorded; it shows the newest revision.

    warnings  what the caller should know of: fields that changed in the journal meanwhile, too
    damage    why the file cannot be read: then nothing was recorded, and nothing of it is lost; "" for fine
    """

    route: str
    path: Path
    revision: int
    warnings: tuple[str, ...] = ()
    damage: str = ""


def take_in(route: str, *, root: str | os.PathLike[str] | None = None) -> Absorbed:
    """Record what a person changed in a route's file, and have the file show all that the journal has; durable when
    this returns.

    Raises RouteNotFound, UsageError (a refused name), Busy, OSError, DamagedJournal.
    """
    project, found = routing.find(route, root)
    with open_route(project, found) as writer:
        pass  # absorbs before, and renders after
    path = project.route_file(found)
    return Absorbed(found, path, writer.context.revision, tuple(writer.warnings), writer.damage)


def change(route: str, fields: Mapping[str, Any], *, root: str | os.PathLike[str] | None = None) -> Path:
    """Record what a program changed in a route's front matter, as an edit of the file, but as an agent's: what it says
    anew of a decision has that origin. The file's path.

    fields  the front matter's keys that are to hold something else, as plain data: all others stay. With the header of
            an earlier revision they are merged with what has come since, as an edit of that file is

    Without a change nothing is written; a route that is not there is made. Durable when this returns, and the file
    shows it. Raises UsageError (a refused name, data that no route file holds, a route of which something is foreign),
    Busy, OSError, DamagedJournal.
    """
    project = projects.find(root)
    route = routing.check_new(project, route)
    served = load_state(project, route)
    if served is not None and served.context.foreign:  # what was loaded may hold it
        raise UsageError(route, "holds what your ralf did not write", f"ralf trust {route}")
    with open_route(project, route) as writer:
        newest = writer.context
        base = _loaded(project, newest, fields.get("context_checkpoint"))
        try:
            edited = from_tree(RouteContext, {**to_tree(base), **fields})
        except BadTree as error:
            raise UsageError(route, str(error), f"ralf show {route} --json") from None
        changes = edits.changes_of_edit(base, edits.with_header(edited, route=route), newest)
        put(project, writer, "edit", changes, origin="agent")
    return project.route_file(route)


def _loaded(project: Project, newest: RouteContext, header: object) -> RouteContext:
    """The context that fields were changed in: of the revision that a header names in this history, else the newest."""
    tree = header if isinstance(header, Mapping) else {}
    revision = tree.get("revision")
    then = context_at(project, newest.route, revision) if isinstance(revision, int) else None
    return then if then is not None and then.context_checkpoint.mark == tree.get("mark") else newest


def close_route(route: str, *, root: str | os.PathLike[str] | None = None) -> None:
    """Close a route: no session is handed any more that it is unfinished. Its next record opens it. Durable when this
    returns. Raises RouteNotFound, UsageError, Busy, OSError.
    """
    project, found = routing.find(route, root)
    with open_route(project, found) as writer:
        if writer.context.active_work.work_status != CLOSED:
            put(project, writer, "edit", [{"at": ["active_work", "work_status"], "value": CLOSED}], origin="agent")


def put(project: Project, writer: RouteWriter, kind: str, changes: Sequence[Change], **more: Any) -> RouteContext:
    """Record changes of a route, and what more there is to say of them; nothing for no change. The context then."""
    if not changes:
        return writer.context
    clean_ = [redacted(project, one) for one in changes]
    return writer.append(kind, {"timestamp": utc_now(), **more, "changes": clean_})


# ---- pins ----

_LONGEST = 4_000  # characters


def pin(route: str, message: str, *, origin: str | None = None, root: str | os.PathLike[str] | None = None) -> Pin:
    """Pin a message of the person's, so that every brief shows it, and return the pin; durable when this returns. One
    that is pinned stays as it is; `undo` takes a pin off.

    message  its line in the transcript, of several sessions in the newest that has one there, or its id
    origin   who pins it: user, agent; None: unknown

    Raises RouteNotFound, NotFound (no message there), UsageError (a refused name), Busy, OSError, DamagedJournal.
    """
    project, origin = projects.find(root), origin_of(route, origin)
    route = routing.existing(project, route)
    messages = (one for session in sessions_of(project, route)[::-1] for one in session.entries)
    named = (one for one in messages if isinstance(one, Message) and message.strip() in (one.id, str(one.line)))
    found = next(named, None)
    if found is None:
        raise NotFound(route, f"has no message of the person's at {message}", f"ralf search WORDS --route {route}")
    new = Pin(found.id, found.line, found.session, found.at, trimmed(found.text, _LONGEST), origin)
    with open_route(project, route) as writer:
        known = next((one for one in writer.context.pinned if one.id == new.id), None)
        if known is None:
            writer.append("pin", {"timestamp": utc_now(), "origin": new.origin, "pin": to_tree(new)})
    return known or new
