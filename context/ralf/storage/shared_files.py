"""The files that clones share through git, one a record: `shared/CLONE/COUNTER-DIGEST.json`, never changed but by a
forget. Branches, merges, squashes, rebases and copies of them do not conflict.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
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

_HEAD = ("v", "clone", "counter", "at", "by", "revision")

FORGOTTEN = "forgotten"
"""The route of a file whose route was forgotten: it keeps its place among those of its clone."""

_MOST_BYTES = 64 << 10  # of one file


class SharedFile(NamedTuple):
    """One file: its path below the folder, the clone that wrote it, its place among that one's, and what it says."""

    path: str
    clone: str
    counter: int
    route: str
    tree: Mapping[str, Any]

    @property
    def has_content(self) -> bool:
        """Whether it says anything: its route was not forgotten."""
        return bool(self.tree.keys() - {*_HEAD, "route"})


def write(folder: Path, clone: str, tree: Mapping[str, Any]) -> None:
    """Write the next file of a clone; `tree` has a `route`. OSError."""
    own = folder / clone
    files.make(own, mode=0o755)
    names = (_PATH.match(f"{clone}/{path.name}") for path in own.iterdir())
    counter = 1 + max((int(found["counter"]) for found in names if found), default=0)
    _put(
        own,
        counter,
        _text({"v": 1, "clone": clone, "counter": counter, **tree}),
    )


def _text(tree: Mapping[str, Any]) -> str:
    return json.dumps(tree, ensure_ascii=False, indent=1) + "\n"


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


def of_routes(folder: Path, routes: Collection[str]) -> list[Path]:
    """The files of routes, whoever wrote them, that have not been emptied."""
    names = {route.casefold() for route in routes}
    return [folder / file.path for file in read(folder)[0] if file.route.casefold() in names]


def empty(folder: Path, routes: Collection[str]) -> None:
    """Take everything out of the files of routes, whoever wrote them. OSError."""
    names = {route.casefold() for route in routes}

    def emptied(text: str) -> str:
        tree = json.loads(text)
        if str(tree["route"]).casefold() not in names:
            return text
        return _text({key: tree[key] for key in _HEAD if key in tree} | {"route": FORGOTTEN})

    rewrite(folder, emptied)


def read(folder: Path) -> tuple[list[SharedFile], list[str]]:
    """The files of all clones that say anything; and the paths of those whose name or folder claims something else."""
    found, refused = list[SharedFile](), list[str]()
    for path in sorted(folder.glob("*/*")):
        name = f"{path.parent.name}/{path.name}"
        try:
            file = _parsed(name, content_of(path, most=_MOST_BYTES))
            found += [file] * file.has_content
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
