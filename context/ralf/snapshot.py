"""A route's folded state in the cache, so that neither a read nor a write costs more as the journal grows.

Derived and checked: a snapshot names the journal record that it ends with. One that is missing, torn or of another
journal counts for nothing.
"""

from __future__ import annotations

import json
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ralf.context import RouteContext
from ralf.store import Token
from ralf.tree import BadTree, from_tree, to_tree

VERSION = 1
KEPT_RENDERS = 8


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state after the record at `token`.

    renders  revision and digest of the last route files that were written, oldest first
    """

    token: Token
    context: RouteContext
    renders: tuple[tuple[int, str], ...] = ()


def path_of(cache: Path, route: str) -> Path:
    """Where a route's snapshot lies."""
    return cache / "routes" / f"{route}.json"


def load(cache: Path, route: str) -> Snapshot | None:
    """A route's snapshot, None where there is none that can be used."""
    try:
        tree = json.loads(path_of(cache, route).read_bytes())
        if tree["v"] != VERSION:
            return None
        context = replace(from_tree(RouteContext, tree["context"]), counts=tree["counts"])
        renders = tuple((int(revision), str(digest)) for revision, digest in tree["renders"])
        return Snapshot(str(tree["token"]), context, renders)
    except (OSError, ValueError, KeyError, TypeError, BadTree):
        return None


def save(cache: Path, route: str, snapshot: Snapshot, *, shown: bool = True) -> None:
    """Keep a snapshot. A cache that cannot be written costs time, not data: nothing is raised.

    shown  whether the route file is what we wrote; else the snapshot is made older than any file, which tells the list
    """
    tree = {
        "v": VERSION,
        "token": snapshot.token,
        "renders": [list(render) for render in snapshot.renders[-KEPT_RENDERS:]],
        "counts": dict(snapshot.context.counts),
        "context": to_tree(snapshot.context),
    }
    path = path_of(cache, route)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(json.dumps(tree, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
            if not shown:
                os.utime(temporary, ns=(0, 0))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def keep_render(cache: Path, route: str, revision: int, content: bytes) -> None:
    """Remember the route file of a revision, so that an edit of it need not be compared with the folded journal."""
    path = _render_path(cache, route, revision)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.compress(content, 1))
        _render_path(cache, route, revision - KEPT_RENDERS).unlink(missing_ok=True)


def render_of(cache: Path, route: str, revision: int) -> bytes | None:
    """The route file of a revision as it was written, None where it is not remembered."""
    try:
        return zlib.decompress(_render_path(cache, route, revision).read_bytes())
    except (OSError, zlib.error):
        return None


def _render_path(cache: Path, route: str, revision: int) -> Path:
    return cache / "renders" / route / f"{revision}.md.z"
