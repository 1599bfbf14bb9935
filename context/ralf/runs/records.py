"""Records of runs: what a route is told of a run whose folder holds nothing, or nothing new, to be taken."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from ralf import sessions
from ralf.extraction import attempts
from ralf.model import Attempt
from ralf.project import Project
from ralf.writer import RouteWriter, writing


def write(project: Project, route: str, runs: Sequence[Attempt]) -> RouteWriter | None:
    """Write down in one record that there were runs, oldest first, and what came of them; None where the route knows
    all of it. Raises what `writing` does.
    """
    trees = [attempts.tree_of(run, project.redactor) for run in runs]
    if not _new(project, route, trees):
        return None
    with writing(project, route) as writer:
        if new := _new(project, route, trees):
            identity = "\0".join((route, str(writer.context.revision), *(tree["run"] for tree in new)))
            digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
            payload = {"attempts": new, "timestamp": next((run.timestamp for run in reversed(runs)), "")}
            writer.append("attempt", payload, id=f"attempt-{digest[:40]}")
            writer.show()
    return writer


def with_again(project: Project, route: str, tree: dict[str, Any]) -> dict[str, Any]:
    """A run as a record is to hold it that is about to be written; to be called by who holds the route's lock."""
    [(known, _)] = sessions.known_runs(project, route, [tree])
    return tree | ({"again": True} if known else {})


def _new(project: Project, route: str, trees: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of runs those of which the route does not know what is told, each once, as a record holds them."""
    trees = list({tree["run"]: tree for tree in trees}.values())
    known = sessions.known_runs(project, route, trees)
    both = zip(trees, known, strict=True)
    return [tree | ({"again": True} if there else {}) for tree, (there, told) in both if not told]
