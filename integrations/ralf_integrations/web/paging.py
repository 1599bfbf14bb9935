"""Long lists in pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

SIZE = 50
"""Items of a page."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list; `number` from 1 to `last`, `first` the place of its first item in the list, from 1."""

    items: Sequence[T]
    number: int
    last: int
    first: int
    total: int


def paged(items: Sequence[T], number: int, size: int = SIZE) -> Page[T]:
    """The page of this number; the nearest one that there is."""
    last = max(1, -(-len(items) // size))
    number = min(max(1, number), last)
    begin = (number - 1) * size
    return Page(items[begin : begin + size], number, last, begin + 1, len(items))


def number_of(asked: str) -> int:
    """The page that was asked for; the first one for what is no number."""
    return int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 7 else 1
