"""Finds lines of a project's files in a message, however it is quoted, fenced, indented, numbered or joined.

Message and files are compared by their letters and digits alone, so that no mark between two lines hides that they
follow one another. A line with few of them counts only before one that is found.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ralf.storage.files import content_of
from ralf.text.patterns import regex

_FEWEST = 8  # letters and digits of a line by which it is told again
_LARGEST = 1 << 20  # bytes of a file that is looked at
_MOST_BYTES, _MOST_FILES = 48 << 20, 20_000  # of a tree
_PASSED_OVER = frozenset(("node_modules", "__pycache__", "site-packages"))
_DROPPED = bytes(one for one in range(256) if one > 127 or not chr(one).isalnum())
_LOWER = bytes(range(256)).lower()
_PREFIX = regex(rb"(?m)^[ \t>|*+#\-]*(?:\d{1,6}[ \t]*[:|.)\t\x80-\xff-]+|\d{1,6}[ \t]{2,})?")
_ESCAPED = regex(rb"\\(?:u[0-9a-fA-F]{4}|.)")


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
    data = text.encode("utf-8", "replace")
    texts = [plain for said in (data, _ESCAPED.sub(b"\n", data)) for plain in (said, _PREFIX.sub(b"", said))]
    variants = {*map(_squeezed, texts)}
    for path in _files(root) if len(text) >= _FEWEST else ():
        try:
            content = content_of(path)
        except OSError:
            continue
        found = _copied(content, variants)
        count, size = len(found), sum(len(line.decode("utf-8", "replace").strip()) for line in found)
        if count > lines or size > characters:
            return Copied(path.relative_to(root).as_posix(), count, size)
    return None


def _copied(content: bytes, variants: set[bytes]) -> list[bytes]:
    """The lines of a file that a message holds, each as often as it does."""
    found: list[bytes] = []
    counts = Counter[bytes]()
    short: list[bytes] = []  # before or behind a line that was found
    for line in content.split(b"\n"):
        own = _squeezed(line)
        if len(own) < _FEWEST:
            if line.strip() and any(own in said for said in variants):
                short.append(line)
        elif counts[own] < max(said.count(own) for said in variants):
            counts[own] += 1
            found += [*short, line]
            short = []
        else:
            short = []
    return found


def _squeezed(content: bytes) -> bytes:
    return content.translate(_LOWER, _DROPPED)


def _files(root: Path) -> Iterator[Path]:
    left, count = _MOST_BYTES, 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _PASSED_OVER)
        for name in sorted(names):
            path = Path(folder, name)
            try:
                size = os.lstat(path).st_size if not path.is_symlink() and path.is_file() else 0
            except OSError:
                continue
            if not 0 < size <= _LARGEST:
                continue
            left, count = left - size, count + 1
            if left < 0 or count > _MOST_FILES:
                return
            yield path
