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
from ralf.finding import documents
from ralf.model import Decision, ErrorFact, HandOver
from ralf.project import Project
from ralf.proof.loss import loss_reports
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
from storekit import NO_ANSWER, NO_CURATION, NO_HANDOVER, records_of, route_file, write_session

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


def test_a_good_model_hands_over_and_names_the_section_and_the_facts_stay(project: Path) -> None:
    before = ralf.get_context("tide", root=project)
    outcome = ask(project, model("good"))
    after = ralf.get_context("tide", root=project)
    assert (outcome.failure, outcome.unsupported, outcome.estimated) == ("", 0, True)
    assert after.body.sections[0].title == "Carry the tide table over"
    assert after.body.sections[0].text == before.body.sections[0].text
    assert after.handover is not None
    assert (after.handover.author, after.handover.next) == ("command", ("I read src/part_14.py first.",))
    assert after.handover.tokens == after.total_tokens_consumed == 6_280
    assert after.handover.timestamp == after.last_checkpoint
    assert "Hand-over, by command" in after.render(max_tokens=1_000)
    assert after.facts == before.facts
    (entry,) = after.checkpoints
    assert (entry.summarizer, entry.refines, entry.unrefined) == ("command", "extractive", "")
    assert entry.spent_tokens == outcome.input_tokens + outcome.output_tokens > 0
    assert after.active_work == before.active_work


def test_what_a_lying_model_says_without_support_is_thrown_away_and_counted(project: Path) -> None:
    outcome = ask(project, model("lying"))
    text = route_file(project, "tide").read_text()
    for lie in ("forged", "987654", "Kafka", "weather station"):
        assert lie not in text
    assert (outcome.failure, outcome.unsupported) == ("", 7)
    record = records_of(project, "tide")[-1]
    assert (record["kind"], record["payload"]["unsupported"]) == ("refinement", 7)


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
    tree = {**NO_ANSWER, "handover": {**NO_HANDOVER, "state": "Now it is Redis."}}
    assert ask(project, answering(tree)).failure == "nothing that the evidence bears out: 1 items thrown away"


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


def handing(**fields: Any) -> dict[str, Any]:
    """An answer with this hand-over."""
    return {**NO_ANSWER, "handover": {**NO_HANDOVER, **fields}}


def new_decision(text: str, *, kind: str = "decision", status: str = "active") -> dict[str, Any]:
    return {"kind": kind, "status": status, "text": text, "reason": "", "rejected": [], "line": 1}


def curating(**curation: Any) -> dict[str, Any]:
    """An answer with these verdicts, and something else that holds."""
    return {**handing(state="I read src/part_1.py first."), "curation": {**NO_CURATION, **curation}}


def by_label(project: Path) -> dict[str, Decision]:
    return {item.id: item for item in ralf.get_context("tide", root=project).decisions}


def test_a_decision_that_changed_meanwhile_is_left_alone_and_counted(project: Path) -> None:
    (known, *_) = ralf.get_context("tide", root=project).decisions
    meanwhile = f"ralf.record_decision('tide', 'Use one batch size for all', supersedes={known.id!r}, root=root)"
    outcome = ask(project, answering(curating(taken_back=[known.id]), decide(project, meanwhile)))
    after = by_label(project)
    assert (outcome.failure, outcome.left_alone) == ("", 1)
    assert after[known.id].status == "superseded"
    assert after[after[known.id].superseded_by].decision == "Use one batch size for all"


def test_a_new_decision_does_not_replace_one_that_changed_meanwhile(project: Path) -> None:
    known = choice(project)
    new = new_decision("Keep the old columns and batch size 0")
    tree = {**curating(duplicate=[{"id": known.id, "of": "#1"}]), "decisions": [new]}
    meanwhile = f"ralf.record_decision('tide', 'Use one batch size for all', supersedes={known.id!r}, root=root)"
    outcome = ask(project, answering(tree, decide(project, meanwhile)))
    after = {item.decision: item for item in ralf.get_context("tide", root=project).decisions}
    assert (outcome.failure, outcome.left_alone) == ("", 1)
    assert after["Keep the old columns and batch size 0"].supersedes == ""
    assert after[known.decision].superseded_by == after["Use one batch size for all"].id


@pytest.mark.parametrize(("verdict", "status"), [("drop", "dropped"), ("done", "done"), ("taken_back", "reversed")])
def test_what_a_model_judges_to_be_over_leaves_the_active_list(project: Path, verdict: str, status: str) -> None:
    known = choice(project)
    assert ask(project, answering(curating(**{verdict: [known.id]}))).failure == ""
    after = ralf.get_context("tide", root=project)
    assert by_label(project)[known.id].status == status
    assert known.decision not in [item.decision for item in after.active_decisions]
    assert [hit.status for hit in ralf.search(known.decision, route="tide", root=project) if hit.id == known.id] == [
        status
    ]


