"""The files that stand where the proposal's own stand: `context_checkpoint.py` and the others, for any Python.

    python -m ralf_integrations.blackbox5.dropins install [DIR]
    python -m ralf_integrations.blackbox5.dropins uninstall [DIR]

Each one calls, or imports, the module of its name in the Python that has installed it. A file of the same name that is
somebody else's is left alone, and named. DIR: the current folder by default.

Exit status: 0 · 1 a folder cannot be written, or a file there is somebody else's · 2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ralf.errors import UsageError
from ralf.storage import durable
from ralf.storage.files import content_of
from ralf_integrations.blackbox5.checkpointing import complain

NAMES = ("context_budget", "context_checkpoint", "context_manager", "context_reader", "context_summarizer")

_MARK = "# Made by `python -m ralf_integrations.blackbox5.dropins install`; `uninstall` removes it."
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


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; its exit status. SystemExit (2) where it is called wrongly."""
    parser = argparse.ArgumentParser(prog="dropins", description="The proposal's commands, as files of a folder.")
    parser.add_argument("command", choices=["install", "uninstall"])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR")
    given = parser.parse_args(args)
    folder = given.folder.absolute()
    status = 0
    try:
        for path in (folder / f"{name}.py" for name in NAMES):
            is_there = path.exists() or path.is_symlink()
            is_ours = path.is_file() and not path.is_symlink() and _MARK.encode() in content_of(path, most=64 << 10)
            if given.command == "uninstall":
                if is_ours:
                    path.unlink()
                    print(f"removed {path}")
            elif is_there and not is_ours:
                hint = "move it away, and install once more"
                complain(UsageError(path, "is somebody else's: left as it is", hint))
                status = 1
            else:
                text = _TEXT.format(name=path.stem, mark=_MARK, python=sys.executable, folder=str(folder))
                durable.write(path, text.encode(), mode=0o755)
                print(path)
    except OSError as error:
        return complain(error)
    return status


if __name__ == "__main__":
    sys.exit(main())
