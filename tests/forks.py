"""Work, and the command, in forks of the process of the tests: a new interpreter would load all that this one has."""

from __future__ import annotations

import atexit
import os
import posix
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from storekit import HANGS, Ran, environment

PLAIN, CLICK = "ralf_cli.plain", "ralf_cli.main"
"""The two ways to an answer: as `ralf` goes, and without what it answers by itself."""


def forked(*args: object, cwd: Path, way: str = PLAIN, **more: str) -> Ran:
    """`process` in a fork of this process, for what a command answers; how it is started, loads and is read by another
    program is proved by `process`.
    """
    known = environment(cwd, **more)
    assert not any(name.startswith(("PYTHON", "LC_", "LANG")) for name in more), "only a new interpreter reads it"

    def command() -> None:
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(known)
        posix.environ.clear()  # as the system gave it, which is what the quickest answers look at
        posix.environ.update({os.fsencode(name): os.fsencode(value) for name, value in known.items()})
        time.tzset()
        for number, to in enumerate((os.open(os.devnull, os.O_RDONLY), out.fileno(), err.fileno())):
            os.dup2(to, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w", encoding="utf-8")
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace")
        sys.argv = ["ralf", *map(str, args)]
        signal.alarm(int(HANGS))
        import_module(way).run()

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        _, status = os.waitpid(fork(command), 0)
        for file in (out, err):
            file.seek(0)
        return Ran(os.waitstatus_to_exitcode(status), out.read().decode(), err.read().decode())


def fork(work: Callable[[], None]) -> int:
    """Do some work in a fork of this process, which ends with it; its id. A new interpreter would load all that this
    one has, which takes most of the time of a command.
    """
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # the other threads wait for pytest
        child = os.fork()
    if child:
        return child
    atexit._clear()  # the end of a command is not the end of pytest: its servers and folders stay
    status = 1
    try:
        work()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else ended.code is not None
    except BaseException:  # noqa: BLE001  # a child of ours ends here whatever happens
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)
