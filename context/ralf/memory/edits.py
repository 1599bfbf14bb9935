"""What a person changed in the file of a memory, as deltas; and whether the file is this user's at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ralf.errors import Damaged, DamagedJournal, UnknownToken
from ralf.memory import document, fold, records
from ralf.memory.document import Document, changed_fields, entry_of, item_of, values_of
from ralf.memory.index import Index
from ralf.memory.model import Item, Memory
from ralf.memory.records import Delta, stream_of
from ralf.project import Project
from ralf.storage import files
from ralf.storage.files import content_of
from ralf.storage.journal import MALFORMED, Entry
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
    base = _base_of(project, index, content, found)
    if base is not None and base.content == content:
        is_newest = found.revision == index.head.revision and not base.labels
        return Look(_SHOWN, render=digest) if is_newest else Look(_BEHIND)
    if not shown and is_foreign(project, index, path, content):  # else it shows records that are lost
        accept = f"look at it, and take it in: ralf memory trust {agent}"
        return Look(_FOREIGN, what=f"{path}: was not written by your ralf: left as it is; {accept}")
    known = document.parse(base.content, path) if base is not None else None
    if known is not None and base is not None and base.labels:
        known, found = (_relabelled(one, base.labels) for one in (known, found))
    deltas = tuple(differences(known, found, index.get, index.head))
    return Look(_EDITED, deltas) if deltas else Look(_BEHIND)


# ---- histories that the records had before they were put on another one (`ralf.memory.rebase`) ----


@dataclass(frozen=True, slots=True)
class History:
    """What the records were: an editor may have a file open that shows a revision of it.

    common  the number of the last record that this history has in common with the one after it
    tail    its records behind that, oldest first
    labels  of items that it has given: as they are now
    """

    common: int
    tail: tuple[str, ...]
    labels: Mapping[str, str]


_MOST_HISTORIES, _LARGEST_TAIL = 8, 1 << 20  # those of which a file may still be open; bytes of the records of one


def histories_of(project: Project, agent: str) -> Path:
    """The file that keeps them: a cache."""
    return project.cache / "memory-histories" / f"{agent}.json"


def keep_history(project: Project, agent: str, history: History) -> None:
    """Keep a history that another one is about to replace. One that is too large, or cannot be written, is not kept: an
    edit of a file that shows it counts against the present history then.
    """
    path = histories_of(project, agent)
    if sum(map(len, history.tail)) > _LARGEST_TAIL:
        return
    known = [
        replace(one, labels={old: history.labels.get(now, now) for old, now in one.labels.items()})
        for one in _histories(project, agent)
    ]
    trees = [
        {"common": one.common, "tail": list(one.tail), "labels": dict(one.labels)}
        for one in [history, *known][:_MOST_HISTORIES]
    ]
    with suppress(OSError):
        project.make_room(path)
        text = json.dumps(trees, ensure_ascii=False).encode("utf-8", "surrogatepass")
        files.replace_undurably(path, text, path.with_name(f".{path.name}.tmp"))


def _histories(project: Project, agent: str) -> list[History]:
    """Those that are kept, the newest first."""
    try:
        trees = json.loads(content_of(histories_of(project, agent)))
        return [History(int(one["common"]), tuple(map(str, one["tail"])), dict(one["labels"])) for one in trees]
    except (OSError, *MALFORMED):
        return []


@dataclass(frozen=True, slots=True)
class _Base:
    """A file as it was rendered, and what its labels are now."""

    content: bytes
    labels: Mapping[str, str]


def _base_of(project: Project, index: Index, content: bytes, found: Document) -> _Base | None:
    """What a file showed before a person changed it: its revision, of a history before this one if one has it, for this
    one went on from behind that. None where nobody knows.
    """
    agent = index.head.agent
    known = [one for one in _histories(project, agent) if one.common < found.revision <= one.common + len(one.tail)]
    bases = [base for one in known if (base := _base_in(project, agent, one, found.revision)) is not None]
    if not bases:
        rendered = render_at(project, index, found.revision)
        return _Base(rendered, {}) if rendered is not None else None
    own = {(entry.label, *field) for entry in found.entries for field in entry.fields.items()}

    def in_common(base: _Base) -> tuple[bool, int]:
        theirs = document.parse(base.content, path_of(project, agent)).entries
        return base.content == content, sum(
            (one.label, *field) in own for one in theirs for field in one.fields.items()
        )

    return max(bases, key=in_common)


def _base_in(project: Project, agent: str, history: History, revision: int) -> _Base | None:
    """A revision of a history; None where that was never replaced, because whoever was about to died."""
    stream, before = stream_of(agent), list[records.Record]()
    for entry in project.store.read(stream):
        record = records.parsed(stream, entry)
        if record is not None and record.number <= history.common:
            before.append(record)
        elif record is not None:
            if entry.record == history.tail[0].encode("utf-8", "surrogatepass"):
                return None
            break
    tail = [Entry("", "", text.encode("utf-8", "surrogatepass")) for text in history.tail[: revision - history.common]]
    with suppress(DamagedJournal):
        then = filter(None, (records.parsed(stream, entry) for entry in tail))
        return _Base(document.render(fold.fold(agent, [*before, *then])), history.labels)
    return None


def _relabelled(found: Document, labels: Mapping[str, str]) -> Document:
    return replace(found, entries=tuple(replace(one, label=labels.get(one.label, one.label)) for one in found.entries))


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