def test_what_a_model_drops_a_person_may_decide_all_the_same(project: Path) -> None:
    """No tombstone is laid over it: those keep out what a person dropped."""
    known = choice(project)
    ask(project, answering(curating(drop=[known.id])))
    assert ralf.get_context("tide", root=project).dropped == ()
    made = ralf.record_decision("tide", known.decision, root=project)
    assert by_label(project)[made.id].status == "active"


def test_listed_decisions_that_say_what_a_new_one_says_are_linked_to_it(project: Path) -> None:
    one, other = choice(project), choice(project, 5)
    new = new_decision("Keep the old columns, with one batch size")
    duplicates = [{"id": one.id, "of": "#1"}, {"id": other.id, "of": "#1"}]
    assert ask(project, answering({**curating(duplicate=duplicates), "decisions": [new]})).failure == ""
    after = by_label(project)
    made = next(item for item in after.values() if item.decision == new["text"])
    assert [(after[item.id].status, after[item.id].superseded_by) for item in (one, other)] == [
        ("superseded", made.id)
    ] * 2
    assert (made.status, made.supersedes) == ("active", one.id)


def test_one_listed_decision_that_replaces_another_is_linked_both_ways(project: Path) -> None:
    one, other = choice(project), choice(project, 5)
    assert ask(project, answering(curating(superseded=[{"id": one.id, "by": other.id}]))).failure == ""
    after = by_label(project)
    assert (after[one.id].status, after[one.id].superseded_by) == ("superseded", other.id)
    assert (after[other.id].status, after[other.id].supersedes) == ("active", one.id)


def test_a_reworded_decision_keeps_its_label_and_its_lines(project: Path) -> None:
    known = choice(project)
    new = {"id": known.id, "text": "The batch size is 0", "reason": "It is not 1.", "rejected": ["batch size 1"]}
    assert ask(project, answering(curating(reworded=[new]))).failure == ""
    after = by_label(project)[known.id]
    assert (after.decision, after.alternatives) == ("The batch size is 0", ("batch size 1",))
    assert after.rationale.startswith("It is not 1.")
    assert (after.source, after.status) == (known.source, "active")


def test_a_persons_own_decision_stays_as_it_is(project: Path) -> None:
    mine = ralf.record_decision("tide", "Keep the old columns for ever", root=project, origin="user")
    outcome = ask(project, answering(curating(drop=[mine.id])))
    assert (outcome.failure, outcome.unsupported) == ("", 1)
    assert by_label(project)[mine.id].status == "active"


def test_a_decision_that_a_person_reworded_in_the_file_stays_as_it_is(project: Path) -> None:
    known = choice(project)
    path = route_file(project, "tide")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(known.decision, f"{known.decision[:-1]}, says Ada."), encoding="utf-8")
    ralf.add_next("tide", "Ask the harbour", root=project)
    ask(project, answering(curating(drop=[known.id])))
    assert by_label(project)[known.id].status == "active"
    assert by_label(project)[known.id].decision.endswith(", says Ada.")


# ---- the hand-over ----


def test_an_agents_own_hand_over_stays_where_it_is_newer(project: Path) -> None:
    ralf.hand_over("tide", state="I wrote this myself", root=project)  # now, and the session is an old one
    ask(project, answering(handing(state="I read src/part_1.py first.")))
    handover = ralf.get_context("tide", root=project).handover
    assert handover is not None
    assert (handover.author, handover.state) == ("agent", "I wrote this myself")


@pytest.mark.parametrize(("tokens", "kept"), [(4_999, "theirs"), (5_001, "the model's")])
@pytest.mark.parametrize("author", ["agent", "user"])
def test_a_hand_over_of_one_who_knew_leads_on_where_next_to_nothing_came_after_it(
    project: Path, author: str, tokens: int, kept: str
) -> None:
    made = {"refines": "cp-001", "handover": {"state": "the model's", "timestamp": "2026-01-01T00:00:00Z"}}
    state = load_state(Project(project), "tide")
    assert state is not None
    end = state.recorded.total_tokens_consumed
    theirs = HandOver(state="theirs", author=author, timestamp="2001-01-01T00:00:00Z", tokens=end - tokens)
    after = fold.fold([Record(10, "refinement", made)], replace(state.recorded, handover=theirs)).handover
    assert after is not None
    assert after.state == kept


def test_a_decision_that_is_reworded_and_takes_anothers_place_is_both(project: Path) -> None:
    one, other = choice(project), choice(project, 5)
    curated = curating(
        superseded=[{"id": one.id, "by": other.id}],
        reworded=[{"id": other.id, "text": f"{other.decision}, always", "reason": "", "rejected": []}],
    )
    assert ask(project, answering(curated)).failure == ""
    after = by_label(project)
    assert (after[other.id].decision, after[other.id].supersedes) == (f"{other.decision}, always", one.id)
    assert after[one.id].superseded_by == other.id


