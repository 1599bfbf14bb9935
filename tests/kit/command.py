"""The one way in which tests run ralf as a process: a fork of a server that has loaded everything.

A test of how a new interpreter starts, loads or is configured by its own variables asks for one: `is_new=True`.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

SOURCE = Path(__file__).parents[2]
_PACKAGES = tuple(str(SOURCE / name) for name in ("context", "cli", "integrations", "migrations"))
HANGS = 120.0
"""Seconds after which a command hangs: many times what anything takes on a slow machine with much to do."""

_INTERPRETERS = ("PYTHON", "LC_", "LANG", "LD_", "COVERAGE")  # only a new interpreter reads these


@dataclass(frozen=True)
class Ran:
    """What a command printed, and its exit status; a signal that ended it is negative."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """The lines that it printed, without those of the fence in which a pipe gets them."""
        return [line for line in self.out.splitlines() if not line.startswith("<!-- ralf:context ")]

    def complains(self, status: int, starts: object, *words: str) -> None:
        """Fails unless the error text starts with a path or route, holds the words, and is followed by a hint."""
        lines = self.err.splitlines()
        complaints = [line for line in lines if line.startswith("error: ")]
        assert self.status == status, (self.status, self.err)
        assert complaints and complaints[0].startswith(f"error: {starts}: "), self.err
        assert all(word in self.err for word in words), (words, self.err)
        place = lines.index(complaints[0])
        assert any(line.startswith("hint: ") and len(line) > 6 for line in lines[place + 1 :]), self.err
        assert "Traceback" not in self.err


class Child:
    """A process of the fork server, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, answer: int, streams: Mapping[str, IO[bytes] | None], arguments: Sequence[str]) -> None:
        self.args = list(arguments)
        self.stdin, self.stdout, self.stderr = (streams.get(name) for name in ("stdin", "stdout", "stderr"))
        self.returncode: int | None = None
        self.calls = 0
        """How many calls touched files, where a fault counted them."""
        self._answer = answer
        self._said = b""
        self._read(HANGS, lines=1)
        self.pid = int(self._said.split(b"\n")[0])

    def _read(self, timeout: float | None, lines: int) -> bool:
        end = None if timeout is None else time.monotonic() + timeout
        while self._said.count(b"\n") < lines:
            left = None if end is None else max(0.0, end - time.monotonic())
            if not select.select([self._answer], [], [], left)[0]:
                return False
            more = os.read(self._answer, 64)
            assert more, "the fork server has ended"
            self._said += more
            if b"calls " in self._said and self._said.endswith(b"\n"):
                before, _, counted = self._said.partition(b"calls ")
                number, _, after = counted.partition(b"\n")
                self.calls, self._said = int(number), before + after
        return True

    def poll(self) -> int | None:
        """The exit status, None while it runs."""
        if self.returncode is None and self._read(0.0, lines=2):
            self.returncode = os.waitstatus_to_exitcode(int(self._said.split(b"\n")[1]))
            os.close(self._answer)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit status; subprocess.TimeoutExpired where it runs longer."""
        if self.returncode is None and not self._read(timeout, lines=2):
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        status = self.poll()
        assert status is not None
        return status

    def communicate(self, input: bytes | None = None, timeout: float | None = None) -> tuple[bytes, bytes]:  # noqa: A002  # as Popen has it
        """Write to it, read all that it prints, wait for it."""
        end = None if timeout is None else time.monotonic() + timeout
        parts: dict[str, bytes] = {"stdout": b"", "stderr": b""}

        def write() -> None:
            try:
                if input:
                    self.stdin.write(input)  # type: ignore[union-attr]
                self.stdin.close()  # type: ignore[union-attr]
            except BrokenPipeError:
                pass

        writer = threading.Thread(target=write, daemon=True)
        if self.stdin is not None and not self.stdin.closed:
            writer.start()
        streams = {pipe: name for name in parts if (pipe := getattr(self, name)) is not None and not pipe.closed}
        while streams:
            left = None if end is None else max(0.0, end - time.monotonic())
            ready = select.select(list(streams), [], [], left)[0]
            if not ready:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            for pipe in ready:
                more = os.read(pipe.fileno(), 1 << 16)
                parts[streams[pipe]] += more
                if not more:
                    del streams[pipe]
                    pipe.close()
        self.wait(None if end is None else max(0.0, end - time.monotonic()))
        if writer.ident is not None:
            writer.join()
        return parts["stdout"], parts["stderr"]

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def __del__(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):  # of a process that a test has killed and left
            if stream is not None:
                with suppress(OSError):  # what nobody reads any more
                    stream.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()


class _Link:
    """This process's end of a fork server."""

    def __init__(self, environment: Mapping[str, str], *more: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket, self._lock = ours, threading.Lock()
        self._is_of = os.getpid()
        self._spent = 0.0
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("fork_server.py")), str(theirs.fileno()), *more],
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd="/",
            )
        atexit.register(self.close)

    def start(self, wanted: dict[str, Any], streams: Sequence[int]) -> int:
        """Start a process; the pipe in which the server tells of it."""
        answer, tells = os.pipe2(os.O_CLOEXEC)
        with self._lock:
            socket.send_fds(self._socket, [json.dumps({"run": wanted}).encode()], [*streams, tells])
        os.close(tells)
        return answer

    def ask(self, what: str) -> Any:
        """Ask the server one thing."""
        with self._lock:
            self._socket.send(json.dumps({what: True}).encode())
            assert select.select([self._socket], [], [], HANGS)[0], "a process that a command has left behind hangs"
            return json.loads(self._socket.recv(64))

    def close(self) -> None:
        """End the server and all of its processes."""
        if os.getpid() == self._is_of:
            self._socket.close()
            self._process.wait()


