"""Durable writes: a file is replaced whole or not at all, and a save that the write displaced is not lost."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ralf.errors import Damaged
from ralf.storage import files
from ralf.text.patterns import regex

# ---- files that only ralf writes: written beside the old one, read back, then renamed; and removed for good ----
#
# `replace_durably` takes a stream of any length and reads it back from the disk before it replaces anything.

_BUFFER = 1 << 20

_HALF = r"(?P<half>[0-9a-f]{12}\.tmp)"

_LEFT = (
    rf"(?:{_HALF}|(?P<known>[0-9a-f]{{12}})-[0-9a-f]{{12}}\.old"
    r"|(?P<mtime>[0-9a-f]+)-(?P<size>[0-9a-f]+)-[0-9a-f]{12}\.seen)"
)
"""What follows in the hidden name of a file that a writer left: half written, displaced, displaced and looked at."""

_BESIDE = regex(_LEFT)
_HIDDEN = regex(rf"\.ralf-.+-{_LEFT}")
_TEMPORARY = regex(rf"\.ralf-.+-{_HALF}")


def replace_durably(path: Path, chunks: Iterable[bytes], *, beside: Path | None = None) -> None:
    """Make `chunks` the content of `path`, whose folder exists. OSError, Damaged: then `path` is unchanged.

    beside  the folder of the temporary file, on the same file system; None: that of `path`
    """
    temporary = Path(temporary_beside((beside or path.parent) / path.name))
    with naming(path):
        try:
            _write(temporary, chunks)
            temporary.rename(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def move(source: Path, target: Path) -> None:
    """Give a file another name, durably. Errors: `rename_free`."""
    rename_free(source, target)
    sync_folder(target.parent)
    sync_folder(source.parent)


def rename_free(source: Path, target: Path) -> None:
    """Give a file another name. FileExistsError where that is taken, if the system can tell; OSError."""
    code = renamed(os.fspath(source), os.fspath(target), _RENAME_NOREPLACE)
    if code in _UNKNOWN:
        try:
            os.link(source, target)
            os.unlink(source)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            os.rename(source, target)
    elif code:
        raise OSError(code, os.strerror(code), os.fspath(target))


def removed(paths: Iterable[Path]) -> None:
    """Remove files durably: none of them is back after a power loss. Missing ones are skipped."""
    folders = set()
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
            folders.add(path.parent)
    for folder in sorted(folders):
        with suppress(FileNotFoundError):
            sync_folder(folder)


def sync_below(folder: Path) -> None:
    """Make the names in a folder and in all below it durable, and removals by a process that died before its sync."""
    for top, _, _ in os.walk(folder):
        with suppress(FileNotFoundError):
            sync_folder(top)


def is_temporary(name: str) -> bool:
    """Whether this is the name of a temporary file, which is not yet renamed or never will be."""
    return _TEMPORARY.fullmatch(name) is not None


def is_hidden(name: str) -> bool:
    """Whether this is the name of a temporary or displaced file, which the next writer sweeps."""
    return _HIDDEN.fullmatch(name) is not None


def hidden_beside(path: Path) -> list[Path]:
    """The temporary and displaced files of `path`."""
    return sorted(Path(name) for name, _ in _left_beside(path))


def _left_beside(path: Path) -> list[tuple[str, re.Match[str]]]:
    """Their paths, with the parts of each name."""
    folder, beside = _place(path)
    begins, found = os.path.basename(beside), []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            left = entry.name.startswith(begins) and _BESIDE.fullmatch(entry.name.removeprefix(begins))
            if left:
                found.append((beside + left[0], left))
    return found


def sync_parents(folder: Path, top: Path) -> None:
    """Make a new file's name durable, and the names of the folders that were made for it."""
    sync_folder(folder)
    while folder != top and top in folder.parents:
        folder = folder.parent
        sync_folder(folder)


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a new file, durable, and read it back."""
    written = hashlib.sha256()
    with os.fdopen(os.open(path, NEW, _MODE), "wb", buffering=_BUFFER) as file:
        for chunk in chunks:
            file.write(chunk)
            written.update(chunk)
        file.flush()
        os.fsync(file.fileno())
    with path.open("rb", buffering=0) as file:
        if hashlib.file_digest(file, "sha256").digest() != written.digest():
            raise Damaged(path, "what was written is not what is read back", "look after the disk")


# ---- one file: `write` for those that only we write, `exchange` for route files, which people edit without a lock ----
#
# Plain calls only: beside a fast disk, objects of pathlib and contextlib would take a tenth of the time.

_AT_FDCWD = -100

_RENAME_NOREPLACE = 1

EXCHANGE = 2

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

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

_BORN = 1.0  # seconds after which whoever has made a file holds its lock

_KEPT = 10.0  # where the kernel cannot tell either whether someone has it open


class BeingSaved(OSError):
    """Another program has the file open for writing; it was left in its place."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(errno.ETXTBSY, "another program is saving it", os.fspath(path))


