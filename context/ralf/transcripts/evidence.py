"""Evidence: the redacted text of a segment's events with their line numbers, so that a claim can be traced to its
words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator

from ralf.storage.journal import Digest, Store
from ralf.text.frozen import dataclass
from ralf.transcripts.events import Event


@dataclass(frozen=True, slots=True)
class Line:
    """One event of a segment: its first and last line in the transcript, from 1, its kind, the tool, and its text."""

    line: int
    last: int
    kind: str
    tool: str
    text: str


def keep(store: Store, events: Iterable[Event]) -> Digest:
    """Keep the events' text as a blob; the same events give the same digest."""
    return store.put_blob(_line(event) for event in events if event.text)


def read(store: Store, digest: Digest, only: Container[int] | None = None) -> Iterator[Line]:
    """The lines of a segment's evidence, or `only` those that begin at these lines of the transcript.

    BlobNotFound where it was pruned, DamagedBlob where it is not what was kept.
    """
    with store.open_blob(digest) as file:
        for line in file:
            if only is None or _number(line) in only:
                yield Line(**json.loads(line))


def named(store: Store) -> dict[Digest, set[str]]:
    """The digests that records name, each with the streams whose records do. DamagedJournal where one is not read."""
    found: dict[Digest, set[str]] = {}
    for stream in store.streams(""):
        for entry in store.read(stream):
            for digest in digests_in(entry.record):
                found.setdefault(digest, set()).add(stream)
    return found


def digests_in(content: bytes) -> set[Digest]:
    """What some bytes name that may be the digest of a blob."""
    return {match.decode() for match in _DIGEST.findall(content)}


def _number(line: bytes) -> int:
    """Where a line of evidence begins in the transcript, read off its first key: most are not wanted, so not parsed."""
    return int(line[len(_FIRST) : line.index(b",")])


_FIRST = b'{"line":'

_DIGEST = re.compile(rb'"([0-9a-f]{64})"')


def _line(event: Event) -> bytes:
    line = {
        "line": event.start.line + 1,
        "last": event.end.line,
        "kind": event.kind,
        "tool": event.tool,
        "text": event.text,
    }
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
