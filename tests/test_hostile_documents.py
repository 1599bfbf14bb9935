"""A document that somebody made up takes no longer than its size."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ralf.transcripts.runfolder import reader

LINES = ("[", " ", "*", "(", "A-", "**a ", "- ", "1", "-", "a", "> ", "{", "|")
MARKS = ("", "## ", "**Decision:** ", "- ", "## Option A: ")


@pytest.mark.parametrize("mark", MARKS)
def test_no_line_of_thirty_thousand_characters_takes_long(tmp_path: Path, mark: str) -> None:
    folder = tmp_path / "runs" / "run-0001"
    folder.mkdir(parents=True)
    for one in LINES:
        text = f"# Decisions\n\n## D-1: Storage\n\n{mark}{one * (30_000 // len(one))}\x00!\n"
        for name in ("DECISIONS.md", "RESULTS.md"):
            (folder / name).write_text(text)
        begun = time.process_time()
        list(reader(folder, tmp_path).events())
        assert time.process_time() - begun < 0.5, one


def test_thousands_of_parts_take_no_longer_each_than_a_few(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "run-0001"
    folder.mkdir(parents=True)

    def taken(parts: int) -> float:
        (folder / "DECISIONS.md").write_text("# Decisions\n" + "\n## D-1: Storage\n\n**Decision:** SQLite\n" * parts)
        (folder / "THOUGHTS.md").write_text("# Thoughts\n" + "\n## Storage\n\nThe log grows by the day.\n" * parts)
        begun = time.process_time()
        list(reader(folder, tmp_path).events())
        return time.process_time() - begun

    taken(10)
    assert taken(2_000) < 20 * taken(200)
