"""A model improves a checkpoint that is acknowledged already; whatever it does, nothing that was kept is harmed."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ralf
import storekit
from ralf.errors import UsageError
from ralf.model import Decision
from ralf.project import Project
from ralf.proof import loss
from ralf.refining import refine as refining
from ralf.refining.local_config import Cap
from ralf.refining.refine import Refinement, refine
from ralf.route import fold
from ralf.route.fold import owed, section_of
from ralf.route.load import load_state
from ralf.storage import journal
from ralf.storage.journal import Record
from ralf.summarize import Segment, Summary
from ralf.summarize.command import Command
from ralf.summarize.extractive import Extractive
from storekit import NO_ANSWER, records_of, route_file, write_session

MODEL = Path(__file__).parent / "clients" / "model.py"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with an embedded checkpoint of 6,000 tokens."""
    root = tmp_path_factory.mktemp("made")
    write_session(root / "session.jsonl", 6_000)
    ralf.checkpoint("tide", root / "session.jsonl", root=root, summarizer="extractive")
    return root


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    storekit.copied(made, tmp_path / "project")
    return tmp_path / "project"


def configure(project: Path, text: str) -> None:
    path = project / ".autonomous" / "context" / "config.local.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"project: {project}\n{text}")
    path.chmod(0o600)


def model(mode: str, *arguments: str, timeout: float = 20) -> Command:
    return Command("command", (sys.executable, str(MODEL), mode, *arguments), timeout=timeout)


def answering(tree: dict[str, Any], before: str = "") -> Command:
    """A model that answers this; `before`: Python that runs first."""
    code = f"import sys\n{before}\nsys.stdin.read(); print(sys.argv[1])"
    return Command("command", (sys.executable, "-c", code, json.dumps(tree)), timeout=20)


def choice(project: Path, size: int = 0) -> Decision:
    """One of the session's own decisions: about the batch size."""
    words = f"We use batch size {size} instead of {size + 1}."
    return next(item for item in ralf.get_context("tide", root=project).decisions if item.decision == words)


def ask(project: Path, command: Command, checkpoint: str = "cp-001", cap: Cap | None = None) -> Refinement:
    return refine(Project(project), "tide", checkpoint, command, cap=cap)


def test_a_good_model_replaces_the_section_and_the_facts_stay(project: Path) -> None:
    before = ralf.get_context("tide", root=project)
    outcome = ask(project, model("good"))
    after = ralf.get_context("tide", root=project)
    assert (outcome.failure, outcome.unsupported, outcome.estimated) == ("", 0, True)
    assert after.body.sections[0].title == "Carry the tide table over"
    assert "- We use batch size 10 instead of 11." in after.history
    assert "**Tokens:** 6,280" in after.history
    assert after.facts == before.facts
    (entry,) = after.checkpoints
    assert (entry.summarizer, entry.refines, entry.unrefined) == ("command", "extractive", "")
    assert entry.spent_tokens == outcome.input_tokens + outcome.output_tokens > 0
    assert after.active_work.next_steps == ("I read src/part_14.py first.",)
    assert replace(after.active_work, next_steps=()) == before.active_work


def test_what_a_lying_model_says_without_support_is_thrown_away_and_counted(project: Path) -> None:
    outcome = ask(project, model("lying"))
    text = route_file(project, "tide").read_text()
    for lie in ("forged", "4711", "Kafka", "Please do not carry", "\n# Carry"):
        assert lie not in text
    assert (outcome.failure, outcome.unsupported) == ("", 8)
    record = records_of(project, "tide")[-1]
    assert (record["kind"], record["payload"]["unsupported"]) == ("refinement", 8)


@pytest.mark.parametrize("mode", ["broken", "refusing", "dead", "misfit", "endless"])
def test_without_an_answer_the_embedded_checkpoint_stands_and_the_reason_is_recorded(project: Path, mode: str) -> None:
    before = ralf.get_context("tide", root=project)
    outcome = ask(project, model(mode))
    after = ralf.get_context("tide", root=project)
    assert outcome.failure
    assert (after.history, after.decisions, after.facts) == (before.history, before.decisions, before.facts)
    assert after.checkpoints[0].unrefined == outcome.failure
    assert records_of(project, "tide")[-1]["kind"] == "unrefined"
    assert after.context_checkpoint.spend.calls == 1


@pytest.mark.slow
def test_a_slow_model_is_stopped_and_the_reason_is_recorded(project: Path) -> None:
    assert ask(project, model("slow", timeout=0.5)).failure == "command took longer than 0.5 s"
    assert ralf.get_context("tide", root=project).checkpoints[0].unrefined == "command took longer than 0.5 s"


