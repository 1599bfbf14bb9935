"""A document that somebody made up takes no longer than its size."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from clocks import in_line, within
from ralf.project import Project
from ralf_migrations.importing import SOURCES, Report, find
from ralf_migrations.reading import Unreadable

PLACES = {
    "decisions-md": "DECISIONS.md",
    "decision-registry": "decision_registry.yaml",
    "timeline-memory": "timeline-memory.md",
    "ralf-context": "RALF-CONTEXT.md",
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
        for name, found in find(project := Project(root), Report(), root, [source], named=True):
            for _, transcript in SOURCES[name].read(project, found).parts:
                list(transcript.events())
    except Unreadable:
        pass
    return time.process_time() - begun


@pytest.mark.ci(seconds=2)
@pytest.mark.parametrize("source", PLACES)
def test_no_line_of_twenty_thousand_characters_takes_long(tmp_path: Path, source: str) -> None:
    for mark in MARKS:
        for one in RUNS:
            text = f"# Decisions\n\n## D-1: Storage\n\n{mark}{one * (20_000 // len(one))}\x01!\n"
            within(0.5, partial(read, tmp_path, source, text))


@pytest.mark.ci(seconds=2)
@pytest.mark.parametrize("line", ["# a\n", "- a\n", "**D-1: a**\n", "|D|b|\n|-|-|\n|x|y|\n\n", "```\n", "<!--\n"])
def test_a_document_of_one_kind_of_line_takes_time_by_its_size(tmp_path: Path, line: str) -> None:
    for source in ("decisions-md", "ralf-context"):

        def taken(size: int, source: str = source) -> float:
            return read(tmp_path, source, f"# Decisions\n\n{line * (size // len(line))}")

        in_line(partial(taken, 8_000), partial(taken, 64_000), most=24, spare=0.1)
