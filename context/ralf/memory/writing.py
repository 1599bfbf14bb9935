"""Reads and writes the memory of an agent, a document: its items, what a person changes in its file, new deltas."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from ralf.document import access
from ralf.document.access import Document, Look
from ralf.document.index import NAME
from ralf.document.place import Place
from ralf.document.state import State, state_at
from ralf.errors import NotFound
from ralf.memory import file
from ralf.memory.family import STREAMS, Delta, MemoryFamily, checked, delta, stated, stream_of
from ralf.memory.model import DEFAULT_AGENT, STATED, Item, Memory, check_agent, item_of, tree_of
from ralf.project import Project, find
from ralf.redact import redactor_for
from ralf.storage import files
from ralf.text.cleaning import is_valid

T = TypeVar("T")

_LEAST_CONFIDENCE, _LEAST_USES = 0.3, 3  # a tidying keeps what has more of either


def document_of(project: Project, agent: str) -> Document:
    """The document of an agent's memory. UsageError."""
    path = path_of(project, check_agent(agent))

    def left() -> str:
        is_tracked = f"memory/{path.name}" in project.git.tracked()
        return f"{path}: git tracks it: left as it is; the journal has what is recorded" if is_tracked else ""

    place = Place(
        file=path,
        prev=project.folder / "prev" / "memory" / path.name,
        lock=project.folder / "locks" / "memory" / f"{agent}.lock",
        index=project.room_for(NAME),
        left=left,
        brought=partial(project.git.has_brought, path),
        most=file.LONGEST_FILE,
    )

    def author() -> str:
        from ralf.facts.editor import author_of  # an edit is seldom

        return author_of(project, stream_of(agent), path)

    family = MemoryFamily(agent, redactor_for(project).text)
    return Document(family, project.store, stream_of(agent), place, author=author)


def path_of(project: Project, agent: str) -> Path:
    """The file of an agent's memory."""
    return project.folder / "memory" / f"{agent}.md"


def agents(project: Project) -> list[str]:
    """The names of the agents that have a memory, or a file of one."""
    streams = {stream.removeprefix(STREAMS) for stream in project.store.streams(STREAMS)}
    files = {path.stem for path in path_of(project, "x").parent.glob("*.md")}
    return sorted(filter(is_valid, streams | files))


# ---- reading: takes no lock, records nothing ----


def load(project: Project, agent: str) -> Memory:
    """The memory of an agent, with what a person changed in its file and no write has absorbed yet.

    Takes no lock and records nothing. An agent that has none has an empty memory. DamagedJournal, UsageError.
    """
    return access.read(document_of(project, agent), lambda look: _memory(look.state, look.warnings))


def _memory(state: State, warnings: Sequence[str] = ()) -> Memory:
    return replace(cast("MemoryFamily", state.family).memory(state.rows), warnings=tuple(warnings))


def unrecorded(project: Project, agent: str, names: Iterable[str]) -> list[str]:
    """Those of some ids under which nothing was recorded yet. Errors: `load`."""
    asked = list(names)
    return access.read(document_of(project, agent), lambda look: [one for one in asked if not look.state.has(one)])


def look_of(project: Project, agent: str, work: Callable[[Look], T]) -> T:
    """What `work` says of the document, by its whole journal. Errors: `load`."""
    return access.read(document_of(project, agent), work, fresh=True)


# ---- writing: one at a time ----


def record(
    project: Project,
    agent: str,
    deltas: Sequence[Delta],
    *,
    id: str = "",  # noqa: A002
) -> Memory:
    """Record deltas in order, whole or not at all, and return the memory; what a person changed is absorbed first.

    id  unique within the memory: what has been recorded under it already is not recorded again. "": made

    Secrets are redacted, texts cleaned and cut to their limits. Durable when this returns; then the file shows it, or
    a warning of the memory says why not. NotFound for a delta about an item that is not there, UsageError for one that
    makes no sense, Busy, OSError, DamagedJournal: then nothing was recorded. Without deltas it only absorbs what a
    person changed, and renders the file.
    """
    return write(project, agent, lambda _: deltas, id=id)


def write(
    project: Project,
    agent: str,
    work: Callable[[Memory], Sequence[Delta]],
    *,
    id: str = "",  # noqa: A002
    accept: bool = False,
) -> Memory:
    """As `record`, but the deltas are made of the memory as it is when nobody else writes.

    accept  whether a file that is new is absorbed: the user has looked at it
    """
    document = document_of(project, agent)
    if not os.path.lexists(document.place.file) and project.store.head(document.stream) is None:
        list(checked(Memory(agent), work(Memory(agent)), str))  # what is refused makes nothing
    project.prepare()
    files.make(document.place.file.parent)

    def body(state: State) -> Mapping[str, object] | None:
        memory = _memory(state)
        deltas = [*checked(memory, work(memory), redactor_for(project).text)]
        return {"deltas": deltas} if deltas else None

    return access.write(document, body, id=id, accept=accept, result=_memory)