_links: dict[str, _Link] = {}


def _link(preload: str = "") -> _Link:
    """The fork server of this process, started when it is first needed; `preload`: a library to start it with, or
    `mcp`: it has loaded ralf's MCP server, too.
    """
    return _server(os.getpid(), preload)


@functools.cache
def _server(_: int, preload: str) -> _Link:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RALF_", "CLAUDE", "COV_"))}
    kept["PYTHONPATH"] = os.pathsep.join([*_PACKAGES, str(SOURCE / "tests"), str(SOURCE)])
    if os.path.isabs(preload):
        kept["LD_PRELOAD"] = preload
    _links[preload] = _Link(kept, preload)
    return _links[preload]


def spent() -> float:
    """Seconds of processor time that the fork server of this process has taken for its forks."""
    return sum((float(link.ask("spent")) for link in _links.values()), 0.0)


def settle() -> None:
    """Wait for every process that commands of this process have left behind."""
    for link in _links.values():
        link.ask("settle")


def _needs_interpreter(env: Mapping[str, str]) -> bool:
    """Whether an environment differs from ours in what an interpreter reads as it starts."""
    for name, value in env.items():
        if name == "PYTHONPATH":
            known = {*_PACKAGES, *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
            if not set(value.split(os.pathsep)) <= known:
                return True
        elif name != "PYTHONUTF8" and name.startswith(_INTERPRETERS) and value != os.environ.get(name):
            return True
    return False


@functools.cache
def shim() -> str:
    """The compiled shim.c, which counts calls that touch files and fails or kills at one; skips where no gcc is."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is needed to fail single system calls")
    folder = tempfile.mkdtemp(prefix="ralf-shim-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = f"{folder}/shim.so"
    source = SOURCE / "tests" / "faults" / "shim.c"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def start(
    *arguments: object,
    cwd: Path,
    env: Mapping[str, str],
    code: str = "",
    is_new: bool = False,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
    **more: Any,
) -> Child | subprocess.Popen[bytes]:
    """Start `ralf ARGUMENTS`, or Python code with these arguments, and do not wait for it.

    is_new  in an interpreter of its own
    more    umask; way: the module that is run; session: it leads one of its own;
            fault: (n, what): at its n-th call that touches files happens `what`: see `kit.faults`
    """
    words = [str(argument) for argument in arguments]
    if is_new or _needs_interpreter(env):
        command = [sys.executable, *(["-c", code] if code else ["-m", "ralf_cli"]), *words]
        return subprocess.Popen(command, cwd=cwd, env=dict(env), stdin=stdin, stdout=stdout, stderr=stderr)
    passed: list[int] = []
    opened: list[int] = []
    kept: dict[str, IO[bytes] | None] = {}
    for name, wanted in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
        if wanted == subprocess.PIPE:
            reads, writes = os.pipe2(os.O_CLOEXEC)
            ours, theirs = (writes, reads) if name == "stdin" else (reads, writes)
            kept[name] = os.fdopen(ours, "wb" if name == "stdin" else "rb")
            opened.append(theirs)
        elif wanted == subprocess.DEVNULL:
            theirs = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            opened.append(theirs)
        elif wanted == subprocess.STDOUT:
            theirs = passed[1]
        else:
            theirs = wanted if isinstance(wanted, int) else wanted.fileno()
        passed.append(theirs)
    asked = {"argv": words, "code": code, "cwd": str(cwd), "env": dict(env), **more}
    answer = _link(shim() if "fault" in more else "mcp" if words[:1] == ["mcp"] else "").start(asked, passed)
    for descriptor in opened:
        os.close(descriptor)
    return Child(answer, kept, words)


def run(
    *arguments: object, cwd: Path, env: Mapping[str, str], stdin: str | bytes = b"", timeout: float = HANGS, **more: Any
) -> Ran:
    """Run `ralf ARGUMENTS`, or Python code, as `start` does, and wait for it."""
    child = start(*arguments, cwd=cwd, env=env, stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, **more)
    try:
        out, err = child.communicate(stdin.encode() if isinstance(stdin, str) else stdin, timeout)
    except BaseException:
        child.kill()
        child.wait()
        raise
    status = child.returncode
    assert status is not None
    return Ran(status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
