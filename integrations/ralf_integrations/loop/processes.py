"""Agents as processes: each in a session of its own, known by its number and when it began, ended with all it started.

A process is made in two steps. `Gate` forks one that only waits: its number is known, so that a task is claimed for it,
before anything runs. `Gate.open` turns it into the agent's command. Whoever made the gate and dies before that leaves
nothing behind: the waiting process reads the end of its pipe, and ends.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn, Self

from ralf_integrations.hooks import session_registry

GRACE = 5.0
"""Seconds between asking a process to end and killing it."""

_STEP = 0.05  # seconds between two looks at processes that are ending
_PATIENCE = 10.0  # seconds after which one that SIGKILL does not end is given up: it waits for a device
_MOST_MESSAGE = 8 << 20  # bytes of what a gate is told
_NO_COMMAND = 127
_HIGHEST = 1 << 20  # descriptors
_OF_KERNEL = (0, 2)  # the parents of its own threads, which have no environment
_BECOMING = 0.01  # seconds

_RESET = [
    getattr(signal, name)
    for name in "SIGINT SIGTERM SIGHUP SIGCHLD SIGPIPE SIGUSR1 SIGUSR2 SIGWINCH SIGXFSZ SIGQUIT".split()
    if hasattr(signal, name)
]


class CannotStart(OSError):
    """The command of an agent cannot be started: `filename` is the command, or its working directory."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What a gate becomes.

    argv         the command
    environment  all of it
    cwd          the working directory
    stdin        the file that it reads, "" for nothing
    log          the file behind whose end its output goes; `errors`: another one for standard error, "" for the same
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: str
    stdin: str = ""
    log: str = os.devnull
    errors: str = ""


@dataclass(slots=True)
class Gate:
    """A process that waits to become an agent, in a session of its own."""

    process: int
    born: int
    _told: int = field(repr=False)
    _heard: int = field(repr=False)

    @classmethod
    def make(cls) -> Gate:
        """Fork the waiting process. OSError as it comes."""
        read, told = os.pipe()
        heard, write = os.pipe()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            process = os.fork()
            if not process:
                _wait_and_become(read, write)
        except BaseException:
            os.close(told)
            os.close(heard)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(read)
            os.close(write)
        return cls(process, session_registry.process_start(process), told, heard)

    def open(self, launch: Launch) -> None:
        """Have it become the command. CannotStart where there is no such command or folder: then it is gone."""
        message = json.dumps(
            {
                "argv": launch.argv,
                "environment": dict(launch.environment),
                "cwd": launch.cwd,
                "files": [launch.stdin or os.devnull, launch.log, launch.errors or launch.log],
            }
        ).encode()
        complaint = b""
        with suppress(BrokenPipeError):  # it was killed: whoever waits for it sees that
            rest = memoryview(message)
            while rest:
                rest = rest[os.write(self._told, rest) :]
        os.close(self._told)
        while chunk := os.read(self._heard, 4096):
            complaint += chunk
        os.close(self._heard)
        if complaint:
            reap(self.process)
            number, _, what = complaint.decode("utf-8", "replace").partition(" ")
            raise CannotStart(int(number), os.strerror(int(number)), what)

    def close(self) -> None:
        """Let it end: it becomes nothing."""
        os.close(self._told)
        os.close(self._heard)
        reap(self.process)


def _wait_and_become(read: int, write: int) -> NoReturn:
    """What the forked process does. It never returns, whatever goes wrong."""
    status = _NO_COMMAND
    what = ""
    try:
        _as_ever()
        low, high = sorted((read, write))
        for first, last in ((3, low), (low + 1, high), (high + 1, _HIGHEST)):
            os.closerange(first, last)
        with os.fdopen(read, "rb") as pipe:
            told = json.loads(pipe.read(_MOST_MESSAGE))
        what = told["cwd"]
        os.chdir(what)
        flags = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_APPEND, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        opened = []
        for path, how in zip(told["files"], flags, strict=True):
            what = path
            opened.append(os.open(path, how, 0o600))
        for number, descriptor in enumerate(opened):
            os.dup2(descriptor, number)
        what = told["argv"][0]
        os.execvpe(what, told["argv"], told["environment"])  # noqa: S606  # no shell is what is wanted
    except ValueError:  # whoever would have opened the gate has died
        status = 0
    except OSError as error:
        with suppress(OSError):
            os.write(write, f"{error.errno or errno.EIO} {what}".encode("utf-8", "replace"))
    finally:
        os._exit(status)


