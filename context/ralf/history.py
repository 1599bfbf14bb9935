"""A route as it was, from its journal: its checkpoints' records, its context after an earlier one, a decision that its
file has folded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ralf import journal, merge, names, project as projects, route as heart
from ralf.context import BODY, RouteContext
from ralf.errors import NotFound, RouteNotFound
from ralf.journal import Record
from ralf.model import Decision
from ralf.project import Project
from ralf.tree import Tree, from_tree


def context_at(route: str, checkpoint: str, *, root: str | os.PathLike[str] | None = None) -> RouteContext:
    """The context of a route right after a checkpoint, `cp-002` or `2`.

    Raises RouteNotFound, NotFound (no such checkpoint), UsageError (a refused name), DamagedJournal.
    """
    project = projects.find(root)
    found = existing(project, route)
    wanted = label(checkpoint)
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
    tree: Tree = {}
    for _, record in journal.read(project.store, route):
        tree = decision_after(tree, label, record)
    return from_tree(Decision, tree) if tree else None


def decision_after(tree: Tree, label: str, record: Record) -> Tree:
    """What a record makes of the decision of this label, as a tree; {} before there is one."""
    payload = record.payload
    lists = (payload.get("decisions", ()), payload.get("document", {}).get("decisions", ()))
    items = [payload["decision"]] if payload.get("decision") else [item for items in lists for item in items]
    for item in items:
        if str(item.get("id", "")).casefold() == label.casefold():
            tree = {**tree, **item}
        elif tree and item.get("supersedes") == tree["id"] and tree.get("status", "active") == "active":
            tree = {**tree, "status": "superseded", "superseded_by": item.get("id", "")}
    stones = [payload["tombstone"]] if record.kind == "drop" else payload.get("tombstones", ())
    if tree and any(stone["id"] == tree["id"] for stone in stones):
        tree = {**tree, "status": "dropped"}
    changes = [change for change in payload.get("changes", ()) if change["at"][:1] == ["decisions"]]
    if not changes:
        return tree
    edited = merge.apply({"decisions": [tree] if tree else []}, changes).get("decisions", [])
    now = next((item for item in edited if str(item.get("id", "")).casefold() == label.casefold()), None)
    return now if now is not None else {**tree, "status": "dropped"} if tree else {}


def existing(project: Project, route: str) -> str:
    """The name under which a route exists; RouteNotFound where it does not, UsageError for a refused name."""
    found = projects.existing_route(project, names.check(route))
    if found is None:
        from ralf.reader import closest

        raise RouteNotFound(route, closest(project, route))
    return found


def label(said: str, kind: str = "cp") -> str:
    """A label as it is written, `cp-002` or `DEC-003`, for what a person may type of it: `2`, `CP-2`, `dec-3`."""
    match = re.fullmatch(r"(?:([A-Za-z]+)-)?0*([0-9]{1,9})", said.strip())
    prefix = (match[1] or kind).lower() if match else ""
    if match is None or prefix not in ("cp", "dec"):
        return said
    return f"{prefix if prefix == 'cp' else 'DEC'}-{int(match[2]):03d}"


def records(project: Project, route: str) -> Iterator[tuple[str, Record]]:
    """Every record of a route, oldest first, checkpoints with the label that the route file gives them, others with
    "".
    """
    count = 0
    for _, record in journal.read(project.store, route):
        if record.kind == "checkpoint":
            count += 1
            yield f"cp-{count:03d}", record
        else:
            count = max([count, *numbers(record)])
            yield "", record


def checkpoints(project: Project, route: str) -> Iterator[tuple[str, Record]]:
    """Every checkpoint record of a route with its label, oldest first."""
    return ((label, record) for label, record in records(project, route) if label)


def lines_of(payload: Mapping[str, Any]) -> str:
    """The lines of its session that a checkpoint's record covers, from 1: `12-300`."""
    source = payload.get("source", {})
    return f"{int(source.get('from_line', 0)) + 1}-{source.get('to_line', 0)}"


def numbers(record: Record) -> Iterator[int]:
    """The checkpoint numbers that a record of another kind brings in: those of an imported file, or of an edit."""
    document = record.payload.get("document", {})
    yield int(document.get("context_checkpoint", {}).get("checkpoint_count", 0))
    sections = list(document.get(BODY, {}).get("sections", ()))
    for change in record.payload.get("changes", ()):
        if change["at"] == ["context_checkpoint", "checkpoint_count"]:
            yield int(change.get("value", 0))
        elif change["at"][:2] == [BODY, "sections"]:
            value = change.get("value")
            sections += value if isinstance(value, list) else [value]
    yield from (int(section.get("number") or 0) for section in sections if isinstance(section, Mapping))
