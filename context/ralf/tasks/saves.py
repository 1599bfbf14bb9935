"""What a person saves into a task's file in the moment of a write: it is merged, or kept apart where it cannot be.

A write displaces the file that stood there. Whoever had found it just before may save into it later, so it lies hidden
beside the new one until nobody has it open, and later writes look at it. What it held when it was displaced is kept in
the index: that is the base on which such a save is merged.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

from ralf.errors import Damaged, RalfError, UsageError
from ralf.project import Project
from ralf.storage import durable, files, git_files
from ralf.tasks import folders, origin, records
from ralf.tasks.index import Index, chosen_of, is_text
from ralf.tasks.model import Task
from ralf.tasks.records import Change

_MOST_TRIES = 8  # saves by an editor that one write takes in

_PATIENCE = 0.1  # seconds that a write waits for an editor to finish a save

_GRACE = 2 * durable.GRACE
"""Seconds after which a displaced file is looked at again."""

_GONE = 7 * 86400.0
"""Seconds after which a save into the file of a task that is gone gets a visible name: until then it may be back, as
after a checkout of another branch.
"""

_MOST = 25_000_000  # pairs of lines that are compared: more would take seconds


class Left(NamedTuple):
    """What a write leaves beside a file for a moment, and a later one looks at.

    hidden  the displaced file, of which all is known; "" for whatever lies there
    inode   its number, by which the index may have what it held; 0 where no certain file is meant
    name    the file beside which it lies, or did: a task's folder moves with all that is in it
    task    whose file that is; "" where only its content says it
    at      seconds since 1970
    """

    hidden: str
    inode: int
    name: str
    task: str
    at: float


class Taken(NamedTuple):
    """A task's file that got a save which came late, and whether git brought a part of what it holds now."""

    task: str
    path: Path
    digest: str
    is_foreign: bool


