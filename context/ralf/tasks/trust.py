"""Tasks that came with a repository or an archive: they are listed, and never claimed before somebody accepts them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ralf.errors import Busy
from ralf.project import Project
from ralf.tasks import store
from ralf.tasks.book import Book
from ralf.tasks.records import MOST_CHANGES
from ralf.tasks.writing import Writer

Seen = Mapping[str, Mapping[Path, str]]
"""Files of tasks with the digest of what they say, by the id of the task."""


def accept(project: Project, seen: Seen) -> None:
    """Take foreign tasks as this user's own, as they were shown to them. Busy where they have changed since.

    seen  of `files_of`
    """

    def work(writer: Writer) -> None:
        for id_ in seen:
            if _files_of(writer.book, id_) != seen[id_]:
                raise Busy(id_, "was changed since it was shown: not accepted", "ralf trust")
        changes = [change for id_ in seen for change in writer.accepted(id_)]
        for start in range(0, len(changes), MOST_CHANGES):
            writer.append("seen", changes=changes[start : start + MOST_CHANGES])

    store.Tasks(project).write(work)


def files_of(project: Project) -> Seen:
    """The files of each foreign task."""
    return store.Tasks(project).read(lambda book: {id_: _files_of(book, id_) for id_ in book.ordered("is_foreign")})


def _files_of(book: Book, id_: str) -> dict[Path, str]:
    entry = book.entries.get(id_)
    files = entry.files.items() if entry is not None else ()
    return {book.path(name): digest for name, (_, digest, is_foreign, _) in files if is_foreign}
