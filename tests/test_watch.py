"""Watching a transcript: a checkpoint at each threshold, with its reason, and the status in between."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import kit.command
import ralf
import storekit
from ralf.checkpointing.progress import watch
from storekit import checkpoints_of, grow, write_session


def look(path: Path, root: Path, **more: object) -> list[ralf.CheckpointReport]:
    return list(watch("tide", path, root=root, once=True, **more))  # type: ignore[arg-type]


@pytest.mark.ci
def test_one_look_at_more_than_the_threshold_checkpoints_what_is_there(tmp_path: Path) -> None:
    write_session(tmp_path / "s.jsonl", 7_000)
    (report,) = look(tmp_path / "s.jsonl", tmp_path, every=3_000)
    assert report.reason == "threshold"
    assert all(entry.tokens <= 3_000 for entry in report.checkpoints)
    assert look(tmp_path / "s.jsonl", tmp_path, every=3_000) == []


def _record(kind: str, content: object, **more: object) -> str:
    message = {"role": kind, "content": content, "model": "m"}
    record = {"type": kind, "sessionId": "s-1", "timestamp": "2026-03-02T08:00:00Z", "message": message} | more
    return json.dumps(record) + "\n"


REASONS = {
    "task-completed": _record("assistant", [{"type": "text", "text": "All done.\n<promise>COMPLETE</promise>"}]),
    "compaction": json.dumps(
        {"type": "system", "subtype": "compact_boundary", "sessionId": "s-1", "compactMetadata": {"trigger": "auto"}}
    )
    + "\n"
    + _record("user", "This session is being continued from a previous conversation…", isCompactSummary=True),
    "pressure": json.dumps(
        {
            "type": "assistant",
            "sessionId": "s-1",
            "message": {
                "role": "assistant",
                "model": "m",
                "content": [{"type": "text", "text": "Nearly full."}],
                "usage": {"input_tokens": 130_000, "output_tokens": 10},
            },
        }
    )
    + "\n",
}


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_is_recorded_in_the_checkpoint(tmp_path: Path, reason: str) -> None:
    write_session(tmp_path / "s.jsonl", 1_500)
    with (tmp_path / "s.jsonl").open("a") as file:
        file.write(REASONS[reason])
    (report,) = look(tmp_path / "s.jsonl", tmp_path)
    assert report.reason == reason
    assert ralf.get_context("tide", root=tmp_path).checkpoints[-1].reason == reason
    assert look(tmp_path / "s.jsonl", tmp_path) == []  # it does not fire twice for the same bytes


def _until(holds: Callable[[], object], seconds: float = storekit.HANGS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


@pytest.mark.ci
@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGKILL])
def test_a_watching_process_follows_a_growing_file_and_can_be_stopped_any_time(
    tmp_path: Path, way: signal.Signals
) -> None:
    path = tmp_path / "s.jsonl"
    number = write_session(path, 1_000)
    command = ("checkpoint", "--watch", "tide", "--transcript", path, "--every", 2_000)
    said = tmp_path / "said"
    with (
        said.open("wb") as out,
        kit.command.start(*command, cwd=tmp_path, env=storekit.environment(tmp_path), stdout=out) as child,
    ):
        try:
            for _ in range(2):
                printed = said.stat().st_size
                number = grow(path, 2_500, number)
                _until(lambda printed=printed: said.stat().st_size > printed)
            child.send_signal(way)
            _, err = child.communicate(timeout=storekit.HANGS)
        finally:
            child.kill()
    assert child.returncode == (130 if way == signal.SIGINT else -signal.SIGKILL)
    assert err.decode().startswith(f"watching {path}; ")
    assert "Traceback" not in err.decode()
    assert "tide: cp-001 (threshold), " in said.read_text()
    ralf.checkpoint("tide", path, root=tmp_path)
    spans = checkpoints_of(tmp_path, "tide")
    assert len(spans) == len(set(spans))
    assert spans[-1][2] == path.stat().st_size
