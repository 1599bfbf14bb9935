"""Values of `ralf.model` as plain trees (dicts, lists, text, numbers) and back, keeping what it does not know."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
Tree = dict[str, Any]
_DIGITS = 18
_SCALARS = frozenset((str, int, bool, float, type(None)))
NOT_STORED = {"stored": False}
"""Metadata of a dataclass field that is no part of the tree; a field with `key` stands under that key."""


class BadTree(ValueError):
    """A tree that does not fit: `at` is the path of keys to the place, `expected` what should stand there."""

    def __init__(self, at: tuple[str, ...], expected: str, found: object) -> None:
        super().__init__(f"{'.'.join(at) or 'the whole'}: expected {expected}, got {_shown(found)}")
        self.at = at


def to_tree(value: Any) -> Tree:
    """A dataclass of `ralf.model` as a tree: fields in their order, empty ones left out, then the unknown ones."""
    tree: Tree = {}
    always = getattr(value, "always_written", ())
    for name, key, _, default in _shape(_hashable(type(value))):
        inner = getattr(value, name)
        if inner != default or name in always:
            tree[key] = _plain(inner)
    tree.update(getattr(value, "extra", ()))
    return tree


def from_tree(cls: type[T], tree: object, at: tuple[str, ...] = ()) -> T:
    """The dataclass that a tree holds; BadTree where the tree does not fit. Unknown keys go to `extra`."""
    if not isinstance(tree, Mapping):
        raise BadTree(at, "a mapping", tree)
    known: dict[str, Any] = {}
    rest = dict(tree)
    for name, key, read, _ in _shape(_hashable(cls)):
        value = rest.pop(key, None)
        if value is not None:
            known[name] = read(value, (*at, key))
    if "extra" in cls.__dataclass_fields__:  # type: ignore[attr-defined]
        known["extra"] = rest
    elif rest:
        raise BadTree((*at, next(iter(rest))), "no such key", rest)
    return cls(**known)


def _plain(value: Any) -> Any:
    if value.__class__ in _SCALARS:
        return value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return to_tree(value) if hasattr(value, "__dataclass_fields__") else value


def _hashable(cls: Any) -> Any:
    return cls  # a class is; the type of a class says otherwise


@cache
def _shape(cls: Any) -> tuple[tuple[str, str, Any, Any], ...]:
    """For each field but `extra`: its name and key, how to read it from a tree, and the value that is left out."""
    hints = typing.get_type_hints(cls)
    shape = []
    for field in fields(cls):
        if field.name != "extra" and field.metadata.get("stored", True):
            default = field.default if field.default is not MISSING else _made(field.default_factory)
            shape.append((field.name, field.metadata.get("key", field.name), _reader(hints[field.name]), default))
    return tuple(shape)


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
        item = _reader(typing.get_args(hint)[0])
        return lambda value, at: _items(value, at, item)
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
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise BadTree(at, "a whole number", value)


def _number(value: object, at: tuple[str, ...]) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise BadTree(at, "a number", value)


def _items(value: object, at: tuple[str, ...], item: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise BadTree(at, "a list", value)
    return tuple(item(inner, (*at, str(number))) for number, inner in enumerate(value, start=1))


def _shown(value: object) -> str:
    kinds = {dict: "a mapping", list: "a list", type(None): "nothing"}
    return kinds.get(type(value)) or ascii(value)[:60]
