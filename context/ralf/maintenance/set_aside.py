"""What a repair kept because it could not be read, and the words in it: for a forget."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from contextlib import suppress
from pathlib import Path

from ralf.maintenance.purge import unpacked
from ralf.project import Project
from ralf.storage.check import DAMAGED
from ralf.storage.files import content_of
from ralf.storage.journal import Digest
from ralf.transcripts.events import digests_in

_FOLDERS = ("journal", "routes", "memory", "blobs")


def all_kept(project: Project) -> list[Path]:
    """All that a repair kept."""
    return sorted(path for name in _FOLDERS for path in (project.folder / name).rglob(f"*{DAMAGED}"))


def of_route(project: Project, route: str) -> list[Path]:
    """What a repair kept of a route: of its file, of its journal, and of what told of a move."""
    ours = re.compile(rf"{re.escape(route)}(?:\.md|\.jsonl(?:\.gz)?)?(?:\.\d+)?{re.escape(DAMAGED)}", re.I)
    folders = ("routes", "archive", "moved")
    return [path for path in all_kept(project) if path.parent.name in folders and ours.fullmatch(path.name)]


def digests_named(paths: Iterable[Path]) -> set[Digest]:
    """The digests that are named in files, as far as they can be read."""
    found = set()
    for path in paths:
        with suppress(OSError):
            content = content_of(path)
            found |= {digest for part in (content, *unpacked(content)) for digest in digests_in(part)}
    return found


def blobs(project: Project, digests: Container[Digest]) -> list[Path]:
    """The files that a repair kept and in which some of these blobs lie."""
    return [path for path in all_kept(project) if path.name.partition(".")[0] in digests]
