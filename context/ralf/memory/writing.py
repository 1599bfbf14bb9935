"""Reads and writes the memory of an agent: hand edits are taken in, deltas recorded, then the file is rendered."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ralf.errors import MEND_JOURNAL, Conflict, DamagedJournal, NotFound, RalfError, UsageError
from ralf.memory import document, edits, fold, records
from ralf.memory.checking import Checker
from ralf.memory.edits import Look, digest_of, path_of
from ralf.memory.fold import Pages
from ralf.memory.index import Index
from ralf.memory.model import STATUSES, Item, Memory, check_agent
from ralf.memory.records import STREAMS, Delta, Record, stream_of
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.storage import durable, files
from ralf.storage.database import rebuilt_when_damaged
from ralf.storage.registry import NO_FOLDER

T = TypeVar("T")

_MOST_MERGES = 8  # saves by an editor that one write takes in

_MOST_TRIES = 8  # at a stream that somebody else rewrites

_PATIENCE = 0.1  # seconds that a write waits for an editor to finish a save

_KEPT = "the journal has what is recorded"

_NEXT_SHOWS = "the next write shows what this one wrote"


def agents(project: Project) -> list[str]:
    """The names of the agents that have a memory, or a file of one."""
    named = {stream.removeprefix(STREAMS) for stream in project.store.streams(STREAMS)}
    with suppress(OSError):
        named |= {path.stem for path in path_of(project, "x").parent.glob("*.md")}
    found = []
    for name in sorted(named):
        with suppress(UsageError):
            found.append(check_agent(name))
    return found


# ---- reading: takes no lock, records nothing ----


def is_there(project: Project, agent: str) -> bool:
    """Whether an agent has a memory, or a file of one. DamagedJournal, UsageError."""
    check_agent(agent)
    return path_of(project, agent).exists() or project.store.head(stream_of(agent)) is not None


def load(project: Project, agent: str) -> Memory:
    """The memory of an agent, with what a person changed in its file and no write has taken in yet.

    Takes no lock and records nothing. An agent that has none has an empty memory. DamagedJournal, UsageError.
    """
    return read(project, agent, lambda index: index.memory())


def candidates(
    project: Project,
    agent: str,
    words: Iterable[str],
    *,
    kinds: Sequence[str] = (),
    limit: int = 40,
    own: dict[str, set[str]] | None = None,
) -> Memory:
    """The memory with the items alone that may concern a task: those that have any of some words (`matcher.words`), and
    the best of some kinds whatever they say. Takes no longer for a large memory.

    limit  how many of each kind, and of each word, at most
    own    is given by label the words that items have, but for those that a person has changed since
    """
    asked = list(words)
    had: list[tuple[Item, set[str]]] = []

    def found(index: Index) -> Memory:
        had[:] = index.candidates(asked, kinds, limit)
        return replace(index.head, items=tuple(item for item, _ in had))

    memory = read(project, agent, found)
    if own is not None:
        now = {item.id: item for item in memory.items}
        own |= {item.id: its for item, its in had if now.get(item.id) is item}
    return memory


def unrecorded(project: Project, agent: str, names: Iterable[str]) -> list[str]:
    """Those of some ids under which nothing was recorded yet. Errors: `load`."""
    found: list[str] = []

    def looked(index: Index) -> Memory:
        found[:] = [name for name in names if not index.has_record(name)]
        return index.head

    read(project, agent, looked)
    return found


def read(project: Project, agent: str, work: Callable[[Index], Memory]) -> Memory:
    """What `work` says of the index, with what a person changed since. Errors: `load`."""
    check_agent(agent)

    def looked(path: Path | None) -> Memory:
        index = Index(project, agent, path)
        try:
            index.keep_up()
            with index.as_one():
                index.recall()
                memory, render = _read(project, index, work)
            if render:  # else the next reader would parse the file, too
                with suppress(sqlite3.Error):
                    index.show(render, patient=False)
            return memory
        finally:
            index.close()

    return rebuilt_when_damaged(_place(project, agent), looked)


def _read(project: Project, index: Index, work: Callable[[Index], Memory]) -> tuple[Memory, str]:
    """The memory, and the digest of a render that the index does not remember."""
    agent = index.head.agent
    try:
        content = edits.read(project, agent)
    except OSError as error:
        return _warned(work(index), f"{path_of(project, agent)}: {error.strerror}: the journal is read"), ""
    found = edits.look(project, index, content)
    memory = _warned(work(index), *_told(index), *filter(None, [found.what]))
    return (_with(project, memory, found, index) if found.deltas else memory), found.render


def _warned(memory: Memory, *warnings: str) -> Memory:
    return replace(memory, warnings=(*memory.warnings, *warnings))


def _told(index: Index) -> list[str]:
    told = []
    if index.foreign:
        told.append(f"{index.head.agent}: {index.foreign:,} records were not written by your ralf: passed over")
    if index.later:
        what = f"{index.later:,} changes were written by a later version of ralf: kept, and passed over here"
        told.append(f"{index.head.agent}: {what}")
    return told


def _with(project: Project, memory: Memory, found: Look, index: Index) -> Memory:
    """A memory with edits that are in no record yet."""
    changed = {delta.id for delta in found.deltas if isinstance(delta, records.Edited | records.Dropped)}
    known = {item.id for item in memory.items}
    more = tuple(item for label in changed - known if (item := index.get(label)) is not None)
    pages = Pages(replace(memory, items=(*memory.items, *more)))
    deltas = Checker(pages, redactor_for(project).text).checked(found.deltas, by_hand=True)
    fold.apply(pages, Record(memory.revision, memory.last_written, deltas))
    return pages.memory()


def _place(project: Project, agent: str) -> Path | None:
    """The folder of the index; None where it can lie nowhere."""
    owner = project.owner
    if owner.registration is None and not owner.vouches:
        return None
    folder = project.indexes / "memory" / agent
    try:
        project.make_room(folder)
        files.make(folder)
    except (OSError, RalfError):
        return None
    return folder


# ---- writing: one at a time ----


def lock_of(project: Project, agent: str) -> Path:
    """The lock that every writer of a memory holds."""
    return project.folder / "locks" / "memory" / f"{agent}.lock"


def record(
    project: Project,
    agent: str,
    deltas: Sequence[Delta],
    *,
    id: str = "",  # noqa: A002
    whole: bool = True,
) -> Memory:
    """Record deltas in order, whole or not at all, and return the memory; what a person changed is taken in first.

    id     unique within the memory: what has been recorded under it already is not recorded again. "": made
    whole  whether the memory comes with its items; without them a write takes no longer for a large memory

    Secrets are redacted, texts cleaned and cut to their limits. Durable when this returns; then the file shows it, or
    a warning of the memory says why not. NotFound for a delta about an item that is not there, UsageError for one that
    makes no sense, Busy, OSError, DamagedJournal: then nothing was recorded. Without deltas it only takes in what a
    person changed, and renders the file.
    """
    return write(project, agent, lambda _: deltas, id=id, whole=whole)


def write(
    project: Project,
    agent: str,
    work: Callable[[Index], Sequence[Delta]],
    *,
    id: str = "",  # noqa: A002
    accept: bool = False,
    whole: bool = True,
) -> Memory:
    """As `record`, but the deltas are made of the memory as it is when nobody else writes.

    accept  whether a file that is foreign is taken in: the user has looked at it
    """
    check_agent(agent)
    project.prepare()
    owner = project.owner
    if owner.seal_key is None and not owner.vouches:
        raise UsageError(project.folder, NO_FOLDER)
    name = id or f"write-{os.urandom(6).hex()}"
    with files.locked(lock_of(project, agent), agent, seen=True):

        def written(path: Path | None) -> Memory:
            for attempt in range(_MOST_TRIES):
                index = Index(project, agent, path)
                try:
                    with index.alone():
                        return _Writer(project, index).done(work, name, accept=accept, whole=whole)
                except Conflict:  # whoever rewrites the stream (`ralf context forget`) does not hold our lock
                    if attempt == _MOST_TRIES - 1:
                        raise
                finally:
                    index.close()
            raise AssertionError("unreachable")

        return rebuilt_when_damaged(_place(project, agent), written)


class _Writer:
    """One write to a memory whose lock is held."""

    def __init__(self, project: Project, index: Index) -> None:
        self._project = project
        self._index = index
        self._agent = index.head.agent
        self._path = path_of(project, self._agent)
        self._content: bytes = b""  # what is known of the file
        self._what = ""  # why the file is left as it is
        self._warnings: list[str] = []
        self._is_edited = False

    def done(self, work: Callable[[Index], Sequence[Delta]], name: str, *, accept: bool, whole: bool) -> Memory:
        index = self._index
        index.keep_up()
        files.make(self._path.parent)
        self._absorb(accept)
        if not index.has_record(name):
            deltas = self._checker().checked(work(index))
            if deltas:
                self._append(deltas, name)
        self._render()
        return replace(index.memory() if whole else index.head, warnings=(*_told(index), *self._warnings))

    def _checker(self) -> Checker:
        return Checker(self._index, redactor_for(self._project).text)

    def _append(self, deltas: Sequence[Delta], name: str, file: str = "") -> None:
        """Append a record; it is durable and read back when this returns."""
        index = self._index
        record = Record(index.head.revision + 1, records.now(), tuple(deltas), file)
        stream = stream_of(self._agent)
        self._project.store.append(stream, records.encoded(record), id=name, after=index.token)
        index.keep_up()
        if index.head.revision != record.number:
            raise DamagedJournal(stream, "what was written is not what is read back", MEND_JOURNAL)

    # ---- the file ----

    def _absorb(self, accept: bool) -> None:
        """Take in what a person saved into the file, or a dead writer displaced."""
        unseen = durable.sweep(self._path, end=document.END)
        if f"memory/{self._path.name}" in self._project.git.tracked():
            self._leave(f"{self._path}: git tracks it: left as it is; {_KEPT}")
            return
        for aside in unseen:
            self._merge(aside.content)
            self._put_away(aside)
        try:
            content = files.settled(self._path, _PATIENCE, document.LONGEST_FILE + 1, document.END)
        except FileNotFoundError:
            content = b""
        except OSError as error:
            self._leave(f"{self._path}: {error.strerror}: left as it is; {_KEPT}")
            return
        if content is None:
            self._leave(f"{self._path}: another program is saving it; {_NEXT_SHOWS}")
            return
        self._content = content
        self._merge(content, accept=accept)

    def _leave(self, what: str) -> None:
        self._what = what
        self._warnings.append(what)

    def _merge(self, content: bytes, *, accept: bool = False) -> None:
        """Record what a person changed in a file."""
        found = edits.look(self._project, self._index, content)
        if found.status == "foreign" and accept:
            found = edits.accepted(self._project, self._index, content)
        if found.is_left:
            self._leave(found.what)
        elif found.deltas:
            digest = digest_of(content)
            deltas = self._checker().checked(found.deltas, by_hand=True)
            self._is_edited = True
            self._append(deltas, f"edit-{self._index.head.revision}-{digest}", digest)

    def _render(self) -> None:
        """Make the file show the memory, and take in what a person saves meanwhile."""
        for _ in range(_MOST_MERGES):
            if self._what or self._shown():
                return
        self._leave(f"{self._path}: changes faster than it can be written; {_NEXT_SHOWS}")

    def _shown(self) -> bool:
        """Write the file once; False where that displaced an edit, which is a record now."""
        content, revision = edits.rendered(self._index), self._index.head.revision
        if content != self._content:
            try:
                displaced = durable.exchange(self._path, content, digest_of(self._content))
            except durable.CannotReplace as error:
                self._leave(f"{self._path}: {error.strerror}: left as it is; {_KEPT}")
                return True
            except OSError as error:  # unwritable, full, or being saved: the record is durable
                self._leave(f"{self._path}: {error.strerror}; {_NEXT_SHOWS}")
                return True
            self._content = content
            self._index.show(digest_of(content))
            if displaced is not None:
                self._merge(displaced.content)
                self._put_away(displaced)
        else:
            self._index.show(digest_of(content))
        return self._index.head.revision == revision

    def _put_away(self, displaced: durable.DisplacedFile) -> None:
        """Drop a displaced file that was taken in; at once where a person wrote a secret into it."""
        if self._what:
            displaced.keep(self._path.with_suffix(f".displaced-{digest_of(displaced.content)[:8]}"))
            self._what = ""
        elif self._is_edited and self._holds_secrets(displaced.content):
            displaced.remove()
        else:
            displaced.drop()

    def _holds_secrets(self, content: bytes) -> bool:
        text = content.decode("utf-8", "replace")
        return redactor_for(self._project).text(text) != text


def new_item(kind: str, **values: object) -> records.Added:
    """The delta that adds an item; UsageError for a field that items do not have."""
    known = {name for name, _ in records.fields_of(Item)}
    unknown = [name for name in values if name not in known]
    if unknown:
        raise UsageError(unknown[0], "no field of an item", f"choose one of: {', '.join(sorted(known))}")
    return records.Added(Item("", kind, **values))  # type: ignore[arg-type]


def add(project: Project, agent: str, delta: records.Added) -> tuple[Memory, Item]:
    """Record one new item; the memory, and the item as it is there: the one that said so before, where there was one.

    Errors: `record`.
    """
    made = record(project, agent, [delta])
    newest = made.of_kind(delta.item.kind)
    wanted = {fold.identity(replace(delta.item, status=status)) for status in STATUSES}
    found = [item for item in newest if fold.identity(item) in wanted]
    if not newest:
        raise NotFound(
            delta.item.kind, "was dropped before, and only a person brings it back", "ralf memory add --help"
        )
    return made, (found or newest)[-1]
