"""Three-way merge of trees: what changed from one to another, as data, and made to a third; texts by lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ralf.document.tree import Tree
from ralf.text.frozen import NamedTuple

Change = dict[str, Any]
"""What became of one place; `at` is a path of keys, in which a list item has the name by which it is found again.

`{"at": […], "value": …}`          this is there now
`{"at": […], "removed": True}`     nothing is there any more
`{"at": […], "removed": "empty"}`  the mapping or list is gone, if nothing is left in it
`{"at": […], "order": […]}`        the items of the list are in this order
"""

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
"""By the key of a list the field that tells its items apart; the second of two that say the same is `a (2)`."""

_NOTHING = object()


class Conflict(NamedTuple):
    """A place that both sides changed, each to something else, and the value of the two that does not hold.

    `other` is None where that side had removed it.
    """

    at: tuple[str, ...]
    other: Any


def diff(base: Tree, theirs: Tree) -> list[Change]:
    """The changes that make `theirs` of `base`: `apply(base, diff(base, theirs)) == theirs`, order of lists included.

    What one side alone has is described item by item, so that the changes take nothing from a third
    tree which has more.
    """
    changes: list[Change] = []
    _diff(_keyed(base), _keyed(theirs), [], changes)
    return changes


def apply(tree: Tree, changes: Sequence[Change]) -> Tree:
    """`tree` with the changes made, as a copy; what a change needs and does not find is made."""
    found: Tree = _plain(_made(tree, changes)[0])
    return found


def open_changes(changes: Sequence[Change], tree: Tree) -> list[Change]:
    """The changes that `tree` does not show yet when those before them are made."""
    return _made(tree, changes)[1]


def _made(tree: Tree, changes: Sequence[Change]) -> tuple[Any, list[Change]]:
    """A tree with changes made, and those that it did not show yet."""
    made, found = _keyed(tree), list[Change]()
    for change in changes:
        at = [str(key) for key in change["at"]]
        if at and not _shows(made, change):
            found.append(change)
            if _takes(made, at):
                _make(made, at, change)
    return made, found


def conflicts(base: Tree, ours: Tree, changes: Sequence[Change]) -> Iterator[Conflict]:
    """Where `changes`, made to `base`, and `ours` differ about what both changed.

    The changes win; but a field of an item that `ours` has no longer cannot be set: then its new value is the other.
    """
    keyed, current = _keyed(base), _keyed(ours)
    for change in changes:
        if "order" in change or change.get("removed") == "empty":
            continue
        at = tuple(str(key) for key in change["at"])
        was, now, wanted = _find(keyed, at, None), _find(current, at, None), _keyed(change.get("value"), at[-1])
        if not _takes(current, at):
            if wanted is not None:
                yield Conflict(at, _plain(wanted))
        elif not _same(was, now) and not _same(now, wanted):
            yield Conflict(at, _plain(now))


def find(tree: Tree, at: Sequence[str], default: Any = None) -> Any:
    """What is at a place of a tree, `default` for nothing."""
    found: Any = tree
    for number, key in enumerate(map(str, at)):
        if isinstance(found, list):
            found = dict(zip(_names(found, str(at[number - 1])), found, strict=True)) if number else {}
        if not isinstance(found, dict) or key not in found:
            return default
        found = found[key]
    return found


# ---- trees in which lists are mappings, too ----


class _Items(dict[str, Any]):
    """A list by the names of its items, in their order; `is_named`: whether each has one."""

    is_named = True


def _keyed(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _keyed(inner, name) for name, inner in value.items()}
    if not isinstance(value, list) or key not in IDENTITY:
        return value
    names = _names(value, key)
    items = _Items((name, _keyed(item)) for name, item in zip(names, value, strict=True))
    items.is_named = not any(name.startswith("\0") for name in names)
    return items


def _plain(value: Any) -> Any:
    if isinstance(value, _Items):
        return [_plain(item) for item in value.values()]
    return {key: _plain(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def _names(items: Sequence[Any], key: str) -> list[str]:
    """What tells the items of a list apart; of one that has nothing a name that nobody can write."""
    counts: dict[str, int] = {}
    names = []
    for number, item in enumerate(items):
        name = _identity(item, key)
        if name is None:
            names.append(f"\0{number}")
            continue
        counts[name] = counts.get(name, 0) + 1
        names.append(f"{name} ({counts[name]})" if counts[name] > 1 else name)
    return names


def _identity(item: Any, key: str) -> str | None:
    """What an item says it is; a section that a person wrote, without a number, has its title."""
    name = item.get(IDENTITY.get(key)) if isinstance(item, dict) else None
    if name is None:
        return f"### {item['title']}" if key == "sections" and isinstance(item, dict) and "title" in item else None
    return "/".join(map(str, name)) if isinstance(name, list) else str(name)


def _find(tree: Any, at: Sequence[str], default: Any) -> Any:
    for key in at:
        if not isinstance(tree, dict) or key not in tree:
            return default
        tree = tree[key]
    return tree


def _same(one: Any, other: Any) -> bool:
    """Whether two trees are equal, where 1, 1.0 and true are three things, and items have an order."""
    if one.__class__ is not other.__class__:
        return False
    if isinstance(one, dict):
        is_alike = list(one) == list(other) if isinstance(one, _Items) else one.keys() == other.keys()
        return is_alike and all(_same(inner, other[key]) for key, inner in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


# ---- what changed ----


def _diff(base: Any, theirs: Any, at: list[str], changes: list[Change]) -> None:
    if _same(base, theirs):
        return
    if base.__class__ is not theirs.__class__ or not (_has_parts(base) and _has_parts(theirs)):
        changes.append({"at": at, "value": _plain(theirs)})
        return
    is_list = isinstance(base, _Items)
    for key, inner in reversed(base.items()):
        if key not in theirs:
            _removed(inner, [*at, key], changes, whole=is_list)
    names = _Items((key, inner) for key, inner in base.items() if key in theirs)
    for key, inner in theirs.items():
        if key in base:
            _diff(base[key], inner, [*at, key], changes)
        elif is_list or not _has_parts(inner) or not inner or (key in IDENTITY) != isinstance(inner, _Items):
            changes.append({"at": [*at, key], "value": _plain(inner)})
        else:  # item by item, for a third tree may have it with others
            _diff(inner.__class__(), inner, [*at, key], changes)
        if is_list and key not in base:
            _insert(names, at[-1], key, inner)
    if is_list and list(names) != list(theirs):
        changes.append({"at": at, "order": list(theirs)})


def _removed(inner: Any, at: list[str], changes: list[Change], *, whole: bool) -> None:
    """A field that is gone; `whole`: an item of a list."""
    if whole or not _has_parts(inner) or not inner:
        changes.append({"at": at, "removed": True})
        return
    for key, part in reversed(inner.items()):
        _removed(part, [*at, key], changes, whole=isinstance(inner, _Items))
    changes.append({"at": at, "removed": "empty"})


def _has_parts(value: Any) -> bool:
    return isinstance(value, dict) and getattr(value, "is_named", True)


def _shows(tree: Tree, change: Change) -> bool:
    """Whether a change would make nothing of a tree but what it is."""
    found = _find(tree, [str(key) for key in change["at"]], _NOTHING)
    if found is _NOTHING:
        return "value" not in change
    if "order" in change:
        return not isinstance(found, _Items) or _ordered(found, change["order"]) == list(found)
    if change.get("removed"):
        return change["removed"] == "empty" and bool(found)
    return _same(found, _keyed(change["value"], str(change["at"][-1])))


# ---- making changes ----


def _takes(tree: Any, at: Sequence[str]) -> bool:
    """Whether a change can be made at a place: all on the way there is, or can be made."""
    for key in at[:-1]:
        if not isinstance(tree, dict) or (key not in tree and isinstance(tree, _Items)):
            return False
        tree = tree[key] if key in tree else _container(key)
    return isinstance(tree, dict)


def _container(key: str) -> dict[str, Any]:
    """What is made at a key that is missing and has to hold something."""
    return _Items() if key in IDENTITY else {}


def _make(tree: dict[str, Any], at: list[str], change: Change) -> None:
    for key in at[:-1]:
        if key not in tree and "value" not in change:
            return
        tree = tree.setdefault(key, _container(key))
    key, found = at[-1], tree.get(at[-1])
    if "order" in change:
        if isinstance(found, _Items):
            tree[key] = _Items((name, found[name]) for name in _ordered(found, change["order"]))
    elif "value" in change:
        made = _keyed(change["value"], key)
        if isinstance(tree, _Items) and key not in tree:
            _insert(tree, at[-2], key, made)
        else:
            tree[key] = made
    elif change["removed"] != "empty" or not found:
        tree.pop(key, None)


def _insert(items: _Items, parent: str, name: str, item: Any) -> None:
    """Sections are newest first, everything else oldest first."""
    number = _number(item)
    older = [key for key, other in items.items() if _number(other) < number] if parent == "sections" else ()
    items[name] = item
    for key in older:
        items[key] = items.pop(key)


def _number(section: Any) -> int:
    return section.get("number") or 0 if isinstance(section, dict) else 0


def _ordered(items: _Items, order: Sequence[str]) -> list[str]:
    """The names of items in an order; one that it does not name stays behind the one that it was behind."""
    names = [name for name in dict.fromkeys(order) if name in items]
    named, before = set(names), ""
    for name in items:
        if name not in named:
            names.insert(names.index(before) + 1 if before in named else 0, name)
            named.add(name)
        before = name
    return names


# ---- texts ----


def merged(base: str, ours: str, theirs: str, *, keep: bool = False) -> str:
    """A text with the lines that two sides changed; where both changed the same ones, those of both.

    keep  whether lines of ours stay that theirs lack, unless a new one of theirs goes on from them
    """
    sides = [text.split("\n") if text else [] for text in (base, ours, theirs)]
    then, here, there = sides
    in_ours, in_theirs = _matches(then, here), _matches(then, there)
    found, places = list[str](), [0, 0, 0]
    for place in [*(n for n in range(len(then)) if n in in_ours and n in in_theirs), len(then)]:
        ends = place, in_ours.get(place, len(here)), in_theirs.get(place, len(there))
        found += _of_both(*(side[a:b] for side, a, b in zip(sides, places, ends, strict=True)), keep=keep)
        found += then[place : place + 1]
        places = [end + 1 for end in ends]
    return "\n".join(found)


def _of_both(then: list[str], here: list[str], there: list[str], *, keep: bool) -> list[str]:
    """What becomes of lines that one side has changed, or both."""
    new = [line for line in there if line not in then]

    def stays(line: str) -> bool:
        is_continued = any(other.startswith(line.rstrip(".")) for other in new)
        return line not in then or line in there or (keep and not is_continued)

    ours, theirs = [*filter(stays, here)], [line for line in there if line not in then or line in here]
    from difflib import SequenceMatcher  # here and below: few writes compare texts

    found = list[str]()
    for kind, first, last, start, end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        found += ours[first:last] + (theirs[start:end] if kind != "equal" else [])
    return found


def _matches(one: list[str], other: list[str]) -> dict[int, int]:
    from difflib import SequenceMatcher

    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return {block.a + n: block.b + n for block in blocks for n in range(block.size)}
