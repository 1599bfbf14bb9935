"""Putting a new file in the place of an old one for good: written beside it, made durable, read back, then renamed.

Unlike `_atomic.write` it takes a stream of any length, and looks at what the disk holds before anything is replaced.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ralf.errors import Damaged

_BUFFER = 1 << 20


def placed(path: Path, chunks: Iterable[bytes]) -> None:
    """Make `chunks` the content of `path`, whose folder is there. OSError, Damaged: then `path` is as it was."""
    from ralf import _atomic  # only writers pay for what it imports

    name = f"{_atomic.TEMPORARY_PREFIX}{path.name}-{os.urandom(6).hex()}{_atomic.TEMPORARY_SUFFIX}"
    temporary = path.with_name(name)
    with _atomic.naming(path):
        try:
            _write(temporary, chunks)
            temporary.rename(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        _atomic.sync_folder(path.parent)


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
