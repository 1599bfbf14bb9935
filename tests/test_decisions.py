"""Decisions, rules and failed approaches are found in what people and agents say, few and with their reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralf.model import Decision, Source
from ralf.summarize.extractive import find_decisions
from ralf.text.sentences import sentences, split
from ralf.transcripts.events import Event, Position
from ralf.transcripts.reader import open_transcript
from ralf_integrations.blackbox5.runs.markdown import plain

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
    return find_decisions(talk(*lines), session="s1", known=known)


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


def test_the_steps_of_a_plan_are_neither_decisions_nor_reasons_but_a_choice_in_it_is() -> None:
    found = only(
        ("user", "The orchard's tables are to go from CSV to SQLite."),
        ("agent", "Step 1 of 4: look at what is there."),
        ("agent", "Step 2 of 4. Use one file instead of a server, because nobody has to run it."),
        ("agent", "Step 3: read the harvests, and drop the empty rows."),
        ("agent", "Step 3 is done. Next: carry the rows over, then drop the old reader."),
    )
    assert found.decision == "Use one file instead of a server, because nobody has to run it."
    assert "Step" not in found.rationale


def test_a_message_that_only_states_how_something_is_to_be_is_a_decision() -> None:
    found = only(("agent", "Store every harvest record with the id of its field, so that a report needs no join."))
    assert found.decision.startswith("Store every harvest record")


@pytest.mark.parametrize(
    "text", ["I put SQLite behind the harvest store.", "Picked SQLite for the picker queue.", "SQLite backs the store."]
)
def test_a_thing_given_to_a_purpose_in_a_few_words_is_a_decision(text: str) -> None:
    assert only(("agent", text)).decision == text


def test_a_finding_in_a_few_words_is_none() -> None:
    assert decided(("agent", "The picker is slow.")) == ()


def test_what_follows_a_decision_is_its_reason_or_what_was_turned_down() -> None:
    found = only(
        (
            "agent",
            "Harvest records stay in one append-only file.\n\nThe idea behind it: a crash loses a line at most."
            "\n- What it beat: a database server, which every orchard would have to run.",
        )
    )
    assert found.decision == "Harvest records stay in one append-only file."
    assert found.rationale == "The idea behind it: a crash loses a line at most."
    assert found.alternatives == ("What it beat: a database server, which every orchard would have to run.",)


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
        "Green. A look at the linter now.",
        "First a look at who calls `waiting` today.",
        "Let me have a closer look at the schema that came out of it.",
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


def test_a_directive_is_kept_verbatim_and_what_the_agent_made_of_it_is_no_reason() -> None:
    found = only(
        ("agent", "The picker is slow."),
        ("user", "let's just cache the index for now"),
        ("agent", "Makes sense. I'll cache the index in `picker.py`, since it changes once a day."),
    )
    assert found.decision == "let's just cache the index for now"
    assert found.rationale == ""
    assert (found.origin, found.status) == ("user", "active")


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


def test_an_answer_that_leans_on_an_offer_carries_what_it_means() -> None:
    found = only(
        ("agent", "Found:\n\n1. The index is read twice\n2. The log has no level\n3. The picker sleeps\n\nWhich ones?"),
        ("user", "let's tackle 1 and 3"),
        ("agent", "On it."),
    )
    assert found.decision == "let's tackle 1 and 3 (1. The index is read twice; 3. The picker sleeps)"


@pytest.mark.parametrize(
    "text",
    [
        "just fix it.",
        "what are you doing...??",
        "lol I guess so then",
        "log an issue for the picker please",
        "is 24 ripe?",
    ],
)
def test_what_only_makes_sense_in_its_moment_is_no_decision(text: str) -> None:
    assert decided(("user", text), ("agent", "Sure.")) == ()


def test_a_yes_answers_what_was_offered_before_the_events() -> None:
    offer = Event("assistant", "Want me to keep the harvest records in one file?", Position(0, 0), Position(9, 1))
    answer = Event("user", "yes please", Position(9, 1), Position(20, 2))
    (found,) = find_decisions([answer], session="s1", before=[offer])
    assert (found.decision, found.origin) == ("keep the harvest records in one file", "user")
    assert found.source is not None
    assert (found.source.first_line, found.source.last_line) == (2, 2)


def test_what_was_said_before_the_events_is_not_found_again() -> None:
    offer = Event("assistant", "We decided to keep records in one file.", Position(0, 0), Position(9, 1))
    assert find_decisions([Event("user", "hello", Position(9, 1), Position(20, 2))], before=[offer]) == ()


def test_yes_to_routine_work_decides_nothing() -> None:
    assert decided(("agent", "All green. Want me to commit and push it?"), ("user", "yes")) == ()


@pytest.mark.parametrize(
    "request_", ["commit this", "run the tests again", "can you show me the diff?", "what does it do?"]
)
def test_routine_requests_and_questions_decide_nothing(request_: str) -> None:
    assert decided(("user", request_), ("agent", "Done.")) == ()


@pytest.mark.parametrize(
    "request_", ["please add a flag to the picker", "fix the failing test", "create a report of the harvest"]
)
def test_a_request_that_only_starts_work_is_no_decision(request_: str) -> None:
    assert decided(("user", request_), ("agent", "I'll look at the picker."), editing()) == ()


@pytest.mark.parametrize("how", ["use the index, not the file", "leave the old reader in place for now, please"])
def test_a_request_that_says_how_is_a_decision(how: str) -> None:
    found = only(("user", how), ("agent", "On it."), editing())
    assert (found.decision, found.origin) == (how, "user")


def test_a_suggestion_counts_when_it_is_taken_up_and_a_question_never() -> None:
    taken = "can we not take the name from the manifest?"
    assert only(("user", taken), ("agent", "Good idea, the manifest has it.")).decision == taken
    assert decided(("user", "can we see the name in the manifest?"), ("agent", "Yes, it is in line two.")) == ()
    assert decided(("user", "what does the manifest hold?"), ("agent", "Good question, the names.")) == ()


@pytest.mark.parametrize(
    "words",
    [
        "I prefer small commits over one large one.",
        "My preference is tabs in the harvest tables.",
        "I'd favour explicit imports.",
        "I like short names better than long ones.",
    ],
)
def test_what_a_person_says_they_prefer_is_kept_without_any_answer_to_it(words: str) -> None:
    found = only(
        ("user", "Sort the harvests."), ("agent", "They are sorted."), ("user", words), ("agent", "Next file.")
    )
    assert (found.decision, found.origin) == (words, "user")


@pytest.mark.parametrize("words", ["Do you prefer SQLite?", "They prefer tabs."])
def test_a_question_about_a_preference_and_that_of_others_are_none(words: str) -> None:
    assert decided(("user", "Sort the harvests."), ("agent", "Sorted."), ("user", words), ("agent", "Next file.")) == ()


def test_a_question_beside_a_decision_stands_in_its_reason_and_not_in_its_words() -> None:
    found = only(
        ("agent", "Shall the picker cache it?"),
        ("user", "let's cache it in the index first. what's next on the list?"),
        ("agent", "Okay."),
    )
    assert found.decision == "let's cache it in the index first."
    assert "what's next on the list?" in found.rationale


def test_what_the_agent_gives_way_to_is_a_decision_with_the_objection_as_its_reason() -> None:
    found = only(
        ("user", "...why does `read_all()` exist at all?"),
        ("agent", "Yeah, it's a pointless indirection. It should just be inlined into `open_field()`."),
    )
    assert found.decision == "It should just be inlined into `open_field()`."
    assert found.rationale.startswith("User: ...why does `read_all()` exist at all?")


def test_what_is_taken_back_in_the_same_breath_is_no_decision() -> None:
    assert decided(("user", "Let's use short names. No, wait, forget that, I need to ask."), ("agent", "Okay.")) == ()


def test_pasted_output_decides_nothing() -> None:
    log = "FAIL: test_field\n" + "    hint: not opened; use 'field open' instead, and keep the index\n" * 8
    assert decided(("user", log), ("agent", "You're right. Let me look.")) == ()


def test_the_yes_to_one_of_two_ways_means_the_first() -> None:
    offered = "Two notes are open. Want me to address both notes in the reader, or leave them to you?"
    assert only(("agent", offered), ("user", "yes do it")).decision == "address both notes in the reader"


def test_the_findings_of_a_review_are_kept_with_their_verdicts() -> None:
    review = (
        "## Review\n\n#### 1. Silent error in `open_field()` (Medium)\n\nThe error is dropped. It should be logged.\n\n"
        "#### 2. Index read twice (Low)\n\nNot blocking, the index is small.\n\n### Summary\n\nFine work."
    )
    assert [d.decision for d in decided(("agent", review))] == [
        "Silent error in `open_field()` (Medium): It should be logged.",
        "Index read twice (Low): Not blocking, the index is small.",
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "Always run the linter before you commit.",
        "From now on, write messages in the present tense please.",
        "Don't touch generated files.",
        "From now on commit messages are in English.",
    ],
)
def test_a_standing_rule_is_kept_verbatim_and_pinned(rule: str) -> None:
    found = only(("user", rule))
    assert (found.kind, found.pinned, found.decision, found.origin) == ("rule", True, rule, "user")


@pytest.mark.parametrize(
    "order", ["don't change that file yet", "nah, roll it back, we won't need it in the future state"]
)
def test_an_order_for_the_moment_is_no_rule_and_not_pinned(order: str) -> None:
    (found,) = decided(("agent", "I changed the file."), ("user", order), ("agent", "Okay."))
    assert (found.kind, found.pinned) == ("decision", False)


def test_what_a_person_says_in_declining_a_call_is_a_decision_against_it() -> None:
    place = Position(1, 1), Position(2, 2)
    call = Event("call", "mkdir docs/plans", *place, tool="Bash", input={"command": "mkdir docs/plans"}, call_id="c")
    result = Event("result", "The tool use was rejected.", *place, tool="Bash", call_id="c", failed=True, refused=True)
    said = Event("user", "put the plan into the ticket", *place, call_id="c")
    found = only(("user", "write the plan"), call, result, said, ("agent", "Got it."))
    assert found.decision == "put the plan into the ticket (said in declining `mkdir docs/plans`)"
    assert found.alternatives == ()


# ---- choices made in doing ----


def editing(path: str = "picker.py", line: int = 9) -> Event:
    place = Position(line, line), Position(line + 1, line + 1)
    return Event("call", path, *place, tool="Edit", input={"file_path": path}, call_id=f"e{line}")


def test_what_is_announced_with_its_ground_and_then_edited_is_a_choice() -> None:
    words = "The reader and the writer import each other. So I'll define the field names in `names.py`."
    found = only(("agent", words), editing())
    assert (found.decision, found.status) == ("Define the field names in `names.py`.", "done")
    assert found.rationale == "The reader and the writer import each other."
    assert decided(("agent", words)) == ()


@pytest.mark.parametrize(
    "words", ["It is read twice. Let me fix it:", "Now update the tests.", "Let me make the edits."]
)
def test_an_edit_announced_without_its_how_is_no_choice(words: str) -> None:
    assert decided(("agent", words), editing()) == ()


def test_work_done_again_another_way_is_an_approach_that_failed() -> None:
    found = only(("agent", "The stash lost the half of the merge. Let me redo the merge on a clean branch."), editing())
    assert found.kind == "failed-approach"
    done = "Done instead: redo the merge on a clean branch."
    assert found.decision == f"The stash lost the half of the merge. {done}"


def test_a_failing_test_is_no_approach_that_failed() -> None:
    assert decided(("agent", "The picker test failed because the fixture has no trees. Let me look."), editing()) == ()


def test_a_report_tells_how_things_behave_now_and_not_what_was_brought_into_line() -> None:
    found = only(("agent", "Done:\n\n- `open_field()` no longer gives up without trees.\n- Updated the two tests."))
    assert found.decision == "`open_field()` no longer gives up without trees."


# ---- plans and questions ----


def called(tool: str, given: dict[str, Any], answer: str, *, refused: bool = False) -> tuple[Event, Event]:
    place = Position(1, 1), Position(2, 2)
    call = Event("call", "", *place, tool=tool, input=given, call_id="c")
    return call, Event("result", answer, *place, tool=tool, call_id="c", refused=refused)


PLAN = """# Plan: Read the index once

