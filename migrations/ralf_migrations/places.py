"""Finds the files of a source: below the project or the folder that is named, at any depth, backups passed over."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

_PASSED_OVER = frozenset(
    {
        ".git",
        ".templates",
        "templates",
        "_templates",
        ".hg",
        ".svn",
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".tox",
    }
)
"""Folders that hold no source: those of programs, and of templates."""

_BACKUPS = ("*.backup", "*.backup.*", "*.bak", "*~", "*.orig")


@dataclass(frozen=True, slots=True)
class Found:
    """What was found.

    paths    the files, or folders, of the source, sorted
    strange  files that somebody named the folder of, which are none of the source
    backups  copies of such files, and folders of copies
    """

    paths: tuple[Path, ...]
    strange: tuple[Path, ...] = ()
    backups: tuple[Path, ...] = ()


@dataclass(slots=True)
class _Seen:
    paths: list[Path] = field(default_factory=list)
    strange: list[Path] = field(default_factory=list)
    backups: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Kind:
    """What the files of a source look like.

    names   patterns of their names, case aside
    looks   whether a file of another name is one, by what stands in it: asked of the files that lie directly in a
            folder which somebody named
    suffix  of the files that are asked
    """

    names: tuple[str, ...]
    suffix: str
    looks: Callable[[Path], bool]

    def is_named(self, name: str) -> bool:
        """Whether a file's name is one of the source's."""
        return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in self.names)


def is_backup(name: str) -> bool:
    """Whether a file or folder is a copy of something, by its name."""
    return any(fnmatchcase(name.lower(), pattern) for pattern in _BACKUPS)


def files(base: Path, kind: Kind, *, named: bool, store: Path) -> Found:
    """The files of a kind below `base`, or `base` itself where it is a file.

    named  whether somebody named `base`: then its files of other names are looked into
    store  ralf's own folder, which holds no source
    """
    if not base.is_dir():
        return Found((base,))
    seen = _Seen()
    for folder, names in _folders(base, store, seen):
        for name in names:
            path = folder / name
            if is_backup(name):
                if kind.is_named(_original(name)):
                    seen.backups.append(path)
            elif kind.is_named(name):
                seen.paths.append(path)
            elif named and folder == base and name.lower().endswith(kind.suffix):
                (seen.paths if kind.looks(path) else seen.strange).append(path)
    return Found(*(tuple(sorted(paths)) for paths in (seen.paths, seen.strange, seen.backups)))


def folders(base: Path, is_one: Callable[[Path, list[str], bool], bool], *, store: Path) -> Found:
    """The folders below `base` that are of the source, `base` itself included.

    is_one  asked of a folder, the names of its files, and whether it lies within one of the source
    """
    seen = _Seen()
    found: set[Path] = set()
    for folder, names in _folders(base, store, seen):
        if is_one(folder, names, not found.isdisjoint(folder.parents)):
            found.add(folder)
    return Found(tuple(sorted(found)), tuple(sorted(seen.strange)), tuple(sorted(seen.backups)))


def _folders(base: Path, store: Path, seen: _Seen) -> Iterator[tuple[Path, list[str]]]:
    """Every folder and the names of its files; links are not followed, a folder that cannot be read is strange."""
    for place, inner, names in os.walk(base, onerror=lambda error: seen.strange.append(Path(error.filename))):
        folder = Path(place)
        inner[:] = sorted(name for name in inner if name not in _PASSED_OVER and folder / name != store)
        seen.backups += [folder / name for name in inner if is_backup(name)]
        inner[:] = [name for name in inner if not is_backup(name)]
        yield folder, sorted(names)


def _original(name: str) -> str:
    """The name of the file that a backup is of: `DECISIONS.md.backup.2026` → `DECISIONS.md`."""
    for mark in (".backup", ".bak", ".orig", "~"):
        head, found, tail = name.partition(mark)
        if found:
            return head if "." in head else head + tail[tail.rfind(".") :] if "." in tail else head
    return name