class CannotReplace(OSError):
    """The file system knows no way to write the file that could not lose what a person saves; it was left as it is."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EOPNOTSUPP, "this file system can neither exchange nor link files", path)


class DisplacedFile(NamedTuple):
    """What lay in the place of a file that was written, under a hidden name beside it until it is dropped.

    The name holds a hash of what is known of it already; where the content differs, a person saved it and no one has
    taken that in. Once dropped it holds the version that was looked at.

    beside  how the hidden names beside the file begin
    """

    path: str
    beside: str
    content: bytes
    version: files.Version

    @property
    def target(self) -> Path:
        """The file beside which it lies."""
        folder, _, name = self.beside.rpartition("/")
        return Path(folder, name.removeprefix(TEMPORARY_PREFIX).removesuffix("-"))

    @property
    def known(self) -> str:
        """How the sha256 (hexadecimal) of what was expected in its place begins; "" once it was dropped."""
        left = _BESIDE.fullmatch(self.path.removeprefix(self.beside))
        return left["known"] or "" if left else ""

    def drop(self) -> None:
        """Say that its content is known. It may still be saved into, so a later write looks again and removes it."""
        mtime, size = self.version
        with suppress(FileNotFoundError):  # someone cleans the folder
            os.rename(self.path, f"{self.beside}{mtime:x}-{size:x}-{os.urandom(6).hex()}{SEEN_SUFFIX}")

    def remove(self) -> None:
        """Remove it at once; a save that reaches it at this very moment is lost."""
        _remove(self.path)

    def keep(self, path: Path) -> None:
        """Rename it to a visible name, durably."""
        os.rename(self.path, path)
        sync_folder(path.parent)


def write(path: Path, content: bytes, *, mode: int = _MODE) -> None:
    """Write a file durably: temporary file in the same folder, fsync, rename, fsync of the folder.

    Temporary files of writers that died are removed. OSError as it comes; the old file is then untouched and the
    temporary one gone.
    """
    with naming(path):
        _make(temporary_beside(path), content, os.fspath(path), mode)
        sync_folder(path.parent)  # else the name may be the old file's after a power loss
    remove_dead(path)


@cache
def _writer_class() -> Any:
    """A writer of `atomicwrites` whose temporary file has a hidden name that our sweeps know, and a lock while its
    writer lives.
    """
    from atomicwrites import AtomicWriter  # loaded only by few writes

    class Writer(AtomicWriter):  # type: ignore[misc]
        def get_fileobject(self, rights: int, held: ExitStack) -> BinaryIO:
            name = temporary_beside(self._path)
            descriptor = os.open(name, NEW, _MODE)
            held.callback(os.close, os.dup(descriptor))  # the lock lasts until the file has its name
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file = open(name, "wb", opener=lambda *_: descriptor)  # noqa: SIM115  # by its name it is renamed
            os.fchmod(descriptor, rights)
            return file

    return Writer


def write_file(path: Path, content: bytes, *, mode: int = _MODE) -> None:
    """Write a file durably that no editor races, whole or not at all, with `atomicwrites`. Errors as for `write`."""
    with ExitStack() as held, naming(path):
        writer = _writer_class()(path, mode="wb", overwrite=True, rights=mode, held=held)
        with writer.open() as file:
            file.write(content)
    remove_dead(path)


def temporary_beside(path: str | Path) -> str:
    """Return a name for a temporary file of `path` that a sweep recognises."""
    return f"{_place(path)[1]}{os.urandom(6).hex()}{TEMPORARY_SUFFIX}"


def remove_dead(path: Path) -> None:
    """Remove temporary files beside a file whose writers have died. Not for route files, whose writers hold a lock."""
    with suppress(OSError):
        for name, left in _left_beside(path):
            if left["half"] and not _is_young(time.time() - os.lstat(name).st_ctime, _BORN):
                _remove_unless_held(name)


def _remove_unless_held(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(path)
    except BlockingIOError:  # someone is at it
        pass
    finally:
        os.close(descriptor)


def add(path: Path, content: bytes) -> None:
    """Append a few bytes to a file durably; it is made if missing. OSError as it comes, including for anything but a
    regular file with one name.
    """
    with naming(path):
        descriptor = files.open_single_link(os.fspath(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            _fill(descriptor, content)
        finally:
            os.close(descriptor)
        sync_folder(path.parent)


def exchange(path: Path, content: bytes, known: str, *, mode: int | None = None) -> DisplacedFile | None:
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
    with naming(path):
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


def _rights_of(path: str) -> tuple[int, int, int]:
    """The mode, user and group for a new version of a file; -1: those of the writer."""
    try:
        found = os.lstat(path)
    except OSError:
        return _MODE, -1, -1
    if not stat.S_ISREG(found.st_mode):
        return _MODE, -1, -1
    return _MODE | (found.st_mode & 0o664), found.st_uid, found.st_gid


def _give(descriptor: int, user: int, group: int) -> None:
    """Give a new file the old one's user and group, as far as this user may."""
    found = os.fstat(descriptor)
    for one in (user, -1), (-1, group):
        if one not in ((-1, -1), (found.st_uid, -1), (-1, found.st_gid)):
            with suppress(PermissionError):
                os.fchown(descriptor, *one)


