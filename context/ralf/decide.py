"""Recording a decision by hand, between two checkpoints."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime

from ralf import names, project as projects, routing, tombstones
from ralf.context import RouteContext
from ralf.errors import Busy, NotFound, UsageError
from ralf.labels import labelled, said as words_of
from ralf.model import Decision
from ralf.past import history
from ralf.project import Project
from ralf.text import clean
from ralf.tree import from_tree, to_tree
from ralf.writer import writing

ORIGINS = ("user", "agent", "human-edit", "import")
KINDS = ("decision", "rule", "failed-approach")


def record_decision(
    route: str,
    decision: str,
    *,
    rationale: str = "",
    alternatives: Iterable[str] = (),
    supersedes: str | None = None,
    origin: str = "user",
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
    supersedes    label of the decision that this one replaces, folded out of the file or not; it is marked superseded
    origin        user, agent, human-edit or import
    kind          decision, rule or failed-approach; `pinned`: never folded
    warn          told what else there is to know: that an editor holds the file, that a save was set aside

    A decision that is already active in the same words is returned as it is. Raises UsageError (a refused name, nothing
    said, an agent's decision that a person dropped), NotFound (nothing to supersede), Busy, OSError.
    """
    said = clean(decision).strip()
    if not said:
        raise UsageError(
            route, "a decision needs words", f'ralf context decide {names.slug(route)} "TEXT" --because "WHY"'
        )
    if origin not in ORIGINS or kind not in KINDS:
        raise UsageError(route, f"origin is one of {', '.join(ORIGINS)}, kind one of {', '.join(KINDS)}")
    project = projects.find(root)
    routing.check_new(project, route)
    project.check_links()
    redacted = project.redactor.text
    made = Decision(
        kind=kind,
        pinned=pinned,
        timestamp=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        decision=redacted(said),
        rationale=redacted(clean(rationale).strip()),
        alternatives=tuple(redacted(text) for item in alternatives if (text := clean(item).strip())),
        supersedes=supersedes or "",
        origin=origin,
    )
    with writing(project, route) as writer:
        stone = next(iter(tombstones.covering(tombstones.of(writer.context), made)), None)
        if origin == "agent" and stone is not None:
            raise UsageError(route, f"{stone.id} says the same and was dropped: only a person may decide it again")
        words = words_of(made)
        for known in writer.context.decisions:
            if known.status != "active" or words_of(known) != words:
                continue
            if not supersedes and _adds_nothing(made, known):
                return known
            if not _adds_nothing(made, known):
                made = replace(made, supersedes=supersedes or known.id)
            elif known.supersedes:
                what = f"{known.id} says the same and replaces {known.supersedes} already"
                raise Busy(route, what, "say it in other words")
        if supersedes:
            _check_replaceable(project, route, writer.context, supersedes)
        payload = labelled(writer.context, "decision", {"decision": to_tree(made)})
        writer.append("decision", payload, id=f"decision-{uuid.uuid4().hex}")
        writer.show()
    if warn is not None:
        for warning in writer.warnings:
            warn(warning)
    return from_tree(Decision, payload["decision"])


def _adds_nothing(new: Decision, known: Decision) -> bool:
    """Whether a decision in the same words has no reason, rejected option or weight that the known one lacks."""
    return (
        new.rationale in ("", known.rationale)
        and set(new.alternatives) <= set(known.alternatives)
        and (new.kind, new.pinned) in (("decision", False), (known.kind, known.pinned))
    )


def _check_replaceable(project: Project, route: str, context: RouteContext, label: str) -> None:
    found = next((item for item in context.decisions if item.id == label), None)
    if found is None and context.folded.decision_count:
        found = history.decision_of(project, route, label)
    if found is None:
        raise NotFound(route, f"has no decision {label} to supersede", f"ralf context show {route}")
    if found.status != "active":
        by = f" by {found.superseded_by}" if found.superseded_by else ""
        raise Busy(route, f"{label} is {found.status}{by} already", f"ralf context show {route} --section decisions")
