"""What is asked of the tasks of a project."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from ralf.document.state import State
from ralf.errors import Claimed, DamagedTask, TaskNotFound, UsageError
from ralf.project import Project
from ralf.tasks import folders, leases, origin, records
from ralf.tasks.derived import (
    DIGITS,
    MOST_NAMED,
    NONE,
    Chain as Chain,
    Derived,
    File as File,
    Listed,
    needs_of,
    words_of,
)
from ralf.tasks.model import STATUSES, Task, TaskList, TaskState
from ralf.text import cleaning

_MOST_COMPARED = 2_000  # titles that a wrong one is compared with


class Book(Derived):
    """The tasks of a project at one moment, and whose claims live."""

    def __init__(self, project: Project, state: State) -> None:
        super().__init__(project, state)
        self._alive: frozenset[str] | None = None

    def needs(self, id_: str) -> list[str]:
        """The dependencies of a task, met or not."""
        return sorted(needs_of(self.rows.one(f"task/{id_}")))

    def unmet(self, id_: str) -> list[str]:
        """The dependencies of a task that are not met."""
        return self._unmet(self.needs(id_))

    def waits(self, id_: str) -> tuple[str, ...]:
        """What keeps a task from being claimed: its own dependencies first, then what the plan puts before it."""
        before = self._before(id_)
        return tuple(dict.fromkeys([*self.unmet(id_), *([before] if before else [])]))

    def waiting_for(self, id_: str) -> list[str]:
        """The tasks that name another one in their `after`."""
        return sorted(self.rows.one(f"waiters/{id_}") or ())

    def claimed(self) -> list[str]:
        """Tasks with a claim by the records; also such as have no file now."""
        return sorted(self.rows.one("claims") or ())

    def is_held(self, id_: str) -> bool:
        """Whether somebody has a task now: its process runs, or the last sign of life is not older than the lease.
        Where the store has leases: whether somebody has the task's. Fenced.
        """
        if (claim := self.claim(id_)) is None:
            return False
        if (engine := leases.of(self.project)) is not None:
            if self._alive is None:  # one look serves for all tasks
                self._alive = engine.held(leases.FOLDER)
            return leases.FOLDER + id_ in self._alive
        running = origin.is_running(claim.process, claim.born, claim.machine)
        if running is not None:
            return running
        last = max(map(records.seconds_of, (claim.sign, claim.claimed)))
        with suppress(OSError):
            last = max(last, leases.file_of(self.project, claim.lease(id_)).stat().st_mtime)
        return abs(time.time() - last) < claim.seconds  # a clock that was set back keeps no claim for ever

    def look_again(self) -> None:
        """Forget which leases of the engine are held."""
        self._alive = None

    def check_free(self, id_: str, hint: str = "") -> None:
        """Claimed for a task that somebody has now."""
        claim = self.claim(id_)
        if claim is not None and self.is_held(id_):
            raise Claimed(id_, claim.by, claim.claimed, hint or f"ralf task show {id_}")

    def state_of(self, id_: str, *, recorded: bool = False) -> TaskState | None:
        """A task, with what is known of it; None for one that is not there.

        recorded  whether its claim is told as it is recorded, though it may have run out
        """
        row = self.rows.one(f"task/{id_}")
        if row is None:
            return None
        task, said = records.task_of(row["tree"]), records.said(self.rows, id_)
        if "claim" in said and not recorded and not self.is_held(id_):
            del said["claim"]
        return TaskState(
            task,
            self.path(row["path"]),
            **said,
            waits_for=self.waits(id_),
            is_foreign=row["foreign"],
            warnings=(*row["warnings"], *(self._hopeless(id_) if task.status == "pending" else ())),
        )

    def get(self, id_: str) -> TaskState:
        """A task; TaskNotFound."""
        if (found := self.state_of(id_)) is None:
            raise TaskNotFound(id_)
        return found

    def states(self, ids: Iterable[str], *, recorded: bool = False) -> dict[str, TaskState]:
        """Tasks by their ids; those that are not there are missing."""
        found = ((id_, self.state_of(id_, recorded=recorded)) for id_ in dict.fromkeys(ids))
        return {id_: state for id_, state in found if state is not None}

    def lapsed(self, fits: Callable[[str], bool]) -> list[TaskState]:
        """Tasks of some roles that can be claimed as their holders are gone."""
        found = self.states(self.claimed()).values()
        return [one for one in found if one.claim is None and can_be_claimed(one) and fits(one.task.role)]

    def claimable(self, fits: Callable[[str], bool], most: int, without: Collection[str] = ()) -> list[TaskState]:
        """Tasks of some roles that can be claimed now, the first one first; those whose holders are gone among them."""
        rows = (id_ for _, (id_, role) in self.rows.under("ready/") if fits(role) and id_ not in without)
        found = {*islice(rows, most), *(one.task.id for one in self.lapsed(fits))} - {*without}
        return list(self.states(sorted(found, key=self.rank)[:most]).values())

    def claimable_as(self, role: str | None, most: int) -> list[TaskState]:
        """The same for one role: its tasks, then those of none; "": those of none; None: of any role."""
        own = self.claimable(lambda one: role in (None, one), most)
        return own + (self.claimable(lambda one: not one, most - len(own)) if role else [])

    def rank(self, id_: str) -> str:
        """By what a task is ordered among those of its status: the one that comes first has the lowest."""
        placed = self.rows.one(f"placed/{id_}")
        return str(placed[0][0])[len("list/0") :] if placed is not None else ""

    def _hopeless(self, id_: str) -> Iterator[str]:
        """What to type for a task that waits for one that is cancelled, or is not there."""
        status = {on: self.status(on) for on in self.needs(id_)}
        gone = [on for on, one in status.items() if one in ("", "cancelled")]
        for on in gone:
            options = " ".join(f"--after {one}" for one in status if one not in gone) or '--after ""'
            what = "is cancelled" if status[on] else "does not exist"
            again = f", or put that one back: ralf task edit {on} --status pending" if status[on] else ""
            yield f"{id_} waits for {on}, which {what}; to do it without: ralf task edit {id_} {options}{again}"

    def listed(self, statuses: Iterable[str] = ()) -> Iterator[Listed]:
        """The tasks, or those of some statuses, as they would be claimed: those that are pending come first."""
        digits = sorted(DIGITS[one] for one in statuses or DIGITS)
        for digit in digits[: digits[0] == "0"]:
            yield from (Listed(*row) for _, row in self.rows.under(f"list/{digit}"))
        rest = [row for digit in digits if digit != "0" for row in self.rows.under(f"list/{digit}")]
        yield from (Listed(*row) for _, row in sorted(rest, key=lambda one: one[0][6:]))

    def of_kind(self, kind: str) -> Iterator[str]:
        """The ids of the tasks of a kind of `counts`."""
        is_any = (self.rows.one("counts") or {}).get(kind)
        return (one.id for one in self.listed() if kind in one.kinds) if is_any else iter(())

    def counts(self) -> dict[str, int]:
        """How many tasks there are, by status, and of those that are pending by what keeps them; see `TaskList`."""
        found = {**NONE, **(self.rows.one("counts") or {})}
        for state in self.states(self.claimed()).values():
            if state.claim is None:
                found["claimed"] -= 1
                found["ready"] += can_be_claimed(state)
        return found

    def select(
        self,
        statuses: Sequence[str] = (),
        *,
        role: str | None = None,
        route: str | None = None,
        ready: bool = False,
        limit: int | None = None,
    ) -> TaskList:
        """The tasks of some statuses that fit; see `store.list_tasks`."""
        counts = self.counts()
        if ready:
            states = self.claimable_as(role, counts["ready"])
            ids = [one.task.id for one in states if route in (None, one.task.context_route)]
        else:
            found = (one.id for one in self.listed(statuses) if role in (None, one.role) and route in (None, one.route))
            is_whole = role is not None or route is not None or limit is None
            ids = list(found if is_whole else islice(found, limit))
        total = len(ids) if ready or is_whole else sum(counts[one] for one in statuses or STATUSES)
        tasks = tuple(self.states(ids[:limit]).values())
        problems = tuple(filter(None, (self.plan[1], self.problem)))
        return TaskList(tasks, counts, total - len(tasks), tuple(self.problems()), problems)

    def resolve(self, named: str) -> str:
        """The id of a task that is named by its id, with or without `TASK-`, or by an unambiguous title. TaskNotFound,
        UsageError.
        """
        if self.status(named):
            return named
        words = words_of(named)
        ways: tuple[Callable[[], list[str]], ...] = (
            lambda: [id_ for id_ in self.named(named) if self.status(id_)],
            lambda: [one.id for one in self.listed() if one.title == words],
            lambda: [id_ for id_ in self.named(f"{folders.PREFIX}{named}") if self.status(id_)],
            lambda: [one.id for one in self.listed() if words in one.title],
        )
        for way in ways if words else ():
            found = way()
            if len(found) == 1:
                return found[0]
            if found:
                more = " and others" if len(found) > MOST_NAMED else ""
                raise UsageError(
                    ascii(named)[1:-1], f"matches several tasks: {self._titles(found)}{more}", "use the id"
                )
        for path, problem in self.problems():
            if folders.name_of(path) == named:
                raise DamagedTask(path, problem.removeprefix(f"{path}: "), f"mend the file in an editor: {path}")
        import difflib  # only for who asks for what is not there

        near = {
            name: one.id for one in islice(self.listed(), _MOST_COMPARED) for name in (one.title, one.id.casefold())
        }
        closest = tuple(dict.fromkeys(near[one] for one in difflib.get_close_matches(words[:200], near, MOST_NAMED)))
        raise TaskNotFound(cleaning.one_line(cleaning.clean(named))[:100], closest, self._titles(closest))

    def _titles(self, ids: Sequence[str]) -> str:
        tasks = ((id_, self.task(id_) or Task()) for id_ in ids[:MOST_NAMED])
        return ", ".join(f"{id_} ({cleaning.one_line(cleaning.clean(task.title))[:60]})" for id_, task in tasks)

    def problems(self) -> list[tuple[Path, str]]:
        """Files that cannot be read, and why."""
        return [(self.path(key.removeprefix("problem/")), text) for key, text in self.rows.under("problem/")]

    def due(self) -> list[str]:
        """The tasks to whose files the next write has to see."""
        return [key.removeprefix("due/") for key, _ in self.rows.under("due/")]

    def task(self, id_: str) -> Task | None:
        """What a task is; None for one that is not there."""
        row = self.rows.one(f"task/{id_}")
        return records.task_of(row["tree"]) if row is not None else None

    def named(self, id_: str) -> list[str]:
        """The ids that a file or a record has and that are this one, perhaps in another case."""
        keys = ("task", "known", "at")
        found = self.rows.one(f"name/{id_.casefold()}") or ()
        return [one for one in found if any(self.rows.one(f"{key}/{one}") is not None for key in keys)]

    def all_ids(self) -> list[str]:
        """Every id that a file or a record has."""
        return [one for _, ids in self.rows.under("name/") for id_ in ids for one in self.named(id_) if one == id_]


def can_be_claimed(state: TaskState) -> bool:
    """Whether a task that nobody has can be claimed."""
    return state.task.status == "pending" and not state.is_foreign and not state.waits_for
