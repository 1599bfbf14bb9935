"""Agents as processes: the gate before a start, their end with all that they started, and their logs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loopkit import until
from ralf_integrations.hooks import session_registry
from ralf_integrations.loop import logs, processes
from ralf_integrations.loop.processes import CannotStart, Ending, Gate, Job, Launch
from storekit import AT_ONCE

pytestmark = [pytest.mark.ci]

AGENT = str(Path(__file__).with_name("standin.py"))


def started(tmp_path: Path, *words: str, mark: str = "", grace: float = 1.0) -> Gate:
    gate = Gate.make()
    environment = dict(os.environ, AGENT_JOURNAL=str(tmp_path / "journal"), RALF_LEASE=mark)
    gate.open(Launch((sys.executable, AGENT, *words), environment, str(tmp_path), log=str(tmp_path / "log")))
    return gate


def lines(tmp_path: Path, what: str) -> list[dict]:
    path = tmp_path / "journal"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in found if line["what"] == what]


def test_a_gate_keeps_its_number_and_its_beginning_when_it_becomes_the_command(tmp_path: Path) -> None:
    gate = Gate.make()
    assert gate.born and session_registry.is_running(gate.process, gate.born)
    gate.open(Launch(("/bin/sh", "-c", "echo $$; exit 3"), dict(os.environ), str(tmp_path), log=str(tmp_path / "log")))
    assert until(lambda: processes.status_of(gate.process) is not None)
    assert processes.status_of(gate.process) == 3
    processes.reap(gate.process)
    assert (tmp_path / "log").read_text() == f"{gate.process}\n"


def test_a_gate_whose_maker_is_killed_becomes_nothing(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nfrom ralf_integrations.loop.processes import Gate\n"
        "gate = Gate.make()\nprint(gate.process, gate.born, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    process, born = map(int, done.stdout.split())
    assert done.returncode == -signal.SIGKILL
    until(lambda: not session_registry.is_running(process, born))


def test_a_gate_that_is_closed_leaves_no_process_and_no_descriptor() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    gate = Gate.make()
    gate.close()
    assert not processes.is_running(gate.process, gate.born)
    assert sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("argv, cwd, named", [(("no-such-agent",), ".", "no-such-agent"), (("true",), "gone", "gone")])
def test_a_command_or_folder_that_is_not_there_is_told_at_once(tmp_path: Path, argv, cwd, named) -> None:
    gate = Gate.make()
    begun = time.monotonic()
    with pytest.raises(CannotStart) as error:
        gate.open(Launch(argv, dict(os.environ), str(tmp_path / cwd)))
    assert named in str(error.value)
    assert time.monotonic() - begun < AT_ONCE
    assert not processes.is_running(gate.process, gate.born)


def test_an_agent_leads_a_session_without_a_terminal_and_without_our_descriptors(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        gate = Gate.make()
        script = "ls -l /proc/self/fd | wc -l; ps -o sid= -p $$"
        gate.open(Launch(("/bin/sh", "-c", script), dict(os.environ), str(tmp_path), log=str(tmp_path / "log")))
    until(lambda: processes.status_of(gate.process) is not None)
    processes.reap(gate.process)
    count, session = (tmp_path / "log").read_text().split()
    assert int(count) <= 5  # 0, 1, 2, the folder that ls reads, and the heading
    assert int(session) == gate.process


def test_signals_that_the_loop_catches_end_an_agent_as_ever(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        gate = started(tmp_path, "hang")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert processes.send(gate.process, gate.born, signal.SIGTERM)
    until(lambda: processes.status_of(gate.process) is not None)
    assert processes.status_of(gate.process) == -signal.SIGTERM
    processes.reap(gate.process)


def test_the_end_of_an_agent_is_the_end_of_its_children_and_of_its_daemons(tmp_path: Path) -> None:
    mark = f"TASK-x:{os.getpid()}"
    gate = started(tmp_path, "spawn=60", "daemon=60", "hang", mark=mark)
    spawned = until(lambda: (found := lines(tmp_path, "spawned")) and len(found) == 2 and found)
    children = [line["child"] for line in spawned]
    assert set(processes.members(gate.process, f"RALF_LEASE={mark}")) >= {gate.process, *children}
    ended = Ending(gate.process, f"RALF_LEASE={mark}", grace=2).wait()
    assert ended >= 3
    assert processes.status_of(gate.process) == -signal.SIGTERM
    processes.reap(gate.process)
    assert not [child for child in children if Path(f"/proc/{child}/stat").exists() and _lives(child)]


def _lives(process: int) -> bool:
    return session_registry.process_start(process) > 0


def test_an_agent_that_ignores_the_request_to_end_is_killed_after_the_grace(tmp_path: Path) -> None:
    gate = started(tmp_path, "deaf", "spawn=60", "hang")
    until(lambda: lines(tmp_path, "spawned"))
    begun = time.monotonic()
    Ending(gate.process, "", grace=0.4).wait()
    assert 0.4 <= time.monotonic() - begun < 0.4 + AT_ONCE
    assert processes.status_of(gate.process) == -signal.SIGKILL
    processes.reap(gate.process)


def test_what_an_agent_left_behind_is_ended_though_the_agent_is_gone(tmp_path: Path) -> None:
    mark = f"TASK-y:{os.getpid()}"
    gate = started(tmp_path, "daemon=60", "spawn=60", mark=mark)
    until(lambda: processes.status_of(gate.process) is not None)
    children = [line["child"] for line in lines(tmp_path, "spawned")]
    assert len(children) == 2
    assert Ending(gate.process, f"RALF_LEASE={mark}", grace=1).wait() == 2
    processes.reap(gate.process)
    assert not [child for child in children if _lives(child)]


def test_a_signal_never_goes_to_a_process_that_has_got_the_number(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "30"]) as other:  # noqa: S607
        born = session_registry.process_start(other.pid)
        assert not processes.send(other.pid, born - 1, signal.SIGKILL)
        assert processes.is_running(other.pid, born)
        assert processes.send(other.pid, born, signal.SIGKILL)


def test_the_end_of_an_agent_spares_whoever_has_got_its_number_since(tmp_path: Path) -> None:
    script = "sleep 30 & echo begun; wait"
    with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        born = session_registry.process_start(other.pid)
        assert len(processes.members(other.pid, "", born)) == 2
        assert processes.members(other.pid, "", born - 1) == {}
        assert Ending(other.pid, "RALF_AGENT=loop-none", grace=0.0, born=born - 1).wait() == 0
        assert processes.is_running(other.pid, born)
        assert Ending(other.pid, "", grace=0.0, born=born).wait() == 2


def test_what_an_agent_left_in_its_session_is_ended_though_it_shows_no_environment(tmp_path: Path) -> None:
    """As a process does that is just becoming another program."""
    script = "env -i sleep 30 & echo begun"
    with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as agent:
        born = session_registry.process_start(agent.pid)
        assert agent.stdout is not None
        agent.stdout.readline()
        until(lambda: agent.poll() is not None)
        assert Ending(agent.pid, "RALF_AGENT=loop-x", grace=0.0, born=born).wait() == 1


def test_what_an_agent_whose_number_is_its_own_left_in_its_session_is_ended(tmp_path: Path) -> None:
    gate = started(tmp_path, "spawn=60", mark="")
    until(lambda: processes.status_of(gate.process) is not None)
    (line,) = lines(tmp_path, "spawned")
    assert Ending(gate.process, "", grace=1, born=gate.born).wait() == 1
    processes.reap(gate.process)
    assert not _lives(line["child"])


def test_a_job_whose_time_is_up_is_killed_with_what_it_has_started(tmp_path: Path) -> None:
    def work() -> None:
        command = ["/bin/sh", "-c", f"sleep 60 & echo $! > {tmp_path}/child; wait"]
        subprocess.run(command, start_new_session=True, check=False)

    job = Job.start(work, str(tmp_path / "log"), 60.0)
    child = int(until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text()))
    assert not job.is_over()
    job.end_within(0.0)
    assert job.is_over()
    until(lambda: not _lives(child))


def test_a_log_that_is_too_large_is_copied_and_emptied_while_the_agent_writes(tmp_path: Path) -> None:
    kept = logs.Logs(tmp_path, size=1000)
    path = kept.of("a")
    with path.open("ab", buffering=0) as agent:
        agent.write(b"x" * 1500)
        assert kept.rotate(path)
        assert not kept.rotate(path)
        agent.write(b"more\n")
    assert path.read_bytes() == b"more\n"
    assert (tmp_path / "a.log.1").read_bytes() == b"x" * 1500


def test_of_many_logs_the_newest_stay_and_those_in_use(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"{number}.log").write_bytes(b"x")
        os.utime(tmp_path / f"{number}.log", (number, number))
    assert logs.Logs(tmp_path, count=4).prune(frozenset({"2.log"})) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.log", "6.log", "7.log", "8.log", "9.log"]


def test_a_log_of_any_bytes_has_an_end_that_can_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes("€".encode() * 5000 + b"\xe2\x82\n\xff\x00\x1b[31mlast \xf0\x9f\n\n")
    assert "last" in logs.last_line(path)
    assert "\x1b" not in logs.tail(path, 2048)
    assert logs.tail(tmp_path / "none") == ""
