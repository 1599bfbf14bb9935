"""Zip files of blobs: members are named by digest and stand as they were compressed, so that moving one costs a copy.

Read with the standard library; written here, because that cannot take in what is deflated already.
"""

from __future__ import annotations

import struct
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ralf.errors import DamagedBlob
from ralf.placing import placed
from ralf.store import Digest

_DEFLATED = 8
_VERSION = 20
_OF_UNIX = 3 << 8
_PRIVATE = 0o100600 << 16
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # as zip tells time
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_NOT_A_ZIP = (zipfile.BadZipFile, EOFError, struct.error, ValueError, NotImplementedError, RuntimeError, zlib.error)


class Member(NamedTuple):
    """A member: its name, when it was put (seconds since 1970), its checksum and size, and its bytes as deflated."""

    digest: Digest
    put: float
    crc: int
    size: int
    deflated: bytes


def write(path: Path, members: Iterable[Member]) -> None:
    """Make `path` a zip file of these members, durable and read back."""
    placed(path, _chunks(members))


def listed(path: Path) -> list[zipfile.ZipInfo]:
    """What a zip file holds; DamagedBlob where it is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.infolist()
    except _NOT_A_ZIP as error:
        raise DamagedBlob(path, f"is no zip file that can be read: {error}", _HINT) from None


def put_of(info: zipfile.ZipInfo) -> float:
    """When a member was put, to two seconds."""
    import calendar

    return float(calendar.timegm(info.date_time))


def member(path: Path, info: zipfile.ZipInfo) -> Member:
    """A member as it stands; DamagedBlob where it is none of ours."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        head = file.read(_LOCAL.size)
        if len(head) < _LOCAL.size or info.compress_type != _DEFLATED:
            raise DamagedBlob(path, f"its member {info.filename} cannot be read", _HINT)
        *_, name, extra = _LOCAL.unpack(head)
        file.seek(name + extra, 1)
        return Member(info.filename, put_of(info), info.CRC, info.file_size, file.read(info.compress_size))


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


_HINT = "ralf context verify --repair"
