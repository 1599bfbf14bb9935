"""One write to the tasks of a project: a record first, then the files that it changes."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ralf.errors import MEND_JOURNAL, Damaged, DamagedJournal, TaskNotFound, UsageError
from ralf.project import Project
from ralf.storage import durable, files, git_files
from ralf.tasks import folders, records
from ralf.tasks.answers import Row
from ralf.tasks.index import Index, chosen_of
from ralf.tasks.model import Task, TaskState
from ralf.tasks.records import STREAM, Body, Change, Record, Seen

T = TypeVar("T")

_MOST_TRIES = 8  # saves by an editor that one write takes in

_PATIENCE = 0.1  # seconds that a write waits for an editor to finish a save

_GRACE = 2 * durable.GRACE
"""Seconds after which a displaced file is looked at again."""

_MODE = 0o644  # of a new task file: people commit it

_IGNORED = b".gitignore\n.ralf-*\n"


class _Left(NamedTuple):
    """What a write leaves beside a file for a moment, and a later one looks at.

    hidden  the displaced file, of which all is known; "" for whatever lies there
    name    the file beside which it lies, or did: a task's folder moves with all that is in it
    task    whose file that is; "" where only its content says it
    at      seconds since 1970
    """

    hidden: str
    name: str
    task: str
    at: float


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
        self._left: list[_Left] = []

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
        self._sweep()
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
        unseen = durable.sweep(target) if again and target.parent.is_dir() else []
        if again:
            self._look_again(target, change.task)
        content = _settled(target)
        if content is None:
            if change.tree is None:
                return "", False  # a person removed it
            files.make(target.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
            self._hide()
            task = records.task_of(change.tree)
            made = taskfile.render(task)
            displaced = durable.exchange(target, made, hashlib.sha256(b"").hexdigest(), mode=_MODE)
            return self._taken_in(change, target, task, made, b"", displaced)
        for aside in unseen:  # a save that a writer displaced who died: ours is made to it anew
            if self._is_brought(Path(aside.path), aside.content):
                continue
            content = self._rescued(change, target, content, aside)
        if records.digest_of(content) == change.digest:
            return change.digest, False
        if change.tree is not None:
            return records.digest_of(content), self._is_brought(target, content)  # another file stands there
        task = taskfile.parse(content, target)
        is_brought = not change.foreign and self._is_brought(target, content)  # a pull, after the record
        digest, is_more = self._replaced(change, target, content, task, change.made_to(task))
        return digest, is_brought or is_more

    def _replaced(self, change: Change, target: Path, content: bytes, base: Task, ours: Task) -> tuple[str, bool]:
        from ralf.tasks import taskfile

        made = taskfile.render(ours, content)
        if made == content:
            return records.digest_of(content), False
        self._hide()
        displaced = durable.exchange(target, made, hashlib.sha256(content).hexdigest())
        return self._taken_in(change, target, ours, made, content, displaced, base)

    def _taken_in(
        self,
        change: Change,
        target: Path,
        ours: Task,
        made: bytes,
        expected: bytes,
        displaced: durable.DisplacedFile | None,
        base: Task | None = None,
    ) -> tuple[str, bool]:
        """The digest of the file once a save that was displaced is merged into it, and whether git has brought that."""
        from ralf.tasks import taskfile

        is_brought = False
        for _ in range(_MOST_TRIES):
            if displaced is None or displaced.content == expected:
                if displaced is not None:
                    self._drop(displaced, change.task, is_known=True)
                elif expected:  # perhaps half of a save
                    self._look_again(target, change.task)
                break
            try:
                theirs = taskfile.parse(displaced.content, target)
            except Damaged as error:
                self._kept_apart(displaced, target, error)
                break
            with suppress(durable.BeingSaved):
                is_brought |= self._is_brought(target, displaced.content)
            merged, lines = taskfile.merged(base or theirs, ours, theirs)
            if (
                base is not None and theirs.text != base.text != ours.text
            ):  # what was just saved may be on our side, too
                merged = replace(merged, text=united(base.text, ours.text, theirs.text))
            self.warnings += [f"{change.task}: {line}" for line in lines]
            base, ours, expected, made = ours, merged, made, taskfile.render(merged, displaced.content)
            absorbed, displaced = displaced, durable.exchange(target, made, hashlib.sha256(expected).hexdigest())
            self._drop(absorbed, change.task, is_known=False)
        return records.digest_of(made), is_brought

    def _kept_apart(self, aside: durable.DisplacedFile, target: Path, error: Damaged) -> None:
        """Give a save that cannot be merged a visible name."""
        kept = target.with_suffix(f".displaced-{records.digest_of(aside.content)[:8]}")
        aside.keep(kept)
        self.warnings.append(f"{kept}: saved by someone while ralf wrote the file, and cannot be merged: {error}")

    def _rescued(self, change: Change, target: Path, content: bytes, aside: durable.DisplacedFile) -> bytes:
        """The file's bytes once a save into an earlier version of it, which nobody has seen yet, is merged into it."""
        from ralf.tasks import taskfile

        try:
            standing, theirs = taskfile.parse(content, target), taskfile.parse(aside.content, target)
        except Damaged as error:
            self._kept_apart(aside, target, error)
            return content
        ours, like = change.made_to(theirs), aside.content
        is_next = aside.known != "" and change.base.startswith(aside.known)  # else later changes are not in it
        if not is_next or records.digest_of(content) not in (change.base, change.digest):  # saved into, too
            newer, like = change.made_to(standing), content
            names = [one.name for one in fields(newer) if one.name != "text"]
            if differing := [name for name in names if getattr(ours, name) != getattr(newer, name)]:
                what = f"{', '.join(differing)}: otherwise in a save into an earlier version of the file"
                self.warnings.append(f"{target}: {what}; what stands there now stays")
            ours = replace(newer, text=with_both(newer.text, ours.text))
        made = taskfile.render(ours, like)
        displaced = durable.exchange(target, made, hashlib.sha256(content).hexdigest())
        self._drop(aside, change.task, is_known=False)
        self._taken_in(change, target, ours, made, content, displaced, standing)
        return _settled(target) or b""

    def _move(self, change: Change, target: Path) -> None:
        """Move a file to where it is to stand, with all that it holds now."""
        source = self.index.path(change.origin) if change.origin else target
        if source == target or not os.path.lexists(source):
            return
        if os.path.lexists(target):
            is_one = os.path.samestat(os.lstat(source), os.lstat(target))  # a writer died between its two names
            content = files.content_of(source)
            if is_one or records.digest_of(content) in (change.base, change.digest):
                self._look_again(target, change.task, durable.set_aside(source, target, content))
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

    def _sweep(self) -> None:
        """Remove what earlier writes left beside files, once nobody can be about to open it. What somebody has saved
        into it meanwhile is merged.
        """
        merged: list[tuple[str, str]] = []
        looked = set[str]()
        if not self.index.has_all_left:
            self._find_strays()
        for left in [_Left(*one) for one in self.index.meta("left", [])]:
            if abs(time.time() - left.at) < _GRACE:
                self._left.append(left)
                continue
            with suppress(FileNotFoundError):
                if _is_removed(left.hidden):
                    continue
            if left.name not in looked:
                looked.add(left.name)
                merged += self._merged_late(left)
        if merged:
            self.append(Seen(digests=tuple(merged)))

    def _find_strays(self) -> None:
        """Look again at what writers have left beside files of which no index tells any more."""
        found: dict[Path, str] = {}
        for folder, _, names in os.walk(self._folder):
            for name in filter(durable.is_hidden, names):
                parts = 2 if name.endswith(durable.ASIDE_SUFFIX) else 3 if name.endswith(durable.SEEN_SUFFIX) else 1
                target = name.removeprefix(durable.TEMPORARY_PREFIX).rsplit("-", parts)[0]
                beside = Path(folder, target)
                ids = self.index.ids_at(self.index.name(os.fspath(beside)))
                found[beside] = next(iter(ids), "")
        for beside, id_ in found.items():
            self._look_again(beside, id_)

    def _is_brought(self, path: Path, content: bytes) -> bool:
        """Whether git has brought what a file holds, which no one has accepted. What is called like a displaced file is
        no save then. BeingSaved where git is at work, and no one can tell.
        """
        if self.index.is_own(content):
            return False
        brought, unsure = git_files.brought({path: content}, self.index.is_own)
        if unsure:
            raise durable.BeingSaved(path)
        return bool(brought)

    def _merged_late(self, left: _Left) -> list[tuple[str, str]]:
        """What a save into a file that was displaced before comes to, merged into the one that stands now, in its place
        or where the task has moved since.
        """
        beside, found = self.index.path(left.name), []
        passed = set[Path]()  # of a task that a person removed, or brought by git
        try:
            now = self._standing(left.task)
            places = {beside, now[1]} if now is not None else {beside}
            for aside in [one for place in places for one in durable.sweep(place)]:
                now = self._standing(left.task or self._task_of(aside))
                if now is None or self._is_brought(Path(aside.path), aside.content):
                    passed.add(Path(aside.path))
                    continue
                change, target, content = now
                content = self._rescued(change, target, content, aside)
                self.index.take_in([target])
                found.append((change.task, records.digest_of(content)))
            if not passed.issuperset(one for place in places for one in durable.hidden_beside(place)):
                self._look_again(beside, left.task)  # somebody has one of them open
        except durable.BeingSaved:
            self._look_again(beside, left.task)
        except (OSError, Damaged) as error:
            self.warnings.append(f"{beside}: {error}")
        return found

    def _standing(self, id_: str) -> tuple[Change, Path, bytes] | None:
        """What a write did to a task last, where its file stands and what it holds; None for one that is gone, or that
        no write has changed. BeingSaved.
        """
        known = self.index.known.get(id_)
        row, _ = chosen_of(self.index.rows(id_), known)
        if known is None or known.change is None or row is None:
            return None
        path = self.index.path(row.path)
        content = _settled(path)
        return (known.change, path, content) if content is not None else None

    @staticmethod
    def _task_of(aside: durable.DisplacedFile) -> str:
        """Whose file was displaced. Damaged."""
        from ralf.tasks import taskfile

        return taskfile.parse(aside.content, aside.target).id

    def _drop(self, displaced: durable.DisplacedFile, task: str, *, is_known: bool) -> None:
        """Leave a displaced file for a moment: a program may be about to save into it.

        is_known  whether it holds what was expected there, which its name says; else what it holds is merged by now
        """
        if not is_known:
            displaced.drop()
        self._look_again(displaced.target, task, displaced.path if is_known else "")

    def _look_again(self, beside: Path, task: str, hidden: str = "") -> None:
        """Have a later write look at a file that lies hidden beside another one, or at all that lie there."""
        self._left.append(_Left(hidden, self.index.name(os.fspath(beside)), task, time.time()))

    def done(self, work: Callable[[Writer], T]) -> T:
        """Complete what others left, do the work, and remember what is to be swept after it."""
        try:
            self.complete()
            return work(self)
        finally:
            with suppress(sqlite3.Error):  # it is a cache
                self.index.keep_left(self._left)


