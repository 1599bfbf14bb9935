"""How pages read a project: without a lock that a writer waits for, and in memory that does not grow.

The index that other readers share is a SQLite file, which a reader brings up to date. Pages have theirs in a folder of
their own, which is removed with the server.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ralf import project as projects
from ralf.project import Project

T = TypeVar("T")


@dataclass(frozen=True)
class ViewedProject(Project):
    """A project whose indexes lie in a folder of the server's."""

    place: Path

    @property
    def indexes(self) -> Path:
        """The folder of the indexes."""
        return self.place


class Reader:
    """The project that the pages show. `place` is a folder that nobody else uses."""

    def __init__(self, root: str | os.PathLike[str] | None, place: Path) -> None:
        self._root = projects.find(root).root
        self._place = place
        self.name = self._root.name

    def project(self) -> ViewedProject:
        """The project as it is now: each view of a page looks at it anew. UsageError, OtherOwner."""
        found = ViewedProject(self._root, self._place)
        projects.find(found)
        return found

    def close(self) -> None:
        """Remove the indexes of the pages."""
        shutil.rmtree(self._place, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list."""

    items: Sequence[T]
    number: int  # from 1
    last: int
    first: int  # the place of its first item in the list, from 1
    total: int


def paged(items: Sequence[T], number: int, size: int = 50) -> Page[T]:
    """The page of this number; the nearest one that there is."""
    last = max(1, -(-len(items) // size))
    number = min(max(1, number), last)
    begin = (number - 1) * size
    return Page(items[begin : begin + size], number, last, begin + 1, len(items))
