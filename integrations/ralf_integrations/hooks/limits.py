"""How much work a process may do that a hook has started: no text keeps one busy for ever."""

from __future__ import annotations

import resource
import signal
from contextlib import suppress
from types import FrameType

SECONDS = 900
"""Of processor time. Work grows in line with the text, so this is some hundred megabytes of a transcript."""

_GRACE = 30  # seconds after which the system kills it


class Exhausted(BaseException):
    """The process has done more work than it may. No `Exception`: who is at work must not take it for theirs."""


def limit_work(seconds: int = SECONDS) -> None:
    """Raise `Exhausted` in the main thread after so much processor time, and again each second; then the system ends
    the process. Segments that were acknowledged are kept, all else is still due.
    """

    def exhausted(_: int, __: FrameType | None) -> None:
        raise Exhausted(f"took more than {seconds:,} s of processor time; what is not taken yet is still due")

    with suppress(ValueError, OSError):  # a lower limit is in force, and holds
        signal.signal(signal.SIGXCPU, exhausted)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _GRACE))
