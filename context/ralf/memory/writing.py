"""Reads and writes the memory of an agent, a document: its items, what a person changes in its file, new deltas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ralf.document import access
from ralf.document.access import Document, Look
from ralf.document.index import NAME
from ralf.document.place import Place
from ralf.document.state import State, state_at
from ralf.errors import NotFound, UsageError
from ralf.memory import document, records
from ralf.memory.checking import Checker
from ralf.memory.family import MemoryFamily
from ralf.memory.fold import Book, identity
from ralf.memory.model import STATUSES, Item, Memory, check_agent
from ralf.memory.ranking import text_of, worth
from ralf.memory.records import STREAMS, Delta, stream_of
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.storage import files
from ralf.storage.registry import NO_FOLDER
from ralf.text import matcher

T = TypeVar("T")

_OF_A_WORD = 48  # items of the highest worth that are looked at for one word

_MOST_WORDS = 64  # of a task


def document_of(project: Project, agent: str) -> Document:
    """The document of an agent's memory. UsageError."""
    check_agent(agent)
    file = path_of(project, agent)

    def left() -> str:
        is_tracked = f"memory/{file.name}" in project.git.tracked()
        return f"{file}: git tracks it: left as it is; the journal has what is recorded" if is_tracked else ""

    place = Place(
        file=file,
        prev=project.folder / "prev" / "memory" / file.name,
        lock=project.folder / "locks" / "memory" / f"{agent}.lock",
        index=project.room_for(NAME),
        left=left,
        head=lambda: project.git.in_head(file),
        most=document.LONGEST_FILE,
    )
    return Document(MemoryFamily(agent, redactor_for(project).text), project.store, stream_of(agent), place)


def path_of(project: Project, agent: str) -> Path:
    """The file of an agent's memory."""
    return project.folder / "memory" / f"{agent}.md"


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
    """The memory of an agent, with what a person changed in its file and no write has absorbed yet.

    Takes no lock and records nothing. An agent that has none has an empty memory. DamagedJournal, UsageError.
    """
    return access.read(document_of(project, agent), lambda look: _memory(agent, look.state, look.warnings))


def load_at(project: Project, agent: str, revision: int) -> Memory | None:
    """The memory at a revision; None for one that the journal does not have. DamagedJournal, UsageError."""
    found = document_of(project, agent)
    then = state_at(found.family, found.store, found.stream, revision)
    return _memory(agent, then) if then is not None else None


def size_of(project: Project, agent: str) -> int:
    """The bytes of the file, 0 for none."""
    try:
        return path_of(project, agent).stat().st_size
    except OSError:
        return 0


def _memory(agent: str, state: State, warnings: Sequence[str] = ()) -> Memory:
    return replace(Book(agent, state.rows).memory(), warnings=tuple(warnings))


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
    the best of some kinds whatever they say.

    limit  how many of each kind, and of each word, at most
    own    is given by label the words that items have
    """
    memory = load(project, agent)
    had = {item.id: words_of(item) for item in memory.items}
    ranked = sorted(memory.items, key=lambda item: -worth(item))
    chosen: dict[str, Item] = {}
    for kind in kinds:
        chosen |= {item.id: item for item in [item for item in ranked if item.kind == kind][:limit]}
    for word in list(dict.fromkeys(words))[:_MOST_WORDS]:
        found = [item for item in ranked if word in had[item.id]]
        chosen |= {item.id: item for item in found[: min(limit, _OF_A_WORD)]}
    if own is not None:
        own |= {label: had[label] for label in chosen}
    return replace(memory, items=tuple(chosen.values()))


def words_of(item: Item) -> set[str]:
    """The words under which an item is found."""
    return {word.text for word in matcher.words(text_of(item))}


def unrecorded(project: Project, agent: str, names: Iterable[str]) -> list[str]:
    """Those of some ids under which nothing was recorded yet. Errors: `load`."""
    asked = list(names)
    return access.read(document_of(project, agent), lambda look: [one for one in asked if not look.state.has(one)])


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
    project.prepare()
    owner = project.owner
    if owner.seal_key is None and not owner.vouches:
        raise UsageError(project.folder, NO_FOLDER)
    found = document_of(project, agent)
    files.make(found.place.file.parent)

    def body(state: State) -> Mapping[str, object] | None:
        book = Book(agent, state.rows)
        deltas = Checker(book, redactor_for(project).text).checked(work(book.memory()))
        return records.body_of(deltas) if deltas else None

    return access.write(found, body, id=id, accept=accept, result=lambda state, told: _memory(agent, state, told))


def look_of(project: Project, agent: str, work: Callable[[Look], T]) -> T:
    """What `work` says of the document, by its whole journal. Errors: `load`."""
    return access.read(document_of(project, agent), work, fresh=True)


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
    wanted = {identity(replace(delta.item, status=status)) for status in STATUSES}
    found = [item for item in newest if identity(item) in wanted]
    if not newest:
        raise NotFound(
            delta.item.kind, "was dropped before, and only a person brings it back", "ralf memory add --help"
        )
    return made, (found or newest)[-1]
