"""What git's own files say of a folder: its worktree and branch, what it tracks and has checked out."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ralf import environment
from ralf.errors import UsageError
from ralf.storage.files import content_of

if TYPE_CHECKING:
    import subprocess


# ---- which files below a folder git tracks, by the indexes of the repositories around it ----
#
# A repository can hold another, bare one, beside a file, which knows of no file; and name a program that git runs.
# Nothing is fetched, either.
_HARDENED = ("core.fsmonitor=false", "safe.bareRepository=explicit", "protocol.allow=never")

_TIMEOUT = 20  # seconds

_SPARSE = b"sdir\0\0\0\0"  # the extension of an index in which a folder may stand for all that is in it

_MOST = 64 * 1024  # bytes of a `.git` file that are read

Stamp = tuple[int, int, int, int]


class Index(NamedTuple):
    """The index of a repository, and the repository's top folder."""

    path: Path
    top: Path


def around(folder: Path) -> list[Index]:
    """The indexes that may name a file below a folder: of each repository that the folder lies in, innermost first.

    folder  need not exist
    """
    return [Index(git / "index", top) for top, git in _folders(_real(folder) / "file")]


def stamps(indexes: list[Index]) -> tuple[Stamp | None, ...]:
    """What changes when one of the indexes does; None for one that is not there."""
    found: list[Stamp | None] = []
    for index in indexes:
        try:
            status = index.path.stat()
        except (OSError, ValueError):
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino))
    return tuple(found)


def tracked_below(folder: Path, indexes: list[Index], environment: Mapping[str, str]) -> frozenset[str]:
    """The paths below a folder, relative to it, that one of the indexes has.

    environment  for git, where it has to be asked

    UsageError where git cannot tell.
    """
    belows = [(index, _real(folder).relative_to(index.top)) for index in indexes]
    return frozenset().union(
        *(_names(index, f"{below}/" if below.parts else "", environment) for index, below in belows)
    )


def ask(
    folder: Path,
    arguments: Iterable[str | bytes],
    environment: Mapping[str, str],
    given: bytes = b"",
    *,
    seconds: float = _TIMEOUT,
) -> subprocess.CompletedProcess[bytes] | None:
    """What git answers in a folder; None where there is no git. subprocess.TimeoutExpired when it takes too long.

    given    its standard input
    seconds  that it may take

    Nothing that the repository configures is run.
    """
    import subprocess  # loaded only to ask git

    command = ["git", *(word for setting in _HARDENED for word in ("-c", setting)), *arguments]
    try:
        return subprocess.run(
            command, cwd=folder, env=environment, input=given, capture_output=True, timeout=seconds, check=False
        )
    except OSError:
        return None


def first_complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    """The first line that git printed to its standard error, cut to 200 characters."""
    return done.stderr.decode("utf-8", "replace").strip().split("\n")[0][:200]


def _names(index: Index, prefix: str, environment: Mapping[str, str]) -> set[str]:
    try:
        content = content_of(index.path, follow=True)
    except OSError as error:
        if error.errno != errno.EFBIG:
            return set()  # git cannot read it either, and stages nothing
        content = b""
    if _SPARSE not in content:
        begin = os.fsencode(prefix)
        with suppress(Unreadable):
            return {os.fsdecode(path[len(begin) :]) for path, _ in _entries_below(content, begin)}
    import subprocess

    hint = f"git -C {index.top} status"
    try:
        done = ask(index.top, ["ls-files", "-z", "--", prefix or "."], environment)
    except subprocess.TimeoutExpired:
        raise UsageError(index.path, "git does not say what it tracks", hint) from None
    if done is None:
        return set()  # no git, no one who stages
    if done.returncode:
        raise UsageError(index.path, f"git cannot say what it tracks: {first_complaint(done)}", hint)
    return {os.fsdecode(name)[len(prefix) :] for name in done.stdout.split(b"\0") if name}


