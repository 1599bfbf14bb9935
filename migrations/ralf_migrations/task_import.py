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
from itertools import islice, pairwise
from typing import Any, NamedTuple

from ralf.redact import redactor_for
from ralf.tasks import store
from ralf.tasks.model import Task, TaskState
from ralf.tasks.records import MOST_CHANGES
from ralf.tasks.store import Tasks
from ralf.tasks.writing import Writer
from ralf.text.cleaning import one_line
from ralf.text.frozen import dataclass
from ralf_migrations import task_lists
from ralf_migrations.task_formats import ImportedTask

FROM, AS, UNMET = "imported_from", "imported_as", "imported_after"
"""Keys of a task's file: whence it came, how it stood there, and what it waits for there that could not be found."""

BY = "import"
_MERGED = ("title", "text", "priority", "tags", "role", "after", "checkpoint", "verify")
_SAID = ("summary", "reason", "progress")
_LAST = ("completed", "cancelled")
_ALPHABET = "0123456789bcdfghjkmnpqrstvwxyz"
_MOST_PROBLEMS = 200
_DEEPEST = 20  # parts of parts
_SHOWN = 20  # tasks of a circle that are named
_ROUNDS, _STEPS = 20, 1_000  # looks for circles, and how far along each an edge that may go is looked for


# ---- what an import comes to ----


