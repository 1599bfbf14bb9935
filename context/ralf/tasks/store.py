"""The tasks of a project: their files, records and index together. A write is a record first, then the file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TypeVar

from ralf import environment, project as projects
from ralf.errors import MEND_JOURNAL, Conflict, DamagedJournal, DamagedTask, RalfError, TaskNotFound, UsageError
from ralf.project import Project
from ralf.storage import files
from ralf.storage.database import rebuilt_when_damaged
from ralf.storage.engine_calls import fenced
from ralf.storage.registry import NO_FOLDER
from ralf.tasks import folders, leases, origin, records
from ralf.tasks.answers import with_live_claim, words_of
from ralf.tasks.index import Index
from ralf.tasks.model import Claim, TaskState
from ralf.tasks.records import STREAM, Known
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
        where, given = ["1"], {"status": status, "role": role, "route": route}
        where += [f"{name} = :{name}" for name, value in given.items() if value is not None]

        def listed(index: Index) -> TaskList:
            if ready:
                ids = index.ready(role, -1)
                ids = [
                    id_
                    for id_ in ids
                    if route is None or index.count("id = :id and route = :route", {"id": id_, "route": route})
                ]
                total, ids = len(ids), ids[: len(ids) if limit is None else limit]
            else:
                total = index.count(" and ".join(where), given)
                ids = index.matching(" and ".join(where), given, limit)
            states = tuple(self._shown(*one) for one in index.states(ids).values())
            problems = tuple(filter(None, (index.plan_problem, index.journal_problem)))
            return TaskList(states, self._counts(index), total - len(ids), tuple(index.problems()), problems)

        return self.read(listed)

    def get(self, task: str) -> TaskState:
        """A task by its id or its unambiguous title. TaskNotFound, UsageError for a title that several have."""
        return self.read(lambda index: self.state(index, self.resolve(index, task)))

    def states(self, ids: Sequence[str]) -> dict[str, TaskState]:
        """Tasks by their ids; those that are not there are missing."""
        found = self.read(lambda index: index.states(ids))
        return {id_: self._shown(*one) for id_, one in found.items()}

    def counts(self) -> dict[str, int]:
        """How many tasks there are; see `TaskList.counts`."""
        return self.read(self._counts)

    def _counts(self, index: Index) -> dict[str, int]:
        found = index.counts()
        for state, known in index.states(index.held()).values():
            if not self.is_held(state, known):
                found["claimed"] -= 1
                found["ready"] += state.task.status == "pending" and not state.is_foreign and not state.waits_for
        return found

    def ready(self, role: str | None = None, by: str = "", limit: int = 1) -> _States:
        """The tasks that would be claimed next, the first one first."""

        def found(index: Index) -> _States:
            states = index.states([*index.ready(role, limit), *self._lost(index)]).values()
            return [state for one in states if (state := self._shown(*one)).task.status == "pending"][:limit]

        return self.read(found)

    def ready_for(
        self, roles: Sequence[str], most: int, *, others: bool = False, without: Collection[str] = ()
    ) -> _States:
        """The first tasks that can be claimed now by whoever does these roles, those whose holders are gone among them.

        others   whether all roles but these are meant
        without  ids of tasks that are not asked for
        """

        def found(index: Index) -> _States:
            ids = index.ready_for(roles, most, others=others, without=list(without))
            lost = [id_ for id_ in self._lost(index) if id_ not in without]
            states = [self._shown(*one) for one in index.states([*ids, *lost]).values()]
            return [one for one in states if self._can_be_claimed(one) and (one.task.role in roles) != others]

        return self.read(found)

    def _lost(self, index: Index) -> Sequence[str]:
        """Tasks whose holders are gone."""
        return [id_ for id_, one in index.states(index.held()).items() if not self.is_held(*one)]

    @staticmethod
    def _can_be_claimed(state: TaskState) -> bool:
        return state.task.status == "pending" and not state.is_foreign and not state.waits_for

    def read(self, work: Callable[[Index], T]) -> T:
        """What `work` says of the index as things are now."""

        def looked(path: Path | None) -> T:
            self.look_again()
            index = Index(self.project, path)

            def asked() -> T:
                with index.as_one():
                    return work(index)

            try:
                index.renew(lately=True)
                return index.sure(asked)
            finally:
                index.close()

        with fenced("tasks", waits=False):
            return rebuilt_when_damaged(self._place(), looked)

    def glance(self, work: Callable[[Index], T]) -> T:
        """What `work` says of the index as the last call left it, with newer records if there are any: for a look
        before a write, which looks again. No file is looked at.
        """

        def looked(path: Path | None) -> T:
            self.look_again()
            index = Index(self.project, path)
            try:
                if not index.is_kept_up():
                    index.renew()
                with index.as_one():
                    return work(index)
            finally:
                index.close()

        with fenced("tasks", waits=False):
            return rebuilt_when_damaged(self._place(), looked)

    def _place(self) -> Path | None:
        """The folder of the index; None where it can lie nowhere."""
        owner = self.project.owner
        if owner.registration is None and not owner.vouches:
            return None
        folder = self.project.indexes / "tasks"
        try:
            self.project.make_room(folder)
            files.make(folder)
        except (OSError, RalfError):
            return None
        return folder

    # ---- tasks and names ----

    def resolve(self, index: Index, named: str) -> str:
        """The id of a task that is named by its id, with or without `TASK-`, or by an unambiguous title. TaskNotFound,
        UsageError.
        """
        if index.count("id = :id", {"id": named}):
            return named
        words = words_of(named)
        given = {"id": named, "full": f"{folders.PREFIX}{named}", "words": words}
        wheres = ("id = :id collate nocase", "words = :words", "id = :full collate nocase", "instr(words, :words) > 0")
        for where in wheres:
            found = index.matching(where, given, _MOST_NAMED + 1) if words else []
            if len(found) == 1:
                return found[0]
            if found:
                told = self._told(index, found[:_MOST_NAMED])
                more = " and others" if len(found) > _MOST_NAMED else ""
                raise UsageError(ascii(named)[1:-1], f"matches several tasks: {told}{more}", "use the id")
        for path, problem in index.problems():
            if folders.name_of(path) == named:
                raise DamagedTask(path, problem.removeprefix(f"{path}: "), f"mend the file in an editor: {path}")
        closest = self._closest(index, words)
        raise TaskNotFound(cleaning.one_line(cleaning.clean(named))[:100], closest, self._told(index, closest))

    def _closest(self, index: Index, words: str) -> tuple[str, ...]:
        import difflib  # only for who asks for what is not there

        found: dict[str, str] = {}
        for id_, title in index.db.execute(
            "select id, words from task order by created desc limit ?", (_MOST_COMPARED,)
        ):
            found[id_.casefold()] = id_
            found.setdefault(title, id_)
        near = difflib.get_close_matches(words[:200], found, _MOST_NAMED)
        return tuple(dict.fromkeys(found[one] for one in near))

    def _told(self, index: Index, ids: Sequence[str]) -> str:
        states = index.states(ids)
        return ", ".join(f"{id_} ({cleaning.one_line(cleaning.clean(states[id_][0].task.title))[:60]})" for id_ in ids)

    def state(self, index: Index, id_: str) -> TaskState:
        """A task as it is told."""
        return self._shown(*index.states([id_])[id_])

    def _shown(self, state: TaskState, known: Known) -> TaskState:
        """A task with its claim only while that lives."""
        return with_live_claim(state, alive=self.is_held(state, known))

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

    def is_held(self, state: TaskState, known: Known) -> bool:
        """Whether somebody has a task now."""
        return known.claim is not None and self.is_alive(state.task.id, known.claim, known.sign)

    def is_alive(self, id_: str, claim: Claim, sign: str) -> bool:
        """Whether a claim lives: its process runs, or its last sign of life is not older than the lease. Where the
        store has leases: whether somebody has the task's. Fenced.
        """
        leases_ = leases.of(self.project)
        if leases_ is not None:
            if self._alive is None:
                self._alive = leases_.held(leases.FOLDER)
            return leases.FOLDER + id_ in self._alive
        running = origin.is_running(claim.process, claim.born, claim.machine)
        if running is not None:
            return running
        last = max(records.seconds_of(sign), records.seconds_of(claim.claimed))
        with suppress(OSError):
            last = max(last, leases.file_of(self.project, claim.lease(id_)).stat().st_mtime)
        return abs(time.time() - last) < claim.seconds  # a clock that was set back keeps no claim for ever

    def look_again(self) -> None:
        """Forget which leases of the engine are held: one look serves for all tasks of a read or a write."""
        self._alive = None

    # ---- writing: one at a time ----

    def write(
        self, work: Callable[[Writer], T], *, first: Callable[[Index], None] = lambda _: None, lately: bool = False
    ) -> T:
        """Do `work` while nobody else writes, with an index that is up to date and files that show all records.

        first   what may raise an error by the records alone, before any file is looked at
        lately  whether `work` asks by `Index.sure`, for which a look at files a moment ago is enough
        """
        self.project.prepare()
        owner = self.project.owner
        if owner.seal_key is None and not owner.vouches:
            raise UsageError(self.project.folder, NO_FOLDER)
        name = os.urandom(6).hex()
        lock = files.locked(self.project.folder / "locks" / "tasks.lock", "tasks", seen=True)
        with fenced("tasks"), lock:
            return rebuilt_when_damaged(self._place(), lambda path: self._written(path, name, work, first, lately))

    def _written(
        self, path: Path | None, name: str, work: Callable[[Writer], T], first: Callable[[Index], None], lately: bool
    ) -> T:
        for attempt in range(_MOST_TRIES):
            self.look_again()
            index = Index(self.project, path)
            try:
                with index.alone():
                    if index.has_files:
                        index.take_records()
                        first(index)
                    index.renew(lately=lately)
                    if index.journal_problem:
                        raise DamagedJournal(STREAM, index.journal_problem.removeprefix(f"{STREAM}: "), MEND_JOURNAL)
                    return Writer(self.project, index, name, self.state).done(work)
            except Conflict as error:  # whoever rewrites the stream (`ralf context forget`) does not hold our lock
                if type(error) is not Conflict or attempt == _MOST_TRIES - 1:
                    raise
            finally:
                index.close()
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
        raise UsageError(state.path, FOREIGN, f"ralf task trust {state.task.id}")


def holder(project: Project, by: str = "") -> str:
    """By what name a task is held: the one that is given, else the agent's that a loop has started, else that of the
    run that we are part of, else what the environment says.
    """
    told = by or environment.agent_name() or project.run or environment.holder()
    name = cleaning.one_line(cleaning.clean(told))[:200]
    if not name:
        raise UsageError("by", "a holder needs a name")
    return name