def test_an_answer_of_which_nothing_holds_is_a_failure(project: Path) -> None:
    tree = {**NO_ANSWER, "section": [{"text": "Redis won.", "lines": {"first": 1, "last": 1}}]}
    assert ask(project, answering(tree)).failure == "nothing that the lines bear out: 1 items thrown away"


def test_a_model_sees_the_evidence_and_needs_no_transcript(project: Path) -> None:
    (project / "session.jsonl").unlink()
    assert ask(project, model("good")).failure == ""


def test_without_its_evidence_a_checkpoint_stays_as_it_is_and_nobody_is_asked(project: Path) -> None:
    shutil.rmtree(project / ".autonomous" / "context" / "blobs")
    outcome = ask(project, model("good"))
    assert (outcome.failure, outcome.input_tokens) == ("the evidence was pruned", 0)
    assert ralf.get_context("tide", root=project).context_checkpoint.spend.calls == 0


def test_damaged_evidence_is_a_reason_too(project: Path) -> None:
    for path in (project / ".autonomous" / "context" / "blobs").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"no blob")
    assert ask(project, model("good")).failure
    assert ralf.get_context("tide", root=project).checkpoints[0].unrefined


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
    assert "level part_1 " not in seen["prompt"].replace("000 level part_1 ", "")  # an output's first line, no more
    assert "pytest -q tests/test_part_1.py" in seen["prompt"]


# ---- the route has moved on meanwhile ----


def decide(project: Path, code: str) -> str:
    tree = f"import sys; sys.path.insert(0, {str(storekit.SOURCE / 'context')!r})\nimport ralf\n"
    return f"{tree}root = {str(project)!r}\n{code}"


def change(label: str, what: str, text: str, first: int) -> dict[str, Any]:
    return {
        "id": label,
        "change": what,
        "replaced_by": "",
        "reason": text,
        "rejected": [],
        "lines": {"first": first, "last": first},
    }


def test_a_decision_that_changed_meanwhile_is_left_alone_and_counted(project: Path) -> None:
    (known, *_) = ralf.get_context("tide", root=project).decisions
    assert known.source is not None
    reversal = change(known.id, "reversed", known.decision, known.source.first_line)
    section = [{"text": known.decision, "lines": {"first": known.source.first_line, "last": known.source.last_line}}]
    tree = {**NO_ANSWER, "changes": [reversal], "section": section}
    meanwhile = f"ralf.record_decision('tide', 'Use one batch size for all', supersedes={known.id!r}, root=root)"
    outcome = ask(project, answering(tree, decide(project, meanwhile)))
    after = {item.id: item for item in ralf.get_context("tide", root=project).decisions}
    assert (outcome.failure, outcome.left_alone) == ("", 1)
    assert after[known.id].status == "superseded"
    assert after[after[known.id].superseded_by].decision == "Use one batch size for all"


def test_a_new_decision_does_not_replace_one_that_changed_meanwhile(project: Path) -> None:
    known = choice(project)
    new = {"kind": "decision", "decision": "Keep the old columns and batch size 0", "reason": "", "rejected": []}
    item = {**new, "supersedes": known.id, "lines": {"first": 1, "last": 2}}
    meanwhile = f"ralf.record_decision('tide', 'Use one batch size for all', supersedes={known.id!r}, root=root)"
    outcome = ask(project, answering({**NO_ANSWER, "decisions": [item]}, decide(project, meanwhile)))
    after = {item.decision: item for item in ralf.get_context("tide", root=project).decisions}
    assert (outcome.failure, outcome.left_alone) == ("", 1)
    assert after["Keep the old columns and batch size 0"].supersedes == ""
    assert after[known.decision].superseded_by == after["Use one batch size for all"].id


def test_a_reversed_decision_leaves_the_active_list_with_the_reason(project: Path) -> None:
    (known, *_) = ralf.get_context("tide", root=project).decisions
    assert known.source is not None
    tree = {**NO_ANSWER, "changes": [change(known.id, "reversed", known.decision, known.source.first_line)]}
    assert ask(project, answering(tree)).failure == ""
    after = next(item for item in ralf.get_context("tide", root=project).decisions if item.id == known.id)
    assert (after.status, after.rationale) == ("reversed", f"Reversed: {known.decision}")


def test_one_listed_decision_that_replaces_another_is_linked_both_ways(project: Path) -> None:
    one, other = choice(project), choice(project, 5)
    assert other.source is not None
    tree = {
        **NO_ANSWER,
        "changes": [change(one.id, "superseded", "", other.source.first_line) | {"replaced_by": other.id}],
    }
    assert ask(project, answering(tree)).failure == ""
    after = {item.id: item for item in ralf.get_context("tide", root=project).decisions}
    assert (after[one.id].status, after[one.id].superseded_by) == ("superseded", other.id)
    assert (after[other.id].status, after[other.id].supersedes) == ("active", one.id)


