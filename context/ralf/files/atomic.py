"""The durable write of one file: whole or not at all, and what a person saved in its place meanwhile is not lost.

`write` is for files that only we write; `exchange` for route files, which people edit, at any moment, without a lock.
It makes plain calls: beside a fast disk, the objects of pathlib and contextlib would be a tenth of what it takes.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ralf.files import leases

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ADDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MODE = 0o600
TEMPORARY_PREFIX = ".ralf-"
TEMPORARY_SUFFIX = ".tmp"
ASIDE_SUFFIX = ".old"
SEEN_SUFFIX = ".seen"
_UNKNOWN = (errno.ENOSYS, errno.EINVAL)  # of a way to rename
_MARK = 12  # hexadecimal digits that make a hidden name one of its own
_HASH = 12  # hexadecimal digits of one that a name holds
GRACE = 0.25
"""Seconds that a displaced file is kept after it was looked at: a program that found it just before may open it only
now, and no kernel tells of that one.
"""
_LEFT = re.compile(
    rf"(?P<half>[0-9a-f]{{12}}{re.escape(TEMPORARY_SUFFIX)})|(?P<known>[0-9a-f]{{{_HASH}}})-[0-9a-f]{{12}}"
    rf"{re.escape(ASIDE_SUFFIX)}|(?P<mtime>[0-9a-f]+)-(?P<size>[0-9a-f]+)-[0-9a-f]{{12}}{re.escape(SEEN_SUFFIX)}"
)
"""What follows in the name of a file that a writer left beside its own: half written, displaced, displaced and looked
at.
"""
_BORN = 1.0  # seconds after which whoever has made a file holds its lock
_KEPT = 10.0  # where the kernel cannot tell either whether somebody has it open


class BeingSaved(OSError):
    """Another program has the file open for writing; it was left in its place."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(errno.ETXTBSY, "another program is saving it", os.fspath(path))


class CannotReplace(OSError):
    """The file system knows no way to write the file that could not lose what a person saves; it was left as it is."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EOPNOTSUPP, "this file system can neither exchange nor link files", path)


class Aside(NamedTuple):
    """What lay in the place of a file that was written, under a hidden name beside it until it is dropped.

    The name holds a hash of what is known of it already; where the content differs, a person saved it and nobody has
    taken that in. Once dropped it holds the version that was looked at.

    beside  how the hidden names beside the file begin
    """

    path: str
    beside: str
    content: bytes
    version: leases.Version

    def drop(self) -> None:
        """Say that its content is known. It may still be saved into, so a later write looks again and removes it."""
        mtime, size = self.version
        with suppress(FileNotFoundError):  # somebody cleans the folder
            os.rename(self.path, f"{self.beside}{mtime:x}-{size:x}-{os.urandom(6).hex()}{SEEN_SUFFIX}")

    def remove(self) -> None:
        """Forget it at once, at the price of a save that comes into it in this very moment."""
        _remove(self.path)

    def keep(self, path: Path) -> None:
        """Give it a name that is seen, durably."""
        os.rename(self.path, path)
        sync_folder(path.parent)


def write(path: Path, content: bytes, *, mode: int = _MODE) -> None:
    """Write a file durably: temporary file in the same folder, fsync, rename, fsync of the folder.

    What writers of the same file left who died is removed. OSError as it comes; the old file is then untouched and the
    temporary one gone.
    """
    folder, beside = _place(path)
    with naming(path):
        _make(f"{beside}{os.urandom(6).hex()}{TEMPORARY_SUFFIX}", content, os.fspath(path), mode)
        sync_folder(folder)  # else the name may be the old file's after a power loss
    _remove_dead(folder, os.path.basename(beside))


def _remove_dead(folder: str, begins: str) -> None:
    """Remove temporary files whose writers hold them no more: they died. Not for route files, which have a lock."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            left = entry.name.startswith(begins) and _LEFT.fullmatch(entry.name, len(begins))
            if left and left["half"] and not _is_young(time.time() - entry.stat(follow_symlinks=False).st_ctime, _BORN):
                _remove_unless_held(entry.path)


