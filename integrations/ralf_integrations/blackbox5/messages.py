"""What these commands say on stderr: a line, or an error and the command to type next, as it is typed in that tree."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from ralf import command, project as projects
from ralf.errors import RalfError
from ralf.text import clean, one_line
from ralf.trim import without_middle

_LONGEST = 1_000  # characters of a message


def say(line: str, *, by: str = "") -> None:
    """Say something to whoever looks at stderr; `by`: who says it, the drop-in that runs by default."""
    running = Path(sys.argv[0]).stem
    name = by or (running if running.startswith("context_") else "context_budget")
    with suppress(OSError):
        print(f"{name}: {_bounded(line)}", file=sys.stderr)


def put(text: str) -> None:
    """Print a text on stdout, with a line end where it has none. A reader that goes away is no error."""
    try:
        print(text, end="" if text.endswith("\n") else "\n", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(error: RalfError | OSError, root: str | os.PathLike[str] | None = None) -> int:
    """Say what is wrong and what to type next. The exit status: 2 for a refused name, 3 for what is missing, else 1."""
    with suppress(OSError):
        print(f"Error: {_bounded(str(error))}", file=sys.stderr)
        if isinstance(error, RalfError) and error.hint:
            print(f"hint: {_bounded(typed(error.hint, root))}", file=sys.stderr)
    return error.exit_status if isinstance(error, RalfError) and error.exit_status in (2, 3) else 1


def _bounded(text: str) -> str:
    """A message as one line without control characters, its middle cut where it is long."""
    return without_middle(one_line(clean(text)), 3 * _LONGEST // 4, _LONGEST // 4)[0]


def typed(text: str, root: str | os.PathLike[str] | None = None) -> str:
    """A text of ours with the commands in it as they work in a project: by the loop's script, else by our Python."""
    own = f"{shlex.quote(sys.executable)} -m ralf_cli"
    with suppress(RalfError, OSError):
        found = projects.find(root).command
        return command.typed(text, own if found == command.NAME else found)
    return command.typed(text, own)
