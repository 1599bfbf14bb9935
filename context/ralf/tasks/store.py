"""The tasks of a project: their records and files together. A write is a record first, then the file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from ralf import environment, project as projects
from ralf.document.index import NAME, Index, with_index
from ralf.errors import (
    MEND_JOURNAL,
    Claimed,
    Conflict,
    DamagedJournal,
    DamagedTask,
    RalfError,
    TaskNotFound,
    UsageError,
)
from ralf.project import Project
from ralf.storage import locks
from ralf.storage.engine_calls import fenced
from ralf.tasks import folders, leases, origin, records
from ralf.tasks.book import Book, words_of
from ralf.tasks.look import Looker
from ralf.tasks.model import STATUSES, TaskState
from ralf.tasks.records import STREAM
from ralf.tasks.writing import Writer
from ralf.text import cleaning
from ralf.text.frozen import dataclass

T = TypeVar("T")

_States = list[TaskState]

_MOST_TRIES = 8  # at a stream that somebody else rewrites

FOREIGN = "was not written here after `ralf init`, and has not been accepted"

_MOST_NAMED = 5  # candidates that a message names

_MOST_COMPARED = 2_000  # titles that a wrong one is compared with


@dataclass(frozen=True, slots=True)
class TaskList:
    """Tasks that were asked for, in the order in which they would be claimed.

    counts   of all tasks: by status, and `ready claimed blocked foreign`
    left     how many more there are than the limit let through
    damaged  files that cannot be read as tasks, and why
    """

    tasks: tuple[TaskState, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    left: int = 0
    damaged: tuple[tuple[Path, str], ...] = ()
    warnings: tuple[str, ...] = ()


class Tasks:
    """The tasks of one project. Nothing is made before something is written."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.folder = project.folder.parent / folders.TASKS
        self._alive: frozenset[str] | None = None

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
        return self.read(
            lambda book: self.listed(book, [status] if status else (), role=role, route=route, ready=ready, limit=limit)
        )

    def listed(
        self,
        book: Book,
        statuses: Sequence[str] = (),
        *,
        role: str | None = None,
        route: str | None = None,
        ready: bool = False,
        limit: int | None = None,
    ) -> TaskList:
        """The tasks of some statuses that fit; see `list_tasks`."""
        if ready:
            wanted = [None] if role is None else [role, ""] if role else [""]
            ids = [id_ for one in wanted for id_ in book.ready(_fits(one), sys.maxsize)]
            found = (id_ for id_ in ids if route is None or _route_of(book, id_) == route)
        else:
            found = (one.id for one in book.listed(statuses) if role in (None, one.role) and route in (None, one.route))
        if ready or role is not None or route is not None or limit is None:
            ids = list(found)
            total = len(ids)
        else:
            ids = list(islice(found, limit))
            counts = book.counts()
            total = sum(counts[one] for one in statuses or STATUSES)
        states = tuple(self.shown(book, ids[:limit]))
        problems = tuple(filter(None, (book.plan[1], book.problem)))
        return TaskList(states, self._counts(book), total - len(states), tuple(book.problems()), problems)

    def get(self, task: str) -> TaskState:
        """A task by its id or its unambiguous title. TaskNotFound, UsageError for a title that several have."""
        return self.read(lambda book: self.state(book, self.resolve(book, task)))

    def states(self, ids: Sequence[str]) -> dict[str, TaskState]:
        """Tasks by their ids; those that are not there are missing."""
        return {one.task.id: one for one in self.read(lambda book: self.shown(book, ids))}

    def counts(self) -> dict[str, int]:
        """How many tasks there are; see `TaskList.counts`."""
        return self.read(self._counts)

    def _counts(self, book: Book) -> dict[str, int]:
        found = book.counts()
        for state in book.states(book.held()).values():
            if not self.is_held(state):
                found["claimed"] -= 1
                found["ready"] += state.task.status == "pending" and not state.is_foreign and not state.waits_for
        return found

    def ready_for(
        self, roles: Sequence[str], most: int, *, others: bool = False, without: Collection[str] = ()
    ) -> _States:
        """The first tasks that can be claimed now by whoever does these roles, those whose holders are gone among them.

        others   whether all roles but these are meant
        without  ids of tasks that are not asked for
        """

        def found(book: Book) -> _States:
            ids = book.ready(lambda role: (role in roles) != others, most, without)
            lost = [id_ for id_ in self._lost(book) if id_ not in without]
            return [
                one
                for one in self.shown(book, [*ids, *lost])
                if self.can_be_claimed(one) and (one.task.role in roles) != others
            ]

        return self.read(found)

    @staticmethod
    def next(book: Book, role: str | None, most: int) -> Sequence[str]:
        """Tasks that can be claimed, the first one first: of a role, then of none; None: of any role."""
        if role is None or not role:
            return book.ready(_fits(role), most)
        own = book.ready(_fits(role), most)
        return own + book.ready(_fits(""), most - len(own))

    def held(self, book: Book) -> _States:
        """The tasks that were claimed; their claims as far as they live."""
        return self.shown(book, book.held())

    def shown(self, book: Book, ids: Sequence[str]) -> _States:
        """Those of some tasks that there are; their claims as far as they live."""
        return [self._shown(one) for one in book.states(ids).values()]

    def _lost(self, book: Book) -> Sequence[str]:
        """Tasks whose holders are gone."""
        return [id_ for id_, one in book.states(book.held()).items() if not self.is_held(one)]

    @staticmethod
    def can_be_claimed(state: TaskState) -> bool:
        """Whether a task that nobody has can be claimed."""
        return state.task.status == "pending" and not state.is_foreign and not state.waits_for

    def read(self, work: Callable[[Book], T], *, near: str = "") -> T:
        """What `work` says of the tasks as they are now; `near`: as for `write`."""

        def looked(index: Index | None) -> T:
            self.look_again()
            looker = Looker(self.project, index)
            looker.renew(near)
            with _kept(looker):
                return work(looker.book)

        with fenced("tasks", waits=False):
            return with_index(self.project.room_for(NAME), looked)

    # ---- tasks and names ----

    def resolve(self, book: Book, named: str) -> str:
        """The id of a task that is named by its id, with or without `TASK-`, or by an unambiguous title. TaskNotFound,
        UsageError.
        """
        if book.status(named):
            return named
        words = words_of(named)
        ways: tuple[Callable[[], list[str]], ...] = (
            lambda: [id_ for id_ in book.named(named) if book.status(id_)],
            lambda: [one.id for one in book.listed() if one.title == words],
            lambda: [id_ for id_ in book.named(f"{folders.PREFIX}{named}") if book.status(id_)],
            lambda: [one.id for one in book.listed() if words in one.title],
        )
        for way in ways if words else ():
            found = way()
            if len(found) == 1:
                return found[0]
            if found:
                told = self._told(book, found[:_MOST_NAMED])
                more = " and others" if len(found) > _MOST_NAMED else ""
                raise UsageError(ascii(named)[1:-1], f"matches several tasks: {told}{more}", "use the id")
        for path, problem in book.problems():
            if folders.name_of(path) == named:
                raise DamagedTask(path, problem.removeprefix(f"{path}: "), f"mend the file in an editor: {path}")
        closest = self._closest(book, words)
        raise TaskNotFound(cleaning.one_line(cleaning.clean(named))[:100], closest, self._told(book, closest))

    def _closest(self, book: Book, words: str) -> tuple[str, ...]:
        import difflib  # only for who asks for what is not there

        found: dict[str, str] = {}
        for one in sorted(book.listed(), key=lambda one: one.created, reverse=True)[:_MOST_COMPARED]:
            found[one.id.casefold()] = one.id
            found.setdefault(one.title, one.id)
        near = difflib.get_close_matches(words[:200], found, _MOST_NAMED)
        return tuple(dict.fromkeys(found[one] for one in near))

    def _told(self, book: Book, ids: Sequence[str]) -> str:
        states = book.states(ids)
        return ", ".join(f"{id_} ({cleaning.one_line(cleaning.clean(states[id_].task.title))[:60]})" for id_ in ids)

    def state(self, book: Book, id_: str) -> TaskState:
        """A task as it is told. TaskNotFound."""
        found = book.state_of(id_)
        if found is None:
            raise TaskNotFound(id_)
        return self._shown(found)

    def _shown(self, state: TaskState) -> TaskState:
        """A task with its claim only while that lives."""
        return state if state.claim is None or self.is_held(state) else replace(state, claim=None)

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

    def is_held(self, state: TaskState) -> bool:
        """Whether somebody has a task now: its process runs, or the last sign of life is not older than the lease.
        Where the store has leases: whether somebody has the task's. Fenced.
        """
        id_, claim = state.task.id, state.claim
        if claim is None:
            return False
        if (engine := leases.of(self.project)) is not None:
            if self._alive is None:
                self._alive = engine.held(leases.FOLDER)
            return leases.FOLDER + id_ in self._alive
        running = origin.is_running(claim.process, claim.born, claim.machine)
        if running is not None:
            return running
        last = max(map(records.seconds_of, (claim.sign, claim.claimed)))
        with suppress(OSError):
            last = max(last, leases.file_of(self.project, claim.lease(id_)).stat().st_mtime)
        return abs(time.time() - last) < claim.seconds  # a clock that was set back keeps no claim for ever

    def check_free(self, state: TaskState, hint: str = "") -> None:
        """Claimed for a task that somebody has now."""
        if state.claim is not None and self.is_held(state):
            hint = hint or f"ralf task show {state.task.id}"
            raise Claimed(state.task.id, state.claim.by, state.claim.claimed, hint)

    def look_again(self) -> None:
        """Forget which leases of the engine are held: one look serves for all tasks of a read or a write."""
        self._alive = None

    # ---- writing: one at a time ----

    def write(self, work: Callable[[Writer], T], *, near: str = "") -> T:
        """Do `work` while nobody else writes, on tasks that are up to date and files that show all records. It may be
        done twice.

        near  the id of the only task that is meant, where it is known
        """
        self.project.prepare()
        name = os.urandom(6).hex()

        def written(index: Index | None) -> T:
            self.look_again()
            looker = Looker(self.project, index)
            looker.renew(near)
            if looker.book.problem:
                raise DamagedJournal(STREAM, looker.book.problem.removeprefix(f"{STREAM}: "), MEND_JOURNAL)
            with _kept(looker):
                return work(Writer(self.project, looker, name, self.state))

        with fenced("tasks"), locks.locked(self.project.folder / "locks" / "tasks.lock", "tasks"):
            for attempt in range(_MOST_TRIES):
                try:
                    return with_index(self.project.room_for(NAME), written)
                except Conflict as error:  # whoever rewrites the stream (`ralf context forget`) does not hold our lock
                    if type(error) is not Conflict or attempt == _MOST_TRIES - 1:
                        raise
        raise AssertionError("unreachable")


@contextmanager
def _kept(looker: Looker) -> Iterator[None]:
    """Leave in the index what a block has found, whether it refuses or not."""
    try:
        yield
    except (RalfError, OSError):
        looker.keep()
        raise
    looker.keep()


def _fits(role: str | None) -> Callable[[str], bool]:
    return lambda one: role is None or one == role


def _route_of(book: Book, id_: str) -> str:
    found = book.state_of(id_)
    return found.task.context_route if found is not None else ""


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
        raise UsageError(state.path, FOREIGN, f"ralf context trust {state.task.id}")


def holder(project: Project, by: str = "") -> str:
    """By what name a task is held: the one that is given, else the agent's that a loop has started, else that of the
    run that we are part of, else what the environment says.
    """
    told = by or environment.agent_name() or project.run or environment.holder()
    name = cleaning.one_line(cleaning.clean(told))[:200]
    if not name:
        raise UsageError("by", "a holder needs a name")
    return name
