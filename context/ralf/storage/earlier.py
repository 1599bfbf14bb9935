"""What an earlier version archived: parts of journals, and blobs, some in zip files. Read once, and rewritten."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ralf.errors import MEND_JOURNAL, DamagedJournal
from ralf.storage import durable, files, locks
from ralf.storage.journal_file import MOST, Journal, unpacked
from ralf.text.patterns import regex

PART = regex(r"\d{6}-[0-9a-f]{12}\.jsonl\.gz")
"""The name of a part of a journal."""

_MOST = 1 << 30  # bytes of blobs that are unzipped


def parts_of(journal: Path) -> Path:
    """The folder of a journal's parts."""
    top = next(folder for folder in journal.parents if folder.name == "journal")
    return top.parent / "archive" / journal.with_suffix("").relative_to(top.parent)


def joined(journal: Journal) -> None:
    """Have a journal that is open read the lines of its parts, too. DamagedJournal where one is missing, or is not what
    was archived.
    """
    header, made = journal.header, []
    for name, size in header.parts:
        path = parts_of(journal.path) / name
        try:
            content = unpacked(files.content_of(path)) if PART.fullmatch(name) and 0 < size <= MOST else b""
        except OSError as error:
            raise DamagedJournal(path, str(error.strerror), MEND_JOURNAL) from None
        if len(content) != size:
            raise DamagedJournal(path, "is not what was archived", MEND_JOURNAL)
        made.append(content)
    lines = b"".join([*made, *journal.content(header.length)])
    journal.become(header.offset - sum(map(len, made)), lines)


def parts(journal: Path) -> list[Path]:
    """The files of a journal's parts."""
    found = parts_of(journal).glob("*")
    return [path for path in found if PART.fullmatch(path.name) or durable.is_temporary(path.name)]


def sweep(journal: Path) -> None:
    """Remove the parts of a journal that is whole without them."""
    if parts_of(journal).exists():
        durable.removed(parts(journal))
        remove_folders(journal)


def remove_folders(journal: Path) -> None:
    """Remove the folders of a journal's parts where nothing is in them any more."""
    folder = parts_of(journal)
    with suppress(OSError):  # there are none, or something that is not ours
        os.removedirs(folder)  # those above it, too, as far as they are empty


def blob(folder: Path, digest: str) -> bytes | None:
    """A blob of a store's archive, None where there is none that is whole."""
    old = folder / "archive" / "blobs"
    with suppress(OSError):
        content = unpacked(files.content_of(old / digest[:2] / digest))
        if hashlib.sha256(content).hexdigest() == digest:
            return content
    return next((content for found, content in _zipped([*old.glob("*.zip")]) if found == digest), None)


def bring_blobs(folder: Path, blobs: Path) -> None:
    """Have the blobs of a store's archive lie where all others do. OSError, Busy."""
    old = folder / "archive" / "blobs"
    with locks.locked(folder / "locks" / "archive.lock", "archive"):
        for path in old.glob("??/*"):
            if path.is_file() and not path.is_symlink() and not durable.is_temporary(path.name):
                files.make(blobs / path.parent.name)
                path.replace(blobs / path.parent.name / path.name)
        zips = [*old.glob("*.zip")]
        for digest, content in _zipped(zips):
            path = blobs / digest[:2] / digest
            if not path.exists():
                files.make(path.parent)
                durable.replace_durably(path, [zlib.compress(content, 6)])
                os.utime(path, (zips[0].stat().st_mtime,) * 2)
        with suppress(FileNotFoundError):
            (folder / "archive" / "gone").replace(blobs / "gone")
        durable.sync_below(blobs)
        durable.removed([*zips, *old.glob(".ralf-*")])
        for emptied in (*old.glob("??"), old, old.parent):
            with suppress(OSError):
                emptied.rmdir()


def _zipped(zips: list[Path]) -> Iterator[tuple[str, bytes]]:
    """The blobs in zip files, whole ones only."""
    import zipfile  # only for a store of an earlier version

    left = _MOST
    for path in zips:
        with suppress(OSError, zipfile.BadZipFile, zlib.error), zipfile.ZipFile(path) as kept:
            for info in kept.infolist():
                left -= info.file_size
                if left > 0:
                    content = kept.read(info)
                    if hashlib.sha256(content).hexdigest() == info.filename:
                        yield info.filename, content