class Saves:
    """The saves that one write meets; the lock on the tasks is held. `left` is for `Index.keep_left`."""

    def __init__(self, project: Project, index: Index, warnings: list[str]) -> None:
        self._project = project
        self._index = index
        self._folder = project.folder.parent / folders.TASKS
        self._warnings = warnings
        self.left = [*map(Left._make, index.meta("left", [])), *self._met(), *self._strays()]

    # ---- while a file is written ----

    def replace(
        self, target: Path, made: bytes, expected: bytes, ours: Task, base: Task | None, *, mode: int | None = None
    ) -> tuple[bytes, bool]:
        """Write a task's file, and merge what somebody saves into it meanwhile; the bytes that stand there then, and
        whether git has brought a part of them. Errors: `durable.exchange`; UsageError.

        made, ours  the bytes, and the task that they say
        expected    what is known to stand there, b"" for nothing; base: the task that it says
        """
        from ralf.tasks import taskfile

        displaced = durable.exchange(target, made, hashlib.sha256(expected).hexdigest(), mode=mode)
        is_brought = False
        for _ in range(_MOST_TRIES):
            if displaced is None or displaced.content == expected:
                if displaced is not None:
                    self._drop(displaced, ours.id, is_known=True)
                elif expected:  # perhaps half of a save
                    self._look_again(target, ours.id)
                break
            try:
                theirs = taskfile.parse(displaced.content, target)
            except Damaged as error:
                self._keep_apart(displaced, target, str(error))
                break
            with suppress(durable.BeingSaved):
                is_brought |= self.is_brought(target, displaced.content)
            base, ours = ours, self._merged(base or theirs, ours, theirs)
            expected, made = made, taskfile.render(ours, displaced.content)
            absorbed, displaced = displaced, durable.exchange(target, made, hashlib.sha256(expected).hexdigest())
            self._drop(absorbed, ours.id, is_known=False)
        return made, is_brought

    def _merged(self, base: Task, ours: Task, theirs: Task, *, is_late: bool = False) -> Task:
        from ralf.tasks import taskfile

        made, lines = taskfile.merged(base, ours, theirs)
        if theirs.text != base.text != ours.text:  # what was just saved may be on our side, too
            texts = (ours.text, theirs.text) if is_late else (theirs.text, ours.text)
            made = replace(made, text=united(base.text, *texts))
            lines = [line for line in lines if not line.startswith("text:")]
        self._warnings += [f"{ours.id}: {line}" for line in lines]
        return made

    def hide(self, path: Path, beside: Path, content: bytes, task: str) -> None:
        """Hide a file that is not needed beside another one, as if that had displaced it."""
        hidden = durable.set_aside(path, beside, content)
        self._keep_base(hidden, content, beside, task, hidden)

    def is_brought(self, path: Path, content: bytes) -> bool:
        """Whether git has brought what a file holds, which no one has accepted. What is called like a displaced file is
        no save then. BeingSaved where git is at work, and no one can tell.
        """
        if self._index.is_own(content):
            return False
        brought, unsure = git_files.brought({path: content}, self._index.is_own)
        if unsure:
            raise durable.BeingSaved(path)
        return bool(brought)

    # ---- what was displaced ----

    def unseen(self, target: Path, task: str) -> list[durable.DisplacedFile]:
        """What lies hidden beside a file since a writer died who displaced it, and somebody has saved into."""
        self._look_again(target, task)
        return durable.sweep(target) if target.parent.is_dir() else []

    def rescued(
        self, aside: durable.DisplacedFile, target: Path, content: bytes, change: Change, *, is_owed: bool
    ) -> tuple[bytes, bool]:
        """Merge a save into an earlier version of a task's file into the one that stands; its bytes then, and whether
        git has brought a part of them. Errors: `replace`.

        change   what a write did to the task last; is_owed: whether the file may not show it yet
        """
        from ralf.tasks import taskfile

        before = self._index.base_of(_inode(aside.path))
        if before is not None and aside.known and not hashlib.sha256(before).hexdigest().startswith(aside.known):
            before = None  # of another file that had this number
        is_ours = records.digest_of(aside.content) == change.digest  # made by a writer who died before it stood there
        if is_ours or before == aside.content or _is_cut_off(aside.content, before or b""):
            if not is_ours and before != aside.content:
                self._warnings.append(f"{target}: a save into an earlier version was cut off; what stands there stays")
            self._drop(aside, change.task, is_known=False)
            return content, False
        try:
            standing, theirs = taskfile.parse(content, target), taskfile.parse(aside.content, target)
            if before is not None:
                ours, like = self._merged(taskfile.parse(before, target), standing, theirs, is_late=True), content
            elif self._is_next(aside, content, change, is_owed=is_owed):
                ours, like = change.made_to(theirs), aside.content
                if "text" in change.values:
                    ours = replace(ours, text=with_both(standing.text, theirs.text))
            else:
                ours, like = self._with_lines(change.made_to(standing) if is_owed else standing, theirs), content
            made = taskfile.render(ours, like)
        except (Damaged, UsageError) as error:
            self._keep_apart(aside, target, str(error))
            return content, False
        is_brought = False
        if made != content:
            made, is_brought = self.replace(target, made, content, ours, standing)
        self._drop(aside, change.task, is_known=False)
        return made, is_brought

    @staticmethod
    def _is_next(aside: durable.DisplacedFile, content: bytes, change: Change, *, is_owed: bool) -> bool:
        """Whether the last write displaced a file, and nobody has saved into the one that stands since."""
        shown = (change.base, change.digest) if is_owed else (change.digest,)
        return aside.known != "" and change.base.startswith(aside.known) and records.digest_of(content) in shown

    def _with_lines(self, standing: Task, theirs: Task) -> Task:
        """A task with the lines of a save of which nobody knows on what it was based."""
        names = [one.name for one in fields(standing) if one.name != "text"]
        if differing := [name for name in names if getattr(theirs, name) != getattr(standing, name)]:
            what = f"its lines are added; the fields that differ ({', '.join(differing)}) stay as they are"
            self._warnings.append(f"{standing.id}: saved into an earlier version of the file: {what}")
        return replace(standing, text=with_both(standing.text, theirs.text))

    def _keep_apart(self, aside: durable.DisplacedFile, target: Path, problem: str) -> None:
        """Give a save that cannot be merged a visible name."""
        kept = target.with_suffix(f".displaced-{records.digest_of(aside.content)[:8]}")
        aside.keep(kept)
        self._warnings.append(f"{kept}: saved by someone while ralf wrote the file, and cannot be merged: {problem}")

    def _drop(self, displaced: durable.DisplacedFile, task: str, *, is_known: bool) -> None:
        """Leave a displaced file for a moment: a program may be about to save into it.

        is_known  whether it holds what was expected there, which its name says; else what it holds is merged by now
        """
        hidden = displaced.path if is_known else ""
        self._keep_base(displaced.path, displaced.content, displaced.target, task, hidden)
        if not is_known:
            try:
                displaced.drop()
            except OSError:  # its name gets too long
                displaced.remove()

    def _keep_base(self, path: str, content: bytes, beside: Path, task: str, hidden: str) -> None:
        with suppress(FileNotFoundError):  # someone cleans the folder
            inode = _inode(path)
            self._index.keep_base(inode, content)
            self._look_again(beside, task, hidden, inode)

    def _look_again(self, beside: Path, task: str, hidden: str = "", inode: int = 0) -> None:
        """Have a later write look at a file that lies hidden beside another one, or at all that lie there."""
        self.left.append(Left(hidden, inode, self._index.name(os.fspath(beside)), task, time.time()))

    # ---- later ----

    def taken_late(self) -> list[Taken]:
        """Remove what earlier writes displaced, once nobody can be about to open it, and merge what somebody has saved
        into it meanwhile.
        """
        taken: dict[str, Taken] = {}
        todo: dict[str, Left] = {}
        over = set[Left]()
        for left in self.left:
            if abs(time.time() - left.at) < _GRACE or self._is_outside(left):
                continue
            over.add(left)
            with suppress(OSError):
                if _is_removed(left.hidden):
                    continue
            todo.setdefault(left.name, left)
        known, self.left = self.left, [left for left in self.left if left not in over]
        try:
            for left in todo.values():
                self._take(left, taken)
        except BaseException:
            self.left = known  # an interrupted write forgets none
            raise
        return [*taken.values()]

    def _is_outside(self, left: Left) -> bool:
        """Whether a folder is a link now that leads to a file: nothing is touched out there."""
        try:
            folders.check_inside(self._index.path(left.name), self._folder.parent, self._index.path(""))
        except UsageError:
            return True
        return False

    def _met(self) -> Iterator[Left]:
        """The files of tasks that were written by others than the writers of this index, or by one who died."""
        for name, task in self._index.met or ():
            yield Left("", 0, name, task, time.time())

    def _strays(self) -> Iterator[Left]:
        """What lies hidden beside files, for an index that is new and knows of nothing."""
        if self._index.met is not None:
            return
        for top in folders.tops(self._folder):
            for folder, _, names in os.walk(top):
                for name in filter(durable.is_hidden, names):
                    parts = 2 if name.endswith(durable.ASIDE_SUFFIX) else 3 if name.endswith(durable.SEEN_SUFFIX) else 1
                    beside = Path(folder, name.removeprefix(durable.TEMPORARY_PREFIX).rsplit("-", parts)[0])
                    if beside.suffix == ".md" and is_text(os.fspath(beside)):  # else no task's
                        task = next(iter(self._index.ids_at(self._index.name(os.fspath(beside)))), "")
                        with suppress(OSError):
                            at = os.lstat(Path(folder, name)).st_ctime
                            yield Left("", 0, self._index.name(os.fspath(beside)), task, at)

    def _take(self, left: Left, taken: dict[str, Taken]) -> None:
        """Merge the saves into files that lie hidden beside a task's file, in its place or where it has moved since."""
        from ralf.tasks import taskfile

        beside = self._index.path(left.name)
        places, passed = {beside}, set[str]()
        try:
            if (now := self._standing(left.task)) is not None:
                places.add(now[1])
            for aside in [one for place in places for one in durable.sweep(place)]:
                if self.is_foreign_save(aside):
                    passed.add(aside.path)
                    continue
                try:
                    task = left.task or taskfile.parse(aside.content, beside).id
                except Damaged as error:
                    self._keep_apart(aside, aside.target, str(error))
                    continue
                if (now := self._standing(task)) is not None:
                    change, target, content, is_foreign = now
                    made, is_brought = self.rescued(aside, target, content, change, is_owed=False)
                    is_foreign |= is_brought or (task in taken and taken[task].is_foreign)
                    if made != content:
                        taken[task] = Taken(task, target, records.digest_of(made), is_foreign)
                elif not self._index.rows(task) and time.time() - aside.version.mtime / 1e9 > _GONE:
                    self._keep_apart(aside, aside.target, "its task is gone")
        except (OSError, RalfError) as error:
            if not isinstance(error, durable.BeingSaved):
                self._warnings.append(f"{beside}: {error}")
        noted = {one.inode for one in self.left}
        for one in (one for place in places for one in durable.hidden_beside(place)):
            with suppress(OSError):  # gone meanwhile
                if os.fspath(one) not in passed and _inode(one) not in noted:  # somebody has it open, or it failed
                    self._look_again(one.parent / beside.name, left.task, inode=_inode(one))

    def is_foreign_save(self, aside: durable.DisplacedFile) -> bool:
        """Whether a file that is called like a displaced one was brought by git, or by an archive. BeingSaved."""
        path = Path(aside.path)
        if self._index.is_own(aside.content):
            return False
        if not origin.foreign_of(self._project, {path: aside.content}, {path}, self._index.is_own)[0]:
            return False
        if not self.is_brought(path, aside.content):
            self._warnings.append(f"{path}: was not saved here; take over what is yours, and remove it")
        return True

    def _standing(self, id_: str) -> tuple[Change, Path, bytes, bool] | None:
        """What a write did to a task last, where its file stands, what that holds and whether it is foreign; None for
        one that is gone or cannot be read, or that no write has changed. BeingSaved.
        """
        known = self._index.known.get(id_)
        if known is None or known.change is None:
            return None
        for _ in range(2):
            row, _ = chosen_of(self._index.rows(id_), known)
            content = settled(self._index.path(row.path)) if row is not None else None
            if row is None or content is None:
                return None
            path = self._index.path(row.path)
            if records.digest_of(content) == row.digest:
                return known.change, path, content, row.is_foreign or self.is_brought(path, content)
            self._index.renew()  # somebody has saved it since it was looked at
        raise durable.BeingSaved(path)


