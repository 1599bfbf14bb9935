"""Machines that share nothing but NATS servers: who holds a run or a task there, and for how long after a death.

Each machine is a process with a project and a machine's name of its own: no process id, no file and no lock of one
says anything to the other.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import natskit
import storekit
from clocks import slower
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.storage import registry
from storekit import HANGS, PACKAGES, context_of

pytestmark = [
    pytest.mark.skipif(bool(natskit.absent()), reason=natskit.absent() or "-"),
    pytest.mark.release,
]

_HEAD = """
import os, signal, sys, time
from pathlib import Path
from ralf.tasks import origin
machine, root = sys.argv[1:]
origin.machine = lambda: machine
from ralf.agent.run import AgentRun
from ralf.agent.listing import get_run
from ralf.agent.signals import send_signal
from ralf.errors import *
from ralf.tasks import claims, editing

def say(*words):
    print(*words, flush=True)

def heard():
    return sys.stdin.readline().strip()

def until(claim):
    began = time.monotonic()
    while True:
        try:
            return claim()
        except (Claimed, NothingReady):
            assert time.monotonic() - began < 60
            time.sleep(0.05)
"""


class Machines:
    """Projects of one user that keep their records on the same servers, each on a machine of its own."""

    def __init__(self, folder: Path, servers: natskit.Servers, lease: int) -> None:
        self._folder = folder
        self.servers = servers
        self._lease = lease
        self._processes: list[subprocess.Popen[str]] = []
        self.roots: dict[str, Path] = {}

    def root(self, name: str) -> Path:
        """The project on a machine."""
        if name in self.roots:
            return self.roots[name]
        root = self._folder / name
        root.mkdir()
        ownership.init(Project(root), share=False)
        if self.roots:
            first = registry.find(next(iter(self.roots.values())))
            assert first is not None
            registry.update(root, key=first.key)
        path = context_of(root) / "config.local.yaml"
        lines = {
            "store": "nats",
            "nats_servers": "[" + ", ".join(f'"{url}"' for url in self.servers.urls()) + "]",
            "nats_project": self._folder.name.replace(".", "-")[-60:].strip("-_"),
            "nats_replicas": str(self.servers.count),
            "nats_lease": str(self._lease),
        }
        path.write_text("".join(f"{key}: {value}\n" for key, value in lines.items()))
        storekit.allow(path)
        self.roots[name] = root
        return root

    def start(self, name: str, code: str) -> subprocess.Popen[str]:
        """A process of a machine that runs `code`."""
        command = [sys.executable, "-c", _HEAD + code, name, os.fspath(self.root(name))]
        environment = {**os.environ, "PYTHONPATH": PACKAGES}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self._processes.append(process)
        return process

    def end(self) -> None:
        """Kill what runs."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.communicate()


@pytest.fixture(params=natskit.SERVERS)
def servers(request: pytest.FixtureRequest) -> natskit.Servers:
    found = natskit.SERVERS[request.param]
    found.ready()
    return found


@pytest.fixture
def machines(tmp_path: Path, servers: natskit.Servers) -> Iterator[Machines]:
    found = Machines(tmp_path, servers, 3)
    yield found
    found.end()


def said(process: subprocess.Popen[str]) -> str:
    """The next line that a process prints."""
    assert process.stdout is not None
    line: list[str] = []
    reading = threading.Thread(target=lambda: line.append(process.stdout.readline()), daemon=True)  # type: ignore[union-attr]
    reading.start()
    reading.join(HANGS)
    assert line, "it says nothing"
    return line[0].strip()


def tell(process: subprocess.Popen[str], words: str) -> None:
    """Write a line to a process."""
    assert process.stdin is not None
    process.stdin.write(f"{words}\n")
    process.stdin.flush()


_HOLDS = """
run = AgentRun("r", root=root, by="ann")
run.save(b"from ann")
say("holds", run.term)
heard()
try:
    say("saved", run.save(b"late"))
except Busy as error:
    say(type(error).__name__, error, "|", error.hint)
heard()
"""

_TAKES_OVER = """
try:
    AgentRun("r", root=root, by="bob").save(b"")
except Claimed as error:
    say(error)
heard()
began = time.monotonic()
run = AgentRun("r", root=root, by="bob")
until(lambda: run.save(b"from bob"))
say(f"{time.monotonic() - began:.2f}", run.term, run.load(1).decode())
heard()
say(run.save(b"again"), run.load().decode())
"""


def test_a_run_killed_on_one_machine_goes_on_at_another_when_its_lease_has_ended(machines: Machines) -> None:
    one = machines.start("one", _HOLDS)
    assert said(one) == "holds 1"
    two = machines.start("two", _TAKES_OVER)
    told = said(two)
    assert told.startswith("r: claimed by ann since 2")
    assert re.search(r", until 2\S+Z unless the holder renews it", told), told
    tell(two, "go")
    one.kill()
    waited, term, state = said(two).split(" ", 2)
    assert float(waited) < machines._lease + 2 * slower(time.monotonic)
    assert (term, state) == ("2", "from ann")


def test_a_process_that_was_stopped_past_its_lease_is_refused_after_a_take_over(machines: Machines) -> None:
    one = machines.start("one", _HOLDS)
    assert said(one) == "holds 1"
    two = machines.start("two", _TAKES_OVER)
    said(two)
    tell(two, "go")
    one.send_signal(signal.SIGSTOP)
    assert float(said(two).split()[0]) < machines._lease + 2 * slower(time.monotonic)
    one.send_signal(signal.SIGCONT)
    tell(one, "save")
    assert said(one) == ("StaleLease r: its claim, term 1, was lost; bob has it now, term 2 | ralf run show r")
    tell(two, "save")
    assert said(two) == "3 again"


def test_a_signal_from_another_machine_wakes_a_wait(machines: Machines) -> None:
    waiting = 'run = AgentRun("r", root=root)\nrun.save(b"")\nsay("waits")\n'
    one = machines.start("one", waiting + 'found = run.wait_signal("go", 60)\nsay(found.text, repr(time.time()))\n')
    said(one)
    time.sleep(1)
    two = machines.start("two", 'sent = time.time()\nsend_signal("r", "go", "on", root=root)\nsay(repr(sent))\n')
    began = float(said(two))
    text, when = said(one).split()
    assert text == "on"
    assert float(when) - began < 2.0 * slower(time.monotonic)