# ---- which bytes git has checked out, by its index where that can be read without running git ----
#
# The index names each tracked path with the blob that the repository has for it, and with the size and times that the
# file had when git last saw the two agree.

_SHA1, _SHA256 = 20, 32  # bytes of an object's id

_STAT = struct.Struct(">10I")  # ctime, mtime (each seconds and nanoseconds), dev, ino, mode, uid, gid, size

_EXTENDED = 0x40  # of the first byte of an entry's flags: two more follow

_LINK = b"link"  # the extension of an index of which another file holds a part

_VERSIONS = (2, 3, 4)

_IDENT = rb"\$Id:[^$\n]*\$"


class Unreadable(Exception):
    """What an index says cannot be told."""


class Tracked(NamedTuple):
    """What git has for a path, in one stage of a merge.

    blob  the id of its bytes in the repository, 40 or 64 hexadecimal digits
    stat  size, seconds and nanoseconds of the time at which git last saw the file hold them; None where unknown
    """

    blob: str
    stat: tuple[int, int, int] | None = None


def blob_in_index(root: Path, path: Path) -> str | None:
    """The id of the blob that git has checked out for a path below `root`; None for a path that it does not track.

    root  a repository's top, or a folder that lies in one, or in several: the nearest that tracks the path counts

    Unreadable where neither the index nor git says it.
    """
    return next((one.blob for _, one in _all_tracked(_real_file(root / path))), None)


def checked_out(root: Path, path: Path, content: bytes) -> bytes | None:
    """What git has brought for a path below `root` whose file holds `content`, None where that is nothing of it.

    That is `content` itself where git has brought just these bytes, or is at work in the repository, or where no one
    can tell; and else the blob that someone has changed since. What git changes on the way to a file (line ends,
    `$Id$`, an encoding) is none the less its. It has also brought what any of its objects holds: `git restore
    --source`, `git reset` after a pull and `git stash pop` write files, of which the index says nothing.
    """
    file = _real_file(root / path)
    try:
        if any((git / "index.lock").exists() for _, git in _folders(file)):
            return content  # git writes an index anew: it may have written files that the old one does not know
        found = list(_all_tracked(file))
        if not found:
            return None
        if _is_among(file, content, [one for _, one in found]):
            return content
        top, first = found[0]
        return _git(top, b"cat-file", b"blob", first.blob.encode())
    except Unreadable:
        return content


def _is_among(file: Path, content: bytes, found: list[Tracked]) -> bool:
    """Whether a file holds one of these blobs, as far as its bytes or git's own note of it say so."""
    blobs = {one.blob for one in found}
    if any(_id_of(form, digits) in blobs for form in _forms(content) for digits in {len(blob) for blob in blobs}):
        return True
    return _stat_of(file) in {one.stat for one in found if one.stat is not None}


def is_stored(file: Path, content: bytes) -> bool:
    """Whether a repository around a file has these bytes as a blob: `git restore` writes files that no index names."""
    ids = [_id_of(form, 2 * size) for form in _forms(content) for size in (_SHA1, _SHA256)]
    asked = "".join(f"{one}\n" for one in ids).encode()
    for top, _ in _folders(_real_file(file)) if content else ():
        with suppress(Unreadable):  # a repository that git cannot use has written no file
            if b" blob " in _git(top, b"cat-file", b"--batch-check", given=asked):
                return True
    return False


def brought(files: Mapping[Path, bytes], is_known: Callable[[bytes], bool]) -> tuple[set[Path], set[Path]]:
    """Those of many files, with their bytes, that git has brought: a repository has their bytes, or has others in their
    place, in HEAD or in its index, which are not known. And those of which nobody can tell now, as git is at work. All
    that git is asked is asked once.
    """
    found: set[Path] = set()
    unsure: set[Path] = set()
    tops: dict[tuple[Path, Path], dict[bytes, Path]] = {}
    for path in files:
        real = _real_file(path)
        for top, git in _folders(real):
            tops.setdefault((top, git), {})[os.fsencode(real.relative_to(top))] = path
    for (top, git), names in tops.items():
        left = {name: path for name, path in names.items() if path not in found}
        if not left:  # a repository within has brought them all
            continue
        try:
            if (git / "index.lock").exists():  # as in `checked_out`
                unsure |= set(left.values())
                continue
            found |= _brought_to(top, {name: (path, files[path]) for name, path in left.items()}, is_known)
        except Unreadable:
            unsure |= set(left.values())
    return found, unsure - found


