"""The state of a document as rows: JSON values by key, so that a write costs what it changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol


class Source(Protocol):
    """Where rows are that nobody has changed yet."""

    def some(self, keys: Iterable[str]) -> dict[str, Any]:
        """The values of several keys, None for none."""

    def under(self, prefix: str) -> Iterable[tuple[str, Any]]:
        """Keys that begin so, with their values, in the order of the keys."""


class Rows:
    """Rows over those of a source, which stays as it is. Values are never changed in place.

    held  what the family has made of all of them, so that it need not be made again at each record; None for nothing
    """

    def __init__(self, source: Source | None = None) -> None:
        self._source = source
        self.changed: dict[str, Any] = {}  # None for what was removed
        self.held: Any = source.held if isinstance(source, Rows) else None

    def one(self, key: str) -> Any:
        """The value of a key, None for none."""
        return self.some((key,))[key]

    def _changed(self, key: str) -> Any:
        value = self.changed.get(key)
        if callable(value):
            value = self.changed[key] = value()
        return value

    def some(self, keys: Iterable[str]) -> dict[str, Any]:
        """The values of several keys, None for none."""
        found = {key: self._changed(key) for key in keys}
        left = [key for key in found if key not in self.changed]
        return found | self._source.some(left) if left and self._source is not None else found

    def under(self, prefix: str) -> Iterable[tuple[str, Any]]:
        """Keys that begin so, with their values, in the order of the keys."""
        below = self._source.under(prefix) if self._source is not None else ()
        changed = {key: self._changed(key) for key in tuple(self.changed) if key.startswith(prefix)}
        if not changed:
            return below
        found = dict(below) | changed
        return [(key, found[key]) for key in sorted(found) if found[key] is not None]

    def put(self, key: str, value: Any) -> None:
        """Keep a value under a key; None: remove it. A function is asked for the value once that is read or written."""
        self.changed[key] = value