def _remove_unless_held(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(path)
    except BlockingIOError:  # somebody is at it
        pass
    finally:
        os.close(descriptor)


def add(path: Path, content: bytes) -> None:
    """Add a few bytes to a file, made where there is none, durably. OSError also where no file lies there, or one that
    has another name, too, under which it may be anybody's.
    """
    with naming(path):
        descriptor = os.open(path, _ADDING, 0o600)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise OSError(errno.EINVAL, "is no regular file, or has a second name", os.fspath(path))
            _fill(descriptor, content)
        finally:
            os.close(descriptor)
        sync_folder(path.parent)


def exchange(path: Path, content: bytes, known: str, *, mode: int | None = None) -> Aside | None:
    """Write a file that a person may be saving: as `write`, but what is displaced is handed back, for `drop`.

    content what a person saves whole has its last line, too
    known   the sha256 (hexadecimal) of what is known to lie there; the name of what is set aside remembers it
    mode    None: the one that a person gave the file, but for everybody's right to write; 0600 where there is none

    It stays with its user and group, as far as this user may give it to them.

    None where there was no file, or perhaps half of a save, which a later sweep looks at. BeingSaved where another
    program has the file open for writing, CannotReplace where that may lose a save; OSError as it comes. The file is
    then the old one, or both files are there.
    """
    folder, beside = _place(path)
    target, mark = os.fspath(path), os.urandom(6).hex()
    aside = f"{beside}{known[:_HASH]}-{mark}{ASIDE_SUFFIX}"
    try:
        # Once it is whole it has a name that no sweep removes unseen: soon it may be a person's.
        kept, *owner = _rights_of(target)
        _make(f"{beside}{mark}{TEMPORARY_SUFFIX}", content, aside, kept if mode is None else mode, owner)
        try:
            exchanged = _put(aside, target)
        except OSError:
            _discard(aside)
            raise
        sync_folder(folder)
        return _looked_at(aside, beside, target, content, known) if exchanged else None
    except OSError as error:
        _name(error, target)
        raise


def _rights_of(path: str) -> tuple[int, int, int]:
    """The mode, the user and the group with which a file is written anew; -1: whoever writes it."""
    try:
        found = os.lstat(path)
    except OSError:
        return _MODE, -1, -1
    if not stat.S_ISREG(found.st_mode):
        return _MODE, -1, -1
    return _MODE | (found.st_mode & 0o664), found.st_uid, found.st_gid


def _give(descriptor: int, user: int, group: int) -> None:
    """Give a new file to whom the old one belonged, as far as this user may."""
    found = os.fstat(descriptor)
    for one in (user, -1), (-1, group):
        if one not in ((-1, -1), (found.st_uid, -1), (-1, found.st_gid)):
            with suppress(PermissionError):
                os.fchown(descriptor, *one)


def _looked_at(aside: str, beside: str, target: str, content: bytes, known: str) -> Aside | None:
    """What was displaced; BeingSaved, and all in its old place again, where somebody has it open for writing.

    Such a save would go into a file that nobody sees any more. Looking after the fsync gives whoever had found the
    file, but not opened it yet, the time to do so; for who takes longer, the next writer looks again.
    """
    end = content.rstrip().rpartition(b"\n")[2]
    try:
        found = leases.read(aside, end=end)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        os.unlink(aside)  # a link: what it names stays where it is
        return None
    if found.closed is None and _hash(found.content) != known[:_HASH]:
        leases.settled(Path(aside), GRACE, end=end)  # put back it would undo what is saved into ours by then
        found = leases.read(aside, end=end)
        if found.may_be_half:
            return None
    if found.closed is not False:
        return Aside(aside, beside, found.content, found.version)
    if _put(aside, target):
        ours = leases.read(aside)
        if ours.closed is not False and ours.content == content:  # else somebody saved into that one: a sweep tells
            Aside(aside, beside, content, ours.version).drop()
    raise BeingSaved(target)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an OSError of the block that names no file (a write to a full disk) the name of this one."""
    try:
        yield
    except OSError as error:
        _name(error, os.fspath(path))
        raise


def _name(error: OSError, path: str) -> None:
    if error.filename is None:
        error.filename = path


def sync_folder(folder: str | Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, _FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(path: Path, grace: float = GRACE, end: bytes = b"") -> list[Aside]:
    """Remove what writers of `path` left, and return what a person saved that none of them took in.

    Only for who holds the lock that all writers of `path` take: then no owner of what is found can be alive.

    grace  seconds; 0 removes all that is known, at the price of a save that comes into it in this very moment
    end    what a whole file has at its end
    """
    folder, beside = _place(path)
    begins, names, unseen = os.path.basename(beside), [], []
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(begins)]
    for name in names:
        if left := _LEFT.fullmatch(name, len(begins)):
            with suppress(OSError):  # gone, or nothing that can be read: no reason not to write
                unseen.append(_swept(f"{beside}{left[0]}", left, beside, grace, end))
    return [aside for aside in unseen if aside is not None]


def _swept(name: str, left: re.Match[str], beside: str, grace: float, end: bytes) -> Aside | None:
    """Be done with a file that a writer left, but for what a person saved; what somebody has open is left for later."""
    status, kept = os.lstat(name), _KEPT if grace else 0.0
    if left["half"] or stat.S_ISLNK(status.st_mode):
        _remove(name)
        return None
    looked_at = leases.Version(int(left["mtime"], 16), int(left["size"], 16)) if left["mtime"] else None
    age = time.time() - status.st_ctime
    if looked_at == leases.version_of(status):
        if not _is_young(age, grace):
            found = leases.read(name, 0)
            if found.version == looked_at and (found.closed or (found.closed is None and not _is_young(age, kept))):
                _remove(name)
        return None
    found = leases.read(name, end=end)
    is_known = looked_at is None and _hash(found.content) == left["known"]
    if found.closed is False or (found.may_be_half and not is_known):
        return None
    aside = Aside(name, beside, found.content, found.version)
    if not is_known:
        return aside
    if _is_young(age, grace if found.closed else kept):
        aside.drop()
    else:
        aside.remove()
    return None


def _is_young(age: float, limit: float) -> bool:
    """Whether so many seconds are fewer than a limit; a file server's clock may be a little ahead of ours."""
    return limit > 0 and -_KEPT < age < limit


def _make(temporary: str, content: bytes, name: str, mode: int = _MODE, owner: Sequence[int] = ()) -> None:
    """Make a new file, and give it its name when it is whole and durable; where that fails nothing is left of it."""
    descriptor = os.open(temporary, _NEW, _MODE)
    held = os.dup(descriptor)  # beyond the close, whose error has to be told before the file has its name
    try:
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # so that nobody takes the writer for dead
            if owner:
                _give(descriptor, *owner)
            if mode != _MODE:
                os.fchmod(descriptor, mode)
            _fill(descriptor, content)
        finally:
            os.close(descriptor)
        os.rename(temporary, name)
    except BaseException:
        _discard(temporary)
        raise
    finally:
        os.close(held)


def _fill(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:  # the last bytes before a disk is full are taken, then it says so
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def _discard(name: str) -> None:
    """Remove what an error leaves, which is the one to be told."""
    with suppress(OSError):
        os.unlink(name)


def _remove(name: str) -> None:
    """Remove a file that may be gone."""
    try:  # noqa: SIM105
        os.unlink(name)
    except FileNotFoundError:
        pass


def _put(source: str, target: str) -> bool:
    """Give a file its name; True when it was exchanged with the one that had it.

    Never replaces what nobody has looked at.
    """
    while True:
        code = _renamed(source, target, _RENAME_EXCHANGE)
        if code == 0:
            return True
        if code == errno.ENOENT:  # an editor may make the file at this moment
            code = _renamed(source, target, _RENAME_NOREPLACE)
            if code == 0:
                return False
            if code == errno.EEXIST:
                continue
        if code in _UNKNOWN:
            return _swapped(source, target)
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code), target)


