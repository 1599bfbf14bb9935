"""Tasks that came with a repository or an archive: they are listed, and never claimed before somebody accepts them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ralf.errors import UsageError
from ralf.tasks import store
from ralf.tasks.index import Index
from ralf.tasks.model import TaskState
from ralf.tasks.records import Seen
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
        return tasks.read(lambda index: [state for state, _ in index.states(_foreign(index)).values()])
    wanted = list(accept)

    def work(writer: Writer) -> list[TaskState]:
        index = writer.index
        foreign = _foreign(index)
        ids = foreign if EVERY in wanted else list(dict.fromkeys(tasks.resolve(index, one) for one in wanted))
        own = sorted(set(ids) - set(foreign))
        if own and index.write != writer.name:
            raise UsageError(own[0], "already accepted", f"ralf task show {own[0]}")
        wanted_ids = set(ids)
        digests = [(id_, digest) for id_, digest in index.unaccepted() if id_ in wanted_ids]
        if digests:
            writer.append(Seen(digests=tuple(digests)))
        return [writer.state(id_) for id_ in ids]

    return tasks.write(work)


def _foreign(index: Index) -> list[str]:
    return index.matching("is_foreign = 1", {}, None)
