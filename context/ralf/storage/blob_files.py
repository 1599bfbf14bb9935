"""The blobs of the embedded store: one compressed file each, below the folder `blobs`."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from ralf.errors import BlobNotFound, Busy, DamagedBlob, UsageError
from ralf.storage import durable, earlier, files, locks
from ralf.storage.journal import Blob, Digest, check_digest, is_digest
from ralf.storage.journal_file import MOST, unpack
from ralf.text import digests


class Blobs:
    """The blobs in a store's folder. Contract: `ralf.storage.journal.Store`.

    check  as for `ralf.storage.filestore.FileStore`
    """

    def __init__(self, folder: Path, *, check: Callable[[Path], None] = lambda _: None) -> None:
        self.folder = folder
        self._check = check

    @cached_property
    def _top(self) -> Path:
        return self.folder / "blobs"

    @cached_property
    def _lock(self) -> Path:
        return self.folder / "locks" / "blobs.lock"

    def path_of(self, digest: Digest) -> Path:
        """The path of a blob; UsageError for anything but a digest."""
        check_digest(digest)
        return self._top / digest[:2] / digest

    def paths(self) -> Iterator[Path]:
        """The files of all blobs."""
        for path in self._top.glob("??/*"):
            if is_digest(path.name) and not path.parent.is_symlink():
                yield path

    def put_blob(self, chunks: Iterable[bytes]) -> Digest:
        """See `ralf.storage.journal.Store.put_blob`."""
        files.check(self.folder)
        self._bring_earlier()
        content = b"".join(chunks)
        digest = digests.sha256(content).hexdigest()
        self._put(self.path_of(digest), content)
        return digest

    def _put(self, path: Path, content: bytes) -> None:
        if len(content) > MOST:
            raise UsageError(path, f"a blob has at most {MOST:,} bytes")
        if path.parent.is_symlink():
            raise UsageError(path.parent, "is a symbolic link: not followed", "remove the link")
        self._check(path)
        files.make(path.parent)
        with locks.locked(self._lock, "blobs"):
            durable.removed(durable.temporaries_in(path.parent))  # who holds the lock is the only writer
            durable.replace_durably(path, [zlib.compress(content, 6)])
        durable.sync_parents(self._top, self.folder)

    def open_blob(self, digest: Digest) -> BinaryIO:
        """See `ralf.storage.journal.Store.open_blob`."""
        path, packed = self.path_of(digest), b""  # of a link that someone laid, and of no file at all
        try:
            packed = files.content_of(path)
        except FileNotFoundError:
            if (content := earlier.blob(self.folder, digest)) is not None:
                return io.BytesIO(content)
            raise BlobNotFound(digest, "no such blob") from None
        except OSError as error:
            if error.errno not in files.NOT_REGULAR:
                raise
        found, is_whole = unpack(packed)
        if not is_whole or digests.sha256(found).hexdigest() != digest:
            raise DamagedBlob(path, "its bytes are not those that were put", "ralf doctor --repair")
        return io.BytesIO(found)

    def has_blob(self, digest: Digest) -> bool:
        """See `ralf.storage.journal.Store.has_blob`."""
        return self.path_of(digest).exists() or earlier.blob(self.folder, digest) is not None

    def blobs(self) -> Iterator[Blob]:
        """See `ralf.storage.journal.Store.blobs`."""
        with suppress(OSError, Busy):  # who cannot write
            self._bring_earlier()
        for path in self.paths():
            with suppress(FileNotFoundError):  # dropped meanwhile
                status = path.lstat()
                yield Blob(path.name, status.st_size, status.st_mtime)

    def drop_blob(self, digest: Digest) -> None:
        """See `ralf.storage.journal.Store.drop_blob`."""
        self._bring_earlier()
        path = self.path_of(digest)
        if path.exists() and not path.parent.is_symlink():
            self.note_gone([digest])
            durable.removed([path])

    def _bring_earlier(self) -> None:
        """Rewrite what an earlier version archived, for a caller that writes."""
        earlier.bring_blobs(self.folder, lambda digest, content: self._put(self.path_of(digest), content))

    def note_gone(self, digests: Iterable[Digest]) -> None:
        """Note that blobs are gone: dropped on purpose, or reported as lost by a repair."""
        lines = "".join(f"{digest}\n" for digest in digests)
        if lines:
            files.make(self._top)
            durable.add(self._top / "gone", lines.encode())

    def gone(self) -> set[Digest]:
        """The blobs that were noted as gone."""
        with suppress(FileNotFoundError):
            return set(files.content_of(self._top / "gone").decode("ascii", "replace").split())
        return set()

    def sweep_blobs(self) -> int:
        """Remove the temporary files of dead writers, and return how many there were."""
        if not self._top.is_dir():
            return 0
        with locks.locked(self._lock, "blobs"):
            folders = (self._top, *(path for path in self._top.glob("??") if not path.is_symlink()))
            left = [path for folder in folders for path in durable.temporaries_in(folder)]
            durable.removed(left)
        return len(left)
