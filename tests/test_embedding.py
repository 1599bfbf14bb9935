"""What is near a question in meaning is found with what holds its words, by a command of the user's; without one, or
where it fails, the words alone count.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import ralf
import storekit
from embedder import FAILURES
from ralf.finding.search import SearchHit
from ralf.refining import command
from storekit import HANGS, Cli, cache_of

pytestmark = pytest.mark.ci

PROGRAM = Path(__file__).parent / "embedder.py"

QUESTION = "authentication?"
"""Shares no word with the decision that it is about."""


@dataclass
class Set:
    """A project with decisions, and an embedder that keeps a journal."""

    root: Path
    journal: Path

    def configure(self, *mode: str, timeout: int = 60, more: str = "") -> None:
        """Name the stand-in as the project's embedder."""
        line = json.dumps([sys.executable, str(PROGRAM), str(self.journal), *mode])
        self.write(f"embedder: {line}\nembedder_timeout: {timeout}\n{more}")

    def write(self, text: str) -> None:
        """Save `config.local.yaml`."""
        path = self.root / ".autonomous" / "context" / "config.local.yaml"
        path.write_text(text)
        storekit.allow(path)

    @property
    def given(self) -> list[list[str]]:
        """The texts of each start."""
        return [json.loads(line) for line in self.journal.read_text().splitlines()] if self.journal.exists() else []

    def search(self, query: str = QUESTION, limit: int = 5) -> tuple[list[SearchHit], list[str]]:
        """The hits, and what was said beside them."""
        warnings: list[str] = []
        return ralf.search(query, root=self.root, limit=limit, warnings=warnings), warnings


@pytest.fixture
def made(tmp_path: Path) -> Set:
    root = tmp_path / "project"
    root.mkdir()
    ralf.record_decision("r", "Keep the password flow in one module", rationale="one place to audit", root=root)
    ralf.record_decision("r", "Write the report as Markdown", rationale="people read it", root=root)
    ralf.record_decision("r", "Store events in Postgres", rationale="one server less", root=root)
    return Set(root, tmp_path / "journal")


def ids(hits: list[SearchHit]) -> list[str]:
    return [hit.id for hit in hits]


# ---- search ----


def test_a_question_that_shares_no_word_with_a_decision_finds_it_by_its_meaning(made: Set) -> None:
    assert made.search() == ([], [])
    made.configure()
    hits, warnings = made.search()
    assert (ids(hits), warnings) == (["DEC-001"], [])


def test_without_an_embedder_a_search_starts_nothing_and_answers_as_ever(
    made: Set, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("started")

    monkeypatch.setattr(command.Command, "run", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with_none = made.search("report in Markdown")
    made.write(f"project: {made.root}\nmodel: small\n")
    assert made.search("report in Markdown") == with_none


# ---- failures ----


@pytest.mark.parametrize("mode", FAILURES)
def test_where_the_embedder_fails_the_words_alone_count_and_the_reason_is_said(made: Set, mode: str) -> None:
    before, _ = made.search("Markdown report")
    made.configure(mode, timeout=1 if mode == "hang" else 60)
    hits, warnings = made.search("Markdown report")
    assert hits == before
    assert [FAILURES[mode] in warning for warning in warnings] == [True], warnings


@pytest.mark.ci(seconds=3)
def test_one_that_hangs_is_ended_in_time_with_all_that_it_started(made: Set) -> None:
    made.configure("hang", timeout=3)
    start = time.monotonic()
    made.search()
    assert time.monotonic() - start < HANGS / 4
    pids = [int(line) for line in Path(f"{made.journal}.pids").read_text().split()]
    deadline = time.monotonic() + HANGS
    while any(map(_runs, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# ---- the cache ----


def test_forgetting_a_text_takes_the_vectors_along(
    made: Set, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made.configure()
    made.search()
    done = Cli(made.root, monkeypatch, capfd)("forget", "r", "--text", "password flow", "--yes")
    assert done.status == 0, done.err
    assert not (cache_of(made.root) / "index.db").exists()


@pytest.mark.ci(seconds=5)
def test_what_does_not_fit_the_time_is_said_and_done_by_the_searches_that_follow(made: Set) -> None:
    for number in range(60):
        ralf.record_decision("r", f"Number {number}", root=made.root)
    made.configure("slow=0.05", timeout=3)
    said, count = [], 0
    while not said or said[-1]:
        start = time.monotonic()
        said.append(made.search()[1])
        assert time.monotonic() - start < HANGS / 4
        count += 1
        assert count < 20
    assert ids(made.search()[0])[0] == "DEC-001"


# ---- what leaves ----


def test_a_secret_in_the_question_is_redacted_before_the_command_sees_it(made: Set) -> None:
    made.configure()
    secret = "ghp_" + "R4nd0mQ7xK2mW9pL5vB8nC3jH6tY1sD0fGaZ"
    made.search(f"authentication with {secret}")
    given = "\n".join(text for texts in made.given for text in texts)
    assert "authentication with [" in given
    assert secret not in given