def settled(path: Path) -> bytes | None:
    """The bytes of a file once nobody is saving it, None for none; BeingSaved, OSError."""
    try:
        found = files.settled(path, _PATIENCE, end=b"\n")
    except FileNotFoundError:
        return None
    if found is None:
        raise durable.BeingSaved(path)
    return found


def _is_cut_off(content: bytes, before: bytes) -> bool:
    """Whether a program has not got to the end of what it saved, of which there was an earlier version."""
    is_begun = before.startswith(content) and not (content.endswith(b"\n") and content.count(b"\n---") > 0)
    return is_begun or not content.strip(b"\0\n\r\t ")


def _inode(path: str | Path) -> int:
    """The number of a file, as the index can keep it. OSError."""
    return os.lstat(path).st_ino & (1 << 63) - 1


def _is_removed(hidden: str) -> bool:
    """Remove a displaced file of which all is known; whether it was. Not where somebody has saved into it, or may have
    it open. OSError.
    """
    if not hidden:
        return False
    found = files.read(hidden)
    known = hidden.removesuffix(durable.ASIDE_SUFFIX).rsplit("-", 2)[-2]
    if not found.closed or hashlib.sha256(found.content).hexdigest()[: len(known)] != known:
        return False
    Path(hidden).unlink()
    return True


