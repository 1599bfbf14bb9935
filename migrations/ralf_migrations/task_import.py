"""Makes ralf's tasks of another tool's: which are new, which have changed there, and what they wait for.

A task that was imported says in its file where it came from (`imported_from: beads:bd-a1b2`) and how each field stood
there (`imported_as`, short sums): what changed there and not here is taken, what changed on both sides stays as it is
here, and is reported. A second import of the same list changes nothing. A task that ended here is never opened again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from ralf.redact import redactor_for
from ralf.tasks import store
from ralf.tasks.model import Task, TaskState
from ralf.tasks.records import MOST_CHANGES
from ralf.tasks.store import Tasks
from ralf.tasks.writing import Writer
from ralf.text.cleaning import one_line, trimmed
from ralf.text.frozen import dataclass, replace
from ralf_migrations import task_lists
from ralf_migrations.task_formats import ImportedTask

FROM, AS = "imported_from", "imported_as"
"""Keys of a task's file: whence it came, and how it stood there."""

BY = "import"
_MERGED = ("title", "text", "priority", "tags", "after", "checkpoint", "verify")
_SAID = ("summary", "reason", "progress")
_LAST = ("completed", "cancelled")
_SHOWN = 400  # characters of a circle


# ---- what an import comes to ----


class Step(NamedTuple):
    """What becomes of one task that was read.

    id       of the task here
    changes  fields of `Task`, and of its state `summary`, `reason` and `progress`; all of them for one that is new
    kept     what has changed there and here, and stays as it is here
    """

    listed: ImportedTask
    id: str
    is_new: bool
    changes: Mapping[str, Any]
    kept: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """What is updated of a task that was there."""
        return () if self.is_new else tuple(name for name in self.changes if name in (*_MERGED, "status"))

    @property
    def what(self) -> str:
        """`added`, `updated` or `unchanged`."""
        return "added" if self.is_new else "updated" if self.fields else "unchanged"


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import comes to.

    steps     in an order in which each task comes after those that it waits for
    problems  dependencies that were left out, and tasks that could not be updated
    files     that were read, each with its kind: `beads: .beads/issues.jsonl`
    notes     what was left out or read in another way than it stands there
    """

    steps: tuple[Step, ...] = ()
    problems: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    dry_run: bool = False

    def those(self, what: str) -> tuple[Step, ...]:
        """The tasks that were `added`, `updated` or are `unchanged`."""
        return tuple(one for one in self.steps if one.what == what)

    @property
    def commands(self) -> list[str]:
        """What the list brings to verify tasks with."""
        return list(dict.fromkeys(one.changes["verify"] for one in self.steps if one.changes.get("verify")))

    @property
    def _counts(self) -> dict[str, int]:
        return {what: len(self.those(what)) for what in ("added", "updated", "unchanged")}

    def lines(self) -> list[str]:
        """All of it as lines for a person; tasks that did not change are only counted."""
        told = [*self.files]
        for one in self.steps:
            task = one.listed.task
            kept = f"{', '.join(one.kept)} changed here and there: kept as here" if one.kept else ""
            about = [one.listed.key, task.status] if one.is_new else [", ".join(one.fields), kept]
            if one.what != "unchanged" or kept:
                told.append(f"{one.what:8} {one.id}  {task.title}  ({'; '.join(filter(None, about))})")
        told += [f"problem: {one}" for one in self.problems]
        told += [f"note: {one}" for one in self.notes]
        told += [f"comes with the list, and runs only if your configuration allows it: {one}" for one in self.commands]
        counts = ", ".join(f"{count:,} {what}" for what, count in self._counts.items())
        return [*told, f"{counts}{' (dry run: nothing was changed)' if self.dry_run else ''}"]

    def tree(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        tasks: list[dict[str, Any]] = []
        for one in self.steps:
            task = one.listed.task
            about: dict[str, Any] = {"title": task.title, "what": one.what, "status": task.status, "fields": one.fields}
            about |= {"origin": one.listed.key, "id": one.id, "kept": one.kept}
            tasks.append({name: value for name, value in about.items() if value})
        told = {name: getattr(self, name) for name in ("dry_run", "files", "problems", "notes", "commands")}
        return {**told, **self._counts, "tasks": tasks}


def import_tasks(
    path: str | os.PathLike[str], *, dry_run: bool = False, root: str | os.PathLike[str] | None = None
) -> ImportReport:
    """Take over the tasks of another tool's list, or of all lists in a folder; see `task_lists.read_lists`.

    It is planned while nobody else writes, and who imports at the same time waits. What a killed import has not written
    the next one adds.
    """
    lists, notes = task_lists.read_lists(os.fspath(path))
    files = tuple(f"{one.origin}: {one.where}" for one in lists)
    notes += [note for one in lists for note in one.notes]
    tasks = store.at(root)
    if not dry_run:
        tasks.project.prepare()
    found = _without_secrets(tasks, [task for one in lists for task in one.found.values()])
    first: ImportReport | None = None

    def work(writer: Writer) -> ImportReport:
        nonlocal first
        states = writer.book.states(writer.book.ordered("true"))
        plan = plan_import(found, states.values())
        _write(writer, plan.steps, states)
        first = first or plan  # done once more where the index was torn, it finds its own tasks
        return first

    plan = plan_import(found, tasks.list().tasks) if dry_run else tasks.write(work)
    said = [body for step in plan.steps for body in _said(step)]
    if said and not dry_run:  # in one write with the files each record would look at all of them again
        tasks.write(lambda writer: [writer.append(kind, by, **values) for kind, by, values in said])
    return replace(plan, files=files, notes=tuple(notes), dry_run=dry_run)


def _without_secrets(tasks: Tasks, found: Iterable[ImportedTask]) -> list[ImportedTask]:
    """The tasks as they may be stored. Nothing is made: a project without a store has nothing to compare them with."""
    if not tasks.project.owner.key:
        return list(found)
    redact = redactor_for(tasks.project).text

    def cleaned(one: ImportedTask) -> ImportedTask:
        said: dict[str, Any] = {name: redact(getattr(one, name)) for name in _SAID}
        texts = ("title", "text", "verify", "created_by")
        fields: dict[str, Any] = {name: redact(getattr(one.task, name)) for name in texts}
        tags = tuple(dict.fromkeys(map(redact, one.task.tags)))
        return replace(one, task=replace(one.task, **fields, tags=tags), **said)

    return list(map(cleaned, found))


def _write(writer: Writer, steps: Iterable[Step], there: Mapping[str, TaskState]) -> None:
    """Write the files of tasks, in the order of the list."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    made = []
    for step in steps:
        values = {name: value for name, value in step.changes.items() if name not in _SAID}
        if step.is_new:
            made.append(writer.new_file(Task(**{"id": step.id, "created": now, **values})))
        elif values:
            if "extra" in values:
                extra = {**there[step.id].task.extra, **values["extra"]}
                values["extra"] = {name: value for name, value in extra.items() if value != ""}
            made.append(writer.change_of(step.id, **values))
    for start in range(0, len(made), MOST_CHANGES):
        writer.append("seen", changes=made[start : start + MOST_CHANGES])


