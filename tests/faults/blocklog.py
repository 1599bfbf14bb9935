"""A disk that remembers: a file served by FUSE that logs every block written to it and every flush, in order.

A loop device over the file, and a file system on that, are the real kernel's; what the kernel had handed to the disk at
any moment, and what of it the disk had promised to keep, can be laid out again as an image. Linux and root only.
Protocol: `linux/fuse.h`, the few requests that one regular file as the root of a mount is asked.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
import select
import signal
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

BLOCK = 4096

_HEADER = struct.Struct("<IIQQIIIHH")
_WRITE = struct.Struct("<QQIIQII")
_GETATTR, _SETATTR, _OPEN, _READ, _WRITE_OP, _RELEASE, _FSYNC, _FLUSH, _INIT, _DESTROY = (
    *(3, 4, 14, 15, 16, 18, 20, 25, 26, 38),
)
_NO_ANSWER = (2, 36, 42)  # FORGET, INTERRUPT, BATCH_FORGET
_BIG_WRITES = 1 << 5
_MAX_WRITE = 128 * 1024
_NOSUID_NODEV = 2 | 4
_CLONE_NEWNS, _REC_PRIVATE = 0x00020000, 0x4000 | (1 << 18)
_DETACH = 2
_PR_SET_PDEATHSIG = 1

# What else may stand in a line of the marks' pipe
_END, _CUT = "\0end", "\0cut "


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes that the kernel gave to the disk."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Flush:
    """From here on everything written before is safe."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What whoever used the file system said at this moment: that something is acknowledged."""

    text: str


Entry = Write | Flush | Mark


def why_not() -> str:
    """Why a disk cannot be logged here, "" where it can."""
    if os.geteuid() != 0:
        return "needs root"
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not os.access(device, os.R_OK | os.W_OK):
            return f"needs {device}"
    return ""


def own_mounts() -> None:
    """Give this process a mount namespace of its own: whatever it mounts goes with it, and nobody else sees it."""
    libc = _libc()
    if libc.unshare(_CLONE_NEWNS) or libc.mount(b"none", b"/", None, _REC_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "no mount namespace")


class Disk:
    """A logged disk while it is served."""

    def __init__(self, path: Path, marks: int, answers: int) -> None:
        self.path = path
        self._marks = marks
        self._answers = answers

    def mark(self, text: str) -> None:
        """Put a word into the log, behind all that the disk was told so far."""
        self._tell(text)

    def cut(self, path: Path, seed: int) -> None:
        """Write what the disk may hold if the power goes now into a file; the disk itself goes on."""
        self._tell(f"{_CUT}{seed} {path}")

    def _tell(self, line: str) -> None:
        os.write(self._marks, line.encode() + b"\n")
        os.read(self._answers, 1)


def remains(base: bytes, log: Sequence[Entry], share: float, draw: random.Random) -> tuple[bytearray, str]:
    """What a disk that held `base` may hold if the power goes at the end of a log: all that was safe, and any blocks of
    what was not yet, about such a share of them; and that in words.
    """
    safe = max((n for n, entry in enumerate(log) if isinstance(entry, Flush)), default=0)
    image, taken = bytearray(base), 0
    for entry in log[:safe]:
        if isinstance(entry, Write):
            image[entry.offset : entry.offset + len(entry.data)] = entry.data
    for entry in log[safe:]:
        if isinstance(entry, Write):
            for at in range(0, len(entry.data), BLOCK):  # a disk keeps blocks whole, and takes them in any order
                if draw.random() < share:
                    image[entry.offset + at : entry.offset + at + BLOCK] = entry.data[at : at + BLOCK]
                    taken += 1
    return image, f"flush {safe}, then {taken} blocks up to {len(log)}"


@contextmanager
def logged(image: bytes, path: Path, log: list[Entry]) -> Iterator[Disk]:
    """A disk that holds `image`, as the file `path` (made here); `log` is filled when the block ends.

    The disk has a process of its own: the kernel waits for it while it holds locks that ours may need.
    """
    path.touch()
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode={stat.S_IFREG | 0o600:o},user_id=0,group_id=0"
    if _libc().mount(b"blocklog", os.fsencode(path), b"fuse", _NOSUID_NODEV, options.encode()):
        raise OSError(ctypes.get_errno(), "cannot mount", str(path))
    marks_out, marks = os.pipe()
    answers, answers_in = os.pipe()
    kept, kept_in = os.pipe()
    server = os.fork()
    if not server:
        status = 1
        with suppress(BaseException):
            _end_with_parent(device)
            for descriptor in (marks, answers, kept):
                os.close(descriptor)
            _send(kept_in, _serve(device, bytearray(image), marks_out, answers_in))
            status = 0
        os._exit(status)
    for descriptor in (marks_out, answers_in, kept_in, device):
        os.close(descriptor)
    try:
        yield Disk(path, marks, answers)
    finally:
        os.write(marks, f"{_END}\n".encode())  # it sends its log, and the mount with it is dead
        os.close(marks)
        log.extend(_received(kept))
        _libc().umount2(os.fsencode(path), _DETACH)
        os.close(answers)
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)


