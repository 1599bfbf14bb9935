"""A document that somebody made up takes no longer than its size."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ralf.project import Project
from ralf_migrations.migrate import SOURCES
from ralf_migrations.reading import Unreadable

PLACES = {
    "decisions-md": "DECISIONS.md",
    "decision-registry": "decision_registry.yaml",
    "timeline-memory": "timeline-memory.md",
    "ralf-context": "RALF-CONTEXT.md",
    "pilot-checkpoint": "checkpoint.json",
    "run-folders": "runs/run-0001/THOUGHTS.md",
}
RUNS = ("[", " ", "*", "(", "A-", "**a ", "- ", "1", "-", "a", "> ", "{", "|", "`", "<", ". ", "a/")
MARKS = ("", "## ", "**Decision:** ", "- ", "## Option A: ", "- **a", "<promise>", "decisions:\n  - title: ")


def read(root: Path, source: str, text: str) -> float:
    path = root / PLACES[source]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    begun = time.process_time()
    try:
        for found in SOURCES[source].find(root, True, root / "none").paths:
            for part in SOURCES[source].read(Project(root), found)[1].parts:
                list(part.transcript.events())
    except Unreadable:
        pass
    return time.process_time() - begun


@pytest.mark.parametrize("source", PLACES)
def test_no_line_of_twenty_thousand_characters_takes_long(tmp_path: Path, source: str) -> None:
    for mark in MARKS:
        for one in RUNS:
            text = f"# Decisions\n\n## D-1: Storage\n\n{mark}{one * (20_000 // len(one))}\x01!\n"
            assert read(tmp_path, source, text) < 0.5, (mark, one)


@pytest.mark.parametrize("source", ["run-folders", "decisions-md", "ralf-context"])
def test_thousands_of_parts_take_no_longer_each_than_a_few(tmp_path: Path, source: str) -> None:
    part = "\n## D-1: Storage\n\n**Decision:** SQLite\n\n## Notes\n\nThe log grows by the day.\n"
    read(tmp_path, source, part)
    assert read(tmp_path, source, "# Decisions\n" + part * 1_500) < 25 * read(tmp_path, source, "# A\n" + part * 150)


@pytest.mark.parametrize("line", ["# a\n", "- a\n", "**D-1: a**\n", "|D|b|\n|-|-|\n|x|y|\n\n", "```\n", "<!--\n"])
def test_a_document_of_one_kind_of_line_takes_time_by_its_size(tmp_path: Path, line: str) -> None:
    for source in ("decisions-md", "ralf-context"):
        small, large = (
            read(tmp_path, source, f"# Decisions\n\n{line * (size // len(line))}") for size in (8_000, 64_000)
        )
        assert large < 24 * small + 0.1, source
