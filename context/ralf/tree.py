"""Values of `ralf.model` as plain trees (dicts, lists, text, numbers) and back, keeping what it does not know."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Tree = dict[str, Any]
_DIGITS = 18
_LONGEST_NUMBER, _MOST = 32, 1e18
_SCALARS = frozenset((str, int, bool, float, type(None)))
NOT_STORED = {"stored": False}
"""Metadata of a dataclass field that is no part of the tree; a field with `key` stands under that key."""


class BadTree(ValueError):
    """A tree that does not fit: `at` is the path of keys to the place, `expected` what should stand there."""

    def __init__(self, at: tuple[str, ...], expected: str, found: object) -> None:
        super().__init__(f"{'.'.join(at) or 'the whole'}: expected {expected}, got {_shown(found)}")
        self.at = at


class Items(list[str]):
    """A list of dataclasses, each as the JSON of its tree; see `outline`."""

    __slots__ = ()


def to_tree(value: Any) -> Tree:
    """A dataclass of `ralf.model` as a tree: fields in their order, empty ones left out, then the unknown ones."""
    return _tree(value, _trees_of)


def outline(value: Any) -> Tree:
    """As `to_tree`, but a list of dataclasses is `Items`.

    The text of one is remembered, and so is what `from_tree` makes of it: of a context that grows by a few items, only
    these have to be looked at.
    """
    return _tree(value, _texts_of)


def _tree(value: Any, of_items: Callable[[tuple[Any, ...]], list[Any]]) -> Tree:
    keys, defaults, values = _shape(_hashable(type(value))).written
    always = getattr(value, "always_written", ())
    tree: Tree = {}
    for key, default, inner in zip(keys, defaults, values(value), strict=True):
        if inner != default or (always and key in always):
            tree[key] = inner if inner.__class__ in _SCALARS else _plain(inner, of_items)
    tree.update(getattr(value, "extra", ()))
    return tree


def shared(value: Any) -> Tree:
    """As `to_tree`, but the trees of dataclasses in lists are remembered, and nobody's to change: two contexts with an
    item in common have its tree in common, and `from_tree` gives the same item back.
    """
    return _tree(value, _shared_of)


def from_tree(cls: type[T], tree: object, at: tuple[str, ...] = ()) -> T:
    """The dataclass that a tree holds; BadTree where the tree does not fit. Unknown keys go to `extra`."""
    if not isinstance(tree, Mapping):
        raise BadTree(at, "a mapping", tree)
    named = _shape(_hashable(cls)).read
    known: dict[str, Any] = {}
    extra: Tree = {}
    for key, value in tree.items():
        field = named.get(key)
        if field is None:
            extra[key] = value
        elif value is not None:
            name, read = field
            known[name] = read(value, (*at, key))
    if "extra" in cls.__dataclass_fields__:  # type: ignore[attr-defined]
        if any(map(_has_items, extra.values())):  # nobody knows what they are items of
            raise BadTree(at, "no items", extra)
        known["extra"] = extra
    elif extra:
        raise BadTree((*at, next(iter(extra))), "no such key", extra)
    return cls(**known)


def _has_items(tree: object) -> bool:
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return tree.__class__ is Items or any(map(_has_items, inner))


def _plain(value: Any, of_items: Callable[[tuple[Any, ...]], list[Any]]) -> Any:
    if isinstance(value, tuple):
        return of_items(value) if value and hasattr(value[0], "__dataclass_fields__") else list(value)
    return _tree(value, of_items) if hasattr(value, "__dataclass_fields__") else value


def _trees_of(values: tuple[Any, ...]) -> list[Tree]:
    return [to_tree(value) for value in values]


_MOST_KNOWN, _LARGEST_KNOWN = 4_096, 2_000  # items, and characters of one: what is remembered takes a few megabytes


class _Known(NamedTuple):
    """What is remembered of items.

    texts    by the id of a dataclass, its text
    alive    by its id, the dataclass, which keeps the id from being used again
    values   by class and text, the dataclass
    trees    by the id of a dataclass, its shared tree
    of_tree  by class and that tree's id, the dataclass
    """

    texts: dict[int, str]
    alive: dict[int, Any]
    values: dict[type, dict[str, Any]]
    trees: dict[int, Tree]
    of_tree: dict[tuple[type, int], Any]


_known = _Known({}, {}, {}, {}, {})
"""Never emptied but replaced as a whole: another thread may be between the one and the other."""


def _texts_of(values: tuple[Any, ...]) -> Items:
    texts: list[Any] = list(map(_known.texts.get, map(id, values)))
    for number, text in enumerate(texts):
        if text is None:
            texts[number] = _remember(values[number], _json(to_tree(values[number])))
    return Items(texts)


def _shared_of(values: tuple[Any, ...]) -> list[Tree]:
    _texts_of(values)  # what is remembered of an item goes together
    known = _known
    trees: list[Any] = list(map(known.trees.get, map(id, values)))
    for number, tree in enumerate(trees):
        if tree is None:
            value = values[number]
            trees[number] = made = to_tree(value)
            if id(value) in known.alive:
                trees[number] = made = known.trees.setdefault(id(value), made)
                known.of_tree[type(value), id(made)] = value
    return trees


def _json(tree: object) -> str:
    return json.dumps(tree, ensure_ascii=False)


def _remember(value: Any, text: str) -> str:
    global _known
    if len(text) > _LARGEST_KNOWN:
        return text
    if len(_known.texts) >= _MOST_KNOWN:
        _known = _Known({}, {}, {}, {}, {})
    known = _known
    known.alive[id(value)] = value
    known.texts[id(value)] = text
    known.values.setdefault(type(value), {})[text] = value
    return text


def _values_of(cls: Any, texts: Items, at: tuple[str, ...]) -> tuple[Any, ...]:
    """The dataclasses in a list of items; ValueError for one that is no JSON."""
    values = list(map(_known.values.get(cls, {}).get, texts))
    for number, value in enumerate(values):
        if value is None:
            tree, end = _decoder.raw_decode(texts[number])
            if end < len(texts[number]):
                raise BadTree(at, "one item", texts[number])
            values[number] = from_tree(cls, tree, at)
            _remember(values[number], texts[number])
    return tuple(values)


_decoder = json.JSONDecoder()


def _hashable(cls: Any) -> Any:
    return cls  # a class is; the type of a class says otherwise


_Read = Callable[[Any, tuple[str, ...]], Any]


class _Shape(NamedTuple):
    """The stored fields of a dataclass, for all but `extra`.

    written  their keys, the values that are left out, and what gives their values; all in the order of the fields
    read     by key, the field's name and what reads it from a tree
    """

    written: tuple[tuple[str, ...], tuple[Any, ...], Callable[[Any], tuple[Any, ...]]]
    read: Mapping[str, tuple[str, _Read]]


@cache
def _shape(cls: Any) -> _Shape:
    hints = typing.get_type_hints(cls)
    stored = [field for field in fields(cls) if field.name != "extra" and field.metadata.get("stored", True)]
    names = [field.name for field in stored]
    keys = tuple(str(field.metadata.get("key", field.name)) for field in stored)
    defaults = tuple(
        field.default if field.default is not MISSING else _made(field.default_factory) for field in stored
    )
    values = attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
    read = {key: (name, _reader(hints[name])) for key, name in zip(keys, names, strict=True)}
    return _Shape((keys, defaults, values), read)


def _made(factory: Any) -> Any:
    return factory()


def _reader(hint: Any) -> Any:
    if hint is Any:
        return lambda value, _: value
    if hint is str:
        return _text
    if hint is bool:
        return _truth
    if hint is int:
        return _whole
    if hint is float:
        return _number
    if typing.get_origin(hint) is tuple:
        cls = typing.get_args(hint)[0]
        item = _reader(cls)
        return lambda value, at: _items(value, at, cls, item)
    if isinstance(hint, types.UnionType):  # X | None
        return _reader(next(arg for arg in typing.get_args(hint) if arg is not type(None)))
    return lambda value, at: from_tree(hint, value, at)


def _text(value: object, at: tuple[str, ...]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)  # a person may well leave the quotes off
    raise BadTree(at, "text", value)


def _truth(value: object, at: tuple[str, ...]) -> bool:
    if isinstance(value, bool):
        return value
    raise BadTree(at, "true or false", value)


def _whole(value: object, at: tuple[str, ...]) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) <= _DIGITS:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**_DIGITS:
        return value
    raise BadTree(at, "a whole number", value)


def _number(value: object, at: tuple[str, ...]) -> float:
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER:
        with suppress(ValueError):
            value = float(value)  # written as text where YAML's number would not be exact
    if isinstance(value, (int, float)) and not isinstance(value, bool) and -_MOST < value < _MOST:
        return float(value)
    raise BadTree(at, "a number", value)


def _items(value: object, at: tuple[str, ...], cls: Any, item: _Read) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise BadTree(at, "a list", value)
    if value.__class__ is Items:
        return _values_of(cls, value, at)
    if value and value[0].__class__ is dict:  # written out, and perhaps known all the same
        same, equal = _known.of_tree, _known.values.get(cls, {})
        return tuple(
            same.get((cls, id(inner))) or equal.get(_json(inner)) or item(inner, (*at, str(number)))
            for number, inner in enumerate(value, start=1)
        )
    return tuple(item(inner, (*at, str(number))) for number, inner in enumerate(value, start=1))


def _shown(value: object) -> str:
    kinds = {dict: "a mapping", list: "a list", type(None): "nothing"}
    return kinds.get(type(value)) or ascii(value)[:60]
