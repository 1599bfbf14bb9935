"""The embedded store: journals as JSON lines, blobs as compressed files, in one folder.

A journal's line is `{"id":…,"length":…,"sha256":…,"record":…}`, written by one write() and made durable by one fsync.
A token is "OFFSET-SHA256": where the line begins, and the checksum in it.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ralf import _locks, names
from ralf.errors import MEND_JOURNAL, BlobNotFound, Conflict, DamagedBlob, DamagedJournal, UnknownToken, UsageError
from ralf.idindex import IdIndex
from ralf.store import Blob, Digest, Entry, Token

_FRAME = re.compile(rb'\{"id":("(?:[^"\\]|\\.)*"),"length":(\d+),"sha256":"([0-9a-f]{32})","record":')
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FRAME_BYTES = 4096  # more than a frame before its record ever takes
_MAX_ID = 200
_CAREFUL = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # the last: a pipe would wait for its other end
_BACKWARD = 64 * 1024  # how much of a journal's end is read at a time when its last line is looked for


class FileStore:
    """Keeps streams and blobs below `folder`, which need not exist yet. Contract: `ralf.store.Store`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    # ---- streams ----

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None) -> Token:  # noqa: A002
        """Append one record; see `ralf.store.Store.append`."""
        from ralf import _atomic  # here and below: only writers pay for what it imports

        if b"\n" in record or len(id) > _MAX_ID:
            raise UsageError(stream, f"a record is one line, and its id has at most {_MAX_ID} characters")
        path = self._journal(stream)
        line = _framed(id, record)
        with _locks.held(self._folder / "locks" / f"{stream}.journal.lock", stream):
            new = not path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = _journal_opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                end = _cut_torn_tail(descriptor)
                head = _last_token(path, descriptor, end)
                index = IdIndex(self._folder / "cache" / "ids" / f"{stream}.idx")
                known = index.find(
                    id, end, lambda offset: _id_at(descriptor, offset), lambda start: _ids(descriptor, start)
                )
                if known is not None:
                    os.fsync(descriptor)  # who appended it may have died before that
                    return _line_at(path, descriptor, known).token
                if head != after:
                    raise Conflict(stream, head)
                with _atomic.naming(path):
                    _write_all(descriptor, line, end)
                    _sync(descriptor, end)
                index.add(id, end, end + len(line))
            finally:
                os.close(descriptor)
            if new:
                _sync_parents(path.parent, self._folder)
        return _token(end, line)

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        """The records after a place; see `ralf.store.Store.read`."""
        path = self._journal(stream)
        try:
            file = os.fdopen(_journal_opened(path, os.O_RDONLY), "rb")
        except FileNotFoundError:
            if after is not None:
                raise UnknownToken(stream, "no such place in this stream") from None
            return
        with file:
            if after is not None:
                _line_of(file, stream, after)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # never acknowledged
                yield _parsed(path, file.tell() - len(line), line)

    def entry(self, stream: str, token: Token) -> Entry:
        """The record at a place; see `ralf.store.Store.entry`."""
        path = self._journal(stream)
        try:
            with os.fdopen(_journal_opened(path, os.O_RDONLY), "rb") as file:
                line = _line_of(file, stream, token)
        except FileNotFoundError:
            raise UnknownToken(stream, "no such place in this stream") from None
        return _parsed(path, _offset(token), line)

    def head(self, stream: str) -> Token | None:
        """The place of the newest record; see `ralf.store.Store.head`."""
        path = self._journal(stream)
        try:
            descriptor = _journal_opened(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            return _last_token(path, descriptor, _end_of_lines(descriptor))
        finally:
            os.close(descriptor)

    def streams(self, prefix: str) -> Iterator[str]:
        """The names of the streams that begin with `prefix`."""
        top = self._folder / "journal"
        for folder, _, files in os.walk(top):
            for name in files:
                if name.endswith(".jsonl"):
                    stream = Path(folder, name).relative_to(top).as_posix().removesuffix(".jsonl")
                    if stream.startswith(prefix) and all(map(names.is_valid, stream.split("/"))):
                        yield stream

    def _journal(self, stream: str) -> Path:
        parts = stream.split("/")
        if not all(names.is_valid(part) for part in parts):
            raise UsageError(ascii(stream), "refused as a stream name")
        return self._folder.joinpath("journal", *parts[:-1], f"{parts[-1]}.jsonl")

    # ---- blobs ----

    def put_blob(self, chunks: Iterable[bytes]) -> Digest:
        """Keep the chunks' joined bytes; see `ralf.store.Store.put_blob`."""
        from ralf import _atomic

        content = b"".join(chunks)
        digest = hashlib.sha256(content).hexdigest()
        path = self._blob(digest)
        if self._is_whole(digest):
            os.utime(path)  # somebody needs it now: whoever prunes must not take it for an old one
        else:
            if path.parent.is_symlink():
                raise UsageError(path.parent, "is a symbolic link: not written through", "remove the link")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # it is damaged
            _atomic.write(path, zlib.compress(content, 6))
            _sync_parents(path.parent.parent, self._folder)
        return digest

    def open_blob(self, digest: Digest) -> BinaryIO:
        """A blob's bytes; see `ralf.store.Store.open_blob`."""
        path = self._blob(digest)
        try:
            with _opened(path) as file:
                regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                content = zlib.decompress(file.read()) if regular else b""
        except FileNotFoundError:
            raise BlobNotFound(digest, "no such blob") from None
        except (zlib.error, IsADirectoryError):
            content = b""
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            content = b""  # a link that somebody laid
        if hashlib.sha256(content).hexdigest() != digest:
            raise DamagedBlob(path, "its bytes are not those that were put", f"move it away: {path}")
        return io.BytesIO(content)

    def has_blob(self, digest: Digest) -> bool:
        """Whether a blob of this digest is kept."""
        return self._blob(digest).exists()

    def _is_whole(self, digest: Digest) -> bool:
        try:
            self.open_blob(digest).close()
        except (BlobNotFound, DamagedBlob):
            return False
        return True

    def blobs(self) -> Iterator[Blob]:
        """Every blob that is kept."""
        for path in self._folder.glob("blobs/??/*"):
            if _DIGEST.fullmatch(path.name) and not path.parent.is_symlink():
                with suppress(FileNotFoundError):  # dropped meanwhile
                    status = path.lstat()
                    yield Blob(path.name, status.st_size, status.st_mtime)

    def drop_blob(self, digest: Digest) -> None:
        """Forget a blob."""
        with suppress(FileNotFoundError):
            self._blob(digest).unlink()

    def _blob(self, digest: Digest) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise UsageError(ascii(digest), "not a digest")
        return self._folder / "blobs" / digest[:2] / digest


# ---- lines of a journal ----


class _Line(NamedTuple):
    token: Token
    end: int


def _framed(id: str, record: bytes) -> bytes:  # noqa: A002
    quoted = json.dumps(id).encode()
    return b'{"id":%s,"length":%d,"sha256":"%s","record":%s}\n' % (quoted, len(record), _sum(record), record)


def _sum(record: bytes) -> bytes:
    return hashlib.sha256(record).hexdigest()[:32].encode()


def _token(offset: int, line: bytes) -> Token:
    match = _FRAME.match(line)
    checksum = match[3].decode() if match else _sum(line[:_FRAME_BYTES]).decode()  # a damaged line has a place, too
    return f"{offset}-{checksum}"


def _offset(token: Token) -> int:
    number, _, _ = token.partition("-")
    if not number.isdecimal():
        raise UnknownToken(ascii(token), "no such place in this stream")
    return int(number)


def _journal_opened(path: Path, flags: int) -> int:
    """A journal's descriptor; DamagedJournal where something else than a file lies in its place."""
    try:
        descriptor = os.open(path, flags | _CAREFUL, 0o600)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.ENXIO):
            raise DamagedJournal(path, "is no regular file", f"move it away: {path}") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedJournal(path, "is no regular file", f"move it away: {path}")
    return descriptor


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDONLY | _CAREFUL), "rb")


