"""Evidence: the words behind a claim come back with their lines, or it is said that they cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from contexts import quick, text
from examples import examples
from ralf.errors import BlobNotFound, DamagedBlob
from ralf.storage.filestore import FileStore
from ralf.transcripts.events import Event, EvidenceLine, Position, keep_evidence, read_evidence


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


def event(line: int, words: str, kind: str = "user", tool: str = "", lines: int = 1) -> Event:
    """An event on line `line`, counted from 1."""
    return Event(kind, words, Position(line * 9, line - 1), Position(line * 9 + 9, line - 1 + lines), tool=tool)  # type: ignore[arg-type]


@given(found=st.lists(st.tuples(text, st.sampled_from(["user", "assistant", "call", "result"]), text), max_size=6))
@settings(quick, max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_words_come_back_with_their_lines_kind_and_tool(store: FileStore, found: list[tuple[str, str, str]]) -> None:
    events = [event(number, words, kind, tool) for number, (words, kind, tool) in enumerate(found, start=1)]
    digest = keep_evidence(store, events)
    assert list(read_evidence(store, digest)) == [
        EvidenceLine(number, number, kind, tool, words)
        for number, (words, kind, tool) in enumerate(found, start=1)
        if words
    ]
    assert keep_evidence(store, iter(events)) == digest


def test_evidence_that_was_pruned_or_damaged_is_said(store: FileStore, tmp_path: Path) -> None:
    digest = keep_evidence(store, [event(1, "words")])
    (tmp_path / "blobs" / digest[:2] / digest).write_bytes(b"x")
    with pytest.raises(DamagedBlob):
        list(read_evidence(store, digest))
    store.drop_blob(digest)
    with pytest.raises(BlobNotFound):
        list(read_evidence(store, digest))
