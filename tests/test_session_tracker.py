"""Checkpoints in the tracking of a run: added to what is there, and nothing of it lost."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from ralf.errors import Damaged
from ralf_integrations.blackbox5.session_tracker import RecordsCheckpoints, record_checkpoint

RUN = "run-20260201_120000"
TRACKED: dict[str, Any] = {
    "run_id": RUN,
    "agent_id": "legacy",
    "task_id": "TASK-001",
    "status": "active",
    "files_created": ["/srv/a — b.py"],
    "progress_log": [{"timestamp": "2026-02-01T12:00:00", "category": "milestone", "message": "begun"}],
    "metadata": {"loop": 4, "nested": {"keep": [1, None, 2.5]}},
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / RUN
    folder.mkdir(parents=True)
    (folder / "tracking.json").write_text(json.dumps(TRACKED))
    return folder


def told(tree: Any) -> list[tuple[str, str]]:
    return [(one["checkpoint_id"], one.get("route", "")) for one in tree["checkpoints"]]


def test_a_checkpoint_is_added_and_no_key_lost(run: Path) -> None:
    assert record_checkpoint(run, "cp-001", route="TASK-001")
    assert record_checkpoint(run, "cp-002", route="TASK-001")
    tree = json.loads((run / "tracking.json").read_text())
    assert told(tree) == [("cp-001", "TASK-001"), ("cp-002", "TASK-001")]
    assert {key: value for key, value in tree.items() if key != "checkpoints"} == TRACKED
    assert list(tree)[: len(TRACKED)] == list(TRACKED)
    assert not (run.parents[1] / "history").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "7"])
def test_a_file_that_is_none_is_named_and_left_alone(run: Path, content: str) -> None:
    (run / "tracking.json").write_text(content)
    with pytest.raises(Damaged, match="tracking"):
        record_checkpoint(run, "cp-001")
    assert (run / "tracking.json").read_text() == content


def test_of_many_at_once_none_is_lost(run: Path) -> None:
    def note(number: int) -> None:
        record_checkpoint(run, f"cp-{number:03d}")

    threads = [threading.Thread(target=note, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tree = json.loads((run / "tracking.json").read_text())
    assert sorted(told(tree)) == [(f"cp-{number:03d}", "") for number in range(16)]


class Theirs:
    """As their tracker keeps and saves what it knows."""

    def __init__(self, file: Path) -> None:
        self.file, self.data = file, dict[str, Any]()

    def _save(self) -> None:
        self.file.write_text(json.dumps(self.data))


class Proposed:
    """The tracker as the proposal has it."""

    def __init__(self, file: Path) -> None:
        self.file, self.run_data = file, dict[str, Any]()

    def _save_tracking(self) -> None:
        self.file.write_text(json.dumps(self.run_data))


@pytest.mark.parametrize(("kind", "held"), [(Theirs, "data"), (Proposed, "run_data")])
def test_a_class_of_either_shape_gets_a_method_that_notes_checkpoints_with_its_own_save(
    run: Path, kind: type, held: str
) -> None:
    tracker = type("Tracker", (RecordsCheckpoints, kind), {})(run / "tracking.json")
    assert not tracker.record_checkpoint("cp-001")
    setattr(tracker, held, dict(TRACKED))
    assert tracker.record_checkpoint("cp-001", "TASK-001")
    assert record_checkpoint(run, "cp-002", route="TASK-001")
    assert told(json.loads((run / "tracking.json").read_text())) == [("cp-001", "TASK-001"), ("cp-002", "TASK-001")]
