"""One write to the tasks of a project: a record first, then the files that it changes."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ralf.errors import MEND_JOURNAL, Damaged, DamagedJournal, TaskNotFound, UsageError
from ralf.project import Project
from ralf.storage import durable, files
from ralf.tasks import folders, records
from ralf.tasks.answers import Row
from ralf.tasks.index import Index, chosen_of
from ralf.tasks.model import Task, TaskState
from ralf.tasks.records import STREAM, Body, Change, Record, Seen
from ralf.tasks.saves import Saves, settled

T = TypeVar("T")

_MODE = 0o644  # of a new task file: people commit it

_IGNORED = b".gitignore\n.ralf-*\n"


class Writer:
    """One write: the lock is held. Done once more after the index was torn, it appends no record twice."""

    def __init__(self, project: Project, index: Index, name: str, told: Callable[[Index, str], TaskState]) -> None:
        self.index = index
        self.name = name
        self.warnings: list[str] = []
        self._project = project
        self._folder = project.folder.parent / folders.TASKS
        self._told = told
        self._count = 0
        self._still: list[str] = []  # tasks whose files cannot be brought up to date now
        self._saves = Saves(project, index, self.warnings)

    # ---- records ----

    def append(self, body: Body) -> Record:
        """Append a record; it is durable and read back when this returns. Then its files are brought up to date."""
        seen = self.index.unrecorded()
        record = Record(self.index.number + 1, records.now(), self.name, tuple(self._still), body, seen)
        self._count += 1
        self._project.store.append(
            STREAM, records.encoded(record), id=f"{body.kind}-{self.name}-{self._count}", after=self.index.token
        )
        self.index.take_in(())
        if self.index.write != self.name:
            raise DamagedJournal(STREAM, "what was written is not what is read back", MEND_JOURNAL)
        changes: Sequence[Change] = getattr(body, "changes", ())
        if changes:
            self._bring_up(changes)
        return record

    def has_written(self, id_: str) -> bool:
        """Whether this write has changed a task's file already."""
        known = self.index.known.get(id_)
        return known is not None and known.write == self.name

    def state(self, id_: str, *warnings: str) -> TaskState:
        """A task as it is now, with what is to be said of this write."""
        found = self._told(self.index, id_)
        return replace(found, warnings=(*found.warnings, *self.warnings, *warnings))

    # ---- files ----

    def complete(self) -> None:
        """Bring files up to date that a writer left behind its records, who died or could not write them."""
        changes = []
        for id_ in self.index.owed:
            change = self.index.owed_change(id_, self.index.known.get(id_))
            if change is not None:
                changes.append(change)
        self._take_late_saves()
        if changes:
            self._bring_up(changes, again=True)
        moved = [self.change_of(id_) for id_ in self.index.misplaced() if id_ not in self._still]
        if moved:
            self.append(Seen(tuple(moved)))

    def change_of(self, id_: str, **values: Any) -> Change:
        """What is to be done to a task's file so that these fields get these values, and those that a record before has
        given it and the file does not show yet. Damaged, OSError; UsageError for a symbolic link.
        """
        from ralf.tasks import taskfile

        row = self._row(id_)
        path = self.index.path(row.path)
        content = files.content_of(path)
        if records.digest_of(content) != row.digest:  # saved since it was looked at
            self.index.renew()
            row = self._row(id_)
        task = taskfile.parse(content, path)
        owed = self.index.owed_change(id_, self.index.known.get(id_))
        made = replace(owed.made_to(task) if owed is not None else task, **values)
        names = dict.fromkeys((*(owed.values if owed is not None else ()), *values))
        target = taskfile.place(self._folder, made, path)
        self._check_inside(target)
        changed = {name: getattr(made, name) for name in names if getattr(made, name) != getattr(task, name)}
        return Change(
            task=id_,
            place=self.index.name(os.fspath(target)),
            origin=row.path,
            base=records.digest_of(content),
            digest=records.digest_of(taskfile.render(made, content)),
            values=changed,
            before={name: records.value_digest(getattr(task, name)) for name in changed},
            foreign=row.is_foreign,
        )

    def new_file(self, task: Task) -> Change:
        """What makes the file of a new task."""
        from ralf.tasks import taskfile

        target = taskfile.place(self._folder, task)
        self._check_inside(target)
        return Change(
            task=task.id,
            place=self.index.name(os.fspath(target)),
            digest=records.digest_of(taskfile.render(task)),
            tree=records.tree_of(task),
        )

    def _check_inside(self, target: Path) -> None:
        folders.check_inside(target, self._folder.parent, self.index.path(""))

    def _row(self, id_: str) -> Row:
        row, _ = chosen_of(self.index.rows(id_), self.index.known.get(id_))
        if row is None:
            raise TaskNotFound(id_)
        return row

    def _bring_up(self, changes: Iterable[Change], *, again: bool = False) -> None:
        """Make the files show what records did to them. What cannot be done now is left to the next write, and said:
        the records are durable.

        again  whether a writer before may have died at it, and left files that nobody has looked at
        """
        paths: list[Path] = []
        merged: list[tuple[str, str]] = []
        foreign: list[Change] = []
        for change in changes:
            target = self.index.path(change.place)
            paths += [target, *([self.index.path(change.origin)] if change.origin else [])]
            try:
                digest, is_brought = self._brought_up(change, target, again=again)
            except (OSError, Damaged, UsageError) as error:
                self._still.append(change.task)
                what = error.strerror if isinstance(error, OSError) else str(error)
                self.warnings.append(f"{target}: {what}; the next write updates it")
                continue
            if is_brought:
                now = Change(change.task, change.place, change.place, digest, digest, foreign=True)
                foreign.append(now)
            elif digest and digest != change.digest and not change.foreign:
                merged.append((change.task, digest))
        if foreign:  # before anybody looks at the files: then they would pass for this user's
            self.append(Seen(tuple(foreign)))
        self.index.take_in(paths)
        if merged:
            self.append(Seen(digests=tuple(merged)))

    def _brought_up(self, change: Change, target: Path, *, again: bool) -> tuple[str, bool]:
        """Bring one file up to date; the digest of what it holds then, "" where there is none, and whether git has
        brought a part of it since.
        """
        from ralf.tasks import taskfile

        self._check_inside(target)
        self._move(change, target)
        saves, is_brought = self._saves, False
        unseen = saves.unseen(target, change.task) if again else []
        content = settled(target)
        if content is None:
            if change.tree is None:
                return "", False  # a person removed it
            files.make(target.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
            self._hide()
            task = records.task_of(change.tree)
            made, is_brought = saves.replace(target, taskfile.render(task), b"", task, None, mode=_MODE)
            return records.digest_of(made), is_brought
        for aside in unseen:  # a save that a writer displaced who died: ours is made to it anew
            if saves.is_foreign_save(aside):
                continue
            self._hide()
            content, is_more = saves.rescued(aside, target, content, change, is_owed=True)
            is_brought |= is_more
        if records.digest_of(content) == change.digest:
            return change.digest, is_brought
        if change.tree is not None:
            return records.digest_of(content), is_brought or saves.is_brought(target, content)  # another file is there
        task = taskfile.parse(content, target)
        is_brought |= not change.foreign and saves.is_brought(target, content)  # a pull, after the record
        ours = change.made_to(task)
        made = taskfile.render(ours, content)
        if made != content:
            self._hide()
            made, is_more = saves.replace(target, made, content, ours, task)
            is_brought |= is_more
        return records.digest_of(made), is_brought

    def _take_late_saves(self) -> None:
        """Take in what was saved into files that earlier writes displaced, and record whose it is."""
        taken = self._saves.taken_late()
        foreign = [
            Change(one.task, name := self.index.name(os.fspath(one.path)), name, one.digest, one.digest, foreign=True)
            for one in taken
            if one.is_foreign
        ]
        if foreign:  # before anybody looks at the files: then they would pass for this user's
            self.append(Seen(tuple(foreign)))
        if taken:
            self.index.take_in([one.path for one in taken])
        own = tuple((one.task, one.digest) for one in taken if not one.is_foreign)
        if own:
            self.append(Seen(digests=own))

    def _move(self, change: Change, target: Path) -> None:
        """Move a file to where it is to stand, with all that it holds now."""
        source = self.index.path(change.origin) if change.origin else target
        if source == target or not os.path.lexists(source):
            return
        if os.path.lexists(target):
            is_one = os.path.samestat(os.lstat(source), os.lstat(target))  # a writer died between its two names
            content = files.content_of(source)
            if is_one or records.digest_of(content) in (change.base, change.digest):
                self._saves.hide(source, target, content, change.task)
            else:
                self.warnings.append(f"{source}: saved after ralf moved it to {target}; left as it is")
            return
        is_folder = source.name == target.name and source.parent.name == target.parent.name != ""
        is_folder = (
            is_folder and source.parent.parent != target.parent.parent and source.parent.name not in folders.FOLDERS
        )
        if is_folder and not os.path.lexists(target.parent):
            files.make(target.parent.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
            source.parent.rename(target.parent)
            durable.sync_folder(target.parent.parent)
            durable.sync_folder(source.parent.parent)
            return
        files.make(target.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
        with suppress(FileExistsError):
            durable.move(source, target)

    def _hide(self) -> None:
        """Keep git from what a write leaves beside a file for a moment."""
        path, kept = self._folder / ".gitignore", self._folder / folders.OPEN[0] / ".gitkeep"
        with suppress(OSError):
            if not os.path.lexists(path):
                durable.add(path, _IGNORED)
            if kept.parent.is_dir() and not os.path.lexists(kept):
                files.touch(kept)  # where all tasks are completed git would take the folder for renamed

    def done(self, work: Callable[[Writer], T]) -> T:
        """Complete what others left, do the work, and keep what the next write is to look at."""
        try:
            self.complete()
            return work(self)
        finally:
            with suppress(sqlite3.Error):  # it is a cache
                self.index.keep_left(self._saves.left)
