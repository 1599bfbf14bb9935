"""What agents print: a file for each start, bounded in size and in number. Its bytes are never read as text to judge.

The agent writes to its file itself, so that it goes on where the loop is killed. A file that has grown too large is
copied to `NAME.1` and emptied, as `logrotate` does with `copytruncate`; what is written between the two is lost. Once
the agent has ended, its secrets are taken out.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path

from ralf.storage import durable
from ralf.storage.files import open_single_link
from ralf.text.cleaning import clean, one_line, trimmed

_SIZE = 20 << 20  # bytes of one file before it is rotated; together with the copy it takes twice as much
_COUNT = 200  # files that are kept, the newest; one start has up to four
_TAIL = 64 << 10
_LAST = 8 << 10  # bytes in which the last line is looked for


def rotate(path: Path, size: int = _SIZE) -> None:
    """Empty a log that has grown too large, its content to `NAME.1`. Never an error: one that cannot be rotated only
    grows.
    """
    with suppress(OSError):
        if path.stat().st_size > size:
            copy = path.with_name(f"{path.name}.1")
            with path.open("r+b") as log, open(copy, "wb", opener=open_single_link) as kept:
                shutil.copyfileobj(log, kept)
                log.truncate(0)


def tidy(folder: Path, running: Collection[str]) -> None:
    """Rotate what the starts of these names print, and remove the oldest files of others above the number."""
    found: list[tuple[int, Path]] = []
    for path in folder.glob("*"):
        with suppress(OSError):
            found.append((path.lstat().st_mtime_ns, path))
    for place, (_, path) in enumerate(sorted(found, reverse=True)):
        if any(path.name in (f"{start}.log", f"{start}.err") for start in running):
            rotate(path)
        elif place >= _COUNT and not any(path.name.startswith(f"{start}.") for start in running):
            with suppress(OSError):
                path.unlink()


def redact(paths: Iterable[Path], redacted: Callable[[str], str]) -> None:
    """Take the secrets out of what agents that have ended printed, and out of its copies. Never an error."""
    for path in (one for log in paths for one in (log, log.with_name(f"{log.name}.1"))):
        with suppress(OSError):
            text = path.read_bytes().decode("utf-8", "replace")
            if (made := redacted(text)) != text:
                durable.write(path, made.encode(), is_synced=False)


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
