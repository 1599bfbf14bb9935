"""Which record of a session log follows which, by the ids that the client gives them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ralf.errors import RalfError
from ralf.text.patterns import regex
from ralf.transcripts.events import Position, Record
from ralf.transcripts.lines import Line, open_regular, read_lines

_MOST = 20_000  # records in memory: what follows one before them is looked up in the file

_PASSED = 500  # records passed over of which the bytes are kept

_LONGEST = 16 << 10  # bytes of such a record

_PARENT = regex(rb'\s*\{\s*"parentUuid"\s*:\s*(?:null|"([^"\\]{1,100})")')

_OWN = regex(rb'"uuid"\s*:\s*"([^"\\]{1,100})"')

_TALK = frozenset({"user", "assistant"})

Link = tuple[str, bool, str]
"""What a record follows, whether it is a message or an answer itself, and its time."""


class Chain:
    """The records of one log, each with the one that it follows.

    Those that a pass has read are in memory. Where an id is none of them, the file before that place is searched for
    ids, each part of it once: a pass is linear whatever it asks.
    """

    def __init__(self, path: Path, after: int) -> None:
        self._path = path
        self._links: dict[str, Link] = {}
        self._complete = after == 0
        self._since = ""  # a record of an older time may be before those in memory
        self._passed: deque[bytes] = deque(maxlen=_PASSED)
        self._places: dict[str, int] = {}
        self._lines: Iterator[Line] | None = None
        self._next: Line | None = None  # the first one that was not searched

    def add(self, record: Record) -> None:
        """Take note of a record."""
        own = record.get("uuid")
        if not own or not isinstance(own, str):
            return
        self._links[own] = link = _link(record)
        if not self._since and not self._complete:
            self._since = link[2]
        if len(self._links) > _MOST:
            oldest = next(iter(self._links))
            self._since = max(self._since, self._links.pop(oldest)[2])
            self._complete = False

    def pass_over(self, line: Line) -> None:
        """Take note of a record that says nothing. It is no message or answer."""
        if len(line.data) <= _LONGEST:
            self._passed.append(line.data)

    def has(self, record: Record, before: int) -> bool:
        """Whether a record of this id stands before a place: then it is the same one again."""
        own = record.get("uuid")
        if not own or not isinstance(own, str) or own in self._links:
            return bool(own)
        return not self._complete and _time(record) < self._since and self._find(own, before) is not None

    def knows(self, own: str, before: int) -> bool:
        """Whether there is a record of an id before a place."""
        return self._get(own, before) is not None

    def nearest(self, own: str, before: int) -> str:
        """The id of the message or answer that a record before a place is, or follows; "" where that is not known."""
        passed = dict[str, str]()
        while own and own not in passed:
            link = self._get(own, before)
            if link is None:
                return ""
            if link[1]:
                break
            passed[own], own = link[2], link[0]
        found = "" if own in passed else own
        for one, time in passed.items():  # so that no way is gone twice
            self._links[one] = found, False, time
        return found

    def _get(self, own: str, before: int) -> Link | None:
        if own not in self._links:
            self._read_passed()
        return self._links.get(own) or self._find(own, before)

    def _read_passed(self) -> None:
        """Take from the bytes of records that were passed over what they follow."""
        while self._passed:
            data = self._passed.popleft()
            parent = _PARENT.match(data)
            own = _OWN.match(data, max(data.rfind(b'"uuid"'), 0)) if parent else None
            if parent and own:
                link = (parent[1] or b"").decode("utf-8", "replace"), False, ""
                self._links.setdefault(own[1].decode("utf-8", "replace"), link)

    def _find(self, own: str, before: int) -> Link | None:
        """The link of a record in the file before a place; none is before 0."""
        with suppress(RalfError):
            self._search(before)
            if (start := self._places.get(own)) is not None:
                with open_regular(self._path, Position(start)) as file:
                    line = next(read_lines(file, Position(start)), None)
                record = line.record if line else None
                if record is not None and record.get("uuid") == own:
                    return _link(record)
        return None

    def _search(self, before: int) -> None:
        if self._lines is None:
            self._lines = self._read()
            self._next = next(self._lines, None)
        while (line := self._next) is not None and line.start < before:
            for own in _OWN.finditer(line.data + line.tail if line.tail else line.data):
                self._places.setdefault(own[1].decode("utf-8", "replace"), line.start)
            self._next = next(self._lines, None)

    def _read(self) -> Iterator[Line]:
        """The lines of the file, which stays open meanwhile: to open it for each record takes ten times as long."""
        with open_regular(self._path, Position(0)) as file:
            yield from read_lines(file, Position(0))


def follows(record: Record) -> str:
    """The id of the record that one follows, whatever it is."""
    parent = record.get("parentUuid") or record.get("logicalParentUuid")
    return parent if isinstance(parent, str) else ""


def _time(record: Record) -> str:
    time = record.get("timestamp")
    return time if isinstance(time, str) else ""


def _link(record: Record) -> Link:
    """A failure of the service is no answer, and what comes after it never takes the place of something else."""
    if record.get("isApiErrorMessage") is True:
        return "", False, _time(record)
    talk = record.get("type") in _TALK and record.get("isMeta") is not True and record.get("isSidechain") is not True
    return follows(record), talk, _time(record)
