"""Makes ralf's tasks of another tool's: which are new, which have changed there, and what they wait for.

A task that was imported says in its file where it came from (`imported_from: beads:bd-a1b2`) and how each field stood
there (`imported_as`, short sums): what changed there and not here is taken, what changed on both sides stays as it is
here, and is reported. A second import of the same list changes nothing. A task that ended here is never opened again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ralf import environment
from ralf.errors import UsageError
from ralf.redact import redactor_for
from ralf.storage import git_files
from ralf.tasks import store
from ralf.tasks.model import Task, TaskState
from ralf.tasks.records import MOST_CHANGES
from ralf.tasks.writing import Writer
from ralf.text.cleaning import one_line, trimmed
from ralf.text.frozen import dataclass, replace
from ralf_migrations import task_lists
from ralf_migrations.task_lists import ImportedTask

FROM, AS = "imported_from", "imported_as"
"""Keys of a task's file: whence it came, and how it stood there."""

BY = "import"
_MERGED = ("title", "text", "priority", "tags", "after", "checkpoint", "verify")
_SAID = {"summary": ("done", BY, "summary"), "reason": ("fail", BY, "reason"), "progress": ("progress", "", "text")}
"""What is said of a task, which stands in no file: the kind of its record, who writes it, and the key there."""

_LAST = ("completed", "cancelled")
_SHOWN, _MOST_CIRCLES = 400, 100  # characters of a circle; circles that are looked for one by one
_CLOSES = "left out, it closes a circle"
_NOTHING: tuple[object, ...] = ("", (), False)


# ---- what an import comes to ----


