"""The memory of an agent: its items, its file that people edit, offers, tidying, the ways back, and its export."""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ralf.memory import provenance, writing
from ralf.memory.exporting import export
from ralf.memory.family import Delta, delta, new_item
from ralf.memory.model import Item, Memory
from ralf.memory.writing import path_of
from ralf.project import Project, find
from ralf.text.cleaning import outside

WORDS = "the harbour master of Lindholm keeps the key"
SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose memory has two facts."""
    made = find(tmp_path)
    written(made, said("fact", text=WORDS), said("fact", text="two"))
    return made


def written(project: Project, *deltas: Delta) -> Memory:
    return writing.record(project, "main", deltas)


def found(kind: str, **values: object) -> Delta:
    """An item that a client's log proves."""
    return new_item(kind, origin="mechanical", **values)


def said(kind: str, **values: object) -> Delta:
    """An item that a person said."""
    return new_item(kind, origin="person", **values)


def texts(project: Project) -> list[str]:
    return [item.text for item in writing.load(project, "main").items]


# ---- items ----


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_confidence_follows_outcomes_by_the_documented_formula(helpful: int, harmful: int) -> None:
    item = Item("pattern-1", "pattern", helpful=helpful, harmful=harmful)
    assert item.confidence == pytest.approx((helpful + 1) / (helpful + harmful + 2), abs=1e-9)


# ---- who says so ----


def test_what_a_person_dropped_comes_back_only_by_a_person(project: Project) -> None:
    trap = {"command": "make", "error": "no rule"}
    written(project, found("trap", **trap))
    written(project, delta("drop", "trap-1", origin="person"))
    assert written(project, found("trap", **trap)).of_kind("trap") == ()
    assert [item.id for item in written(project, said("trap", **trap)).of_kind("trap")] == ["trap-2"]


# ---- the file ----


def test_a_file_that_is_edited_by_hand_keeps_every_field_and_section(project: Project) -> None:
    written(project, found("trap", command="npm test", error="ECONNREFUSED", resolution="docker up", routes=("a", "b")))
    path, cuts = path_of(project, "main"), [("docker up", "docker up redis"), ("] two (", "] too (")]
    cuts += [("## Organizational Knowledge\n", "## Organizational Knowledge\n\n- A new\nfact\n  - colour: blue\n")]
    cuts += [("---\n\n*Edit", "## My own\n\nAnything at all.\n\n---\n\n*Edit")]
    text = path.read_text()
    for old, new in cuts:
        text = text.replace(old, new)
    path.write_text(f"{text}\nBelow the last line.\n")
    for read in (writing.load(project, "main"), written(project)):
        trap, first, second, new = read.items
        assert (trap.resolution, trap.error, trap.routes) == ("docker up redis", "ECONNREFUSED", ("a", "b"))
        assert (first.text, second.text, new.text, new.extra) == (WORDS, "too", "A new fact", {"colour": "blue"})
        assert (new.id, new.origin) == ("fact-3", "file")
        assert read.notes == {"My own": "Anything at all.", "": "Below the last line."}


def test_a_file_that_is_cut_off_is_left_while_it_may_be_a_save_and_takes_nothing_out(project: Project) -> None:
    path = path_of(project, "main")
    content = path.read_bytes()
    cut = content[: content.index(b"- [fact-2]")] + b"- three\n"
    path.write_bytes(cut)
    assert "no last line" in " ".join(written(project).warnings)
    assert path.read_bytes() == cut
    os.utime(path, (0, 0))
    written(project)
    assert texts(project) == [WORDS, "two", "three"]


def test_a_secret_that_a_person_writes_into_the_file_is_redacted_by_the_next_write(project: Project) -> None:
    path = path_of(project, "main")
    path.write_text(path.read_text().replace("] two", f"] two {SECRET}"))
    assert SECRET not in repr(writing.load(project, "main"))
    written(project)
    for one in project.folder.rglob("*"):
        assert not one.is_file() or SECRET.encode() not in one.read_bytes(), one


# ---- upkeep ----


@pytest.mark.parametrize(
    ("confidence", "uses", "kept"), [(0.3, 3, False), (0.3, 4, True), (0.31, 0, True), (0.0, 4, True)]
)
def test_a_tidying_keeps_what_has_confidence_above_three_tenths_or_more_than_three_uses(
    project: Project, confidence: float, uses: int, kept: bool
) -> None:
    written(project, found("trap", command="make", error="no rule", uses=uses))
    written(project, delta("edit", "trap-1", values={"confidence": confidence}))
    after = writing.tidy(project, "main")
    assert bool(after.of_kind("trap")) is kept
    header = re.search(r"_Last compacted: (\S+) \|", path_of(project, "main").read_text())
    assert header is not None
    assert header[1] == "never" if kept else datetime.fromisoformat(header[1]).tzinfo is not None


@pytest.mark.ci
def test_a_revision_brings_back_what_the_memory_was_and_can_itself_be_undone(project: Project) -> None:
    first = writing.load(project, "main")
    path = path_of(project, "main")
    path.write_text(path.read_text().replace("---\n\n*Edit", "## My own\n\nAnything.\n\n---\n\n*Edit"))
    edit = delta("edit", "fact-1", values={"text": "one"}, origin="person")
    written(project, edit, delta("drop", "fact-2", origin="person"))
    later = written(project, said("fact", text="three"))
    back = writing.restore(project, "main", first.revision)
    assert [step.what for step in provenance.why(project, "main", "fact-3").steps] == ["added by a person", "restored"]
    assert (back.items, back.notes) == (first.items, {})
    again = writing.restore(project, "main", later.revision)
    assert (again.items, again.notes) == (later.items, {"My own": "Anything."})


@pytest.mark.ci
def test_an_export_keeps_the_rest_of_the_file_stays_below_its_cap_and_says_what_it_left_out(project: Project) -> None:
    facts = [said("fact", text=f"Depot {n} opens at {n % 24}:00") for n in range(300)]
    trap = found("trap", command="make", error="no rule", resolution="make init", uses=900)
    written(project, *facts, trap, new_item("fact", text="a guess", origin="agent"))
    path = project.root / "MEMORY.md"
    path.write_text("# Mine\n\nA line.\n")
    done = export(project, "main", path)
    text = path.read_text()
    assert text.startswith("# Mine\n\nA line.\n") and len(text.splitlines()) <= 200
    assert (done.items + done.left_out, done.is_changed) == (303, True)
    assert f"_{done.left_out} items left out" in text and "a guess" not in text
    assert "make init" in text and "make init" not in outside(text)
    assert not export(project, "main", path).is_changed