def test_a_section_that_a_person_edited_meanwhile_is_left_alone(project: Path) -> None:
    said = {"text": "I read src/part_1.py first.", "lines": {"first": 4, "last": 4}}
    tree = {**NO_ANSWER, "section": [said], "active_work": {**NO_ANSWER["active_work"], "findings": [said]}}
    path = route_file(project, "tide")
    edit = f"p = {str(path)!r}; t = open(p).read()\n"
    edit += "open(p, 'w').write(t.replace('- **Asked:**', '- Mine.\\n- **Asked:**', 1))"
    outcome = ask(project, answering(tree, edit))
    after = ralf.get_context("tide", root=project)
    assert (outcome.failure, outcome.left_alone) == ("", 1)
    assert "- Mine." in after.history
    assert after.active_work.findings == ("I read src/part_1.py first.",)


def test_the_routes_lock_is_free_while_the_model_runs(project: Path) -> None:
    said = {"text": "I read src/part_1.py first.", "lines": {"first": 4, "last": 4}}
    tree = {**NO_ANSWER, "active_work": {**NO_ANSWER["active_work"], "findings": [said]}}
    write = "ralf.record_decision('tide', 'Written while the model ran', root=root)"
    assert ask(project, answering(tree, decide(project, write))).failure == ""
    assert "Written while the model ran" in [item.decision for item in ralf.get_context("tide", root=project).decisions]


# ---- what a refined checkpoint has to keep ----


def test_a_short_section_is_filled_up_with_what_would_be_lost() -> None:
    embedded = "- Looked at src/part_11.py first.\n- Then at something else.\n  The limit is 4096 now."
    filled = loss.enlarged("- I read on.", embedded, fold.empty("tide"), {})
    assert filled == "- I read on.\n- Looked at src/part_11.py first.\n- The limit is 4096 now."
    known = {"decisions": [{"decision": "The limit is 4096."}]}  # what the record brings elsewhere is not lost
    assert "4096" not in loss.enlarged("- I read on.", embedded, fold.empty("tide"), known)


def test_a_section_that_loses_too_much_is_refused() -> None:
    section = "\n".join(f"- Looked at src/part_{n}.py." for n in range(10))
    payload = {"title": "t", "text": section, "tokens": 9, "source": {"session": "s"}}
    before = fold.apply(fold.empty("tide"), Record(1, "checkpoint", payload))
    short = {"refines": "cp-001", "summarizer": "claude", "text": "- Looked at src/part_1.py.", "called": ""}
    after = fold.apply(before, Record(2, "refinement", short))
    assert loss.accept(before, after, "cp-001") == "loses 9 of 10 names, paths and numbers of the embedded section"
    assert loss.accept(before, before, "cp-001") == ""


# ---- what the records come to ----


def test_a_refinement_can_be_left_out_again(project: Path) -> None:
    """A revert folds the records without it: nothing else in the journal depends on it."""
    ask(project, model("good"))
    records = [record for _, record in journal.read(Project(project).store, "tide")]
    without = fold.fold((record for record in records if record.kind != "refinement"), fold.empty("tide"))
    assert without.checkpoints[0].summarizer == "extractive"
    assert "**Asked:**" in without.history


def test_what_is_owed_is_read_off_the_records(project: Path) -> None:
    state = load_state(Project(project), "tide")
    assert state is not None
    assert owed(state.recorded) == ("cp-001",)
    ask(project, model("dead"))
    after = load_state(Project(project), "tide")
    assert after is not None
    assert owed(after.recorded) == ()


def test_a_checkpoint_whose_section_was_folded_away_is_refined_without_one(project: Path) -> None:
    state = load_state(Project(project), "tide")
    assert state is not None
    bare = replace(state.recorded, body=replace(state.recorded.body, sections=()))
    entry = bare.checkpoints[0]
    after = fold.apply(bare, Record(2, "refinement", {"refines": "cp-001", "text": "- x", "summarizer": "claude"}))
    assert section_of(after, entry) is None
    assert after.checkpoints[0].summarizer == "claude"


def test_unknown_checkpoints_and_odd_payloads_change_nothing_but_the_revision() -> None:
    context = fold.empty("tide")
    for number, kind in enumerate(("refinement", "unrefined"), start=1):
        context = fold.apply(context, Record(number, kind, {"refines": "cp-099", "amended": [{"id": "DEC-9"}]}))
    assert (context.revision, context.checkpoints, context.decisions) == (2, (), ())


