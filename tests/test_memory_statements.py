"""Statements 11 to 16, 19 to 23 and 29 of what lasting memory promises, each as one test."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ralf.memory import upkeep, writing
from ralf.memory.fold import Delta
from ralf.memory.model import Item, Memory
from ralf.memory.records import delta, new_item, stream_of
from ralf.memory.writing import path_of
from ralf.project import Project, find


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return find(tmp_path)


def written(project: Project, *deltas: Delta) -> Memory:
    return writing.record(project, "main", deltas)


def found(kind: str, **values: object) -> Delta:
    """An item that rules found and that counts."""
    return new_item(kind, origin="mechanical", **values)


def said(kind: str, **values: object) -> Delta:
    """An item that a person said."""
    return new_item(kind, origin="person", **values)


# ---- 11 ----


def test_11_an_agent_has_one_document_at_one_path_whatever_is_recorded(project: Project) -> None:
    for text in ("first", "second"):
        written(project, said("fact", text=text))
    writing.record(project, "reviewer", [said("fact", text="mine")])
    folder = project.folder / "memory"
    assert sorted(path.name for path in folder.glob("*.md")) == ["main.md", "reviewer.md"]
    assert [item.text for item in writing.load(project, "main").items] == ["first", "second"]
    assert [item.text for item in writing.load(project, "reviewer").items] == ["mine"]


# ---- 12 to 16 ----


def test_12_a_pattern_has_id_type_description_confidence_and_use_count(project: Project) -> None:
    made = written(project, said("pattern", text="Run the linter first", type="workflow", uses=12))
    (pattern,) = written(project, delta("edit", made.items[0].id, values={"confidence": 0.9}, origin="person")).items
    assert (pattern.id, pattern.type, pattern.text, pattern.uses) == (
        "pattern-1",
        "workflow",
        "Run the linter first",
        12,
    )
    assert pattern.confidence == 0.9
    assert 0.0 <= replace(pattern, base=-5.0).confidence <= replace(pattern, base=1e9).confidence <= 1.0


def test_13_a_preference_has_a_unique_key_and_the_newest_value_wins(project: Project) -> None:
    written(project, said("preference", key="indent", value="spaces"))
    (item,) = written(project, said("preference", key="Indent", value="tabs")).items
    assert (item.id, item.value) == ("preference-1", "tabs")


def test_13_a_key_that_is_changed_to_a_known_one_takes_its_place(project: Project) -> None:
    written(project, said("preference", key="indent", value="tabs"), said("preference", key="quotes", value="double"))
    (item,) = written(project, delta("edit", "preference-2", values={"key": "indent"}, origin="person")).items
    assert (item.id, item.value) == ("preference-2", "double")


def test_14_a_fact_has_the_time_when_it_was_added_its_source_and_its_expiry(project: Project) -> None:
    (fact,) = written(project, said("fact", text="Staging is frozen", source="Ada", expires="2027-01-01")).items
    datetime.fromisoformat(fact.added)
    assert (fact.text, fact.source, fact.expires) == ("Staging is frozen", "Ada", "2027-01-01")


def test_15_a_relationship_has_an_agent_and_a_context(project: Project) -> None:
    (item,) = written(project, said("relationship", agent="reviewer", context="reviews what I merge")).items
    assert (item.agent, item.context) == ("reviewer", "reviews what I merge")


def test_16_the_header_says_when_the_memory_was_last_tidied(project: Project) -> None:
    written(project, said("fact", text="one"))
    assert "_Last compacted: never | " in path_of(project, "main").read_text()
    upkeep.tidy(project, "main", force=True)
    header = re.search(r"_Last compacted: (\S+) \|", path_of(project, "main").read_text())
    assert header is not None
    assert datetime.fromisoformat(header[1]).tzinfo is not None


# ---- 19 and 20 ----


def test_19_a_tidying_is_due_after_a_week_or_above_fifty_kilobytes() -> None:
    now = datetime(2026, 5, 8, 12, tzinfo=UTC)
    memory = Memory("main", (Item("fact-1", "fact", "x", added="2026-01-01T00:00:00Z"),))
    a_week = replace(memory, last_compacted=(now - timedelta(days=7)).isoformat())
    less = replace(memory, last_compacted=(now - timedelta(days=7) + timedelta(seconds=1)).isoformat())
    assert upkeep.is_due(a_week, 0, now)
    assert not upkeep.is_due(less, 50 * 1024, now)
    assert upkeep.is_due(less, 50 * 1024 + 1, now)
    assert not upkeep.is_due(Memory("main"), 10**6, now)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 10))
def test_20_an_item_is_kept_if_its_confidence_is_above_three_tenths_or_its_uses_are_above_three(
    helpful: int, harmful: int, uses: int
) -> None:
    item = Item("pattern-1", "pattern", "x", helpful=helpful, harmful=harmful, uses=uses)
    kept = 10 * (helpful + 1) > 3 * (helpful + harmful + 2) or uses > 3
    assert upkeep.is_kept(item) is kept


@pytest.mark.parametrize(
    ("confidence", "uses", "kept"), [(0.3, 3, False), (0.3, 4, True), (0.31, 0, True), (0.0, 4, True)]
)
def test_20_the_boundaries_of_what_a_tidying_keeps(project: Project, confidence: float, uses: int, kept: bool) -> None:
    written(project, new_item("trap", origin="mechanical", command="make", error="no rule", uses=uses))
    written(project, delta("edit", "trap-1", values={"confidence": confidence}))
    after = upkeep.tidy(project, "main", force=True)
    assert after is not None
    assert bool(after.items) is kept


# ---- 21 ----


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_21_confidence_follows_outcomes_by_the_documented_formula(helpful: int, harmful: int) -> None:
    item = Item("pattern-1", "pattern", helpful=helpful, harmful=harmful)
    assert item.confidence == pytest.approx((helpful + 1) / (helpful + harmful + 2), abs=1e-9)


def test_21_confidence_goes_on_from_what_a_person_states(project: Project) -> None:
    written(project, found("trap", command="make", error="x"), delta("outcome", "trap-1", verdict="harmful"))
    assert (
        written(project, delta("edit", "trap-1", values={"confidence": 0.8}, origin="person")).items[0].confidence
        == 0.8
    )
    assert written(project, delta("outcome", "trap-1", verdict="helpful")).items[0].confidence == pytest.approx(
        (0.8 * 3 + 1) / 4
    )
    assert writing.load(project, "main").outcomes == 2


# ---- 22 ----


def test_22_a_tidying_leaves_preferences_and_relationships_byte_for_byte(project: Project) -> None:
    written(
        project,
        said("preference", key="indent", value="tabs"),
        said("preference", key="indentation of all files", value="tabs"),
        said("relationship", agent="reviewer", context="reviews what I merge"),
        said("relationship", agent="reviewer", context="reviews what I merge today"),
        found("trap", command="make", error="no rule"),
        *(
            delta("outcome", f"{kind}-1", verdict="harmful")
            for kind in ("preference", "relationship", "trap")
            for _ in range(9)
        ),
    )
    before = sections(project)
    after = upkeep.tidy(project, "main", force=True)
    assert after is not None
    assert not after.of_kind("trap")
    assert sections(project) == before


def sections(project: Project) -> list[str]:
    text = path_of(project, "main").read_text()
    return [
        re.findall(rf"(?s)## {name}\n.*?(?=\n## |\n---)", text)[0] for name in ("Tool Preferences", "Relationships")
    ]


# ---- 23 ----


def test_23_the_document_is_readable_markdown_in_the_published_form(project: Project) -> None:
    written(
        project,
        said("pattern", text="Run the linter first", type="workflow", uses=12),
        delta("metric", name="tests passed at first", value="41 of 50"),
        said("preference", key="indent", value="tabs"),
        said("fact", text="Deploys happen on Friday"),
    )
    written(project, delta("edit", "pattern-1", values={"confidence": 0.9}, origin="person"))
    text = path_of(project, "main").read_text()
    assert text.startswith("# Agent Memory - main\n\n_Last compacted: never | Outcomes: 0 | Patterns: 1_\n")
    assert "\n## Workflow Patterns\n\n- [pattern-1] Run the linter first (12 uses, 90% confidence)\n" in text
    for line in ("## Tool Preferences", "## Organizational Knowledge", "## Improvement Metrics"):
        assert f"\n{line}\n" in text
    assert "\n- tests passed at first: 41 of 50\n" in text


def test_23_a_file_that_is_edited_by_hand_and_parsed_keeps_every_field(project: Project) -> None:
    written(
        project,
        found("trap", command="npm test", error="ECONNREFUSED", resolution="docker compose up -d", routes=("a", "b")),
        said("fact", text="Deploys happen on Friday", source="Ada"),
    )
    path = path_of(project, "main")
    path.write_text(
        path.read_text()
        .replace("docker compose up -d", "docker compose up -d redis")
        .replace("  - source: Ada", "  - source: Ada\n  - colour: blue")
        .replace("## Organizational Knowledge\n", "## Organizational Knowledge\n\n- A new fact\n")
        .replace("---\n\n*Edit", "## My own\n\nAnything at all.\n\n---\n\n*Edit")
    )
    trap, fact, new = writing.load(project, "main").items
    assert (trap.resolution, trap.error, trap.routes) == ("docker compose up -d redis", "ECONNREFUSED", ("a", "b"))
    assert (fact.extra, fact.added != "", fact.source) == ({"colour": "blue"}, True, "Ada")
    assert (new.text, new.origin, new.id) == ("A new fact", "person", "fact-2")
    after = written(project, delta("use", "trap-1"))
    assert [replace(item, uses=0, added="", last_seen="") for item in after.items] == [
        replace(item, added="", last_seen="") for item in (trap, fact, new)
    ]
    assert after.notes == {"My own": "Anything at all."}


# ---- 29 ----


def test_29_status_tells_size_entries_times_patterns_and_outcomes(project: Project) -> None:
    written(project, said("pattern", text="Run the linter first"), delta("outcome", "pattern-1", verdict="helpful"))
    status = upkeep.status(project, "main")
    size = path_of(project, "main").stat().st_size / 1024
    assert (status["entry_count"], status["patterns_count"], status["outcomes_count"]) == (1, 1, 1)
    assert (status["last_compacted"], status["memory_size_kb"]) == ("", round(size, 1))
    datetime.fromisoformat(status["last_written"])


@pytest.mark.ci
def test_29_a_snapshot_brings_back_what_the_memory_was_and_can_itself_be_undone(project: Project) -> None:
    first = written(project, said("fact", text="one"), said("preference", key="indent", value="tabs"))
    upkeep.snapshot(project, "main", "before")
    written(
        project,
        delta("drop", "fact-1", origin="person"),
        delta("edit", "preference-1", values={"value": "spaces"}, origin="person"),
    )
    later = written(project, said("fact", text="two"))
    assert upkeep.restore(project, "main", "before").items == first.items
    again = upkeep.restore(project, "main", f"r{later.revision}")
    assert again.items == later.items


def test_29_the_journal_alone_makes_the_memory_and_its_file_anew(project: Project) -> None:
    before = written(project, said("fact", text="one"), found("command", command="pytest -q", purpose="test"))
    path = path_of(project, "main")
    content = path.read_bytes()
    path.unlink()
    stream = list(project.store.read(stream_of("main")))
    assert written(project) == before
    assert path.read_bytes() == content
    assert os.stat(path).st_mode & 0o077 == 0
    assert all(json.loads(entry.record)["deltas"] for entry in stream)
