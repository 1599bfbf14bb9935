"""Looks at the journal and at the files of tasks, and keeps the rows of `book` up with both.

Whether files changed takes one stat each, and one number for all of them: where that is as it was, nothing is opened.
Whose a file is says its content (`docs/tasks.md`): what records know, and what git has in its place.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import reduce
from operator import xor
from pathlib import Path
from typing import cast

from ralf.document.family import Family
from ralf.document.index import Index
from ralf.document.record import Enveloped, Record
from ralf.document.rows import Rows
from ralf.document.state import State
from ralf.errors import Damaged, DamagedJournal, RalfError, UnknownToken
from ralf.project import Project
from ralf.storage import git_files, registry
from ralf.storage.files import content_of
from ralf.tasks import folders, origin, records
from ralf.tasks.book import Book, File
from ralf.tasks.model import MAX_BYTES
from ralf.tasks.records import STREAM

_AT_ONCE = 256  # files that are held at the same time

_AT_LEAST = 2.0  # seconds between the times of writing and of change of a file that was copied with its times

_SETTLED, _SETTLED_COARSE = 50_000_000, 2_000_000_000
"""Nanoseconds after which a change of a file changes its times, too; the second for a clock that counts seconds."""


class _Fold(Enveloped):
    """What the state of a journal asks of its family; tasks have many files, so `writing` does the rest."""

    def fold(self, rows: Rows, record: Record) -> None:
        """See `Family.fold`."""
        records.fold(rows, record)


_FAMILY = cast("Family", _Fold())


class Looker:
    """One look at the tasks of a project, with the index or without one; `keep` leaves in it what was found."""

    def __init__(self, project: Project, index: Index | None) -> None:
        self._project = project
        self._index = index
        self._unsettled = set[str]()  # files that are looked at again, whatever their times say
        found = index.state(STREAM) if index is not None else None
        self._kept: str | None = found[0] if found is not None else None
        rows = Rows(found[1]) if found is not None else Rows()
        self.book = Book(project, State(_FAMILY, rows, self._kept or None))

    def keep(self) -> None:
        """Leave in the index what changed."""
        state = self.book.state
        if self._index is not None and state.rows.changed:
            self._index.keep(STREAM, self._kept, state.token or "", state.rows.changed)
            self._kept = state.token or ""

    def renew(self, near: str = "") -> None:
        """Take in what changed of records, files and plan.

        near  a task: where its files, those of the tasks that it waits for and those of tasks with claims are as they
              were, no other file is looked at
        """
        self._catch_up()  # first: records say of some files whose they are
        book = self.book
        near = near if book.rows.one("boot") == origin.boot() else ""  # else a loss of power may have taken any file
        if not (near and all(map(self._is_as_it_was, {near, *book.waits(near), *book.needs(near), *book.claimed()}))):
            book.derive(self._take_files())
        stamp = self._plan_stamp()
        if stamp != book.plan[0]:
            book.place(self._take_plan(stamp))

    def _catch_up(self) -> None:
        """Fold the records that are new, up to one that is damaged."""
        state, store = self.book.state, self._project.store
        if store.head(STREAM) == state.token:
            return
        try:
            for entry in store.read(STREAM, after=state.token):
                state.take(STREAM, entry)
        except UnknownToken:  # it was rewritten, or begun anew
            self._kept = None
            self.book = Book(self._project, State(_FAMILY, Rows(), None))
            self._catch_up()
            return
        except DamagedJournal as error:
            self.book.problem = str(error)
        ids = [key.removeprefix("known/") for key in state.rows.changed if key.startswith("known/")]
        if (displaced := state.rows.one("displaced")) is not None:
            state.rows.put("displaced", sorted({*displaced, *ids}))
        self.book.derive(ids)

    # ---- files ----

    def look_at(self, names: Iterable[str]) -> None:
        """Take in these files alone, which this process has just written."""
        book, changed, gone = self.book, dict[str, os.stat_result](), list[str]()
        for name in dict.fromkeys(names):
            try:
                changed[name] = os.lstat(book.path(name))
            except OSError:
                gone.append(name)
        total, unsettled = book.rows.one("files") or (0, [])
        for name in (*changed, *gone):
            total ^= book.rows.one(f"stamp/{name}") or 0
        ids = self._take(changed, gone)
        for name in changed:
            total ^= book.rows.one(f"stamp/{name}") or 0
        book.rows.put("files", [total, sorted({*unsettled, *self._unsettled} - {*gone})])
        book.derive(ids)

    def _is_as_it_was(self, id_: str) -> bool:
        """Whether a task has files, and they are those that the rows have."""
        rows = self.book.rows
        names = rows.one(f"at/{id_}")
        _, unsettled = rows.one("files") or (0, [])
        try:
            return bool(names) and not any(
                name in unsettled or folders.stamp(name, os.lstat(self.book.path(name))) != rows.one(f"stamp/{name}")
                for name in names
            )
        except OSError:
            return False

    def _take_files(self) -> set[str]:
        """Take in the files that are not as the rows have them; the tasks that they are, or were, of."""
        rows = self.book.rows
        found = {as_text(name): stat for name, stat in folders.scan(tasks_folder(self._project)).items()}
        stamps = {name: folders.stamp(name, stat) for name, stat in found.items()}
        total = reduce(xor, stamps.values(), 0)
        was, unsettled = rows.one("files") or (0, [])
        changed, gone = {str(name) for name in unsettled if name in found}, list[str]()
        if total != was:
            known = {key.removeprefix("stamp/"): stamp for key, stamp in rows.under("stamp/")}
            changed |= {name for name, stamp in stamps.items() if known.get(name) != stamp}
            gone = [name for name in known if name not in stamps]
        ids = self._take({name: found[name] for name in changed}, gone)
        if [total, sorted(self._unsettled)] != rows.one("files"):
            rows.put("files", [total, sorted(self._unsettled)])
        return ids

    def _take(self, changed: Mapping[str, os.stat_result], gone: Iterable[str]) -> set[str]:
        self._unsettled = set()
        ids = {id_ for name in gone for id_ in self.book.put_file(name, 0, None)}
        names = list(changed)
        for start in range(0, len(names), _AT_ONCE):
            ids |= self._take_some({name: changed[name] for name in names[start : start + _AT_ONCE]})
        return ids

    def _take_some(self, changed: Mapping[str, os.stat_result]) -> set[str]:
        book = self.book
        files: dict[str, File | None] = {}
        contents: dict[str, bytes] = {}
        for name in changed:
            path = book.path(name)
            try:
                contents[name] = content_of(path, most=MAX_BYTES)
                files[name] = self._read(path, contents[name])
            except FileNotFoundError:
                what = "" if is_text(name) else f"{path}: its name is not UTF-8"
                files[name] = File("", folders.name_of(path), True, None, what) if what else None
            except OSError as error:
                files[name] = File("", folders.name_of(path), False, None, f"{path}: cannot be read: {error.strerror}")
        foreign, unsure = self._foreign(contents, files, changed)
        self._unsettled |= {*_racy(changed), *unsure}
        ids: set[str] = set()
        for name, file in files.items():
            if file is not None:
                file = file._replace(is_foreign=file.is_foreign or name in foreign)
                book.rows.put(f"foreign/{name}", (file.is_foreign and name not in unsure) or None)
            ids |= book.put_file(name, folders.stamp(name, changed[name]), file)
        return ids

    def _read(self, path: Path, content: bytes) -> File | None:
        """A file as the task that it says; None for what a loss of power has left of one."""
        digest, id_ = records.digest_of(content), folders.name_of(path)
        known = self.book.known(id_)
        if known.tree is not None and known.digest == digest and not known.is_cut:
            return File(digest, id_, False, known.tree, "")
        if known.tree is not None and is_torn(content):
            what = f"{path}: holds nothing; its task is in the records"
            return None if self.book.is_lost(known) else File(digest, id_, False, None, what)
        from ralf.tasks import taskfile  # which loads YAML

        try:
            task = taskfile.parse(content, path)
            tree = records.plain(task)
            repr(tree).encode()
        except (Damaged, UnicodeEncodeError) as error:
            return File(digest, id_, False, None, str(error))
        return File(digest, task.id, False, tree, "")

    # ---- whose a file is ----

    def _foreign(
        self, contents: Mapping[str, bytes], files: Mapping[str, File | None], stats: Mapping[str, os.stat_result]
    ) -> tuple[set[str], set[str]]:
        """Those of some files that are not this user's, as far as no record says so; and those of them of which nobody
        can tell now: git is at work.
        """
        book = self.book
        foreign, unsettled, asked = set[str](), set[str](), dict[Path, bytes]()
        for name, content in contents.items():
            file = files[name]
            if file is None or book.is_own(file.digest):
                continue
            if self._is_foreign(name, file, stats[name]):
                foreign.add(name)
            else:
                asked[book.path(name)] = content
        if asked:
            brought, unsure = git_files.brought(asked, lambda content: book.is_own(records.digest_of(content)))
            foreign |= {book.name(path) for path in brought | unsure}
            unsettled = {book.name(path) for path in unsure}
            for path in asked.keys() - brought - unsure:  # once read as ours it stays ours, if git takes it in
                book.rows.put(f"read/{records.digest_of(asked[path])}", 1)
        return foreign, unsettled

    def _is_foreign(self, name: str, file: File, stat: os.stat_result) -> bool:
        """Whether a file is not this user's, whatever git says: it was found to be foreign, or there before they opted
        in; or it is a copy, which an archive brings, too.
        """
        book, owner, known = self.book, self._project.owner, self.book.known(file.id)
        if (known.foreign and known.digest == file.digest) or book.rows.one(f"foreign/{name}"):
            return True
        is_copied = abs(stat.st_ctime - stat.st_mtime) > _AT_LEAST or stat.st_uid not in registry.own_ids()
        is_copied = is_copied and book.is_shown(file.id, known)  # else a writer who died may have moved it
        is_accepted = known.digest and not known.foreign
        names = (file.digest,) if is_accepted else (file.digest, name)
        if is_copied or any(book.rows.one(f"brought/{one}") for one in names):
            return True
        is_edit = is_accepted or book.file(name) is not None
        return not is_edit and not owner.hooks

    # ---- the plan ----

    def _plan_stamp(self) -> str:
        path = tasks_folder(self._project) / "plan.yaml"
        try:
            return str(folders.stamp("plan.yaml", os.lstat(path)))
        except OSError:
            return ""

    def _take_plan(self, stamp: str) -> set[str]:
        """Take in where the plan puts tasks; the ids of those that it has or had."""
        try:
            from ralf.tasks import planfile  # loaded where there is one

            found = planfile.load(self._project) if stamp else None
        except RalfError as error:
            return self.book.put_plan(stamp, str(error), [])
        chains = [(chain.name, chain.segments) for chain in (found.chains if found is not None else ())]
        return self.book.put_plan(stamp, "", chains)


def tasks_folder(project: Project) -> Path:
    """A project's `.autonomous/tasks`."""
    return project.folder.parent / folders.TASKS


def _racy(files: Mapping[str, os.stat_result]) -> Iterator[str]:
    """Files of which a later change may not give them another time."""
    now = time.time_ns()
    for name, stat in files.items():
        newest = max(stat.st_mtime_ns, stat.st_ctime_ns)
        if newest >= now - (_SETTLED if stat.st_ctime_ns % 1_000_000 else _SETTLED_COARSE):
            yield name


def is_torn(content: bytes) -> bool:
    """Whether a file is what a loss of power leaves of one."""
    return b"\0" in content or not content.strip()


def is_text(name: str) -> bool:
    """Whether a name of a file is UTF-8: git brings any other, too."""
    with suppress(UnicodeEncodeError):
        name.encode()
        return "\\x" not in name
    return False


def as_text(name: str) -> str:
    """A name as text, the bytes of it that are none as `\\xff`."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")
