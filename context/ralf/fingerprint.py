"""Fingerprints of a transcript's beginning and of what lies before a place, to tell whether it is still the same
file.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

HEAD = 4 * 1024
TAIL = 64 * 1024


class Fingerprint(NamedTuple):
    """sha256 of the first 4 KiB and of the 64 KiB before a place (less where the place is nearer to the start)."""

    head: str
    tail: str


def take(path: Path, end: int) -> Fingerprint | None:
    """The fingerprint of a file up to byte `end`; None when the file is shorter than that."""
    with path.open("rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size < end:
            return None
        head = os.pread(file.fileno(), min(HEAD, end), 0)
        start = max(0, end - TAIL)
        tail = os.pread(file.fileno(), end - start, start)
    return Fingerprint(hashlib.sha256(head).hexdigest(), hashlib.sha256(tail).hexdigest())
