"""A project with tasks for stand-in agents, and loops on it as real processes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ralf import project as projects
from ralf.tasks import editing, store
from ralf.tasks.model import TaskState
from ralf_integrations.hooks import session_registry
from ralf_integrations.loop import state as states
from ralf_integrations.loop.state import LoopState
from storekit import HANGS, environment

T = TypeVar("T")

AGENT = shlex.join([sys.executable, str(Path(__file__).with_name("standin.py")), "as-told"])
"""A command that does what its task's text says."""

PATIENCE = HANGS


def until(condition: Callable[[], T], seconds: float = PATIENCE) -> T:
    """Wait for something; AssertionError where it does not come."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited for nothing"
        time.sleep(0.02)
    return found


class Plan:
    """A project, its tasks, and the loops that run on it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.home = folder / "home"
        self.journal = folder / "journal"
        self.root.mkdir()
        self.home.mkdir()
        self._git("init", "-q", ".")
        self._git("-c", "user.email=a@b.c", "-c", "user.name=n", "commit", "-q", "--allow-empty", "-m", "begin")
        self._started: list[subprocess.Popen[bytes]] = []

    def _git(self, *words: str) -> None:
        subprocess.run(
            ["git", *words],  # noqa: S607
            cwd=self.root,
            check=True,
            env=environment(self.home),
            capture_output=True,
        )

    def add(self, *does: str, title: str = "", after: tuple[str, ...] = (), **more: Any) -> str:
        """A task whose agents do this, one after the other; its id."""
        text = "\n".join(f"agent: {words}" for words in does)
        return editing.add(title or "a task", text=text, after=after, root=self.root, **more).task.id

    def client(self, name: str) -> str:
        """A stand-in that is called as a client, takes any options, and does what its task's text says."""
        path = self.root.parent / name
        path.write_text(f'#!/bin/sh\nexport AGENT_ARGUMENTS="$*"\nexec {AGENT}\n')
        path.chmod(0o700)
        return str(path)

    def get(self, task: str) -> TaskState:
        """A task as it stands."""
        return store.get(task, root=self.root)

    def outcomes(self, task: str) -> list[str]:
        """How its attempts ended."""
        return [attempt.outcome for attempt in self.get(task).attempts]

    def start(self, *options: str, agent: str = AGENT, **more: Any) -> subprocess.Popen[bytes]:
        """Start a loop."""
        argv = [sys.executable, "-m", "ralf_cli", "--root", str(self.root), "loop"]
        if agent:
            argv += ["--agent", agent]
        quick = [] if "--backoff" in options else ["--backoff", "0.1s"]
        variables = environment(
            self.home,
            AGENT_JOURNAL=str(self.journal),
            PYTHONPATH=os.pathsep.join(sys.path),
            CLAUDE_CONFIG_DIR=str(self.home / ".claude"),
            CODEX_HOME=str(self.home / ".codex"),
        )
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL} | more
        loop = subprocess.Popen([*argv, *quick, *options], cwd=self.root, env=variables, **how)
        self._started.append(loop)
        return loop

    def run(self, *options: str, agent: str = AGENT, timeout: float = PATIENCE) -> tuple[int, str]:
        """Run a loop; its exit status and what it printed."""
        loop = self.start(*options, agent=agent)
        try:
            out, _ = loop.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            loop.send_signal(signal.SIGTERM)
            out, _ = loop.communicate()
            raise AssertionError(f"the loop did not end:\n{out.decode('utf-8', 'replace')}") from None
        self.check()
        return loop.returncode, out.decode("utf-8", "replace")

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Another command of ralf."""
        argv = [sys.executable, "-m", "ralf_cli", "--root", str(self.root), *words]
        variables = environment(self.home, PYTHONPATH=os.pathsep.join(sys.path))
        return subprocess.run(argv, cwd=self.root, env=variables, capture_output=True, text=True, check=False)

    def state(self) -> LoopState:
        """What the loop says of itself."""
        return states.load(projects.find(self.root))

    def lines(self, *whats: str) -> list[dict[str, Any]]:
        """What agents have noted."""
        if not self.journal.exists():
            return []
        found = [json.loads(line) for line in self.journal.read_text().splitlines()]
        return [line for line in found if not whats or line["what"] in whats]

    def check(self) -> None:
        """No task was two agents' at the same time, as far as they have told when they ended."""
        ends = {(line["task"], line["pid"]): line["at"] for line in self.lines("end")}
        starts = sorted((line["at"], line["task"], line["pid"]) for line in self.lines("start"))
        for number, (_, task, pid) in enumerate(starts):
            later = [at for at, other, another in starts[number + 1 :] if other == task and another != pid]
            assert all(at >= ends.get((task, pid), 0.0) for at in later), f"two agents on {task}"

    def alive(self) -> list[int]:
        """Agents and their children that still run."""
        pids = [line.get("child", line["pid"]) for line in self.lines("start", "spawned")]
        return sorted({pid for pid in pids if session_registry.process_start(pid)})

    def close(self) -> None:
        """End what still runs."""
        for loop in self._started:
            if loop.poll() is None:
                loop.kill()
            loop.wait()
            if loop.stdout is not None:
                loop.stdout.close()
        for pid in self.alive():
            os.kill(pid, signal.SIGKILL)