def _brought_to(top: Path, files: Mapping[bytes, tuple[Path, bytes]], is_known: Callable[[bytes], bool]) -> set[Path]:
    """Those of the files below a worktree, by their names in it, that git has brought."""
    asked: list[tuple[Path, bytes, bool]] = []
    for name, (path, content) in files.items():
        asked += [(path, place + name, True) for place in (b"HEAD:", b":")]
        ids = [_id_of(form, 2 * size) for form in _forms(content) for size in (_SHA1, _SHA256)] if content else []
        asked += [(path, one.encode(), False) for one in ids]
    told = _git(top, b"cat-file", b"--batch-check", given=b"".join(b"%b\n" % what for _, what, _ in asked)).split(b"\n")
    found: set[Path] = set()
    others: dict[bytes, list[Path]] = {}
    for (path, _, is_place), line in zip(asked, told, strict=False):
        if b" blob " in line and is_place:
            others.setdefault(line.split(b" ")[0], []).append(path)
        elif b" blob " in line:
            found.add(path)
    return found | {
        path
        for blob, paths in others.items()
        if not found.issuperset(paths) and not is_known(_git(top, b"cat-file", b"blob", blob))
        for path in paths
    }


def _forms(content: bytes) -> set[bytes]:
    """The bytes that git may have for a file that holds these."""
    forms = {content, content.replace(b"\r\n", b"\n")}
    return forms | {re.sub(_IDENT, b"$Id$", form) for form in forms}


def _id_of(content: bytes, digits: int) -> str:
    framed = b"blob %d\0%s" % (len(content), content)
    made = hashlib.sha1(framed, usedforsecurity=False) if digits == 2 * _SHA1 else hashlib.sha256(framed)
    return made.hexdigest()


def _stat_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_size & 0xFFFFFFFF, *divmod(found.st_mtime_ns, 10**9)


def _real_file(file: Path) -> Path:
    """The path of a file by which its repository knows it; where the file itself is a link, that is what git tracks."""
    return _real(file.parent) / file.name


def _folders(file: Path) -> Iterator[tuple[Path, Path]]:
    """Each worktree around a file, the nearest first, and where git keeps what is its own."""
    for top in file.parents:
        git = top / ".git"
        if git.is_dir():
            yield top, git
        elif git.is_file() and (named := _text_of(git, "surrogateescape")).startswith("gitdir:"):
            yield top, _folder_named(top, named)  # of a linked worktree, or of a submodule


def _all_tracked(file: Path) -> Iterator[tuple[Path, Tracked]]:
    """What the repositories around a file have for it, each with the top of its worktree."""
    for top, git in _folders(file):
        name = os.fsencode(file.relative_to(top))
        try:
            index = content_of(git / "index", follow=True)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise Unreadable(str(error)) from None
        try:
            tracked = [one for path, one in _entries_below(index, name) if path == name]
        except Unreadable:
            tracked = list(_asked(top, name))
        yield from ((top, one) for one in tracked)


# ---- the index ----


