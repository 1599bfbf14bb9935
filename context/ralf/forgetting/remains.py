"""Where words still stand: reads every file below a folder, compressed ones too, as whoever looks for them would."""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ralf.document import parse
from ralf.errors import DamagedRouteFile
from ralf.files.opening import MAX_BYTES, content_of
from ralf.forgetting.wording import Wording
from ralf.storage import blobfiles, blobzip, journalparts
from ralf.tree import to_tree

_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EINVAL)


def remains(folder: Path, wording: Wording) -> list[Path]:
    """The files below `folder` in which the words stand, sorted; links are not followed."""
    found = []
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not Path(top, name).is_symlink()]
        found += [path for name in files if holds(path := Path(top, name), wording)]
    return sorted(found)


def holds(path: Path, wording: Wording) -> bool:
    """Whether the words stand in a file; one that is gone, or none, holds nothing. One that cannot be read, or is too
    large for that, may: nobody can say that they are gone.
    """
    try:
        content = content_of(path)
    except OSError as error:
        return error.errno not in _NO_FILE
    if not any(_stands_in(part, wording) for part in (content, *unpacked(content))):
        return False
    return path.suffix != ".md" or _is_in_route_file(path, content, wording)


def _is_in_route_file(path: Path, content: bytes, wording: Wording) -> bool:
    """Whether the words stand in a value of a route file; in two that follow each other they only seem to."""
    try:
        return _is_in(to_tree(parse(content, path)), wording)
    except DamagedRouteFile:
        return True


def unpacked(content: bytes) -> Iterator[bytes]:
    """What was compressed in a file's bytes, nothing for a plain one: of a damaged one, what can be had."""
    if content[:2] == b"PK":
        yield from map(text_of, blobzip.remains(content))
    elif content[:2] == b"\x1f\x8b":
        yield journalparts.unpacked(content, MAX_BYTES)
    elif content[:1] == b"\x78":
        yield journalparts.unpacked(content, MAX_BYTES, zlib.MAX_WBITS)


def text_of(member: blobzip.Member) -> bytes:
    """What a blob held in an archive: of a damaged one, what can be had."""
    return journalparts.unpacked(member.deflated, blobfiles.LARGEST, -zlib.MAX_WBITS)


def _stands_in(content: bytes, wording: Wording) -> bool:
    if not wording.stands_in(content.decode("utf-8", "replace")):
        return False
    plain = False
    for line in content.splitlines():
        try:
            tree = json.loads(line)
        except ValueError:
            tree, plain = line.decode("utf-8", "replace"), True
        if _is_in(tree, wording):
            return True
    return plain  # they stand over several lines; where each is JSON they only seem to, at the border of two values


def _is_in(tree: Any, wording: Wording) -> bool:
    if isinstance(tree, str):
        return wording.stands_in(tree)
    if isinstance(tree, dict):
        return any(_is_in(part, wording) for pair in tree.items() for part in pair)
    return isinstance(tree, list) and any(_is_in(inner, wording) for inner in tree)
