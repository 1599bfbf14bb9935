"""Several machines of one user for tests: a project folder each, the same key, and one engine between them that may be
away for any of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.memory_store import MemoryStore
from tests.storekit import context_of

import ralf
from ralf import project as projects
from ralf.errors import Busy, Fenced
from ralf.maintenance import ownership
from ralf.memory import writing
from ralf.memory.edits import path_of
from ralf.memory.model import DEFAULT_AGENT, Item
from ralf.project import Project
from ralf.storage import registry
from ralf.storage.journal import Entry
from ralf_integrations.stores import exchange
from ralf_integrations.stores.exchange import Exchanged
from ralf_integrations.stores.files_and_nats import FilesAndNats, LocalFiles

KEY = "5e" * 32

Backup = tuple[dict[str, list[Entry]], dict[str, tuple[bytes, float]]]


class Engine(MemoryStore):
    """An engine in memory: each call is refused while it is `away`, and one after `dies_after` more calls."""

    away = False
    dies_after = -1
    refusal: type[Busy] = Fenced

    def __getattribute__(self, name: str) -> Any:
        if name in _ASKED:
            self._ask()
        return super().__getattribute__(name)

    def _ask(self) -> None:
        if self.dies_after == 0:
            self.away = True
        self.dies_after -= 1
        if self.away:
            raise self.refusal("nats://127.0.0.1:4222", "no connection", "try again")

    def page(self, stream: str, after: str | None) -> list[Entry]:
        """As `NatsStore.page`: three at once."""
        return list(islice(self.read(stream, after=after), 3))

    def within(self, _: float) -> Engine:
        """As `NatsStore.within`."""
        return self

    def changed(
        self, prefix: str, since: tuple[int, str] | None
    ) -> tuple[tuple[int, str] | None, frozenset[str] | None]:
        """As `NatsStore.changed`, from which only whole streams are told."""
        heads = {stream: self.head(stream) for stream in self.streams(prefix)}
        mark = (0, json.dumps(heads, sort_keys=True))
        if since is None:
            return mark, None
        known = json.loads(since[1])
        return mark, frozenset(name for name in {*heads, *known} if heads.get(name) != known.get(name))

    def lose_everything(self) -> None:
        """Be as a cluster that is made anew."""
        self._kept.streams.clear()
        self._kept.blobs.clear()

    def backup(self) -> Backup:
        """All that is kept, for `restore`."""
        return {name: list(entries) for name, entries in self._kept.streams.items()}, dict(self._kept.blobs)

    def restore(self, backup: Backup) -> None:
        """Be as a cluster that was restored from a backup."""
        self.lose_everything()
        self._kept.streams.update({name: list(entries) for name, entries in backup[0].items()})
        self._kept.blobs.update(backup[1])

    def everything(self) -> bytes:
        """The bytes of all records and blobs."""
        records = [entry.record for entries in self._kept.streams.values() for entry in entries]
        return b"\n".join([*records, *(content for content, _ in self._kept.blobs.values())])


_ASKED = frozenset({"append", "read", "head", "streams", "put_blob", "open_blob", "replace", "drop", "drop_blob"})


class Machine:
    """A machine: its project folder, and its way to the engine."""

    def __init__(self, root: Path, engine: Engine) -> None:
        self.root = root
        self.engine = engine

    @property
    def project(self) -> Project:
        """The project, as a new process has it."""
        return Project(self.root)

    def exchange(self, **given: Any) -> Exchanged:
        """Exchange with the engine now."""
        found = exchange.exchange(self.project, insist=True, **given)
        assert found is not None
        return found

    def journal(self, route: str) -> list[tuple[str, bytes]]:
        """Ids and records of a route as they lie here."""
        store = exchange.store_of(self.project)
        assert store is not None
        return [(entry.id, entry.record) for entry in store.local.read(f"routes/{route}")]

    def decide(self, route: str, text: str, **more: Any) -> Any:
        """Record a decision."""
        return ralf.record_decision(route, text, root=self.root, **more)

    def decisions(self, route: str) -> dict[str, str]:
        """The decisions by their labels."""
        return {item.id: item.decision for item in ralf.get_context(route, root=self.root).decisions}

    def active(self, route: str) -> list[str]:
        """The labels of the decisions that stand."""
        found = ralf.get_context(route, root=self.root)
        return [item.id for item in found.decisions if item.status == "active"]

    def words(self, route: str) -> str:
        """All that the journal of a route says."""
        return b"\n".join(record for _, record in self.journal(route)).decode()

    def file(self, route: str) -> Path:
        """The route file."""
        return self.project.route_file(route)

    # ---- the memory of `main` ----

    def remember(self, kind: str, **values: Any) -> Item:
        """Add an item to the memory."""
        return writing.add(self.project, DEFAULT_AGENT, writing.new_item(kind, **values))[1]

    def remembered(self) -> dict[str, Item]:
        """The items of the memory by their labels."""
        return {item.id: item for item in writing.load(self.project, DEFAULT_AGENT).items}

    def memory_journal(self) -> list[tuple[str, bytes]]:
        """Ids and records of the memory as they lie here."""
        store = exchange.store_of(self.project)
        assert store is not None
        return [(entry.id, entry.record) for entry in store.local.read(f"agents/{DEFAULT_AGENT}")]

    @property
    def memory_file(self) -> Path:
        """The file of the memory."""
        return path_of(self.project, DEFAULT_AGENT)


Makes = Callable[[int], list[Machine]]


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Makes]:
    """Makes so many machines with one engine."""
    with several(tmp_path, monkeypatch) as make:
        yield make


@contextmanager
def several(top: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Makes]:
    """Makes so many machines with one engine."""
    engines: dict[Path, Engine] = {}

    def opened(folder: Path, *, check: Callable[[Path], None]) -> FilesAndNats:
        return FilesAndNats(LocalFiles(folder, check=check), engines[folder])

    monkeypatch.setattr(projects, "open_store", opened)

    def make(count: int) -> list[Machine]:
        found = []
        for number in range(count):
            root = top / f"machine-{number}"
            root.mkdir(parents=True)
            engines[context_of(root)] = engine = Engine(top / "engine")
            ownership.init(Project(root), share=False)
            registry.update(root, seal_key=KEY)
            found.append(Machine(root, engine))
        return found

    yield make
