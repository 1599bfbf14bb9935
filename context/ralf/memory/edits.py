"""What a person changed in the file of a memory, as deltas; and whether the file is this user's at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from ralf.errors import Damaged, UnknownToken
from ralf.memory import document, fold, records
from ralf.memory.document import Document, changed_fields, entry_of, item_of, values_of
from ralf.memory.index import Index
from ralf.memory.model import Item, Memory
from ralf.memory.records import Delta, stream_of
from ralf.project import Project
from ralf.storage.files import content_of
from ralf.tasks.origin import foreign_of
from ralf.text.frozen import dataclass

_SHOWN, _BEHIND, _EDITED, _FOREIGN, _DAMAGED = "shown", "behind", "edited", "foreign", "damaged"


def path_of(project: Project, agent: str) -> Path:
    """The file of an agent's memory."""
    return project.folder / "memory" / f"{agent}.md"


def digest_of(content: bytes) -> str:
    """The sha256 of a file, in hex."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class Look:
    """What the file of a memory is.

    status  shown: our last render; behind: missing, or an older one; edited: a person changed it; foreign: somebody
            else wrote it; damaged: it cannot be read
    deltas  what a person changed
    what    what is to be said of a file that is left as it is
    render  digest of the newest render where the index does not remember it, "" where it does
    """

    status: str
    deltas: tuple[Delta, ...] = ()
    what: str = ""
    render: str = ""

    @property
    def is_left(self) -> bool:
        """Whether the file is not to be written."""
        return self.status in (_FOREIGN, _DAMAGED)


def read(project: Project, agent: str) -> bytes | None:
    """The bytes of the file, None for none. OSError for what is no regular file."""
    try:
        return content_of(path_of(project, agent), most=document.LONGEST_FILE + 1)
    except FileNotFoundError:
        return None


def look(project: Project, index: Index, content: bytes | None) -> Look:
    """What a file with some bytes is against the index, which is kept up."""
    agent = index.head.agent
    path = path_of(project, agent)
    if not content:
        return Look(_BEHIND)
    digest = digest_of(content)
    shown = index.shown_at(digest)
    if 0 < shown <= index.head.revision:
        return Look(_SHOWN if shown == index.head.revision else _BEHIND)
    if index.is_absorbed(digest):
        return Look(_BEHIND)
    try:
        found = document.parse(content, path)
    except Damaged as error:
        return Look(_DAMAGED, what=f"{error}; {error.hint}")
    base = render_at(project, index, found.revision)
    if base == content:
        return Look(_SHOWN, render=digest) if found.revision == index.head.revision else Look(_BEHIND)
    if not shown and is_foreign(project, index, path, content):  # else it shows records that are lost
        accept = f"look at it, and take it in: ralf memory trust {agent}"
        return Look(_FOREIGN, what=f"{path}: was not written by your ralf: left as it is; {accept}")
    known = document.parse(base, path) if base is not None else None
    deltas = tuple(differences(known, found, index.get, index.head))
    return Look(_EDITED, deltas) if deltas else Look(_BEHIND)


def rendered(index: Index) -> bytes:
    """The file as it is to be."""
    return document.render(index.best(document.MOST_BYTES), total=index.count())


def render_at(project: Project, index: Index, revision: int) -> bytes | None:
    """The file as it was rendered at a revision, None for one that the journal does not have."""
    if revision == index.head.revision:
        return rendered(index)
    memory = memory_at(project, index.head.agent, revision)
    return document.render(memory) if memory is not None else None


def memory_at(project: Project, agent: str, revision: int) -> Memory | None:
    """What the memory was at a revision, None for one that the journal does not have."""
    found = fold.fold(agent, (one for one in _records(project, agent) if one.number <= revision))
    return found if found.revision == revision else None


def _records(project: Project, agent: str) -> Iterator[records.Record]:
    stream = stream_of(agent)
    for entry in project.store.read(stream):
        record = records.parsed(stream, entry)
        if record is not None:
            yield record


def is_foreign(project: Project, index: Index, path: Path, content: bytes) -> bool:
    """Whether a file that differs from what was rendered is not this user's."""

    def is_own(theirs: bytes) -> bool:
        if index.is_absorbed(digest_of(theirs)) or index.shown_at(digest_of(theirs)):
            return True
        try:
            return render_at(project, index, document.parse(theirs, path).revision) == theirs
        except (Damaged, UnknownToken):
            return False

    edited = {path} if index.head.revision else set[Path]()
    brought, _ = foreign_of(project, {path: content}, edited, is_own)
    return bool(brought)


def differences(
    base: Document | None, found: Document, get: Callable[[str], Item | None], head: Memory
) -> Iterator[Delta]:
    """What was changed from one document to another, as deltas by a person.

    base  what the person saw; None where nobody knows: then nothing counts as taken out
    get   an item as it is now; one that is gone is there again where the person changed it
    """
    before = {entry.label: entry for entry in base.entries} if base is not None else {}
    labels = set()
    for entry in found.entries:
        labels.add(entry.label)
        item = get(entry.label) if entry.label else None
        if entry.label in before:
            changes = changed_fields(before[entry.label].fields, entry.fields)
            if changes and item is not None:
                yield records.Edited(entry.label, values_of(changes), origin="person")
            elif changes:
                yield records.Added(item_of(entry))
        elif item is not None:
            changes = changed_fields(entry_of(item).fields, entry.fields)
            if changes:
                yield records.Edited(entry.label, values_of(changes), origin="person")
        elif entry.label and base is None:  # of a record that is lost: it keeps its label
            yield records.Added(item_of(entry, entry.label), again=True)
        else:
            yield records.Added(item_of(entry))
    for label in before:
        if label not in labels and get(label) is not None:
            yield records.Dropped(label, "taken out of the file", origin="person")
    metrics, notes = (base.metrics, base.notes) if base is not None else (head.metrics, head.notes)
    for name in {**metrics, **found.metrics}:
        if metrics.get(name, "") != found.metrics.get(name, "") and (base is not None or name in found.metrics):
            yield records.Measured(name, found.metrics.get(name, ""))
    for name in {**notes, **found.notes}:
        if notes.get(name, "") != found.notes.get(name, "") and (base is not None or name in found.notes):
            yield records.Noted(name, found.notes.get(name, ""))


def accepted(project: Project, index: Index, content: bytes) -> Look:
    """What a foreign file says, as deltas by the person who accepts it. Nothing that it does not show is taken out."""
    found = document.parse(content, path_of(project, index.head.agent))
    return Look(_EDITED, tuple(differences(None, found, index.get, index.head)))
