"""Making folders that are for this user only."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o700
"""The mode of a folder of the store."""

NOT_WRITABLE_BY_OTHERS = 0o755
"""The mode of a folder outside of the store, which other programs of this machine may have to read; the umask may take
more away.
"""


def make(folder: Path, *, mode: int = PRIVATE) -> None:
    """Make a folder and its missing parents, whatever the umask allows others. A folder that exists keeps its mode.

    OSError, also where something else than a folder lies there.
    """
    try:
        os.mkdir(folder, mode)  # noqa: PTH102  # `Path.mkdir` gives the parents the mode of the umask
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make(folder.parent, mode=mode)
        with suppress(FileExistsError):  # another process makes it, too
            os.mkdir(folder, mode)  # noqa: PTH102
    except FileExistsError:
        if not folder.is_dir():
            raise


def tighten(folder: Path) -> None:
    """Take the rights of others from a folder of this user; anything else is left as it is. OSError."""
    found = os.lstat(folder)
    if not (stat.S_ISDIR(found.st_mode) and found.st_mode & 0o077 and found.st_uid == os.geteuid()):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, PRIVATE)
    finally:
        os.close(descriptor)
