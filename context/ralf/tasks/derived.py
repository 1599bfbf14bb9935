"""What records and files of tasks come to together, as rows of `index.db`.

Rows of the records alone are those of `records.fold`. These are of the files, and of both:

    stamp/PATH file/PATH   a task's file as it was looked at last; `files`: all of them in one number,
                           and those to be looked at again
    foreign/PATH           a file that is not the user's, whatever changes it; `problem/PATH`: why one cannot be read
    read/DIGEST            bytes of a file that was found to be the user's, and that no record has yet
    at/ID                  the paths of a task's files
    shown/ID               the digest of the newest record of a task that its file was found to show
    task/ID                a task as it is shown: what its file says, with what a record says and the file does not
    due/ID                 a task whose file and records are not the same: the next write sees to it
    displaced              the tasks of which the newest write has displaced files; None: nobody knows
    list/… ready/…         the tasks in the order in which they are claimed: all, and those that can be
    placed/ID              where a task stands in these
    waiters/ID             the tasks that wait for one; `counts`: how many there are of each kind
    plan chain/N front/N planned/ID   the plan, the first open task of each chain, and where each task stands in it
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ralf.document import place as places
from ralf.document.state import State
from ralf.project import Project
from ralf.tasks import folders, origin, records
from ralf.tasks.model import MAX_BYTES, Claim, Task
from ralf.tasks.records import Known

MOST_NAMED = 5
"""Tasks, and files of one, that a message names."""

DIGITS = {"pending": "0", "failed": "1", "completed": "2", "cancelled": "3"}
"""With what the keys of tasks in a list begin, by their status: those that are pending come first."""

_OPEN = ("pending", "failed")

NONE = dict.fromkeys(("pending", "completed", "failed", "cancelled", "ready", "claimed", "blocked", "foreign"), 0)
"""The counts of no tasks."""


class File(NamedTuple):
    """A task's file as it was looked at; `tree`: the task that it says, None where it cannot be read: `problem`."""

    digest: str
    id: str
    is_foreign: bool
    tree: Mapping[str, Any] | None
    problem: str


class Chain(NamedTuple):
    """A chain of the plan: its name, and its segments, between two of which a checkpoint lies."""

    name: str
    segments: tuple[tuple[str, ...], ...]


class Listed(NamedTuple):
    """A task in a list; `kinds`: those of `counts` that it counts for."""

    id: str
    status: str
    role: str
    route: str
    title: str
    created: str
    kinds: Sequence[str]


