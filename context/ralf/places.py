"""Where things stand in a tree: by a path of keys, in which a list's item stands under what tells it from the others.

That is the key in `IDENTITY`, for those with the same with their number: the second `a` is `a (2)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    "last_runs": "run",
    "open_files": "path",
    "dropped": "id",
    "forgotten": "id",
    "unresolved": "at",
    "comments": "key",
}


def identity_of(item: Any, parent: str) -> str | None:
    """What tells a list item from the others; a section that a person wrote, without a number, has its title."""
    if not isinstance(item, dict):
        return None
    name = item.get(IDENTITY[parent])
    if name is None and parent == "sections" and "title" in item:
        return f"### {item['title']}"
    if isinstance(name, list):
        return "/".join(map(str, name))
    return None if name is None else str(name)


class _Named:
    """The names of a list's items, as far as they were asked for: what tells each apart, with a number where several
    have the same, or None.
    """

    def __init__(self, items: Sequence[Any], parent: str) -> None:
        self._items = items  # held: its id must not become another's
        self._parent = parent
        self._names: list[str | None] = []
        self._identities: list[str | None] = []
        self._counts: dict[str, int] = {}
        self._places: dict[str, int] = {}

    def all(self) -> list[str | None]:
        """The name of each item."""
        while self._goes_on():
            pass
        return self._names

    def place(self, name: str) -> int | None:
        """Where the item of this name stands."""
        while name not in self._places and self._goes_on():
            pass
        return self._places.get(name)

    def cut(self, place: int) -> None:
        """The list is another from a place on."""
        while len(self._names) > place:
            name, identity = self._names.pop(), self._identities.pop()
            if identity is not None:
                self._counts[identity] -= 1
            if name is not None and self._places[name] == len(self._names):
                del self._places[name]

    def _goes_on(self) -> bool:
        """Name one more item; False where all have their names."""
        place = len(self._names)
        if place == len(self._items):
            return False
        name = identity = identity_of(self._items[place], self._parent)
        if identity is not None:
            self._counts[identity] = count = self._counts.get(identity, 0) + 1
            name = f"{identity} ({count})" if count > 1 else identity
            self._places.setdefault(name, place)
        self._names.append(name)
        self._identities.append(identity)
        return True


def names_of(items: Sequence[Any], parent: str) -> list[str | None]:
    """What tells the items of a list apart, None for one that has nothing."""
    return _Named(items, parent).all()


class Places:
    """Where things stand in trees, remembered from one change to the next: looking through thousands of items for each
    of thousands of changes would take minutes.
    """

    def __init__(self) -> None:
        self._named: dict[int, _Named] = {}  # by the list's id

    def find(self, tree: Tree, at: Sequence[str], default: Any = None) -> Any:
        """What stands at a place of a tree, `default` for nothing."""
        found: Any = tree
        for number, key in enumerate(at):
            step = self.step(found, str(key), str(at[number - 1]) if number else "")
            if step is None:
                return default
            found = step[1]
        return found

    def step(self, tree: Any, key: str, parent: str) -> tuple[Any, Any] | None:
        """Where `key` leads from `tree`: its own key or index, and what stands there; None if nothing does."""
        if isinstance(tree, dict):
            return (key, tree[key]) if key in tree else None
        if not isinstance(tree, list) or parent not in IDENTITY:
            return None
        if id(tree) not in self._named:
            self._named[id(tree)] = _Named(tree, parent)
        place = self._named[id(tree)].place(key)
        return None if place is None else (place, tree[place])

    def changed(self, items: list[Any], place: int) -> None:
        """A list is another from a place on."""
        if id(items) in self._named:
            self._named[id(items)].cut(place)


def find(tree: Tree, at: Sequence[str], default: Any = None) -> Any:
    """What stands at a place of a tree, `default` for nothing."""
    return Places().find(tree, at, default)


def holds(tree: Tree, at: Sequence[str]) -> bool:
    """Whether something stands at a place of a tree."""
    return find(tree, at) is not None
