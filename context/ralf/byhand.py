"""What a person wrote into the active work by hand: it stays until they take it out, or it is done. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ralf.model import ActiveWork

_LISTS = ("next_steps", "blockers", "findings")
_DONE = "completed"


def edited(before: ActiveWork, after: ActiveWork) -> ActiveWork:
    """`after`, a person's edit of `before`, which notes the items that are theirs."""
    known, stand = set(_items(before)), dict.fromkeys(_items(after))
    own = (item for item in stand if item in after.by_hand or item not in known)
    return replace(after, by_hand=tuple(own))


def kept(before: ActiveWork, after: ActiveWork) -> ActiveWork:
    """`after`, what a segment or a model says of the work, with the items that a person wrote into `before`."""
    if not before.by_hand:
        return after
    done = {todo.content for todo in after.todos if todo.status == _DONE}
    done.update(step.description for step in after.completed_steps)
    own = set(before.by_hand) - done
    lists: dict[str, Any] = {
        key: tuple(dict.fromkeys([*(item for item in getattr(before, key) if item in own), *getattr(after, key)]))
        for key in _LISTS
    }
    named = {todo.content for todo in after.todos}
    todos = (todo for todo in before.todos if todo.content in own - named and todo.status != _DONE)
    made = replace(after, **lists, todos=(*todos, *after.todos))
    stand = set(_items(made))
    return replace(made, by_hand=tuple(item for item in before.by_hand if item in own and item in stand))


def _items(work: ActiveWork) -> Iterator[str]:
    for key in _LISTS:
        yield from getattr(work, key)
    yield from (todo.content for todo in work.todos)
