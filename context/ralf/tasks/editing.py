"""New tasks, and changes of what their files say, by commands. A person's edit of a file needs none of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ralf.errors import Cycle, UsageError
from ralf.redact import redactor_for
from ralf.tasks import folders, store
from ralf.tasks.book import Book
from ralf.tasks.model import PRIORITY, STATUSES, Task, TaskState
from ralf.tasks.records import MOST_CHANGES
from ralf.tasks.store import Tasks
from ralf.tasks.writing import Writer
from ralf.text import cleaning

Root = str | os.PathLike[str] | None

_LOWEST, _HIGHEST = 1, 10

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
    root: Root = None,
) -> TaskState:
    """Add a task. Fields as in `ralf.tasks.model.Task`; `after` takes ids and unambiguous titles.

    id  "": a new one that is short, and collides with none of another clone

    UsageError for a value that makes no sense, a title that several tasks have and an id that is taken;
    TaskNotFound for a dependency that is not there; Cycle where it would wait for itself.
    """
    by = store.holder(store.at(root).project, created_by)
    values = {"priority": priority, "tags": tags, "role": role, "checkpoint": checkpoint, "verify": verify}
    made: dict[str, Any] = {**values, "after": after, "route": route, "created_by": by}
    return add_all([Task(id, title, text, **made)], root=root)[0]


def add_all(new: Sequence[Task], *, root: Root = None) -> list[TaskState]:
    """Add many tasks in few records, as an importer does; those of one second stay in this order.

    Their `id`s are their names among each other, too: `after` may name those of the list, and any other task. "" is a
    new one. Errors as for `add`, and then none is added.
    """
    tasks = store.at(root)
    by = store.holder(tasks.project)
    cleaned = [
        replace(one, **_checked(tasks, {name: getattr(one, name) for name in _FIELDS if name != "after"}))
        for one in new
    ]
    made: list[Task] = []

    def work(writer: Writer) -> list[TaskState]:
        book = writer.book
        if not made:
            names, began = {one.id for one in cleaned if one.id}, datetime.now(UTC)
            count, taken = sum(book.counts()[status] for status in STATUSES), set[str]()
            for one in cleaned:
                id_ = (
                    cleaning.check(one.id)
                    if one.id
                    else folders.new_id(
                        count + len(made), lambda id_: id_ in names or id_.casefold() in taken or book.named(id_)
                    )
                )
                if id_.casefold() in taken or book.named(id_):
                    raise UsageError(id_, "this id is taken, or given twice", f"ralf task show {id_}")
                taken.add(id_.casefold())
                ons = [on if on in names else book.resolve(on) for on in one.after]
                told: dict[str, Any] = {
                    "created": one.created or _stamp(began, len(made)),
                    "created_by": one.created_by or by,
                }
                made.append(replace(one, id=id_, after=tuple(dict.fromkeys(ons)), **told))
            _check_cycles(book, {one.id: one.after for one in made})
        for start in range(0, len(made), MOST_CHANGES):
            writer.append("seen", changes=[writer.new_file(one) for one in made[start : start + MOST_CHANGES]])
        return [writer.state(one.id) for one in made]

    return tasks.write(work)


def edit(task: str, *, root: Root = None, **changes: Any) -> TaskState:
    """Change fields of a task: `title text status priority tags role after checkpoint verify route`. Errors: `add`."""
    tasks = store.at(root)
    values = _checked(tasks, changes)

    def work(writer: Writer) -> TaskState:
        book = writer.book
        id_ = book.resolve(task)
        if writer.has_written():
            return writer.state(id_)
        state, wanted = book.get(id_), dict(values)
        store.check_ours(state)
        if "after" in values:
            wanted["after"] = tuple(dict.fromkeys(map(book.resolve, values["after"])))
            _check_cycles(book, {id_: wanted["after"]})
        is_closed = wanted.get("status", state.task.status) != state.task.status
        if is_closed:
            book.check_free(id_)
        change = writer.change_of(id_, **wanted)
        if writer.is_change(change):
            writer.append("seen", changes=[change])
        behind = book.states(book.waiting_for(id_) if is_closed and wanted["status"] == "cancelled" else ()).values()
        return writer.state(id_, *(warning for other in behind for warning in other.warnings))

    return tasks.write(work)


def split(task: str, titles: Sequence[str], *, root: Root = None) -> list[TaskState]:
    """Split a task into parts, one after the other, and return them; all in one record.

    What waited for the task waits for the last part. The task is cancelled, and its text says into what it was split.
    The parts have its priority, role, tags and route; the last one has its `verify` and its `checkpoint`.
    """
    tasks = store.at(root)
    names = [str(_checked(tasks, {"title": title})["title"]) for title in titles]
    if len(names) < 2:
        raise UsageError(task, "name at least two parts", f'ralf task split {task} "TITLE" "TITLE"')

    made: list[str] = []

    def work(writer: Writer) -> list[TaskState]:
        book = writer.book
        id_ = book.resolve(task)
        if writer.has_written():
            return [writer.state(one) for one in made]
        state = book.get(id_)
        store.check_ours(state)
        book.check_free(id_)
        if state.task.status not in ("pending", "failed"):
            raise UsageError(id_, f"is {state.task.status}", f"ralf task show {id_}")
        made[:] = []
        parts, began = [], datetime.now(UTC)
        count = sum(book.counts()[status] for status in STATUSES)
        for number, title in enumerate(names):
            made.append(folders.new_id(count + number, lambda id_: id_ in made or book.named(id_)))
            is_last = number == len(names) - 1
            parts.append(
                replace(
                    state.task,
                    id=made[-1],
                    title=title,
                    text="",
                    status="pending",
                    created=_stamp(began, number),
                    after=(made[-2],) if number else state.task.after,
                    route=state.task.context_route,
                    checkpoint=state.task.checkpoint and is_last,
                    verify=state.task.verify if is_last else "",
                    extra={},
                )
            )
        told = f"Split into {', '.join(made)}."
        text = f"{state.task.text}\n\n{told}" if state.task.text else told
        changes = [*map(writer.new_file, parts), writer.change_of(id_, status="cancelled", text=text)]
        for other, waiting in book.states(book.waiting_for(id_)).items():
            if not waiting.is_foreign:
                after = tuple(made[-1] if on == id_ else on for on in waiting.task.after)
                changes.append(writer.change_of(other, after=after))
        writer.append("seen", changes=changes)
        return [writer.state(one) for one in made]

    return tasks.write(work)


# ---- values ----


def _checked(tasks: Tasks, values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a task as they are stored: cleaned, without secrets. UsageError."""
    redact = redactor_for(tasks.project).text

    def line(text: str) -> str:
        return redact(cleaning.one_line(cleaning.clean(text)))

    found: dict[str, Any] = {}
    for name, value in values.items():
        if name not in _FIELDS:
            raise UsageError(name, f"cannot be changed; fields are: {', '.join(_FIELDS)}")
        kind, what = _KINDS.get(name, (str, "a text"))
        if not isinstance(value, kind) or (kind is Iterable and isinstance(value, str)):
            raise UsageError(name, what)
        if kind is Iterable:
            found[name] = tuple(dict.fromkeys(filter(None, map(line, value))))
        elif name in ("title", "role"):
            found[name] = line(value)
        elif name in ("text", "verify"):
            found[name] = redact(cleaning.clean(value).strip("\n"))
        else:
            found[name] = cleaning.check(value) if name == "route" and value else value
    if found.get("title") == "":
        raise UsageError("title", "a task needs a title", 'ralf task add "TITLE"')
    if found.get("status", "pending") not in STATUSES:
        raise UsageError(found["status"], f"not a status; choose one of: {', '.join(STATUSES)}")
    if isinstance(priority := found.get("priority", PRIORITY), bool) or not _LOWEST <= priority <= _HIGHEST:
        raise UsageError(str(priority), f"a priority is a number from {_LOWEST} to {_HIGHEST}; {_HIGHEST} comes first")
    return found


