"""What a repair kept because it could not be read, and the words in it: for a forget."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from contextlib import suppress
from pathlib import Path

from ralf.maintenance.purge import unpacked
from ralf.project import Project
from ralf.storage import durable
from ralf.storage.files import content_of
from ralf.storage.journal import Digest
from ralf.transcripts.events import digests_in


def of_route(project: Project, route: str) -> list[Path]:
    """What a repair kept of a route because it could not be read: its file, of its journal, and what told of a move."""
    folder = project.folder / "damaged"
    ours = re.compile(rf"{re.escape(route)}\.(?:md|jsonl)(?:\.[0-9a-f]+)?")
    found = [path for name in ("routes", "journal/routes") for path in (folder / name).glob("*")]
    parts = [
        path for path in (folder / "archive/journal/routes" / route).glob("*") if not durable.is_temporary(path.name)
    ]
    of_moves = re.compile(rf"{re.escape(route.lower())}\.jsonl(?:\.[0-9a-f]+)?")
    moves = [path for path in (folder / "journal/moved").glob("*") if of_moves.fullmatch(path.name)]
    return sorted([*(path for path in found if ours.fullmatch(path.name)), *moves, *parts])


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
    folder = project.folder / "damaged"
    blobs = (path for name in ("blobs", "archive/blobs") for path in (folder / name).glob("??/*"))
    return sorted(path for path in blobs if path.name.partition(".")[0] in digests)
