"""Agents as processes: the gate before a start, their end with all that they started, and their logs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loopkit import until
from ralf_integrations.hooks import session_registry
from ralf_integrations.loop import logs, processes
from ralf_integrations.loop.processes import CannotStart, Ending, Gate, Job, Launch

pytestmark = [pytest.mark.ci]

AGENT = str(Path(__file__).with_name("standin.py"))


def opened(gate: Gate, tmp_path: Path, *argv: str, cwd: str = ".", **more: str) -> Gate:
    gate.open(Launch(argv, dict(os.environ) | more, str(tmp_path / cwd), log=str(tmp_path / "log")))
    return gate


def started(tmp_path: Path, *words: str, mark: str = "") -> Gate:
    journal = str(tmp_path / "journal")
    return opened(Gate(), tmp_path, sys.executable, AGENT, *words, AGENT_JOURNAL=journal, RALF_LEASE=mark)


def waited(gate: Gate) -> int:
    """The exit status of what a gate became."""
    status = until(lambda: (found := processes.status_of(gate.process)) is not None and [found])[0]
    os.waitpid(gate.process, 0)
    return status


def children(tmp_path: Path, count: int) -> list[int]:
    """Processes that an agent has started, once so many are there."""

    def found() -> list[int]:
        path = tmp_path / "journal"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line["child"] for line in lines if line["what"] == "spawned"]

    return until(lambda: (seen := found()) and len(seen) == count and seen)


def descriptors() -> list[str]:
    """Our own; a store that an earlier test has left open closes its index when this process forks."""
    Gate().close()
    return sorted(os.listdir("/proc/self/fd"))


def lives(process: int) -> bool:
    return session_registry.process_start(process) > 0


def test_a_gate_keeps_its_number_and_its_beginning_when_it_becomes_the_command(tmp_path: Path) -> None:
    gate = Gate()
    assert gate.born and session_registry.is_running(gate.process, gate.born)
    assert waited(opened(gate, tmp_path, "/bin/sh", "-c", "echo $$; exit 3")) == 3
    assert (tmp_path / "log").read_text() == f"{gate.process}\n"


def test_a_gate_whose_maker_is_killed_becomes_nothing() -> None:
    code = (
        "import os, signal\nfrom ralf_integrations.loop.processes import Gate\n"
        "gate = Gate()\nprint(gate.process, gate.born, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    process, born = map(int, done.stdout.split())
    assert done.returncode == -signal.SIGKILL
    until(lambda: not session_registry.is_running(process, born))


@pytest.mark.parametrize("program, cwd, named", [("no-such-agent", ".", "no-such-agent"), ("true", "gone", "gone")])
def test_a_command_or_folder_that_is_not_there_is_told_at_once(
    tmp_path: Path, program: str, cwd: str, named: str
) -> None:
    before = descriptors()
    with pytest.raises(CannotStart) as error:
        opened(Gate(), tmp_path, program, cwd=cwd)
    assert named in str(error.value)
    assert descriptors() == before


@pytest.mark.parametrize("is_reaped", [False, True])
def test_what_an_agent_left_behind_is_ended_though_the_agent_is_gone(tmp_path: Path, is_reaped: bool) -> None:
    mark = f"TASK-y:{os.getpid()}"
    gate = started(tmp_path, "daemon=60", "spawn=60", mark=mark)
    until(lambda: processes.status_of(gate.process) is not None)
    spawned = children(tmp_path, 2)
    if is_reaped:
        waited(gate)
    assert Ending(gate.process, f"RALF_LEASE={mark}", grace=1, born=gate.born * is_reaped).wait() == 2
    assert is_reaped or waited(gate) == 0
    assert not any(map(lives, spawned))


def test_no_signal_and_no_end_meets_a_process_that_has_got_the_number_since(tmp_path: Path) -> None:
    script = "sleep 30 & echo begun; wait"
    with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        born = session_registry.process_start(other.pid)
        assert not processes.send(other.pid, born - 1, signal.SIGKILL)
        assert processes.members(other.pid, "", born - 1) == []
        assert Ending(other.pid, "RALF_AGENT=loop-none", grace=0.0, born=born - 1).wait() == 0
        assert processes.is_running(other.pid, born)
        assert Ending(other.pid, "", grace=0.0, born=born).wait() == 2


def test_a_job_whose_time_is_up_is_killed_with_what_it_has_started(tmp_path: Path) -> None:
    def work() -> None:
        command = ["/bin/sh", "-c", f"sleep 60 & echo $! > {tmp_path}/child; wait"]
        subprocess.run(command, start_new_session=True, check=False)

    job = Job(work, str(tmp_path / "log"), 60.0)
    child = int(until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text()))
    assert not job.is_over()
    job.end_within(0.0)
    assert job.is_over()
    until(lambda: not lives(child))


def test_a_log_that_is_too_large_is_copied_and_emptied_while_the_agent_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("ab", buffering=0) as agent:
        agent.write(b"x" * 1500)
        for _ in range(2):
            logs.rotate(path, 1000)
        agent.write(b"more\n")
    assert path.read_bytes() == b"more\n"
    assert (tmp_path / "a.log.1").read_bytes() == b"x" * 1500