def _looked_at(aside: str, beside: str, target: str, content: bytes, known: str) -> DisplacedFile | None:
    """What was displaced; BeingSaved, and all in its old place again, where someone has it open for writing.

    Such a save would go into a file that no one sees any more. Looking after the fsync gives whoever had found the
    file, but not opened it yet, the time to do so; for who takes longer, the next writer looks again.
    """
    end = content.rstrip().rpartition(b"\n")[2]
    try:
        found = files.read(aside, end=end)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        os.unlink(aside)  # a link: what it names stays where it is
        return None
    if found.closed is None and _hash(found.content) != known[:_HASH]:
        files.settled(Path(aside), GRACE, end=end)  # put back it would undo what is saved into ours by then
        found = files.read(aside, end=end)
        if found.may_be_half:
            return None
    if found.closed is not False:
        return DisplacedFile(aside, beside, found.content, found.version)
    if _put(aside, target):
        ours = files.read(aside)
        if ours.closed is not False and ours.content == content:  # else someone saved into that one: a sweep tells
            DisplacedFile(aside, beside, content, ours.version).drop()
    raise BeingSaved(target)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name this file in an OSError of the block that names none, such as a write to a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


def sync_folder(folder: str | Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, _FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(path: Path, grace: float = GRACE, end: bytes = b"") -> list[DisplacedFile]:
    """Remove what writers of `path` left, and return what a person saved that none of them took in.

    Only for a caller that holds the lock that all writers of `path` take: then no owner of what is found can be alive.

    grace  seconds; 0 removes all that is known, at the price of a save that comes into it in this very moment
    end    what a whole file has at its end
    """
    _, beside = _place(path)
    unseen = []
    for name, left in _left_beside(path):
        with suppress(OSError):  # gone, or nothing that can be read: no reason not to write
            unseen.append(_swept(name, left, beside, grace, end))
    return [aside for aside in unseen if aside is not None]


def _swept(name: str, left: re.Match[str], beside: str, grace: float, end: bytes) -> DisplacedFile | None:
    """Be done with a file that a writer left, but for what a person saved; what someone has open is left for later."""
    status, kept = os.lstat(name), _KEPT if grace else 0.0
    if left["half"] or stat.S_ISLNK(status.st_mode):
        _remove(name)
        return None
    looked_at = files.Version(int(left["mtime"], 16), int(left["size"], 16)) if left["mtime"] else None
    age = time.time() - status.st_ctime
    if looked_at == files.version_of(status):
        if not _is_young(age, grace):
            found = files.read(name, 0)
            if found.version == looked_at and (found.closed or (found.closed is None and not _is_young(age, kept))):
                _remove(name)
        return None
    found = files.read(name, end=end)
    is_known = looked_at is None and _hash(found.content) == left["known"]
    if found.closed is False or (found.may_be_half and not is_known):
        return None
    aside = DisplacedFile(name, beside, found.content, found.version)
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
    descriptor = os.open(temporary, NEW, _MODE)
    held = os.dup(descriptor)  # beyond the close, whose error has to be told before the file has its name
    try:
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # so that no one takes the writer for dead
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
    """Remove a file after an error, which is the one to raise."""
    with suppress(OSError):
        os.unlink(name)


def _remove(name: str) -> None:
    """Remove a file that may be gone."""
    with suppress(FileNotFoundError):
        os.unlink(name)


def _put(source: str, target: str) -> bool:
    """Give a file its name; True when it was exchanged with the one that had it.

    Never replaces what no one has looked at.
    """
    while True:
        code = renamed(source, target, EXCHANGE)
        if code == 0:
            return True
        if code == errno.ENOENT:  # an editor may make the file at this moment
            code = renamed(source, target, _RENAME_NOREPLACE)
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
        try:
            os.rename(target, aside)
            displaced = True
        except FileNotFoundError:
            displaced = False
        try:
            os.link(source, target)
        except FileExistsError:  # an editor has made one meanwhile: what is aside is older, and the next sweep's
            continue
        except OSError as error:
            if displaced and not os.path.lexists(target):
                os.rename(aside, target)
            if error.errno in (errno.EPERM, errno.EOPNOTSUPP, *_UNKNOWN):
                raise CannotReplace(target) from None
            raise
        os.unlink(source)
        if displaced:
            os.rename(aside, source)
        return displaced


def renamed(source: str, target: str, flags: int) -> int:
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
    import ctypes  # loaded only to exchange files

    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _place(path: str | Path) -> tuple[str, str]:
    """The folder of a file, and how the hidden names beside it begin."""
    folder, slash, name = os.fspath(path).rpartition("/")
    return folder + slash or ".", f"{folder}{slash}{TEMPORARY_PREFIX}{name}-"


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_HASH]
