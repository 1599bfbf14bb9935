"""`ralf show`: what its options leave, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ralf
import storekit
from storekit import Cli, Ran

Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one route: four checkpoints, decisions of every rank, a rule."""
    project = tmp_path_factory.mktemp("show")
    number = storekit.write_session(project / "session.jsonl", 1_000)
    for _ in range(4):
        ralf.checkpoint("tide", project / "session.jsonl", root=project, summarizer=storekit.Listing())
        number = storekit.grow(project / "session.jsonl", 1_000, number)
    ralf.api.change("tide", {"goal": "Carry the tide table over"}, root=project)
    ralf.record_decision("tide", "Use SQLite", rationale="one file", root=project)
    ralf.record_decision("tide", "Use DuckDB", supersedes="DEC-001", root=project)
    ralf.record_decision("tide", "Never push to main", kind="rule", pinned=True, root=project)
    return project


@pytest.fixture
def show(root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    cli = Cli(root, monkeypatch, capfd)
    return lambda *args: cli("show", "tide", *args)


@pytest.mark.ci
def test_json_of_a_section_holds_its_fields(show: Run) -> None:
    whole = show("--json").json()
    for section, keys in (
        ("goal", {"goal", "goal_origin", "began_as"}),
        ("work", {"handover", "active_work", "since"}),
        ("decisions", {"decisions", "pinned"}),
        ("facts", {"facts"}),
        ("history", {"checkpoints", "history"}),
    ):
        found = show("--json", "--section", section).json()
        assert set(found) == {"route", "revision"} | keys
        assert all(found[key] == whole[key] for key in keys - {"since"}), section


@pytest.mark.ci
@pytest.mark.parametrize("budget", [("--brief",), ("--max-tokens", "400")], ids=" ".join)
def test_json_is_the_whole_context_and_a_budget_for_it_is_answered_with_what_to_type(
    show: Run, budget: tuple[str, ...]
) -> None:
    ran = show("--json", *budget)
    assert (ran.status, ran.out) == (2, "")
    assert "ralf show tide --json, or ralf show tide --max-tokens" in ran.err.splitlines()[-1]


@pytest.mark.ci
def test_a_text_that_has_no_room_says_so_and_what_would_do(show: Run) -> None:
    for args in ((), ("--brief",), ("--section", "decisions")):
        ran = show("--max-tokens", "0", *args)
        assert (ran.status, ran.out) == (0, "")
        most = ran.err.strip().rpartition(" ")[2]
        assert show("--max-tokens", most, *args).out
