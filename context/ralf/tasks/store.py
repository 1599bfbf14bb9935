"""The tasks of a project: their records and files together. A write is a record first, then the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ralf import environment, project as projects
from ralf.document.index import NAME, using
from ralf.errors import Conflict, UsageError
from ralf.project import Project
from ralf.storage import locks
from ralf.storage.engine_calls import fenced
from ralf.tasks import folders
from ralf.tasks.book import Book
from ralf.tasks.look import Looker
from ralf.tasks.model import TaskList as TaskList, TaskState
from ralf.tasks.writing import Writer
from ralf.text import cleaning

T = TypeVar("T")

_States = list[TaskState]

_MOST_TRIES = 8  # at a stream that somebody else rewrites

FOREIGN = "was not written by your ralf, and has not been accepted"


class Tasks:
    """The tasks of one project. Nothing is made before something is written."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.folder = project.folder.parent / folders.TASKS

    # ---- reading: takes no lock ----

    def list(
        self,
        *,
        status: str | None = None,
        role: str | None = None,
        route: str | None = None,
        ready: bool = False,
        limit: int | None = None,
    ) -> TaskList:
        """The tasks that fit; see `list_tasks`."""
        statuses = [status] if status else ()
        return self.read(
            lambda book: replace(
                book.select(statuses, role=role, route=route, ready=ready, limit=limit), counts=book.counts()
            )
        )

    def get(self, task: str) -> TaskState:
        """A task by its id or its unambiguous title. TaskNotFound, UsageError for a title that several have."""
        return self.read(lambda book: book.get(book.resolve(task)), near=[task])

    def states(self, ids: Sequence[str]) -> dict[str, TaskState]:
        """Tasks by their ids; those that are not there are missing."""
        return self.read(lambda book: book.states(ids), near=ids)

    def counts(self) -> Mapping[str, int]:
        """How many tasks there are; see `TaskList.counts`."""
        return self.read(Book.counts)

    def ready_for(
        self, roles: Sequence[str], most: int, *, others: bool = False, without: Collection[str] = ()
    ) -> _States:
        """The first tasks that can be claimed now by whoever does these roles, those whose holders are gone among them.

        others   whether all roles but these are meant
        without  ids of tasks that are not asked for
        """
        which = f"role {'not ' * others}in ({', '.join('?' * len(roles))})"

        def work(book: Book) -> _States:
            found = [id_ for id_ in book.ready(which, *roles, limit=most + len(without)) if id_ not in without]
            return [*book.states(found[:most]).values()]

        return self.read(work)

    def as_told(self, states: Sequence[TaskState]) -> _States:
        """Tasks as a person or an agent is told of them: with evidence that says `stale` where what was verified has
        been edited since, and a warning where another clone has worked on one.
        """
        from ralf.tasks import elsewhere

        found = elsewhere.noted(self.project, states)
        if not any(one.evidence is not None and one.evidence.files for one in found):
            return found
        from ralf.tasks import standing  # which digests files

        return standing.current(self.project, found, lambda: self.list(status="completed").tasks)

    def read(self, work: Callable[[Book], T], *, near: Sequence[str] | None = None) -> T:
        """What `work` says of the tasks as they are now; `near`: ids, where no others are meant (`Looker`).
        DamagedJournal.
        """
        with fenced("tasks", waits=False), using(self.project.room_for(NAME)) as index:
            looker = Looker(self.project, index, near)
            try:
                return work(looker.book)
            finally:
                looker.keep()

    # ---- writing: one at a time ----

    def write(self, work: Callable[[Writer], T], *, near: Sequence[str] | None = None) -> T:
        """Do `work` while nobody else writes, on tasks that are up to date and files that show all records; `near`: as
        for `read`. It may be done twice. DamagedJournal.
        """
        self.project.prepare()
        place = self.project.room_for(NAME)
        with fenced("tasks"), locks.locked(self.project.folder / "locks" / "tasks.lock", "tasks"):
            for attempt in range(_MOST_TRIES):
                with using(place) as index:
                    looker = Looker(self.project, index, near)
                    try:
                        return work(Writer(self.project, looker))
                    except Conflict as error:  # whoever rewrites the stream (`ralf forget`) has not our lock
                        if type(error) is not Conflict or attempt == _MOST_TRIES - 1:
                            raise
                    finally:
                        looker.keep()
        raise AssertionError("unreachable")


# ---- the public functions: `ralf.api` ----


def at(root: str | os.PathLike[str] | None = None) -> Tasks:
    """The tasks of the project at `root`; None: of the one that is meant (`ralf.project.find`)."""
    return Tasks(projects.find(root))


def get(task: str, *, root: str | os.PathLike[str] | None = None) -> TaskState:
    """A task by its id or its unambiguous title, with its evidence as it holds now. TaskNotFound, UsageError for a
    title that several have.
    """
    tasks = at(root)
    return tasks.as_told([tasks.get(task)])[0]


def list_tasks(
    *,
    status: str | None = None,
    role: str | None = None,
    route: str | None = None,
    ready: bool = False,
    limit: int | None = None,
    root: str | os.PathLike[str] | None = None,
) -> TaskList:
    """The tasks of a status, a role, a route, with their evidence as it holds now; with `ready` only those that can be
    claimed.

    limit  how many at most; None: all
    """
    tasks = at(root)
    found = tasks.list(status=status, role=role, route=route, ready=ready, limit=limit)
    return replace(found, tasks=tuple(tasks.as_told(found.tasks)))


def check_ours(state: TaskState) -> None:
    """UsageError for a task that is foreign: nothing is done to it before somebody accepts it."""
    if state.is_foreign:
        raise UsageError(state.path, FOREIGN, f"ralf trust {state.task.id}")


def holder(project: Project, by: str = "") -> str:
    """By what name a task is held: the one that is given, else the agent's that a loop has started, else that of the
    run that we are part of, else what the environment says.
    """
    told = by or environment.agent_name() or project.run or environment.holder()
    name = cleaning.one_line(cleaning.clean(told))[:200]
    if not name:
        raise UsageError("by", "a holder needs a name")
    return name
