"""How what lies in files follows the records on the servers: a route, and the memory of an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from ralf.maintenance import memories
from ralf.maintenance.forget import forget_route
from ralf.memory import edits, writing
from ralf.memory.index import Index
from ralf.memory.rebase import Rebase
from ralf.memory.records import STREAMS, Delta
from ralf.project import Project
from ralf.route import fold, rebase
from ralf.route.load import load_state
from ralf.route.write import open_route
from ralf.storage import files, journal
from ralf.storage.durable import hidden_beside, removed
from ralf.storage.journal import Entry
from ralf_integrations.stores import purged
from ralf_integrations.stores.files_and_nats import FilesAndNats


class Moved(NamedTuple):
    """Our records after another history.

    entries  as they are then, without seals; `before`: as they were
    labels   that they bring, as they were: as they are now
    common   how many records both histories begin with
    """

    entries: Sequence[Entry]
    before: Sequence[Entry] = ()
    labels: Mapping[str, str] = MappingProxyType({})
    common: int = 0


class Follow(Protocol):
    """Changes a journal that nobody else writes to, and has its file show it."""

    def __call__(self, change: Callable[[], None], moved: Moved | None = None) -> None:
        """Have `change` append to the journal; or put other records in its place, ours as `moved` says."""


class Following(Protocol):
    """What `exchange` has to know of one kind of stream.

    prefix  what the names of the streams begin with
    part    the key of a record's tree that has what it says
    number  that with its place, where records of one place say the same; else None
    """

    prefix: str
    part: str
    number: str | None

    def file(self, stream: str) -> Path:
        """The file that shows the stream."""

    def absorb(self, stream: str) -> None:
        """Record what a person has saved into the file, which no other machine sees; and have it show what an exchange
        took in that was broken off.
        """

    def held(self, stream: str) -> AbstractContextManager[Follow]:
        """A context in which nobody else writes."""

    def moved(self, stream: str, shared: Sequence[Entry], lead: Sequence[Entry], ours: Sequence[Entry]) -> Moved:
        """Our records behind `lead`; both begin with `shared`. Entries without seals."""

    def clear(self, stream: str, replaced: Sequence[Entry], named: set[str]) -> None:
        """Remove what may hold words that were taken out of records. `named`: the blobs that records name now."""

    def forget(self, stream: str) -> None:
        """Forget all of a stream that was dropped elsewhere."""


class Routes:
    """Routes. Contract: `Following`."""

    # ruff: noqa: D102  # what a method does stands in the contract

    prefix, part = journal.stream_of(""), "payload"
    number: str | None = "revision"

    def __init__(self, project: Project, store: FilesAndNats) -> None:
        self._project = project
        self._store = store

    def file(self, stream: str) -> Path:
        return self._project.route_file(self._route(stream))

    def absorb(self, stream: str) -> None:
        route = self._route(stream)
        state = load_state(self._project, route)
        if state is not None and state.status in ("edited", "stale", "missing") and (state.changes or state.behind):
            with open_route(self._project, route, leave=False) as writer:
                writer.absorb_edits()
                writer.render_file()

    @contextmanager
    def held(self, stream: str) -> Iterator[Follow]:
        with open_route(self._project, self._route(stream), leave=False) as writer:
            writer.absorb_edits()

            def follow(change: Callable[[], None], moved: Moved | None = None) -> None:
                writer.follow(change)
                writer.render_file()

            yield follow

    def moved(self, stream: str, shared: Sequence[Entry], lead: Sequence[Entry], ours: Sequence[Entry]) -> Moved:
        route = self._route(stream)
        before = fold.fold((journal.parsed(route, entry) for entry in shared), fold.empty(route))
        onto = fold.fold((journal.parsed(route, entry) for entry in lead), before)
        known = {entry.id: entry for entry in lead}
        return Moved(list(rebase.rebased(route, ours, before=before, onto=onto, known=known)))

    def clear(self, stream: str, replaced: Sequence[Entry], named: set[str]) -> None:
        purged.clear(self._project, self._store.local, self._route(stream), replaced, named)

    def forget(self, stream: str) -> None:
        forget_route(self._route(stream), root=self._project.root)

    def _route(self, stream: str) -> str:
        return stream.removeprefix(self.prefix)


class Memories:
    """The memories of agents. Contract: `Following`."""

    prefix, part = STREAMS, "deltas"
    number: str | None = None

    def __init__(self, project: Project, store: FilesAndNats) -> None:
        self._project = project
        self._store = store
        self._owed: list[Delta] = []  # what a person saved into a file that had to go

    def file(self, stream: str) -> Path:
        return edits.path_of(self._project, self._agent(stream))

    def absorb(self, stream: str) -> None:
        writing.record(self._project, self._agent(stream), [], whole=False)

    @contextmanager
    def held(self, stream: str) -> Iterator[Follow]:
        project, agent = self._project, self._agent(stream)

        def follow(change: Callable[[], None], moved: Moved | None = None) -> None:
            # The file stays, and what is saved into it meanwhile is an edit of the history that it shows.
            if moved is not None:
                tail = tuple(entry.record.decode("utf-8", "surrogatepass") for entry in moved.before)
                edits.keep_history(project, agent, edits.History(moved.common, tail, moved.labels))
            change()

        with files.locked(writing.lock_of(project, agent), agent, seen=True):
            yield follow
        owed, self._owed = self._owed, []
        writing.record(project, agent, owed, whole=False)

    def moved(self, stream: str, shared: Sequence[Entry], lead: Sequence[Entry], ours: Sequence[Entry]) -> Moved:
        onto = Rebase(self._agent(stream), shared, lead)
        return Moved(onto.moved(ours), ours, onto.labels, len(shared))

    def clear(self, stream: str, replaced: Sequence[Entry], named: set[str]) -> None:
        project, agent, path = self._project, self._agent(stream), self.file(stream)
        with closing(Index(project, agent, None)) as index:
            index.keep_up()
            found = edits.look(project, index, edits.read(project, agent))
        self._owed += found.deltas
        left = [*hidden_beside(path), *([] if found.is_left else [path]), *project.cache.glob("search*")]
        removed([*left, *memories.index_files(project, agent), edits.histories_of(project, agent)])

    def forget(self, stream: str) -> None:
        with files.locked(writing.lock_of(self._project, self._agent(stream)), stream):
            self._store.local.drop(stream)
            self.clear(stream, (), set())
            removed([self.file(stream)])

    def _agent(self, stream: str) -> str:
        return stream.removeprefix(self.prefix)
