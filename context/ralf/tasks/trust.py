"""Tasks that came with a repository or an archive: they are listed, and never claimed before somebody accepts them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ralf.errors import UsageError
from ralf.project import Project
from ralf.tasks import folders, store
from ralf.tasks.book import Book
from ralf.tasks.model import TaskState
from ralf.tasks.records import MOST_CHANGES
from ralf.tasks.writing import Writer

EVERY = "*"
"""Stands for all tasks that are foreign: an earlier tree is accepted once, whole."""


def trust(*, accept: Sequence[str] | None = None, root: str | os.PathLike[str] | None = None) -> list[TaskState]:
    """The tasks that are foreign, or those that were accepted.

    accept  None: only tell of them; ids or titles: take these as this user's own, as they are now; `EVERY`: all

    TaskNotFound; UsageError for one that is not foreign.
    """
    tasks = store.at(root)
    if accept is None:
        return tasks.read(lambda book: [*book.states(_foreign(book)).values()])
    wanted = list(accept)

    def work(writer: Writer) -> list[TaskState]:
        book = writer.book
        foreign = _foreign(book)
        ids = foreign if EVERY in wanted else list(dict.fromkeys(tasks.resolve(book, one) for one in wanted))
        own = sorted(set(ids) - set(foreign))
        if own and not writer.has_written():
            raise UsageError(own[0], "already accepted", f"ralf task show {own[0]}")
        changes = [writer.accepted(*file) for id_ in ids for file in book.files_of(id_) if file[1].is_foreign]
        changes = [change for change in changes if change.tree]
        for start in range(0, len(changes), MOST_CHANGES):
            writer.append("seen", changes=changes[start : start + MOST_CHANGES])
        return [writer.state(id_) for id_ in ids]

    return tasks.write(work)


def files_of(project: Project) -> dict[str, dict[Path, str]]:
    """The files of each foreign task, with the sha256 of what they say."""
    return store.Tasks(project).read(
        lambda book: {
            id_: {book.path(name): file.digest for name, file in book.files_of(id_) if file.is_foreign}
            for id_ in _foreign(book)
        }
    )


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