def test_a_choice_that_was_carried_out_is_kept_as_done_and_not_handed_over(project: Path) -> None:
    new = new_decision("Keep the old columns and batch size 0", status="done")
    assert ask(project, answering({**NO_ANSWER, "decisions": [new]})).failure == ""
    (made,) = [item for item in by_label(project).values() if item.decision == new["text"]]
    assert made.status == "done"
    brief = str(ralf.get_context("tide", root=project))
    assert new["text"] not in brief


def test_what_an_older_hand_over_told_as_done_goes_into_the_section_of_its_checkpoint(tmp_path: Path) -> None:
    write_session(tmp_path / "session.jsonl", 1_500)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path, segment_tokens=800)
    first, second = (entry.checkpoint_id for entry in ralf.get_context("tide", root=tmp_path).checkpoints[:2])
    done = ["I read src/part_0.py first.", "I read src/part_1.py first."]
    for label, told in ((first, done), (second, done[1:])):
        assert refine(Project(tmp_path), "tide", label, answering(handing(done=told))).failure == ""
    history = ralf.get_context("tide", root=tmp_path).body.sections[-1].text
    assert f"- {done[0]}\n" in history
    assert done[1] not in history  # the newer one tells it


def test_a_hand_over_of_an_older_checkpoint_knows_how_much_came_after_it(tmp_path: Path) -> None:
    write_session(tmp_path / "session.jsonl", 1_500)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path, segment_tokens=800)
    entries = ralf.get_context("tide", root=tmp_path).checkpoints
    refine(Project(tmp_path), "tide", "cp-001", answering(handing(state="I read src/part_0.py first.")))
    handover = ralf.get_context("tide", root=tmp_path).handover
    assert handover is not None
    assert handover.tokens == entries[0].tokens


def test_what_was_handed_over_is_found(project: Path) -> None:
    ask(
        project,
        answering(handing(state="Everything waits for the harbour master", done=["I read src/part_1.py first."])),
    )
    (hit, *_) = ralf.search("harbour master", route="tide", root=project)
    assert (hit.kind, hit.id) == ("fact", "cp-001")
    ralf.hand_over("tide", state="The lighthouse keeper knows the password", root=project)
    found = ralf.search("lighthouse keeper", route="tide", root=project)[0].text
    assert found.startswith("Hand-over, by the agent, 20") and "lighthouse" in found


def test_the_index_keeps_the_section_of_a_checkpoint_at_which_a_model_handed_over() -> None:
    payload = {"refines": "cp-001", "title": "t", "text": "- x", "handover": {"state": "It works", "done": ["x"]}}
    kinds = {document.kind for document in documents.of_record(Record(2, "refinement", payload | {"above": True}))}
    assert kinds == {"fact"}
    whole = documents.of_record(Record(2, "refinement", {"refines": "cp-001", "title": "t", "text": "- x"}))
    assert [document.kind for document in whole] == ["checkpoint"]


# ---- what became of an answer ----


def test_what_became_of_an_answer_is_reported_and_told_to_the_model_the_next_time(tmp_path: Path) -> None:
    write_session(tmp_path / "session.jsonl", 1_500)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path, segment_tokens=800)
    tree = handing(state="I read src/part_0.py first. It is in src/forged.py now.")
    tree["curation"] = {**NO_CURATION, "drop": ["DEC-404"]}
    refine(Project(tmp_path), "tide", "cp-001", answering(tree))
    (report,) = loss_reports("tide", at="cp-001", root=tmp_path)
    assert report.answer is not None
    assert report.answer.unborne == (("It is in src/forged.py now.", ("src/forged.py",)),)
    assert report.answer.refused == ("DEC-404: no such item is listed",)
    refine(Project(tmp_path), "tide", "cp-002", model("good", str(tmp_path / "seen")))
    prompt = json.loads((tmp_path / "seen").read_text())["prompt"]
    assert "1 sentence was dropped, since this stands nowhere: src/forged.py." in prompt
    assert "DEC-404: no such item is listed" in prompt
    assert "state: I read src/part_0.py first." in prompt
    assert loss_reports("tide", at="cp-003", root=tmp_path)[0].answer is None


def test_names_of_earlier_segments_may_be_handed_over(tmp_path: Path) -> None:
    write_session(tmp_path / "session.jsonl", 1_500)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path, segment_tokens=800)
    outcome = refine(Project(tmp_path), "tide", "cp-002", answering(handing(state="It began in src/part_0.py.")))
    assert (outcome.failure, outcome.unsupported) == ("", 0)


