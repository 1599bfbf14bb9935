"""Holds the front matter of every route file that a test writes in its process against the schema that is shipped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from ralf.format import guarded_yaml
from ralf.format.codec import shallow, to_tree
from ralf.model import RouteContext
from ralf.route import filed

_made = filed._content_of

_seen: set[frozenset[tuple[str, ...]]] = set()
"""The shapes that were looked at: keys and kinds of values, of which thousands of files share a few."""


@cache
def validator() -> Draft202012Validator:
    """What tells where a tree does not fit the schema."""
    schema = json.loads(filed.SCHEMA_FILE.read_bytes())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def problems(content: str) -> list[str]:
    """Where the front matter of a route file does not fit the schema."""
    front = content.lstrip("\ufeff").replace("\r\n", "\n").removeprefix("---\n").partition("\n---\n")[0]
    return [f"{error.json_path}: {error.message[:200]}" for error in validator().iter_errors(guarded_yaml.load(front))]


def _checked(context: RouteContext) -> bytes:
    content = _made(context)
    shape = frozenset(_shape(shallow(context.as_filed()), ()))
    if shape not in _seen:
        _seen.add(shape)
        found = problems(content.decode())
        assert found == [], found
    return content


def _shape(tree: Any, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(tree, dict):
        for key, inner in tree.items():
            yield from _shape(inner, (*at, key))
    elif isinstance(tree, list):
        for inner in tree:
            yield from _shape_of_item(inner, at)
    else:
        yield (*at, tree.__class__.__name__)


_known: dict[int, tuple[Any, list[tuple[str, ...]]]] = {}


def _shape_of_item(item: Any, at: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The shape of an item of a list: items mostly stay from one file to the next."""
    found = _known.get(id(item))
    if found is None or found[0] is not item:
        tree = to_tree(item) if hasattr(item, "__dataclass_fields__") else item
        found = _known[id(item)] = item, [*_shape(tree, at)]
        if len(_known) > 5_000:
            _known.clear()
    return found[1]


def watch() -> None:
    """Look at each file that is made from now on."""
    filed._content_of = _checked