## Context

Every picker opens the index by itself, so a field is read ten times.

## Steps

1. Open the index in `open_field()`
2. Drop `read_index()`

The picker keeps the file handle rather than its path, so that a rename does no harm.

## Verification

Run the tests rather than trust them.
"""


def test_an_approved_plan_is_one_decision_with_steps_and_choices_that_reject() -> None:
    whole, choice = decided(*called("ExitPlanMode", {"plan": PLAN}, "User has approved your plan."))
    assert whole.decision.startswith("Read the index once: Open the index in `open_field()`; Drop `read_index()`")
    assert whole.rationale == "Every picker opens the index by itself, so a field is read ten times."
    assert choice.decision.startswith("The picker keeps the file handle rather than its path")
    assert {whole.origin, choice.origin} == {"user"}


def test_a_plan_that_was_declined_decides_nothing() -> None:
    assert decided(*called("ExitPlanMode", {"plan": PLAN}, "The tool use was rejected.", refused=True)) == ()


def test_a_plan_that_a_person_pastes_is_read_like_one_that_they_approved() -> None:
    pasted = "Implement the following plan:\n\n" + PLAN + "\nMore words about the plan. " * 30
    found = decided(("user", pasted))
    assert any(d.decision.startswith("The picker keeps the file handle rather than its path") for d in found)


def test_the_option_that_a_person_chose_when_asked_is_their_decision() -> None:
    options = [{"label": "Nightly", "description": "one job"}, {"label": "On demand", "description": "always fresh"}]
    asked = {"questions": [{"question": "When are reports built?", "header": "Reports", "options": options}]}
    answer = 'User has answered your questions: "When are reports built?"="On demand". You can now continue.'
    found = only(*called("AskUserQuestion", asked, answer))
    assert (found.decision, found.alternatives, found.origin) == ("On demand: always fresh", ("Nightly",), "user")
    assert found.rationale == "When are reports built?"


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


def test_a_decision_replaced_within_its_segment_is_inactive_and_both_link_each_other() -> None:
    first, second = decided(
        ("agent", "For the harvest store we use Postgres."),
        ("agent", "Instead of Postgres we now use SQLite for the harvest store."),
    )
    assert (first.status, second.status) == ("superseded", "active")
    assert (first.superseded_by, second.supersedes) == ("#2", "#1")


@pytest.mark.parametrize("who", ["user", "agent"])
@pytest.mark.parametrize(
    "change",
    [
        "On reflection, the harvest store should use SQLite, not Postgres.",
        "We changed our minds: the harvest store moves from Postgres to SQLite.",
        "Scrap Postgres for the harvest store, we go with SQLite.",
        "Actually, let's use SQLite for the harvest store.",
        "Change of plan: SQLite for the harvest store.",
    ],
)
def test_a_change_of_mind_is_found_in_many_words(who: str, change: str) -> None:
    first, second = decided(("agent", "For the harvest store we use Postgres."), ("agent", "Fine."), (who, change))
    assert (first.status, second.decision) == ("superseded", change)


def test_two_choices_for_two_things_leave_each_other_alone() -> None:
    found = decided(
        ("agent", "For the harvest store we use Postgres."),
        ("agent", "For the picker queue we now use Redis instead of a file."),
    )
    assert [d.status for d in found] == ["active", "active"]


def test_what_a_person_takes_back_is_reversed_and_not_replaced() -> None:
    first, second = decided(
        ("agent", "Where does the index go?"),
        ("user", "let's keep the picker index in the home folder"),
        ("agent", "Done, it is in the home folder."),
        ("user", "undo that"),
        ("agent", "Reverted."),
    )
    assert (first.status, second.supersedes) == ("reversed", "#1")


def test_the_same_decision_said_twice_is_one_record_with_two_sources() -> None:
    text = "Decision: harvest records are kept in one file."
    (found,) = decided(("agent", text), ("agent", "Fine."), ("agent", text))
    assert found.source is not None
    assert (found.source.first_line, [place.first_line for place in found.further_sources]) == (1, [3])


def test_a_rule_repeated_in_other_words_is_one_rule() -> None:
    found = decided(
        ("user", "Never touch the generated harvest files."),
        ("agent", "Understood."),
        ("user", "please never touch generated harvest files"),
    )
    assert [(d.decision, len(d.further_sources)) for d in found] == [("Never touch the generated harvest files.", 1)]


def test_a_known_decision_said_again_stands_in_the_list_under_its_label() -> None:
    known = Decision(id="DEC-004", decision="Harvest records are kept in one file.", status="active")
    (found,) = decided(("agent", "Decision: harvest records are kept in one file."), known=(known,))
    assert (found.id, len(found.further_sources)) == ("DEC-004", 1)


def test_a_sentence_without_a_cue_decides_where_it_replaces_what_was_decided() -> None:
    first, second = decided(
        ("agent", "The harvest store runs on Postgres."),
        ("agent", "Fine."),
        ("agent", "Postgres was hard to run for the harvest store. SQLite is there today."),
    )
    assert (first.status, first.superseded_by) == ("superseded", "#2")
    assert second.decision == "Postgres was hard to run for the harvest store. SQLite is there today."


def test_a_known_choice_of_another_session_is_replaced_by_subject_too() -> None:
    place = Source("s0", 1, 1, "0" * 16)  # the same line of another session
    known = Decision(id="DEC-004", decision="The harvest store runs on Postgres.", source=place)
    (found,) = decided(("agent", "Postgres is out of the harvest store, SQLite is in."), known=(known,))
    assert found.supersedes == "DEC-004"


def test_the_same_shape_without_a_decision_before_it_is_only_a_report() -> None:
    assert decided(("agent", "Postgres was hard to run for the harvest store. SQLite is there today.")) == ()


def test_a_replaced_choice_of_the_same_name_elsewhere_stays() -> None:
    found = decided(
        ("agent", "The harvest store runs on Postgres."),
        ("agent", "The harvest index runs on Postgres."),
        ("agent", "Postgres is out of the harvest index, SQLite is in."),
    )
    assert [d.status for d in found] == ["active", "superseded", "active"]


def test_words_that_were_given_up_are_a_decision_again() -> None:
    found = decided(
        ("agent", "For the harvest store we use Postgres."),
        ("agent", "Instead of Postgres we now use SQLite for the harvest store."),
        ("agent", "Instead of SQLite we now use Postgres for the harvest store."),
    )
    assert [d.status for d in found] == ["superseded", "superseded", "active"]


def test_decisions_in_similar_words_about_other_things_leave_each_other_alone() -> None:
    found = decided(
        ("user", "Look at part 22. We use WAL mode for the journal."),
        ("agent", "Understood."),
        ("user", "Look at part 31. We drop the in-memory cache."),
        ("agent", "Understood."),
    )
    assert [(d.decision, d.status) for d in found] == [
        ("We use WAL mode for the journal.", "active"),
        ("We drop the in-memory cache.", "active"),
    ]


def test_an_order_behind_a_rule_is_a_rule_of_its_own_and_not_its_reason() -> None:
    found = decided(("user", "Never write to /srv/data. Use port 8081."), ("agent", "Understood."))
    assert [(d.kind, d.decision, d.rationale) for d in found] == [
        ("rule", "Never write to /srv/data.", ""),
        ("rule", "Use port 8081.", ""),
    ]


def test_a_rule_keeps_its_reason_and_an_order_for_now_behind_it_is_no_rule() -> None:
    found = decided(("user", "Never push to main. It deploys by itself. Use this branch."), ("agent", "Understood."))
    assert [(d.kind, d.rationale) for d in found] == [("rule", "It deploys by itself."), ("decision", "")]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Look at part 22. We use WAL mode.", 2),
        ("We need 3. Use them.", 2),
        ("Do this: 1. Read it 2. Write it", 1),
        ("Das war am 22. Mai im Büro.", 1),
        ("Der 3. Versuch ging gut.", 1),
        ("1. Read it.", 1),
    ],
)
def test_a_sentence_ends_behind_a_number_that_is_no_mark_of_a_list_and_no_ordinal(text: str, count: int) -> None:
    assert len(split(text)) == count


def test_every_decision_says_when_and_where_it_was_found() -> None:
    found = only(("user", "hello there"), ("agent", "We decided to keep records in one file."))
    assert found.timestamp == "2026-03-01T10:00:01Z"
    assert found.source is not None
    assert (found.source.session, found.source.first_line, found.source.last_line) == ("s1", 2, 2)
    assert len(found.source.sha256) == 16


# ---- sentences ----


@pytest.mark.parametrize("text", ["Put it into `__init__.py`.", "Put it into __init__.py.", "Call `a ** b ** c` once."])
def test_a_name_that_looks_like_emphasis_stays_as_it_is(text: str) -> None:
    assert [s.text for s in sentences(f"**{text}**")] == [text]
    assert plain(f"__Decided:__ **Yes.** {text}") == f"Decided: Yes. {text}"


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
def test_of_what_careful_readers_listed_three_fifths_are_kept_and_few_traps(tmp_path: Path) -> None:
    import gzip

    wanted = kept = traps = listed = trapped = 0
    for path in sorted(EXAM.glob("*.json")):
        exam = json.loads(path.read_text(encoding="utf-8"))
        with gzip.open(EXAM.parent / "data" / f"{exam['transcript']}.jsonl.gz", "rt", encoding="utf-8") as file:
            lines = file.read().split("\n")[: exam["cut_line"]]
        session = tmp_path / path.name.replace(".json", ".jsonl")
        session.write_text("\n".join(lines) + "\n", encoding="utf-8")
        found = find_decisions(list(open_transcript(session).events()))
        texts = [" ".join(f"{d.decision} {d.rationale} {' '.join(d.alternatives)}".lower().split()) for d in found]
        listed += len(texts)
        for gold in (g for g in exam["decisions"] if g["status"] == "active"):
            keys = [" ".join(key.lower().split()) for key in gold["keys"]]
            wanted += 1
            kept += any(sum(key in text for key in keys) >= min(2, len(keys)) for text in texts)
        for trap in exam["not_decisions"]:
            traps += 1
            trapped += any(" ".join(trap["text_start"].lower().split())[:45] in text for text in texts)
    assert kept / wanted >= 0.6
    assert trapped / traps <= 0.03
    assert listed <= 130
