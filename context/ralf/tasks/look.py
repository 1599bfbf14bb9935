"""Looks at the journal and at the files of tasks, and keeps the rows of `index.db` up with both.

Rows of the records alone are those of `records.fold`; what lists need is in tables (`entries`). These are of the files,
and of both:

    full/ID      a task as it is shown: what its file says, with what a record says and the file does not
    read/DIGEST  bytes of a file that was found to be the user's, and that no record has yet
    shown/ID     the digest of the newest record of a task that its file was found to show
    displaced    the tasks of which the newest write has displaced files; None: nobody knows
    scan         the digest of a scan that found each file with the stamp that it has here
    plan         the stamp of the plan's file, and why it cannot be read

Whether a file changed takes one stat. Whose it is says its content (`docs/tasks.md`): what records know, and what git
has in its place.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from ralf.document import place as places
from ralf.document.family import Family
from ralf.document.index import Index
from ralf.document.record import Enveloped, Record
from ralf.document.rows import Rows
from ralf.document.state import caught_up
from ralf.errors import Damaged, RalfError
from ralf.project import Project
from ralf.storage import git_files
from ralf.storage.files import content_of
from ralf.tasks import folders, origin, records
from ralf.tasks.book import MOST_NAMED, Book, words_of
from ralf.tasks.entries import Entries, Entry
from ralf.tasks.model import MAX_BYTES, Task
from ralf.tasks.records import STREAM, Known

_SETTLED, _SETTLED_COARSE = 50_000_000, 2_000_000_000
"""Nanoseconds after which a change of a file changes its times, too; the second for a clock that counts seconds."""


class _Fold(Enveloped):
    """What the state of a journal asks of its family; tasks have many files, so `writing` does the rest."""

    def fold(self, rows: Rows, record: Record) -> None:
        """See `Family.fold`."""
        records.fold(rows, record)


FAMILY = cast("Family", _Fold())


class File(NamedTuple):
    """A task's file as it is.

    stamp    0 where a later change may not give it another one
    content  b"" where it is known whose the file is without it
    tree     the task that it says, None where it cannot be read: `problem`
    """

    stamp: int
    digest: str
    id: str
    tree: Mapping[str, Any] | None
    problem: str = ""
    content: bytes = b""
    is_foreign: bool = False


class Looker:
    """One look at the tasks of a project; `keep` leaves in the index what was found.

    near  ids: where their files, those of what they wait for, and those of tasks with claims are as they were,
          no other file is looked at; None: all are
    """

    def __init__(self, project: Project, index: Index | None, near: Sequence[str] | None = None) -> None:
        self._project = project
        self._index = index
        self._chosen: dict[str, list[tuple[str, File]]] = {}  # the files of tasks that were looked at
        state = caught_up(FAMILY, project.store, STREAM, index)
        kept = index if state.kept is not None else None
        entries = Entries(kept, lambda: Looker(project, None).book.entries)
        self.book = Book(project, state, entries, self._row)
        self._renew(near)

    def keep(self) -> None:
        """Leave in the index what changed."""
        if self.book.entries.changed:  # to delete a file brings back what an earlier scan has found
            self.book.rows.put("scan", None)
        self.book.state.keep(STREAM, self._index, self.book.entries.keep)

    def _renew(self, near: Sequence[str] | None) -> None:
        """Take in what changed of records, files and plan."""
        book, rows = self.book, self.book.rows
        ids = {key.removeprefix("known/") for key in rows.changed if key.startswith("known/")}
        if (displaced := rows.one("displaced")) is not None and ids:
            rows.put("displaced", sorted({*displaced, *ids}))
        folder = tasks_folder(self._project)
        try:
            stamp = str(folders.stamp(os.lstat(folder / "plan.yaml")))
        except OSError:
            stamp = ""
        if stamp != book.plan[0]:
            self._take_plan(stamp)
        if ids or near is None or not self._are_as_they_were({*near, *book.claimed()}):
            self._take_files(folder, ids)
        book.changed()

    def _are_as_they_were(self, ids: Collection[str]) -> bool:
        """Whether tasks, and those that they wait for, have the files that are known, and no others can be lost."""
        book = self.book
        around = {*ids, *(on for id_ in ids for on in (*book.needs(id_), *book.waits(id_)))}
        asked = "select name, stamp from task_file where id = ?"
        known = [book.entries.ask(asked, id_) for id_ in around]
        try:
            is_same = all(folders.stamp(os.lstat(book.path(name))) == stamp for one in known for name, stamp in one)
        except OSError:
            return False
        return bool(ids) and all(known) and is_same and book.rows.one("boot") == origin.boot()

    def _take_files(self, folder: Path, ids: set[str]) -> None:
        """Take in the files that changed, and those of some tasks."""
        found = folders.scan(folder)
        digest = records.digest_of(repr(found).encode())  # one comparison for all files
        if not ids and digest == self.book.rows.one("scan"):
            return
        was = dict(self.book.entries.ask("select name, stamp from task_file"))
        if found == was:
            self.book.rows.put("scan", digest)
        if ids or found != was:
            of = dict(self.book.entries.ask("select name, id from task_file"))
            names = [name for name, stamp in found.items() if was.get(name) != stamp]
            self.look_at(ids | {of[name] for name in {*names, *(was.keys() - found.keys())} & of.keys()}, names)

    def _take_plan(self, stamp: str) -> None:
        problem, found = "", None
        try:
            from ralf.tasks import planfile  # loaded where there is one

            found = planfile.load(self._project) if stamp else None
        except RalfError as error:
            problem = str(error)
        self.book.rows.put("plan", [stamp, problem])
        self.book.entries.put_plan([chain.segments for chain in found.chains] if found is not None else [])

    # ---- files ----

    def look_at(self, ids: Iterable[str], names: Iterable[str] = ()) -> None:
        """Take in the files of some tasks, those of these names among them, and of the tasks that they say."""
        ids, files = {*ids}, dict[str, File | None]()
        left = {*names}
        while left := {*left, *(one for id_ in ids for one in self._names(id_))} - files.keys():
            files |= {name: self._file(name) for name in left}
            ids |= {file.id for file in files.values() if file is not None}
        there = self._judged({name: file for name, file in files.items() if file is not None})
        of: dict[str, dict[str, File]] = {id_: {} for id_ in ids}
        for name, file in there.items():
            of[file.id][name] = file
        for id_, found in of.items():
            self._derive(id_, found)
        self.book.changed()

    def _names(self, id_: str) -> list[str]:
        """The names of the files that say that they are a task, as far as that is known."""
        return [name for (name,) in self.book.entries.ask("select name from task_file where id = ?", id_)]

    def files_of(self, id_: str) -> list[tuple[str, File]]:
        """The files that say that they are a task, and can be read, with their names; the one that counts comes
        first.
        """
        if id_ not in self._chosen:
            self.look_at([id_])
        return self._chosen[id_]

    def _row(self, id_: str) -> Mapping[str, Any]:
        row: Mapping[str, Any] | None = self.book.rows.one(f"full/{id_}")
        if row is None:  # the index has become unusable meanwhile
            self.look_at([id_])
            row = self.book.rows.one(f"full/{id_}")
        return row or {"tree": {}, "warnings": []}

    def _file(self, name: str) -> File | None:
        """A file as the task that it says; None for one that is gone, and for what a loss of power has left of one."""
        path = self.book.path(name)
        id_ = folders.name_of(path)
        try:
            stat = os.lstat(path)
            stamp = folders.stamp(stat)
            newest = max(stat.st_mtime_ns, stat.st_ctime_ns)
            if newest >= time.time_ns() - (_SETTLED if stat.st_ctime_ns % 1_000_000 else _SETTLED_COARSE):
                stamp = 0
            content = content_of(path, most=MAX_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            return File(0, "", id_, None, f"{path}: cannot be read: {error.strerror}")
        digest, known = records.digest_of(content), self.book.known(id_)
        if known.tree is not None and known.digest == digest and not known.is_cut:
            return File(stamp, digest, id_, known.tree)
        if known.tree is not None and is_torn(content):
            what = f"{path}: holds nothing; its task is in the records"
            return None if self.is_lost(known) else File(stamp, digest, id_, None, what)
        from ralf.tasks import taskfile  # which loads YAML

        try:
            task = taskfile.parse(content, path)
            tree = records.plain(task)
            repr(tree).encode()
        except (Damaged, UnicodeEncodeError) as error:
            return File(stamp, digest, id_, None, str(error))
        is_edit = self.book.known(task.id).digest or self._project.owner.pinned
        return File(stamp, digest, task.id, tree, "", content if is_edit else b"")

    # ---- whose a file is ----

    def _judged(self, files: Mapping[str, File]) -> dict[str, File]:
        """Files with whether they are foreign: all but a file that a record has, and an edit of one that git has not
        brought. What was foreign stays so. In RALF's own tree whoever plans writes new files by hand.
        """
        book, rows = self.book, self.book.rows
        found, asked = dict(files), dict[Path, bytes]()
        for name, file in files.items():
            known, entry = book.known(file.id), book.entries.get(file.id)
            if rows.one(f"own/{file.digest}") is not None or rows.one(f"read/{file.digest}") is not None:
                continue
            was = entry.files.get(name) if entry is not None else None
            is_old = (known.foreign and known.digest == file.digest) or (was is not None and was[0] and was[2])
            created = (known.tree or {}).get("created")  # to the microsecond: an edit has it, a file from elsewhere not
            is_other = bool(created and file.tree is not None and file.tree.get("created") != created)
            if file.problem:  # it stays whose it was until it can be read
                found[name] = file._replace(is_foreign=is_old or known.tree is None)
            elif is_old or not file.content or ((known.foreign or is_other) and not self._project.owner.pinned):
                found[name] = file._replace(is_foreign=True)
            else:
                asked[book.path(name)] = file.content
        if asked:
            brought, unsure = git_files.brought(
                asked, lambda one: rows.one(f"own/{records.digest_of(one)}") is not None
            )
            for path in asked:
                name = book.name(path)
                if path in brought | unsure:
                    stamp = 0 if path in unsure else files[name].stamp
                    found[name] = files[name]._replace(is_foreign=True, stamp=stamp)
                else:  # once read as ours it stays ours, if git takes it in
                    rows.put(f"read/{files[name].digest}", 1)
        return {name: file._replace(content=b"") for name, file in found.items()}

    # ---- what records and files come to together ----

    def _derive(self, id_: str, files: Mapping[str, File]) -> None:
        """Make the rows of an id anew."""
        rows, known, closed = self.book.rows, self.book.known(id_), ("completed", "cancelled", "failed", "pending")

        def rank(one: tuple[str, File]) -> tuple[bool, bool, int, str]:
            name, file = one
            status = (file.tree or {}).get("status", "pending")
            return file.is_foreign, name != known.place, closed.index(status), name

        chosen = sorted(((name, file) for name, file in files.items() if file.tree is not None), key=rank)
        self._chosen[id_] = chosen
        entry = Entry({name: (one.stamp, one.digest, one.is_foreign, one.problem) for name, one in files.items()})
        row: dict[str, Any] | None = None
        if chosen:
            (name, file), *_ = chosen
            task, is_due = self._with_file(name, file, known, is_shown=self.is_shown(id_, entry))
            entry = entry._replace(path=name, is_foreign=file.is_foreign, is_due=is_due)
            tree = records.plain(task) if task != records.task_of(file.tree or {}) else file.tree
            row = {"tree": tree, "warnings": self._warnings(id_, task, chosen)}
        elif known.tree is not None and (self.is_lost(known) or not (known.base or self.is_shown(id_, entry))):
            task, entry = records.task_of(known.tree), entry._replace(path=known.place, is_due=True)
            row = {"tree": known.tree, "warnings": []}
        if row is not None:
            entry = entry._replace(
                status=task.status,
                role=task.role,
                route=task.context_route,
                title=words_of(task.title),
                created=task.created,
                priority=task.priority,
                after=tuple(task.after),
                order=known.order,
            )
        is_there = bool(files) or rows.one(f"known/{id_}") is not None
        rows.put(f"full/{id_}", row)
        self.book.entries.put(id_, entry if is_there else None)

    def _with_file(self, name: str, file: File, known: Known, *, is_shown: bool) -> tuple[Task, bool]:
        """What a task is by its file, with what a record says and the file does not; whether it is due."""
        task = said = records.task_of(file.tree or {})
        if not is_shown and known.tree is not None and known.prior is not None:
            from ralf.tasks import taskfile  # for a writer that died

            task, _ = taskfile.merged(records.task_of(known.prior), records.task_of(known.tree), said)
        elif not file.is_foreign:
            status = folders.folder_status(self.book.path(name))
            is_moved = known.place and status != folders.folder_status(self.book.path(known.place))
            if is_moved and said.status == (known.tree or {}).get("status", "pending"):  # and that says it
                task = replace(said, status=status or "pending")
        is_same = task == said and file.digest == known.digest and not _is_misplaced(name, task)
        return task, not is_shown or not (file.is_foreign or is_same)

    def _warnings(self, id_: str, task: Task, chosen: list[tuple[str, File]]) -> list[str]:
        others = [f"{self.book.path(name)}: a second file of {id_}; keep one of them" for name, _ in chosen[1:]]
        told = others[:MOST_NAMED]
        if len(others) > MOST_NAMED:
            told.append(f"{id_}: {len(others) - MOST_NAMED:,} more files of it")
        claim = self.book.claim(id_)
        if claim is not None and task.status != "pending":
            told.append(f"{id_}: its file says {task.status}, but {claim.by} holds it")
        elif claim is not None and chosen[0][1].is_foreign:
            told.append(f"{id_}: a pull changed its file, but {claim.by} holds it: is another clone at it, too?")
        return told

    def prev(self, id_: str) -> Path:
        """Where what a write displaced from a task's file lies until the next write of that task."""
        return self._project.folder / "prev" / "tasks" / f"{id_}.md"

    def is_lost(self, known: Known) -> bool:
        """Whether the file of a task may not have outlived a loss of power, and nobody has looked since."""
        boot = origin.boot()
        return bool(known.tree is not None and known.boot and boot) and boot not in (
            known.boot,
            self.book.rows.one("boot"),
        )

    def is_shown(self, id_: str, entry: Entry | None = None) -> bool:
        """Whether the file of a task has shown what its newest record says; what it says now came later. A new one was
        there where it has left an empty file among those that were displaced, another one where it has displaced one.
        """
        rows, known, prev = self.book.rows, self.book.known(id_), self.prev(id_)
        if known.base == known.digest or rows.one(f"shown/{id_}") == known.digest:
            return True
        entry = entry or self.book.entries.get(id_) or Entry({})
        is_shown = any(digest == known.digest for _, digest, *_ in entry.files.values())
        if not is_shown and os.path.lexists(prev):
            try:
                is_shown = records.digest_of(places.content(prev, MAX_BYTES)) == (known.base or records.digest_of(b""))
            except OSError:
                is_shown = False
        if is_shown:
            rows.put(f"shown/{id_}", known.digest)
        return is_shown


def tasks_folder(project: Project) -> Path:
    """A project's `.autonomous/tasks`."""
    return project.folder.parent / folders.TASKS


def _is_misplaced(name: str, task: Task) -> bool:
    """Whether a file that ralf has made stands in the folder of another status."""
    *_, folder, called = ("", *name.split("/"))
    wanted = task.status if task.status in folders.CLOSED else folders.OPEN[0]
    return called == f"{task.id}.md" and folder != wanted and folder in (folders.OPEN[0], *folders.CLOSED)


def is_torn(content: bytes) -> bool:
    """Whether a file is what a loss of power leaves of one."""
    return b"\0" in content or not content.strip()
