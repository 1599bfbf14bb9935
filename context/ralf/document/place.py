"""Where the file of a document lies, and how one is put there without losing what somebody saves meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ralf.storage import durable, files
from ralf.storage.files import content_of
from ralf.text.frozen import dataclass

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC

_NEW, _ASIDE = ".new", ".aside"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document's files lie.

    file   that people edit
    prev   what a write displaced from there, until the next write has looked at it
    lock   that every writer holds
    index  None where there can be none
    left   why the file is not written, "" where it is
    brought  whether git has brought these bytes, by what is known to be this user's: asked about what is not ours
    most   bytes of a file that is read
    mode   of a new file
    """

    file: Path
    prev: Path
    lock: Path
    index: Path | None
    left: Callable[[], str]
    brought: Callable[[bytes, Callable[[bytes], bool]], bool]
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
            yield path, content_of(path, most=place.most)


def put(place: Place, made: bytes) -> None:
    """Put a file in its place; what lay there lies at `prev` then. OSError: nothing was lost.

    Not durable: after a loss of power it may be missing, old or torn, and is made anew.
    """
    half = _beside(place, _NEW)
    with durable.naming(place.file):
        try:
            descriptor = os.open(half, _WRITE, 0o600)
        except FileNotFoundError:
            files.make(place.prev.parent)
            descriptor = os.open(half, _WRITE, 0o600)
        try:
            durable.give_rights(descriptor, place.file, place.mode)
            durable.fill(descriptor, made)
        finally:
            os.close(descriptor)
        with suppress(FileNotFoundError):
            os.unlink(place.prev)  # a rename over a file waits until the disk has a place for the new one
        os.rename(half, place.prev)
        durable.swap(place.prev, place.file, _beside(place, _ASIDE))


def all_displaced(place: Place) -> list[Path]:
    """The files of what writers have displaced, or were about to put."""
    return [place.prev, _beside(place, _ASIDE), _beside(place, _NEW)]


def _beside(place: Place, ending: str) -> Path:
    return place.prev.with_name(f".{place.prev.name}{ending}")