# ---- texts of two ----


def with_both(one: str, other: str) -> str:
    """A text with the lines of both, those of both once."""
    return "\n".join(_both(one.split("\n"), other.split("\n")))


def _both(one: list[str], other: list[str]) -> list[str]:
    found = []
    for is_changed, first, last, begin, end in _compared(one, other):
        found += one[first:last] + (other[begin:end] if is_changed else [])
    return found


def united(base: str, one: str, other: str) -> str:
    """A text with the lines that either has added, that one's first, without those that either has taken out."""
    was = base.split("\n")
    gone: set[int] = set()
    added: list[dict[int, list[str]]] = []
    for text in (one, other):
        lines = text.split("\n")
        added.append({})
        for is_changed, first, last, begin, end in _compared(was, lines):
            if is_changed:
                gone.update(range(first, last))
                added[-1].setdefault(first, []).extend(lines[begin:end])
    found = []
    for place in range(len(was) + 1):
        found += _both(added[0].get(place, []), added[1].get(place, []))
        found += [] if place in gone else was[place : place + 1]
    return "\n".join(found)


def _compared(one: list[str], other: list[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """The parts in which two lists of lines are alike or not: whether they differ, then from and to which line of each.

    Very long ones are taken to differ as a whole between their first and their last difference.
    """
    import difflib  # for two who change a text in the same moment

    most = min(len(one), len(other))
    head = next((n for n in range(most) if one[n] != other[n]), most)
    tail = next((n for n in range(most - head) if one[-1 - n] != other[-1 - n]), most - head)
    left, right = one[head : len(one) - tail], other[head : len(other) - tail]
    yield False, 0, head, 0, head
    if len(left) * len(right) > _MOST:
        yield True, head, head + len(left), head, head + len(right)
    else:
        for kind, first, last, begin, end in difflib.SequenceMatcher(None, left, right).get_opcodes():
            yield kind != "equal", first + head, last + head, begin + head, end + head
    yield False, len(one) - tail, len(one), len(other) - tail, len(other)
