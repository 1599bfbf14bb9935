"""What clients really send, and what nobody should: a hook ends with status 0, and says JSON that the client takes."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

import hookkit
import ralf
import storekit
from clocks import within
from hookkit import Rig
from ralf import routing
from ralf.storage import locks
from ralf.text.frozen import replace
from ralf_integrations.hooks import session_registry
from ralf_integrations.hooks.messages import Answer, written


# What the plugin makes of the calls of opencode 1.18.33, and what no captured payload has: see `tests/promises`.
@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = hookkit.rig(tmp_path / "project")
    made.grow(1_000)
    return made


def test_where_nothing_can_be_written_what_is_kept_is_handed_over(rig: Rig) -> None:
    ralf.record_decision("tide", "Use the tide table of the harbour", root=rig.root)
    folder = rig.project.folder / "locks"
    shutil.rmtree(folder)
    folder.touch()  # as in a project that is mounted for reading only, also for root
    rig.environment["BB5_ROUTE"] = "tide"
    assert "Use the tide table of the harbour" in rig.hook("SessionStart", source="startup").context


@pytest.mark.ci
@pytest.mark.parametrize("event", ["SessionStart", "PreCompact"])
def test_no_hook_waits_a_second_longer_beside_one_of_its_session_that_stands_still(rig: Rig, event: str) -> None:
    began = time.monotonic()
    rig.hook(event)
    alone = time.monotonic() - began
    (lock,) = (rig.project.folder / "locks" / "sessions").glob("*.lock")
    with locks.locked(lock, "the test"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig, "settle", lambda: None)  # it would wait for the test
        within(alone + 2, lambda: rig.hook(event), time.monotonic)  # and the machine's own time


@pytest.mark.ci
@pytest.mark.parametrize("elsewhere", ["notes.txt", "../private.jsonl", "linked"])
def test_a_transcript_outside_the_clients_folders_is_left_alone_and_reported_once(rig: Rig, elsewhere: str) -> None:
    private = rig.root / elsewhere
    if elsewhere == "linked":
        target = rig.root / "private.txt"
        target.write_text("User: the words of somebody else\n" * 200)
        private = rig.transcript
        private.unlink(missing_ok=True)
        private.symlink_to(target)
    else:
        storekit.write_session(private, 3_000, rig.session)
    rig.transcript = private
    said = [rig.run(event, source="startup", prompt="Go on", reason="other") for event in ("SessionStart", "Stop")]
    said += [rig.run(event, reason="other") for event in ("PreCompact", "PostToolBatch", "SessionEnd")]
    notices = [one.notice for one in said if one.notice]
    assert len(notices) == 1 and "not read" in notices[0]
    assert not any(one.context for one in said) and rig.checkpoints() == []
    assert routing.names_of(rig.project) == []


def test_a_client_that_cannot_read_steering_gets_none(rig: Rig) -> None:
    payload = replace(rig.look("PreCompact").payload, client="codex")
    assert written(Answer(steering="Keep the tide table."), payload) == ""


@pytest.mark.ci
def test_three_hundred_old_sessions_do_not_slow_a_look(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(300):
        session_registry.save(rig.project, session_registry.KnownSession(f"old-{number}", route="tide", seen=1.0))
    read = list[Path]()
    real = session_registry._read
    monkeypatch.setattr(session_registry, "_read", lambda path: read.append(path) or real(path))
    rig.hook()
    assert {path.stem for path in read} == {rig.session}