def _entries_below(index: bytes, prefix: bytes) -> list[tuple[bytes, Tracked]]:
    """The entries of an index whose paths begin so. Unreadable where it does not say it by itself."""
    if len(index) < 12 + _SHA1 or index[:4] != b"DIRC":
        raise Unreadable("no index")
    version, count = struct.unpack_from(">II", index, 4)
    if version not in _VERSIONS:
        raise Unreadable(f"an index of version {version}")
    if version < 4 and prefix not in index and _LINK not in index:
        return []  # most files are unknown to git: nothing is parsed for them
    size = _size_of_ids(index)
    found, end = [], 12
    try:
        for path, begin, end in _entries(index, version, count, size):  # noqa: B007  # where the last one ends
            if path.startswith(prefix):
                found.append((path, _tracked_at(index, begin, size)))
        if any(extension == _LINK for extension in _extensions(index, end, size)):
            raise Unreadable("a split index")
    except (struct.error, IndexError, ValueError):
        raise Unreadable("an index that is damaged") from None
    return found


def _size_of_ids(index: bytes) -> int:
    """Bytes of an object's id: the index ends with its own sum, made as these are."""
    for size, made in ((_SHA1, hashlib.sha1), (_SHA256, hashlib.sha256)):
        if made(memoryview(index)[:-size], usedforsecurity=False).digest() == index[-size:]:
            return size
    raise Unreadable("an index without a sum")  # `index.skipHash`, or damage


def _tracked_at(index: bytes, at: int, size: int) -> Tracked:
    stat = _STAT.unpack_from(index, at)
    blob = index[at + _STAT.size : at + _STAT.size + size].hex()
    return Tracked(blob, (stat[9], stat[2], stat[3]) if stat[9] else None)


def _entries(index: bytes, version: int, count: int, size: int) -> Iterator[tuple[bytes, int, int]]:
    """The entries of an index: the path of each, where it begins and where it ends."""
    at, name = 12, b""
    for _ in range(count):
        begin = at
        at += _STAT.size + size
        at += 4 if index[at] & _EXTENDED else 2
        if version == 4:
            strip, at = _number(index, at)
            end = index.index(b"\0", at)
            name = name[: len(name) - strip] + index[at:end]
            at = end + 1
        else:
            end = index.index(b"\0", at)
            name = index[at:end]
            at = begin + (end - begin + 8) // 8 * 8
        yield name, begin, at


