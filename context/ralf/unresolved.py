"""What two sides made of one field at the same time: both are kept until somebody settles it in the file. Pure.

The person's value stands; the other goes to the field's entry under `unresolved` in the front matter. The entry goes
when it is taken out of the file, or when the field gets another value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ralf import merge
from ralf.context import RouteContext
from ralf.past.changes import place, value
from ralf.places import find
from ralf.tree import Tree, to_tree

KEY = "unresolved"
_NOBODY_S = frozenset({"context_checkpoint", "facts", "checkpoint_history", "folded", "dropped", "forgotten", KEY})
"""What is counted and extracted, not said: there the person's value stands, and that is all."""

_CLAIM = ("decision", "rationale", "alternatives", "status")
_DEEPEST = 3  # levels of a value that fit into the front matter below its entry; a deeper one stands as JSON


def of_edit(base: Tree, newest: Tree, changes: Sequence[merge.Change]) -> list[merge.Change]:
    """The entries that an edit adds: for each field that `newest` has changed, too, since `base`."""
    known = [(tuple(entry.get("at", ())), entry.get("also", [])) for entry in newest.get(KEY, ())]

    def before(at: tuple[str, ...]) -> list[Any]:
        return [one for place, also in known if place[: len(at)] == at for one in also]

    return [
        {"at": [KEY, "/".join(at)], "value": {"at": list(at), "also": [*before(at), _flat(other)]}}
        for at, other in merge.conflicts(base, newest, changes)
        if at[0] not in _NOBODY_S and not _only_said_again(base, newest, at)
    ]


def settled(before: RouteContext, after: RouteContext) -> RouteContext:
    """`after`, the route one record later, without the entries whose field has got another value by it."""
    if not before.unresolved:
        return after
    was, now = to_tree(before), to_tree(after)
    left = tuple(
        entry
        for entry in after.unresolved
        if entry not in before.unresolved or find(was, entry.at) == find(now, entry.at)
    )
    return replace(after, unresolved=left)


def told(context: RouteContext) -> Iterator[str]:
    """Each entry on one line: the place, what stands there, and what was said, too."""
    tree = to_tree(context) if context.unresolved else {}
    for entry in context.unresolved:
        yield f"{place(entry.at)}: {value(find(tree, entry.at))}; also said: {said(entry.also)}"


def said(values: Sequence[Any]) -> str:
    """The values that do not stand, on one line."""
    return "; or: ".join(map(value, values))


def places(changes: Sequence[merge.Change]) -> list[str]:
    """The fields for which the changes of an edit add an entry, in words."""
    return [
        place(change["value"]["at"])
        for change in changes
        if len(change["at"]) > 1 and change["at"][0] == KEY and isinstance(change.get("value"), dict)
    ]


def _flat(other: Any) -> Any:
    """A value as the front matter can hold it."""
    return other if _depth(other) <= _DEEPEST else json.dumps(other, ensure_ascii=False)


def _only_said_again(base: Tree, newest: Tree, at: Sequence[str]) -> bool:
    """Whether a decision says what it said: only where it was found has become more."""
    if at[0] != "decisions":
        return False
    was, now = find(base, at[:2]), find(newest, at[:2])
    if not isinstance(was, dict) or not isinstance(now, dict):  # gone, or the list as a whole
        return False
    return all(was.get(key) == now.get(key) for key in _CLAIM)


def _depth(found: Any) -> int:
    if isinstance(found, dict):
        found = list(found.values())
    return 1 + max(map(_depth, found), default=0) if isinstance(found, list) else 0
