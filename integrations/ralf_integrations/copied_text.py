"""Finds text of a project's files in a message, however it is quoted, fenced, indented, numbered or joined.

Each line of a file is looked for by its letters and digits alone, in ASCII and without case. Lines count where several
in a row are in the message: a path or a phrase that both happen to have is no copy.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ralf.storage.files import content_of

_LEAST = 6  # letters and digits of a line that is looked for
_RUN = 32  # of lines in a row that are no coincidence; a longer line is looked for in pieces
_LARGEST = 1 << 20  # bytes of a file that is looked at
_MOST_BYTES, _MOST_FILES = 48 << 20, 20_000  # of a tree
_PASSED_OVER = frozenset(("node_modules", "__pycache__", "site-packages"))

_DROPPED = bytes(one for one in range(256) if not (one < 128 and chr(one).isalnum()) and one != ord("\n"))
_LOWER = bytes(range(256)).lower()


class Copied(NamedTuple):
    """What a message has of one file: its path in the project, and how much of it."""

    path: str
    lines: int
    characters: int


def most_copied(text: str, root: Path, *, lines: int, characters: int) -> Copied | None:
    """The first file under `root` of which a text has more than so many lines or characters; None for none.

    Looks at files of up to 1 MiB, 48 MiB and 20,000 files in all, in the order of their paths; at none in a hidden
    folder, and at no link.
    """
    message = _squeezed(text.encode("utf-8", "replace")).replace(b"\n", b"")
    for path in _files(root) if len(message) >= _RUN else ():
        with suppress(OSError):
            found = _copied(content_of(path), message)
            if len(found) > lines or sum(found) > characters:
                return Copied(path.relative_to(root).as_posix(), len(found), round(sum(found)))
    return None


def _squeezed(data: bytes) -> bytes:
    return data.translate(_LOWER, _DROPPED)


def _copied(data: bytes, message: bytes) -> list[float]:
    """The characters of each line of a file that is in a message; no part of the message counts twice."""
    runs: list[list[tuple[bytes, int]]] = [[]]
    for raw, line in zip(data.split(b"\n"), _squeezed(data).split(b"\n"), strict=True):
        if len(line) >= _LEAST:
            if any(piece in message for piece in _pieces(line)):
                runs[-1].append((line, len(raw.strip())))
            elif runs[-1]:
                runs.append([])
    those = [one for run in runs if sum(len(line) for line, _ in run) >= _RUN for one in run]
    found = []
    for line, size in sorted(those, key=lambda one: -len(one[0])):
        copied = 0
        for piece in _pieces(line):
            if piece in message:
                message = message.replace(piece, b"\n", 1)
                copied += len(piece)
        if copied:
            found.append(size * copied / len(line))
    return found


def _pieces(line: bytes) -> list[bytes]:
    pieces = [line[start : start + _RUN] for start in range(0, len(line), _RUN)]
    return pieces if len(pieces[-1]) >= _LEAST else pieces[:-1]


def _files(root: Path) -> Iterator[Path]:
    left, count = _MOST_BYTES, 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _PASSED_OVER)
        for path in (Path(folder, name) for name in sorted(names)):
            try:
                status = path.lstat()
            except OSError:
                continue
            if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= _LARGEST:
                continue
            left, count = left - status.st_size, count + 1
            if left < 0 or count > _MOST_FILES:
                return
            yield path