def _number(index: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = index[at] & 0x7F
    while index[at] & 0x80:
        at += 1
        value = (value + 1 << 7) | (index[at] & 0x7F)
    return value, at + 1


def _extensions(index: bytes, at: int, size: int) -> Iterator[bytes]:
    while at + 8 <= len(index) - size:
        (length,) = struct.unpack_from(">I", index, at + 4)
        yield index[at : at + 4]
        at += 8 + length


# ---- asking git ----


def _asked(top: Path, name: bytes) -> Iterator[Tracked]:
    """What git says that it has for a path. Unreadable where it says nothing."""
    for line in filter(None, _git(top, b"--literal-pathspecs", b"ls-files", b"-s", b"-z", b"--", name).split(b"\0")):
        told, _, path = line.partition(b"\t")
        if path == name:
            yield Tracked(told.split(b" ")[1].decode())


def _git(top: Path, *words: bytes, given: bytes = b"") -> bytes:
    """What git prints, given something on its standard input. Unreadable where it fails, or takes too long."""
    import subprocess  # loaded for few files

    alone = environment.of_a_model() | {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = ask(top, words, alone, given)
    except subprocess.TimeoutExpired as error:
        raise Unreadable(str(error)) from None
    if done is None or done.returncode:
        raise Unreadable(first_complaint(done) if done else "there is no git")
    return done.stdout


# ---- a repository's main worktree and branch ----


def main_worktree(root: Path) -> Path:
    """The main worktree of a linked one, else `root` itself.

    In a linked worktree `.git` is a file that names `MAIN/.git/worktrees/NAME`, where a file names it in turn.
    """
    git = root / ".git"
    if not git.is_file():
        return root
    folder = _real(_folder_named(root, _text_of(git)))
    if folder.parent.name != "worktrees" or folder.parent.parent.name != ".git":
        return root
    if _real(folder / _text_of(folder / "gitdir")) != _real(git):
        return root  # that repository knows nothing of a worktree here: anybody can write a `.git` file
    return folder.parent.parent.parent


def worktree(folder: Path) -> Path | None:
    """The top of the git worktree in which a folder lies, None where it lies in none. The folder may be gone."""
    place = _real(folder)
    return next((top for top in (place, *place.parents) if (top / ".git").exists()), None)


class Status(NamedTuple):
    """What a worktree looks like at this moment.

    branch  "" where none is checked out
    head    the commit, cut to seven digits, "" for none; `subject`: its message's first line
    files   that are changed or new, by their paths from the worktree's top
    """

    branch: str
    head: str
    subject: str
    files: tuple[str, ...]


_ASKED_FOR = 0.3  # seconds

_READ_ONLY = ("--no-optional-locks", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")


def status(top: Path, environment: Mapping[str, str]) -> Status | None:
    """What git says of a worktree, None where it cannot say it within 0.3 s. Nothing is written, and nothing run that
    the repository configures: one that brings filters, which git would run to compare a file, is not asked.
    """
    import subprocess  # loaded only to ask git

    deadline = time.monotonic() + _ASKED_FOR

    def answer(*words: str) -> str | None:
        done = ask(top, [*_READ_ONLY, *words], environment, seconds=max(0.01, deadline - time.monotonic()))
        return done.stdout.decode(errors="replace") if done is not None and done.returncode == 0 else None

    try:
        filters = answer("config", "--show-scope", "--name-only", "--get-regexp", r"^filter\.") or ""
        if any(line.startswith(("local", "worktree")) for line in filters.splitlines()):
            return None
        said = answer("status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty", "-z")
        if said is None:
            return None
        subject = answer("log", "-1", "--format=%s") or ""
    except subprocess.TimeoutExpired:
        return None
    head, branch, files = "", "", list[str]()
    lines = iter(said.split("\0"))
    for line in lines:
        if line.startswith("# branch.oid ") and not line.endswith("(initial)"):
            head = line.split()[-1][:7]
        elif line.startswith("# branch.head ") and not line.endswith("(detached)"):
            branch = line.removeprefix("# branch.head ")
        elif (place := _BEFORE_PATH.get(line[:2])) is not None:
            files.append(line.split(" ", place)[-1])
            if line.startswith("2 "):
                next(lines, "")  # the path that it had before
    return Status(branch, head, subject.strip(), tuple(files))


_BEFORE_PATH = {"1 ": 8, "2 ": 9, "u ": 10, "? ": 1}
"""How many fields stand before the path in a line of `git status --porcelain=v2`."""


def branch(root: Path) -> str:
    """The branch that is checked out, "" for none."""
    git = next((git for _, git in _folders(root / "HEAD")), None)
    head = _text_of(git / "HEAD") if git else ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def tracks(root: Path, path: Path) -> bool:
    """Whether git tracks a path below `root`, or what lies in it where it is a folder; also where no one can tell.

    root  a repository's top, a linked worktree, a submodule, or a folder that lies in one
    """
    place = _real_file(root / path)
    if not any((folder / ".git").exists() for folder in place.parents):
        return False

    try:
        if blob_in_index(place.parent, Path(place.name)) is not None:
            return True
        return place.is_dir() and bool(tracked_below(place, around(place), environment.of_a_model()))
    except (Unreadable, UsageError):
        return True


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # `resolve` raises where links go round in a circle, in some versions


def _folder_named(top: Path, text: str) -> Path:
    """The folder that the text of a worktree's `.git` file names."""
    return top / text.removeprefix("gitdir:").strip()


def _text_of(path: Path, errors: str = "strict") -> str:
    """The text of one of git's files, "" where it cannot be read: anything may lie there."""
    try:
        return content_of(path, follow=True, most=_MOST).decode(errors=errors).replace("\0", "").strip()
    except (OSError, ValueError):
        return ""
