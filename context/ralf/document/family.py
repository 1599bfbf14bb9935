"""What a family of documents is: how its records fold, what its file shows, and what a change of that file means."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.storage.journal import Entry
from ralf.text.frozen import NamedTuple


class Stamp(NamedTuple):
    """What a file says of the render that it comes from: the document's revision and mark, and the layout."""

    revision: int
    layout: int
    mark: str

    def __str__(self) -> str:
        return f"{self.revision}.{self.layout}.{self.mark}"


class Parsed(NamedTuple):
    """A file as its family reads it.

    tree      equal for files that say the same
    stamp     None where it has none
    is_whole  whether it ends with its last line
    """

    tree: Any
    stamp: Stamp | None
    is_whole: bool


Tree = TypeVar("Tree")


class Family(Protocol):
    """A schema of documents. All methods are pure."""

    @property
    def layout(self) -> int:
        """The layout of the files that it renders: what a file of another one lacks was not taken out of it."""

    def decoded(self, stream: str, entry: Entry) -> Record:
        """The record in an entry. DamagedJournal for one that is none."""

    def encoded(self, record: Record) -> bytes:
        """A record as one line of JSON."""

    def fold(self, rows: Rows, record: Record) -> None:
        """Add a record to what those before it came to. Never fails for one that another version wrote."""

    def render(self, rows: Rows, stamp: Stamp) -> bytes:
        """The file: the same bytes for the same rows and stamp."""

    def parse(self, content: bytes, path: Path) -> Parsed:
        """What a file of any layout says. Damaged for one that cannot be read, or that has conflict markers."""

    def changes(self, base: Any | None, found: Any, rows: Rows, *, is_whole: bool) -> Mapping[str, Any] | None:
        """The body of a record that changes what the document is as somebody changed its file; None for no change.

        base      the tree that they saw; None where nobody knows
        found     the tree that they saved
        is_whole  whether what is missing in it was taken out
        """

    def redacted(self, text: str) -> str:
        """A text without secrets, as it may be kept."""
