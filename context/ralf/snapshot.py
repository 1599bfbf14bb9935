"""A route's folded state in the cache, so that neither a read nor a write costs more as the journal grows.

Derived and checked: a snapshot begins with a sum of itself, and names the journal record that it ends with. One that is
missing, damaged or of another journal counts for nothing.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from ralf.context import Counts, RouteContext
from ralf.files import folders
from ralf.files.opening import content_of, ours_alone
from ralf.journal import MALFORMED
from ralf.model import Tombstone
from ralf.store import Token
from ralf.tree import Items, from_tree, outline

T = TypeVar("T")
VERSION = 6
KEPT_RENDERS = 16
MOST_SHOWN = 64 << 20
"""Bytes of a remembered context that are read, whatever its file makes itself out to be."""
MOST_ITEMS = 100_000
"""Items of one: a file's are a few hundred."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state after the record at `token`.

    renders  revision and digest of the last route files that were written, oldest first (`state.State`)
    """

    token: Token
    context: RouteContext
    renders: tuple[tuple[int, str], ...] = ()


def path_of(cache: Path, route: str) -> Path:
    """Where a route's snapshot lies."""
    return cache / "routes" / f"{route}.json"


_last: tuple[Path, bytes, Snapshot] | None = None
"""The snapshot that was read or written last, with its file's bytes: a write reads it twice. Nothing less tells a file
from any other, whose time may be made up, and which may have the number and the size of one that is gone.
"""


def load(cache: Path, route: str) -> Snapshot | None:
    """A route's snapshot, None where there is none that can be used."""
    global _last
    path = path_of(cache, route)
    last = _last  # another thread may put another route's there
    try:
        content = content_of(path)
        if last is None or last[:2] != (path, content):
            _, _, summed = content.partition(b"\n")
            if with_sum(summed) != content:
                return None
            counts, dropped, rest = summed.split(b"\n", 2)
            tree = _read(rest)
            if tree["v"] != VERSION:
                return None
            context = from_tree(RouteContext, tree["context"])
            context = replace(context, counts=_counts.read(counts), dropped=_dropped.read(dropped))
            renders = tuple((int(revision), str(digest)) for revision, digest in tree["renders"])
            last = _last = (path, content, Snapshot(str(tree["token"]), context, renders))
    except (OSError, *MALFORMED):
        return None
    return last[2]


def save(cache: Path, route: str, snapshot: Snapshot, *, shown: bool = True) -> None:
    """Keep a snapshot; only for who holds the route's lock.

    A cache that cannot be written costs time, not data: nothing is raised.

    shown  whether the route file is what we wrote; else the snapshot is made older than any file, which tells the list
    """
    snapshot = replace(snapshot, renders=snapshot.renders[-KEPT_RENDERS:])
    tree = {
        "v": VERSION,
        "token": snapshot.token,
        "renders": [list(render) for render in snapshot.renders],
        "context": outline(replace(snapshot.context, dropped=())),
    }
    global _last
    path = path_of(cache, route)
    temporary = path.with_name(f".{path.name}.tmp")  # one name: who holds the route's lock removes a dead writer's
    with suppress(OSError):
        folders.make(path.parent)
        try:
            temporary.unlink(missing_ok=True)
            counts, dropped = _counts.written(snapshot.context.counts), _dropped.written(snapshot.context.dropped)
            content = with_sum(b"\n".join((counts, dropped, _written(tree))))
            with open(temporary, "xb", opener=ours_alone) as file:
                file.write(content)
            if not shown:
                os.utime(temporary, ns=(0, 0))
            temporary.replace(path)
            _last = (path, content, snapshot)
        finally:
            temporary.unlink(missing_ok=True)


def with_sum(content: bytes) -> bytes:
    """What stands in a snapshot's file, with its sum before it."""
    return b"%08x\n%s" % (zlib.crc32(content), content)


class _Part(Generic[T]):
    """A part of a snapshot that mostly stays from one write to the next: of those that were read or written last the
    values are known by their bytes, and the other way round.
    """

    def __init__(self, of_tree: Callable[[Any], T], tree_of: Callable[[T], object]) -> None:
        self._of_tree = of_tree
        self._tree_of = tree_of
        self._last: tuple[tuple[T, bytes], ...] = ()  # replaced as a whole: another thread may be looking

    def read(self, written: bytes) -> T:
        """The value of some bytes; one of `MALFORMED` where they have none."""
        for value, known in self._last:
            if known == written:
                return value
        return self._remember(self._of_tree(json.loads(written)), written)[0]

    def written(self, value: T) -> bytes:
        """The bytes of a value, on one line."""
        for known, written in self._last:
            if known is value:
                return written
        return self._remember(value, json.dumps(self._tree_of(value), separators=(",", ":")).encode())[1]

    def _remember(self, value: T, written: bytes) -> tuple[T, bytes]:
        self._last = ((value, written), *self._last[: _ROUTES - 1])
        return value, written


