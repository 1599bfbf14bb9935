"""A model hands over what checkpoints came to; whatever it does, nothing that was kept is harmed."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ralf
import storekit
from ralf.checkpointing.section import Extractive
from ralf.config.local_config import Cap
from ralf.model import Carried, Checkpoint, Decision, Kept, RouteContext
from ralf.project import Project
from ralf.refining.command import Command
from ralf.refining.refine import Refinement, due, refine, tokens_since
from ralf.route.fold import owed
from storekit import NO_ANSWER, records_of, write_session

pytestmark = pytest.mark.ci

MODEL = Path(__file__).parent / "clients" / "model.py"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with an embedded checkpoint of 6,000 tokens."""
    root = tmp_path_factory.mktemp("made")
    write_session(root / "session.jsonl", 6_000)
    ralf.checkpoint("tide", root / "session.jsonl", root=root)
    return root


def configure(project: Path, text: str) -> None:
    path = project / ".autonomous" / "context" / "config.local.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    storekit.allow(path)


def model(mode: str, *arguments: str, timeout: float = 20) -> Command:
    return Command("command", (sys.executable, str(MODEL), mode, *arguments), timeout=timeout)


def answering(before: str = "", **fields: Any) -> Command:
    """A model that answers this; `before`: Python that runs first."""
    code = f"import sys\n{before}\nsys.stdin.read(); print(sys.argv[1])"
    return Command("command", (sys.executable, "-c", code, json.dumps({**NO_ANSWER, **fields})), timeout=20)


def deciding(text: str, **fields: Any) -> dict[str, Any]:
    return {"text": text, "words": "", "line": 0, "reason": "", "rejected": [], **fields}


def ask(project: Path, command: Command, *checkpoints: str, cap: Cap | None = None) -> Refinement:
    return refine(Project(project), "tide", checkpoints or ["cp-001"], command, cap=cap)


def context_of(project: Path) -> RouteContext:
    return ralf.get_context("tide", root=project)


def by_label(project: Path) -> dict[str, Decision]:
    return {item.id: item for item in context_of(project).decisions}


def entries(project: Path) -> dict[str, Kept]:
    return {entry.id: entry for entry in context_of(project).carried.kept}


# ---- what it hands over ----


def test_a_good_model_hands_over_the_moment_and_entries_and_the_rest_stays(project: Path) -> None:
    before = context_of(project)
    outcome = ask(project, model("good"))
    after = context_of(project)
    assert (outcome.failure, outcome.estimated) == ("", True)
    last = after.handover.last
    assert last is not None
    assert (last.author, last.model, last.next) == ("model", "command", ("I read src/part_14.py first.",))
    assert last.at == after.last_checkpoint
    assert [entry.kind for entry in after.handover.kept] == ["done", "done"]
    (chosen, *_) = [item for item in after.decisions if item not in before.decisions]
    assert (chosen.origin, chosen.model, chosen.decision) == ("model", "command", "Use batch size 0")
    assert chosen.source is not None
    assert (chosen.source.quote, chosen.source.by, chosen.source.session) == (
        "We use batch size 0 instead of 1",
        "agent",
        "s-1",
    )
    assert (after.facts, after.history, after.active_work) == (before.facts, before.history, before.active_work)
    (entry,) = after.checkpoints
    assert (entry.summarizer, entry.refines, entry.unrefined) == ("command", "extractive", "")
    assert entry.spent_tokens == outcome.input_tokens + outcome.output_tokens > 0
    brief = after.render(max_tokens=1_000)
    assert "Hand-over, by model command" in brief
    assert chosen.decision in brief


def test_a_model_ends_what_a_model_wrote_and_nobody_elses(project: Path) -> None:
    ask(project, answering(open=["Which batch size?"], decisions=[deciding("Use one size")]))
    mine = ralf.record_decision("tide", "Keep the old columns for ever", root=project, origin="user")
    known = next(item for item in by_label(project).values() if item.decision == "Use one size")
    over = [{"id": one, "why": why, "words": "", "line": 0} for one, why in (("OPEN-001", "answered"), (mine.id, "no"))]
    over.append({"id": known.id, "why": "#1", "words": "", "line": 0})
    assert ask(project, answering(decisions=[deciding("Use two sizes")], ended=over)).failure == ""
    after = by_label(project)
    made = next(item for item in after.values() if item.decision == "Use two sizes")
    assert (after[known.id].status, after[known.id].superseded_by) == ("superseded", made.id)
    assert after[mine.id].status == "active"
    assert [entry.text for entry in context_of(project).handover.current("open")] == [
        f"the model holds {mine.id} for ended: no"
    ]
    assert entries(project)["OPEN-002"].author == "model"


