"""A folder that is kept in memory, to be laid out again and again: a harness does that before each of its cases."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path


class Kept:
    """The folders and files below a folder, as they are now: bytes, modes and times. It holds no links."""

    def __init__(self, folder: Path) -> None:
        found = [Path(at, name) for at, folders, files in os.walk(folder) for name in (*folders, *files)]
        self._folders = [(str(path.relative_to(folder)), path.stat().st_mode) for path in found if path.is_dir()]
        self._files = [(str(path.relative_to(folder)), path.stat(), path.read_bytes()) for path in _files(found)]

    def lay(self, root: Path) -> None:
        """Make a folder what this one was; what lay there is gone."""
        shutil.rmtree(root, ignore_errors=True)
        os.mkdir(root)
        for name, mode in self._folders:
            os.mkdir(f"{root}/{name}")
            os.chmod(f"{root}/{name}", mode & 0o7777)
        for name, stat, content in self._files:
            path = f"{root}/{name}"
            with open(path, "wb", buffering=0) as file:
                file.write(content)
                os.fchmod(file.fileno(), stat.st_mode & 0o7777)
                os.utime(file.fileno(), ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _files(found: list[Path]) -> Iterator[Path]:
    for path in found:
        if path.is_symlink():
            raise ValueError(f"{path}: a link, which is not kept")
        if path.is_file():
            yield path