@dataclass(frozen=True, slots=True)
class Imported:
    """One task that was read.

    origin  `beads:bd-a1b2`
    id      of the task here
    what    `added`, `updated` or `unchanged`
    fields  what was updated; `kept`: what has changed there and here, and stays as it is here
    """

    origin: str = ""
    id: str = ""
    title: str = ""
    what: str = "unchanged"
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

    @property
    def _counts(self) -> dict[str, int]:
        return {what: len(self.those(what)) for what in ("added", "updated", "unchanged")}

    def lines(self) -> list[str]:
        """All of it as lines for a person; tasks that did not change are only counted."""
        told = [*self.files]
        for one in self.tasks:
            kept = f"{', '.join(one.kept)} changed here and there: kept as here" if one.kept else ""
            about = [one.origin, one.status] if one.what == "added" else [", ".join(one.fields), kept]
            if one.what != "unchanged" or kept:
                told.append(f"{one.what:8} {one.id}  {one.title}  ({'; '.join(filter(None, about))})")
        told += [f"problem: {one}" for one in self.problems]
        told += [f"note: {one}" for one in self.notes]
        told += [f"comes with the list, and runs only if your configuration allows it: {one}" for one in self.commands]
        counts = ", ".join(f"{count:,} {what}" for what, count in self._counts.items())
        return [*told, f"{counts}{' (dry run: nothing was changed)' if self.dry_run else ''}"]

    def tree(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        tasks = [{name: told for name in Imported.__slots__ if (told := getattr(one, name))} for one in self.tasks]
        rest = {name: list(getattr(self, name)) for name in ("files", "problems", "notes", "commands")}
        return {"dry_run": self.dry_run, **self._counts, "tasks": tasks, **rest}


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
        return _report(lists, plan_import(_without_secrets(tasks, lists.tasks), tasks.list().tasks), dry_run=True)
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
    names = ("title", "text", "verify", "role", "created_by", *_SAID)

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
    for name, kind, by, key in (("summary", "done", BY, "summary"), ("reason", "fail", BY, "reason")):
        if said := step.changes.get(name, ""):
            yield kind, by, {"task": step.id, key: said}
    if progress := step.changes.get("progress", ""):
        yield "progress", "", {"task": step.id, "text": progress}


def _report(lists: task_lists.TaskLists, plan: Plan, *, dry_run: bool) -> ImportReport:
    tasks = []
    for task, id_, changes in plan.steps:
        fields = tuple(name for name in changes if name in (*_MERGED, "status"))
        is_new = id_ in plan.new
        what = "added" if is_new else "updated" if fields else "unchanged"
        kept = plan.conflicts.get(id_, ())
        tasks.append(Imported(task.key, id_, task.title, what, task.status, () if is_new else fields, kept))
    more = len(plan.problems) - _MOST_PROBLEMS
    problems = (*plan.problems[:_MOST_PROBLEMS], *([f"{more:,} more problems"] if more > 0 else []))
    commands = dict.fromkeys(one.task.verify for one in plan.steps if one.task.verify and "verify" in one.changes)
    return ImportReport(lists.files, tuple(tasks), problems, lists.notes, tuple(commands)[:20], dry_run)


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
    problems   what was left out, and why
    """

    steps: list[Step] = field(default_factory=list)
    new: set[str] = field(default_factory=set)
    conflicts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def plan_import(tasks: Iterable[ImportedTask], known: Iterable[TaskState]) -> Plan:
    """What an import of these tasks comes to; pure. A task that was deleted there is not added, only cancelled."""
    states = sorted(known, key=lambda one: (one.task.status == "cancelled", one.task.id), reverse=True)
    there = {state.task.id: state for state in states}
    ids = {str(state.task.extra[FROM]): state.task.id for state in states if FROM in state.task.extra}
    made = Plan()
    named: dict[str, str] = {}  # the keys of the list, and those that they have here
    taken: dict[str, ImportedTask] = {}
    gone: set[str] = set()
    for task in tasks:
        key = named[task.key] = task.key
        if task.is_deleted:
            gone.add(key)
            if key not in ids:
                continue
        elif (state := there.get(ids.get(key, ""))) is not None and _is_another(task, state):
            task = replace(task, origin_id=f"{task.origin_id}+{_digest(task.title)}")
            named[key] = task.key
        taken[task.key] = task
    used = set(there)
    for key in taken:
        if key not in ids:
            ids[key] = _id_of(key, used, there)
            used.add(ids[key])
    waits, unmet = _waits(taken, named, ids, gone, made)
    old = {id_: list(state.task.after) for id_, state in there.items()}
    new = {ids[key]: [ids[one] for one in after] for key, after in waits.items()}
    kept = {id_: list(after) for id_, after in new.items()}
    keys = {id_: key for key, id_ in ids.items()}

    def left_out(one: str, other: str, _: Sequence[str]) -> None:
        if other in kept.get(one, ()):
            kept[one].remove(other)
            made.problems.append(f"{keys[one]}: waits for {other}: left out, it closes a circle with tasks here")

    both = {**old, **{id_: [*dict.fromkeys((*after, *old.get(id_, ())))] for id_, after in new.items()}}
    _in_order(both, left_out, lambda one, other: other in new.get(one, ()) and other not in old.get(one, ()))
    for key in waits:
        task, id_ = taken[key], ids[key]
        changes = _changes(task, tuple(new[id_]), unmet[key], there.get(id_), made)
        changes |= {"after": tuple(kept[id_])} if "after" in changes else {}
        made.new |= {id_} - there.keys()
        made.steps.append(Step(task, id_, changes))
    return made


def _id_of(key: str, used: set[str], there: Mapping[str, TaskState]) -> str:
    """An id made of the key alone, so that two clones that import one list make the same tasks; longer where another
    task has it. One that has lost its `imported_from` is known by its id.
    """
    number = int.from_bytes(hashlib.sha256(key.encode("utf-8", "replace")).digest()[:16])
    digits = ""
    while number:
        number, digit = divmod(number, len(_ALPHABET))
        digits += _ALPHABET[digit]
    ids = (f"TASK-{digits[:length]}" for length in range(6, 21))
    return next(one for one in ids if one not in used or (one in there and FROM not in there[one].task.extra))


# ---- what waits for what ----


def _waits(
    taken: Mapping[str, ImportedTask], named: Mapping[str, str], ids: Mapping[str, str], gone: set[str], made: Plan
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """For each task the keys that it waits for, in an order, and those that could not be found: as it says there; its
    parts; what the whole that it is a part of waits for. What closes a circle is left out.
    """
    said: dict[str, list[str]] = {}
    unmet: dict[str, list[str]] = {}
    for key, task in taken.items():
        wanted = dict.fromkeys(named.get(f"{task.origin}:{one}", f"{task.origin}:{one}") for one in task.after)
        said[key] = [one for one in wanted if one in ids and one not in gone]
        unmet[key] = [one for one in wanted if one not in ids]
        for one in wanted:
            if one not in said[key]:
                what = "was deleted there" if one in gone else "is not in the list"
                made.problems.append(f"{key}: waits for {one}, which {what}: left out")

    def reported(one: str, other: str, circle: Sequence[str]) -> None:
        way = circle if len(circle) < _SHOWN else [*circle[: _SHOWN // 2], "…", *circle[1 - _SHOWN // 2 :]]
        shown = " → ".join((*way, circle[0]))
        made.problems.append(f"{one}: waits for {other}: left out, it closes a circle: {shown}")

    _in_order(said, reported)
    parents = {}
    for key, task in taken.items():
        parent = named.get(f"{task.origin}:{task.parent}", "")
        if parent in taken and parent not in (key, *gone):
            parents[key] = parent
    whole = {key: dict.fromkeys(after) for key, after in said.items()}
    for key in parents:
        above = _above(parents, key)
        if key not in _above(parents, above[0]):
            whole[above[0]] |= {key: None}
        for one in above:
            whole[key] |= {other: None for other in said[one] if one not in _above(parents, other)}
    waits = {key: [*after] for key, after in whole.items()}
    order = _in_order(waits, lambda one, other, circle: None, lambda one, other: other not in said.get(one, ()))
    return {key: waits[key] for key in order if key in taken}, unmet


def _above(parents: Mapping[str, str], key: str) -> list[str]:
    """The wholes that a task is a part of, the nearest first; a circle of them ends somewhere."""
    found: list[str] = []
    while len(found) < _DEEPEST and key in parents and parents[key] not in found:
        key = parents[key]
        found.append(key)
    return found


def _in_order(
    waits: dict[str, list[str]],
    left_out: Callable[[str, str, Sequence[str]], None],
    may_go: Callable[[str, str], bool] | None = None,
) -> list[str]:
    """The keys in their order, but each after those that it waits for.

    left_out  told of each edge that goes, as it closes a circle, and of the circle's keys
    may_go    which edge of a circle is the one that goes; where none may, and where it is not said, the closing one
    """
    for round_ in range(_ROUNDS, -1, -1):
        order, circles = _walked(waits)
        for circle in circles:
            ways = pairwise((*reversed(circle), circle[-1])) if may_go is not None and round_ else ()
            edges = ((one, other) for other, one in islice(ways, _STEPS) if may_go and may_go(one, other))
            one, other = next(edges, (circle[-1], circle[0]))
            if other in waits[one]:
                waits[one].remove(other)
                left_out(one, other, circle)
        if not circles:
            break
    return order


def _walked(waits: Mapping[str, Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """The keys, each after those that it waits for, as far as that is possible, and the circles that forbid it."""
    order: dict[str, None] = {}
    circles: list[list[str]] = []
    for start in waits:
        way = {start: iter(waits[start])} if start not in order else {}
        while way:
            key = next(reversed(way))
            other = next((one for one in way[key] if one not in order), None)
            if other is None:
                order[key] = None
                del way[key]
            elif other in way:
                keys = list(way)
                circles.append(keys[keys.index(other) :])
            else:
                way[other] = iter(waits.get(other, ()))
    return list(order), circles


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
    parts = (part.partition("=") for part in str(task.extra.get(AS, "")).split(" "))
    return {name: value for name, _, value in parts if value}


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
        made.problems.append(f"{task.key}: {state.task.id} is not trusted yet: unchanged (see: ralf trust)")
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
            made.problems.append(f"{task.key}: is {task.status} there, but {who} has {here.id}: its status stays")
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