def _said(step: Step) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What is said of a task, which stands in no file: records, as `Writer.append` takes them."""
    records = (
        ("summary", "done", BY, "summary"),
        ("reason", "fail", BY, "reason"),
        ("progress", "progress", "", "text"),
    )
    for name, kind, by, key in records:
        if said := step.changes.get(name, ""):
            yield kind, by, {"task": step.id, key: said}


# ---- the plan ----


def plan_import(tasks: Iterable[ImportedTask], known: Iterable[TaskState]) -> ImportReport:
    """What an import of these tasks comes to; pure. A task that was deleted there is not added, only cancelled."""
    states = sorted(known, key=lambda one: (one.task.status != "cancelled", len(one.task.id), one.task.id))
    there = {state.task.id: state for state in states}
    ids = {str(state.task.extra[FROM]): state.task.id for state in states if FROM in state.task.extra}
    problems: list[str] = []
    taken: dict[str, ImportedTask] = {}
    gone: set[str] = set()
    used = set(there)
    for listed in tasks:
        key = listed.key
        if key in ids and (state := there.get(ids[key])) is not None and _is_another(listed, state):
            del ids[key]
        if listed.is_deleted:
            gone.add(key)
        elif key not in ids:
            ids[key] = _id_of(key, used, there)
            used.add(ids[key])
        if key in ids:
            taken[key] = listed
    waits = _waits(taken, ids, gone, problems)
    old = {id_: list(state.task.after) for id_, state in there.items()}
    new = {ids[key]: [ids[one] for one in after] for key, after in waits.items()}
    kept = {id_: list(after) for id_, after in new.items()}
    keys = {id_: key for key, id_ in ids.items()}

    def left_out(one: str, other: str, _: Sequence[str]) -> None:
        if other in kept.get(one, ()):
            kept[one].remove(other)
            problems.append(f"{keys[one]}: waits for {other}: left out, it closes a circle with tasks here")

    both = {**old, **{id_: [*dict.fromkeys((*after, *old.get(id_, ())))] for id_, after in new.items()}}
    _in_order(both, left_out, lambda one, other: other in new.get(one, ()) and other not in old.get(one, ()))
    steps = []
    for key in waits:
        listed, id_ = taken[key], ids[key]
        changes, conflicts = _changes(listed, tuple(new[id_]), there.get(id_), problems)
        changes |= {"after": tuple(kept[id_])} if "after" in changes else {}
        steps.append(Step(listed, id_, id_ not in there, changes, conflicts))
    return ImportReport(tuple(steps), tuple(problems))


def _id_of(key: str, used: set[str], there: Mapping[str, TaskState]) -> str:
    """An id made of the key alone, so that two clones that import one list make the same tasks; longer where another
    task has it, such as one that ended and whose number was given anew. One that has lost its `imported_from` is known
    by its id.
    """
    digits = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
    ids = (f"TASK-{digits[:length]}" for length in range(7, 65))
    return next(one for one in ids if one not in used or (one in there and FROM not in there[one].task.extra))


# ---- what waits for what ----


def _waits(
    taken: Mapping[str, ImportedTask], ids: Mapping[str, str], gone: set[str], problems: list[str]
) -> dict[str, list[str]]:
    """For each task the keys that it waits for, in an order: as it says there; its parts; what the whole that it is a
    part of waits for. What closes a circle is left out.
    """
    said: dict[str, list[str]] = {}
    parents: dict[str, str] = {}
    for key, listed in taken.items():
        wanted = [f"{listed.origin}:{one}" for one in dict.fromkeys(listed.task.after)]
        said[key] = [one for one in wanted if one in ids and one not in gone]
        for one in wanted:
            if one not in said[key]:
                what = "was deleted there" if one in gone else "is not in the list"
                problems.append(f"{key}: waits for {one}, which {what}: left out")
        parent = f"{listed.origin}:{listed.parent}"
        if parent in taken and parent not in (key, *gone):
            parents[key] = parent
    above = {key: _above(parents, key) for key in parents}
    waits = {key: dict.fromkeys(after) for key, after in said.items()}
    for key, wholes in above.items():
        waits[wholes[0]] |= {key: None}
        for one in wholes:
            waits[key] |= {other: None for other in said[one] if one not in above.get(other, ())}

    def left_out(one: str, other: str, circle: Sequence[str]) -> None:
        if other in said.get(one, ()):
            shown = trimmed(" → ".join((*circle, circle[0])), _SHOWN)
            problems.append(f"{one}: waits for {other}: left out, it closes a circle: {shown}")

    graph = {key: list(after) for key, after in waits.items()}
    order = _in_order(graph, left_out, lambda one, other: other not in said.get(one, ()))
    return {key: graph[key] for key in order if key in taken}


def _above(parents: Mapping[str, str], key: str) -> list[str]:
    """The wholes that a task is a part of, the nearest first; a circle of them ends somewhere."""
    found: list[str] = []
    while key in parents and parents[key] not in found:
        key = parents[key]
        found.append(key)
    return found


def _in_order(
    waits: dict[str, list[str]],
    left_out: Callable[[str, str, Sequence[str]], None],
    may_go: Callable[[str, str], bool],
) -> list[str]:
    """The keys in their order, but each after those that it waits for. Of each circle one edge goes: one that may go,
    else the one that closes it; `left_out` is told of it, and of the circle's keys.
    """
    order: dict[str, None] = {}
    for start in waits:
        way = {start: iter(list(waits[start]))} if start not in order else {}
        while way:
            key = next(reversed(way))
            other = next((one for one in way[key] if one not in order), None)
            if other is None:
                order[key] = None
                del way[key]
            elif other not in way:
                way[other] = iter(list(waits.get(other, ())))
            else:
                keys = list(way)
                circle = keys[keys.index(other) :]
                edges = ((key, other), *pairwise(circle))
                one, gone = next((edge for edge in edges if may_go(*edge)), edges[0])
                waits[one].remove(gone)
                left_out(one, gone, circle)
                for later in keys[keys.index(one) + 1 :]:  # looked at again from where the edge was
                    del way[later]
    return list(order)


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


def _is_another(listed: ImportedTask, state: TaskState) -> bool:
    """Whether an id that ended here has been given to another task there, as numbers are that begin anew."""
    base = _base(state.task)
    changed = all(base.get(name) not in (None, _sum(getattr(listed.task, name))) for name in ("title", "text"))
    return changed and state.task.status in _LAST and listed.task.status not in _LAST


def _changes(
    listed: ImportedTask, after: tuple[str, ...], state: TaskState | None, problems: list[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What is to be written of a task, all of it for one that is new; and what has changed on both sides."""
    status = listed.task.status
    fields: dict[str, Any] = {name: getattr(listed.task, name) for name in _MERGED} | {"after": after}
    extra: dict[str, Any] = {FROM: listed.key, AS: _as(fields, status)}
    said = {name: getattr(listed, name) for name in _SAID}
    if state is None:
        about = {"status": status, "created": listed.task.created, "created_by": listed.task.created_by or BY}
        whole = {**fields, **about, **said, "extra": extra}
        return {name: value for name, value in whole.items() if value not in ("", (), False)}, ()
    if state.is_foreign:
        problems.append(f"{listed.key}: {state.task.id} is not trusted yet: unchanged (see: ralf trust)")
        return {}, ()
    here, base = state.task, _base(state.task)
    changes: dict[str, Any] = {}
    conflicts = []
    for name, value in fields.items():
        there, ours, before = _sum(value), _sum(getattr(here, name)), base.get(name, "")
        if there not in (before, ours):
            changes |= {name: value} if ours == before else {}
            conflicts += [name] if ours != before else []
    if _moves(status, here.status, base.get("status", "")):
        if state.claim is None:
            changes |= {"status": status, "summary": listed.summary, "reason": listed.reason}
        else:
            who = state.claim.by
            problems.append(f"{listed.key}: is {status} there, but {who} has {here.id}: its status stays")
            extra[AS] = _as(fields, base.get("status", ""))  # the next import sees it again
    elif status == here.status:  # this store may not have been told: another clone, or a killed import
        name = {"completed": "summary", "failed": "reason"}.get(status, "")
        changes |= {name: said[name]} if name and said[name] and not getattr(state, name) else {}
    new = {name: value for name, value in extra.items() if value != here.extra.get(name, "")}
    return {**changes, "extra": new} if new else changes, tuple(conflicts)


def _moves(there: str, here: str, base: str) -> bool:
    """Whether the status there is to be taken: never for a task that ended here, and where both sides have changed it
    only if it has ended there.
    """
    if here in _LAST or there in (here, base):
        return False
    return here == base or there in _LAST