def _swapped(source: str, target: str) -> bool:
    """The same where two names cannot be exchanged, as on macOS and some file systems: in steps, none of which replaces
    anything. For a moment no file is there. What dies in between leaves what a sweep looks at.
    """
    while True:
        aside = f"{source[: -len(ASIDE_SUFFIX) - _MARK]}{os.urandom(_MARK // 2).hex()}{ASIDE_SUFFIX}"
        displaced = _moved(target, aside)
        try:
            os.link(source, target)
        except FileExistsError:  # an editor has made one meanwhile: what is aside is older, and the next sweep's
            continue
        except OSError as error:
            if displaced:
                _put_back(aside, target)
            if error.errno in (errno.EPERM, errno.EOPNOTSUPP, *_UNKNOWN):
                raise CannotReplace(target) from None
            raise
        os.unlink(source)
        if displaced:
            os.rename(aside, source)
        return displaced


def _moved(source: str, target: str) -> bool:
    try:
        os.rename(source, target)
    except FileNotFoundError:
        return False
    return True


def _put_back(aside: str, target: str) -> None:
    """Give a file its name again where names can be neither exchanged nor linked, but for one that has it by now."""
    if not os.path.lexists(target):
        os.rename(aside, target)


def _renamed(source: str, target: str, flags: int) -> int:
    """Rename as the flags say; the error's number, 0 for none."""
    renameat2 = _renameat2()
    if renameat2 is None:
        return errno.ENOSYS
    if renameat2(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags) == 0:
        return 0
    import ctypes

    return ctypes.get_errno()


@cache
def _renameat2() -> Any:
    """The C library's function, None where it has none; looking it up costs more than calling it."""
    import ctypes  # only who exchanges files pays for it

    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _place(path: Path) -> tuple[str, str]:
    """The folder of a file, and how the hidden names beside it begin."""
    folder, slash, name = os.fspath(path).rpartition("/")
    return folder + slash or ".", f"{folder}{slash}{TEMPORARY_PREFIX}{name}-"


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_HASH]
