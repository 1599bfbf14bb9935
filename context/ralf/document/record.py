"""A record of a document: an envelope that all families share, around a body that only its family knows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

from ralf.errors import MEND_JOURNAL, DamagedJournal
from ralf.storage.journal import MALFORMED, Entry, Save
from ralf.text import digests
from ralf.text.frozen import NamedTuple

VERSION = 1

_ENVELOPE = ("v", "n", "at", "by", "mark", "render", "save", "file")


class Record(NamedTuple):
    """One record.

    revision  1 for a document's first record, then one more each
    at        when, as ISO 8601 in UTC
    body      what its family knows; empty where a later version wrote it
    by        who made it: a person, an agent, `file` for whoever edited that, or "" for what is in the body
    mark      of the document, in its first record alone
    render    sha256 of the file that shows what this record and those before it come to
    save      the edit that it absorbs, None for none
    is_later  whether only a later version can read it: it is kept, and passed over here
    """

    revision: int
    at: str
    body: Mapping[str, Any]
    by: str = ""
    mark: str = ""
    render: str = ""
    save: Save | None = None
    is_later: bool = False


def now() -> str:
    """The time as records have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time()))


def encoded(record: Record) -> bytes:
    """A record as one line of JSON."""
    tree: dict[str, Any] = {"v": VERSION, "n": record.revision, "at": record.at}
    for name in ("by", "mark", "render"):
        if value := getattr(record, name):
            tree[name] = value
    if record.save is not None:
        tree["save"] = list(record.save)
    return json.dumps(tree | dict(record.body), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def decoded(stream: str, entry: Entry) -> Record:
    """The record in an entry. DamagedJournal for one that is none."""
    try:
        tree = json.loads(entry.record)
        is_later = tree["v"] > VERSION
        save = Save(*map(str, tree["save"])) if tree.get("save") else None
        return Record(
            int(tree["n"]),
            str(tree["at"]),
            {} if is_later else {name: value for name, value in tree.items() if name not in _ENVELOPE},
            str(tree.get("by", "")),
            str(tree.get("mark", "")) or (_mark_of(entry) if tree["n"] == 1 else ""),
            str(tree.get("render", "")),
            save,
            is_later,
        )
    except MALFORMED as error:
        what = f"the record {entry.id!r} is none of a document: {type(error).__name__}"
        raise DamagedJournal(stream, what, MEND_JOURNAL) from None


class Enveloped:
    """The records of a family that has no lines of its own."""

    __slots__ = ()

    decoded = staticmethod(decoded)
    encoded = staticmethod(encoded)


def new_mark() -> str:
    """A mark that nobody can guess."""
    return os.urandom(4).hex()


def with_new_mark(entry: Entry) -> bytes:
    """The bytes of a record; of a document's first one with another mark: no file from before is its own any more."""
    tree = json.loads(entry.record)
    if tree.get("n", tree.get("revision")) != 1:
        return entry.record
    return json.dumps(tree | {"mark": new_mark()}, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _mark_of(entry: Entry) -> str:
    """The mark of a document whose first record was written before there were any."""
    return digests.sha256(entry.record).hexdigest()[:8]
