"""Opening a file that anybody may have put there."""

from __future__ import annotations

import os


def without_waiting(path: str, flags: int) -> int:
    """An `opener` for `open`: a pipe in the place of a file does not hang whoever reads it."""
    return os.open(path, flags | os.O_NONBLOCK)