def with_both(one: str, other: str) -> str:
    """A text with the lines of both, those of both once."""
    import difflib  # for two who change a text in the same moment

    lines, more, found = one.split("\n"), other.split("\n"), []
    for kind, first, last, begin, end in difflib.SequenceMatcher(None, lines, more, autojunk=False).get_opcodes():
        found += lines[first:last] + (more[begin:end] if kind != "equal" else [])
    return "\n".join(found)


def united(base: str, ours: str, theirs: str) -> str:
    """A text with the lines that either has added, without those that either has taken out."""
    import difflib  # for two who change a text in the same moment

    was = base.split("\n")
    added: list[list[str]] = [[] for _ in range(len(was) + 1)]
    gone: set[int] = set()
    for text in (theirs, ours):
        lines = text.split("\n")
        for kind, first, last, begin, end in difflib.SequenceMatcher(None, was, lines, autojunk=False).get_opcodes():
            if kind != "equal":
                gone.update(range(first, last))
                added[first] += [line for line in lines[begin:end] if line not in added[first]]
    found = [
        line
        for place in range(len(was))
        for line in (*added[place], *(() if place in gone else was[place : place + 1]))
    ]
    return "\n".join([*found, *added[-1]])


def _is_removed(hidden: str) -> bool:
    """Remove a displaced file of which all is known; whether it was. Not where somebody has saved into it, or has it
    open. FileNotFoundError.
    """
    if not hidden:
        return False
    found = files.read(hidden)
    known = hidden.removesuffix(durable.ASIDE_SUFFIX).rsplit("-", 2)[-2]
    if found.closed is False or hashlib.sha256(found.content).hexdigest()[: len(known)] != known:
        return False
    Path(hidden).unlink()
    return True


def _settled(path: Path) -> bytes | None:
    """The bytes of a file once nobody is saving it, None for none; BeingSaved, OSError."""
    try:
        found = files.settled(path, _PATIENCE, end=b"\n")
    except FileNotFoundError:
        return None
    if found is None:
        raise durable.BeingSaved(path)
    return found
