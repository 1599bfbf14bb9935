"""Putting a new file in the place of an old one for good: written beside it, made durable, read back, then renamed;
and removing files for good.

Unlike `atomic.write` it takes a stream of any length, and looks at what the disk holds before anything is replaced.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ralf.errors import Damaged

_BUFFER = 1 << 20
_TEMPORARY = re.compile(r"\.ralf-.+-[0-9a-f]{12}\.tmp")  # as `atomic` names them, too
_MARK = r"(?:[0-9a-f]+-){0,2}[0-9a-f]{12}\.(?:tmp|old|seen)"
_HIDDEN = re.compile(rf"\.ralf-.+-{_MARK}")


def placed(path: Path, chunks: Iterable[bytes], *, beside: Path | None = None) -> None:
    """Make `chunks` the content of `path`, whose folder is there. OSError, Damaged: then `path` is as it was.

    beside  the folder of the temporary file, on the same file system; None: that of `path`
    """
    from ralf.files import atomic  # only writers pay for what it imports

    name = f"{atomic.TEMPORARY_PREFIX}{path.name}-{os.urandom(6).hex()}{atomic.TEMPORARY_SUFFIX}"
    temporary = (beside or path.parent) / name
    with atomic.naming(path):
        try:
            _write(temporary, chunks)
            temporary.rename(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        atomic.sync_folder(path.parent)


def removed(paths: Iterable[Path]) -> None:
    """Remove files for good: after a power loss none of them is back. Those that are gone already are passed over."""
    from ralf.files import atomic

    folders = set()
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
            folders.add(path.parent)
    for folder in sorted(folders):
        with suppress(FileNotFoundError):
            atomic.sync_folder(folder)


def sync_below(folder: Path) -> None:
    """Make the names in a folder and in all those below it durable, and the removals of whoever died before that."""
    from ralf.files import atomic

    for top, _, _ in os.walk(folder):
        with suppress(FileNotFoundError):
            atomic.sync_folder(top)


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that has not yet got its own, or never will."""
    return _TEMPORARY.fullmatch(name) is not None


def is_hidden(name: str) -> bool:
    """Whether a file is one that was to take a place, or was displaced from it: what its next writer sweeps."""
    return _HIDDEN.fullmatch(name) is not None


def hidden_beside(path: Path) -> list[Path]:
    """The files that were to become `path`, or were displaced from it."""
    with suppress(FileNotFoundError, NotADirectoryError):
        ours = re.compile(rf"\.ralf-{re.escape(path.name)}-{_MARK}")  # not those of a name that begins alike
        return sorted(one for one in path.parent.iterdir() if ours.fullmatch(one.name))
    return []


def sync_parents(folder: Path, top: Path) -> None:
    """Make a new file's name durable, and those of the folders that were made for it."""
    from ralf.files import atomic

    while True:
        atomic.sync_folder(folder)
        if folder == top or top not in folder.parents:
            return
        folder = folder.parent


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a new file, durable, and read it back."""
    written = hashlib.sha256()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb", buffering=_BUFFER) as file:
        for chunk in chunks:
            file.write(chunk)
            written.update(chunk)
        file.flush()
        os.fsync(file.fileno())
    with path.open("rb", buffering=0) as file:
        if hashlib.file_digest(file, "sha256").digest() != written.digest():
            raise Damaged(path, "what was written is not what is read back", "look after the disk")
