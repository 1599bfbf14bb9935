"""Which user a store belongs to. Another user's is neither read nor written: they could change it at any moment.

As git does it: for root the user who runs sudo counts, too, and the person may name projects as safe, in the variable
`RALF_SAFE_DIRECTORIES` or in a file of their own, `$XDG_CONFIG_HOME/ralf/safe_directories`, one absolute path a line.
"""

from __future__ import annotations

import os
import shlex
import stat
from contextlib import suppress
from pathlib import Path

from ralf import environment
from ralf.errors import OtherOwner
from ralf.files import ownfile

_READABLE = 0o044
SAFE = "safe_directories"


def check(folder: Path) -> None:
    """OtherOwner where a store, or the folder that it lies in, belongs to another user. UsageError, Damaged where the
    file of the projects that are safe cannot be used.

    folder  of the store; need not exist
    """
    mine = own_ids()
    for path, owner in _owners(folder):
        if owner not in mine and not _is_safe(folder.parents[1]):
            root = shlex.quote(os.path.realpath(folder.parents[1]))
            what = f"belongs to {_name(owner)}, not to {_name(os.geteuid())}: not used"
            raise OtherOwner(path, what, f"if that is well: export RALF_SAFE_DIRECTORIES={root}")


def own_ids() -> set[int]:
    """The users that this one is: itself, and for root the one that it was called by."""
    user = os.geteuid()
    through_sudo = environment.sudo_user() if user == 0 else None
    return {user} if through_sudo is None else {user, through_sudo}


def _owners(folder: Path) -> list[tuple[str, int]]:
    """The owners of the store's folder, of the one that it lies in, and of the folders in it."""
    found = []
    for path in (os.fspath(folder.parent), os.fspath(folder)):
        with suppress(OSError):  # not there, or not to be looked at: then it is not used either
            status = os.lstat(path)
            found.append((path, status.st_uid))
            if stat.S_ISLNK(status.st_mode):  # its owner says where it leads
                found.append((path, os.stat(path).st_uid))  # noqa: PTH116
    with suppress(OSError), os.scandir(folder) as entries:
        folders = (entry for entry in entries if entry.is_dir(follow_symlinks=False))
        found.extend((entry.path, entry.stat(follow_symlinks=False).st_uid) for entry in folders)
    return found


def _is_safe(root: Path) -> bool:
    real = os.path.realpath(root)
    return real in environment.safe_directories() or real in _named()


def _named() -> list[str]:
    """The projects that the user's own file names, real paths."""
    folder = environment.user_folder()
    if folder is None or not os.path.exists(folder / SAFE):  # noqa: PTH110  # or it may not be looked into
        return []
    text = ownfile.read(folder / SAFE, others=_READABLE)
    lines = (line.strip() for line in (text or "").splitlines())
    return [os.path.realpath(line) for line in lines if line.startswith("/")]


def _name(user: int) -> str:
    import pwd  # only a refusal pays for it

    try:
        return f"{pwd.getpwuid(user).pw_name} (user {user})"
    except KeyError:
        return f"user {user}"