class Step(NamedTuple):
    """What becomes of one task that was read.

    id       of the task here
    changes  fields of `Task`, and what is said of it; all of them for one that is new
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

    def lines(self) -> list[str]:
        """All of it as lines for a person; tasks that did not change are only counted."""
        told = [*self.files]
        for one in self.steps:
            kept = f"{', '.join(one.kept)} changed here and there: kept as here" if one.kept else ""
            about = [one.listed.key, one.listed.task.status] if one.is_new else [", ".join(one.fields), kept]
            if one.what != "unchanged" or kept:
                told.append(f"{one.what:8} {one.id}  {one.listed.task.title}  ({'; '.join(filter(None, about))})")
        tree = self.tree()
        told += [f"problem: {one}" for one in self.problems]
        told += [f"note: {one}" for one in self.notes]
        allowed = "comes with the list, and does not run before you accept it (ralf task edit ID --verify 'COMMAND')"
        told += [f"{allowed}: {one}" for one in tree["commands"]]
        counts = ", ".join(f"{tree[what]:,} {what}" for what in ("added", "updated", "unchanged"))
        return [*told, f"{counts}{' (dry run: nothing was changed)' if self.dry_run else ''}"]

    def tree(self) -> dict[str, Any]:
        """All of it as plain values, for JSON; `commands`: what the list brings to verify tasks with."""
        tasks: list[dict[str, Any]] = []
        for one in self.steps:
            about: dict[str, Any] = {"id": one.id, "origin": one.listed.key, "title": one.listed.task.title}
            about |= {"what": one.what, "status": one.listed.task.status, "fields": one.fields, "kept": one.kept}
            tasks.append({name: value for name, value in about.items() if value})
        told = {name: getattr(self, name) for name in ("dry_run", "files", "problems", "notes")}
        commands = dict.fromkeys(one.changes["verify"] for one in self.steps if one.changes.get("verify"))
        counts = {what: len(self.those(what)) for what in ("added", "updated", "unchanged")}
        return {**told, "commands": list(commands), **counts, "tasks": tasks}


def import_tasks(
    path: str | os.PathLike[str], *, dry_run: bool = False, root: str | os.PathLike[str] | None = None
) -> ImportReport:
    """Take over the tasks of another tool's list, or of all lists in a folder; see `task_lists.read_lists`.

    It is planned while nobody else writes, and who imports at the same time waits. What a killed import has not written
    the next one adds.
    """
    tasks = store.at(root)
    # A project without a store has no secrets to compare them with, and a dry run makes none.
    has_key = not dry_run or bool(tasks.project.owner.key)
    lists, notes = task_lists.read_lists(
        os.fspath(path), lambda tree: redactor_for(tasks.project).tree(tree) if has_key else tree
    )
    is_foreign = _is_foreign(Path(path).expanduser())
    if not dry_run:
        tasks.project.prepare()
    found = [task for one in lists for task in one.found.values()]
    first: ImportReport | None = None

    def work(writer: Writer) -> ImportReport:
        nonlocal first
        states = writer.book.states(writer.book.ordered("true"))
        plan = plan_import(found, states.values())
        _write(writer, plan.steps, is_foreign=is_foreign)
        first = first or plan  # done once more where the index was torn, it finds its own tasks
        return first

    def say(writer: Writer) -> None:
        for step in plan.steps:
            for kind, by, key, text in ((*_SAID[name], step.changes.get(name)) for name in _SAID):
                if text:
                    writer.append(kind, by, task=step.id, **{key: text})

    plan = plan_import(found, tasks.list().tasks) if dry_run else tasks.write(work)
    if not dry_run and any(step.changes.get(name) for step in plan.steps for name in _SAID):
        tasks.write(say)  # in one write with the files each record would look at all of them again
    notes += [note for one in lists for note in one.notes]
    if is_foreign and any(step.changes for step in plan.steps):
        notes.append("nobody works on these tasks before you have read and accepted them: ralf trust")
    files = tuple(f"{one.origin}: {one.where}" for one in lists)
    return replace(plan, files=files, notes=tuple(notes), dry_run=dry_run)


def _is_foreign(base: Path) -> bool:
    """Whether nobody has accepted what lists say: git may have brought one, or no person imports them."""
    lists = task_lists.lists_of(base) if base.is_dir() else [base]
    return environment.is_agent() or any(git_files.tracks(one.parent, Path(one.name)) for one in lists)


def _write(writer: Writer, steps: Iterable[Step], *, is_foreign: bool) -> None:
    """Write the files of tasks, in the order of the list; no command of it is one that a person chose."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    made = []
    for step in steps:
        values = {name: value for name, value in step.changes.items() if name not in _SAID}
        if step.is_new:
            made.append(writer.new_file(Task(**{"id": step.id, "created": now, **values})))
        elif values:
            made.append(writer.change_of(step.id, **values))
    for start in range(0, len(made), MOST_CHANGES):
        changes = [replace(one, offers="list", foreign=one.foreign or is_foreign) for one in made]
        writer.append("seen", changes=changes[start : start + MOST_CHANGES])


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
    keys = {id_: key for key, id_ in ids.items()}
    both = {**old, **{id_: [*dict.fromkeys((*after, *old.get(id_, ())))] for id_, after in new.items()}}
    left = _ordered(both, lambda one, other: other in new.get(one, ()) and other not in old.get(one, ()))[1]
    closing = {(one, other) for one, other, _ in left if other in new.get(one, ())}
    problems += [f"{keys[one]}: waits for {other}: {_CLOSES} with tasks here" for one, other in sorted(closing)]
    steps = []
    for key in waits:
        listed, id_ = taken[key], ids[key]
        changes, conflicts = _changes(listed, tuple(new[id_]), there.get(id_), problems)
        if "after" in changes:
            changes["after"] = tuple(one for one in new[id_] if (id_, one) not in closing)
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
    """For each task the keys that it waits for, in an order: as it says there; its parts; what the wholes that it is a
    part of wait for. What closes a circle is left out.
    """
    said: dict[str, list[str]] = {}
    parents: dict[str, str] = {}
    for key, listed in taken.items():
        said[key] = []
        for one in (f"{listed.origin}:{other}" for other in listed.task.after):
            if one in ids and one not in gone:
                said[key].append(one)
            else:
                what = "was deleted there" if one in gone else "is not in the list"
                problems.append(f"{key}: waits for {one}, which {what}: left out")
        parent = f"{listed.origin}:{listed.parent}"
        if parent in taken and parent not in (key, *gone):
            parents[key] = parent
    above: dict[str, list[str]] = {key: [] for key in taken}
    waits = {key: dict.fromkeys(after) for key, after in said.items()}
    for key in parents:
        whole = parents[key]
        waits[whole] |= {key: None} if whole not in said[key] else {}
        while whole and whole not in above[key]:  # a circle of wholes ends somewhere
            above[key].append(whole)
            whole = parents.get(whole, "")
    for key, wholes in above.items():
        waits[key] |= {one: None for whole in wholes for one in said[whole] if whole not in above.get(one, ())}
    graph = {key: list(after) for key, after in waits.items()}
    order, left = _ordered(graph, lambda one, other: other not in said.get(one, ()))
    problems += [
        f"{one}: waits for {other}: {_CLOSES}: {way}" for one, other, way in left if other in said.get(one, ())
    ]
    return {key: graph[key] for key in order if key in taken}


