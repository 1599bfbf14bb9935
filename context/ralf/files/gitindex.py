"""Which files below a folder git tracks, as the indexes of the repositories around it say.

An index of version 2 or 3 holds each path as it is, so a search for the folder finds its entries. Of a newer version, a
split or a sparse index, git is asked. An index that has not changed since it was looked at is not read again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ralf.errors import UsageError
from ralf.files.opening import content_of

if TYPE_CHECKING:
    import subprocess

# A repository can hold another, bare one, beside a file, which knows of no file; and name a program that git runs.
_HARDENED = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
_TIMEOUT = 20  # seconds
_PLAIN = (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3")
_SPARSE = b"sdir\0\0\0\0"
_NAME_LENGTH = 0xFFF  # of an entry's flags; a longer name has all bits set
_EXTENDED = 0x4000
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
    real = Path(os.path.realpath(folder))
    found = []
    for top in (real, *real.parents):
        git = top / ".git"
        if git.is_dir():
            found.append(Index(git / "index", top))
        elif git.is_file():  # of a linked worktree or a submodule
            with suppress(OSError, ValueError):
                said = content_of(git, follow=True, most=_MOST).decode("utf-8", "surrogateescape")
                found.append(Index(top / said.removeprefix("gitdir:").strip() / "index", top))
    return found


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
    real = Path(os.path.realpath(folder))
    found: set[str] = set()
    for index in indexes:
        below = real.relative_to(index.top)
        found |= _names(index, f"{below}/" if below.parts else "", environment)
    return frozenset(found)


def ask(
    folder: Path, arguments: list[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes] | None:
    """What git answers in a folder; None where there is no git. subprocess.TimeoutExpired when it takes too long.

    Nothing that the repository configures is run.
    """
    import subprocess  # only a question to git pays for it

    command = ["git", *_HARDENED, *arguments]
    try:
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=_TIMEOUT, check=False)
    except OSError:
        return None


def _names(index: Index, prefix: str, environment: Mapping[str, str]) -> set[str]:
    try:
        content = content_of(index.path, follow=True)
    except OSError as error:
        if error.errno != errno.EFBIG:
            return set()  # git cannot read it either, and stages nothing
        content = b""
    if prefix and content[:8] in _PLAIN and _SPARSE not in content and not _is_split(index.path.parent):
        return _entries(content, os.fsencode(prefix))
    return _asked(index, prefix, environment)


def _is_split(git: Path) -> bool:
    """Whether entries may lie in a second file, which many indexes share."""
    with suppress(OSError):
        return any(name.startswith("sharedindex.") for name in os.listdir(git))  # noqa: PTH208
    return True


def _entries(content: bytes, prefix: bytes) -> set[str]:
    """The rest of each path that begins with the prefix. An entry: 40 bytes, the blob's id, flags, path, NUL.

    A path that merely contains the prefix is told by the flags, which hold the path's length.
    """
    found = set()
    at = content.find(prefix)
    while at >= 0:
        end = content.find(b"\0", at)
        path = content[at:end]
        flags = int.from_bytes(content[at - 2 : at], "big")
        extended = int.from_bytes(content[at - 4 : at - 2], "big")
        length = min(len(path), _NAME_LENGTH)
        if flags & _NAME_LENGTH == length or (extended & _EXTENDED and extended & _NAME_LENGTH == length):
            found.add(os.fsdecode(path[len(prefix) :]))
        at = content.find(prefix, at + 1)
    return found


def _asked(index: Index, prefix: str, environment: Mapping[str, str]) -> set[str]:
    import subprocess

    hint = f"git -C {index.top} status"
    try:
        done = ask(index.top, ["ls-files", "-z", "--", prefix or "."], environment)
    except subprocess.TimeoutExpired:
        raise UsageError(index.path, "git does not say what it tracks", hint) from None
    if done is None:
        return set()  # no git, nobody who stages
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().split("\n")[0][:200]
        raise UsageError(index.path, f"git cannot say what it tracks: {said}", hint)
    return {os.fsdecode(name)[len(prefix) :] for name in done.stdout.split(b"\0") if name}
