"""The files that clones share through git, one a record: `shared/CLONE/COUNTER-DIGEST.json`, never changed but by a
forget. Branches, merges, squashes, rebases and copies of them do not conflict.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ralf.storage import durable, files
from ralf.storage.files import content_of
from ralf.storage.journal import MALFORMED
from ralf.text import cleaning, digests
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.frozen import NamedTuple
from ralf.text.patterns import regex

FOLDER = "shared"

_PATH = regex(r"(?P<clone>[0-9a-f]{16})/(?P<counter>\d{6,9})-(?P<digest>[0-9a-f]{40})\.json\Z")

_MOST_BYTES = 64 << 10  # of one file


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
    names = (_PATH.match(f"{clone}/{path.name}") for path in own.iterdir())
    counter = 1 + max((int(found["counter"]) for found in names if found), default=0)
    _put(
        own,
        counter,
        json.dumps({"v": 1, "clone": clone, "counter": counter, **tree}, ensure_ascii=False, indent=1) + "\n",
    )


def _put(own: Path, counter: int, text: str) -> None:
    content = text.encode("utf-8", "replace")
    durable.write(own / f"{counter:06d}-{digests.sha256(content).hexdigest()[:40]}.json", content, mode=0o644)


def rewrite(folder: Path, change: Callable[[str], str]) -> list[Path]:
    """Replace the texts of files, whoever wrote them, as `change` says; the files that are gone. OSError."""
    gone = []
    for file in read(folder)[0]:
        path = folder / file.path
        text = path.read_text(encoding="utf-8")
        made = change(text)
        if made != text:
            _put(path.parent, file.counter, made)
            gone.append(path)
    durable.removed(gone)
    return gone


def read(folder: Path) -> tuple[list[SharedFile], list[str]]:
    """The files of all clones; and the paths of those that are not what their name and folder claim."""
    found, refused = list[SharedFile](), list[str]()
    for path in sorted(folder.glob("*/*")):
        name = f"{path.parent.name}/{path.name}"
        try:
            found.append(_parsed(name, content_of(path, most=_MOST_BYTES)))
        except (OSError, *MALFORMED):
            refused.append(f"{FOLDER}/{trimmed(one_line(clean(name)), _LONGEST)}")
    return found, refused


_LONGEST = 100  # characters of a path that is told


def _parsed(name: str, content: bytes) -> SharedFile:
    """A file; ValueError or another of `MALFORMED` for one that is not what its name and folder claim."""
    match = _PATH.match(name)
    if match is None or digests.sha256(content).hexdigest()[:40] != match["digest"]:
        raise ValueError(name)
    tree = dict(json.loads(content))
    clone, counter, route = match["clone"], int(match["counter"]), str(tree["route"])
    if (tree["clone"], tree["counter"]) != (clone, counter) or not cleaning.is_valid(route):
        raise ValueError(name)
    return SharedFile(name, clone, counter, route, tree)
