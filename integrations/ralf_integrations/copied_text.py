"""Finds text of a project's files in a message, however it is quoted, fenced, indented, numbered or joined.

Message and files are compared by their letters and digits alone, in ASCII and without case, so that no mark between
two lines hides that they follow one another. A run counts from `_RUN` of those characters on: a path or a phrase that
both happen to have is none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ralf.storage.files import content_of
from ralf.text.patterns import regex

_BLOCK = 16  # characters of a file that are looked up at once: twice as many in a row are always found
_RUN = 32
_MOST_HITS = 8  # places of a message at which one block is looked at
_LARGEST = 1 << 20  # bytes of a file that is looked at
_MOST_BYTES, _MOST_FILES = 48 << 20, 20_000  # of a tree
_PASSED_OVER = frozenset(("node_modules", "__pycache__", "site-packages"))

_KEPT = bytes(one for one in range(128) if chr(one).isalnum())
_DROPPED = bytes(sorted({*range(256)} - {*_KEPT}))
_LOWER = bytes(range(256)).lower()

_PREFIX = regex(
    r"(?m)^[ \t>|*+#\-]*(?:\d{1,6}[ \t]*[:|.)\t→-]+|\d{1,6}[ \t]{2,})?"
)  # of a quoted, numbered or listed line
_ESCAPED = regex(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_BRACKETS = frozenset(b"{}[]()")


class _Run(NamedTuple):
    """Characters that file and message share: where they begin in either, and how many."""

    begin: int
    first: int
    size: int


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
    unescaped = _ESCAPED.sub(_unescaped, text)
    texts = [one.encode("utf-8", "replace") for plain in (text, unescaped) for one in (plain, _PREFIX.sub("", plain))]
    variants = [_Variant(one) for one in {_squeezed(one): one for one in texts}.values() if len(_squeezed(one)) >= _RUN]
    for path in _files(root) if variants else ():
        try:
            data = content_of(path)
        except OSError:
            continue
        squeezed = _squeezed(data)
        for variant in variants:
            runs = variant.runs(squeezed)
            if not runs:
                continue
            found = _counted(path, root, data, variant, runs)
            if found.lines > lines or found.characters > characters:
                return found
    return None


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return "\n" if found[2] in "nrt" else str(found[2])


def _squeezed(data: bytes) -> bytes:
    return data.translate(_LOWER, _DROPPED)


class _Variant:
    """One way to read a message, and where each of its blocks begins."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.kept = [place for place, byte in enumerate(raw) if byte in _KEPT]
        self._text = _squeezed(raw)
        self._places: dict[bytes, list[int]] = {}
        for place in range(len(self._text) - _BLOCK + 1):
            self._places.setdefault(self._text[place : place + _BLOCK], []).append(place)

    def runs(self, data: bytes) -> list[_Run]:
        """The stretches of a file's characters that stand in the message. No part of the message counts for two of
        them, however often the file repeats it.
        """
        found: list[_Run] = []
        end = 0
        for start in range(0, len(data) - _BLOCK + 1, _BLOCK):
            hits = self._places.get(data[start : start + _BLOCK])
            if hits is None or start < end:
                continue
            run = max((self._extended(data, start, hit) for hit in hits[:_MOST_HITS]), key=lambda run: run.size)
            if run.size >= _RUN:
                found.append(run)
                end = run.begin + run.size
        return list(self._once(found))

    def _once(self, runs: list[_Run]) -> Iterator[_Run]:
        """The runs, the longest first, without what a longer one has of the message already."""
        left = bytearray(b"\1" * len(self._text))
        for run in sorted(runs, key=lambda run: -run.size):
            last = run.first + run.size
            place = left.find(1, run.first, last)
            while place >= 0:
                stop = left.find(0, place, last)
                stop = last if stop < 0 else stop
                left[place:stop] = bytes(stop - place)
                yield _Run(run.begin + place - run.first, place, stop - place)
                place = left.find(1, stop, last)

    def _extended(self, data: bytes, start: int, place: int) -> _Run:
        """The whole run around a block that file and message share."""
        text = self._text
        begin, first = start, place
        while begin and first and data[begin - 1] == text[first - 1]:
            begin, first = begin - 1, first - 1
        end, last = start + _BLOCK, place + _BLOCK
        while end < len(data) and last < len(text) and data[end] == text[last]:
            end, last = end + 1, last + 1
        return _Run(begin, first, end - begin)


def _counted(path: Path, root: Path, data: bytes, variant: _Variant, runs: list[_Run]) -> Copied:
    kept = [place for place, byte in enumerate(data) if byte in _KEPT]
    lines = characters = 0
    for run in runs:
        piece = data[kept[run.begin] : kept[run.begin + run.size - 1] + 1].decode("utf-8", "replace")
        characters += len(piece)
        lines += sum(1 for line in piece.split("\n") if line.strip())
        ends = _gap(data, kept, run.begin + run.size), _gap(variant.raw, variant.kept, run.first + run.size)
        heads = _gap(data, kept, run.begin), _gap(variant.raw, variant.kept, run.first)
        lines += _bracket_lines(*ends) + _bracket_lines(*(gap[::-1] for gap in heads))
    return Copied(path.relative_to(root).as_posix(), lines, characters)


def _gap(data: bytes, kept: list[int], place: int) -> bytes:
    """What stands between two characters that are compared: before the one at a place, and behind the one before it."""
    begin = kept[place - 1] + 1 if place else 0
    return data[begin : kept[place] if place < len(kept) else len(data)]


def _bracket_lines(gap: bytes, shown: bytes) -> int:
    """How many lines of nothing but brackets, next to a run in the file, stand next to it in the message, too."""
    left = bytes(byte for byte in shown if byte in _BRACKETS)
    count = 0
    for number, line in enumerate(gap.split(b"\n")):
        brackets = bytes(byte for byte in line if byte in _BRACKETS)
        if not left.startswith(brackets):
            break
        left = left[len(brackets) :]
        count += bool(brackets) and number > 0  # the first is the rest of a line that counts
    return count


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
