"""What agents print: a file for each start, bounded in size and in number. Its bytes are never read as text to judge.

The agent writes to its file itself, so that it goes on where the loop is killed. A file that has grown too large is
copied to `NAME.1` and emptied, as `logrotate` does with `copytruncate`; what is written between the two is lost.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from ralf.storage.files import open_single_link
from ralf.text.cleaning import clean, one_line, trimmed

SIZE = 20 << 20
"""Bytes of one file before it is rotated; together with the copy it takes twice as much."""

COUNT = 200
"""Files that are kept, the newest; one start has up to four."""

_TAIL = 64 << 10
_LAST = 8 << 10  # bytes in which the last line is looked for


def rotate(path: Path, size: int = SIZE) -> None:
    """Empty a log that has grown too large, its content to `NAME.1`. Never an error: one that cannot be rotated only
    grows.
    """
    with suppress(OSError):
        if path.stat().st_size > size:
            copy = path.with_name(f"{path.name}.1")
            with path.open("r+b") as log, open(copy, "wb", opener=open_single_link) as kept:
                shutil.copyfileobj(log, kept)
                log.truncate(0)


def prune(folder: Path, keep: Collection[str] = (), count: int = COUNT) -> None:
    """Remove the oldest files of a folder above the number; `keep`: names of starts whose files stay."""
    found: list[tuple[int, str]] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
    for _, name in sorted(found, reverse=True)[count:]:
        if not any(name.startswith(f"{start}.") for start in keep):
            with suppress(OSError):
                (folder / name).unlink()


def tail(path: Path, most: int = _TAIL) -> str:
    """The end of a log as text, whatever bytes it holds; "" where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most))
            return clean(file.read(most).decode("utf-8", "replace"))
    except OSError:
        return ""


def last_line(path: Path, most: int = 300) -> str:
    """The last line of a log that holds anything, for people: shown, never judged by. It is cut between words: half a
    secret would not be known for one.
    """
    lines = (line.strip() for line in reversed(tail(path, _LAST).splitlines()))
    return trimmed(one_line(next(filter(None, lines), "")), most)
