"""The files that stand where the proposal's own stand: `context_checkpoint.py` and the others, for any Python.

    python -m ralf_integrations.blackbox5.dropins install [DIR]
    python -m ralf_integrations.blackbox5.dropins uninstall [DIR]

Each one calls, or imports, the module of its name in the Python that has installed it. A file of the same name that is
somebody else's is left alone, and named. DIR: the current folder by default.

Exit status: 0 · 1 a folder cannot be written, or a file there is somebody else's · 2 wrong usage.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from ralf.errors import UsageError
from ralf.storage import durable
from ralf.storage.files import content_of
from ralf_integrations.blackbox5.checkpointing import complain

NAMES = ("context_budget", "context_checkpoint", "context_manager", "context_reader", "context_summarizer")

_MARK = "# Made by `python -m ralf_integrations.blackbox5.dropins install`; `uninstall` removes it."
_MODE = 0o755
_MOST = 64 << 10  # bytes
_TEXT = '''\
#!/usr/bin/env python3
"""{name} of ralf: any Python may run this file; one that has ralf may import it."""
{mark}
import os
import sys

PYTHON = {python!r}
MODULE = "ralf_integrations.blackbox5.{name}"

if __name__ == "__main__":
    if not os.access(PYTHON, os.X_OK):
        again = " -m ralf_integrations.blackbox5.dropins install "
        sys.exit("Error: " + PYTHON + " is gone; with the Python that has ralf now: PYTHON" + again + {folder!r})
    os.execv(PYTHON, [PYTHON, "-P", "-m", MODULE] + sys.argv[1:])
try:
    from ralf_integrations.blackbox5.{name} import *
except ModuleNotFoundError:
    raise ImportError(__file__ + ": " + sys.executable + " has no ralf; use the Python that has: " + PYTHON)
'''


def text(name: str, folder: Path) -> str:
    """The file of a drop-in, for the Python that runs us."""
    return _TEXT.format(name=name, mark=_MARK, python=sys.executable, folder=str(folder))


def install(folder: Path) -> tuple[list[Path], list[Path]]:
    """Write the drop-ins into a folder: those that are there now, and those whose place another file has. OSError."""
    ours, others = _sorted(folder)
    for path in ours:
        durable.write(path, text(path.stem, folder).encode(), mode=_MODE)
    return ours, others


def uninstall(folder: Path) -> list[Path]:
    """Remove the drop-ins of any version from a folder: those that were there. OSError."""
    gone = [path for path in _sorted(folder)[0] if path.exists()]
    for path in gone:
        path.unlink()
    return gone


def _sorted(folder: Path) -> tuple[list[Path], list[Path]]:
    """The places of the drop-ins that are free or ours, and those of somebody else's files."""
    paths = [folder / f"{name}.py" for name in NAMES]
    ours = [path for path in paths if not path.is_symlink() and (not path.exists() or _is_ours(path))]
    return ours, [path for path in paths if path not in ours]


def _is_ours(path: Path) -> bool:
    return path.is_file() and _MARK.encode() in content_of(path, most=_MOST)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; its exit status. SystemExit (2) where it is called wrongly."""
    parser = argparse.ArgumentParser(prog="dropins", description="The proposal's commands, as files of a folder.")
    parser.add_argument("command", choices=["install", "uninstall"])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR")
    given = parser.parse_args(args)
    folder = given.folder.absolute()
    if not folder.is_dir():
        return complain(UsageError(folder, "is no folder", f"mkdir -p {shlex.quote(str(folder))}"))
    try:
        if given.command == "uninstall":
            print("".join(f"removed {path}\n" for path in uninstall(folder)), end="")
            return 0
        made, others = install(folder)
    except OSError as error:
        return complain(error)
    print("".join(f"{path}\n" for path in made), end="")
    for path in others:
        complain(UsageError(path, "is somebody else's: left as it is", f"move it away, or link it to {_module(path)}"))
    return 1 if others else 0


def _module(path: Path) -> Path:
    """The module that a drop-in calls."""
    return Path(__file__).with_name(path.name)


if __name__ == "__main__":
    sys.exit(main())
