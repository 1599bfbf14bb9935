"""Decisions, rules and failed approaches are found in what people and agents say, few and with their reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralf.model import Decision
from ralf.prose import sentences
from ralf.summarizers.decisions import find
from ralf.transcripts import open_transcript
from ralf.transcripts.events import Event, Position

EXAM = Path(__file__).parents[2] / "shared" / "eval" / "exam"


def talk(*lines: tuple[str, str] | Event) -> list[Event]:
    """Events from (who, text) pairs, each on its own line."""
    kinds: dict[str, Any] = {"user": "user", "agent": "assistant", "tool": "result", "thinking": "thinking"}
    out = []
    for number, line in enumerate(lines):
        if isinstance(line, Event):
            out.append(line)
        else:
            place = Position(number, number), Position(number + 1, number + 1)
            out.append(Event(kinds[line[0]], line[1], *place, f"2026-03-01T10:00:{number:02d}Z"))
    return out


def decided(*lines: tuple[str, str] | Event, known: tuple[Decision, ...] = ()) -> tuple[Decision, ...]:
    return find(talk(*lines), session="s1", known=known).decisions


def only(*lines: tuple[str, str] | Event, known: tuple[Decision, ...] = ()) -> Decision:
    (decision,) = decided(*lines, known=known)
    return decision


# ---- what the agent decides ----


def test_a_choice_with_a_cue_is_a_decision_with_its_reason_and_what_was_rejected() -> None:
    found = only(
        ("user", "Where do the harvest records go?"),
        (
            "agent",
            "I decided to keep the harvest records in one append-only file. Because: a crash then loses a line at most."
            "\n\nRejected: a database server, which every orchard would have to run.",
        ),
    )
    assert found.decision == "I decided to keep the harvest records in one append-only file."
    assert "a crash then loses a line at most" in found.rationale
    assert found.alternatives == ("Rejected: a database server, which every orchard would have to run.",)
    assert (found.kind, found.origin, found.status) == ("decision", "agent", "active")


def test_a_message_that_only_states_how_something_is_to_be_is_a_decision() -> None:
    found = only(("agent", "Store every harvest record with the id of its field, so that a report needs no join."))
    assert found.decision.startswith("Store every harvest record")


def test_a_short_announcement_hands_its_cue_to_the_sentence_that_follows() -> None:
    found = only(("agent", "We settled on this. Reports are built once a night from the harvest file."))
    assert found.decision == "Reports are built once a night from the harvest file."


def test_a_contrast_with_a_reason_is_a_decision_and_names_the_other_option() -> None:
    found = only(("agent", "The picker reads the index instead of the whole file because fields grow to gigabytes."))
    assert found.alternatives == ("the whole file because fields grow to gigabytes",)


@pytest.mark.parametrize(
    "narration",
    [
        "Let me run the tests.",
        "Now I'll look at the picker module to see how it reads files.",
        "I see the issue, the index is read twice. Let me check where.",
        "All tests pass. The picker works.",
        "Should we use the index instead of the whole file?",
        "We could use the index instead of the whole file, but that might be slower.",
        "Options:\n1. Use the index instead of the file\n2. Keep the file",
        "```\nDecision: use the index instead of the file\n```",
        "> Decision: use the index instead of the file",
        "| Decision | use the index instead of the file |",
    ],
)
def test_narration_questions_guesses_options_code_and_quotes_are_no_decisions(narration: str) -> None:
    assert decided(("user", "Please speed up the picker"), ("agent", narration)) == ()


@pytest.mark.parametrize("kind", ["tool", "thinking"])
def test_tool_output_and_thinking_decide_nothing(kind: str) -> None:
    assert decided((kind, "Decision: we decided to use the index instead of the file because it is faster.")) == ()


def test_an_approach_that_failed_is_kept_with_the_reason() -> None:
    found = only(
        (
            "agent",
            "I tried to lock the harvest file with fcntl, but network drives ignore it. The picker then lost rows.",
        )
    )
    assert found.kind == "failed-approach"
    assert "network drives ignore it" in found.decision


# ---- what people decide ----


def test_a_directive_is_kept_verbatim_with_what_the_agent_made_of_it() -> None:
    found = only(
        ("agent", "The picker is slow."),
        ("user", "let's just cache the index for now"),
        ("agent", "Makes sense. I'll cache the index in `picker.py`, since it changes once a day."),
    )
    assert found.decision == "let's just cache the index for now"
    assert "I'll cache the index in `picker.py`, since it changes once a day." in found.rationale
    assert found.origin == "user"


def test_a_correction_is_a_decision() -> None:
    found = only(
        ("agent", "I renamed the fields table."),
        ("user", "no, I mean the trees table, not the fields table"),
    )
    assert found.decision == "no, I mean the trees table, not the fields table"


def test_yes_decides_what_the_agent_recommended() -> None:
    found = only(
        (
            "agent",
            "The index is read twice. I'd suggest moving the read into `open_field`, because both call it. OK?",
        ),
        ("user", "yes"),
    )
    assert found.decision.startswith("I'd suggest moving the read into `open_field`")
    assert found.origin == "user"


def test_yes_to_an_offer_decides_what_was_offered_without_the_question() -> None:
    found = only(
        ("agent", "No test covers a field without trees. Want me to add a test that opens an empty field?"),
        ("user", "yes please"),
    )
    assert found.decision == "add a test that opens an empty field"
    assert "No test covers a field without trees." in found.rationale


def test_the_number_of_an_option_decides_for_it_and_against_the_others() -> None:
    found = only(
        (
            "agent",
            "How should reports be built?\n\n1. **Nightly** - one job\n2. **On demand** - always fresh\n\nWhich one?",
        ),
        ("user", "2"),
    )
    assert found.decision == "On demand - always fresh"
    assert found.alternatives == ("Nightly - one job",)


def test_yes_to_routine_work_decides_nothing() -> None:
    assert decided(("agent", "All green. Want me to commit and push it?"), ("user", "yes")) == ()


@pytest.mark.parametrize(
    "request_", ["commit this", "run the tests again", "can you show me the diff?", "what does it do?"]
)
def test_routine_requests_and_questions_decide_nothing(request_: str) -> None:
    assert decided(("user", request_), ("agent", "Done.")) == ()


@pytest.mark.parametrize(
    "rule",
    [
        "Always run the linter before you commit.",
        "From now on, write messages in the present tense please.",
        "Don't touch generated files.",
    ],
)
def test_a_standing_rule_is_kept_verbatim_and_pinned(rule: str) -> None:
    found = only(("user", rule))
    assert (found.kind, found.pinned, found.decision, found.origin) == ("rule", True, rule, "user")


def test_an_order_for_the_moment_is_not_pinned() -> None:
    (found,) = decided(("user", "don't change that file yet"))
    assert not found.pinned


def test_what_a_person_says_in_declining_a_call_is_a_decision_against_it() -> None:
    place = Position(1, 1), Position(2, 2)
    call = Event("call", "mkdir docs/plans", *place, tool="Bash", input={"command": "mkdir docs/plans"}, call_id="c")
    said = "The tool use was rejected. To tell you how to proceed, the user said:\nput the plan into the ticket"
    result = Event("result", said, *place, tool="Bash", call_id="c", failed=True, refused=True)
    found = only(("user", "write the plan"), call, result, ("agent", "Got it."))
    assert found.decision == "put the plan into the ticket"
    assert found.alternatives == ("`mkdir docs/plans`",)


# ---- over time ----


def test_a_change_of_mind_supersedes_the_known_decision_that_it_names() -> None:
    old = Decision(id="DEC-004", decision="For the harvest store we use Postgres.", status="active")
    other = Decision(id="DEC-005", decision="For the report queue we use Postgres.", status="active")
    found = only(("agent", "Instead of Postgres we now use SQLite for the harvest store."), known=(old, other))
    assert found.supersedes == "DEC-004"


def test_a_change_of_mind_about_something_else_supersedes_nothing() -> None:
    old = Decision(id="DEC-004", decision="For the harvest store we use Postgres.", status="active")
    found = only(("agent", "Instead of cron we now use timers for the nightly report."), known=(old,))
    assert found.supersedes == ""


def test_a_decision_replaced_within_the_segment_is_no_longer_active() -> None:
    first, second = decided(
        ("agent", "For the harvest store we use Postgres."),
        ("agent", "Instead of Postgres we now use SQLite for the harvest store."),
    )
    assert (first.status, second.status) == ("superseded", "active")


def test_the_same_decision_said_twice_is_listed_once() -> None:
    text = "Decision: harvest records are kept in one file."
    assert len(decided(("agent", text), ("agent", text))) == 1


def test_every_decision_says_when_and_where_it_was_found() -> None:
    found = only(("user", "hello there"), ("agent", "We decided to keep records in one file."))
    assert found.timestamp == "2026-03-01T10:00:01Z"
    assert found.source is not None
    assert (found.source.session, found.source.first_line, found.source.last_line) == ("s1", 2, 2)
    assert len(found.source.sha256) == 16


# ---- sentences ----


def test_a_message_is_read_as_sentences_without_its_markup() -> None:
    text = "## Plan\nUse **one** file, e.g. `a.b. c`. It is small.\n\n- first item\n2. second\n\n```\ncode.\n```\n| a |"
    assert [(s.text, s.kind, s.mark) for s in sentences(text)] == [
        ("Plan", "heading", ""),
        ("Use one file, e.g. `a.b. c`.", "text", ""),
        ("It is small.", "text", ""),
        ("first item", "item", "-"),
        ("second", "item", "2"),
    ]


@pytest.mark.parametrize("text", ["." * 99_999, "`" * 99_999, "e.g. " * 9_999, "over " + "x" * 50_000, "1. " * 9_999])
def test_a_hostile_message_is_read_in_linear_time(text: str) -> None:
    assert isinstance(decided(("agent", text), ("user", text)), tuple)


# ---- real sessions ----


@pytest.mark.skipif(not EXAM.is_dir(), reason="the evaluation kit is not beside the checkout")
def test_of_what_careful_readers_listed_two_fifths_are_kept_and_few_traps(tmp_path: Path) -> None:
    import gzip

    wanted = kept = traps = listed = trapped = 0
    for path in sorted(EXAM.glob("*.json")):
        exam = json.loads(path.read_text(encoding="utf-8"))
        with gzip.open(EXAM.parent / "data" / f"{exam['transcript']}.jsonl.gz", "rt", encoding="utf-8") as file:
            lines = file.read().split("\n")[: exam["cut_line"]]
        session = tmp_path / path.name.replace(".json", ".jsonl")
        session.write_text("\n".join(lines) + "\n", encoding="utf-8")
        found = find(list(open_transcript(session).events())).decisions
        texts = [" ".join(f"{d.decision} {d.rationale} {' '.join(d.alternatives)}".lower().split()) for d in found]
        listed += len(texts)
        for gold in (g for g in exam["decisions"] if g["status"] == "active"):
            keys = [" ".join(key.lower().split()) for key in gold["keys"]]
            wanted += 1
            kept += any(sum(key in text for key in keys) >= min(2, len(keys)) for text in texts)
        for trap in exam["not_decisions"]:
            traps += 1
            trapped += any(" ".join(trap["text_start"].lower().split())[:45] in text for text in texts)
    assert kept / wanted >= 0.4
    assert trapped / traps <= 0.08
    assert listed <= 100
