"""The elements of a JSON list in a file, one at a time, each with its bytes: the file is never held whole."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from ralf.transcripts.events import Position
from ralf.transcripts.lines import LINE_LIMIT

LISTS = ("messages", "history", "trajectory", "conversation", "conversations")
"""Keys under which an object holds its messages."""

_PIECE = 1 << 20
_SPACE = re.compile(rb"[\s,:]*+")
_STRING = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
_IN_STRING = re.compile(_STRING, re.S)
_BETWEEN = re.compile(rb'[^"{}\[\]]*+(?:"' + _STRING + rb'"[^"{}\[\]]*+)*+', re.S)
_SCALAR = re.compile(rb"[^\s,\]}]*+")


class Element(NamedTuple):
    """An element. `start` and `end` are bytes of the file, `number` counts the elements before it.

    data      its JSON, None where it is longer than LINE_LIMIT
    finished  whether its end is there
    """

    data: bytes | None
    start: int
    end: int
    number: int
    finished: bool = True


def elements(file: io.BufferedReader, after: Position) -> Iterator[Element]:
    """The elements from a place on: those of the list that the file is, or of the first list of messages in its object.

    An element that has no end yet is given last, unfinished; what follows the list is not read.
    """
    values = _Values(file, after.byte)
    if after.byte == 0:
        opening = values.peek()
        values.skip()
        if opening == b"{" and not _enter(values):
            return
    number = after.line
    while values.peek() not in (b"", b"]", b"}"):
        start = values.at
        data = values.take()
        yield Element(data, start, values.at, number, values.finished)
        number += 1
        if not values.finished:
            return


def _enter(values: _Values) -> bool:
    """Go into the first list of messages; false if the object has none."""
    while values.peek() == b'"':
        key = _loaded(values.take())
        if values.peek() == b"[" and key in LISTS:
            outside = values.at
            values.skip()
            inside = values.at
            message = _loaded(values.take()) if values.peek() == b"{" else None
            if isinstance(message, dict) and "role" in message:
                values.move(inside)
                return True
            values.move(outside)
        values.take()
        if not values.finished:
            return False
    return False


def _loaded(data: bytes | None) -> object:
    try:
        return None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None


class _Values:
    """The JSON values in a file from a byte on. `at` is the byte after the last one taken."""

    def __init__(self, file: io.BufferedReader, at: int) -> None:
        self._file = file
        self.move(at)

    def move(self, at: int) -> None:
        """Go to a byte."""
        self._file.seek(at)
        self._held = b""
        self._from = 0
        self.at = at
        self.finished = True

    def peek(self) -> bytes:
        """The first byte of what comes next, b"" at the end of the file."""
        while True:
            found = _SPACE.match(self._held, self._from)
            self._go(found.end() if found else self._from)
            if self._from < len(self._held):
                return self._held[self._from : self._from + 1]
            if not self._more():
                return b""

    def skip(self) -> None:
        """Go past that byte."""
        self._go(self._from + 1)

    def take(self) -> bytes | None:
        """The value that begins here; None if it is too long. `finished` tells whether its end is in the file."""
        kind, first = self.peek(), self.at
        keep = self._from
        depth, in_string, self.finished = 0, False, True
        while True:
            where = self._from
            if in_string:
                where = _end(_IN_STRING, self._held, where)
                mark = self._held[where : where + 1]
                if mark == b'"':
                    in_string, where = False, where + 1
            elif depth or kind in b'"{[':
                where = _end(_BETWEEN, self._held, where) if depth else where
                mark = self._held[where : where + 1]
                where += len(mark)
                in_string = mark == b'"'
                depth += (mark in (b"{", b"[")) - (mark in (b"}", b"]"))
            else:
                where = _end(_SCALAR, self._held, where)
                mark = self._held[where : where + 1]
            self._go(where)
            done = mark and not in_string and depth == 0
            if done:
                break
            if mark and mark != b"\\":
                continue
            if self.at - first > LINE_LIMIT:
                keep = -1
            dropped = self._from if keep < 0 else keep
            read = self._more(dropped)
            keep = keep if keep < 0 else 0
            if not read:
                self.finished = False
                break
        return None if keep < 0 or self.at - first > LINE_LIMIT else self._held[keep : self._from]

    def _go(self, where: int) -> None:
        self.at += where - self._from
        self._from = where

    def _more(self, dropped: int | None = None) -> bool:
        """Read on, and let go of what lies before `dropped` (default: before here)."""
        piece = self._file.read(_PIECE)
        dropped = self._from if dropped is None else dropped
        self._held = self._held[dropped:] + piece
        self._from -= dropped
        return bool(piece)


def _end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)
    return found.end() if found else at
