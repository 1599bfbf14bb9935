"""A task is complete, the agent has stopped, the session is over: the segment is closed in the client's time."""

from __future__ import annotations

import hashlib
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hookkit
import storekit
from clocks import within
from hookkit import Rig, answered
from ralf.storage import locks
from ralf_integrations.client import CODEX
from ralf_integrations.hooks import checkpoints

pytestmark = pytest.mark.ci


@contextmanager
def route_is_locked(rig: Rig) -> Iterator[None]:
    """Somebody holds the route's lock: whoever writes to it has to wait."""
    with locks.locked(rig.project.route_lock("default"), "the test"):
        yield


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = hookkit.rig(tmp_path / "project")
    made.grow(2_000)
    return made


@pytest.mark.ci
def test_a_headless_run_waits_no_longer_than_it_may_and_loses_nothing(rig: Rig) -> None:
    rig.environment["CLAUDE_CODE_ENTRYPOINT"] = "sdk-cli"
    rig.hook("SessionStart", source="startup")
    with route_is_locked(rig):
        began = time.monotonic()
        answered([rig.start("Stop", stop_hook_active=False)])
        assert (
            checkpoints.HEADLESS_SECONDS <= time.monotonic() - began < checkpoints.HEADLESS_SECONDS + storekit.AT_ONCE
        )
    rig.settle()
    assert [reason for reason, _ in rig.checkpoints()] == ["session-end"]


def test_a_person_s_session_that_stops_is_checkpointed_only_when_one_is_due(rig: Rig) -> None:
    assert rig.hook("Stop", stop_hook_active=False).out == ""
    assert rig.checkpoints() == []
    rig.configure(threshold=1_500)
    assert rig.hook("Stop", stop_hook_active=False).out == ""
    assert [reason for reason, _ in rig.checkpoints()] == ["threshold"]


def test_the_end_is_not_lost_where_another_hook_of_the_session_is_still_at_work(rig: Rig) -> None:
    name = hashlib.sha256(rig.session.encode()).hexdigest()[:2]
    lock = rig.project.folder / "locks" / "sessions" / f"{name}.lock"
    with locks.locked(lock, "the test"):
        within(1.5, lambda: answered([rig.start("SessionEnd", reason="other")]), time.monotonic)  # or a client kills it
    rig.settle()
    assert [reason for reason, _ in rig.checkpoints()] == ["session-end"]


@pytest.mark.ci
def test_the_end_is_not_lost_where_another_checkpoint_is_being_made(rig: Rig) -> None:
    rig.configure(threshold=1_500)
    calls = [rig.start("PostToolBatch")]
    rig.grow(300)
    calls.append(rig.start("SessionEnd", reason="other"))
    answered(calls)
    rig.settle()
    spans = storekit.checkpoints_of(rig.root, "default")
    assert [span[1] for span in spans] == [0, *(span[2] for span in spans[:-1])]
    assert spans[-1][2] == rig.transcript.stat().st_size


def test_codex_in_its_headless_form_is_told_by_its_rollout(rig: Rig) -> None:
    rig.client = "codex"
    head = '{"type":"session_meta","payload":{"id":"x","originator":"%s","source":"%s"}}\n'
    rig.transcript.write_text(head % ("codex_exec", "exec"))
    assert CODEX.is_headless(rig.transcript)
    rig.transcript.write_text(head % ("codex_cli_rs", "cli"))
    assert not CODEX.is_headless(rig.transcript)


def test_a_process_that_a_hook_started_ends_in_any_case(tmp_path: Path) -> None:
    code = (
        "from ralf_integrations.hooks.checkpoints import Exhausted, limit_work\n"
        "import re\n"
        "limit_work(1)\n"
        "try:\n"
        "    re.search('(?:a|aa)+!', 'a' * 80)\n"
        "except Exhausted as error:\n"
        "    print(error)\n"
    )
    assert storekit.finished([storekit.start(code, cwd=tmp_path)]) != [""]
    assert resource.getrlimit(resource.RLIMIT_CPU)[0] == resource.RLIM_INFINITY  # that of the tests is as it was
