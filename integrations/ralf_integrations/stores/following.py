"""How what lies in files follows the records on the servers: a route, and the memory of an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from ralf.maintenance import memories
from ralf.maintenance.forget import forget_route
from ralf.memory import edits, writing
from ralf.memory.rebase import Rebase
from ralf.memory.records import STREAMS
from ralf.project import Project
from ralf.route import fold, rebase
from ralf.route.load import load_state
from ralf.route.write import open_route
from ralf.storage import journal
from ralf.storage.durable import hidden_beside, removed
from ralf.storage.journal import Entry
from ralf_integrations.stores import purged
from ralf_integrations.stores.files_and_nats import FilesAndNats

Labels = Mapping[str, str]


class Moved(NamedTuple):
    """Records after another history, without seals, and what became of the labels that they bring."""

    entries: Sequence[Entry]
    labels: Labels


class Follow(Protocol):
    """Changes a journal whose stream is held, and has its file show it."""

    def __call__(self, change: Callable[[], None], labels: Labels | None = None) -> None:
        """Have `change` append to the journal; or put other records in their place, for `labels` that are not None."""


class Following(Protocol):
    """What `exchange` has to know of one kind of stream.

    prefix  what the names of the streams begin with
    part    the key of a record's tree that has what it says; `number`: that with its place
    """

    prefix: str
    part: str
    number: str

    def file(self, stream: str) -> Path:
        """The file that shows the stream."""

    def absorb(self, stream: str) -> None:
        """Record what a person has saved into the file, which no other machine sees; and have it show what an exchange
        took in that was broken off.
        """

    def held(self, stream: str) -> AbstractContextManager[Follow]:
        """A context in which nobody else writes, and the file shows nothing that is in no record."""

    def moved(self, stream: str, shared: Sequence[Entry], lead: Sequence[Entry], ours: Sequence[Entry]) -> Moved:
        """Our records behind `lead`; both begin with `shared`. Entries without seals."""

    def clear(self, stream: str, replaced: Sequence[Entry], named: set[str]) -> None:
        """Remove what may hold words that were taken out of records. `named`: the blobs that records name now."""

    def forget(self, stream: str) -> None:
        """Forget all of a stream that was dropped elsewhere."""


class Routes:
    """Routes. Contract: `Following`."""

    # ruff: noqa: D102  # what a method does stands in the contract

    prefix, part, number = journal.stream_of(""), "payload", "revision"

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

            def follow(change: Callable[[], None], labels: Labels | None = None) -> None:
                writer.follow(change)
                writer.render_file()

            yield follow

    def moved(self, stream: str, shared: Sequence[Entry], lead: Sequence[Entry], ours: Sequence[Entry]) -> Moved:
        route = self._route(stream)
        before = fold.fold((journal.parsed(route, entry) for entry in shared), fold.empty(route))
        onto = fold.fold((journal.parsed(route, entry) for entry in lead), before)
        known = {entry.id: entry for entry in lead}
        return Moved(list(rebase.rebased(route, ours, before=before, onto=onto, known=known)), {})

    def clear(self, stream: str, replaced: Sequence[Entry], named: set[str]) -> None:
        purged.clear(self._project, self._store.local, self._route(stream), replaced, named)

    def forget(self, stream: str) -> None:
        forget_route(self._route(stream), root=self._project.root)

    def _route(self, stream: str) -> str:
        return stream.removeprefix(self.prefix)


class Memories:
    """The memories of agents. Contract: `Following`."""

    prefix, part, number = STREAMS, "deltas", "n"

    def __init__(self, project: Project) -> None:
        self._project = project

    def file(self, stream: str) -> Path:
        return edits.path_of(self._project, self._agent(stream))

    def absorb(self, stream: str) -> None:
        writing.record(self._project, self._agent(stream), [], whole=False)

    @contextmanager
    def held(self, stream: str) -> Iterator[Follow]:
        project, agent = self._project, self._agent(stream)
        with memories.unedited(project, agent) as is_left:

            def follow(change: Callable[[], None], labels: Labels | None = None) -> None:
                if labels is None:
                    change()
                    return
                if content := edits.read(project, agent):
                    edits.keep_base(project, agent, content, labels)
                memories.replaced(project, agent, change, is_left=is_left)

            yield follow
        writing.record(project, agent, [], whole=False)

    def moved(self, stream: str, shared: Sequence[Entry], lead: Sequence[Entry], ours: Sequence[Entry]) -> Moved:
        onto = Rebase(self._agent(stream), shared, lead)
        return Moved(onto.moved(ours), onto.labels)

    def clear(self, stream: str, replaced: Sequence[Entry], named: set[str]) -> None:
        agent = self._agent(stream)
        removed([*hidden_beside(self.file(stream)), edits.bases_of(self._project, agent)])

    def forget(self, stream: str) -> None:
        removed([*memories.index_files(self._project, self._agent(stream)), self.file(stream)])

    def _agent(self, stream: str) -> str:
        return stream.removeprefix(self.prefix)
