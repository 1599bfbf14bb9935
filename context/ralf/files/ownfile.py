"""A file that must be the user's own: nobody else could have written it, and it did not come with a clone."""

from __future__ import annotations

import errno
import os
import stat
from codecs import BOM_UTF8
from collections.abc import Mapping
from pathlib import Path

from ralf.errors import Damaged, UsageError
from ralf.files.opening import content_of

_NOT_TRACKED = 1  # git's exit status for it
_MOST_BYTES = 1 << 20


def read(path: Path, *, others: int = 0) -> str | None:
    """The file's text, None where there is none; UsageError when it is not the user's alone, Damaged when not UTF-8.

    others  the bits of its mode that other users may have
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        what = "is a symbolic link: not read" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        raise UsageError(path, what, f"write a file of its own: {path}") from None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(path, "is no regular file", f"write a file of its own: {path}")
        if found.st_uid != os.geteuid():
            raise UsageError(path, "belongs to somebody else: not read", f"chown {os.geteuid()} {path}")
        # A file that a clone has made is refused as well, unless the umask is strict: `check_not_cloned`.
        if found.st_mode & 0o077 & ~others:
            raise UsageError(path, "others may read or write it: not read", f"chmod 600 {path}")
        try:
            return file.read(_MOST_BYTES).removeprefix(BOM_UTF8).decode()
        except UnicodeDecodeError:
            raise Damaged(path, "not UTF-8", "mend the file: one `key: value` a line") from None


def check_not_cloned(path: Path, environment: Mapping[str, str]) -> None:
    """UsageError when git tracks the file, or cannot say: then whoever wrote the repository may have written it."""
    if not path.exists() or not any((folder / ".git").exists() for folder in path.parents):
        return
    import subprocess  # only who asks git pays for it

    from ralf.files import gitindex

    try:
        done = gitindex.ask(path.parent, ["ls-files", "--error-unmatch", "--", path.name], environment)
    except subprocess.TimeoutExpired:
        raise UsageError(path, "git does not say whether it is committed", f"git -C {path.parent} status") from None
    if done is None:
        return  # no git, no clone
    if done.returncode == 0:
        raise UsageError(path, "is committed: nothing in it is run", f"git rm --cached {path}")
    if done.returncode != _NOT_TRACKED:
        said = done.stderr.decode("utf-8", "replace").strip().split("\n")[0][:200]
        raise UsageError(path, f"git cannot say whether it is committed: {said}", f"git -C {path.parent} status")


def may_be_cloned(path: Path) -> bool:
    """Whether a repository around the file may track it: its index tells most that do not, without asking git."""
    return any(_may_track(folder / ".git", path.name) for folder in path.parents)


def _may_track(git: Path, name: str) -> bool:
    try:
        index = content_of(git / "index", follow=True)
    except FileNotFoundError:
        return False
    except OSError:  # a linked worktree has its index elsewhere
        return True
    plain = index[:8] in (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3") and b"link" not in index[-4096:]
    return not plain or name.encode() in index