def _ordered(
    waits: dict[str, list[str]], may_go: Callable[[str, str], bool]
) -> tuple[list[str], list[tuple[str, str, str]]]:
    """The keys, each after those that it waits for. Of each circle one edge is taken out, if it has any one that may
    go; which these were, each with its circle. UsageError for more circles than a list has by mistake.
    """
    left: list[tuple[str, str, str]] = []
    while len(left) <= _MOST_CIRCLES:
        try:
            return list(TopologicalSorter(waits).static_order()), left
        except CycleError as error:
            edges = list(pairwise(reversed(error.args[1])))  # each waits for the next
            one, other = next((edge for edge in edges if may_go(*edge)), edges[-1])
            waits[one].remove(other)
            left.append((one, other, trimmed(" → ".join((*(key for key, _ in edges), edges[0][0])), _SHOWN)))
    raise UsageError(left[0][0], f"more than {_MOST_CIRCLES} circles of dependencies: {left[0][2]}", "mend the list")


# ---- what changes ----


def _sum(value: object) -> str:
    """A short sum of a field, the same for texts that differ in white space only; "" for no value."""
    if value in _NOTHING:
        return ""
    if not isinstance(value, (str, tuple)):
        return str(value)
    text = one_line(value if isinstance(value, str) else "\0".join(sorted(value)))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


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
        return {name: value for name, value in whole.items() if value not in _NOTHING}, ()
    here, base = state.task, _base(state.task)
    if state.is_foreign:
        problems.append(f"{listed.key}: {here.id} is not trusted yet: unchanged (see: ralf trust)")
        return {}, ()
    changes: dict[str, Any] = {}
    conflicts = []
    for name, value in fields.items():
        there, ours, before = _sum(value), _sum(getattr(here, name)), base.get(name, "")
        if there not in (before, ours) and ours == before:
            changes[name] = value
        elif there not in (before, ours):
            conflicts.append(name)
    if _moves(status, here.status, base.get("status", "")):
        if state.claim is None:
            changes |= {"status": status, "summary": listed.summary, "reason": listed.reason}
        else:
            problems.append(f"{listed.key}: is {status} there, but {state.claim.by} has {here.id}: its status stays")
            extra[AS] = _as(fields, base.get("status", ""))  # the next import sees it again
    elif status == here.status:  # this store may not have been told: another clone, or a killed import
        name = {"completed": "summary", "failed": "reason"}.get(status, "")
        changes |= {name: said[name]} if name and said[name] and not getattr(state, name) else {}
    new = {name: value for name, value in {**here.extra, **extra}.items() if value != ""}
    return {**changes, "extra": new} if new != here.extra else changes, tuple(conflicts)


def _moves(there: str, here: str, base: str) -> bool:
    """Whether the status there is to be taken: never for a task that ended here, and where both sides have changed it
    only if it has ended there.
    """
    if here in _LAST or there in (here, base):
        return False
    return here == base or there in _LAST
