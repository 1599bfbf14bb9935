"""Agents as processes: each in a session of its own, held at a gate before it begins, ended with all it started."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from ralf_integrations.hooks import session_registry

_STEP = 0.05  # seconds between two looks at processes that are ending
_BECOMING = 0.01  # seconds in which a process that is becoming another program shows no environment
_PATIENCE = 10.0  # seconds after which one that SIGKILL does not end is given up: it waits for a device

_HIGHEST = 1 << 20  # descriptors

_CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD)
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGQUIT, signal.SIGUSR2)  # by Python, or by whoever has started it


class CannotStart(OSError):
    """The command of an agent cannot be started: `filename` is the command, or its working directory."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What a gate becomes."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]  # all of it
    cwd: str
    stdin: str = ""  # the file that it reads, "" for nothing
    log: str = os.devnull  # the file behind whose end its output goes
    errors: str = ""  # another one for standard error, "" for the same
    session: str = ""  # the client's id of its session where we chose it
    last: str = ""  # the file in which the client leaves its last message, "" where it has none


class Gate:
    """A process that waits to become an agent, in a session of its own. Whoever made it and dies leaves none behind.

    process, born  stay when it becomes the command
    """

    def __init__(self) -> None:
        """OSError as it comes."""
        read, self._go = os.pipe()
        self._said, write = os.pipe()
        self.process = _forked(lambda: _become(read, write))
        os.close(read)
        os.close(write)
        self.born = session_registry.process_start(self.process)

    def open(self, launch: Launch) -> None:
        """Have it become the command. CannotStart where there is no such command or folder: then it is gone."""
        with suppress(BrokenPipeError), os.fdopen(self._go, "w") as go:  # killed: whoever waits for it sees that
            json.dump(asdict(launch), go)
        with os.fdopen(self._said, errors="replace") as said:
            number, _, what = said.read().partition(" ")
        if number:
            os.waitpid(self.process, 0)
            raise CannotStart(int(number), os.strerror(int(number)), what)

    def close(self) -> None:
        """Let it end: it becomes nothing."""
        os.close(self._go)
        os.close(self._said)
        os.waitpid(self.process, 0)


def _become(read: int, write: int) -> None:
    """What the forked process of a gate does."""
    low, high = sorted((read, write))
    for first, last in ((3, low), (low + 1, high), (high + 1, _HIGHEST)):
        os.closerange(first, last)
    what = ""
    try:
        with os.fdopen(read) as go:
            launch = Launch(**json.load(go))
        what = launch.cwd
        os.chdir(what)
        _redirect(launch.stdin or os.devnull, launch.log, launch.errors or launch.log)
        what = launch.argv[0]
        os.execvpe(what, launch.argv, dict(launch.environment))  # noqa: S606  # no shell is what is wanted
    except ValueError:  # whoever would have opened the gate has died
        return
    except OSError as error:
        os.write(write, f"{error.errno or errno.EIO} {what}".encode("utf-8", "replace"))


