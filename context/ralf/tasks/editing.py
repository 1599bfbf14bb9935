"""New tasks, and changes of what their files say, by commands. A person's edit of a file needs none of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ralf import environment
from ralf.document.tree import BadTree, from_tree
from ralf.errors import Cycle, UsageError
from ralf.redact import redactor_for
from ralf.tasks import folders, store
from ralf.tasks.book import Book
from ralf.tasks.model import PRIORITY, STATUSES, Task, TaskState
from ralf.tasks.records import MOST_CHANGES, Change
from ralf.tasks.store import Tasks
from ralf.tasks.taskfile import as_filed
from ralf.tasks.writing import Writer
from ralf.text import cleaning

Root = str | os.PathLike[str] | None

_FIELDS = ("title", "text", "status", "priority", "tags", "role", "after", "checkpoint", "verify", "route")
"""What `edit` changes."""


def add(
    title: str,
    *,
    text: str = "",
    priority: int = PRIORITY,
    tags: Sequence[str] = (),
    role: str = "",
    after: Sequence[str] = (),
    checkpoint: bool = False,
    verify: str = "",
    route: str = "",
    id: str = "",  # noqa: A002
    created_by: str = "",
    by_person: bool | None = None,
    root: Root = None,
) -> TaskState:
    """Add a task. Fields as in `ralf.tasks.model.Task`; `after` takes ids and unambiguous titles.

    id         "": a new one that is short, and collides with none of another clone
    by_person  whether a person does it, whose `verify` may run; None: so outside of a client's shell

    UsageError for a value that makes no sense, a title that several tasks have and an id that is taken;
    TaskNotFound for a dependency that is not there; Cycle where it would wait for itself.
    """
    by = store.holder(store.at(root).project, created_by)
    values = {"priority": priority, "tags": tags, "role": role, "checkpoint": checkpoint, "verify": verify}
    made: dict[str, Any] = {**values, "after": after, "route": route, "created_by": by}
    return add_all([Task(id, title, text, **made)], by_person=by_person, root=root)[0]


def add_all(new: Sequence[Task], *, by_person: bool | None = None, root: Root = None) -> list[TaskState]:
    """Add many tasks in few records, as an importer does; those of one second stay in this order.

    Their `id`s are their names among each other, too: `after` may name those of the list, and any other task. "" is a
    new one. Errors as for `add`, and then none is added.
    """
    tasks = store.at(root)
    by = store.holder(tasks.project)
    given = [replace(one, **_checked(tasks, {name: getattr(one, name) for name in _FIELDS})) for one in new]
    made: list[Task] = []

    def work(writer: Writer) -> list[TaskState]:
        if not made:
            named = _named(writer.book, given, by)
            _check_cycles(writer.book, {one.id: one.after for one in named})
            made.extend(named)
        for start in range(0, len(made), MOST_CHANGES):
            changes = [_signed(writer.new_file(one), by_person) for one in made[start : start + MOST_CHANGES]]
            writer.append("seen", changes=changes)
        return [writer.state(one.id) for one in made]

    return tasks.write(work)


def _named(book: Book, given: Sequence[Task], by: str) -> list[Task]:
    """New tasks with ids of their own, the ids of those that they come after, and times by which they keep their order,
    in every clone.
    """
    names, taken = {one.id for one in given if one.id}, book.taken()
    began, count = datetime.now(UTC), len(taken)
    made = []
    for number, one in enumerate(given):
        id_ = one.id or folders.new_id(count + number, lambda id_: id_ in names or id_.casefold() in taken)
        if cleaning.check(id_).casefold() in taken:
            raise UsageError(id_, "this id is taken, or given twice", f"ralf task show {id_}")
        taken.add(id_.casefold())
        after = tuple(dict.fromkeys(on if on in names else book.resolve(on) for on in one.after))
        created = one.created or (began + timedelta(microseconds=number)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        made.append(replace(one, id=id_, after=after, created=created, created_by=one.created_by or by))
    return made


def edit(task: str, *, by_person: bool | None = None, root: Root = None, **changes: Any) -> TaskState:
    """Change fields of a task: `title text status priority tags role after checkpoint verify route`. `by_person` and
    errors: `add`.
    """
    tasks = store.at(root)
    values = _checked(tasks, changes)

    def work(writer: Writer) -> TaskState:
        book = writer.book
        id_ = book.resolve(task)
        state, wanted = book.get(id_), dict(values)
        store.check_ours(state)
        if "after" in values:
            wanted["after"] = tuple(dict.fromkeys(map(book.resolve, values["after"])))
            _check_cycles(book, {id_: wanted["after"]})
        is_closed = wanted.get("status", state.task.status) != state.task.status
        if is_closed:
            book.check_free(id_)
        change = _signed(writer.change_of(id_, **wanted), by_person)
        is_offered = state.has_edited_verify or state.has_agents_verify
        if writer.is_change(change) or ("verify" in wanted and is_offered):  # which accepts it as it is
            writer.append("seen", changes=[change])
        behind = book.states(book.waiting_for(id_) if is_closed and wanted["status"] == "cancelled" else ()).values()
        return writer.state(id_, *(warning for other in behind for warning in other.warnings))

    return tasks.write(work)


def split(task: str, titles: Sequence[str], *, root: Root = None) -> list[TaskState]:
    """Split a task into parts, one after the other, and return them; all in one record.

    What waited for the task waits for the last part. The task is cancelled, and its text says into what it was split.
    The parts have its priority, role, tags and route; the last one has its `checkpoint` and its `verify`, but
    for one that an edit of the file brought and nobody has accepted.
    """
    tasks = store.at(root)
    names = [str(_checked(tasks, {"title": title})["title"]) for title in titles]
    if len(names) < 2:
        raise UsageError(task, "name at least two parts", f'ralf task edit {task} --into "TITLE" --into "TITLE"')

    made: list[Task] = []

    def work(writer: Writer) -> list[TaskState]:
        book = writer.book
        id_ = book.resolve(task)
        whole = book.get(id_)
        store.check_ours(whole)
        book.check_free(id_)
        if whole.task.status not in ("pending", "failed"):
            raise UsageError(id_, f"is {whole.task.status}", f"ralf task show {id_}")
        told = whole.task
        alike = replace(told, id="", text="", status="pending", route=told.context_route, created="", extra={})
        new = [replace(alike, title=title, after=(), checkpoint=False, verify="") for title in names]
        is_offered = whole.has_edited_verify or whole.has_agents_verify
        verify = "" if is_offered else told.verify  # to copy it would accept it
        new[-1] = replace(new[-1], checkpoint=told.checkpoint, verify=verify)
        named = _named(book, new, told.created_by)
        befores = [told.after, *((one.id,) for one in named)]
        made[:] = [replace(one, after=before) for one, before in zip(named, befores, strict=False)]
        text = f"{told.text}\n\nSplit into {', '.join(one.id for one in made)}.".lstrip("\n")
        changes = [*map(writer.new_file, made), writer.change_of(id_, status="cancelled", text=text)]
        for other, waiting in book.states(book.waiting_for(id_)).items():
            if not waiting.is_foreign:
                after = tuple(made[-1].id if on == id_ else on for on in waiting.task.after)
                changes.append(writer.change_of(other, after=after))
        writer.append("seen", changes=changes)
        return [writer.state(one.id) for one in made]

    return tasks.write(work)


# ---- values ----


def _signed(change: Change, by_person: bool | None) -> Change:
    """A change that says where no person makes it."""
    is_agents = environment.is_agent() if by_person is None else not by_person
    return replace(change, offers="agent") if is_agents else change


def _checked(tasks: Tasks, values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a task as they are stored: cleaned, without secrets. UsageError."""
    if unknown := [name for name in values if name not in _FIELDS]:
        raise UsageError(unknown[0], f"cannot be changed; fields are: {', '.join(_FIELDS)}")
    try:
        tree = {name: [*value] if isinstance(value, tuple) else value for name, value in values.items()}
        task = as_filed(from_tree(Task, {"title": "-", **tree}))
    except BadTree as error:
        raise UsageError(error.at[0], error.args[0]) from None
    if not task.title:
        raise UsageError("title", "a task needs a title", 'ralf task add "TITLE"')
    if task.status not in STATUSES:
        raise UsageError(task.status, f"not a status; choose one of: {', '.join(STATUSES)}")
    if task.priority != int(values.get("priority", task.priority)):
        raise UsageError(str(values["priority"]), "a priority is a number from 1 to 10; 10 comes first")
    if route := values.get("route"):
        cleaning.check(route)
    redact = redactor_for(tasks.project).text
    found = {name: getattr(task, name) for name in values}
    found |= {name: redact(value) for name, value in found.items() if isinstance(value, str)}
    return found | {name: tuple(map(redact, value)) for name, value in found.items() if isinstance(value, tuple)}


# ---- dependencies ----


def _check_cycles(book: Book, changed: Mapping[str, Sequence[str]]) -> None:
    """`Cycle` where one of these tasks would wait for itself, with the way that it goes.

    changed  their dependencies as they are to be
    """
    needs: dict[str, Sequence[str]] = dict(changed)
    left = [on for ons in changed.values() for on in ons]
    while left:
        if (on := left.pop()) not in needs:
            needs[on] = [*book.needs(on)]
            left += needs[on]
    from graphlib import CycleError, TopologicalSorter  # only for what waits

    from ralf.tasks.sequence import circle

    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        path = circle(error, changed)
        if path[0] in changed:  # else it was there before
            raise Cycle(path) from None
