"""What is asked of the tasks of a project: a list of all of them in memory, which lies in some rows of `index.db`."""

from __future__ import annotations

import os
import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ralf.document.state import State
from ralf.errors import Claimed, DamagedTask, TaskNotFound, UsageError
from ralf.project import Project
from ralf.tasks import folders, leases, origin, records
from ralf.tasks.model import Claim, Task, TaskList, TaskState
from ralf.text import cleaning

MOST_NAMED = 5
"""Tasks, and files of one, that a message names."""

KINDS = ("pending", "completed", "failed", "cancelled", "ready", "claimed", "blocked", "foreign")
"""What tasks are counted by: their status, and of those that are pending what keeps them."""

_PARTS = 64
"""Rows in which the entries lie: few to read, and each is small enough to be written."""

_OPEN = ("pending", "failed")

_MOST_COMPARED = 2_000  # titles that a wrong one is compared with


class Chain(NamedTuple):
    """A chain of the plan: its name, and its segments, between two of which a checkpoint lies."""

    name: str
    segments: tuple[tuple[str, ...], ...]

    @property
    def ids(self) -> list[str]:
        """Its tasks, the first one first."""
        return [id_ for segment in self.segments for id_ in segment]


class Entry(NamedTuple):
    """What a list knows of an id that a file or a record has.

    files    those that say that they are it: stamp, digest, whether it is foreign, and why it cannot be read, by name
    path     the name of the file that counts, "" where there is no such task
    is_due   whether its file and its records are not the same: the next write sees to it
    title    as it is looked for; order: of tasks of one second the one with the lower is the older one
    """

    files: Mapping[str, Sequence[Any]]
    path: str = ""
    is_foreign: bool = False
    is_due: bool = False
    status: str = ""
    role: str = ""
    route: str = ""
    title: str = ""
    created: str = ""
    priority: int = 0
    after: Sequence[str] = ()
    order: int = 0


