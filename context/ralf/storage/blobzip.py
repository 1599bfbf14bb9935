"""Zip files of blobs: members are named by digest and stand as they were compressed, so that moving one costs a copy.

Ordinary zip files, but of the plainest kind, so that little has to be known to read one, and what is whole of a damaged
one can be found again.
"""

from __future__ import annotations

import calendar
import re
import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ralf.errors import DamagedBlob
from ralf.files.placing import placed
from ralf.store import Digest

_DEFLATED = 8
_VERSION = 20
_OF_UNIX = 3 << 8
_PRIVATE = 0o100600 << 16
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # as zip tells time
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_NAME = re.compile(rb"[0-9a-f]{64}")
_HINT = "ralf context verify --repair"


class Info(NamedTuple):
    """What the directory says of a member: its name, when it was put (seconds since 1970, to two of them), its
    checksum, its size, the bytes that it takes up, and where they begin.
    """

    digest: Digest
    put: float
    crc: int
    size: int
    deflated: int
    offset: int


class Member(NamedTuple):
    """A member, with its bytes as deflated."""

    digest: Digest
    put: float
    crc: int
    size: int
    deflated: bytes


def write(path: Path, members: Iterable[Member]) -> None:
    """Make `path` a zip file of these members, durable and read back."""
    placed(path, _chunks(members))


def listed(path: Path) -> list[Info]:
    """What a zip file holds; DamagedBlob where it is none of ours."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _END.size))
        end = file.read()
        if len(end) == _END.size and end.startswith(b"PK\5\6"):
            _, _, _, _, count, length, start, _ = _END.unpack(end)
            if start + length + _END.size == size:
                file.seek(start)
                members = _directory(file.read(length), count)
                if members is not None:
                    return members
    raise DamagedBlob(path, "is no archive of blobs that can be read", _HINT)


def member(path: Path, info: Info) -> Member:
    """A member as it stands, `info.deflated` bytes at most."""
    with path.open("rb") as file:
        file.seek(info.offset)
        return Member(info.digest, info.put, info.crc, info.size, file.read(info.deflated))


def is_as_written(path: Path, members: Iterable[Info]) -> bool:
    """Whether a file that lists these members is, byte for byte, what `write` makes of them."""
    with path.open("rb") as file:
        same = all(file.read(len(chunk)) == chunk for chunk in _chunks(member(path, info) for info in members))
        return same and not file.read(1)


def remains(content: bytes) -> Iterator[Member]:
    """The members that the bytes of a damaged zip file seem to hold, by their own headers."""
    place = -1
    while (place := content.find(b"PK\3\4", place + 1)) >= 0:
        head = content[place : place + _LOCAL.size]
        name = content[place + _LOCAL.size : place + _LOCAL.size + 64]
        if len(head) == _LOCAL.size and _NAME.fullmatch(name):
            _, _, _, _, clock, date, crc, length, size, *_ = _LOCAL.unpack(head)
            start = place + _LOCAL.size + 64
            yield Member(name.decode(), _seconds(date, clock), crc, size, content[start : start + length])


def _directory(content: bytes, count: int) -> list[Info] | None:
    """The members that a directory lists, None where it is none of ours."""
    found, place = [], 0
    while place < len(content):
        head, name = content[place : place + _CENTRAL.size], content[place + _CENTRAL.size : place + _CENTRAL.size + 64]
        if len(head) < _CENTRAL.size or not head.startswith(b"PK\1\2") or not _NAME.fullmatch(name):
            return None
        _, _, _, _, kind, clock, date, crc, deflated, size, *_, offset = _CENTRAL.unpack(head)
        if kind != _DEFLATED:
            return None
        found.append(Info(name.decode(), _seconds(date, clock), crc, size, deflated, offset + _LOCAL.size + 64))
        place += _CENTRAL.size + 64
    return found if len(found) == count else None


def _chunks(members: Iterable[Member]) -> Iterator[bytes]:
    central, offset = [], 0
    for one in members:
        name = one.digest.encode()
        date, clock = _dos_time(one.put)
        common = (_VERSION, 0, _DEFLATED, clock, date, one.crc, len(one.deflated), one.size, len(name), 0)
        yield _LOCAL.pack(b"PK\3\4", *common) + name
        yield one.deflated
        central.append(_CENTRAL.pack(b"PK\1\2", _OF_UNIX | _VERSION, *common, 0, 0, 0, _PRIVATE, offset) + name)
        offset += _LOCAL.size + len(name) + len(one.deflated)
    directory = b"".join(central)
    yield directory
    yield _END.pack(b"PK\5\6", 0, 0, len(central), len(central), len(directory), offset, 0)


def _dos_time(put: float) -> tuple[int, int]:
    year, month, day, hour, minute, second = max(time.gmtime(put)[:6], _EARLIEST)
    return (year - 1980) << 9 | month << 5 | day, hour << 11 | minute << 5 | second // 2


def _seconds(date: int, clock: int) -> float:
    day = (date >> 9) + 1980, date >> 5 & 15, date & 31
    return float(calendar.timegm((*day, clock >> 11, clock >> 5 & 63, (clock & 31) * 2)))
