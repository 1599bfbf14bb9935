"""Tasks that came with a repository or an archive: they are listed, and never claimed before somebody accepts them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ralf.errors import Busy
from ralf.project import Project
from ralf.tasks import folders, store
from ralf.tasks.book import Book
from ralf.tasks.records import MOST_CHANGES
from ralf.tasks.writing import Writer

Seen = Mapping[str, Mapping[Path, str]]
"""Files of tasks with the sha256 of what they say, by the id of the task."""


def accept(project: Project, seen: Seen) -> None:
    """Take foreign tasks as this user's own, as they were shown to them. Busy where they have changed since.

    seen  of `files_of`
    """

    def work(writer: Writer) -> None:
        book = writer.book
        changed = next((id_ for id_ in seen if _files_of(book, id_) != seen[id_]), None)
        if changed is not None and not writer.has_written():
            raise Busy(changed, "was changed since it was shown: not accepted", "ralf context trust")
        files = (file for id_ in seen for file in book.files_of(id_) if file[1].is_foreign)
        changes = [change for change in (writer.accepted(*file) for file in files) if change.tree]
        for start in range(0, len(changes), MOST_CHANGES):
            writer.append("seen", changes=changes[start : start + MOST_CHANGES])

    store.Tasks(project).write(work)


def files_of(project: Project) -> Seen:
    """The files of each foreign task."""
    return store.Tasks(project).read(lambda book: {id_: _files_of(book, id_) for id_ in _foreign(book)})


def _files_of(book: Book, id_: str) -> dict[Path, str]:
    return {book.path(name): file.digest for name, file in book.files_of(id_) if file.is_foreign}


def begin(project: Project) -> None:
    """Record which files of tasks are there before their user opts in: they stay foreign until they are accepted."""
    tasks = store.Tasks(project)
    if not folders.scan(tasks.folder):
        return

    def work(writer: Writer) -> None:
        foreign = [(name, file.digest) for id_ in _foreign(writer.book) for name, file in writer.book.files_of(id_)]
        for start in range(0, len(foreign), MOST_CHANGES):
            writer.append("seen", brought=foreign[start : start + MOST_CHANGES])

    tasks.write(work)


def _foreign(book: Book) -> list[str]:
    return list(book.of_kind("foreign"))
