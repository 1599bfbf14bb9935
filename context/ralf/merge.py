"""Three-way merge of trees: what changed from one to another, as data, and those changes made to a third.

List items are told apart by the key in `IDENTITY`; a list whose items have none, or one twice, changes as a whole.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

from ralf.tree import Tree

IDENTITY = {
    "decisions": "id",
    "checkpoint_history": "checkpoint_id",
    "sections": "number",
    "paths": "path",
    "commands": "command",
    "errors": "error",
    "commits": "commit",
    "requests": "request",
    "todos": "content",
    "open_files": "path",
}

Change = dict[str, Any]
"""`{"at": [keys …], "value": …}`, or `{"at": [keys …], "removed": True}`; a list item stands under its identity."""


_NONE = object()


class Merged(NamedTuple):
    """A merged tree, and the places where both sides had changed the same thing (theirs was taken)."""

    tree: Tree
    conflicts: tuple[tuple[str, ...], ...]


def diff(base: Tree, theirs: Tree) -> list[Change]:
    """The changes that make `theirs` of `base`; none for equal trees. The order of list items is no change."""
    changes: list[Change] = []
    _diff(base, theirs, [], changes)
    return changes


def apply(tree: Tree, changes: Sequence[Change]) -> Tree:
    """A copy of `tree` with the changes made; what a change needs and does not find is made."""
    made = copy.deepcopy(tree)
    for change in changes:
        _make(made, [str(key) for key in change["at"]], change)
    return made


def merge(base: Tree, ours: Tree, theirs: Tree) -> Merged:
    """`ours` with what `theirs` changed from `base`."""
    changes = diff(base, theirs)
    conflicts = []
    for change in changes:
        at = [str(key) for key in change["at"]]
        was, now = _find(base, at), _find(ours, at)
        if was != now and now != change.get("value"):
            conflicts.append(tuple(at))
    return Merged(apply(ours, changes), tuple(conflicts))


def open_changes(changes: Sequence[Change], tree: Tree) -> list[Change]:
    """The changes that `tree` does not show yet."""
    return [
        change for change in changes if _find(tree, list(map(str, change["at"])), _NONE) != change.get("value", _NONE)
    ]


def holds(tree: Tree, at: Sequence[str]) -> bool:
    """Whether something stands at a place of a tree."""
    return _find(tree, [str(key) for key in at]) is not None


def _diff(base: Any, theirs: Any, at: list[str], changes: list[Change]) -> None:
    if base == theirs:
        return
    if isinstance(base, dict) and isinstance(theirs, dict):
        before, after = base, theirs
    else:
        before_items, after_items = _by_identity(base, at), _by_identity(theirs, at)
        if before_items is None or after_items is None:
            changes.append({"at": at, "value": theirs})
            return
        before, after = before_items, after_items
    for key, inner in after.items():
        if key in before:
            _diff(before[key], inner, [*at, key], changes)
        else:
            changes.append({"at": [*at, key], "value": inner})
    changes.extend({"at": [*at, key], "removed": True} for key in before if key not in after)


def _by_identity(items: Any, at: list[str]) -> dict[str, Any] | None:
    if not at or at[-1] not in IDENTITY or not isinstance(items, list):
        return None
    found: dict[str, Any] = {}
    for item in items:
        name = _identity(item, at[-1])
        if name is None or name in found:
            return None
        found[name] = item
    return found


def _identity(item: Any, parent: str) -> str | None:
    """What tells a list item from the others; a section that a person wrote, without a number, has its title."""
    if not isinstance(item, dict):
        return None
    name = item.get(IDENTITY[parent])
    if name is None and parent == "sections" and "title" in item:
        return f"### {item['title']}"
    return None if name is None else str(name)


def _step(tree: Any, key: str, parent: str) -> tuple[Any, Any] | None:
    """Where `key` leads from `tree`: the container's own key or index, and what stands there; None if nothing does."""
    if isinstance(tree, dict):
        return (key, tree[key]) if key in tree else None
    if isinstance(tree, list) and parent in IDENTITY:
        for index, item in enumerate(tree):
            if _identity(item, parent) == key:
                return index, item
    return None


def _find(tree: Any, at: list[str], default: Any = None) -> Any:
    for number, key in enumerate(at):
        step = _step(tree, key, at[number - 1] if number else "")
        if step is None:
            return default
        tree = step[1]
    return tree


def _make(tree: Any, at: list[str], change: Change) -> None:
    for number, key in enumerate(at[:-1]):
        step = _step(tree, key, at[number - 1] if number else "")
        if step is None:
            if change.get("removed") or not isinstance(tree, dict):
                return  # what should change is gone
            tree[key] = [] if key in IDENTITY else {}
            tree = tree[key]
        else:
            tree = step[1]
    parent, key = at[-2] if len(at) > 1 else "", at[-1]
    step = _step(tree, key, parent)
    if change.get("removed"):
        if step is not None:
            del tree[step[0]]
    elif step is not None:
        tree[step[0]] = copy.deepcopy(change["value"])
    elif isinstance(tree, dict):
        tree[key] = copy.deepcopy(change["value"])
    elif isinstance(tree, list):
        _insert(tree, parent, copy.deepcopy(change["value"]))


def _insert(items: list[Any], parent: str, item: Any) -> None:
    """Sections stand newest first, everything else oldest first."""
    if parent == "sections" and isinstance(item, dict):
        number = item.get("number") or 0
        place = next((n for n, other in enumerate(items) if (other.get("number") or 0) < number), len(items))
        items.insert(place, item)
    else:
        items.append(item)
