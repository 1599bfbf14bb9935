"""A hook's limit holds whatever a page contains: what takes long is done by a process that can be killed."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import hookkit
import storekit
from hookkit import Rig, answered

pytestmark = pytest.mark.ci

ENDLESS = "'(?:\\x7e|\\x7e\\x7e)+!'"
"""A pattern of the user's on which a backtracking engine is at work for ages, given `PUMP`; no probe shows that."""
PUMP = "~" * 80


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = hookkit.rig(tmp_path / "project")
    made.grow(1_000)
    made.configure(redact_patterns=f"[{ENDLESS}]")
    content = [{"type": "tool_result", "tool_use_id": "t1", "content": f"<p>{PUMP}</p>"}]
    made.add({"type": "user", "timestamp": "2026-03-01T09:00:00Z", "message": {"role": "user", "content": content}})
    return made


@contextmanager
def ended(rig: Rig) -> Iterator[None]:
    """End what the hooks of a project have started, when this is over."""
    try:
        yield
    finally:
        for process in rig.workers():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        rig.settle()


def test_what_was_killed_is_still_due_and_nothing_else_is_stored(rig: Rig) -> None:
    rig.environment["CLAUDE_CODE_ENTRYPOINT"] = "sdk-cli"
    with ended(rig):
        answered([rig.start("Stop", stop_hook_active=False)])
    rig.configure(threshold=50_000)
    rig.hook("Stop", stop_hook_active=False)
    [(reason, tokens)] = rig.checkpoints()
    assert reason == "session-end"
    assert tokens > 1_000  # all of the session: no part of it was stored, and none was passed over


def test_a_process_that_a_hook_started_ends_when_its_work_is_done(tmp_path: Path) -> None:
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
