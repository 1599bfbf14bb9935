"""Recording a decision by hand, between two checkpoints."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime

from ralf import names, project as projects
from ralf.errors import NotFound, UsageError
from ralf.model import Decision
from ralf.text import clean, one_line
from ralf.tree import to_tree
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
) -> Decision:
    """Record a decision in a route, and return it with its label; durable, and in the route file, when this returns.

    route         made when it does not exist
    decision      what was decided; `rationale`: why
    alternatives  what was rejected, each "option: why not" or the option alone
    supersedes    label of the decision that this one replaces; it is marked superseded
    origin        user, agent, human-edit or import
    kind          decision, rule or failed-approach; `pinned`: never folded

    A decision that is already active in the same words is returned as it is. Raises UsageError (a refused name, nothing
    said), NotFound (nothing to supersede), Busy, OSError.
    """
    said = clean(decision).strip()
    if not said:
        raise UsageError(
            route, "a decision needs words", f'ralf context decide {names.slug(route)} "TEXT" --because "WHY"'
        )
    if origin not in ORIGINS or kind not in KINDS:
        raise UsageError(route, f"origin is one of {', '.join(ORIGINS)}, kind one of {', '.join(KINDS)}")
    project = projects.find(root)
    projects.check_new(project, names.check(route))
    made = Decision(
        kind=kind,
        pinned=pinned,
        timestamp=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        decision=said,
        rationale=clean(rationale).strip(),
        alternatives=tuple(text for item in alternatives if (text := clean(item).strip())),
        supersedes=supersedes or "",
        origin=origin,
    )
    with writing(project, route) as writer:
        for known in writer.context.decisions:
            same = one_line(known.decision).casefold() == one_line(said).casefold()
            if same and known.status == "active" and (not supersedes or known.supersedes):
                return known
        if supersedes and all(known.id != supersedes for known in writer.context.decisions):
            raise NotFound(route, f"has no decision {supersedes} to supersede", f"ralf context show {route}")
        context = writer.append("decision", {"decision": to_tree(made)}, id=f"decision-{uuid.uuid4().hex}")
        writer.show()
    wanted = one_line(said).casefold()
    return next(known for known in reversed(context.decisions) if one_line(known.decision).casefold() == wanted)
