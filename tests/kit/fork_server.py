"""Runs commands of ralf and Python code in forks of one process that has loaded everything: a fork costs a twentieth of
an interpreter that loads it anew, and has its own folder, environment and streams, as a process of its own has.

    python fork_server.py FD [mcp]    # serves the socket FD until its other end is closed; `mcp`: the MCP server, too

A request is one JSON object in a packet of its own; with `run` come four file descriptors: standard input, output and
error, and a pipe for the answer.

    {"run": {"argv": [...], "code": "" or Python, "cwd": ..., "env": {...}, "umask": 18}}
        in the pipe: one line with the process's id, then, when it has ended, one with its wait status
        more: "way": the module that is run; "session": it leads one of its own; "terminal": at its standard input;
        "umask", "as_modes_say" (see `kit.rights`); in a server that was started with shim.so, "fault": [n, what]
        as `ralf_arm` has it, where n = 0 counts: one more line, "calls N"
    {"settle": true}      answered when no process that a command left behind runs any more
    {"spent": true}       answered with the seconds of processor time that all forks and what they left behind took

Processes that a command leaves behind are inherited by the server, so that their time is counted, too.
"""

from __future__ import annotations

import array
import atexit
import ctypes
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import posix
import select
import signal
import socket
import sys
import tempfile
import termios
import time
import traceback
from contextlib import suppress
from typing import Any, NoReturn

if not __package__:  # started as a program
    sys.path[0] = os.path.dirname(os.path.dirname(__file__))
from kit import no_index, rights

PACKAGES = ("ralf", "ralf_cli", "ralf_integrations", "ralf_migrations")
_LEFT_OUT = (".__main__", ".server")  # a program; and the MCP server, whose SDK is as large as all else together
_CODECS = ("utf-8-sig", "utf-16-le", "idna", "ascii", "latin-1", "cp437")  # loaded before a fork gives up its rights
_SET_CHILD_SUBREAPER = 36


class Server:
    """The process that everything is forked from."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._answers: dict[int, int] = {}  # process → pipe
        self._spent = 0.0
        self._is_asked_to_settle = False

    def serve(self) -> None:
        """Answer until the other end is closed; then end what still runs."""
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        while True:
            ready, _, _ = select.select([self._link, woken], [], [])
            if woken in ready:
                os.read(woken, 4096)
                self._reap()
            if self._link in ready and not self._answer():
                break
        for child in self._children():
            os.kill(child, signal.SIGKILL)

    def _answer(self) -> bool:
        packet, ancillary, _, _ = self._link.recvmsg(1 << 20, socket.CMSG_SPACE(4 * 4))
        if not packet:
            return False
        descriptors = array.array("i")
        for _, _, data in ancillary:
            descriptors.frombytes(data)
        request = json.loads(packet)
        if "run" in request:
            self._run(request["run"], list(descriptors))
        elif "spent" in request:
            self._link.send(json.dumps(self._spent).encode())
        else:
            self._is_asked_to_settle = True
            self._reap()
        return True

    def _run(self, wanted: dict[str, Any], descriptors: list[int]) -> None:
        child = os.fork()
        if not child:
            _become(wanted, descriptors[:3], descriptors[3])
        for descriptor in descriptors[:3]:
            os.close(descriptor)
        os.write(descriptors[3], f"{child}\n".encode())
        self._answers[child] = descriptors[3]

    def _reap(self) -> None:
        while True:
            try:
                child, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                child = 0
            if not child:
                break
            self._spent += usage.ru_utime + usage.ru_stime
            if (answer := self._answers.pop(child, None)) is not None:
                with suppress(BrokenPipeError):  # nobody waits for it
                    os.write(answer, f"{status}\n".encode())
                os.close(answer)
        if self._is_asked_to_settle and not set(self._children()) - self._answers.keys():
            self._is_asked_to_settle = False
            self._link.send(b"true")

    def _children(self) -> list[int]:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(child) for child in file.read().split()]


def _become(wanted: dict[str, Any], streams: list[int], answer: int) -> NoReturn:
    """The life of a fork."""
    status = 1
    counts = wanted.get("fault", [1])[0] == 0
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        if counts:
            os.dup2(answer, 3)
        os.closerange(4 if counts else 3, os.sysconf("SC_OPEN_MAX"))
        if wanted.get("session"):
            os.setsid()
        if wanted.get("terminal"):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if wanted.get("as_modes_say"):
            modes = rights.as_modes_say()  # which holds as long as the name
            modes.__enter__()
        os.umask(wanted.get("umask", 0o022))
        os.chdir(wanted["cwd"])
        os.environ.clear()
        os.environ.update(wanted["env"])
        posix.environ.clear()  # as the system gave it: the quickest answers look at nothing else
        posix.environ.update({os.fsencode(name): os.fsencode(value) for name, value in wanted["env"].items()})
        time.tzset()
        tempfile.tempdir = None
        sys.stdin = open(0, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115  # it ends with the fork
        sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
        sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr  # what wraps them relies on someone who keeps them
        if code := wanted["code"]:
            sys.argv = ["-c", *wanted["argv"]]
            _arm(wanted)
            sys.path.insert(0, "")
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102  # a test's own
        else:
            sys.argv = ["ralf", *wanted["argv"]]
            run = importlib.import_module(wanted.get("way") or "ralf_cli.start").run
            _arm(wanted)
            run()
        status = 0
    except SystemExit as end:
        if not isinstance(end.code, int) and end.code is not None:
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        _die_of(signal.SIGINT)
    except BaseException:  # noqa: BLE001  # a fork ends here whatever happens
        traceback.print_exc()
    finally:
        _end(status)


def _arm(wanted: dict[str, Any]) -> None:
    """Have the shim count this process's calls that touch files, and make the fault that is asked for."""
    if (fault := wanted.get("fault")) is not None:
        number, what = fault
        if number == 0:
            os._exit = posix._exit = _tell_calls  # most commands end the process themselves
        ctypes.CDLL(None).ralf_arm(ctypes.c_long(number), what, ctypes.c_long(0), 0)


