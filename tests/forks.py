"""Work in forks of the process of the tests: a new interpreter would load all that this one has."""

from __future__ import annotations

import atexit
import os
import sys
import traceback
import warnings
from collections.abc import Callable


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
