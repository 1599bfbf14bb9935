"""What lies in the place of a document's file: a render of ours, an edit of one, or something new."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ralf.document.family import Parsed
from ralf.document.place import Place
from ralf.document.state import State, digest_of, state_at
from ralf.errors import Damaged, DamagedJournal, NotFound
from ralf.storage.journal import Store
from ralf.text.frozen import NamedTuple

OURS, EDITED, NEW, DAMAGED, HALF = "ours", "edited", "new", "damaged", "half"

_SETTLED = 2.0  # seconds after which a file without its last line is no save any more that is under way


class Judged(NamedTuple):
    """What a file is.

    status  ours: nothing in it is new; edited; new: nobody knows whose; damaged: it cannot be read; half: being saved
    body    of the record that absorbs an edit, or what is new once that is accepted
    what    what is to be said of a file that is left as it is
    stamp   of the render that was edited, "" where it has none
    error   why it cannot be read
    """

    status: str
    body: Mapping[str, Any] | None = None
    what: str = ""
    stamp: str = ""
    error: Damaged | None = None


def judge(
    place: Place,
    state: State,
    store: Store,
    stream: str,
    content: bytes,
    *,
    accept: bool = False,
    displaced: Path | None = None,
) -> Judged:
    """What some bytes are that lie in the place of a file, or did.

    accept     whether the user has looked at what is new: then it counts as an edit
    displaced  where they lie now that a write has displaced them
    """
    digest = digest_of(content)
    if not content and displaced is not None and _is_young(displaced):
        return Judged(HALF, what=f"{displaced}: is empty, as if it were being saved: the next write looks again")
    if not content or digest == state.render or state.has_absorbed(digest):
        return Judged(OURS)
    try:
        found = state.family.parse(content, place.file)
        stamp = str(found.stamp or "")
        is_own = found.stamp is not None and found.stamp.mark == state.mark and state.revision > 0
        rendered = _render_of(state, store, stream, found) if is_own else b""
        base = _base_of(place, state, store, found, rendered) if is_own else None
    except Damaged as error:
        is_half = displaced is not None and _is_young(displaced)
        return Judged(HALF if is_half else DAMAGED, what=f"{error}; {error.hint}", error=error)
    path = displaced or place.file
    half = f"{path}: has no last line, as if it were being saved: the next write looks again"
    if base is not None and base.tree == found.tree:
        return Judged(OURS)
    if is_own and base is None and displaced is not None:  # the file that took its place has all that it had
        return Judged(NEW, what="it comes from a revision that the journal has lost")
    if rendered and _is_torn(content, rendered):
        return Judged(HALF, what=half) if content != rendered and _is_young(path) else Judged(OURS)
    if found.stamp is None and _is_render(state, store, stream, digest):
        return Judged(OURS)
    if not accept and not (is_own and not place.brought(content, partial(_is_known, place, state, store, stream))):
        return Judged(NEW, what=f"{place.file}: was not written by your ralf: left as it is")
    is_whole = found.is_whole and found.stamp is not None and found.stamp.layout == state.family.layout
    if not found.is_whole and _is_young(path):
        return Judged(HALF, what=half)
    tree = base.tree if base is not None else None
    body = state.family.changes(tree, found.tree, state.rows, is_whole=is_whole and base is not None)
    return Judged(EDITED if body else OURS, body, stamp=stamp)


def _base_of(place: Place, state: State, store: Store, found: Parsed, rendered: bytes) -> Parsed | None:
    """What somebody saw before they saved: the newest save of the same stamp, else the render; None for nothing."""
    digest = state.save_of(str(found.stamp))
    if digest:
        try:
            with store.open_blob(digest) as file:
                return state.family.parse(file.read(), place.file)
        except (NotFound, Damaged):
            pass
    return state.family.parse(rendered, place.file) if rendered else None


def _render_of(state: State, store: Store, stream: str, found: Parsed) -> bytes:
    """The render that a file comes from, b"" where the journal has no such revision."""
    if found.stamp is None:
        return b""
    with suppress(DamagedJournal):
        revision = found.stamp.revision
        then = state.at(revision) or state_at(state.family, store, stream, revision)
        return then.shown() if then is not None else b""
    return b""


def _is_render(state: State, store: Store, stream: str, digest: str) -> bool:
    """Whether a record says that just this file showed it: one of an earlier version, without a stamp."""
    try:
        records = (state.family.decoded(stream, entry) for entry in store.read(stream))
        return any(record is not None and record.render == digest for record in records)
    except DamagedJournal:
        return False


def _is_torn(content: bytes, rendered: bytes) -> bool:
    """Whether a file is what a loss of power has left of a render: its beginning, or with holes in it."""
    rest = rendered[: len(content)]
    if b"\0" not in content:
        return content == rest
    return len(rest) == len(content) and all(one in (0, other) for one, other in zip(content, rest, strict=True))


def _is_known(place: Place, state: State, store: Store, stream: str, theirs: bytes) -> bool:
    """Whether what git has of a file is this user's: a render, or a save that was absorbed."""
    if digest_of(theirs) == state.render or state.has_absorbed(digest_of(theirs)):
        return True
    try:
        found = state.family.parse(theirs, place.file)
    except Damaged:
        return False
    return theirs == _render_of(state, store, stream, found)


def _is_young(path: Path) -> bool:
    try:
        return abs(time.time() - path.stat().st_mtime) < _SETTLED
    except OSError:
        return False