_exit = posix._exit


def _tell_calls(status: int) -> NoReturn:
    os.write(3, b"calls %d\n" % ctypes.CDLL(None).ralf_disarm())
    _exit(status)


def _die_of(number: int) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    raise AssertionError("a signal did not end this process")


def _end(status: int) -> NoReturn:
    """End as an interpreter does: threads that are no daemons are waited for, what was registered is called."""
    import threading

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = status or 120
    os._exit(status & 0xFF)


def load() -> None:
    """Import all of ralf, and what it loads when it is first used."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if module.name.endswith(_LEFT_OUT) or ".mcp.server" in module.name:
                continue
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:  # an extra that is not installed
                if str(error.name).partition(".")[0] in PACKAGES:
                    raise
    no_index.switch()
    for codec in _CODECS:
        "".encode(codec)
    importlib.import_module("ralf.text.tokens").count("loads the ranks")
    importlib.import_module("frontmatter.default_handlers")  # of who reads a file that is an edit
    _record_once()
    gc.collect()
    gc.freeze()


def _record_once() -> None:
    """Make a checkpoint, for a user and a project that are gone afterwards: it compiles the expressions that each fork
    would compile anew, a third of a second each time.
    """
    with tempfile.TemporaryDirectory() as folder:
        home, os.environ["HOME"] = os.environ.get("HOME", ""), folder
        text = {"role": "user", "content": "Read src/levels.py; the token is in the environment."}
        record = {"type": "user", "uuid": "1", "sessionId": "1", "timestamp": "2026-03-01T08:00:00Z", "message": text}
        log = os.path.join(folder, "1.jsonl")
        with open(log, "w") as file:
            file.write(json.dumps(record) + "\n")
        importlib.import_module("ralf").checkpoint("once", log, root=folder)
        os.environ["HOME"] = home


def main() -> None:
    """Serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests, which end this
    sys.path.pop(0)  # the folder of tests
    if "mcp" in sys.argv[2:]:
        importlib.import_module("ralf_integrations.mcp.server")
    load()
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    Server(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
