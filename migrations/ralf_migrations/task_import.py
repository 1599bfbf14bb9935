"""Makes ralf's tasks of another tool's: which are new, which have changed there, and what they wait for.

A task that was imported says in its file where it came from (`imported_from: beads:bd-a1b2`) and how each field stood
there (`imported_as`, short sums): what changed there and not here is taken, what changed on both sides stays as it is
here, and is reported. A second import of the same list changes nothing. A task that ended here is never opened again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass as mutable, field, replace
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from ralf.redact import redactor_for
from ralf.tasks import store
from ralf.tasks.model import Task, TaskState
from ralf.tasks.records import MOST_CHANGES
from ralf.tasks.store import Tasks
from ralf.tasks.writing import Writer
from ralf.text.cleaning import one_line
from ralf.text.frozen import dataclass
from ralf_migrations import task_lists
from ralf_migrations.task_kinds import MAX_AFTER, ImportedTask

FROM, AS, UNMET = "imported_from", "imported_as", "imported_after"
"""Keys of a task's file: whence it came, how it stood there, and what it waits for there that could not be found."""

BY = "import"

_MERGED = ("title", "text", "priority", "tags", "role", "after", "checkpoint", "verify")

_SAID = ("summary", "reason", "progress")

_LAST = ("completed", "cancelled")

_MOST_DERIVED = 200_000  # dependencies that parts have from their wholes

_MOST_PROBLEMS = 200

_DEEPEST = 20  # parts of parts

_ALPHABET = "0123456789bcdfghjkmnpqrstvwxyz"

_SHOWN = 20  # tasks of a circle that are named
_MOST_WORK, _LEAST_ROUNDS = 20_000_000, 20  # tasks and dependencies that are looked at for circles


# ---- what an import comes to ----


