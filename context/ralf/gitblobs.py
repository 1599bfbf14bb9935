"""Which bytes git has checked out: its index, read without running git where that can be done.

The index names each tracked path with the blob that the repository has for it, and with the size and times that the
file had when git last saw the two agree.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ralf import environment
from ralf.files.opening import content_of

_SHA1, _SHA256 = 20, 32  # bytes of an object's id
_STAT = struct.Struct(">10I")  # ctime, mtime (each seconds and nanoseconds), dev, ino, mode, uid, gid, size
_EXTENDED = 0x40  # of the first byte of an entry's flags: two more follow
_LINK = b"link"  # the extension of an index of which another file holds a part
_VERSIONS = (2, 3, 4)
_SECONDS = 20
_MOST_LINKED = 4_096  # bytes of a `.git` file
_IDENT = re.compile(rb"\$Id:[^$\n]*\$")


class Unreadable(Exception):
    """What an index says cannot be told."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """What git has for a path, in one stage.

    blob   the id of its bytes in the repository, 40 or 64 hexadecimal digits
    stage  0, or 1 to 3 while a merge is not settled
    stat   size, seconds and nanoseconds of the time at which git last saw the file hold them; None where unknown
    """

    blob: str
    stage: int = 0
    stat: tuple[int, int, int] | None = None


def blob_in_index(root: Path, path: Path) -> str | None:
    """The id of the blob that git has checked out for a path below `root`; None for a path that it does not track.

    root  a repository's top, or a folder that lies in one, or in several: the nearest that tracks the path counts

    Unreadable where neither the index nor git says it.
    """
    return next((one.blob for _, one in _all_tracked(_real(root / path))), None)


def checked_out(root: Path, path: Path, content: bytes) -> bytes | None:
    """What git has brought for a path below `root` whose file holds `content`, None where that is nothing of it.

    That is `content` itself where git has brought just these bytes, or is at work in the repository, or where nobody
    can tell; and else the blob that somebody has changed since. What git changes on the way to a file (line ends,
    `$Id$`, an encoding) is none the less its. It has also brought what any of its objects holds: `git restore
    --source`, `git reset` after a pull and `git stash pop` write files, of which the index says nothing.
    """
    file = _real(root / path)
    try:
        if _is_at_work(file):
            return content
        found = list(_all_tracked(file))
        if not found:
            return None
        if _is_among(file, content, [one for _, one in found]):
            return content
        top, first = found[0]
        return _content_of_blob(top, first.blob)
    except Unreadable:
        return content


def is_in_repository(file: Path) -> bool:
    """Whether a file lies in a repository."""
    return any(True for _ in _folders(_real(file)))


def _is_among(file: Path, content: bytes, found: list[Tracked]) -> bool:
    """Whether a file holds one of these blobs, as far as its bytes or git's own note of it say so."""
    if not found:
        return False
    blobs = {one.blob for one in found}
    if any(_id_of(form, digits) in blobs for form in _forms(content) for digits in {len(blob) for blob in blobs}):
        return True
    return _stat_of(file) in {one.stat for one in found if one.stat is not None}


def is_stored(file: Path, content: bytes) -> bool:
    """Whether a repository around a file has these bytes as a blob: `git restore` writes files that no index names."""
    ids = [_id_of(form, 2 * size) for form in _forms(content) for size in (_SHA1, _SHA256)]
    asked = "".join(f"{one}\n" for one in ids).encode()
    for top, _ in _folders(_real(file)) if content else ():
        with suppress(Unreadable):  # a repository that git cannot use has written no file
            if b" blob " in _git(top, b"cat-file", b"--batch-check", given=asked):
                return True
    return False


def _forms(content: bytes) -> set[bytes]:
    """The bytes that git may have for a file that holds these."""
    forms = {content, content.replace(b"\r\n", b"\n")}
    return forms | {_IDENT.sub(b"$Id$", form) for form in forms}


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