def add(project: Project, agent: str, new: Delta) -> tuple[Memory, Item]:
    """Record one new item; the memory, and the item as it is there: the one that said so before, where there was one.

    NotFound for one that a person has dropped; other errors: `record`.
    """
    memory = record(project, agent, [new])
    (clean,) = checked(Memory(agent), [new], redactor_for(project).text)
    item = memory.alike(item_of(clean["item"]))
    if item is None or item.status == "dropped":
        raise NotFound(
            clean["item"]["kind"], "was dropped before, and only a person brings it back", "ralf memory add --help"
        )
    return memory, item


# ---- upkeep ----


def status(project: Project, agent: str) -> dict[str, Any]:
    """How large a memory is, and when it was last written and tidied, "" for never. Errors: `load`.

    memory_size_kb  kilobytes (1,024 bytes) of its file; entry_count: items; offers: those that wait for the user
    outcomes_count  outcomes of items that were handed over
    """
    memory, path = load(project, agent), path_of(project, agent)
    return {
        "agent": agent,
        "memory_size_kb": round(path.stat().st_size / 1024, 1) if path.exists() else 0.0,
        "entry_count": len(memory.items),
        "last_compacted": memory.last_compacted,
        "last_written": memory.last_written,
        "patterns_count": len(memory.of_kind("pattern")),
        "outcomes_count": memory.outcomes,
        "offers": len(memory.offers),
        "revision": memory.revision,
        "warnings": memory.warnings,
    }


def restore(project: Project, agent: str, revision: int) -> Memory:
    """Bring back what the memory was at a revision, as a change that can itself be undone.

    NotFound for one that there is not; other errors: `record`.
    """
    document = document_of(project, agent)
    state = state_at(document.family, document.store, document.stream, revision)
    if state is None or not revision:
        raise NotFound(agent, f"has no revision {revision}", "ralf memory show")
    then = _memory(state)
    entries = {label: tree_of(item) for label, item in then.entries.items()}
    return record(project, agent, [delta("restore", to=revision, entries=entries, notes=dict(then.notes))])


def tidy(project: Project, agent: str) -> Memory:
    """Drop what proved of no use: whose confidence is at most 0.3, and that was used at most three times. Preferences,
    relationships and what a person said stay. Errors: `record`.
    """

    def deltas(memory: Memory) -> Sequence[Delta]:
        idle = [item for item in memory.items if item.confidence <= _LEAST_CONFIDENCE and item.uses <= _LEAST_USES]
        gone = [one for one in idle if one.origin not in STATED and one.kind not in ("preference", "relationship")]
        why = "confidence {0.confidence:.2f} with {0.uses} uses"
        drops = [delta("drop", item.id, reason=why.format(item), origin="mechanical") for item in gone]
        return [*drops, delta("compact")] if drops else []

    return write(project, agent, deltas)


# ---- as functions of `ralf.api`, by the project's folder ----


Root = str | os.PathLike[str] | None


def remember(
    kind: str, text: str, *, agent: str = DEFAULT_AGENT, origin: str = "agent", root: Root = None, **given: Any
) -> Item:
    """Add an item, and return it as it is then: the one that said so before, where there was one.

    kind    trap, command, preference, fact, pattern or relationship
    text    of a trap or a command the command line; of a preference or a relationship "NAME: what"
    origin  agent: it is offered, and counts once a person accepts it; person: it counts
    given   other fields: `error`, `resolution`, `purpose`, `source`, `evidence`, `expires`

    Errors: UsageError, and those of `ralf.memory.record`.
    """
    return add(find(root), agent, stated(kind, text, origin=origin, **given))[1]


def accept_item(id: str, *, agent: str = DEFAULT_AGENT, root: Root = None) -> None:  # noqa: A002
    """Have an offered item count. Errors: NotFound, and those of `ralf.memory.record`."""
    record(find(root), agent, [delta("accept", id)])


def drop_item(id: str, *, because: str = "", agent: str = DEFAULT_AGENT, root: Root = None) -> None:  # noqa: A002
    """Take an item out for good: rules do not bring it back. Errors: NotFound, and those of `ralf.memory.record`."""
    record(find(root), agent, [delta("drop", id, reason=because, origin="person")])