def test_the_model_gets_no_environment_that_points_back_and_no_raw_output(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "RALF_PROJECT_DIR", "RALF_TASK_ID", "BB5_ROUTE", "CLAUDECODE"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    ask(project, model("good", str(tmp_path / "seen")))
    seen = json.loads((tmp_path / "seen").read_text())
    assert not [name for name in seen["environment"] if name.startswith(("GIT_", "RALF_", "BB5_", "CLAUDECODE"))]
    assert seen["environment"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert seen["files"] == []
    assert "002 level part_1 " not in seen["prompt"]
    assert "pytest -q tests/test_part_1.py" in seen["prompt"]


# ---- failures ----


@pytest.mark.parametrize("mode", ["broken", "refusing", "dead", "misfit", "endless", "empty", "forged"])
def test_without_an_answer_the_checkpoint_stands_and_the_reason_is_recorded(project: Path, mode: str) -> None:
    before = context_of(project)
    outcome = ask(project, model(mode))
    after = context_of(project)
    assert outcome.failure
    assert (after.history, after.decisions, after.facts) == (before.history, before.decisions, before.facts)
    assert after.handover == Carried()
    assert after.checkpoints[0].unrefined == outcome.failure
    assert records_of(project, "tide")[-1]["payload"]["reason"] == outcome.failure
    assert after.context_checkpoint.spend.calls == 1
    assert owed(after) == ()  # until the next checkpoint


# ---- when one is asked ----


def with_checkpoints(*sizes: tuple[int, str]) -> RouteContext:
    """A route with checkpoints of so many tokens, an hour each, for these reasons."""
    return replace(
        RouteContext(),
        checkpoint_history=tuple(
            Checkpoint(f"cp-{n:03d}", f"2026-03-01T{n:02d}:00:00Z", size, session="s", reason=why, summarizer="x")
            for n, (size, why) in enumerate(sizes, start=1)
        ),
    )


@pytest.mark.parametrize(
    ("sizes", "is_due"),
    [
        ([(50_000, "threshold")], True),
        ([(2_900, "manual")], False),
        ([(3_000, "manual")], True),
        ([(9_900, "session-end")], False),
        ([(10_000, "session-end")], True),
        ([(6_000, "session-end"), (4_000, "session-end")], True),
    ],
)
def test_a_model_is_asked_after_enough_work(sizes: list[tuple[int, str]], is_due: bool) -> None:
    assert bool(due(with_checkpoints(*sizes))) is is_due


def test_no_model_is_asked_within_10000_tokens_of_a_hand_over_by_the_agent_or_the_person(project: Path) -> None:
    context = with_checkpoints((50_000, "threshold"), (40_000, "threshold"))
    assert tokens_since(context.checkpoint_history, "2026-03-01T01:45:00Z") == 10_000
    for at, author, is_due in (
        ("2026-03-01T01:44:00Z", "agent", True),
        ("2026-03-01T01:46:00Z", "agent", False),
        ("2026-03-01T01:46:00Z", "person", False),
        ("2026-03-01T03:00:00Z", "model", True),
    ):
        last = replace(ralf.model.HandOver("half done"), author=author, at=at)
        assert bool(due(replace(context, handover=Carried(last)))) is is_due, (at, author)


# ---- asked by name ----


def test_asked_for_by_name_it_runs_now_and_the_report_says_what_it_took(project: Path) -> None:
    configure(project, f"command: {json.dumps([sys.executable, str(MODEL), 'good'])}\n")
    report = ralf.checkpoint("again", project / "session.jsonl", root=project, summarizer="command")
    (made,) = report.refinements
    assert (made.checkpoint_id, made.failure, made.summarizer) == ("cp-001", "", "command")
    assert report.checkpoints[0].summarizer == "command"
    assert ralf.checkpoint("again", project / "session.jsonl", root=project, summarizer="command").refinements == ()


def test_hints_are_recorded_and_passed_on_to_every_summariser(project: Path) -> None:
    seen: list[tuple[str, ...]] = []

    class Listening:
        name = "listening"

        def summarize(self, segment: Any) -> Any:

            seen.append(tuple(segment.keep))
            return Extractive().summarize(segment)

    hints = ("the  migration\nplan", "the migration plan", " ")
    ralf.checkpoint("kept", project / "session.jsonl", root=project, summarizer=Listening(), keep=hints)
    assert seen == [("the migration plan",)]
    assert records_of(project, "kept")[0]["payload"]["keep"] == ["the migration plan"]
    refine(Project(project), "kept", ["cp-001"], model("good", str(project / "seen")))
    assert "\n- the migration plan\n" in json.loads((project / "seen").read_text())["prompt"]
