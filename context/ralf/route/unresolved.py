"""Fields that an edit and the journal changed at the same time: the edit's value holds, the other is kept beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ralf.brief.wording import place
from ralf.format import merge
from ralf.format.codec import Tree, shared
from ralf.format.merge import find
from ralf.model import RouteContext
from ralf.text.cleaning import clean

KEY = "unresolved"

_COUNTED = frozenset({"context_checkpoint", "facts", "checkpoint_history", "folded", "dropped", "forgotten", KEY})
"""Fields that are counted and extracted, not said: the edit's value holds, and that is all."""

_CLAIM = ("decision", "rationale", "alternatives", "status")

_DEEPEST = 3  # levels of a value that fit into the front matter below its entry; a deeper one is kept as JSON


def of_edit(base: Tree, newest: Tree, changes: Sequence[merge.Change]) -> list[merge.Change]:
    """The entries that an edit adds: for each field that `newest` has changed, too, since `base`."""
    known = [(tuple(entry.get("at", ())), entry.get("also", [])) for entry in newest.get(KEY, ())]
    made = []
    for at, other in merge.conflicts(base, newest, changes):
        if at[0] not in _COUNTED and not _only_said_again(base, newest, at):
            before = [one for inner, also in known if inner[: len(at)] == at for one in also]
            other = json.dumps(other, ensure_ascii=False) if _depth(other) > _DEEPEST else other
            value = {"at": list(at), "also": [*before, _cleaned(other)]}
            made.append({"at": [KEY, "/".join(at)], "value": value})
    return made


def places(changes: Sequence[merge.Change]) -> list[str]:
    """The fields for which the changes of an edit add an entry, in words."""
    added = (one for one in changes if len(one["at"]) > 1 and one["at"][0] == KEY)
    return [place(one["value"]["at"]) for one in added if isinstance(one.get("value"), dict)]


def settled(before: RouteContext, after: RouteContext) -> RouteContext:
    """`after`, the route one record later, without the entries whose field has got another value by it."""
    if not before.unresolved:
        return after
    was, now = shared(before), shared(after)
    left = (e for e in after.unresolved if e not in before.unresolved or find(was, e.at) == find(now, e.at))
    return replace(after, unresolved=tuple(left))


def _cleaned(value: Any) -> Any:
    """A value whose texts may stand in front matter: a section may hold control characters, YAML may not."""
    if isinstance(value, dict):
        return {key: _cleaned(inner) for key, inner in value.items()}
    return [*map(_cleaned, value)] if isinstance(value, list) else clean(value) if isinstance(value, str) else value


def _only_said_again(base: Tree, newest: Tree, at: Sequence[str]) -> bool:
    """Whether a decision says what it said: only where it was found has become more."""
    was, now = (find(tree, at[:2]) if at[0] == "decisions" else None for tree in (base, newest))
    if not isinstance(was, dict) or not isinstance(now, dict):  # gone, or the list as a whole
        return False
    return all(was.get(key) == now.get(key) for key in _CLAIM)


def _depth(found: Any) -> int:
    if isinstance(found, dict):
        found = list(found.values())
    return 1 + max(map(_depth, found), default=0) if isinstance(found, list) else 0
