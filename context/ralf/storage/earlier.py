"""What an earlier version archived: parts of journals, and blobs, some in zip files. Read once, and rewritten."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ralf.errors import MEND_JOURNAL, DamagedJournal
from ralf.storage import durable, files, locks
from ralf.storage.journal_file import MOST, Journal, unpacked
from ralf.text import digests
from ralf.text.patterns import regex

PART = regex(r"\d{6}-[0-9a-f]{12}\.jsonl\.gz")
"""The name of a part of a journal."""


def parts_of(journal: Path) -> Path:
    """The folder of a journal's parts."""
    top = next(folder for folder in journal.parents if folder.name == "journal")
    return top.parent / "archive" / journal.with_suffix("").relative_to(top.parent)


def join(journal: Journal) -> None:
    """Have a journal that is open read the lines of its parts, too. DamagedJournal where one is missing, or is not what
    was archived.
    """
    header, made = journal.header, b""
    for name, size in header.parts:
        path, content = parts_of(journal.path) / name, b""
        with suppress(OSError):
            content = unpacked(files.content_of(path)) if PART.fullmatch(name) and 0 < size <= MOST else b""
        if len(content) != size:
            raise DamagedJournal(path, "is missing, or not what was archived", MEND_JOURNAL)
        made += content
    journal.become(header.offset - len(made), made + journal.content(header.length, journal.size))


def parts(journal: Path) -> list[Path]:
    """The files of a journal's parts."""
    found = parts_of(journal).glob("*")
    return [path for path in found if PART.fullmatch(path.name) or durable.is_temporary(path.name)]


def sweep(journal: Path) -> None:
    """Remove the parts of a journal that is whole without them."""
    durable.removed(parts(journal))
    remove_folders(journal)


def remove_folders(journal: Path) -> None:
    """Remove the folders of a journal's parts where nothing is in them."""
    with suppress(OSError):  # there are none, or something that is not ours
        os.removedirs(parts_of(journal))  # those above it, too, as far as they are empty


def blob(folder: Path, digest: str) -> bytes | None:
    """A blob of a store's archive, None where there is none that is whole."""
    old = folder / "archive" / "blobs"
    found = (one for path in (old / digest[:2] / digest, *old.glob("*.zip")) for one in _blobs_in(path))
    return next((content for name, content in found if name == digest), None)


def bring_blobs(folder: Path, put: Callable[[str, bytes], None]) -> None:
    """Have the blobs of a store's archive lie where all others do. OSError, Busy."""
    old = folder / "archive" / "blobs"
    if not old.is_dir():
        return
    with locks.locked(folder / "locks" / "archive.lock", "archive"):
        paths = [path for path in (*old.glob("??/*"), *old.glob("*")) if path.is_file() and not path.is_symlink()]
        for path in paths:
            for digest, content in _blobs_in(path):
                put(digest, content)
                os.utime(folder / "blobs" / digest[:2] / digest, (path.stat().st_mtime,) * 2)
        with suppress(FileNotFoundError):
            (folder / "archive" / "gone").replace(folder / "blobs" / "gone")
        durable.removed(paths)
        for emptied in (*old.glob("??"), old, old.parent):
            with suppress(OSError):
                emptied.rmdir()


def _blobs_in(path: Path) -> Iterator[tuple[str, bytes]]:
    """The blobs in a file, whole ones only, with their digests."""
    import zipfile  # only for a store of an earlier version

    with suppress(OSError, zipfile.BadZipFile, zlib.error):
        if path.suffix != ".zip":
            found = iter([(path.name, unpacked(files.content_of(path)))])
        else:
            kept = zipfile.ZipFile(path)
            found = ((one.filename, kept.read(one)) for one in kept.infolist() if one.file_size <= MOST)
        yield from (one for one in found if digests.sha256(one[1]).hexdigest() == one[0])
