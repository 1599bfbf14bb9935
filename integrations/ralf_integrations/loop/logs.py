"""What agents print: a file for each start, bounded in size and in number. Its bytes are never read as text to judge.

The agent writes to its file itself, so that it goes on where the loop is killed. A file that has grown too large is
copied to `NAME.1` and emptied, as `logrotate` does with `copytruncate`; what is written between the two is lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ralf.storage.files import open_single_link
from ralf.text.cleaning import clean, one_line, trimmed

SIZE = 20 << 20
"""Bytes of one file before it is rotated; together with the copy it takes twice as much."""

COUNT = 200
"""Files that are kept, the newest; one start has up to four."""

_COPIED = 1 << 20
_TAIL = 64 << 10
_LAST = 8 << 10  # bytes in which the last line is looked for


@dataclass(frozen=True, slots=True)
class Logs:
    """The folder of the logs.

    size, count  as above
    """

    folder: Path
    size: int = SIZE
    count: int = COUNT

    def of(self, name: str) -> Path:
        """The log of a start."""
        return self.folder / f"{name}.log"

    def errors_of(self, name: str) -> Path:
        """What a start writes to standard error."""
        return self.folder / f"{name}.err"

    def prompt_of(self, name: str) -> Path:
        """What a start was handed."""
        return self.folder / f"{name}.prompt.md"

    def last_of(self, name: str) -> Path:
        """Where a start's client leaves its last message."""
        return self.folder / f"{name}.last.md"

    def rotate(self, path: Path) -> bool:
        """Empty a log that has grown too large, its content to `NAME.1`; whether that was so. Never an error: a log
        that cannot be rotated only grows.
        """
        try:
            if path.stat().st_size <= self.size:
                return False
            copy = path.with_name(f"{path.name}.1")
            with path.open("r+b") as log, open(copy, "wb", opener=open_single_link) as kept:
                while chunk := log.read(_COPIED):
                    kept.write(chunk)
                log.truncate(0)
        except OSError:
            return False
        return True

    def prune(self, keep: frozenset[str] = frozenset()) -> int:
        """Remove the oldest files above the number; `keep`: names of files that stay. Returns how many went."""
        found: list[tuple[int, str]] = []
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_file(follow_symlinks=False):
                        found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
        removed = 0
        for _, name in sorted(found, reverse=True)[self.count :]:
            if name not in keep:
                with suppress(OSError):
                    (self.folder / name).unlink()
                    removed += 1
        return removed


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
    line = next(filter(None, lines), "")
    return trimmed(one_line(line), most)


def follow(path: Path, offset: int) -> Iterator[bytes]:
    """What a log holds behind a place, in pieces."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(offset)
        while chunk := file.read(_COPIED):
            yield chunk
