"""The bytes that callers give, as they stand in records: text where they are UTF-8, else base64, large ones as blobs.

They are opaque: no redactor, index, brief or message looks into them. `ralf.maintenance.forget` alone does.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
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
    size = len(data)
    if size > LARGEST_INLINE:
        return {"digests": [store.put_blob([data[at : at + _PIECE]]) for at in range(0, size, _PIECE)], "size": size}
    try:
        return {"text": data.decode(), "size": size}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode(), "size": size}


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


def is_kept(tree: Tree) -> bool:
    """Whether a content is still there."""
    return bool(tree.keys() & {"text", "base64", "digests"})


def emptied(tree: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """A record's tree with only the sizes of some of its contents."""
    return {**tree, **{name: {"size": tree[name]["size"]} for name in fields}}


_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_ESCAPES = ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t"))

_CONTROLS = tuple(bytes([code]) for code in range(0x20) if code not in b"\n\r\t")


def encoded(tree: Tree) -> bytes:
    """A content, or a record, as one line of JSON. A text is written in half of the time that `json` takes, which goes
    by characters.
    """
    for name in ("text", *FIELDS):
        if isinstance(one := tree.get(name), Mapping) or (name == "text" and isinstance(one, str)):
            quoted = encoded(one) if isinstance(one, Mapping) else _quoted(one.encode())
            rest = _as_json({key: value for key, value in tree.items() if key != name})
            return b'%s%s"%s":%s}' % (rest[:-1].encode(), b"," if rest != "{}" else b"", name.encode(), quoted)
    return _as_json(tree).encode()


def _quoted(text: bytes) -> bytes:
    """A text as a string of JSON."""
    if any(map(text.__contains__, _CONTROLS)):  # which are written by number
        return _as_json(text.decode()).encode()
    for plain, escape in _ESCAPES:
        text = text.replace(plain, escape)
    return b'"%s"' % text


def found(tree: Any) -> Iterator[Tree]:
    """The contents anywhere in a record's tree that are still there."""
    if isinstance(tree, Mapping):
        if "size" in tree and is_kept(tree):
            yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for inner in tree:
            yield from found(inner)


def blobs_of(tree: Any) -> Iterator[Digest]:
    """The digests of the blobs that the contents anywhere in a record's tree name."""
    for one in found(tree):
        yield from map(str, one.get("digests", ()))


def blobs_in(record: bytes) -> Iterator[Digest]:
    """The same of a record's bytes; nothing for bytes that are no record."""
    if b'"digests"' in record:
        with suppress(ValueError):
            yield from blobs_of(json.loads(record))
