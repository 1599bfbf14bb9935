"""Where the file of a document lies, and how one is put there without losing what somebody saves meanwhile."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ralf.storage import durable, files
from ralf.storage.files import content_of
from ralf.text.frozen import dataclass

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC

_NEW, _ASIDE = ".new", ".aside"

_UNKNOWN = (errno.ENOSYS, errno.EINVAL)  # of a way to rename

_MOST_TRIES = 8


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document's files lie.

    file   that people edit
    prev   what a write displaced from there, until the next write has looked at it
    lock   that every writer holds
    index  None where there can be none
    left   why the file is neither written nor read as an edit, "" where it is: asked before either
    head   what git has of the file in HEAD, None for nothing: asked about what is not ours
    most   bytes of a file that is read
    mode   of a new file
    """

    file: Path
    prev: Path
    lock: Path
    index: Path | None
    left: Callable[[], str]
    head: Callable[[], bytes | None]
    most: int
    mode: int = 0o600


def content(path: Path, most: int) -> bytes:
    """What lies somewhere, b"" for nothing. OSError for what is no regular file of one name."""
    try:
        return content_of(path, most=most)
    except FileNotFoundError:
        return b""


def displaced(place: Place) -> Iterator[tuple[Path, bytes]]:
    """What writers have displaced, and where it lies; the older first."""
    for path in (_beside(place, _ASIDE), place.prev):
        with suppress(OSError):  # nothing that can be read
            if os.path.lexists(path):
                yield path, content(path, place.most)


def put(place: Place, made: bytes) -> None:
    """Put a file in its place; what lay there lies at `prev` then. OSError: nothing was lost.

    Not durable: after a loss of power it may be missing, old or torn, and is made anew.
    """
    new, target = os.fspath(place.prev), os.fspath(place.file)
    half = os.fspath(_beside(place, _NEW))
    with durable.naming(place.file):
        try:
            descriptor = os.open(half, _WRITE, 0o600)
        except FileNotFoundError:
            files.make(place.prev.parent)
            descriptor = os.open(half, _WRITE, 0o600)
        try:
            _give_rights(descriptor, target, place.mode)
            rest = memoryview(made)
            while rest:  # the last bytes before a disk is full are taken, then it says so
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)
        os.rename(half, new)
        _swap(new, target, os.fspath(_beside(place, _ASIDE)))


def all_displaced(place: Place) -> list[Path]:
    """The files of what writers have displaced, or were about to put."""
    return [place.prev, _beside(place, _ASIDE), _beside(place, _NEW)]


def _beside(place: Place, ending: str) -> Path:
    return place.prev.with_name(f".{place.prev.name}{ending}")


def _give_rights(descriptor: int, path: str, mode: int) -> None:
    """Give a new version of a file the mode that a person gave it, but for everybody's right to write, and the owner of
    the old one, as root can.

    mode  where there is no old one
    """
    with suppress(OSError):
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode):
            mode = 0o600 | (found.st_mode & 0o664)
            if os.geteuid() == 0 and (found.st_uid or found.st_gid):
                os.fchown(descriptor, found.st_uid, found.st_gid)
    if mode != 0o600:
        os.fchmod(descriptor, mode)


def _swap(new: str, target: str, aside: str) -> None:
    """Exchange two names; where that cannot be, in steps of which none replaces what has no other name."""
    for _ in range(_MOST_TRIES):
        code = durable.renamed(new, target, durable.EXCHANGE)
        if code == 0:
            return
        if code in _UNKNOWN:
            with suppress(FileNotFoundError):
                os.unlink(aside)
            try:
                os.link(target, aside)
            except FileNotFoundError:
                os.rename(new, target)
                return
            os.rename(new, target)
            os.rename(aside, new)
            return
        if code != errno.ENOENT:
            raise OSError(code, os.strerror(code), target)
        try:  # nothing lies there, unless an editor makes it at this moment
            os.link(new, target)
        except FileExistsError:
            continue
        os.unlink(new)
        return
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), target)
