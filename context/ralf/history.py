"""A route as it was, from its journal: its context after an earlier checkpoint, a decision that its file has folded."""

from __future__ import annotations

import os

from ralf import journal, merge, names, project as projects, route as heart
from ralf.context import RouteContext
from ralf.errors import NotFound, RouteNotFound
from ralf.model import Decision
from ralf.project import Project
from ralf.reader import closest
from ralf.tree import Tree, from_tree


def context_at(route: str, checkpoint: str, *, root: str | os.PathLike[str] | None = None) -> RouteContext:
    """The context of a route right after a checkpoint, `cp-002` or `2`.

    Raises RouteNotFound, NotFound (no such checkpoint), UsageError (a refused name), DamagedJournal.
    """
    project = projects.find(root)
    found = projects.existing_route(project, names.check(route))
    if found is None:
        raise RouteNotFound(route, closest(project, route))
    wanted = f"cp-{int(checkpoint):03d}" if checkpoint.isdecimal() else checkpoint
    context = heart.empty(found)
    for _, record in journal.read(project.store, found):
        context = heart.apply(context, record)
        if record.kind == "checkpoint" and context.checkpoint_history[-1].checkpoint_id == wanted:
            return context
    raise NotFound(found, f"has no checkpoint {checkpoint}", f"ralf context show {found} --section history")


def decision_of(project: Project, route: str, label: str) -> Decision | None:
    """The decision of a route that has this label, also when it was folded out of the file; None where none has it.

    Reads the whole journal. Raises DamagedJournal.
    """
    tree: Tree = {"decisions": []}
    for _, record in journal.read(project.store, route):
        payload = record.payload
        items = [*payload.get("document", {}).get("decisions", ()), *payload.get("decisions", ())]
        for item in [*items, payload.get("decision") or {}]:
            known = tree["decisions"]
            if item.get("id") == label:
                tree = {"decisions": [{**(known[0] if known else {}), **item}]}
            elif item.get("supersedes") == label and known and known[0].get("status") == "active":
                tree = {"decisions": [{**known[0], "status": "superseded", "superseded_by": item.get("id", "")}]}
        changes = [change for change in payload.get("changes", ()) if change["at"][:2] == ["decisions", label]]
        tree = merge.apply(tree, changes) if changes else tree
    return from_tree(Decision, tree["decisions"][0]) if tree["decisions"] else None
