"""`ralf show`: what its options leave, as text and as JSON; and the answer to a command that is none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import ralf
import storekit
from ralf.text import tokens
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
def test_json_of_a_section_holds_its_fields_and_of_a_brief_no_history(show: Run) -> None:
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
    brief = show("--json", "--brief").json()
    assert {"goal", "decisions", "active_work", "facts"} < set(brief) and "history" not in brief


@pytest.mark.ci
@pytest.mark.parametrize("most", [1_200, 2_500, 5_000])
def test_json_of_a_brief_holds_the_decisions_checkpoints_and_errors_that_its_text_says(show: Run, most: int) -> None:
    text = show("--brief", "--max-tokens", most).out
    found = show("--brief", "--json", "--max-tokens", most)
    assert 0 < tokens.count(found.out.rstrip("\n")) <= most
    labels = re.compile(r"\b(?:DEC|cp)-[0-9]+")
    told = set(labels.findall(text))
    assert told <= set(labels.findall(found.out)), most
    assert told
    if most >= 2_500:
        errors = {line for line in text.splitlines() if line.startswith("- error: ")}
        assert len(found.json().get("facts", {}).get("errors", ())) >= len(errors)


@pytest.mark.ci
def test_what_json_leaves_out_first_is_what_no_text_says(show: Run) -> None:
    whole, found = show("--json").json(), show("--json", "--max-tokens", 1_500).json()
    assert any("source" in one for one in whole["decisions"])
    assert not any("source" in one or "timestamp" in one for one in found["decisions"])
    assert found["left_out"]


@pytest.mark.ci
@pytest.mark.parametrize("most", [60, 250, 500, 1_000, 2_500, 6_000])
def test_json_keeps_to_max_tokens_and_says_what_it_leaves_out(show: Run, most: int) -> None:
    whole = show("--json").json()
    ran = show("--json", "--max-tokens", most)
    found = ran.json()
    assert 0 < tokens.count(ran.out.rstrip("\n")) <= most and found["route"] == "tide"
    left = found.get("left_out", {})
    if "items" in left:
        assert set(found) == {"route", "revision", "left_out"}
        return
    decisions, history = found.get("decisions", []), found.get("history", "")
    assert len(decisions) + left.get("decisions", 0) == len(whole["decisions"])
    assert history.count("### Checkpoint") + left.get("history", 0) == 4
    assert len(found.get("checkpoints", [])) + left.get("checkpoints", 0) == len(whole["checkpoints"])
    if left:
        nested = [found.get("facts", {}), found.get("active_work", {})]
        assert [(key, v) for tree in (found, *nested) for key, v in tree.items() if v in ("", [], {})] == []
        for key in ("goal", "decisions", "history", "checkpoints", "facts", "active_work"):
            assert key in found or left[key] > 0
    texts = [one["decision"] for one in decisions]
    if texts:
        assert "Never push to main" in texts  # a rule goes last of all


@pytest.mark.ci
def test_json_and_text_that_have_no_room_say_so_and_what_would_do(show: Run) -> None:
    for args in ((), ("--brief",), ("--section", "decisions")):
        ran = show("--max-tokens", "10", *args)
        assert (ran.status, ran.out) == (0, "")
        most = ran.err.strip().rpartition(" ")[2]
        assert show("--max-tokens", most, *args).out
    ran = show("--json", "--max-tokens", "5")
    assert ran.json() == {}
    assert json.loads(show("--json", "--max-tokens", "200").out)["route"] == "tide"
