"""Recording decisions: durable, labelled, in the file at once, and never twice."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
from ralf.errors import Busy


@pytest.mark.parametrize("said", ["dec-1", "DEC-1", "Dec-001", "1", " DEC-001 ", "0001"])
def test_the_label_of_what_a_decision_replaces_is_taken_as_why_takes_it(tmp_path: Path, said: str) -> None:
    ralf.record_decision("tide", "Use Flask", root=tmp_path)
    made = ralf.record_decision("tide", "Use FastAPI", supersedes=said, root=tmp_path)
    assert made.supersedes == "DEC-001"
    assert ralf.get_context("tide", root=tmp_path).decisions[0].superseded_by == made.id


def test_what_is_superseded_already_is_not_superseded_silently_again(tmp_path: Path) -> None:
    old = ralf.record_decision("r", "Use X", root=tmp_path)
    ralf.record_decision("r", "Use Y", supersedes=old.id, root=tmp_path)
    with pytest.raises(Busy, match="DEC-001 is superseded by DEC-002 already"):
        ralf.record_decision("r", "Use Z", supersedes=old.id, root=tmp_path)
