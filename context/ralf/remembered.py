"""What was made of texts before: a file that is written again and again has mostly the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_MOST, _LONGEST, _LARGEST = 4_096, 2_000, 2_000_000  # texts, characters of one and of all: they take a few megabytes


class Remembered(dict[str, T]):
    """By text, what `make` makes of it; asked as a dictionary is, it is made where it is not known."""

    __slots__ = ("_make", "_size")

    def __init__(self, make: Callable[[str], T]) -> None:
        super().__init__()
        self._make = make
        self._size = 0

    def __missing__(self, text: str) -> T:
        made = self._make(text)
        if len(text) <= _LONGEST:  # longer ones are few, and many of them would fill the memory
            if len(self) >= _MOST or self._size > _LARGEST:
                self.clear()
                self._size = 0
            self[text] = made
            self._size += len(text)
        return made
