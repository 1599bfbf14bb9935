"""Stores that are harmed at random are mended, and the harness that shows it can fail."""

from __future__ import annotations

import pytest
from tests.faults import damage

from examples import examples
from ralf.storage.journal_file import framed


@pytest.mark.ci
def test_a_repair_that_removes_what_it_cannot_read_is_caught() -> None:
    with damage.broken_repair(), pytest.raises(damage.Failed, match="gone"):
        damage.run(9)


@pytest.mark.ci
def test_a_record_is_kept_apart_from_the_garbage_behind_it_which_is_kept_too() -> None:
    record = framed("one", b'{"n":1}').removesuffix(b"\n")
    torn = record + b"\0" * 40
    assert damage._pieces_are_kept([torn], record + b" and elsewhere " + b"\0" * 40)
    assert not damage._pieces_are_kept([torn], record)
    assert not damage._pieces_are_kept([torn], b"\0" * 40)


@pytest.mark.release(seconds=8)
def test_harmed_stores_are_mended() -> None:
    assert damage.run(examples(100), seed=9)["failed"] == []
