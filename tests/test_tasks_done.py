"""What is recorded when a task is done: evidence, and more than the few words of its summary."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
from ralf.maintenance import ownership
from ralf.tasks import claims, editing, store
from ralf.tasks.model import Evidence
from taskskit import allow


@pytest.fixture
def root(tmp_path: Path) -> Path:
    ownership.init(store.at(tmp_path).project, share=False)
    return tmp_path


@pytest.mark.ci
def test_a_command_runs_without_the_lock(root: Path) -> None:
    allow(root)
    editing.add("Slow", verify="test ! -e other || exit 1; sleep 1", root=root)
    editing.add("Other", root=root)
    import threading

    thread = threading.Thread(target=claims.done, args=("It works",), kwargs={"task": "Slow", "by": "a", "root": root})
    thread.start()
    claims.claim("Other", by="b", root=root)
    assert thread.is_alive()
    thread.join()
    assert store.get("Slow", root=root).task.status == "completed"


def test_a_stale_holders_command_does_not_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(root)
    editing.add("One", verify="touch ran", root=root)
    state = claims.claim(by="a", root=root)
    assert state.claim is not None
    claims.release(by="a", root=root)
    with pytest.raises(ralf.errors.StaleLease):
        claims.done("Late", lease=state.claim.lease(state.task.id), root=root)
    assert not (root / "ran").exists()


def test_evidence_that_is_recorded_later_counts(root: Path) -> None:
    editing.add("One", root=root)
    claims.done("Done", task="One", root=root)
    claims.record_evidence("One", Evidence(state="verified", command="make test", exit_status=0), root=root)
    found = store.get("One", root=root).evidence
    assert found is not None
    assert (found.state, found.exit_status) == ("verified", 0)