@dataclass(frozen=True, slots=True)
class Imported:
    """One task that was read.

    origin  `beads:bd-a1b2`
    id      of the task here
    fields  what was updated; `kept`: what has changed there and here, and stays as it is here
    """

    origin: str = ""
    id: str = ""
    title: str = ""
    what: Literal["added", "updated", "unchanged"] = "unchanged"
    status: str = ""
    fields: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import came to.

    files     that were read, each with its kind
    problems  dependencies that were left out, and tasks that could not be updated
    notes     what was read in another way than it stands there
    commands  that the list brings to verify tasks with: they run only where the configuration allows it
    """

    files: tuple[str, ...] = ()
    tasks: tuple[Imported, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    dry_run: bool = False

    def those(self, what: str) -> tuple[Imported, ...]:
        """The tasks that were `added`, `updated` or are `unchanged`."""
        return tuple(one for one in self.tasks if one.what == what)

    def lines(self) -> list[str]:
        """All of it as lines for a person; tasks that did not change are only counted."""
        told = [*self.files]
        for one in self.tasks:
            if one.what == "added":
                told.append(f"added    {one.id}  {one.title}  ({one.origin}, {one.status})")
            elif one.what == "updated" or one.kept:
                kept = f"{', '.join(one.kept)} changed here and there: kept as here" if one.kept else ""
                told.append(
                    f"{one.what:8} {one.id}  {one.title}  ({'; '.join(filter(None, [', '.join(one.fields), kept]))})"
                )
        told += [f"problem: {one}" for one in self.problems]
        told += [f"note: {one}" for one in self.notes]
        told += [f"comes with the list, and runs only if your configuration allows it: {one}" for one in self.commands]
        counts = ", ".join(f"{len(self.those(what)):,} {what}" for what in ("added", "updated", "unchanged"))
        return [*told, f"{counts}{' (dry run: nothing was changed)' if self.dry_run else ''}"]

    def tree(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        tasks = [{name: getattr(one, name) for name in _SHOWN_FIELDS if getattr(one, name)} for one in self.tasks]
        counts = {what: len(self.those(what)) for what in ("added", "updated", "unchanged")}
        rest = {name: list(getattr(self, name)) for name in ("files", "problems", "notes", "commands")}
        return {"dry_run": self.dry_run, **counts, "tasks": tasks, **rest}


_SHOWN_FIELDS = ("origin", "id", "title", "what", "status", "fields", "kept")


def import_tasks(
    path: str | os.PathLike[str], *, dry_run: bool = False, root: str | os.PathLike[str] | None = None
) -> ImportReport:
    """Take over the tasks of another tool's list, or of all lists in a folder; see `task_lists.read_lists`.

    It is planned while nobody else writes, and who imports at the same time waits. What a killed import has not written
    the next one adds.
    """
    lists = task_lists.read_lists(os.fspath(path))
    tasks = store.at(root)
    if dry_run:
        plan = plan_import(_without_secrets(tasks, lists.tasks), tasks.list().tasks)
        return _report(lists, plan, dry_run=True)
    tasks.project.prepare()
    clean = _without_secrets(tasks, lists.tasks)
    first: Plan | None = None

    def work(writer: Writer) -> Plan:
        nonlocal first
        states = [*writer.book.states(writer.book.ordered("true")).values()]
        plan = plan_import(clean, states)
        _write(writer, plan, {state.task.id: state for state in states})
        first = first or plan  # done once more where the index was torn, it finds its own tasks
        return first

    plan = tasks.write(work)
    said = [body for step in plan.steps for body in _said(step)]
    if said:  # a write of their own: in one that changes many files each record would look at all of them again
        tasks.write(lambda writer: [writer.append(kind, by, **values) for kind, by, values in said])
    return _report(lists, plan, dry_run=False)


def _without_secrets(tasks: Tasks, found: Iterable[ImportedTask]) -> list[ImportedTask]:
    """The tasks as they may be stored. Nothing is made: a project without a store has nothing to compare them with."""
    if not tasks.project.owner.key:
        return list(found)
    redact = redactor_for(tasks.project).text
    names = ("title", "text", "verify", "role", "created_by", "summary", "reason", "progress")

    def cleaned(one: ImportedTask) -> ImportedTask:
        values: dict[str, Any] = {name: redact(value) for name in names if (value := getattr(one, name))}
        return replace(one, **values, tags=tuple(dict.fromkeys(map(redact, one.tags))))

    return list(map(cleaned, found))


def _write(writer: Writer, plan: Plan, there: Mapping[str, TaskState]) -> None:
    """Write the files of tasks, in the order of the list."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    made = []
    for _, id_, changes in plan.steps:
        values = {name: value for name, value in changes.items() if name not in _SAID}
        if id_ in plan.new:
            made.append(writer.new_file(Task(**{"id": id_, "created": now, **values})))
        elif values:
            if "extra" in values:
                extra = {**there[id_].task.extra, **values["extra"]}
                values["extra"] = {name: value for name, value in extra.items() if value != ""}
            made.append(writer.change_of(id_, **values))
    for start in range(0, len(made), MOST_CHANGES):
        writer.append("seen", changes=made[start : start + MOST_CHANGES])


