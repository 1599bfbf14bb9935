"""Files of the user, of which ralf writes a part: read whole, replaced only where nobody else has changed them."""

from __future__ import annotations

import os
from pathlib import Path

from ralf.errors import Busy, UsageError
from ralf.storage import durable
from ralf.storage.files import content_of

MOST = 16 << 20
"""Bytes of such a file."""


def content(path: Path, root: Path | None = None) -> bytes | None:
    """A file's bytes, None where there is none; UsageError for one that is not simply a file here.

    root  the project in which it may lie: no folder on the way down to the file may be a link
    """
    below = [place for place in path.parents if root is not None and root in place.parents]
    for place in (path.parent, *below, path):
        if place.is_symlink():
            what = "is a symbolic link: what it leads to is not changed"
            raise UsageError(place, what, f"put a {'file' if place == path else 'folder'} in its place")
    try:
        if path.stat().st_nlink > 1 and path.is_file():
            raise UsageError(path, "has a second name: it is not changed under this one", f"copy it: {path}")
        return content_of(path, most=MOST)
    except FileNotFoundError:
        return None


def decoded(path: Path, found: bytes | None) -> str | None:
    """A file's bytes as text; UsageError for what is no UTF-8."""
    if found is None:
        return None
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise UsageError(path, "is not UTF-8: nothing can be added to it", "save it as UTF-8") from None


def replace(path: Path, before: bytes | None, after: bytes, mode: int | None) -> None:
    """Write a file in the place of what was seen there; Busy where somebody has saved another one meanwhile.

    mode  None: that of the file
    """
    with durable.naming(path):
        new = durable.made_beside(path, [after], mode=mode or 0o600, alike=mode is None)
        aside = new.with_name(f"{new.name}.aside")
        durable.swap(new, path, aside)
        if os.path.lexists(new):
            if new.is_symlink() or content_of(new, most=MOST) != before:
                durable.swap(new, path, aside)
                new.unlink()
                raise Busy(path, "was changed meanwhile: left as it is", "try again")
            new.unlink()
        durable.sync_folder(path.parent)
