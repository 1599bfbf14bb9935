"""Claims hold whatever store is behind them: of many who ask at once one gets a task, and a later number fences."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from memory_store import MemoryStore

import natskit
from ralf import project as projects
from ralf.errors import Claimed, NothingReady, StaleLease
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Store
from ralf.tasks import claims, editing, store

pytestmark = pytest.mark.ci

STORES: dict[str, Callable[..., Store]] = {
    "FileStore": FileStore,
    "MemoryStore": MemoryStore,
    **natskit.SERVERS,
}


@pytest.fixture(params=STORES)
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    natskit.ready(STORES[request.param])
    monkeypatch.setattr(projects, "open_store", STORES[request.param])
    return tmp_path


def test_of_many_who_claim_at_once_each_gets_another_task_and_the_last_ones_are_told_why(root: Path) -> None:
    for number in range(6):
        editing.add(f"Task {number}", root=root)
    got: list[str] = []
    told: list[NothingReady] = []
    barrier = threading.Barrier(8)

    def ask(name: str) -> None:
        barrier.wait()
        try:
            got.append(claims.claim(by=name, root=root).task.id)
        except NothingReady as error:
            told.append(error)

    threads = [threading.Thread(target=ask, args=(f"agent-{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(got)) == len(got) == 6
    assert len(told) == 2
    assert all("claimed" in str(error) for error in told)


def test_a_stale_holder_is_refused_and_numbers_only_grow(root: Path) -> None:
    editing.add("One", root=root)
    first = claims.claim(by="a", root=root)
    assert first.claim is not None
    lease = first.claim.lease(first.task.id)
    claims.release(lease=lease, outcome="crashed", root=root)
    second = claims.claim(by="b", root=root)
    assert second.claim is not None
    assert second.claim.number > first.claim.number
    for late in (claims.done, claims.progress, claims.fail):
        with pytest.raises(StaleLease, match=r"crashed .* b holds the task now"):
            late("Late", lease=lease, root=root)
    with pytest.raises(Claimed, match="by b since"):
        claims.claim("One", by="a", root=root)
    assert claims.done("In time", lease=second.claim.lease(second.task.id), root=root).task.status == "completed"
    assert [one.outcome for one in store.get("One", root=root).attempts] == ["crashed", "done"]
