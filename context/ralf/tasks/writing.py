"""One write to the tasks of a project: a record first, then the files that it changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from ralf.document import place as places
from ralf.document.place import Place
from ralf.document.record import Record, encoded
from ralf.errors import Busy, Damaged, TaskNotFound, UsageError
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.storage import durable, files, git_files
from ralf.tasks import folders, origin, records
from ralf.tasks.book import FRESH, LOST, PLACE, Book, File, owed_to
from ralf.tasks.look import Looker, is_torn
from ralf.tasks.model import MAX_BYTES, Task, TaskState
from ralf.tasks.records import MOST_CHANGES, STREAM, Change, Known

_MODE = 0o644  # of a new task file: people commit it

_PATIENCE = 0.1  # seconds that a write waits for an editor to finish a save

BY_FILE = "file"
"""The author of a record of an edit."""


class _Made(NamedTuple):
    """The bytes that a file is to have, and the task that it said before."""

    content: bytes
    base: Task | None
    task: Task


class Writer:
    """One write: the lock is held. Done once more without the index, it appends no record twice."""

    def __init__(self, project: Project, looker: Looker, name: str, told: Callable[[Book, str], TaskState]) -> None:
        self.name = name
        self.warnings: list[str] = []
        self._project = project
        self._folder = project.folder.parent / folders.TASKS
        self._looker = looker
        self._told = told
        self._count = 0
        self._still: list[str] = []  # tasks whose files cannot be brought up to date now
        self._again: list[str] = []  # tasks of an earlier write: the next one looks at what this one has displaced
        self._made: dict[str, _Made] = {}  # by digest

    @property
    def book(self) -> Book:
        """The tasks as they are now."""
        return self._looker.book

    # ---- records ----

    def append(self, kind: str, by: str = "", *, changes: Sequence[Change] = (), **values: Any) -> int:
        """Append a record (`records.body_of`), which is durable when this returns, and bring its files up to date; its
        number.
        """
        state = self.book.state
        self._count += 1
        id_ = f"{kind}-{self.name}-{self._count}"
        if not state.has(id_):
            tree: dict[str, Any] = {"w": self.name}
            if owes := [*self._still, *self._again]:
                tree["owes"] = owes
            if (boot := origin.boot()) and boot != state.rows.one("boot"):
                tree["boot"] = boot
            tree |= records.body_of(kind, changes=changes, **values)
            record = Record(state.revision + 1, records.now(), tree, by)
            token = self._project.store.append(STREAM, encoded(record), id=id_, after=state.token)
            owed = self.book.owed
            state.add(record, id_)
            state.token = token
            self.book.derive({*owed, *records.tasks_of(tree)})
            self._bring_up(changes)
        return int(state.rows.one(f"id/{id_}"))

    def has_written(self, id_: str) -> bool:
        """Whether this write has changed a task's file already."""
        rows = self.book.rows
        return rows.one("write") == self.name and id_ in self.book.owed and id_ not in self._still

    def state(self, id_: str, *warnings: str) -> TaskState:
        """A task as it is now, with what is to be said of this write."""
        found = self._told(self.book, id_)
        return replace(found, warnings=(*found.warnings, *self.warnings, *warnings))

    # ---- what others left ----

    def complete(self) -> None:
        """Bring the files up to date that an earlier writer left behind its records, and record what people saved."""
        names = _names_in(self.book.prev("").parent)
        displaced = {name.removeprefix(".").removesuffix(".aside").removesuffix(".md") for name in names}
        for id_ in sorted({*self.book.owed, *self.book.todo(LOST)}):
            known = self.book.known(id_)
            if known is not None and known.change is not None and (id_ in displaced or self._is_left(known.change)):
                self._bring_up([known.change], again=True)
        self._absorb()
        moved = [self.change_of(id_) for id_ in self.book.todo(PLACE) if id_ not in self._still]
        if moved:
            self.append("seen", changes=moved)

    def _absorb(self) -> None:
        """Record what people have saved."""
        changes = []
        for id_ in self.book.todo(FRESH):
            found, _ = self.book.chosen(id_, self.book.known(id_))
            if found is not None:
                name, file = found
                changes.append(self.accepted(name, file))
        for start in range(0, len(changes), MOST_CHANGES):
            self.append("seen", BY_FILE, changes=changes[start : start + MOST_CHANGES])

    def accepted(self, name: str, file: File) -> Change:
        """What records that a file is this user's as it is."""
        tree, is_cut = self._without_secrets(file.tree or {})
        return Change(file.id, name, name, file.digest, file.digest, tree=tree, is_cut=is_cut)

    def _without_secrets(self, tree: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
        redact = redactor_for(self._project).text

        def cleaned(value: Any) -> Any:
            if isinstance(value, str):
                return redact(value)
            if isinstance(value, Mapping):
                return {key: cleaned(one) for key, one in value.items()}
            return [cleaned(one) for one in value] if isinstance(value, list) else value

        made: Mapping[str, Any] = cleaned(tree)
        return made, made != tree

    # ---- what is to be done to files ----

    def change_of(self, id_: str, **values: Any) -> Change:
        """What is to be done to a task's file so that these fields get these values. Damaged, OSError; UsageError for a
        symbolic link; Busy while somebody saves it.
        """
        from ralf.tasks import taskfile

        name, file = self._file(id_)
        path = self.book.path(name)
        content = settled(path)
        if records.digest_of(content) != file.digest:  # saved since it was looked at
            self._looker.look_at([name])
            self._absorb()
            name, file = self._file(id_)
        said = taskfile.parse(content, path)
        known = self.book.known(id_)
        shown = said
        if known is not None and known.change is not None and self.book.is_owed(id_, known.change):
            shown, _ = owed_to(known, known.change, said)
        made = replace(shown, **{"status": self.book.status(id_) or said.status, **values})
        target = folders.place(self._folder, made, path)
        self._check_inside(target)
        names = [one.name for one in fields(made)]
        changed = {one: getattr(made, one) for one in names if getattr(made, one) != getattr(said, one)}
        new = taskfile.render(made, content)
        change = Change(
            task=id_,
            place=self.book.name(target),
            origin=name,
            base=records.digest_of(content),
            digest=records.digest_of(new),
            values=changed,
            foreign=file.is_foreign,
        )
        self._made[change.digest] = _Made(new, said, made)
        if not file.is_foreign and (known is None or known.change is None or known.change.digest != file.digest):
            tree, is_cut = self._without_secrets(records.plain(made))  # with what somebody has changed by hand
            return replace(change, tree=tree, is_cut=is_cut)
        return change

    def new_file(self, task: Task) -> Change:
        """What makes the file of a new task."""
        from ralf.tasks import taskfile

        target = folders.place(self._folder, task)
        self._check_inside(target)
        made = taskfile.render(task)
        change = Change(
            task=task.id,
            place=self.book.name(target),
            digest=records.digest_of(made),
            tree=records.plain(taskfile.as_filed(task)),
        )
        self._made[change.digest] = _Made(made, None, task)
        return change

    def _check_inside(self, target: Path) -> None:
        folders.check_inside(target, self._folder.parent, self.book.path(""))

    def _file(self, id_: str) -> tuple[str, File]:
        found, _ = self.book.chosen(id_, self.book.known(id_))
        if found is None:
            raise TaskNotFound(id_)
        return found

    # ---- files ----

    def _bring_up(self, changes: Iterable[Change], *, again: bool = False) -> None:
        """Make the files show what records did to them. What cannot be done now is left to the next write, and said:
        the records are durable.

        again  whether an earlier writer may have died at it
        """
        names: list[str] = []
        for change in changes:
            if change.base == change.digest and change.origin == change.place and not again:
                continue
            names += filter(None, (change.place, change.origin))
            try:
                self._take_displaced(change)
                if self._is_left(change) if again else self._is_newest(change):
                    self._bring(change)
                    self._again += [change.task] if again else []
            except (OSError, Damaged, UsageError, Busy) as error:
                self._still.append(change.task)
                what = error.strerror if isinstance(error, OSError) else str(error)
                self.warnings.append(f"{self.book.path(change.place)}: {what}; the next write updates it")
        if names:
            self._looker.look_at(names)

    def _is_newest(self, change: Change) -> bool:
        """Whether no later record says what a file is to hold: a save that was merged meanwhile."""
        known = self.book.known(change.task)
        return known is not None and known.change is not None and known.change.digest == change.digest

    def _is_left(self, change: Change) -> bool:
        """Whether a writer has not done all that a record says."""
        book = self.book
        if not self._is_newest(change):
            return False
        if book.is_owed(change.task, change) or book.is_lost(book.known(change.task)):
            return True
        is_moved = change.origin not in ("", change.place)
        return is_moved and os.path.lexists(book.path(change.origin)) and os.path.lexists(book.path(change.place))

    def _take_displaced(self, change: Change) -> None:
        """Merge the save in a displaced file, if there is one, and remove that file."""
        for path in places.all_displaced(self._place(change.task, self.book.path(change.place)))[:2]:
            content = places.content(path, MAX_BYTES)
            if not content:
                continue
            if not self._is_known(change, content):
                if self._merge(change, path, content):
                    continue  # the next write looks at what that has displaced
            elif records.digest_of(content) == change.base and self.book.is_owed(change.task, change):
                continue
            path.unlink(missing_ok=True)

    def _is_known(self, change: Change, content: bytes) -> bool:
        digest = records.digest_of(content)
        return digest in (change.base, change.digest) or self.book.is_recorded(digest)

    def _bring(self, change: Change) -> None:
        """Bring one file up to date."""
        from ralf.tasks import taskfile

        target = self.book.path(change.place)
        self._check_inside(target)
        self._move(change, target)
        content = settled(target) if os.path.lexists(target) else b""
        if records.digest_of(content) == change.digest:
            return
        known, is_foreign = self.book.known(change.task) or Known(), False
        made = self._made.get(change.digest)
        is_lost = self.book.is_lost(known) and is_torn(content)
        if not content or is_lost:
            if (change.base and not is_lost) or known.tree is None:
                return  # a person removed it
            task = records.task_of(known.tree)
            made = made or _Made(taskfile.render(task), None, task)
        elif made is None or records.digest_of(content) != change.base:
            theirs = taskfile.parse(content, target)
            if theirs.id != change.task or not change.base:
                return  # another file is there
            is_foreign = self._is_foreign(target, content)
            ours, lines = owed_to(known, change, theirs)
            self._say(ours, lines)
            made = _Made(taskfile.render(ours, content), theirs, ours)
        files.make(target.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
        self._put(change, target, content, made)
        if is_foreign:  # before anybody looks at it: then it would pass for this user's
            digest = records.digest_of(made.content)
            new = Change(change.task, change.place, change.place, digest, digest, foreign=True)
            self.append("seen", changes=[new])

    def _move(self, change: Change, target: Path) -> None:
        """Move a file to where it is to be, with its own folder where it has one."""
        source = self.book.path(change.origin or change.place)
        if source == target or not os.path.lexists(source):
            return
        if os.path.lexists(target):
            self._displace(change, source)
        elif source.name == target.name and source.parent.name == target.parent.name not in folders.FOLDERS:
            files.make(target.parent.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
            if os.path.lexists(target.parent):
                files.make(target.parent)
                durable.rename_free(source, target)
            else:
                source.parent.rename(target.parent)
        else:
            files.make(target.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
            with suppress(FileExistsError):
                durable.rename_free(source, target)

    def _is_foreign(self, path: Path, content: bytes) -> bool:
        """Whether a file is not this user's that is another than the record says."""
        name = self.book.name(path)
        file = self.book.file(name)
        if file is None or file.digest != records.digest_of(content):
            self._looker.look_at([name])
            file = self.book.file(name)
        return file is not None and file.is_foreign and not self.book.is_own(file.digest)

    def _put(self, change: Change, target: Path, content: bytes, made: _Made) -> None:
        """Put a file in its place, and take in what somebody has saved there meanwhile."""
        place = self._place(change.task, target)
        had_one = os.path.lexists(target)
        places.put(place, made.content)
        self._keep_folder()
        displaced = places.content(place.prev, MAX_BYTES) if had_one else b""
        if displaced not in (b"", content) and not self._is_known(change, displaced):
            self._merge(change, place.prev, displaced, made.base)

    def _displace(self, change: Change, source: Path) -> None:
        """Remove a second file of a task, where it was before it moved, and take in what somebody has saved there."""
        prev, file = self.book.prev(change.task), self.book.file(self.book.name(source))
        if file is not None and file.id != change.task:
            return  # another file is there
        files.make(prev.parent)
        source.rename(prev)
        content = places.content(prev, MAX_BYTES)
        if not self._is_known(change, content):
            self._merge(change, prev, content)

    def _merge(self, change: Change, aside: Path, content: bytes, base: Task | None = None) -> bool:
        """Merge what somebody has saved while the file was replaced: record it, then put the file anew; whether that
        was needed.

        base  the task that they saw; None if it is not known: then the text loses no line, and the status stays
        """
        from ralf.tasks import taskfile

        target = self.book.path(change.place)
        here = target if os.path.lexists(target) else self.book.path(change.origin or change.place)
        standing = places.content(here, MAX_BYTES)
        brought, unsure = git_files.brought({here: content}, lambda one: self._is_known(change, one))
        problem = "git brought it" if brought or unsure else ""
        try:
            theirs, said = taskfile.parse(content, here), taskfile.parse(standing, here)
        except Damaged as error:
            problem = str(error)
        if problem:
            kept = here.with_suffix(f".displaced-{records.digest_of(content)[:8]}")
            aside.rename(kept)
            self.warnings.append(f"{kept}: saved by someone while ralf wrote the file, and cannot be merged: {problem}")
            return False
        known, ours = self.book.known(change.task) or Known(), said
        if known.change is not None and self.book.is_owed(change.task, known.change):
            ours, _ = owed_to(known, known.change, said)
        if base is not None:
            merged, lines = taskfile.merged(base, ours, theirs)
        else:
            prior = records.task_of(known.prior) if known.prior is not None else theirs
            merged, lines = taskfile.merged(prior, ours, theirs)
            text = taskfile.lines_of_both(None, ours.text, theirs.text)
            merged = replace(merged, status=ours.status, text=text)
        if merged == said:
            return False
        self._say(merged, lines)
        made = taskfile.render(merged, content if base is not None else standing)
        tree, is_cut = self._without_secrets(records.plain(merged))
        digests = records.digest_of(standing), records.digest_of(made)
        new = Change(change.task, change.place, self.book.name(here), *digests, tree=tree, is_cut=is_cut)
        self._made[new.digest] = _Made(made, said, merged)
        self.append("seen", BY_FILE, changes=[new], digests=[(change.task, records.digest_of(content))])
        return True

    def _say(self, task: Task, lines: Sequence[str]) -> None:
        self.warnings += [f"{task.id}: {line}" for line in lines]

    def _place(self, id_: str, target: Path) -> Place:
        prev = self.book.prev(id_)
        return Place(target, prev, prev, None, lambda: "", lambda: None, MAX_BYTES, _MODE)

    def _keep_folder(self) -> None:
        """Keep git from taking a folder from which all tasks went for one that was renamed."""
        kept = self._folder / folders.KEEP
        with suppress(OSError):
            if kept.parent.is_dir() and not os.path.lexists(kept):
                files.touch(kept)


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208  # names are all that is needed
    except OSError:
        return []


def settled(path: Path) -> bytes:
    """The bytes of a file once nobody is saving it; Busy, OSError."""
    found = files.settled(path, _PATIENCE, end=b"\n")
    if found is None:
        raise Busy(path, "is being saved by another program", "try again")
    return found
