"""What the harnesses for tasks share: the command, its environment, and what it leaves behind."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

COMMAND = (sys.executable, "-m", "ralf_cli")


def environment(home: Path, by: str = "", **more: str) -> dict[str, str]:
    """The environment of a command of ours, and who it says it is. Its modules are compiled once, as installed ones."""
    other = ("RALF_", "CLAUDE", "CODEX", "PYTHONDONTWRITEBYTECODE")
    known = {name: value for name, value in os.environ.items() if not name.startswith(other)}
    compiled = os.path.join(os.environ["XDG_CONFIG_HOME"], "pycache")
    path = os.pathsep.join(filter(None, sys.path))
    known |= {"HOME": str(home), "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": compiled, **more}
    return known | ({"RALF_AGENT": by} if by else {})


def alive_with(*words: str) -> list[int]:
    """Processes whose command has these words in it: what a run of a harness has left behind. Linux only."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            text = path.read_bytes().decode(errors="replace")
            if all(word in text for word in words):
                found.append(int(path.parent.name))
    return found
