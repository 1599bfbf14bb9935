"""Which run of which machine this is, and whether a process of it runs."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path


@cache
def boot() -> str:
    """What names this run of the machine; "" where the system does not say it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


@cache
def machine() -> str:
    """What names the numbers that processes have here: one run of one machine, and the container in it."""
    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # no path, but the name of a namespace
    except OSError:
        space = ""
    name = f"{boot()} {space} {os.uname().nodename if not boot() else ''}"
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def born(process: int) -> int:
    """When a process started, by the machine's clock; 0 for none, for one that is dead, and where nobody can tell."""
    try:
        text = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        return 0 if text[0] in (b"Z", b"X") else int(text[19])
    except (OSError, ValueError, IndexError):
        return 0


def is_running(process: int, start: int, where: str) -> bool | None:
    """Whether a process runs; None where nobody here can tell.

    start  as `born` said it; where: as `machine` did
    """
    if not process or where != machine():
        return None
    if boot():
        return born(process) == start if start else None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return None
    return None  # it runs, or another one that has got its number
