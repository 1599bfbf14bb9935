"""The files that clones share through git, one a record: `shared/CLONE/COUNTER-DIGEST.json`, never changed but by a
forget. Branches, merges, squashes, rebases and copies of them do not conflict.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ralf.storage import durable, files
from ralf.storage.files import content_of
from ralf.storage.journal import MALFORMED
from ralf.text import cleaning
from ralf.text.cleaning import clean, one_line
from ralf.text.patterns import regex

FOLDER = "shared"

_NAME = regex(r"(?P<counter>\d{6,9})-(?P<digest>[0-9a-f]{16})\.json\Z")

_CLONE = regex(r"[0-9a-f]{16}\Z")

_MOST_BYTES = 64 << 10  # of one file

_MOST_FILES = 20_000  # of one clone


class SharedFile(NamedTuple):
    """One file: its path below the folder, the clone that wrote it, its place among that one's, and what it says."""

    path: str
    clone: str
    counter: int
    route: str
    tree: Mapping[str, Any]


def write(folder: Path, clone: str, tree: Mapping[str, Any]) -> None:
    """Write the next file of a clone; `tree` has a `route`. OSError."""
    own = folder / clone
    files.make(own, mode=0o755)
    names = (_NAME.match(name) for name in os.listdir(own))  # noqa: PTH208  # one call
    counter = 1 + max((int(found["counter"]) for found in names if found), default=0)
    made = {"v": 1, "clone": clone, "counter": counter, **tree}
    content = json.dumps(made, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n"
    durable.write(own / f"{counter:06d}-{hashlib.sha256(content).hexdigest()[:16]}.json", content, mode=0o644)


def rewrite(folder: Path, change: Callable[[str], str]) -> list[Path]:
    """Replace the texts of files, whoever wrote them, as `change` says; the files that are gone. OSError."""
    gone = []
    for file in read(folder)[0]:
        path = folder / file.path
        text = path.read_text(encoding="utf-8")
        made = change(text)
        if made != text:
            digest = hashlib.sha256(made.encode()).hexdigest()[:16]
            durable.write(path.with_name(f"{file.counter:06d}-{digest}.json"), made.encode(), mode=0o644)
            gone.append(path)
    durable.removed(gone)
    return gone


def read(folder: Path) -> tuple[list[SharedFile], list[str]]:
    """The files of all clones; and those that are not what they claim to be, each with what is to be said of it."""
    found, refused = list[SharedFile](), list[str]()
    with suppress(OSError):
        for clone in sorted(os.listdir(folder)):  # noqa: PTH208  # one call
            if _CLONE.match(clone):
                _read_clone(folder, clone, found, refused)
            else:
                refused.append(f"{FOLDER}/{one_line(clean(clone))[:80]}: is no clone's folder")
    return found, refused


def _read_clone(folder: Path, clone: str, found: list[SharedFile], refused: list[str]) -> None:
    try:
        names = sorted(os.listdir(folder / clone))  # noqa: PTH208  # one call
    except OSError:
        return
    if len(names) > _MOST_FILES:
        refused.append(f"{FOLDER}/{clone}: has {len(names):,} files, and {_MOST_FILES:,} are read")
    for name in names[:_MOST_FILES]:
        try:
            found.append(_parsed(clone, name, content_of(folder / clone / name, most=_MOST_BYTES)))
        except (OSError, *MALFORMED):
            refused.append(f"{FOLDER}/{clone}/{one_line(clean(name))[:80]}: is not what its name and folder claim")


def _parsed(clone: str, name: str, content: bytes) -> SharedFile:
    """A file; ValueError or another of `MALFORMED` for one that is not what its name and folder claim."""
    match = _NAME.match(name)
    if match is None or hashlib.sha256(content).hexdigest()[:16] != match["digest"]:
        raise ValueError(name)
    tree = dict(json.loads(content))
    counter, route = int(match["counter"]), str(tree["route"])
    if (tree["clone"], tree["counter"]) != (clone, counter) or not cleaning.is_valid(route):
        raise ValueError(name)
    return SharedFile(f"{clone}/{name}", clone, counter, route, tree)