# ---- the server ----


def _end_with_parent(device: int) -> None:
    """End when the process dies that we serve. The device is closed first: who ends last unmounts what lies on the
    disk, and would wait for an answer of its own.
    """

    def end(*_: object) -> None:
        os.close(device)
        os._exit(1)

    signal.signal(signal.SIGTERM, end)
    _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _serve(device: int, content: bytearray, marks: int, answers: int) -> list[Entry]:
    """Answer the kernel until whoever marks has closed his end."""
    log: list[Entry] = []
    base = bytes(content)
    while True:
        ready, _, _ = select.select([device, marks], [], [])
        if device in ready:
            try:
                request = os.read(device, _MAX_WRITE + BLOCK)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                    continue
                return log  # unmounted
            _answer(device, request, content, log)
        elif marks in ready:
            for line in os.read(marks, 1 << 16).decode().splitlines() or [_END]:
                if line == _END:
                    return log
                if line.startswith(_CUT):
                    _cut(base, log, line.removeprefix(_CUT))
                else:
                    log.append(Mark(line))
                os.write(answers, b".")


def _cut(base: bytes, log: Sequence[Entry], what: str) -> None:
    """Write what is left of a disk: all that was not safe is gone, or none of it, or some."""
    seed, _, path = what.partition(" ")
    draw = random.Random(int(seed))
    image, _ = remains(base, log, draw.choice((0.0, 1.0, draw.random())), draw)
    Path(path).write_bytes(image)


def _answer(device: int, request: bytes, content: bytearray, log: list[Entry]) -> None:
    _, operation, unique, _, _, _, _, _, _ = _HEADER.unpack_from(request)
    body = memoryview(request)[_HEADER.size :]
    code, answer = 0, b""
    if operation == _INIT:
        answer = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, _BIG_WRITES, 12, 9, _MAX_WRITE, 1, 32, 0, 0)
    elif operation in (_GETATTR, _SETATTR):
        answer = struct.pack("<QII", 3600, 0, 0) + _attributes(len(content))
    elif operation == _OPEN:
        answer = struct.pack("<QII", 1, 1, 0)  # direct: no second page cache
    elif operation == _READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        answer = bytes(content[offset : offset + size])
    elif operation == _WRITE_OP:
        _, offset, size, *_ = _WRITE.unpack_from(body)
        data = bytes(body[_WRITE.size : _WRITE.size + size])
        content[offset : offset + size] = data
        log.append(Write(offset, data))
        answer = struct.pack("<II", size, 0)
    elif operation == _FSYNC:
        log.append(Flush())
    elif operation in _NO_ANSWER:
        return
    elif operation not in (_FLUSH, _RELEASE, _DESTROY):
        code = -errno.ENOSYS
    with suppress(OSError):  # the kernel gave the request up
        os.write(device, struct.pack("<IiQ", 16 + len(answer), code, unique) + answer)


def _attributes(size: int) -> bytes:
    times = (0,) * 6
    return struct.pack(
        "<QQQQQQIIIIIIIIII",
        1,
        size,
        -(-size // 512),
        *times[:3],
        *times[3:],
        stat.S_IFREG | 0o600,
        1,
        0,
        0,
        0,
        BLOCK,
        0,
    )


# ---- the log on its way ----


def _send(descriptor: int, log: list[Entry]) -> None:
    with os.fdopen(descriptor, "wb") as file:
        for entry in log:
            if isinstance(entry, Write):
                file.write(struct.pack("<cQI", b"w", entry.offset, len(entry.data)) + entry.data)
            elif isinstance(entry, Mark):
                file.write(struct.pack("<cQI", b"m", 0, len(entry.text.encode())) + entry.text.encode())
            else:
                file.write(struct.pack("<cQI", b"f", 0, 0))


def _received(descriptor: int) -> Iterator[Entry]:
    with os.fdopen(descriptor, "rb") as file:
        while head := file.read(13):
            kind, offset, size = struct.unpack("<cQI", head)
            data = file.read(size)
            yield Write(offset, data) if kind == b"w" else Mark(data.decode()) if kind == b"m" else Flush()


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