def _forked(work: Callable[[], None]) -> int:
    """The number of a process that does some work in a session of its own, where signals do what they ever do, and says
    on standard error what went wrong. OSError as it comes.
    """
    if process := os.fork():
        return process
    status = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (*_CAUGHT, *_IGNORED):
            signal.signal(number, signal.SIG_DFL)
        work()
        status = 0
    except Exception as error:  # noqa: BLE001  # there is nobody to raise it to
        with suppress(OSError):
            os.write(2, f"ralf loop: {type(error).__name__}: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(status)


def _redirect(stdin: str, log: str, errors: str) -> None:
    """Read from one file, and write behind the ends of others, which are made for this user only."""
    behind = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, (path, how) in enumerate(((stdin, os.O_RDONLY), (log, behind), (errors, behind))):
        descriptor = os.open(path, how, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)


class Job:
    """Work of ours that nobody waits for, in a process of its own: what it says goes behind the end of a file."""

    def __init__(self, work: Callable[[], None], log: str, seconds: float) -> None:
        """Fork a process that does the work, and may take so many seconds. OSError as it comes."""
        self._deadline = time.monotonic() + seconds

        def logged() -> None:
            _redirect(os.devnull, log, log)
            work()

        self._process = _forked(logged)

    def end_within(self, seconds: float) -> None:
        """Give it at most so many seconds more."""
        self._deadline = min(self._deadline, time.monotonic() + seconds)

    def is_over(self) -> bool:
        """Whether it is; one whose time is up is killed, with all that it has started."""
        if status_of(self._process) is None:
            if time.monotonic() < self._deadline:
                return False
            for one in members(self._process):
                _sent(one.kill)
        os.waitpid(self._process, 0)
        return True


def status_of(process: int) -> int | None:
    """The exit status of a child, negative for a signal; None while it runs. It is not reaped, so that its number stays
    its own. ChildProcessError for a process that is no child.
    """
    found = os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def is_running(process: int, born: int) -> bool:
    """Whether the process that began then still runs; one of unknown beginning where its number is taken."""
    if born or not process or Path("/proc/self").exists():
        return session_registry.is_running(process, born)
    import psutil  # everywhere here: only who looks at processes pays for it

    return bool(psutil.pid_exists(process))


def send(process: int, born: int, number: signal.Signals) -> bool:
    """Send a signal to the process that began then, and to no other that has its number by now; whether it was sent."""
    import psutil

    with suppress(psutil.Error):
        one = psutil.Process(process)  # before the look: psutil sends nothing to a later process of that number
        return is_running(process, born) and _sent(one.send_signal, number)
    return False


def _sent(send: Callable[..., None], *given: signal.Signals) -> bool:
    import psutil

    with suppress(psutil.Error, OSError):
        send(*given)
        return True
    return False


def members(process: int, mark: str = "", born: int = 0) -> list[Any]:
    """The processes of an agent that run, itself among them, as psutil knows them.

    mark  `NAME=VALUE`, a variable that the agent's processes have and no other has; "" for none
    born  when the agent began; 0: nobody else can have got its number yet

    They are those of its session and its process group, those that descend from it, and those whose environment has the
    mark: one that has begun a session of its own is found by it. Where the agent is gone, and somebody else may have
    its number, session and group count only for a process that shows no environment.
    """
    import psutil

    alive: dict[int, Any] = {}
    parents: dict[int, int] = {}
    beside: set[int] = set()
    for one in psutil.process_iter():
        with suppress(psutil.Error, OSError), one.oneshot():
            if one.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                continue
            alive[one.pid], parents[one.pid] = one, one.ppid()
            if process in (one.pid, os.getsid(one.pid), os.getpgid(one.pid)):
                beside.add(one.pid)
    ours = set(beside) if not born or session_registry.is_running(process, born) else set()
    name, _, value = mark.partition("=")
    for pid in alive.keys() - ours if mark else ():
        with suppress(psutil.Error, OSError):
            shown = alive[pid].environ()
            if shown.get(name) == value or (not shown and pid in beside):
                ours.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in ours and pid not in ours}:
        ours |= more
    return [alive[pid] for pid in ours - {os.getpid()}]


class Ending:
    """The end of an agent and of all that it has started, step by step, so that nobody waits for it.

    Asked to end first, and killed after `grace` seconds.
    """

    def __init__(self, process: int, mark: str = "", grace: float = 5.0, born: int = 0) -> None:
        """`mark`, `born` as in `members`."""
        self.grace = grace
        self.asked: set[Any] = set()  # those that had to be ended
        self._of = process, mark, born
        self._begun = time.monotonic()
        self._next = 0.0

    def step(self) -> bool:
        """Do what is due; whether none is left."""
        if time.monotonic() < self._next:
            return False
        found = members(*self._of)
        if not found:  # the last one seen may have forked meanwhile, or be becoming another program
            time.sleep(_BECOMING)
            found = members(*self._of)
        self._next = time.monotonic() + _STEP
        lasts = time.monotonic() - self._begun
        for one in found:
            if lasts >= self.grace:
                _sent(one.kill)
            elif one not in self.asked:
                _sent(one.terminate)
                _sent(one.resume)
            self.asked.add(one)
        return not found or lasts >= self.grace + _PATIENCE

    def wait(self) -> int:
        """Do all steps; how many were ended."""
        while not self.step():
            time.sleep(_STEP)
        return len(self.asked)


class Signals:
    """Catches what would end this process, and wakes whoever waits, within a `with` block."""

    def __enter__(self) -> Self:
        self._woken, self._waker = os.pipe()  # Python writes the number of each signal into it
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)
        self._before = {number: signal.signal(number, lambda *_: None) for number in _CAUGHT}
        self._waker_before = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._waker_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._woken)
        os.close(self._waker)

    def taken(self) -> list[int]:
        """The signals that came, in order, but for the ends of children."""
        found = b""
        with suppress(BlockingIOError):
            while more := os.read(self._woken, 4096):
                found += more
        return [number for number in found if number != signal.SIGCHLD]

    def wait(self, seconds: float) -> None:
        """Wait for a signal that was not taken yet, or the end of a child."""
        select.select([self._woken], [], [], max(0.0, seconds))
