"""The bytes that callers give, as they stand in records: text where they are UTF-8, else base64, large ones as blobs.

They are opaque: no redactor, index, brief or message looks into them. `ralf.maintenance.forget` alone does.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from ralf.errors import MEND_JOURNAL, DamagedJournal, NotFound, UsageError
from ralf.storage.journal import Digest, Store

FIELDS = ("state", "output", "answer", "input", "blob", "data")
"""What contents are called in records."""

Tree = Mapping[str, Any]
"""Content in a record: `size` in bytes, and `text`, `base64` or `digests` (of its blobs, in order). Without them it is
gone.
"""

LARGEST_INLINE = 64 << 10
"""Bytes of the largest content that stands in a record itself."""

_PIECE = 64 << 20  # bytes of a blob


def checked(data: object, where: str) -> bytes:
    """The same bytes; UsageError for something else. `where`: the run that they are for, for messages."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    hint = "encode it first: text.encode()" if isinstance(data, str) else "encode it first: json.dumps(value).encode()"
    raise UsageError(where, f"bytes are expected, and this is of type {type(data).__name__}", hint)


def pack(store: Store, data: bytes, where: str) -> dict[str, Any]:
    """Bytes as they stand in a record. Those of a large content are durable as blobs before the record names them.

    UsageError as `checked`.
    """
    data = checked(data, where)
    if len(data) > LARGEST_INLINE:
        pieces = (data[start : start + _PIECE] for start in range(0, len(data), _PIECE))
        return {"digests": [store.put_blob([piece]) for piece in pieces], "size": len(data)}
    return inline(data)


def inline(data: bytes) -> dict[str, Any]:
    """Bytes as they stand in a record itself."""
    try:
        return {"text": data.decode(), "size": len(data)}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode(), "size": len(data)}


_ESCAPES = ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t"))

_CONTROLS = tuple({*range(0x20)} - {*b"\n\r\t"})


def encoded(tree: Tree) -> bytes:
    """A content as JSON. A text is written in a quarter of the time that `json` takes, which goes by characters."""
    name = "text" if "text" in tree else "base64"
    if name not in tree:
        return json.dumps(tree, separators=(",", ":")).encode()
    data = str(tree[name]).encode()
    if _has_controls(data):
        quoted = json.dumps(tree[name], ensure_ascii=False).encode()
    else:
        for plain, escape in _ESCAPES if name == "text" else ():
            data = data.replace(plain, escape)
        quoted = b'"%s"' % data
    return b'{"%s":%s,"size":%d}' % (name.encode(), quoted, size_of(tree))


def _has_controls(data: bytes) -> bool:
    """Whether control characters are in it that are written by number. To look for each takes less than for all."""
    for control in _CONTROLS:  # noqa: SIM110  # a generator would take half of the time
        if control in data:
            return True
    return False


def unpack(store: Store, tree: Tree | None, where: str) -> bytes:
    """The bytes of a content, b"" for None. NotFound where they are gone; DamagedJournal, DamagedBlob.

    where  the run that it is of, for messages
    """
    if tree is None:
        return b""
    try:
        if "text" in tree:
            return str(tree["text"]).encode()
        if "base64" in tree:
            return base64.b64decode(tree["base64"], validate=True)
    except (ValueError, TypeError, binascii.Error):
        raise DamagedJournal(where, "a content is not what was written", MEND_JOURNAL) from None
    if "digests" not in tree:
        raise NotFound(where, "this content was removed to make room, or with its run")
    pieces = []
    for digest in tree["digests"]:
        with store.open_blob(str(digest)) as file:
            pieces.append(file.read())
    return b"".join(pieces)


def size_of(tree: Tree | None) -> int:
    """The bytes that a content has, or had."""
    return int(tree.get("size", 0)) if tree is not None else 0


def is_kept(tree: Tree | None) -> bool:
    """Whether a content is still there."""
    return tree is not None and bool(tree.keys() & {"text", "base64", "digests"})


def emptied(tree: Tree) -> dict[str, Any]:
    """A content that is gone: only its size is left."""
    return {"size": size_of(tree)}


def blobs_of(tree: Any) -> Iterator[Digest]:
    """The digests of the blobs that the contents anywhere in a record's tree name."""
    if isinstance(tree, Mapping):
        if isinstance(blobs := tree.get("digests"), list):
            yield from map(str, blobs)
        for inner in tree.values():
            yield from blobs_of(inner)
    elif isinstance(tree, list):
        for inner in tree:
            yield from blobs_of(inner)


def blobs_in(record: bytes) -> Iterator[Digest]:
    """The same of a record's bytes; nothing for bytes that are no record."""
    if b'"digests"' in record:
        with suppress(ValueError):
            yield from blobs_of(json.loads(record))


def found(tree: Any) -> Iterator[Tree]:
    """The contents anywhere in a record's tree that are still there."""
    if isinstance(tree, Mapping):
        if "size" in tree and is_kept(tree):
            yield tree
        for inner in tree.values():
            yield from found(inner)
    elif isinstance(tree, list):
        for inner in tree:
            yield from found(inner)
