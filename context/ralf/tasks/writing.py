"""One write to the tasks of a project: a record first, then the files that it changes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ralf.document import place as places
from ralf.document.access import BY_AGENT
from ralf.document.place import Place
from ralf.document.record import Record, encoded
from ralf.errors import Busy, Damaged, TaskNotFound, UsageError
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.storage import durable, files, git_files
from ralf.tasks import folders, origin, records
from ralf.tasks.look import Looker, is_torn
from ralf.tasks.model import MAX_BYTES, Task, TaskState
from ralf.tasks.records import BY_FILE, MOST_CHANGES, STREAM, Change

_MODE = 0o644  # of a new task file: people commit it

_PATIENCE = 0.1  # seconds that a write waits for an editor to finish a save


class Writer:
    """One write: the lock is held."""

    def __init__(self, project: Project, looker: Looker, warnings: Sequence[str] = ()) -> None:
        self.warnings = [*warnings]
        self.book = looker.book
        self._project = project
        self._folder = project.folder.parent / folders.TASKS
        self._looker = looker
        self._contents: dict[str, bytes] = {}  # that files are to have, by digest
        self._complete()

    # ---- records ----

    def append(self, kind: str, by: str = "", *, changes: Sequence[Change] = (), **values: Any) -> int:
        """Append a record (`records.body_of`), which is durable when this returns, and bring its files up to date; its
        number.
        """
        state = self.book.state
        id_ = f"{by if by == BY_FILE else 'write'}-{os.urandom(6).hex()}"
        body = records.body_of(kind, changes=changes, **values)
        if (boot := origin.boot()) != state.rows.one("boot"):
            body["boot"] = boot
        record = Record(state.revision + 1, records.now(), body, by)
        token = self._project.store.append(STREAM, encoded(record), id=id_, after=state.token, is_new=True)
        state.add(record, id_)
        state.token = token
        self._bring_up(changes, *filter(None, [body.get("task")]))
        return record.revision

    def state(self, id_: str, *warnings: str) -> TaskState:
        """A task as it is now, with what is to be said of this write."""
        found = self.book.get(id_)
        return replace(found, warnings=(*found.warnings, *self.warnings, *warnings))

    # ---- what is to be done to files ----

    def change_of(self, id_: str, **values: Any) -> Change:
        """What is to be done to a task's file so that these fields get these values. Damaged, OSError; UsageError for a
        symbolic link; Busy while somebody saves it.
        """
        from ralf.tasks import taskfile

        found = self._looker.files_of(id_)
        path = self.book.path(found[0][0]) if found else None
        content = settled(path) if path is not None else b""
        if found and records.digest_of(content) != found[0][1].digest:  # saved since it was looked at
            self._looker.look_at([id_])
            return self.change_of(id_, **values)
        task = self.book.task(id_)
        if task is None:
            raise TaskNotFound(id_)
        task = replace(task, **values)
        target = folders.place(self._folder, task, path)
        self._check_inside(target)
        made = taskfile.render(task, content or None)
        digests = records.digest_of(content) if found else "", records.digest_of(made)
        if made != content or target != path:
            self._contents[digests[1]] = made
        tree, is_cut = self._without_secrets(records.plain(task))
        is_foreign, prior = bool(found and found[0][1].is_foreign), None
        if found and not self._looker.is_shown(id_):
            prior, _ = self._without_secrets(found[0][1].tree or {})
        return Change(id_, self.book.name(target), *digests, tree, is_cut, is_foreign, prior)

    def is_change(self, change: Change) -> bool:
        """Whether a change does anything to its file."""
        return change.digest in self._contents

    def new_file(self, task: Task) -> Change:
        """What makes the file of a new task."""
        from ralf.tasks import taskfile

        target = folders.place(self._folder, task)
        self._check_inside(target)
        made = taskfile.render(task)
        digest, tree = records.digest_of(made), records.plain(taskfile.as_filed(task))
        self._contents[digest] = made
        return Change(task.id, self.book.name(target), "", digest, tree)

    def accepted(self, id_: str) -> list[Change]:
        """What records that the foreign files of a task are this user's as they are."""
        found = [(name, file) for name, file in self._looker.files_of(id_) if file.is_foreign]
        return [
            Change(id_, name, file.digest, file.digest, *self._without_secrets(file.tree or {})) for name, file in found
        ]

    def _without_secrets(self, tree: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
        made: Mapping[str, Any] = redactor_for(self._project).tree(tree)
        return made, made != tree

    def _check_inside(self, target: Path) -> None:
        folders.check_inside(target, self._folder.parent, self.book.path(""))

    # ---- what others left ----

    def _complete(self) -> None:
        """Bring the files up to date that an earlier writer left behind its records, and record what people saved."""
        displaced = self.book.rows.one("displaced")
        if displaced is None:
            names = (path.name for path in self._looker.prev("").parent.glob("*"))
            displaced = [name.removeprefix(".").partition(".md")[0] for name in names]
        for id_ in dict.fromkeys(displaced):
            self._take_displaced(id_)
        self.book.rows.put("displaced", [])
        self._see_to(self.book.due())

    def _see_to(self, ids: Iterable[str]) -> None:
        """See to tasks whose files and records are not the same. What cannot be done now is left to the next write."""
        changes = []
        for id_ in ids:
            known, task = self.book.known(id_), self.book.task(id_)
            try:
                if task is not None and not self._looker.files_of(id_):  # it was never written, or is lost
                    from ralf.tasks import taskfile  # which a claim does without

                    self._contents[known.digest] = taskfile.render(task)
                    self._bring_up([Change(id_, known.place, "", known.digest)])
                elif (change := self.change_of(id_)) and (change.base, change.digest) == (known.base, known.digest):
                    self._bring_up([change])  # its writer died
                else:
                    changes.append(self._signed(change))
            except (OSError, Damaged, UsageError, Busy) as error:
                self._warn(self.book.path(known.place), error)
        for start in range(0, len(changes), MOST_CHANGES):
            self.append("seen", BY_FILE, changes=changes[start : start + MOST_CHANGES])

    def _signed(self, change: Change) -> Change:
        """An edit of a file that says where a client's record shows that its agent made it."""
        from ralf.facts.editor import author_of  # an edit is seldom

        is_agents = change.base and author_of(self._project, STREAM, self.book.path(change.place)) == BY_AGENT
        return replace(change, offers="agent") if is_agents else change

    def _take_displaced(self, id_: str) -> None:
        """Merge what somebody has saved into a file that a write displaced."""
        for path, content in places.displaced(self._place(id_, Path())):
            if content and not self._is_known(id_, content):
                self._merge(id_, path, content, is_late=True)

    def _is_known(self, id_: str, content: bytes) -> bool:
        known, digest = self.book.known(id_), records.digest_of(content)
        return digest in (known.base, known.digest) or self.book.rows.one(f"own/{digest}") is not None

    def _merge(self, id_: str, displaced: Path, content: bytes, *, is_late: bool = False) -> None:
        """Merge what somebody saved while the file was replaced: they saw what it said before.

        is_late  whether it may have said something else yet: then the status stays, and the text loses no line
        """
        from ralf.tasks import taskfile

        known, task, found = self.book.known(id_), self.book.task(id_), self._looker.files_of(id_)
        here = self.book.path(found[0][0] if found else known.place)
        brought, unsure = git_files.brought({here: content}, lambda one: self._is_known(id_, one))
        problem = "git brought it" if brought or unsure else ""
        try:
            theirs = taskfile.parse(content, here)
        except Damaged as error:
            problem = str(error)
        if problem or task is None:
            kept = here.with_suffix(f".displaced-{records.digest_of(content)[:8]}")
            displaced.rename(kept)
            self.warnings.append(f"{kept}: saved by someone while ralf wrote the file, and cannot be merged: {problem}")
            return
        base = records.task_of(known.prior) if known.prior is not None else theirs
        if is_late:
            common = [line for line in task.text.split("\n") if line in theirs.text.split("\n")]
            base, theirs = replace(base, text="\n".join(common)), replace(theirs, status=base.status)
        merged, lines = taskfile.merged(base, task, theirs)
        self.warnings += [f"{id_}: {line}" for line in lines]
        values = {one.name: getattr(merged, one.name) for one in fields(merged)}
        digests = [(id_, records.digest_of(content))]
        self.append("seen", BY_FILE, changes=[self.change_of(id_, **values)], digests=digests)

    # ---- files ----

    def _bring_up(self, changes: Sequence[Change], *ids: str) -> None:
        """Make files show what records did to them, and look at these tasks, too. What cannot be done now is left to
        the next write, and said: the records are durable.
        """
        for change in changes:
            if self.is_change(change):
                try:
                    self._bring(change)
                except (OSError, Damaged, UsageError, Busy) as error:
                    self._warn(self.book.path(change.place), error)
        self.book.rows.put("displaced", [*(self.book.rows.one("displaced") or ()), *(one.task for one in changes)])
        self._looker.look_at([*ids, *(one.task for one in changes)], [one.place for one in changes])

    def _warn(self, path: Path, error: Exception) -> None:
        what = error.strerror if isinstance(error, OSError) else str(error)
        self.warnings.append(f"{path}: {what}; the next write updates it")

    def _bring(self, change: Change) -> None:
        """Bring one file up to date, and take in what somebody has saved there meanwhile."""
        looker, target, prev = self._looker, self.book.path(change.place), self._looker.prev(change.task)
        self._check_inside(target)
        self._move(change.task, target)
        before = settled(target) if os.path.lexists(target) else b""
        digest = records.digest_of(before) if before else ""
        is_lost = is_torn(before) and looker.is_lost(self.book.known(change.task))
        if digest == change.digest or (change.base and not before):  # nothing is to be done, or a person removed it
            return
        if digest != change.base and not is_lost:
            looker.look_at([change.task], [change.place])
            if not change.base or change.task not in self.book.due():
                raise UsageError(target, "another file is there", f"move it: {target}")
            self._see_to([change.task])  # somebody has saved it
            return
        files.make(target.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
        places.put(self._place(change.task, target), self._contents[change.digest])
        if not before:
            files.touch(prev)  # it was there: if it is gone, a person has removed it
        with suppress(OSError):
            self._keep_folder()
        displaced = places.content(prev, MAX_BYTES)
        if displaced not in (b"", before) and not self._is_known(change.task, displaced):
            looker.look_at([change.task], [change.place])
            self._merge(change.task, prev, displaced)
        elif is_lost and displaced:
            os.truncate(prev, 0)  # empty, it says to who has no index that the file was there

    def _move(self, id_: str, target: Path) -> None:
        """Move a task's file to where it is to be, with its own folder where it has one."""
        found = self._looker.files_of(id_)
        for name, _ in found[1:]:  # whoever moved it may have died when it had two names
            with suppress(OSError):
                if self.book.path(name).samefile(self.book.path(found[0][0])):
                    self.book.path(name).unlink()
        source = self.book.path(found[0][0]) if found else target
        if source == target or not os.path.lexists(source):
            return
        if source.name == target.name and source.parent.name == target.parent.name not in folders.FOLDERS:
            files.make(target.parent.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
            if not os.path.lexists(target.parent):
                source.parent.rename(target.parent)
                return
        files.make(target.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
        durable.rename_free(source, target)

    def _place(self, id_: str, target: Path) -> Place:
        prev = self._looker.prev(id_)
        return Place(target, prev, prev, None, lambda: "", lambda *_: False, MAX_BYTES, _MODE)

    def _keep_folder(self) -> None:
        """Keep git from taking a folder from which all tasks went for one that was renamed."""
        kept = self._folder / folders.KEEP
        if kept.parent.is_dir() and not os.path.lexists(kept):
            files.touch(kept)


def settled(path: Path) -> bytes:
    """The bytes of a file once nobody is saving it; Busy, OSError."""
    found = files.settled(path, _PATIENCE, end=b"\n")
    if found is None:
        raise Busy(path, "is being saved by another program", "try again")
    return found
