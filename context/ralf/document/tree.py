"""Dataclasses as plain trees and back, unknown keys kept; and JSON of others, guarded."""

from __future__ import annotations

import json
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from operator import attrgetter
from typing import Any, Literal, TypeVar

from ralf.text.cleaning import quoted
from ralf.text.frozen import MISSING, NamedTuple, fields, is_frozen

T = TypeVar("T")

Tree = dict[str, Any]

_DIGITS, _LONGEST_NUMBER, _MOST = 18, 32, 1e18

MAX_DEPTH = 64


class BadTree(ValueError):
    """A tree that does not fit: `at` is the path of keys to the place, `expected` what should be there."""

    def __init__(self, at: tuple[str, ...], expected: str, found: object) -> None:
        kinds = {dict: "a mapping", list: "a list", type(None): "nothing"}
        super().__init__(f"expected {expected}, got {kinds.get(type(found)) or quoted(found)}")
        self.at = at

    def __str__(self) -> str:
        return f"{'.'.join(self.at) or 'the whole'}: {self.args[0]}"

    def within(self, key: str) -> BadTree:
        """The same error, of the tree in which this one stands under a key."""
        self.at = (key, *self.at)
        return self


def to_tree(value: Any) -> Tree:
    """A dataclass as a tree: fields in their order, empty ones left out, then the unknown ones."""
    always = getattr(value, "always_written", ())
    tree: Tree = {}
    keys, of_fields, *_ = _stored(value.__class__)
    for (key, default), inner in zip(keys, of_fields(value), strict=True):
        if inner is default:  # most are
            if key not in always:
                continue
        elif inner == default and key not in always:
            continue
        tree[key] = inner if inner.__class__ is str else _plain(inner)
    tree.update(getattr(value, "extra", ()))
    return tree


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [inner if inner.__class__ is str else _plain(inner) for inner in value]
    return to_tree(value) if is_frozen(value) else value


def from_tree(cls: type[T], tree: object) -> T:
    """The dataclass that a tree holds; BadTree where the tree does not fit. Unknown keys go to `extra`."""
    if not isinstance(tree, Mapping):
        raise BadTree((), "a mapping", tree)
    values: dict[str, Any] = {}
    unknown: Tree = {}
    _, _, names, readers = _stored(cls)  # type: ignore[arg-type]  # a class can be hashed
    for key, value in tree.items():
        name = names.get(key)
        if name is None or name == _UNKNOWN:
            unknown[key] = value
        elif value is not None:
            read = readers.get(name)
            if read is None:
                read = readers[name] = _reader(_hint(cls, name))
            try:
                values[name] = read(value)
            except BadTree as error:
                raise error.within(key) from None
    if _UNKNOWN in names:
        values[_UNKNOWN] = unknown
    elif unknown:
        raise BadTree((next(iter(unknown)),), "no such key", tree)
    return cls(**values)


_Read = Callable[[Any], Any]


_UNKNOWN = "extra"
"""The field that has the keys which are not known."""


class _Stored(NamedTuple):
    """The fields of a dataclass that are part of its tree.

    keys     of all but `extra`, with their defaults
    values   tells those of an object, in this order
    names    theirs by key; `extra` under its own
    readers  by name: of those that were read so far
    """

    keys: tuple[tuple[str, Any], ...]
    values: Callable[[Any], Sequence[Any]]
    names: Mapping[str, str]
    readers: dict[str, _Read]


@cache
def _stored(cls: Any) -> _Stored:
    stored = [field for field in fields(cls) if field.name != _UNKNOWN and field.metadata.get("stored", True)]
    keys = [str(field.metadata.get("key", field.name)) for field in stored]
    defaults = [one.default if one.default_factory is MISSING else one.default_factory() for one in stored]
    names = [field.name for field in stored]
    values: Callable[[Any], Sequence[Any]] = attrgetter(*names)  # much faster than one after the other
    if len(names) == 1:
        values = lambda value: (getattr(value, names[0]),)  # noqa: E731
    by_key = dict(zip(keys, names, strict=True)) | {one.name: one.name for one in fields(cls) if one.name == _UNKNOWN}
    return _Stored(tuple(zip(keys, defaults, strict=True)), values, by_key, {})


def _hint(cls: type, name: str) -> Any:
    """The type of a field; of all at once, as `typing` tells them, it takes a start milliseconds."""
    home = next(one for one in cls.__mro__ if name in one.__annotations__)
    return eval(home.__annotations__[name], vars(sys.modules[home.__module__]))  # noqa: S307  # our own annotations


def _reader(hint: Any) -> _Read:
    if hint in _SCALARS:
        return _SCALARS[hint]
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return lambda value: _word(arguments, value)
    if typing.get_origin(hint) is tuple:
        item = _reader(arguments[0])
        return lambda value: _items(item, value)
    if isinstance(hint, types.UnionType):  # X | None
        return _reader(next(one for one in arguments if one is not type(None)))
    return lambda value: from_tree(hint, value)


def _items(item: _Read, value: object) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise BadTree((), "a list", value)
    found: list[Any] = []
    try:
        for inner in value:
            found.append(item(inner))  # noqa: PERF401  # its length tells which item does not fit
    except BadTree as error:
        raise error.within(str(len(found) + 1)) from None
    return tuple(found)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)  # a person may well leave the quotes off
    raise BadTree((), "text", value)


def _word(words: tuple[str, ...], value: object) -> str:
    if value in words:
        return str(value)
    raise BadTree((), f"one of {', '.join(filter(None, words))}", value)


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise BadTree((), "true or false", value)


def _whole(value: object) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) <= _DIGITS:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**_DIGITS:
        return value
    raise BadTree((), "a whole number", value)


def _number(value: object) -> float:
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER:
        with suppress(ValueError):
            value = float(value)  # written as text where YAML's number would not be exact
    if isinstance(value, (int, float)) and not isinstance(value, bool) and -_MOST < value < _MOST:
        return float(value)
    raise BadTree((), "a number", value)


_SCALARS: dict[Any, _Read] = {Any: lambda value: value, str: _text, bool: _truth, int: _whole, float: _number}


def load(text: str) -> Any:
    """The value that JSON of others holds. ValueError for what is no JSON, and for a value deeper than 64 levels."""
    try:
        tree = json.loads(text)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    level = [tree]
    for _ in range(MAX_DEPTH + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return tree
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