class Derived:
    """The rows of a project's tasks at one moment. `problem`: why records that follow cannot be read."""

    def __init__(self, project: Project, state: State) -> None:
        self.project = project
        self.state = state
        self.rows = state.rows
        self.problem = ""
        self._root = os.fspath(project.folder.parents[1])

    # ---- files ----

    def name(self, path: str | Path) -> str:
        """The name of a file in rows and in records: from the project's folder on."""
        return os.fspath(path)[len(self._root) + 1 :]

    def path(self, name: str) -> Path:
        """The path of a file by its name."""
        return Path(self._root, name)

    def prev(self, id_: str) -> Path:
        """Where what a write displaced from a task's file lies until the next write of that task."""
        return self.project.folder / "prev" / "tasks" / f"{id_}.md"

    def file(self, name: str) -> File | None:
        """A file, None for none."""
        row = self.rows.one(f"file/{name}")
        return File(*row) if row is not None else None

    def put_file(self, name: str, stamp: int, file: File | None) -> set[str]:
        """Keep a file as it is now, None for one that is gone; the ids of the tasks that it was and is of."""
        was = self.file(name)
        if was is not None:
            self.rows.put(f"at/{was.id}", [one for one in self.rows.one(f"at/{was.id}") or () if one != name] or None)
        self.rows.put(f"file/{name}", list(file) if file is not None else None)
        self.rows.put(f"stamp/{name}", stamp if file is not None else None)
        self.rows.put(f"problem/{name}", (file.problem or None) if file is not None else None)
        if file is None:
            self.rows.put(f"foreign/{name}", None)
        else:
            self.rows.put(f"at/{file.id}", [*(self.rows.one(f"at/{file.id}") or ()), name])
        return {one.id for one in (was, file) if one is not None}

    def is_own(self, digest: str) -> bool:
        """Whether bytes of a task's file are known to be this user's."""
        return self.is_recorded(digest) or self.rows.one(f"read/{digest}") is not None

    def is_recorded(self, digest: str) -> bool:
        """Whether a record knows bytes of a task's file: nothing in them is new."""
        return self.rows.one(f"own/{digest}") is not None

    def known(self, id_: str) -> Known:
        """What the records say of the file of a task."""
        return records.known(self.rows, id_)

    def files_of(self, id_: str) -> list[tuple[str, File]]:
        """The files that say that they are a task, with their names."""
        found = ((name, self.file(name)) for name in self.rows.one(f"at/{id_}") or ())
        return [
            (name, file._replace(is_foreign=file.is_foreign and not self.is_own(file.digest)))
            for name, file in found
            if file is not None
        ]

    def chosen(self, id_: str) -> list[tuple[str, File]]:
        """The files that say that they are one task, with their names; the one that counts comes first."""
        place, closed = self.known(id_).place, ("completed", "cancelled", "failed", "pending")

        def rank(one: tuple[str, File]) -> tuple[bool, bool, int, str]:
            name, file = one
            return file.is_foreign, name != place, closed.index((file.tree or {}).get("status", "pending")), name

        return sorted((one for one in self.files_of(id_) if one[1].tree is not None), key=rank)

    def is_lost(self, known: Known) -> bool:
        """Whether the file of a task may not have outlived a loss of power, and nobody has looked since."""
        boot = origin.boot()
        return bool(known.tree is not None and known.boot and boot) and boot not in (known.boot, self.rows.one("boot"))

    def is_shown(self, id_: str, known: Known) -> bool:
        """Whether the file of a task has shown what its newest record says; what it says now came later. A new one was
        there where it has left an empty file among those that were displaced, another one where it has displaced one.
        """
        if known.base == known.digest or self.rows.one(f"shown/{id_}") == known.digest:
            return True
        is_shown, prev = any(file.digest == known.digest for _, file in self.files_of(id_)), self.prev(id_)
        if not is_shown and os.path.lexists(prev):
            try:
                is_shown = records.digest_of(places.content(prev, MAX_BYTES)) == (known.base or records.digest_of(b""))
            except OSError:
                is_shown = False
        if is_shown:
            self.rows.put(f"shown/{id_}", known.digest)
        return is_shown

    # ---- what records and files come to together ----

    def derive(self, ids: Iterable[str]) -> None:
        """Make the rows of tasks anew whose records or files changed, and of those that depend on them."""
        more: set[str] = set()
        for id_ in ids:
            more |= self._derive(id_)
        self.place(more)

    def place(self, ids: Iterable[str]) -> None:
        """Put tasks anew where they stand in the lists, and count them."""
        for id_ in ids:
            self._place(id_)

    def _derive(self, id_: str) -> set[str]:
        """Make the row of a task anew; the tasks of which it may depend on that whether they can be claimed."""
        known, files = self.known(id_), self.chosen(id_)
        row: Mapping[str, Any] | None = None
        is_due = False
        if files:
            row, is_due = self._with_file(id_, known, *files)
        elif known.tree is not None and (self.is_lost(known) or not (known.base or self.is_shown(id_, known))):
            row, is_due = {"tree": known.tree, "path": known.place, "foreign": False, "warnings": []}, True
        self.rows.put(f"due/{id_}", is_due or None)
        names = self.rows.one(f"name/{id_.casefold()}") or []
        if id_ not in names:
            self.rows.put(f"name/{id_.casefold()}", [*names, id_])
        return self._put_task(id_, row)

    def _with_file(
        self, id_: str, known: Known, chosen: tuple[str, File], *others: tuple[str, File]
    ) -> tuple[Mapping[str, Any], bool]:
        """The row of a task that has a file, and whether the next write has to see to that."""
        name, file = chosen
        task = said = records.task_of(file.tree or {})
        is_shown = self.is_shown(id_, known)
        if not is_shown and known.tree is not None and known.prior is not None:
            from ralf.tasks import taskfile  # for a writer that died

            task, _ = taskfile.merged(records.task_of(known.prior), records.task_of(known.tree), said)
        elif not file.is_foreign:
            status = folders.folder_status(self.path(name))
            is_moved = known.place and status != folders.folder_status(self.path(known.place))
            if is_moved and said.status == (known.tree or {}).get("status", "pending"):  # and that says it
                task = replace(said, status=status or "pending")
        is_due = not is_shown or (
            not file.is_foreign and (task != said or file.digest != known.digest or _is_misplaced(name, task))
        )
        warnings = [f"{self.path(one)}: a second file of {id_}; keep one of them" for one, _ in others[:MOST_NAMED]]
        if len(others) > MOST_NAMED:
            warnings.append(f"{id_}: {len(others) - MOST_NAMED:,} more files of it")
        claim = self.claim(id_)
        if claim is not None and task.status != "pending":
            warnings.append(f"{id_}: its file says {task.status}, but {claim.by} holds it")
        elif claim is not None and file.is_foreign:
            warnings.append(f"{id_}: a pull changed its file, but {claim.by} holds it: is another clone at it, too?")
        tree = file.tree if task == said else records.plain(task)
        return {"tree": tree, "path": name, "foreign": file.is_foreign, "warnings": warnings}, is_due

    def _put_task(self, id_: str, row: Mapping[str, Any] | None) -> set[str]:
        old = self.rows.one(f"task/{id_}")
        if old == row:
            return {id_}
        self.rows.put(f"task/{id_}", row)
        for on in set(needs_of(old)) ^ set(needs_of(row)):
            waiters = [one for one in self.rows.one(f"waiters/{on}") or () if one != id_]
            self.rows.put(f"waiters/{on}", [*waiters, id_] if on in needs_of(row) else waiters or None)
        if _status(old) == _status(row):
            return {id_}
        return {id_, *(self.rows.one(f"waiters/{id_}") or ()), *self._move_front(id_)}

    def _place(self, id_: str) -> None:
        keys, kinds = self.rows.one(f"placed/{id_}") or [[], []]
        row, new, now = self.rows.one(f"task/{id_}"), dict[str, Any](), list[str]()
        if row is not None:
            task, known = records.task_of(row["tree"]), self.known(id_)
            is_open = task.status == "pending" and not row["foreign"]
            is_claimed = id_ in (self.rows.one("claims") or ())
            is_blocked = is_open and (bool(self._unmet(task.after)) or self._is_behind(id_))
            now = [task.status, *["claimed"] * is_claimed, *["blocked"] * is_blocked, *["foreign"] * row["foreign"]]
            now += ["ready"] * (is_open and not is_claimed and not is_blocked)
            rank = f"{10 - task.priority:02}\t{task.created}\t{known.order:015}\t{id_}"
            listed = Listed(id_, task.status, task.role, task.context_route, words_of(task.title), task.created, now)
            new[f"list/{DIGITS[task.status]}{rank}"] = list(listed)
            if "ready" in now:
                new[f"ready/{rank}"] = [id_, task.role]
        for key, value in {**dict.fromkeys(keys), **new}.items():
            self.rows.put(key, value)
        if kinds != now:
            counts = {**NONE, **(self.rows.one("counts") or {})}
            for kind in NONE:
                counts[kind] += (kind in now) - (kind in kinds)
            self.rows.put("counts", counts)
        if [keys, kinds] != [[*new], now]:
            self.rows.put(f"placed/{id_}", [[*new], now] if new else None)

    # ---- the plan ----

    def put_plan(self, stamp: str, problem: str, chains: Sequence[tuple[str, Sequence[Sequence[str]]]]) -> set[str]:
        """Keep the plan; the ids of the tasks that it has or had."""
        ids = set()
        for prefix in ("planned/", "chain/", "front/"):
            for key, _ in list(self.rows.under(prefix)):
                self.rows.put(key, None)
                if prefix == "planned/":
                    ids.add(key.removeprefix(prefix))
        for number, (name, segments) in enumerate(chains):
            self.rows.put(f"chain/{number:06}", [name, [list(segment) for segment in segments]])
            for place, id_ in enumerate(id_ for segment in segments for id_ in segment):
                if self.rows.one(f"planned/{id_}") is None:
                    self.rows.put(f"planned/{id_}", [number, place])
                    ids.add(id_)
            self.rows.put(f"front/{number}", self._next_open(number, 0))
        self.rows.put("plan", [stamp, problem])
        return ids

    @property
    def plan(self) -> tuple[str, str]:
        """The stamp of the plan's file, and why it cannot be read; "" where it can."""
        stamp, problem = self.rows.one("plan") or ("", "")
        return stamp, problem

    def chains(self) -> list[Chain]:
        """The chains of the plan in force, none where there is none."""
        return [Chain(name, tuple(map(tuple, segments))) for _, (name, segments) in self.rows.under("chain/")]

    def _chain(self, number: int) -> list[str]:
        found = self.rows.one(f"chain/{number:06}")
        return [id_ for segment in found[1] for id_ in segment] if found is not None else []

    def _next_open(self, number: int, place: int) -> int:
        ids = self._chain(number)
        while place < len(ids) and self.status(ids[place]) not in _OPEN:
            place += 1
        return place

    def _move_front(self, id_: str) -> list[str]:
        """Keep which task of a chain is its first open one; those of which that changes."""
        planned = self.rows.one(f"planned/{id_}")
        if planned is None:
            return []
        number, place = planned
        front = self.rows.one(f"front/{number}") or 0
        new = self._next_open(number, min(front, place))
        if new == front:
            return []
        self.rows.put(f"front/{number}", new)
        ids = self._chain(number)
        return [ids[one] for one in (front, new) if one < len(ids)]

    def _is_behind(self, id_: str) -> bool:
        """Whether the plan puts an open task before another one."""
        planned = self.rows.one(f"planned/{id_}")
        return planned is not None and planned[1] > (self.rows.one(f"front/{planned[0]}") or 0)

    def _before(self, id_: str) -> str:
        """The open task that the plan puts right before another one; "" for none."""
        planned = self.rows.one(f"planned/{id_}")
        if planned is None or not self._is_behind(id_):
            return ""
        earlier = reversed(self._chain(planned[0])[: planned[1]])
        return next((one for one in earlier if self.status(one) in _OPEN), "")

    def is_at_checkpoint(self, id_: str) -> bool:
        """Whether the plan has a checkpoint between a task and the next one of its chain that is pending."""
        number, place = self.rows.one(f"planned/{id_}") or (0, 0)
        found = self.rows.one(f"chain/{number:06}") if self.rows.one(f"planned/{id_}") is not None else None
        segments = [(id_, part) for part, ids in enumerate(found[1]) for id_ in ids] if found is not None else []
        later = (part for one, part in segments[place + 1 :] if self.status(one) == "pending")
        return next((part != segments[place][1] for part in later), False)

    # ---- what others are made of ----

    def status(self, id_: str) -> str:
        """The status of a task, "" for one that is not there."""
        return _status(self.rows.one(f"task/{id_}"))

    def _unmet(self, after: Iterable[str]) -> list[str]:
        return sorted(on for on in set(after) if self.status(on) != "completed")

    def claim(self, id_: str) -> Claim | None:
        """The claim of a task by the records, which may have run out."""
        found: Claim | None = records.said(self.rows, id_).get("claim")
        return found


def words_of(title: str) -> str:
    """A title as it is looked for."""
    return " ".join(title.casefold().split())


def _status(row: Mapping[str, Any] | None) -> str:
    return str(row["tree"].get("status", "pending")) if row is not None else ""


def needs_of(row: Mapping[str, Any] | None) -> Sequence[str]:
    """What a task depends on; nothing for one that is foreign: it is never claimed, and may name any number."""
    return row["tree"].get("after", ()) if row is not None and not row["foreign"] else ()


def _is_misplaced(name: str, task: Task) -> bool:
    """Whether a file that ralf has made stands in the folder of another status."""
    *_, folder, called = ("", *name.split("/"))
    wanted = task.status if task.status in folders.CLOSED else folders.OPEN[0]
    return called == f"{task.id}.md" and folder != wanted and folder in (folders.OPEN[0], *folders.CLOSED)