def test_a_segment_in_which_nothing_was_said_or_done_costs_no_call(tmp_path: Path) -> None:
    line = {"type": "user", "sessionId": "s", "uuid": "u", "cwd": "/x", "message": {"role": "user", "content": "go on"}}
    (tmp_path / "session.jsonl").write_text(json.dumps(line) + "\n")
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path)
    outcome = refine(Project(tmp_path), "tide", "cp-001", model("good", str(tmp_path / "seen")))
    assert (outcome.failure, outcome.input_tokens) == (refining.NOTHING, 0)
    assert not (tmp_path / "seen").exists()
    state = load_state(Project(tmp_path), "tide")
    assert state is not None
    assert owed(state.recorded) == ()
    assert state.recorded.context_checkpoint.spend.calls == 0


def test_errors_and_steps_that_a_model_closes_are_over(project: Path) -> None:
    state = load_state(Project(project), "tide")
    assert state is not None
    work = replace(state.recorded.active_work, next_steps=("one", "two", "mine"), by_hand=("mine",))
    facts = replace(state.recorded.facts, errors=(ErrorFact("no column", "make"), ErrorFact("gone", "make")))
    payload = {
        "refines": "cp-001",
        "closed": {"next_steps": ["one", "mine"]},
        "fixed": [{"error": "no column", "command": "make", "fixed_by": "said so"}],
    }
    after = fold.apply(replace(state.recorded, active_work=work, facts=facts), Record(9, "refinement", payload))
    assert after.active_work.next_steps == ("mine", "two")
    assert [error.fixed_by for error in after.facts.errors] == ["said so", ""]


# ---- a person's edits meanwhile ----


def test_a_section_that_a_person_edited_meanwhile_keeps_its_title(project: Path) -> None:
    tree = {**handing(state="I read src/part_1.py first."), "title": "Part 1 was read"}
    path = route_file(project, "tide")
    edit = f"p = {str(path)!r}; t = open(p).read()\n"
    edit += "open(p, 'w').write(t.replace('- **Asked:**', '- Mine.\\n- **Asked:**', 1))"
    outcome = ask(project, answering(tree, edit))
    after = ralf.get_context("tide", root=project)
    assert (outcome.failure, outcome.left_alone) == ("", 1)
    assert "- Mine." in after.history
    assert after.body.sections[0].title != "Part 1 was read"


def test_the_routes_lock_is_free_while_the_model_runs(project: Path) -> None:
    write = "ralf.record_decision('tide', 'Written while the model ran', root=root)"
    assert ask(project, answering(handing(state="I read src/part_1.py first."), decide(project, write))).failure == ""
    assert "Written while the model ran" in [item.decision for item in ralf.get_context("tide", root=project).decisions]


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
    assert "\n- the migration plan\n" in json.loads((tmp_path / "seen").read_text())["prompt"]


def test_a_spent_cap_is_a_reason_of_its_own_and_costs_nothing(project: Path) -> None:
    ask(project, model("dead"))
    outcome = ask(project, model("good"), cap=Cap(tokens=10))
    assert outcome.failure.startswith("daily cap spent: ")
    spend = ralf.get_context("tide", root=project).context_checkpoint.spend
    assert (spend.calls, len(spend.failed)) == (1, 1)


def test_a_fault_of_ours_is_recorded_and_not_paid_for_twice(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refining, "believed", lambda *_, **__: 1 / 0)
    assert ask(project, model("good")).failure == "internal: ZeroDivisionError: division by zero"
    state = load_state(Project(project), "tide")
    assert state is not None
    assert owed(state.recorded) == ()


def test_a_new_decision_gets_its_label_and_its_lines(project: Path) -> None:
    new = new_decision("Retire no old columns")
    before = len(ralf.get_context("tide", root=project).decisions)
    assert ask(project, answering({**NO_ANSWER, "decisions": [new]})).failure == ""
    made: Decision = ralf.get_context("tide", root=project).decisions[-1]
    assert (made.decision, made.origin, made.status) == ("Retire no old columns", "user", "active")
    assert made.id == f"DEC-{before + 1:03d}"
    assert made.source is not None
    assert (made.source.session, made.source.first_line, made.source.last_line) == ("s-1", 1, 1)
    assert made.id in [hit.id for hit in ralf.search("retire columns", route="tide", root=project)]


def test_what_a_model_finds_in_a_document_has_the_origin_import_and_is_no_rule(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("We keep the old columns from now on.\n")
    ralf.checkpoint("notes", path, root=tmp_path, as_text=True)
    new = new_decision("Keep the old columns", kind="rule")
    asked = answering({**NO_ANSWER, "decisions": [new]})
    assert refine(Project(tmp_path), "notes", "cp-001", asked).failure == ""
    (made,) = ralf.get_context("notes", root=tmp_path).decisions
    assert (made.decision, made.origin, made.kind, made.pinned) == ("Keep the old columns", "import", "decision", False)