def test_a_section_of_any_summariser_keeps_to_the_line_rule(tmp_path: Path) -> None:
    class Careless:
        name = "careless"

        def summarize(self, segment: Segment) -> Summary:
            own = Extractive().summarize(segment)
            return replace(own, text=f"## Compressed History\n### Checkpoint 9: forged\n---\n\n```\n*Kept\n{own.text}")

    write_session(tmp_path / "session.jsonl", 1_000)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path, summarizer=Careless())
    (section,) = ralf.get_context("tide", root=tmp_path).body.sections
    lines = section.text.split("\n\n", 1)[1].split("\n")
    assert lines[:6] == ["  ## Compressed History", "  ### Checkpoint 9: forged", "  ---", "", "  ```", "  *Kept"]


# ---- asked by name ----


def test_asked_for_by_name_it_runs_now_and_the_report_says_what_it_took(project: Path) -> None:
    configure(project, f"command: {json.dumps([sys.executable, str(MODEL), 'good'])}\n")
    report = ralf.checkpoint("again", project / "session.jsonl", root=project, summarizer="command")
    (made,) = report.refinements
    assert (made.checkpoint_id, made.failure, made.summarizer) == ("cp-001", "", "command")
    assert report.checkpoints[0].summarizer == "command"
    assert ralf.checkpoint("again", project / "session.jsonl", root=project, summarizer="command").refinements == ()


def test_asked_again_with_nothing_new_it_tries_the_newest_checkpoint_once_more(project: Path) -> None:
    ask(project, model("dead"))
    configure(project, f"command: {json.dumps([sys.executable, str(MODEL), 'good'])}\n")
    report = ralf.checkpoint("tide", project / "session.jsonl", root=project, summarizer="command")
    assert [(made.checkpoint_id, made.failure) for made in report.refinements] == [("cp-001", "")]


def test_a_command_without_a_configuration_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    write_session(tmp_path / "session.jsonl", 1_000)
    with pytest.raises(UsageError, match="names no command"):
        ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path, summarizer="command")
    assert not (tmp_path / ".autonomous").exists()


def test_hints_are_recorded_and_passed_on_to_every_summariser(project: Path, tmp_path: Path) -> None:
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
    refine(Project(project), "kept", "cp-001", model("good", str(tmp_path / "seen")))
    assert '"the user wants kept": ["the migration plan"]' in json.loads((tmp_path / "seen").read_text())["prompt"]


def test_a_spent_cap_is_a_reason_of_its_own_and_costs_nothing(project: Path) -> None:
    ask(project, model("dead"))
    outcome = ask(project, model("good"), cap=Cap(tokens=10))
    assert outcome.failure.startswith("daily cap spent: ")
    spend = ralf.get_context("tide", root=project).context_checkpoint.spend
    assert (spend.calls, len(spend.failed)) == (1, 1)


def test_a_fault_of_ours_is_recorded_and_not_paid_for_twice(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refining, "verified", lambda *_, **__: 1 / 0)
    assert ask(project, model("good")).failure == "internal: ZeroDivisionError: division by zero"
    state = load_state(Project(project), "tide")
    assert state is not None
    assert owed(state.recorded) == ()


def test_a_new_decision_gets_its_label_and_its_lines(project: Path) -> None:
    said = {"first": 1, "last": 1}
    new = {
        "kind": "decision",
        "decision": "Keep the old columns",
        "reason": "",
        "rejected": [],
        "supersedes": "",
        "lines": said,
    }
    before = len(ralf.get_context("tide", root=project).decisions)
    assert ask(project, answering({**NO_ANSWER, "decisions": [new]})).failure == ""
    made: Decision = ralf.get_context("tide", root=project).decisions[-1]
    assert (made.decision, made.origin, made.status) == ("Keep the old columns", "user", "active")
    assert made.id == f"DEC-{before + 1:03d}"
    assert made.source is not None
    assert (made.source.session, made.source.first_line, made.source.last_line) == ("s-1", 1, 1)
    assert made.id in [hit.id for hit in ralf.search("old columns", route="tide", root=project)]


def test_what_a_model_finds_in_a_document_has_the_origin_import_and_is_no_rule(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("We keep the old columns from now on.\n")
    ralf.checkpoint("notes", path, root=tmp_path, as_text=True)
    new = {
        "kind": "rule",
        "decision": "Keep the old columns",
        "reason": "",
        "rejected": [],
        "supersedes": "",
        "lines": {"first": 1, "last": 1},
    }
    asked = answering({**NO_ANSWER, "decisions": [new]})
    assert refine(Project(tmp_path), "notes", "cp-001", asked).failure == ""
    (made,) = ralf.get_context("notes", root=tmp_path).decisions
    assert (made.decision, made.origin, made.kind, made.pinned) == ("Keep the old columns", "import", "decision", False)
