"""What the tests of the hooks share: a project that has opted in, a session in it, and the installed command."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import forks
import ralf
import storekit
from kit import command
from ralf import environment
from ralf.maintenance import ownership
from ralf.project import Project
from ralf_integrations.client import CLIENTS
from ralf_integrations.hooks import entry, instant, session_registry
from ralf_integrations.hooks.messages import Payload, parse
from ralf_integrations.hooks.session import Session

CAPTURED = storekit.SOURCE.parent / "shared" / "clients" / "captured"
MEANT = ("BB5_", "RALF_", "CLAUDE", "CODEX", "GEMINI", "OPENCODE")
"""How variables begin that mean something to us."""

SESSION = "5f0c1d2e-0000-4000-8000-000000000001"


@cache
def is_installed() -> bool:
    """Whether the installed command, which hooks are started by, runs this checkout."""
    asked = [sys.executable, "-I", "-c", "import ralf, ralf_integrations; print(ralf.__file__)"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() == ralf.__file__


@dataclass(frozen=True)
class Said:
    """What a hook printed."""

    out: str

    @property
    def tree(self) -> dict[str, Any]:
        """It, as JSON; {} for nothing."""
        found = json.loads(self.out) if self.out else {}
        assert isinstance(found, dict)
        return found

    @property
    def context(self) -> str:
        """What the model is handed."""
        return str(self.tree.get("hookSpecificOutput", {}).get("additionalContext", ""))

    @property
    def notice(self) -> str:
        """What the person is shown."""
        return str(self.tree.get("systemMessage", ""))


@dataclass
class Rig:
    """A session of a client in a project of its own."""

    root: Path
    transcript: Path
    client: str = "claude-code"
    session: str = SESSION
    environment: dict[str, str] = field(default_factory=lambda: {"CLAUDE_CODE_ENTRYPOINT": "cli"})
    turns: int = 0

    @property
    def project(self) -> Project:
        """The project, as the library sees it."""
        return Project(self.root)

    def configure(self, **keys: object) -> None:
        """Write the configuration."""
        self.project.config_file.write_text("".join(f"{key}: {value}\n" for key, value in keys.items()))

    def grow(self, tokens: int) -> None:
        """Have the session go on for that many tokens."""
        self.turns = storekit.grow(self.transcript, tokens, self.turns, self.session)

    def add(self, *records: dict[str, Any]) -> None:
        """Append records to the transcript."""
        with self.transcript.open("a") as file:
            file.writelines(json.dumps({"sessionId": self.session, **record}) + "\n" for record in records)

    def answers(self, used: int, text: str = "Looking.", **more: object) -> None:
        """Have the agent say something, with so many tokens in the client's window."""
        usage = {"input_tokens": 10, "cache_read_input_tokens": used - 20, "output_tokens": 10}
        content = [{"type": "text", "text": text}]
        message = {"role": "assistant", "model": "m", "id": "x", "content": content, "usage": usage}
        self.add({"type": "assistant", "timestamp": "2026-03-01T09:00:00Z", "message": message, **more})

    def payload(self, event: str, **more: object) -> bytes:
        """What the client writes for an event."""
        tree = {"session_id": self.session, "transcript_path": str(self.transcript), "cwd": str(self.root)}
        return json.dumps({**tree, "hook_event_name": event, **more}).encode()

    def look(self, event: str = "PostToolBatch") -> Session:
        """The session as a hook of ours sees it."""
        payload = parse(event, self.payload(event), self.client)
        assert isinstance(payload, Payload)
        return Session(payload, self.project)

    def start(self, event: str, **more: object) -> subprocess.Popen[bytes]:
        """Call a hook, and do not wait for it."""
        child = subprocess.Popen(
            CLIENTS[self.client].command(event, shared=False),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.root,
            env=storekit.environment(self.root.parent, **self.environment),
        )
        assert child.stdin is not None
        try:
            child.stdin.write(self.payload(event, **more))
            child.stdin.close()
        except BrokenPipeError:
            pass
        child.stdin = None
        return child

    def hook(self, event: str = "PostToolBatch", **more: object) -> Said:
        """Call a hook in this process, and wait for what it started, in forks of this process."""
        data = self.payload(event, **more)
        with pytest.MonkeyPatch.context() as patch:
            for variable in [name for name in os.environ if name.startswith(MEANT)]:
                patch.delenv(variable)
            for variable, value in self.environment.items():
                patch.setenv(variable, value)
            patch.setattr(environment, "start_detached", forked)
            said: list[str] = []
            if not instant.is_idle(self.client, event, data):
                entry.run(self.client, event, data, said.append)
        self.settle()
        assert len(said) < 2
        return Said("".join(said))

    def run(self, event: str = "PostToolBatch", **more: object) -> Said:
        """Call a hook as it is installed, and wait for its answer and for what it started."""
        (said,) = answered([self.start(event, **more)])
        self.settle()
        return said

    def checkpoints(self, route: str = "default") -> list[tuple[str, int]]:
        """Reason and tokens of each checkpoint of a route."""
        if not storekit.journal_file(self.root, route).exists():
            return []
        return [(entry.reason, entry.tokens) for entry in ralf.get_context(route, root=self.root).checkpoints]

    def workers(self) -> list[int]:
        """The processes that hooks of this project have started, and that still run."""
        ours = set()  # of this very process: one that has just begun does not show its arguments yet
        for child in environment.started:
            with suppress(ChildProcessError):
                if os.waitpid(child, os.WNOHANG) == (0, 0):
                    ours.add(child)
        wanted = (b"ralf_integrations.hooks.checkpoints", os.fsencode(self.root))
        found = {process for process, words in processes() if all(word in words for word in wanted)}
        return sorted(found | ours)

    def settle(self, seconds: float = storekit.HANGS) -> None:
        """Wait until nothing that a hook has started runs any more, nor holds a lock: a process that ends loses its
        arguments first.
        """
        command.settle()  # what a command has left behind has no arguments yet
        wait(lambda: not self.workers() and self._is_unlocked(), seconds)

    def _is_unlocked(self) -> bool:
        for path in session_registry.checkpoint_lock(self.project, "").parent.glob("*.lock"):
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
        return True


