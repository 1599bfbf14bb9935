"""What is remembered from one call to the next, where several threads ask for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import storekit

pytestmark = pytest.mark.ci

AT_THE_END = """
import atexit, sys, threading
import ralf
from ralf import project
from ralf.errors import RalfError
from ralf.storage import files, locks

def hold():
    with locks.locked(project.find(sys.argv[1]).route_lock("tide"), "tide"):
        held.set()
        ended.wait()

def decide():
    ended.set()
    made = ralf.record_decision("tide", "Go on", root=sys.argv[1])
    print(made.id)

class Late:
    def __del__(self):
        try:
            ralf.get_context
        except RalfError as error:
            sys.__stdout__.write(f"{error}\\n")

held, ended = threading.Event(), threading.Event()
threading.Thread(target=hold, daemon=True).start()
held.wait()
atexit.register(decide)
late = Late()
"""


def test_a_decision_at_interpreter_exit_is_recorded_and_later_calls_fail_clearly(tmp_path: Path) -> None:
    """Then no thread can be started, and no tokenizer loaded."""
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END, str(tmp_path)],
        cwd=tmp_path,
        env=storekit.environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["DEC-001", "ralf: get_context: the interpreter is ending: nothing was done"]
    assert len(storekit.records_of(tmp_path, "tide")) == 1