class Book:
    """The tasks of a project at one moment, and whose claims live.

    row  the row with all of a task: what its file says and a record does not
    """

    def __init__(self, project: Project, state: State, row: Callable[[str], Mapping[str, Any]]) -> None:
        self.project = project
        self.state = state
        self.rows = state.rows
        self._parts: dict[str, dict[str, Any]] = dict(state.rows.under("tasks/"))
        self.entries = {id_: Entry(*row) for part in self._parts.values() for id_, row in part.items()}
        self._row = row
        self._root = os.fspath(project.folder.parents[1])
        self._alive: frozenset[str] | None = None

    def put(self, id_: str, entry: Entry | None) -> None:
        """Keep the entry of an id; None: there is none any more."""
        key = f"tasks/{zlib.crc32(id_.encode()) % _PARTS:02}"
        part = self._parts.setdefault(key, {})
        for rows in (part, self.entries):
            rows.pop(id_, None)
        if entry is not None:
            part[id_], self.entries[id_] = list(entry), entry
        self.rows.put(key, part)

    def changed(self) -> None:
        """Forget what was made of records, entries, the plan and the engine's leases."""
        self._alive = None
        for name in ("_claims", "_held", "_ordered", "_chains", "_rows_of_plan", "_planned", "_fronts", "_names"):
            self.__dict__.pop(name, None)

    def name(self, path: str | Path) -> str:
        """The name of a file in rows and in records: from the project's folder on."""
        return os.fspath(path)[len(self._root) + 1 :]

    def path(self, name: str) -> Path:
        """The path of a file by its name."""
        return Path(self._root, name)

    def known(self, id_: str) -> records.Known:
        """What the records say of the file of a task."""
        return records.known(self.rows, id_)

    # ---- one task ----

    def status(self, id_: str) -> str:
        """The status of a task, "" for one that is not there."""
        return self.entries[id_].status if id_ in self.entries else ""

    def task(self, id_: str) -> Task | None:
        """What a task is; None for one that is not there."""
        return records.task_of(self._row(id_)["tree"]) if self.status(id_) else None

    def state_of(self, id_: str, *, recorded: bool = False) -> TaskState | None:
        """A task, with what is known of it; None for one that is not there.

        recorded  whether its claim is told as it is recorded, though it may have run out
        """
        if not self.status(id_):
            return None
        entry, row, said = self.entries[id_], self._row(id_), records.said(self.rows, id_)
        if "claim" in said and not recorded and not self.is_held(id_):
            del said["claim"]
        hopeless = self._hopeless(id_) if entry.status == "pending" else ()
        return TaskState(
            records.task_of(row["tree"]),
            self.path(entry.path),
            **said,
            waits_for=self.waits(id_),
            is_foreign=entry.is_foreign,
            warnings=(*row["warnings"], *hopeless),
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

    # ---- what a task waits for ----

    def needs(self, id_: str) -> list[str]:
        """The dependencies of a task, met or not; none of one that is foreign: it is never claimed, and may name any
        number.
        """
        entry = self.entries.get(id_)
        return sorted(set(entry.after)) if entry is not None and not entry.is_foreign else []

    def unmet(self, id_: str) -> list[str]:
        """The dependencies of a task that are not met."""
        return [on for on in self.needs(id_) if self.status(on) != "completed"]

    def waits(self, id_: str) -> tuple[str, ...]:
        """What keeps a task from being claimed: its own dependencies first, then the open task that the plan puts right
        before it.
        """
        number, place = self._planned.get(id_, (0, 0))
        earlier = range(place - 1, -1, -1) if place > self._fronts.get(number, place) else ()
        before = (one for at in earlier if self.status(one := self._rows_of_plan[number][at]) in _OPEN)
        return tuple(dict.fromkeys([*self.unmet(id_), *islice(before, 1)]))

    def waiting_for(self, id_: str) -> list[str]:
        """The tasks that name another one in their `after`."""
        return [other for other, entry in sorted(self.entries.items()) if id_ in entry.after and not entry.is_foreign]

    def _hopeless(self, id_: str) -> Iterator[str]:
        """What to type for a task that waits for one that is cancelled, or is not there."""
        status = {on: self.status(on) for on in self.needs(id_)}
        gone = [on for on, one in status.items() if one in ("", "cancelled")]
        for on in gone:
            options = " ".join(f"--after {one}" for one in status if one not in gone) or '--after ""'
            what = "is cancelled" if status[on] else "does not exist"
            again = f", or put that one back: ralf task edit {on} --status pending" if status[on] else ""
            yield f"{id_} waits for {on}, which {what}; to do it without: ralf task edit {id_} {options}{again}"

    # ---- the plan ----

    @property
    def plan(self) -> tuple[str, str]:
        """The stamp of the plan's file, and why it cannot be read; "" where it can."""
        stamp, problem, _ = self.rows.one("plan") or ("", "", ())
        return stamp, problem

    def chains(self) -> list[Chain]:
        """The chains of the plan in force, none where there is none."""
        return self._chains

    @cached_property
    def _chains(self) -> list[Chain]:
        return [Chain(name, tuple(map(tuple, parts))) for name, parts in (self.rows.one("plan") or ("", "", ()))[2]]

    @cached_property
    def _rows_of_plan(self) -> list[list[str]]:
        """The tasks of each chain, the first one first."""
        return [one.ids for one in self._chains]

    @cached_property
    def _planned(self) -> dict[str, tuple[int, int]]:
        """The number of a task's chain, and its place there."""
        rows = enumerate(self._rows_of_plan)
        return dict(reversed([(id_, (number, place)) for number, ids in rows for place, id_ in enumerate(ids)]))

    @cached_property
    def _fronts(self) -> dict[int, int]:
        """The place of the first open task of each chain that has one."""
        found: dict[int, int] = {}
        for number, ids in enumerate(self._rows_of_plan):
            place = next((at for at, id_ in enumerate(ids) if self.status(id_) in _OPEN), None)
            if place is not None:
                found[number] = place
        return found

    def is_at_checkpoint(self, id_: str) -> bool:
        """Whether the plan has a checkpoint between a task and the next one of its chain that is pending."""
        number, place = self._planned.get(id_, (0, 0))
        segments = self._chains[number].segments if id_ in self._planned else ()
        parts = [(one, part) for part, ids in enumerate(segments) for one in ids]
        later = (part for one, part in parts[place + 1 :] if self.status(one) == "pending")
        return next((part != parts[place][1] for part in later), False)

    # ---- claims ----

    def claim(self, id_: str) -> Claim | None:
        """The claim of a task by the records, which may have run out."""
        found: Claim | None = records.said(self.rows, id_).get("claim")
        return found

    def claimed(self) -> list[str]:
        """Tasks with a claim by the records; also such as have no file now."""
        return sorted(self._claims)

    @cached_property
    def _claims(self) -> Mapping[str, int]:
        """The numbers of the claims, by task."""
        return self.rows.one("claims") or {}

    @cached_property
    def _held(self) -> frozenset[str]:
        """The tasks that somebody has now."""
        return frozenset(filter(self.is_held, self._claims))

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

    def check_free(self, id_: str, hint: str = "") -> None:
        """Claimed for a task that somebody has now."""
        claim = self.claim(id_)
        if claim is not None and self.is_held(id_):
            raise Claimed(id_, claim.by, claim.claimed, hint or f"ralf task show {id_}")

    # ---- lists ----

    @cached_property
    def _ordered(self) -> list[str]:
        """The tasks as they would be claimed: those that are pending come first."""

        def rank(one: tuple[str, Entry]) -> tuple[bool, int, str, int, str]:
            id_, entry = one
            return entry.status != "pending", -entry.priority, entry.created, entry.order, id_

        return [id_ for id_, _ in sorted(((id_, one) for id_, one in self.entries.items() if one.status), key=rank)]

    def kinds(self, id_: str) -> set[str]:
        """Those of `KINDS` that a task counts for."""
        entry = self.entries[id_]
        found = {entry.status, *(["foreign"] if entry.is_foreign else ()), *(["claimed"] if id_ in self._held else ())}
        if entry.status == "pending" and not entry.is_foreign:
            is_blocked = (entry.after or id_ in self._planned) and self.waits(id_)
            found |= {"blocked"} if is_blocked else set() if "claimed" in found else {"ready"}
        return found

    def of_kind(self, kind: str) -> Iterator[str]:
        """The ids of the tasks of a kind of `counts`."""
        return (id_ for id_ in self._ordered if kind in self.kinds(id_))

    def counts(self) -> dict[str, int]:
        """How many tasks there are, by status, and of those that are pending by what keeps them; see `TaskList`."""
        found = Counter(kind for id_ in self._ordered for kind in self.kinds(id_))
        return {kind: found[kind] for kind in KINDS}

    def claimable(self, fits: Callable[[str], bool], most: int, without: Collection[str] = ()) -> list[TaskState]:
        """Tasks of some roles that can be claimed now, the first one first; those whose holders are gone among them."""
        found = (id_ for id_ in self.of_kind("ready") if id_ not in without and fits(self.entries[id_].role))
        return list(self.states(islice(found, most)).values())

    def claimable_as(self, role: str | None, most: int) -> list[TaskState]:
        """The same for one role: its tasks, then those of none; "": those of none; None: of any role."""
        own = self.claimable(lambda one: role in (None, one), most)
        return own + (self.claimable(lambda one: not one, most - len(own)) if role else [])

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
        ids = [one.task.id for one in self.claimable_as(role, counts["ready"])] if ready else self._ordered
        fits = [
            id_
            for id_, entry in ((id_, self.entries[id_]) for id_ in ids)
            if (ready or ((not statuses or entry.status in statuses) and role in (None, entry.role)))
            and route in (None, entry.route)
        ]
        tasks = tuple(self.states(fits[:limit]).values())
        return TaskList(
            tasks, counts, len(fits) - len(tasks), tuple(self.problems()), tuple(filter(None, [self.plan[1]]))
        )

    def problems(self) -> list[tuple[Path, str]]:
        """Files that cannot be read, and why."""
        files = (file for entry in self.entries.values() for file in entry.files.items())
        return [(self.path(name), problem) for name, (*_, problem) in sorted(files) if problem]

    def due(self) -> list[str]:
        """The tasks to whose files the next write has to see."""
        return sorted(id_ for id_, entry in self.entries.items() if entry.is_due)

    # ---- names ----

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for id_ in self.entries:
            found.setdefault(id_.casefold(), []).append(id_)
        return found

    def named(self, id_: str) -> list[str]:
        """The ids that a file or a record has and that are this one, perhaps in another case."""
        return self._names.get(id_.casefold(), [])

    def all_ids(self) -> list[str]:
        """Every id that a file or a record has."""
        return [*self.entries]

    def resolve(self, named: str) -> str:
        """The id of a task that is named by its id, with or without `TASK-`, or by an unambiguous title. TaskNotFound,
        UsageError.
        """
        if self.status(named):
            return named
        words = words_of(named)
        titles = [(id_, self.entries[id_].title) for id_ in self._ordered]
        ways: tuple[Callable[[], list[str]], ...] = (
            lambda: [id_ for id_ in self.named(named) if self.status(id_)],
            lambda: [id_ for id_, title in titles if title == words],
            lambda: [id_ for id_ in self.named(f"{folders.PREFIX}{named}") if self.status(id_)],
            lambda: [id_ for id_, title in titles if words in title],
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

        near = {name: id_ for id_, title in titles[:_MOST_COMPARED] for name in (title, id_.casefold())}
        closest = tuple(dict.fromkeys(near[one] for one in difflib.get_close_matches(words[:200], near, MOST_NAMED)))
        raise TaskNotFound(cleaning.one_line(cleaning.clean(named))[:100], closest, self._titles(closest))

    def _titles(self, ids: Sequence[str]) -> str:
        tasks = ((id_, self.task(id_) or Task()) for id_ in ids[:MOST_NAMED])
        return ", ".join(f"{id_} ({cleaning.one_line(cleaning.clean(task.title))[:60]})" for id_, task in tasks)


def words_of(title: str) -> str:
    """A title as it is looked for."""
    return " ".join(title.casefold().split())
