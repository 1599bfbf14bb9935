"""Which process a client is, and whether it still runs: a number alone may be another process's by now."""

from __future__ import annotations

import os
from pathlib import Path

from ralf_integrations import environment
from ralf_integrations.hooks.payload import Client

_BETWEEN = frozenset(
    "sh ash bash rbash dash zsh fish ksh mksh csh tcsh nu pwsh xonsh elvish busybox env timeout nice".split()
)
"""Names of processes that stand between a client and its hook."""

_MOST_BETWEEN = 8


def caller(client: Client) -> tuple[int, int]:
    """The process of the client that calls us, and when that began (`born`); zeros where that cannot be told."""
    process = environment.claude_process() if client == "claude-code" else 0
    if not process:
        process = os.getppid()
        for _ in range(_MOST_BETWEEN):
            name, parent, _ = _stat(process)
            if name not in _BETWEEN:
                break
            process = parent
    began = born(process)
    return (process, began) if process > 1 and began else (0, 0)


def machine() -> str:
    """The machine, and on it the space of process numbers that we see: a container has one of its own."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return f"{os.uname().nodename} {space}"


def born(process: int) -> int:
    """When a process began, in clock ticks since the machine did; 0 for one that is gone, or only waits to be reaped,
    or where the system does not say.
    """
    return _stat(process)[2]


def parent(process: int) -> int:
    """The process that started another, 0 where that cannot be told."""
    return _stat(process)[1]


def runs(process: int, began: int) -> bool:
    """Whether the process that began then still runs."""
    return process > 0 and began > 0 and born(process) == began


def _stat(process: int) -> tuple[str, int, int]:
    """A process's name, its parent, and when it began."""
    try:
        text = Path(f"/proc/{process}/stat").read_bytes().decode("utf-8", "replace")
        name, _, rest = text.partition("(")[2].rpartition(")")
        found = rest.split()
        return name, int(found[1]), 0 if found[0] in "ZX" else int(found[19])
    except (OSError, ValueError, IndexError):
        return "", 0, 0