def _real(file: Path) -> Path:
    """The path of a file by which its repository knows it; where the file itself is a link, that is what git tracks."""
    return Path(os.path.realpath(file.parent), file.name)


def _folders(file: Path) -> Iterator[tuple[Path, Path]]:
    """Each worktree around a file, the nearest first, and where git keeps what is its own."""
    for top in file.parents:
        git = top / ".git"
        if git.is_dir():
            yield top, git
        elif git.is_file():  # of a linked worktree, or of a submodule
            with suppress(OSError):
                said = content_of(git, follow=True, most=_MOST_LINKED).decode("utf-8", "surrogateescape").strip()
                if said.startswith("gitdir:"):
                    yield top, top / said.removeprefix("gitdir:").strip()


def _is_at_work(file: Path) -> bool:
    """Whether git writes an index anew: it has written files by then of which the index does not know."""
    return any((git / "index.lock").exists() for _, git in _folders(file))


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
            tracked = list(_tracked_in(index, name))
        except Unreadable:
            tracked = list(_asked(top, name))
        yield from ((top, one) for one in tracked)


# ---- the index ----


def _tracked_in(index: bytes, name: bytes) -> Iterator[Tracked]:
    """What an index has for a path. Unreadable where it does not say it by itself."""
    if len(index) < 12 + _SHA1 or index[:4] != b"DIRC":
        raise Unreadable("no index")
    version, count = struct.unpack_from(">II", index, 4)
    if version not in _VERSIONS:
        raise Unreadable(f"an index of version {version}")
    if version < 4 and name + b"\0" not in index and _LINK not in index:
        return  # most edits are of files that git does not know: nothing is parsed for them
    size = _size_of_ids(index)
    found, end = [], 12
    try:
        for entry_name, begin, end in _entries(index, version, count, size):  # noqa: B007  # where the last one ends
            if entry_name == name:
                found.append(_tracked_at(index, begin, size))
        if any(extension == _LINK for extension in _extensions(index, end, size)):
            raise Unreadable("a split index")
    except (struct.error, IndexError, ValueError):
        raise Unreadable("an index that is damaged") from None
    yield from found


def _size_of_ids(index: bytes) -> int:
    """Bytes of an object's id: the index ends with its own sum, made as these are."""
    for size, made in ((_SHA1, hashlib.sha1), (_SHA256, hashlib.sha256)):
        if made(memoryview(index)[:-size], usedforsecurity=False).digest() == index[-size:]:
            return size
    raise Unreadable("an index without a sum")  # `index.skipHash`, or damage


def _tracked_at(index: bytes, at: int, size: int) -> Tracked:
    stat = _STAT.unpack_from(index, at)
    blob = index[at + _STAT.size : at + _STAT.size + size].hex()
    (flags,) = struct.unpack_from(">H", index, at + _STAT.size + size)
    return Tracked(blob, flags >> 12 & 3, (stat[9], stat[2], stat[3]) if stat[9] else None)


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
            _, blob, stage = told.split(b" ")
            yield Tracked(blob.decode(), int(stage))


def _content_of_blob(top: Path, blob: str) -> bytes:
    return _git(top, b"cat-file", b"blob", blob.encode())


def _git(top: Path, *words: bytes, given: bytes = b"") -> bytes:
    """What git prints, given something on its standard input. Unreadable where it fails, or takes too long."""
    import subprocess  # few files need it

    # As for `files.ownfile`: no program that the repository names is run, nothing is fetched, and no bare one is asked.
    only = [b"-c", b"core.fsmonitor=false", b"-c", b"safe.bareRepository=explicit", b"-c", b"protocol.allow=never"]
    alone = environment.of_a_model() | {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            [b"git", *only, *words], cwd=top, env=alone, input=given, capture_output=True,
            timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreadable(str(error)) from None
    if done.returncode:
        raise Unreadable(done.stderr.decode("utf-8", "replace").strip()[:200])
    return done.stdout
