"""Three-way merge of trees: what changed from one to another, as data, and those changes made to a third."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ralf.format.codec import Tree

_NOTHING = object()

Change = dict[str, Any]
"""What became of one place; `at` is a path of keys, in which a list item stands under its identity.

`{"at": […], "value": …}`          this stands there now
`{"at": […], "removed": True}`     nothing stands there any more
`{"at": […], "removed": "empty"}`  the mapping or list is gone, if nothing is left in it
`{"at": […], "order": […]}`        the items of the list stand in this order
"""


class Conflict(NamedTuple):
    """A place that both sides changed, each to something else, and the value of the two that does not stand there.

    `other` is None where that side had removed it.
    """

    at: tuple[str, ...]
    other: Any


def diff(base: Tree, theirs: Tree) -> list[Change]:
    """The changes that make `theirs` of `base`: `apply(base, diff(base, theirs)) == theirs`, order of lists included.

    What one side alone has is told item by item, so that the changes take nothing from a third tree which has more.
    """
    changes: list[Change] = []
    _diff(base, theirs, [], changes)
    return changes


def apply(tree: Tree, changes: Sequence[Change]) -> Tree:
    """`tree` with the changes made; what a change needs and does not find is made. `tree` stays as it is, and what the
    changes leave alone is the same in both.
    """
    own, places = _Own(), Places()
    made: Tree = own.of(tree)
    for change in changes:
        _make(made, [str(key) for key in change["at"]], change, places, own)
    return made


def conflicts(base: Tree, ours: Tree, changes: Sequence[Change]) -> Iterator[Conflict]:
    """Where `changes`, made to `base`, and `ours` differ about what both changed.

    The changes win; but a field of an item that `ours` has no longer cannot be set: then its new value is the other.
    """
    places = Places()
    for change in changes:
        if "order" in change or change.get("removed") == "empty":
            continue
        at = tuple(str(key) for key in change["at"])
        was, now, wanted = places.find(base, at), places.find(ours, at), change.get("value")
        if not _takes(ours, at, places):
            if wanted is not None:
                yield Conflict(at, _copy(wanted))
        elif not _same(was, now) and not _same(now, wanted):
            yield Conflict(at, _copy(now))


def open_changes(changes: Sequence[Change], tree: Tree) -> list[Change]:
    """The changes that `tree` does not show yet, and an order or an emptiness that one of these is about."""
    places = Places()
    open_ = [not _shows(tree, change, places) for change in changes]
    around = {
        tuple(c["at"][:n]) for c, is_open in zip(changes, open_, strict=True) if is_open for n in range(len(c["at"]))
    }
    depends = [("order" in c or c.get("removed") == "empty") and tuple(c["at"]) in around for c in changes]
    return [c for c, is_open, too in zip(changes, open_, depends, strict=True) if is_open or too]


# ---- what changed ----


def _diff(base: Any, theirs: Any, at: list[str], changes: list[Change]) -> None:
    if _same(base, theirs):
        return
    before, after = _parts(base, at), _parts(theirs, at)
    if before is None or after is None or isinstance(base, dict) != isinstance(theirs, dict):
        changes.append({"at": at, "value": theirs})
        return
    for key, inner in reversed(before.items()):  # the second of two that have one name before the first
        if key not in after:
            _removed(inner, [*at, key], changes, whole=isinstance(base, list))
    for key, inner in after.items():
        if key in before:
            _diff(before[key], inner, [*at, key], changes)
        elif isinstance(theirs, dict):
            _added(inner, [*at, key], changes)
        else:
            changes.append({"at": [*at, key], "value": inner})
    if isinstance(theirs, list):
        made = [item for key, item in before.items() if key in after]
        for key, item in after.items():
            if key not in before:
                _insert(made, at[-1], item)
        if names_of(made, at[-1]) != list(after):
            changes.append({"at": at, "order": list(after)})


def _added(inner: Any, at: list[str], changes: list[Change]) -> None:
    """A field that was not there: item by item, for a third tree may have it with others."""
    if isinstance(inner, dict) and inner and at[-1] not in IDENTITY:
        _diff({}, inner, at, changes)
    elif isinstance(inner, list) and _parts(inner, at):
        _diff([], inner, at, changes)
    else:
        changes.append({"at": at, "value": inner})


def _removed(inner: Any, at: list[str], changes: list[Change], *, whole: bool = False) -> None:
    """A field that is gone; `whole`: an item of a list."""
    parts = None if whole else _parts(inner, at)
    if not parts:
        changes.append({"at": at, "removed": True})
        return
    for key, part in reversed(parts.items()):
        _removed(part, [*at, key], changes, whole=isinstance(inner, list))
    changes.append({"at": at, "removed": "empty"})


def _parts(value: Any, at: list[str]) -> dict[str, Any] | None:
    """The fields of a mapping, the items of a list by their identity; None for what changes as a whole."""
    if isinstance(value, dict):
        return value
    if not at or at[-1] not in IDENTITY or not isinstance(value, list):
        return None
    names = names_of(value, at[-1])
    if None in names or len(set(names)) < len(names):
        return None
    return dict(zip(map(str, names), value, strict=True))


def _same(one: Any, other: Any) -> bool:
    """Whether two trees are equal, where 1, 1.0 and true are three things."""
    if one is other:
        return True
    if one.__class__ is not other.__class__:
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(inner, other[key]) for key, inner in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _takes(tree: Any, at: Sequence[str], places: Places) -> bool:
    """Whether a change can be made at a place: all on the way there is, or can be made."""
    for number, key in enumerate(at[:-1]):
        step = places.step(tree, key, at[number - 1] if number else "")
        if step is None and not isinstance(tree, dict):
            return False
        tree = step[1] if step is not None else _container(key)
    return isinstance(tree, (dict, list))


def _container(key: str) -> Any:
    """What is made at a key that is missing and has to hold something."""
    return [] if key in IDENTITY else {}


def _shows(tree: Tree, change: Change, places: Places) -> bool:
    """Whether a change would make nothing of a tree but what it is."""
    found = places.find(tree, change["at"], _NOTHING)
    if found is _NOTHING:
        return "value" not in change
    if "order" in change:
        parent = str(change["at"][-1])
        return not isinstance(found, list) or _ordered(found, parent, change["order"]) == found
    if change.get("removed"):
        return change["removed"] == "empty" and bool(found)
    return _same(found, change["value"])


# ---- making changes ----


class _Own:
    """The parts of a tree that are ours to change: each is copied when it is first asked for."""

    def __init__(self) -> None:
        self._parts: dict[int, Any] = {}  # by their ids, which they keep

    def of(self, part: Any) -> Any:
        """A mapping or a list as one to be changed; what is in it stays as it is."""
        if id(part) in self._parts or not isinstance(part, (dict, list)):
            return part
        made = part.copy()
        self._parts[id(made)] = made
        return made


def _copy(tree: Any) -> Any:
    """A copy to be changed; `copy.deepcopy` looks for cycles, too, and takes five times as long."""
    if isinstance(tree, dict):
        return {key: _copy(inner) for key, inner in tree.items()}
    return [_copy(inner) for inner in tree] if isinstance(tree, list) else tree


def _make(tree: Any, at: list[str], change: Change, places: Places, own: _Own) -> None:
    if not at or not _takes(tree, at, places):
        return  # what should change is gone
    above: Any = None
    for number, key in enumerate(at[:-1]):
        step = places.step(tree, key, at[number - 1] if number else "")
        if step is None and "value" not in change:
            return
        place, inner = step if step is not None else (key, _container(key))
        tree[place] = own.of(inner)
        above, tree = tree, tree[place]
    parent, key = at[-2] if len(at) > 1 else "", at[-1]
    step = places.step(tree, key, parent)
    if "order" in change:
        if step is not None and isinstance(step[1], list) and key in IDENTITY:
            tree[step[0]] = own.of(_ordered(step[1], key, change["order"]))
    elif isinstance(tree, list):
        places.changed(tree, _make_item(tree, parent, step, change))
    elif "value" in change:
        tree[key] = _copy(change["value"])
    elif step is not None and (change["removed"] != "empty" or not step[1]):
        del tree[key]
    if isinstance(above, list) and key in (IDENTITY[at[-3]], "title"):  # by which an item is told from the others
        places.changed(above, 0)


def _make_item(items: list[Any], parent: str, step: tuple[Any, Any] | None, change: Change) -> int:
    """Change, add or remove an item; from which place on the list is another."""
    if step is None:
        return _insert(items, parent, _copy(change["value"])) if "value" in change else len(items)
    place, item = step
    if "value" in change:
        items[place] = _copy(change["value"])
        return len(items) if identity_of(items[place], parent) == identity_of(item, parent) else place
    if change["removed"] == "empty" and item:
        return len(items)
    del items[place]
    return int(place)


def _insert(items: list[Any], parent: str, item: Any) -> int:
    """Sections stand newest first, everything else oldest first; one of a name that is there stands behind it. Where it
    stands now.
    """
    place = len(items)
    if parent == "sections" and isinstance(item, dict):
        number, name = item.get("number") or 0, identity_of(item, parent)
        alike = [n for n, other in enumerate(items) if identity_of(other, parent) == name]
        older = (n for n, other in enumerate(items) if (other.get("number") or 0) < number)
        place = alike[-1] + 1 if alike else next(older, place)
    items.insert(place, item)
    return place


def _ordered(items: list[Any], parent: str, order: Sequence[str]) -> list[Any]:
    """Items in an order; one that it does not name stays behind the one that it stood behind."""
    names = names_of(items, parent)
    by_name = dict(zip(names, items, strict=True))
    made = [by_name[name] for name in dict.fromkeys(order) if name in by_name]
    named = set(order)
    before: Any = None
    for name, item in zip(names, items, strict=True):
        if name not in named or by_name[name] is not item:
            place = next((n + 1 for n, other in enumerate(made) if other is before), 0)
            made.insert(place, item)
        before = item
    return made


# ---- places: paths of keys, in which `IDENTITY` names list items; a second `a` is `a (2)` ----

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
    "comments": "key",
    "pinned": "id",
    "kept": "id",
    "offers": "text",
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