def forked(module: str, file: str, arguments: Sequence[str]) -> int:
    """`environment.start_detached` without a new interpreter, which would load all that this one has: that takes most
    of the time of a small checkpoint. `Rig.run` and `Rig.start` have the real one.
    """
    del file

    def work() -> None:
        os.setsid()
        known = environment.of_a_model()
        os.environ.clear()
        os.environ.update(known)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # as with an exec: a lock lasts until the last of its files is shut
        import_module(module).main(arguments)

    child = forks.fork(work)
    environment.started.append(child)
    return child


def processes() -> Iterable[tuple[int, list[bytes]]]:
    """Every process, and its arguments."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                yield int(folder.name), (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue


def wait(condition: Callable[[], object], seconds: float = storekit.HANGS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def answered(calls: Iterable[subprocess.Popen[bytes]]) -> list[Said]:
    """What calls of hooks printed; each of them ends with status 0 and says JSON or nothing."""
    found = []
    for call in calls:
        out, err = call.communicate(timeout=storekit.HANGS)
        assert (call.returncode, err) == (0, b""), err.decode()
        found.append(Said(out.decode()))
    return found


def rig(root: Path, *, session: str = SESSION, client: str = "claude-code") -> Rig:
    """A project at `root` that has opted in, and an empty session of a user whose home lies beside it."""
    if not is_installed():
        pytest.skip("the installed command runs another checkout, or none: pip install -e .")
    root.mkdir(parents=True, exist_ok=True)
    ownership.init(Project(root), share=False)
    home = root.parent
    transcript = storekit.session_log(home, root, session, client)
    variables = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_DATA_HOME")
    known = {name: value for name, value in storekit.environment(home).items() if name in variables}
    return Rig(root, transcript, client, session, {"CLAUDE_CODE_ENTRYPOINT": "cli", **known})
