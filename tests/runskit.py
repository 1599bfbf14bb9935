"""What the tests of agents' runs share: a process that works at a run and dies, and a holder that is dropped."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ralf.agent.run import AgentRun
from storekit import HANGS, PACKAGES

_HEAD = """
import os, signal, sys, time
from ralf.agent.run import AgentRun
from ralf.agent.signals import send_signal
root = {root!r}

def die():
    os.kill(os.getpid(), signal.SIGKILL)

"""


def started(root: Path, code: str) -> subprocess.Popen[str]:
    """A process that runs `code`, which has `root`, `AgentRun`, `send_signal` and `die`."""
    environment = {**os.environ, "PYTHONPATH": PACKAGES}
    command = [sys.executable, "-c", _HEAD.format(root=os.fspath(root)) + code]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def elsewhere(root: Path, code: str) -> str:
    """What such a process prints until it ends."""
    with started(root, code) as process:
        out, _ = process.communicate(timeout=HANGS)
    return out.strip()


def lapsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock of this process on by an hour: it sees each lease as ended, and no test has to wait for that, with
    a lease so short that it may end before its time.
    """
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3_600)


def dropped(run: AgentRun) -> None:
    """Leave a holder as a crash does: nothing more is written, and its claim is nobody's."""
    run._output.drop()
    run._let_go()
