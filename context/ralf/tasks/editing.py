"""New tasks, and changes of what their files say, by commands. A person's edit of a file needs none of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ralf.errors import Claimed, Cycle, UsageError
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
    tasks = store.at(root)
    values = {"title": title, "text": text, "priority": priority, "tags": tags, "role": role, "checkpoint": checkpoint}
    made = Task(**_checked(tasks, {**values, "verify": verify, "route": route}))
    by = store.holder(tasks.project, created_by)
    if id:
        cleaning.check(id)
    given = id

    def work(writer: Writer) -> TaskState:
        nonlocal given
        if given and writer.has_written(given):  # the book was torn after the record
            return writer.state(given)
        given = _free_id(writer.book, id)
        ons = _resolved(tasks, writer.book, after)
        task = replace(made, id=given, after=ons, created=_stamp(datetime.now(UTC)), created_by=by)
        _check_cycles(writer.book, {given: ons})
        writer.append("seen", changes=[writer.new_file(task)])
        return writer.state(given)

    return tasks.write(work)


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
            given = [one.id for one in cleaned if one.id]
            known, names, began = set(book.all_ids()), set(given), datetime.now(UTC)
            taken = {id_.casefold() for id_ in known}
            for id_ in given:
                if cleaning.check(id_).casefold() in taken:
                    raise UsageError(id_, "this id is taken, or given twice", f"ralf task show {id_}")
                taken.add(id_.casefold())
            for one in cleaned:
                id_ = one.id or folders.new_id(len(known) + len(names), lambda id_: id_.casefold() in taken)
                names.add(id_)
                taken.add(id_.casefold())
                ons = [on if on in names else tasks.resolve(book, on) for on in one.after]
                told: dict[str, Any] = {
                    "created": one.created or _stamp(began, len(made)),
                    "created_by": one.created_by or by,
                }
                made.append(replace(one, id=id_, after=tuple(dict.fromkeys(ons)), **told))
            _check_cycles(book, {one.id: one.after for one in made})
        left = [one for one in made if not writer.has_written(one.id)]
        for start in range(0, len(left), MOST_CHANGES):
            writer.append("seen", changes=[writer.new_file(one) for one in left[start : start + MOST_CHANGES]])
        return [state for state, _ in book.states([one.id for one in made]).values()]

    return tasks.write(work)


def edit(task: str, *, root: Root = None, **changes: Any) -> TaskState:
    """Change fields of a task: `title text status priority tags role after checkpoint verify route`. Errors: `add`."""
    tasks = store.at(root)
    values = _checked(tasks, changes)

    def work(writer: Writer) -> TaskState:
        book = writer.book
        id_ = tasks.resolve(book, task)
        if writer.has_written(id_):
            return writer.state(id_)
        state, known = book.states([id_])[id_]
        store.check_ours(state)
        if "after" in values:
            ons = _resolved(tasks, book, values["after"])
            _check_cycles(book, {id_: ons})
            wanted = {**values, "after": ons}
        else:
            wanted = values
        if wanted.get("status", state.task.status) != state.task.status and tasks.is_held(state, known):
            claim = known.claim
            if claim is not None:
                raise Claimed(id_, claim.by, claim.claimed, f"ralf task show {id_}")
        change = writer.change_of(id_, **wanted)
        if change.values:
            writer.append("seen", changes=[change])
        if change.values.get("status") != "cancelled":
            return writer.state(id_)
        behind = book.states(book.waiting_for(id_)).values()
        return writer.state(id_, *(warning for other, _ in behind for warning in other.warnings))

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
        id_ = tasks.resolve(book, task)
        if writer.has_written(id_):
            return [writer.state(one) for one in made]
        state, known = book.states([id_])[id_]
        store.check_ours(state)
        if known.claim is not None and tasks.is_held(state, known):
            raise Claimed(id_, known.claim.by, known.claim.claimed, f"ralf task show {id_}")
        if state.task.status not in ("pending", "failed"):
            raise UsageError(id_, f"is {state.task.status}", f"ralf task show {id_}")
        made[:] = []
        parts, began = [], datetime.now(UTC)
        for number, title in enumerate(names):
            made.append(_free_id(book, "", made))
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
        for other, (waiting, _) in book.states(book.waiting_for(id_)).items():
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
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name not in _FIELDS:
            raise UsageError(name, f"cannot be changed; fields are: {', '.join(_FIELDS)}")
        found[name] = _CHECKS[name](name, value, redact)
    return found


def _line(name: str, value: Any, redact: Callable[[str], str]) -> str:
    return redact(cleaning.one_line(cleaning.clean(_str(name, value))))


def _title(name: str, value: Any, redact: Callable[[str], str]) -> str:
    line = _line(name, value, redact)
    if not line:
        raise UsageError(name, "a task needs a title", 'ralf task add "TITLE"')
    return line


def _text(name: str, value: Any, redact: Callable[[str], str]) -> str:
    return redact(cleaning.clean(_str(name, value)).strip("\n"))


def _status(name: str, value: Any, _: Callable[[str], str]) -> str:
    if value not in STATUSES:
        raise UsageError(str(value), f"not a status; choose one of: {', '.join(STATUSES)}")
    return str(value)


def _priority(name: str, value: Any, _: Callable[[str], str]) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not _LOWEST <= value <= _HIGHEST:
        raise UsageError(str(value), f"a priority is a number from {_LOWEST} to {_HIGHEST}; {_HIGHEST} comes first")
    return value


def _lines(name: str, value: Any, redact: Callable[[str], str]) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise UsageError(name, "a list of words")
    return tuple(dict.fromkeys(line for one in value if (line := _line(name, one, redact))))


def _flag(name: str, value: Any, _: Callable[[str], str]) -> bool:
    if not isinstance(value, bool):
        raise UsageError(name, "yes or no")
    return value


def _route(name: str, value: Any, _: Callable[[str], str]) -> str:
    return cleaning.check(_str(name, value)) if value else ""


def _str(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(name, "a text")
    return value


_CHECKS: dict[str, Callable[[str, Any, Callable[[str], str]], Any]] = {
    "title": _title,
    "text": _text,
    "status": _status,
    "priority": _priority,
    "tags": _lines,
    "role": _line,
    "after": _lines,
    "checkpoint": _flag,
    "verify": _text,
    "route": _route,
}


def _stamp(at: datetime, later: int = 0) -> str:
    """A time, some microseconds later: by it tasks that are added at once keep their order, in every clone."""
    return (at + timedelta(microseconds=later)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# ---- ids and dependencies ----


def _free_id(book: Book, wanted: str, more: Sequence[str] = ()) -> str:
    if not wanted:
        count = sum(book.counts()[status] for status in STATUSES)
        return folders.new_id(count + len(more), lambda id_: id_ in more or book.named(id_))
    for taken in book.named(wanted):
        raise UsageError(wanted, f"this id is taken by {taken}", f"ralf task show {taken}")
    return wanted


def _resolved(tasks: Tasks, book: Book, named: Sequence[str]) -> tuple[str, ...]:
    """Dependencies by their ids; TaskNotFound, UsageError."""
    return tuple(dict.fromkeys(tasks.resolve(book, one) for one in named))


def _check_cycles(book: Book, changed: Mapping[str, Sequence[str]]) -> None:
    """`Cycle` where one of these tasks would wait for itself, with the way that it goes.

    changed  their dependencies as they are to be
    """
    needs: dict[str, Sequence[str]] = dict(changed)
    level = list({on for ons in changed.values() for on in ons} - needs.keys())
    while level:
        found = {on: book.needs(on) for on in level}
        needs.update(found)
        level = list({on for ons in found.values() for on in ons} - needs.keys())
    over: set[str] = set()
    for start in changed:
        path: dict[str, Iterator[str]] = {start: iter(needs[start])} if start not in over else {}
        while path:
            last = next(reversed(path))
            on = next(path[last], None)
            if on is None:
                over.add(last)
                del path[last]
            elif on in path:
                around = list(path)
                _raise_cycle([*around[around.index(on) :], on], changed)
            elif on not in over:
                path[on] = iter(needs.get(on, ()))


def _raise_cycle(path: Sequence[str], changed: Mapping[str, Sequence[str]]) -> None:
    first = next((place for place, id_ in enumerate(path) if id_ in changed), -1)
    if first >= 0:  # else it was there before
        raise Cycle((*path[first:-1], *path[:first], path[first]))