_KINDS: dict[str, tuple[Any, str]] = {
    "priority": (int, f"a priority is a number from {_LOWEST} to {_HIGHEST}; {_HIGHEST} comes first"),
    "tags": (Iterable, "a list of words"),
    "after": (Iterable, "a list of words"),
    "checkpoint": (bool, "yes or no"),
}
"""What a field has to be, where that is no text, and how that is said."""


def _stamp(at: datetime, later: int = 0) -> str:
    """A time, some microseconds later: by it tasks that are added at once keep their order, in every clone."""
    return (at + timedelta(microseconds=later)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# ---- dependencies ----


def _check_cycles(book: Book, changed: Mapping[str, Sequence[str]]) -> None:
    """`Cycle` where one of these tasks would wait for itself, with the way that it goes.

    changed  their dependencies as they are to be
    """
    needs: dict[str, Sequence[str]] = dict(changed)
    left = [on for ons in changed.values() for on in ons]
    if not left:
        return
    while left:
        if (on := left.pop()) not in needs:
            needs[on] = book.needs(on)
            left += needs[on]
    from graphlib import CycleError, TopologicalSorter  # only for what waits

    from ralf.tasks.sequence import circle

    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        path = circle(error, changed)
        if path[0] in changed:  # else it was there before
            raise Cycle(path) from None