def _line_of(file: BinaryIO, stream: str, token: Token) -> bytes:
    """The line at a place, with the file left behind it."""
    offset = _offset(token)
    file.seek(offset)
    line = file.readline()
    if not line.endswith(b"\n") or _token(offset, line) != token:
        raise UnknownToken(stream, "no such place in this stream")
    return line


def _parsed(path: Path, start: int, line: bytes) -> Entry:
    match = _FRAME.match(line)
    record = line[match.end() : -2] if match else b""
    id_ = _id_in(match)
    if match is None or id_ is None or len(record) != int(match[2]) or _sum(record) != match[3]:
        raise DamagedJournal(path, f"the record at byte {start} is not what was written", MEND_JOURNAL)
    return Entry(_token(start, line), id_, record)


def _id_in(match: re.Match[bytes] | None) -> str | None:
    """The id in a line's frame, None where the line is damaged."""
    try:
        return str(json.loads(match[1])) if match is not None else None
    except ValueError:
        return None


def _end_of_lines(descriptor: int) -> int:
    """Where the last complete line ends."""
    size = os.fstat(descriptor).st_size
    end = size
    while end:
        start = max(0, end - _BACKWARD)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _cut_torn_tail(descriptor: int) -> int:
    """Remove a last line without its newline (it was never acknowledged); returns where the journal ends now."""
    end = _end_of_lines(descriptor)
    if end != os.fstat(descriptor).st_size:
        os.ftruncate(descriptor, end)
    return end


def _start_of_line(descriptor: int, end: int) -> int:
    """Where the line begins that ends at `end`."""
    place = end - 1
    while place:
        start = max(0, place - _BACKWARD)
        found = os.pread(descriptor, place - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        place = start
    return 0


def _last_token(path: Path, descriptor: int, end: int) -> Token | None:
    return _line_at(path, descriptor, _start_of_line(descriptor, end)).token if end else None


def _line_at(path: Path, descriptor: int, start: int) -> _Line:
    frame = os.pread(descriptor, _FRAME_BYTES, start)
    match = _FRAME.match(frame)
    if match is None:
        return _Line(_token(start, frame), start + len(frame))
    return _Line(_token(start, frame), start + match.end() + int(match[2]) + 2)


def _id_at(descriptor: int, offset: int) -> str | None:
    return _id_in(_FRAME.match(os.pread(descriptor, _FRAME_BYTES, offset)))


def _ids(descriptor: int, start: int) -> Iterator[tuple[str, int, int]]:
    """Id, start and end of every line from `start` on."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(start)
        for line in file:
            end = start + len(line)
            yield _id_in(_FRAME.match(line)) or "", start, end
            start = end


def _write_all(descriptor: int, line: bytes, end: int) -> None:
    """One write; a short one (a full disk) is undone and raised, so that no part of a record stays."""
    try:
        written = os.write(descriptor, line)
        while written < len(line):
            written += os.write(descriptor, line[written:])
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, end)
        raise


def _sync(descriptor: int, end: int) -> None:
    """The acknowledgement. When it fails nothing was promised, and it is not tried again: the line goes."""
    try:
        os.fsync(descriptor)
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, end)
        raise


def _sync_parents(folder: Path, top: Path) -> None:
    """Make a new file's name durable, and those of the folders that were made for it."""
    from ralf import _atomic

    while True:
        _atomic.sync_folder(folder)
        if folder == top or top not in folder.parents:
            return
        folder = folder.parent