def _as_ever() -> None:
    """In a process that was forked: a session of its own, and signals do what they ever do."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


@dataclass(slots=True)
class Job:
    """Work of ours that nobody waits for, in a process of its own: what it says goes behind the end of a file."""

    process: int
    deadline: float

    @classmethod
    def start(cls, work: Callable[[], None], log: str, seconds: float) -> Job:
        """Fork a process that does the work, and may take so many seconds. OSError as it comes."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            process = os.fork()
            if not process:
                _work(work, log)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return cls(process, time.monotonic() + seconds)

    def end_within(self, seconds: float) -> None:
        """Give it at most so many seconds more."""
        self.deadline = min(self.deadline, time.monotonic() + seconds)

    def is_over(self) -> bool:
        """Whether it is; one whose time is up is killed, with all that it has started."""
        if status_of(self.process) is None:
            if time.monotonic() < self.deadline:
                return False
            for one in members(self.process, "").items():
                send(*one, signal.SIGKILL)
            with suppress(OSError):
                os.kill(self.process, signal.SIGKILL)
        reap(self.process)
        return True

    def end(self) -> None:
        """Kill it, with all that it has started."""
        for one in members(self.process, "").items():
            send(*one, signal.SIGKILL)
        reap(self.process)


def _work(work: Callable[[], None], log: str) -> NoReturn:
    status = 1
    try:
        _as_ever()
        nothing = os.open(os.devnull, os.O_RDONLY)
        told = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, descriptor in enumerate((nothing, told, told)):
            os.dup2(descriptor, number)
        work()
        status = 0
    except Exception as error:  # noqa: BLE001  # there is nobody to raise it to
        with suppress(OSError):
            os.write(2, f"ralf loop: {type(error).__name__}: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(status)


# ---- how a process of ours ended ----


def status_of(process: int) -> int | None:
    """The exit status of a process that we started, negative for a signal; None while it runs. It is not reaped, so
    that its number stays its own. ChildProcessError for one that is none of ours.
    """
    found = os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def reap(process: int) -> None:
    """Wait for a process of ours that has ended, or is about to."""
    with suppress(ChildProcessError):
        os.waitpid(process, 0)


def watch(process: int) -> int | None:
    """A descriptor that can be read when a process has ended, whoever started it; None where the system has none."""
    try:
        return os.pidfd_open(process)
    except (AttributeError, OSError):
        return None


def is_running(process: int, born: int) -> bool:
    """Whether the process that began then still runs; one of unknown beginning where its number is taken."""
    if born or not process:
        return session_registry.is_running(process, born)
    with suppress(OSError):
        os.kill(process, 0)
        return not Path("/proc/self").exists()
    return False


def send(process: int, born: int, number: signal.Signals) -> bool:
    """Send a signal to the process that began then, and to no other that has its number by now; whether it was sent."""
    descriptor = watch(process)
    try:
        if not is_running(process, born):
            return False
        if descriptor is None:
            os.kill(process, number)
        else:
            signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True


# ---- all that an agent has started ----


def members(process: int, mark: str, born: int = 0) -> dict[int, int]:
    """The processes of an agent that run, itself among them: by number, when each began.

    mark  `NAME=VALUE`, a variable that the agent's processes have and no other has; "" for none
    born  when the agent began; 0: nobody else can have got its number yet

    They are those of its session and its process group, those that descend from it, and those whose environment has the
    mark: one that has begun a session of its own is found by it. Where the agent is gone, and somebody else may have
    its number, session and group count only for a process that shows no environment.
    """
    all_ = dict(_processes())
    found = {number: seen for number, seen in all_.items() if not seen.is_dead}
    is_its_own = not born or (process in all_ and all_[process].born == born)
    beside = {number for number, seen in found.items() if process in (number, seen.session, seen.group)}
    ours = beside if is_its_own else set[int]()
    if mark:
        shown = _marked(found.keys() - ours, found, os.fsencode(mark))
        ours = ours | {number for number, has in shown.items() if has or (has is None and number in beside)}
    parents: dict[int, list[int]] = {}
    for number, seen in found.items():
        parents.setdefault(seen.parent, []).append(number)
    waiting = list(ours)
    while waiting:
        for child in parents.get(waiting.pop(), ()):
            if child not in ours:
                ours.add(child)
                waiting.append(child)
    ours.discard(os.getpid())
    return {number: found[number].born for number in ours}


@dataclass(frozen=True, slots=True)
class _Seen:
    parent: int
    group: int
    session: int
    born: int
    is_dead: bool  # and not waited for: nobody gets its number yet


def _processes() -> Iterator[tuple[int, _Seen]]:
    """All processes, those among them that nobody has waited for yet."""
    with suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208  # a thousand objects of pathlib cost more than the look
            if not name.isdigit():
                continue
            with suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    rest = file.read(4096).rpartition(b")")[2].split()
                is_dead = rest[0] in (b"Z", b"X")
                yield int(name), _Seen(int(rest[1]), int(rest[2]), int(rest[3]), int(rest[19]), is_dead)


def _marked(numbers: Iterable[int], found: Mapping[int, _Seen], mark: bytes) -> dict[int, bool | None]:
    """Whether processes have a mark in their environment; None for one that shows none.

    A process that is just becoming another program shows none for a moment: it is looked at again.
    """
    shown = {number: _has(number, mark) for number in numbers}
    hidden = [n for n, has in shown.items() if has is None and found[n].parent not in _OF_KERNEL]
    if hidden:
        time.sleep(_BECOMING)
        shown |= {number: _has(number, mark) for number in hidden}
    return shown


def _has(process: int, mark: bytes) -> bool | None:
    try:
        with open(f"/proc/{process}/environ", "rb") as file:  # noqa: PTH123
            content = file.read(1 << 20)
    except OSError:
        return False
    return mark in content.split(b"\0") if content else None


@dataclass(slots=True)
class Ending:
    """The end of an agent and of all that it has started, step by step, so that nobody waits for it.

    Asked to end first, and killed after `grace` seconds. `born` as in `members`. `ended` counts those that had to be
    ended.
    """

    process: int
    mark: str
    grace: float = GRACE
    born: int = 0
    ended: int = 0
    _begun: float = field(default_factory=time.monotonic)
    _asked: set[tuple[int, int]] = field(default_factory=set)
    _next: float = 0.0

    def step(self) -> bool:
        """Do what is due; whether none is left."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + _STEP
        found = members(self.process, self.mark, self.born)
        found = found or members(self.process, self.mark, self.born)  # the last one seen may have forked meanwhile
        if not found:
            return True
        kills = now - self._begun >= self.grace
        for one in found.items():
            if one not in self._asked:
                self.ended += 1
                self._asked.add(one)
                send(*one, signal.SIGKILL if kills else signal.SIGTERM)
                if not kills:
                    send(*one, signal.SIGCONT)
            elif kills:
                send(*one, signal.SIGKILL)
        return now - self._begun >= self.grace + _PATIENCE

    def wait(self) -> int:
        """Do all steps; how many were ended."""
        while not self.step():
            time.sleep(_STEP)
        return self.ended


def argv_text(argv: Sequence[str]) -> str:
    """A command as a person would type it."""
    import shlex  # for people only

    return shlex.join(argv)


# ---- our own signals ----

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Catches what would end this process, and wakes whoever waits, within a `with` block.

    detached  whether a terminal that closes means nothing
    """

    def __init__(self, *, detached: bool) -> None:
        self._detached = detached
        self._caught: list[int] = []

    def __enter__(self) -> Self:
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)
        self._before = {number: signal.signal(number, self._catch) for number in (*_STOPS, signal.SIGUSR1)}
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        if self._detached:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._waker_before = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._waker_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._woken)
        os.close(self._waker)

    def _catch(self, number: int, _: FrameType | None) -> None:
        self._caught.append(number)

    def taken(self) -> Iterator[int]:
        """The signals that came, each once, in order."""
        while self._caught:
            yield self._caught.pop(0)

    def wait(self, descriptors: Sequence[int], seconds: float) -> None:
        """Wait for a signal, the end of a child, or for one of some descriptors to be readable."""
        if self._caught:
            return
        select.select([self._woken, *descriptors], [], [], max(0.0, seconds))
        with suppress(BlockingIOError):
            while os.read(self._woken, 4096):
                pass
