"""Message content as clients nest it: a string, or a list of typed blocks; anything else is passed over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ralf.text import clean

Record = Mapping[str, Any]


def blocks(content: object) -> Iterator[Record]:
    """The blocks of a content; a string is one text block."""
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, dict):
                yield block
            elif isinstance(block, str):
                yield {"type": "text", "text": block}


def words(value: object) -> str:
    """A string cleaned of terminal codes, "" for anything else."""
    return clean(value) if isinstance(value, str) else ""


def time_of(value: object) -> str:
    """A time as the client wrote it, "" for what is no ISO 8601 date and time."""
    return value if isinstance(value, str) and _TIME.match(value) else ""


_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?\Z", re.ASCII)


def whole(value: object) -> int | None:
    """A count: a whole number that is not negative; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def said(content: object) -> str:
    """The text blocks of a content, one below the other."""
    parts = (words(block.get("text")) for block in blocks(content) if block.get("type") in _TEXTS)
    return "\n".join(part for part in parts if part)


_TEXTS = ("text", "input_text", "output_text")


def leaves(value: object) -> str:
    """The strings and numbers in a JSON value, in order, one a line."""
    found: list[str] = []
    left: list[object] = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            found.append(clean(item))
        elif isinstance(item, dict):
            left.extend(reversed(item.values()))
        elif isinstance(item, list):
            left.extend(reversed(item))
        elif isinstance(item, int | float) and not isinstance(item, bool):
            found.append(str(item))
    return "\n".join(found)


def arguments(value: object) -> dict[str, Any]:
    """A call's arguments with every string in them cleaned, keys too; {} for anything that is no object."""
    return {clean(str(key)): _cleaned(item) for key, item in value.items()} if isinstance(value, dict) else {}


def _cleaned(value: object, depth: int = 0) -> Any:
    if isinstance(value, str):
        return clean(value)
    if depth > _DEEPEST and isinstance(value, dict | list):
        return None  # no tool's argument; the event's text has its words
    if isinstance(value, dict):
        return {clean(str(key)): _cleaned(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item, depth + 1) for item in value]
    return value


_DEEPEST = 50


def first(records: Iterable[Record], key: str) -> str:
    """The first string that a record has under a key, "" if none has."""
    return next((found for record in records if (found := words(record.get(key)))), "")
