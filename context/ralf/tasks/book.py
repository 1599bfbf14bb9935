"""What is asked of the tasks of a project: one, what it waits for, who has it, and lists."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from ralf.document.index import TASK_ORDER
from ralf.document.state import State
from ralf.errors import Claimed, DamagedTask, TaskNotFound, UsageError
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.tasks import folders, leases, origin, records
from ralf.tasks.entries import Entries
from ralf.tasks.model import Claim, Task, TaskList, TaskState
from ralf.text import cleaning

MOST_NAMED = 5
"""Tasks, and files of one, that a message names."""

KINDS = ("pending", "completed", "failed", "cancelled", "ready", "claimed", "blocked", "foreign")
"""What tasks are counted by: their status, and of those that are pending what keeps them."""

_OURS = "status = 'pending' and not is_foreign"

_NEEDS = """
select distinct value, coalesce(other.status, '')
from task, json_each(task.needs) left join task as other on other.id = value
where task.id = ? and not task.is_foreign order by 1
"""

_CHAIN = """
from task_plan as planned join task_plan as other on other.chain = planned.chain
left join task as beside on beside.id = other.id where planned.id = {} and {}
"""
"""The tasks in the chain of the plan in which one is, and for which a condition holds."""

_BEFORE = "other.place < planned.place and beside.status in ('pending', 'failed') order by other.place desc limit 1"
"""The open task that the plan puts right before it."""

_WAITS = f"""((select other.id {_CHAIN.format("task.id", _BEFORE)}) is not null or task.needs <> '[]' and exists (
    select 1 from json_each(task.needs) as need left join task as other on other.id = need.value
    where other.status is not 'completed'
))"""  # noqa: S608
"""Whether a task waits for another one."""

_MOST_COMPARED = 2_000  # titles that a wrong one is compared with

_ALIKE = 0.75  # of 1: ids that somebody may have meant, which begin alike and are random else


class Book:
    """The tasks of a project at one moment, and whose claims live.

    row  the row with all of a task: what its file says and a record does not
    """

    def __init__(
        self, project: Project, state: State, entries: Entries, row: Callable[[str], Mapping[str, Any]]
    ) -> None:
        self.project = project
        self.state = state
        self.rows = state.rows
        self.entries = entries
        self._row = row
        self._root = os.fspath(project.folder.parents[1])
        self._alive: frozenset[str] | None = None

    def changed(self) -> None:
        """Forget what was made of records, entries and the engine's leases."""
        self._alive = None
        for name in ("_claims", "_held"):
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
        return next((status for (status,) in self.entries.ask("select status from task where id = ?", id_)), "")

    def task(self, id_: str) -> Task | None:
        """What a task is; None for one that is not there."""
        return records.task_of(self._row(id_)["tree"]) if self.status(id_) else None

    def state_of(self, id_: str, *, recorded: bool = False) -> TaskState | None:
        """A task, with what is known of it; None for one that is not there.

        recorded  whether its claim is told as it is recorded, though it may have run out
        """
        asked = "select path, is_foreign, status from task where id = ? and status <> ''"
        for path, is_foreign, status in self.entries.ask(asked, id_):
            row, said = self._row(id_), records.said(self.rows, id_)
            if "claim" in said and not recorded and not self.is_held(id_):
                del said["claim"]
            hopeless = self._hopeless(id_) if status == "pending" else ()
            task = records.task_of(row["tree"])
            return TaskState(
                task,
                self.path(path),
                **said,
                waits_for=self.waits(id_),
                is_foreign=bool(is_foreign),
                has_edited_verify=bool(task.verify) and self._has_edited_verify(id_, task.verify),
                has_agents_verify=bool(task.verify) and self.known(id_).has_agents_verify,
                has_agents_words=self.known(id_).has_agents_words,
                author=self.known(id_).author,
                warnings=(*row["warnings"], *hopeless),
            )
        return None

    def _has_edited_verify(self, id_: str, verify: str) -> bool:
        """Whether an edit of a task's file gave it this `verify`, and no command of ralf has accepted it. In a tree
        that its planner writes by hand an edit is as good as a command.
        """
        known = self.known(id_)
        recorded = (known.tree or {}).get("verify", "")
        if known.is_cut and verify != recorded:
            verify = redactor_for(self.project).text(verify)
        return (known.has_edited_verify or verify != recorded) and not self.project.owner.pinned

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

    def needs(self, id_: str) -> dict[str, str]:
        """The dependencies of a task with their status, "" for one that is not there; none of a task that is foreign:
        it is never claimed, and may name any number.
        """
        return dict(self.entries.ask(_NEEDS, id_))

    def unmet(self, id_: str) -> list[str]:
        """The dependencies of a task that are not met."""
        return [on for on, status in self.needs(id_).items() if status != "completed"]

    def waits(self, id_: str) -> tuple[str, ...]:
        """What keeps a task from being claimed: its own dependencies first, then the open task that the plan puts right
        before it.
        """
        before = self.entries.ask(f"select other.id {_CHAIN.format('?', _BEFORE)}", id_)
        return tuple(dict.fromkeys([*self.unmet(id_), *(one for (one,) in before)]))

    def waiting_for(self, id_: str) -> list[str]:
        """The tasks that name another one in their `after`."""
        asked = "select distinct task.id from task, json_each(needs) where not is_foreign and value = ? order by 1"
        return [other for (other,) in self.entries.ask(asked, id_)]

    def _hopeless(self, id_: str) -> Iterator[str]:
        """What to type for a task that waits for one that is cancelled, or is not there."""
        status = self.needs(id_)
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
        stamp, problem = self.rows.one("plan") or ("", "")
        return stamp, problem

    def around(self, id_: str, before: int, after: int) -> dict[str, int]:
        """So many tasks before one in its chain of the plan, itself and so many after it, each with the number of its
        segment: a checkpoint lies between two. None where the plan has it not.
        """
        near = _CHAIN.format("?", "other.place between planned.place - ? and planned.place + ? order by other.place")
        return dict(self.entries.ask(f"select other.id, other.segment {near}", id_, before, after))

    def is_at_checkpoint(self, id_: str) -> bool:
        """Whether the plan has a checkpoint between a task and the next one of its chain that is pending."""
        later = "other.place > planned.place and beside.status = 'pending' order by other.place limit 1"
        found = self.entries.ask(f"select other.segment <> planned.segment {_CHAIN.format('?', later)}", id_)
        return found == [(1,)]

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
            ends = leases.until(self.project, id_)
            raise Claimed(id_, claim.by, claim.claimed, hint or f"ralf task show {id_}", until=ends)

    # ---- lists ----

    def ordered(self, which: str, *values: str, limit: int | None = None) -> list[str]:
        """The tasks for which a condition in SQL holds, as they would be claimed: those that are pending come first."""
        asked = f"select id from task where status <> '' and {which} order by {TASK_ORDER} limit ?"  # noqa: S608
        return [id_ for (id_,) in self.entries.ask(asked, *values, -1 if limit is None else limit)]

    def ready(self, which: str = "true", *values: str, limit: int | None = None) -> list[str]:
        """The tasks that can be claimed now and for which a condition in SQL holds, the first one first."""
        most = None if limit is None else limit + len(self._held)
        found = self.ordered(f"{_OURS} and not {_WAITS} and {which}", *values, limit=most)
        return [id_ for id_ in found if id_ not in self._held][:limit]

    def blocked(self) -> list[str]:
        """The tasks that are pending and wait for others, the first one first."""
        return self.ordered(f"{_OURS} and {_WAITS}")

    def counts(self) -> dict[str, int]:
        """How many tasks there are, by status, and of those that are pending by what keeps them; see `TaskList`."""
        found = Counter[str]()
        for status, is_foreign, count in self.entries.ask(
            "select status, is_foreign, count(*) from task where status <> '' group by 1, 2"
        ):
            found.update({status: count, "foreign": count * is_foreign})
        found["claimed"] = sum(1 for id_ in self._held if self.status(id_))
        found["blocked"], found["ready"] = len(self.blocked()), len(self.ready())
        return {kind: found[kind] for kind in KINDS}

    def claimable_as(self, role: str | None, which: str = "true", *values: str, limit: int | None = None) -> list[str]:
        """Tasks that can be claimed now for one role: its tasks, then those of none; "": of none; None: of any role."""
        if role is None:
            return self.ready(which, *values, limit=limit)
        which = f"role = ? and {which}"
        return [id_ for one in dict.fromkeys([role, ""]) for id_ in self.ready(which, one, *values, limit=limit)]

    def select(
        self,
        statuses: Sequence[str] = (),
        *,
        role: str | None = None,
        route: str | None = None,
        ready: bool = False,
        limit: int | None = None,
    ) -> TaskList:
        """The tasks of some statuses that fit, uncounted; see `store.list_tasks`."""
        wanted = {
            "status": () if ready else statuses,
            "role": () if ready or role is None else (role,),
            "route": () if route is None else (route,),
        }
        which = " and ".join(
            ["true", *(f"{name} in ({', '.join('?' * len(values))})" for name, values in wanted.items() if values)]
        )
        values = [*chain.from_iterable(wanted.values())]
        if ready:
            fits = self.claimable_as(role, which, *values)
            count = len(fits)
        else:
            fits = self.ordered(which, *values, limit=limit)
            ((count,),) = self.entries.ask(f"select count(*) from task where status <> '' and {which}", *values)  # noqa: S608
        tasks = tuple(self.states(fits[:limit]).values())
        return TaskList(
            tasks,
            left=count - len(tasks),
            damaged=tuple(self.problems()),
            warnings=tuple(filter(None, [self.plan[1]])),
        )

    def problems(self) -> list[tuple[Path, str]]:
        """Files that cannot be read, and why."""
        asked = "select name, problem from task_file where problem <> '' order by name"
        return [(self.path(name), problem) for name, problem in self.entries.ask(asked)]

    def due(self) -> list[str]:
        """The tasks to whose files the next write has to see."""
        return [id_ for (id_,) in self.entries.ask("select id from task where is_due order by id")]

    # ---- names ----

    def taken(self) -> set[str]:
        """Every id that a file or a record has, as ids are compared: without its case."""
        return {id_ for (id_,) in self.entries.ask("select folded from task")}

    def resolve(self, named: str) -> str:
        """The id of a task that is named by its id, with or without `TASK-`, or by an unambiguous title. TaskNotFound,
        UsageError.
        """
        if any("\ud800" <= one <= "\udfff" for one in named):  # bytes of no text, which no task is called by
            raise TaskNotFound(ascii(named)[1:-1])
        if self.status(named):
            return named
        words = words_of(named)
        ways = (
            ("folded = ?", named.casefold()),
            ("title = ?", words),
            ("folded = ?", f"{folders.PREFIX}{named}".casefold()),
            ("instr(title, ?)", words),
        )
        for way in ways if words else ():
            found = self.ordered(*way)
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

        titles = self.entries.ask(
            f"select id, title from task where status <> '' order by {TASK_ORDER} limit {_MOST_COMPARED}"  # noqa: S608
        )
        near, by_id = {title: id_ for id_, title in titles}, {id_.casefold(): id_ for id_, _ in titles}
        found = [by_id[one] for one in difflib.get_close_matches(words[:200].casefold(), by_id, MOST_NAMED, _ALIKE)]
        found += [near[one] for one in difflib.get_close_matches(words[:200], near, MOST_NAMED)]
        closest = tuple(dict.fromkeys(found))[:MOST_NAMED]
        raise TaskNotFound(cleaning.one_line(cleaning.clean(named))[:100], closest, self._titles(closest))

    def _titles(self, ids: Sequence[str]) -> str:
        tasks = ((id_, self.task(id_) or Task()) for id_ in ids[:MOST_NAMED])
        return ", ".join(f"{id_} ({cleaning.one_line(cleaning.clean(task.title))[:60]})" for id_, task in tasks)


def words_of(title: str) -> str:
    """A title as it is looked for."""
    return " ".join(title.casefold().split())