def _said(step: Step) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What is said of a task, which stands in no file: records, as `Writer.append` takes them."""
    if summary := step.changes.get("summary", ""):
        yield "done", BY, {"task": step.id, "summary": summary}
    if reason := step.changes.get("reason", ""):
        yield "fail", BY, {"task": step.id, "reason": reason}
    if progress := step.changes.get("progress", ""):
        yield "progress", "", {"task": step.id, "text": progress}


def _report(lists: task_lists.TaskLists, plan: Plan, *, dry_run: bool) -> ImportReport:
    tasks = []
    for task, id_, changes in plan.steps:
        fields = tuple(name for name in changes if name in (*_MERGED, "status"))
        is_new = id_ in plan.new
        what: Literal["added", "updated", "unchanged"] = "added" if is_new else "updated" if fields else "unchanged"
        told = () if is_new else fields
        tasks.append(Imported(task.key, id_, task.title, what, task.status, told, plan.conflicts.get(id_, ())))
    more = (f"{plan.more:,} more problems",) if plan.more else ()
    commands = dict.fromkeys(one.task.verify for one in plan.steps if one.task.verify and "verify" in one.changes)
    return ImportReport(lists.files, tuple(tasks), (*plan.problems, *more), lists.notes, tuple(commands)[:20], dry_run)


# ---- the plan ----


class Step(NamedTuple):
    """What becomes of one imported task: fields of `Task`, and of its state `summary`, `reason` and `progress`."""

    task: ImportedTask
    id: str
    changes: dict[str, Any]


@mutable(slots=True)
class Plan:
    """What an import would do, in an order in which each task comes after those that it waits for.

    new        ids of tasks that are not there yet
    conflicts  by id, the fields that have changed on both sides
    problems   what was left out, and why; `more`: how many more there are
    """

    steps: list[Step] = field(default_factory=list)
    new: set[str] = field(default_factory=set)
    conflicts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    more: int = 0

    def problem(self, what: str) -> None:
        """Report what was left out."""
        if len(self.problems) >= _MOST_PROBLEMS:
            self.more += 1
        else:
            self.problems.append(what)


def plan_import(tasks: Iterable[ImportedTask], known: Iterable[TaskState]) -> Plan:
    """What an import of these tasks comes to; pure. A task that was deleted there is not added, only cancelled."""
    return _Planner(tasks, known).plan()


class _Planner:
    def __init__(self, tasks: Iterable[ImportedTask], known: Iterable[TaskState]) -> None:
        states = sorted(known, key=lambda one: (one.task.status == "cancelled", one.task.id), reverse=True)
        self.made = Plan()
        self.there = {state.task.id: state for state in states}
        self.ids = {str(state.task.extra[FROM]): state.task.id for state in states if FROM in state.task.extra}
        self.now: dict[str, str] = {}  # the key of a task whose id has been given to another one there
        self.taken: dict[str, ImportedTask] = {}
        self.gone: set[str] = set()
        for task in tasks:
            key = task.key
            if task.is_deleted:
                self.gone.add(key)
                if key not in self.ids:
                    continue
            elif (state := self.there.get(self.ids.get(key, ""))) is not None and _is_another(task, state):
                task = replace(task, origin_id=f"{task.origin_id}+{_digest(task.title)}")
                self.now[key] = task.key
            self.taken[task.key] = task
        used = set(self.there)
        for key in self.taken:
            if key not in self.ids:
                self.ids[key] = self._id_of(key, used)
                used.add(self.ids[key])

    def _id_of(self, key: str, used: set[str]) -> str:
        """An id made of the key alone, so that two clones that import one list make the same tasks; longer where
        another task has it. One that has lost its `imported_from` is known by its id.
        """
        number = int.from_bytes(hashlib.sha256(key.encode("utf-8", "replace")).digest()[:16])
        digits = ""
        while number:
            number, digit = divmod(number, len(_ALPHABET))
            digits += _ALPHABET[digit]
        ids = [f"TASK-{digits[:length]}" for length in range(6, 21)]
        lost = (one for one in ids if one not in used or (one in self.there and FROM not in self.there[one].task.extra))
        return next(lost)

    def plan(self) -> Plan:
        waits, order = self._waits()
        old = {id_: list(state.task.after) for id_, state in self.there.items()}
        new = {self.ids[key]: [self.ids[one] for one in waits[key]] for key in order}
        kept = {id_: list(after) for id_, after in new.items()}

        def leave_out(circle: list[Edge]) -> list[Edge]:
            """Of a circle of what the list says with what somebody has changed here, the list's part."""
            bad = [(one, other) for one, other in circle if other in new.get(one, ()) and other not in old.get(one, ())]
            for one, other in bad:
                kept[one].remove(other)
                key = next(key for key, id_ in self.ids.items() if id_ == one)
                self.made.problem(f"{key}: waits for {other}: left out, it closes a circle with tasks here")
            return bad

        _in_order(
            {**old, **{id_: [*dict.fromkeys((*after, *old.get(id_, ())))] for id_, after in new.items()}}, leave_out
        )
        for key in order:
            task, id_ = self.taken[key], self.ids[key]
            unmet = [one for one in self._keys(task) if one not in self.ids]
            changes = _changes(task, tuple(new[id_]), unmet, self.there.get(id_), self.made)
            if "after" in changes:
                changes["after"] = tuple(kept[id_])
            self.made.new |= {id_} - self.there.keys()
            self.made.steps.append(Step(task, id_, changes))
        return self.made

    # ---- what waits for what ----

    def _keys(self, task: ImportedTask) -> list[str]:
        keys = (f"{task.origin}:{one}" for one in task.after)
        return list(dict.fromkeys(self.now.get(key, key) for key in keys))

    def _waits(self) -> tuple[dict[str, list[str]], list[str]]:
        """For each task the keys that it waits for, and an order: as it says there; its parts; what the whole that it
        is a part of waits for. What cannot be found is reported, and so is what closes a circle; both are left out.
        """
        said: dict[str, list[str]] = {}
        for key, task in self.taken.items():
            said[key] = []
            for one in self._keys(task):
                if one in self.ids and one not in self.gone:
                    said[key].append(one)
                else:
                    what = "was deleted there" if one in self.gone else "is not in the list"
                    self.made.problem(f"{key}: waits for {one}, which {what}: left out")
        places = {key: place for place, key in enumerate(self.taken)}

        def close(circle: list[Edge]) -> list[Edge]:
            """The list's own last dependency of a circle, as seen from its first task."""
            first = min(range(len(circle)), key=lambda place: places[circle[place][0]])
            way = [*circle[first:], *circle[:first]]
            key, other = way[-1]
            keys = [one for one, _ in way]
            keys = keys if len(keys) < _SHOWN else [*keys[: _SHOWN // 2], "…", *keys[1 - _SHOWN // 2 :]]
            shown = " → ".join((*keys, other))
            self.made.problem(f"{key}: waits for {other}: left out, it closes a circle: {shown}")
            return [(key, other)]

        _in_order(said, close)
        derived = self._derived(said)
        whole = {key: list(dict.fromkeys([*said[key], *derived.get(key, ())]))[:MAX_AFTER] for key in said}
        # of what wholes and parts add, nothing counts that closes a circle
        order = _in_order(whole, lambda circle: [(key, other) for key, other in circle if other not in said[key]])
        return whole, [key for key in order if key in self.taken]

    def _derived(self, waits: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """A whole waits for its parts, and a part for what the whole waits for, but for other parts."""
        parents: dict[str, str] = {}
        for key, task in self.taken.items():
            parent = f"{task.origin}:{task.parent}"
            parent = self.now.get(parent, parent)
            if parent in self.taken and parent != key and parent not in self.gone:
                parents[key] = parent
        outer = {
            whole: [one for one in waits[whole] if whole not in _above(parents, one)]
            for whole in dict.fromkeys(parents.values())
        }
        derived: dict[str, list[str]] = {}
        count = 0
        for key, parent in parents.items():
            if key not in _above(parents, parent):
                derived.setdefault(parent, []).append(key)
            for above in _above(parents, key):
                count += len(outer[above])
                if count <= _MOST_DERIVED:
                    derived.setdefault(key, []).extend(outer[above])
        if count > _MOST_DERIVED:
            what = f"more than {_MOST_DERIVED:,} dependencies of wholes: not all of their parts wait for them"
            self.made.problem(what)
        return derived


def _above(parents: Mapping[str, str], key: str) -> list[str]:
    """The wholes that a task is a part of, the nearest first; a circle of them ends somewhere."""
    found: list[str] = []
    while len(found) < _DEEPEST and key in parents and parents[key] not in found:
        key = parents[key]
        found.append(key)
    return found


Edge = tuple[str, str]
"""Who waits, and for whom."""


def _in_order(waits: dict[str, list[str]], leave_out: Callable[[list[Edge]], list[Edge]]) -> list[str]:
    """The keys in their order, but each after those that it waits for.

    leave_out  which edges of a circle are to go; [] for none: then the circle stays. `waits` is without them then

    In a list with so many circles that they cannot be looked at one by one, only what waits for an earlier task stays.
    """
    size = sum(map(len, waits.values())) + len(waits)
    places = {key: place for place, key in enumerate(waits)}
    for rounds in range(max(_LEAST_ROUNDS, _MOST_WORK // max(size, 1)), -1, -1):
        sorter = TopologicalSorter(waits)
        try:
            sorter.prepare()
            break
        except CycleError as error:
            keys = error.args[1]  # each of them is waited for by the next one
            gone = leave_out([(key, other) for other, key in reversed(list(pairwise(keys)))]) if rounds else []
            if rounds and not gone:
                return list(waits)
            for key, other in gone:
                waits[key].remove(other)
            if not rounds:
                for key, others in waits.items():
                    waits[key] = [other for other in others if places.get(other, -1) < places[key]]
                return list(waits)
    order: list[str] = []
    ready: list[tuple[int, str]] = []
    while sorter.is_active():
        for key in sorter.get_ready():
            heappush(ready, (places.get(key, -1), key))
        order.append(heappop(ready)[1])
        sorter.done(order[-1])
    return order


# ---- what changes ----


def _digest(text: str) -> str:
    return hashlib.sha256(one_line(text).encode("utf-8", "replace")).hexdigest()[:8]


def _sum(value: object) -> str:
    """A short sum of a field, the same for texts that differ in white space only; "" for no value."""
    if value in ("", (), False):
        return ""
    text = "\0".join(sorted(map(str, value))) if isinstance(value, tuple) else str(value)
    return _digest(text) if isinstance(value, (str, tuple)) else text


def _as(fields: Mapping[str, Any], status: str) -> str:
    """How the fields of a task stand there, as one line."""
    sums = {name: _sum(value) for name, value in fields.items()}
    return " ".join(f"{name}={value}" for name, value in {"status": status, **sums}.items() if value)


def _base(task: Task) -> dict[str, str]:
    """How the fields stood there at the last import; empty where nothing is known."""
    parts = str(task.extra.get(AS, "")).split(" ")
    return {name: value for name, _, value in (part.partition("=") for part in parts) if value}


def _is_another(task: ImportedTask, state: TaskState) -> bool:
    """Whether an id that ended here has been given to another task there, as numbers are that begin anew."""
    base = _base(state.task)
    changed = all(base.get(name) not in (None, _sum(getattr(task, name))) for name in ("title", "text"))
    return changed and state.task.status in _LAST and task.status not in _LAST


def _changes(
    task: ImportedTask, after: tuple[str, ...], unmet: Sequence[str], state: TaskState | None, made: Plan
) -> dict[str, Any]:
    """What is to be written of a task; all of it for one that is new."""
    fields: dict[str, Any] = {name: after if name == "after" else getattr(task, name) for name in _MERGED}
    extra: dict[str, Any] = {FROM: task.key, AS: _as(fields, task.status), UNMET: " ".join(unmet[:20])}
    if state is None:
        extra = {name: value for name, value in extra.items() if value}
        said = {name: getattr(task, name) for name in ("status", "created", *_SAID)}
        whole = {**fields, **said, "created_by": task.created_by or BY, "extra": extra}
        return {name: value for name, value in whole.items() if value not in ("", (), False)}
    if state.is_foreign:
        made.problem(f"{task.key}: {state.task.id} is not trusted yet: unchanged (see: ralf trust)")
        return {}
    here, base = state.task, _base(state.task)
    changes = {}
    conflicts = []
    for name, value in fields.items():
        there, ours = _sum(value), _sum(getattr(here, name))
        if there in (base.get(name, ""), ours):
            continue
        if ours == base.get(name, ""):
            changes[name] = value
        else:
            conflicts.append(name)
    if conflicts:
        made.conflicts[here.id] = tuple(conflicts)
    if _moves(task, here.status, base.get("status", "")):
        if state.claim is None:
            changes |= {"status": task.status, "summary": task.summary, "reason": task.reason}
        else:
            who = state.claim.by
            made.problem(f"{task.key}: is {task.status} there, but {who} has {here.id}: its status stays for now")
            extra[AS] = _as(fields, base.get("status", ""))  # the next import sees it again
    elif task.status == here.status:  # this store may not have been told: another clone, or a killed import
        name = {"completed": "summary", "failed": "reason"}.get(here.status, "")
        if name and not getattr(state, name) and getattr(task, name):
            changes[name] = getattr(task, name)
    new = {name: value for name, value in extra.items() if value != here.extra.get(name, "")}
    return {**changes, "extra": new} if new else changes


def _moves(task: ImportedTask, here: str, base: str) -> bool:
    """Whether the status there is to be taken: never for a task that ended here, and where both sides have changed it
    only if it has ended there.
    """
    if here in _LAST or task.status in (here, base):
        return False
    return here == base or task.status in _LAST