_ROUTES = 4  # that one process works at in turns


def _counts_of(tree: dict[str, int]) -> Counts:
    if not {int}.issuperset(map(type, tree.values())):
        raise ValueError("a count is a whole number")
    return tree


def _stones_of(rows: list[list[Any]]) -> tuple[Tombstone, ...]:
    return tuple(_stone(*row) for row in rows)


def _stone(label: str, kind: str, said: str, words: str, extra: Mapping[str, Any]) -> Tombstone:
    if not all(isinstance(text, str) for text in (label, kind, said, words)):
        raise TypeError("a tombstone is text")
    return Tombstone(label, kind, said, words, dict(extra))


def _rows_of(stones: tuple[Tombstone, ...]) -> list[list[Any]]:
    return [[stone.id, stone.kind, stone.said, stone.words, stone.extra] for stone in stones]


_counts: _Part[Counts] = _Part(_counts_of, dict)
_dropped: _Part[tuple[Tombstone, ...]] = _Part(_stones_of, _rows_of)


_ITEMS = "#items"
_ALIKE = re.compile("#+items")


def _written(tree: Any) -> bytes:
    """An outline: JSON on one line, then the texts of all items as they are, one a line."""
    texts: list[str] = []
    head = json.dumps(_marked(tree, texts), ensure_ascii=False, separators=(",", ":"))
    return "\n".join((head, *texts)).encode()


def _read(content: bytes) -> Any:
    """What `_written` made the bytes of."""
    if content.count(b"\n") > MOST_ITEMS:
        raise ValueError("more items than any context has")
    head, *texts = content.decode().split("\n")
    return json.loads(head, object_hook=partial(_unmarked, iter(texts)))


def _marked(tree: Any, texts: list[str]) -> Any:
    """An outline as JSON can hold it, its items among the texts, in order: how many. What a person calls so has another
    mark.
    """
    if isinstance(tree, dict):
        return {f"#{key}" if _ALIKE.fullmatch(key) else key: _marked(inner, texts) for key, inner in tree.items()}
    if tree.__class__ is Items:
        texts += tree
        return {_ITEMS: len(tree)}
    return [_marked(inner, texts) for inner in tree] if isinstance(tree, list) else tree


def _unmarked(texts: Iterator[str], tree: dict[str, Any]) -> Any:
    if _ITEMS in tree:
        items = Items(
            islice(texts, tree[_ITEMS])
        )  # each stands in one place: what is read is never more than was written
        if len(items) != tree[_ITEMS]:
            raise ValueError("texts are missing")
        return items
    return {key[1:] if _ALIKE.fullmatch(key) else key: inner for key, inner in tree.items()}


class Shown(NamedTuple):
    """The context that a route file showed, and the token of the journal's record of that revision."""

    context: RouteContext
    token: Token


def keep_shown(cache: Path, route: str, context: RouteContext, token: Token) -> None:
    """Remember what a route file shows: the base of an edit of it, which need not be folded for that."""
    path = _shown_path(cache, route, context.revision)
    if path.parent.is_symlink():
        return
    with suppress(OSError, ValueError):
        folders.make(path.parent)
        path.unlink(missing_ok=True)
        with open(path, "xb", opener=ours_alone) as file:  # a new file: never through a link that somebody laid
            file.write(zlib.compress(_written({"token": token, "context": outline(context)}), 1))
        revisions = sorted(int(name.split(".")[0]) for name in os.listdir(path.parent))  # noqa: PTH208
        for old in revisions[:-KEPT_RENDERS]:
            _shown_path(cache, route, old).unlink(missing_ok=True)


def shown_at(cache: Path, route: str, revision: int) -> Shown | None:
    """What the route file of a revision showed, None where it is not remembered."""
    try:
        machine = zlib.decompressobj()
        content = machine.decompress(content_of(_shown_path(cache, route, revision)), MOST_SHOWN)
        if not machine.eof:
            return None
        tree = _read(content)
        return Shown(from_tree(RouteContext, tree["context"]), str(tree["token"]))
    except (OSError, zlib.error, *MALFORMED):
        return None


def _shown_path(cache: Path, route: str, revision: int) -> Path:
    return cache / "renders" / route / f"{revision}.json.z"
