"""The entry point of `ralf`, before anything is loaded that some systems do not have."""

from __future__ import annotations

import sys
from typing import NoReturn

from ralf import errors


def run() -> NoReturn:
    """Run the command line and exit with its status: 1 on a system that lacks what ralf needs."""
    try:
        from ralf_cli import plain
    except ImportError as error:
        if (unsupported := errors.unsupported(error)) is None:
            raise
        sys.stderr.write(f"error: {unsupported}\nhint: {unsupported.hint}\n")
        sys.exit(1)
    plain.run()
