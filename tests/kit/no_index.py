"""A mode in which each opening of `index.db` finds none, as if somebody deleted it before every command and write."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ralf.document import index

WITHOUT = "TESTS_WITHOUT_INDEX"
"""The environment variable that switches it on, in the tests and in the commands that they start."""


def switch() -> None:
    """Switch it on where the environment asks for it."""
    opened = index.opened
    if os.environ.get(WITHOUT) and opened.__module__ == index.__name__:

        def opened_anew(path: Path | None) -> index.Index | None:
            for ending in ("", "-wal", "-shm"):
                with suppress(OSError):
                    os.unlink(f"{path}{ending}")
            return opened(path)

        index.opened = opened_anew
