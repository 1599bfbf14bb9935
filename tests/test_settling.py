"""A decision is in force if it chooses, still holds and can be read alone; what was carried out is done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ralf.model import Decision
from ralf.summarize import standing
from ralf.summarize.extractive import find_decisions
from ralf.transcripts.events import Event, Position


def talk(*lines: tuple[str, str], first: int = 0) -> list[Event]:
    """Events of (who, text) pairs; "edit" and "run" are calls of the agent."""
    kinds: dict[str, Any] = {"user": "user", "agent": "assistant"}
    out = []
    for number, (who, text) in enumerate(lines, first):
        place = Position(number, number), Position(number + 1, number + 1)
        if who in kinds:
            out.append(Event(kinds[who], text, *place))
        else:
            tool, given = ("Edit", {"file_path": text}) if who == "edit" else ("Bash", {"command": text})
            out.append(Event("call", text, *place, tool=tool, input=given, call_id=f"c{number}"))
    return out


def decided(*lines: tuple[str, str], first: int = 0, known: tuple[Decision, ...] = ()) -> tuple[Decision, ...]:
    return find_decisions(talk(*lines, first=first), session="s", known=known)


def labelled(found: tuple[Decision, ...]) -> tuple[Decision, ...]:
    return tuple(replace(one, id=f"DEC-{number:03}") for number, one in enumerate(found, 1))


def in_force(found: tuple[Decision, ...]) -> list[str]:
    return [one.decision for one in found if one.status == "active"]


# ---- what is over ----


@pytest.mark.parametrize(
    "order",
    [
        "let's start with the tide tables, and check out her branch first",
        "please rebase the harbour branch onto main before we go on",
        "write a test for the empty harbour first",
        "can you put a comment into ticket 41 that the buoys are renamed?",
    ],
)
def test_an_order_that_was_carried_out_is_done_and_keeps_what_came_of_it(order: str) -> None:
    found = decided(
        ("agent", "Three branches are open."),
        ("user", order),
        ("agent", "Okay."),
        ("run", "git status"),
        ("edit", "harbour.py"),
        ("agent", "Rebased the harbour branch and added the comment on the buoys."),
    )
    assert in_force(found) == []
    assert all(one.status == "done" and "harbour" in one.rationale for one in found)


def test_an_order_with_a_lasting_effect_stays_in_force() -> None:
    found = decided(
        ("user", "use a map of harbours instead of the list"), ("agent", "Good idea."), ("edit", "harbour.py")
    )
    assert in_force(found) == ["use a map of harbours instead of the list"]


def test_an_order_that_waits_is_in_force_until_a_later_part_carries_it_out() -> None:
    offer = "It has no test. Want me to add a test for the harbour of an empty island?"
    (asked,) = labelled(decided(("agent", offer), ("user", "yes")))
    assert asked.status == "active"
    (done,) = decided(("edit", "test_harbour.py"), ("agent", "It passes."), first=3, known=(asked,))
    assert (done.id, done.status) == (asked.id, "done")
    unmoved = decided(("user", "What is open?"), ("edit", "test_harbour.py"), first=3, known=(asked,))
    assert asked.id not in [one.id for one in unmoved]


def test_what_the_agent_announced_and_did_is_done_and_its_choice_is_in_force() -> None:
    done = decided(
        ("agent", "The fixture is stale. Let me rewrite the fixture to open the island itself."), ("edit", "a.py")
    )
    assert [(one.status, one.decision) for one in done] == [
        ("done", "Rewrite the fixture to open the island itself (in `a.py`)")
    ]
    kept = decided(("agent", "The merge needs no hooks. Let me use `--no-verify` for the merge."), ("edit", "a.py"))
    assert in_force(kept) == ["Use `--no-verify` for the merge (in `a.py`)"]
    assert kept[0].rationale == "The merge needs no hooks."


@pytest.mark.parametrize(
    "report",
    [
        "The lighthouse button is blue now.",
        "The tide table is carried over. <promise>COMPLETE</promise>",
        "Both charts have been rewritten.",
        "Harbours are stored by island. <promise>COMPLETE</promise>",
        "The depth is read twice, so the sum is wrong.",
    ],
)
def test_a_report_is_no_decision(report: str) -> None:
    assert decided(("user", "Please do the chart."), ("agent", report), ("edit", "chart.py")) == ()


def test_how_something_is_to_be_is_no_report() -> None:
    assert in_force(decided(("agent", "Harbours are stored by island, each in a file of its own."))) != []


# ---- what can be read alone ----


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("keep the tide table in one file", True),
        ("just do it", False),
        ("let's document it", False),
        ("swap 1 and 2", False),
        ("both should use the reader instead", False),
        ("let's roll back, they need not exist", False),
        ("this is getting big, put the radar into a branch of its own", True),
        ("SQLite it is for the harbours", True),
        ("the minimum is Python 3.11", True),
    ],
)
def test_a_text_can_be_read_alone_when_its_it_stands_for_something_in_it(text: str, alone: bool) -> None:
    assert standing.reads_alone(text) == alone


def test_what_the_agent_understood_stands_behind_words_that_lean_on_the_talk() -> None:
    *_, found = decided(
        ("agent", "Two requests are planned."),
        ("user", "I think we should swap 1 and 2"),
        ("agent", "Makes sense - export first, then the chart: the export can ship alone."),
    )
    assert found.status == "active"
    assert found.decision.startswith("I think we should swap 1 and 2 (export first, then the chart")


def test_a_suggestion_that_was_put_as_a_question_is_listed_as_a_statement() -> None:
    assert standing.as_stated("can we move the tides into the index?") == "move the tides into the index."
    assert standing.as_stated("so the harbours should have no names, yeah?") == "so the harbours should have no names."
    assert standing.as_stated("so the harbours have no names, yeah?") == ""  # it asks whether that is true
    assert standing.as_stated("can we not take the name from the manifest?") == ""  # it may ask for it, or against it
    assert standing.as_stated("what is next?") == ""


def test_a_declined_call_is_no_rejected_option() -> None:
    place = Position(1, 1), Position(2, 2)
    events = [
        Event("user", "write the plan", Position(0, 0), Position(1, 1)),
        Event("call", "mkdir plans", *place, tool="Bash", input={"command": "mkdir plans"}, call_id="c"),
        Event("user", "no, keep the plan in the ticket", Position(2, 2), Position(3, 3), call_id="c"),
        Event("assistant", "Got it.", Position(3, 3), Position(4, 4)),
    ]
    (found,) = find_decisions(events, session="s")
    assert (found.alternatives, found.status) == ((), "active")
    assert found.decision == "no, keep the plan in the ticket (said in declining `mkdir plans`)"


def test_each_paragraph_of_a_longer_message_decides_by_itself() -> None:
    talked = (
        "Otherwise I am happy with how the harbours look, and with the pace at which the charts have come along. " * 3
    )
    message = f"Use one colour for all depths.\n\n{talked}\n\nKeep the tides out of the export."
    found = decided(("user", message), ("agent", "Okay."))
    assert in_force(found) == ["Use one colour for all depths.", "Keep the tides out of the export."]


# ---- reasons ----


def test_what_the_agent_did_later_is_no_reason() -> None:
    (found,) = decided(
        ("user", "store the depths in one table"),
        ("agent", "Right. Now update the caller in `chart.py`, because it reads the file."),
        ("edit", "chart.py"),
        ("agent", "Clean - 4 commits on main."),
    )
    assert found.rationale == ""


def test_the_reason_of_an_accepted_offer_is_its_own_sentence() -> None:
    (found,) = decided(
        (
            "agent",
            "The chart is drawn twice. I'd move the drawing into `draw()`, since drawing belongs to one place."
            " The tides are fine.\n\nShall I move the drawing into `draw()`?",
        ),
        ("user", "yes"),
    )
    assert found.decision.startswith("move the drawing into `draw()`")
    assert "since drawing belongs to one place" in found.rationale
    assert "tides" not in found.rationale


# ---- what is taken back ----


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("Use Redis for the session store.", "no, not Redis for the sessions, that box is full"),
        ("Use SQLite for the tides.", "forget SQLite, go with Postgres"),
        ("The API should return XML for all harbours.", "JSON after all, nobody parses XML any more"),
        ("Store the depths with last write wins.", "I'd replace last write wins with a merge by field"),
        ("We draw the charts with matplotlib.", "scrap matplotlib, it pulls in half the world"),
    ],
)
def test_a_choice_that_is_turned_away_from_is_no_longer_in_force(first: str, then: str) -> None:
    known = labelled(decided(("user", first), ("agent", "Okay.")))
    assert in_force(known)
    later = decided(("user", then), ("agent", "Understood."), first=40, known=known)
    assert known[0].id in [one.supersedes for one in later]


def test_turning_away_from_one_thing_leaves_another_choice_alone() -> None:
    known = labelled(decided(("user", "Use Redis for the queue of the tides."), ("agent", "Okay.")))
    later = decided(("user", "no, not the list view for harbours"), ("agent", "Okay."), first=40, known=known)
    assert [one.supersedes for one in later if one.supersedes] == []


def test_a_rule_beside_what_is_taken_back_stays_a_rule() -> None:
    known = labelled(decided(("agent", "I'm going with last write wins for the notes.")))
    later = decided(
        ("user", "No, not last write wins. Never drop what a person typed."),
        ("agent", "You're right. I'm replacing last write wins with a merge by field."),
        first=40,
        known=known,
    )
    assert ("rule", "Never drop what a person typed.") in [(one.kind, one.decision) for one in later]
    assert known[0].id in [one.supersedes for one in later]


def test_going_back_takes_back_what_the_person_had_chosen_before() -> None:
    known = labelled(decided(("user", "keep one table of tides for each harbour"), ("agent", "Good idea.")))
    later = decided(
        ("agent", "The tables are slow."),
        ("user", "I concede. let's go back"),
        ("agent", "Understood."),
        first=40,
        known=known,
    )
    assert (known[0].id, "reversed") in [(one.id, one.status) for one in later]


# ---- proposals, weighed choices, failed attempts ----


def test_what_an_agent_only_proposes_is_not_in_force_and_once_accepted_it_is() -> None:
    proposal = "The fix: replace `read_tides()` with a call of `tide.table()` instead of the old cache."
    (found,) = decided(("user", "why are the tides late?"), ("agent", proposal), ("run", "git log"))
    assert found.status == "proposed"
    found, *_ = decided(
        ("user", "why are the tides late?"),
        ("agent", f"{proposal} Want me to replace `read_tides()` with a call of `tide.table()`?"),
        ("user", "yes please"),
    )
    assert found.status == "active" and found.origin == "user"


def test_a_choice_that_was_weighed_holds_when_it_was_carried_out() -> None:
    talked = (
        ("user", "what should we do about unreadable charts?"),
        (
            "agent",
            "I think the best fix is to log a warning in `open_chart()` when the read fails, without stopping the tour."
            " Stopping the whole tour feels too harsh for one chart.\n\nWant me to add the warning?",
        ),
        ("user", "yep, do it"),
        ("agent", "Adding it."),
        ("edit", "chart.py"),
    )
    (found,) = decided(*talked)
    assert found.status == "active" and "log a warning in `open_chart()`" in found.decision
    assert "too harsh" in f"{found.rationale} {found.alternatives}"


def test_what_a_person_suggested_is_told_by_the_offer_that_they_accepted_then() -> None:
    found = decided(
        ("user", "if there is no link between the two names, let's make a class for the harbours?"),
        ("agent", "There is none. Want me to add `Harbour.kind()` to the interface in `harbour.py`?"),
        ("user", "let's do it in branch 91 - I want to merge 90 now"),
    )
    assert len(in_force(found)) == 1 and "branch 91" in in_force(found)[0]


def test_a_change_that_did_not_help_is_a_failed_approach_with_the_cause() -> None:
    found = decided(
        ("user", "the merge fails in the test"),
        ("agent", "The issue is that `merge_rows()` does not set `ROW_BASE`. Let me fix it:"),
        ("edit", "rows_test.py"),
        ("run", "make test"),
        ("agent", "Still failing. Let me check how the rows are found:"),
        ("run", "grep ROW rows.py"),
        ("agent", "The issue is that `rows.py` reads a path relative to the working directory."),
    )
    failed = next(one for one in found if one.kind == "failed-approach")
    assert failed.decision.startswith("tried, and it still failed (an edit of `rows_test.py`): ")
    assert "`ROW_BASE`" in failed.decision and "relative to the working directory" in failed.rationale


def test_a_plan_is_done_once_it_was_committed_and_the_person_went_on() -> None:
    plan = "# Plan: one chart per harbour\n\n## Steps\n1. Split `chart.py` by harbour\n2. Rename `all_charts`\n"
    place = [(Position(n, n), Position(n + 1, n + 1)) for n in range(6)]
    asked = Event("call", "", *place[0], tool="ExitPlanMode", input={"plan": plan}, call_id="p")
    approved = Event("result", f"Approved.\n## Approved Plan:\n{plan}", *place[1], call_id="p")
    commit = Event("call", "", *place[2], tool="Bash", input={"command": "git commit -m x"}, call_id="c")
    made = Event("result", "[rows 64274e0f] Split the charts", *place[3], tool="Bash", call_id="c")
    went_on = Event("user", "now what is next for the tides?", *place[4])
    assert [one.status for one in find_decisions([asked, approved, commit, made])][:1] == ["active"]
    assert {one.status for one in find_decisions([asked, approved, commit, made, went_on])} == {"done"}


def test_a_sentence_without_a_subject_gets_the_one_thing_that_was_named_before_it() -> None:
    found = decided(
        ("agent", "Let me check whether `oldest_chart` has other callers."),
        ("run", "grep oldest_chart"),
        ("agent", "Still used in `tide.py` and `tour.py`. Leaving it in place is correct."),
        ("run", "make"),
    )
    assert in_force(found) == ["`oldest_chart`: still used in `tide.py` and `tour.py`. Leaving it in place is correct."]


def test_the_label_of_a_task_is_no_part_of_what_was_done() -> None:
    ground = "In `list_charts()`, the cleanup only catches charts that have a name."
    found = decided(
        ("agent", ground), ("agent", "Task #2 fix — broaden the cleanup in `list_charts()`:"), ("edit", "charts.py")
    )
    made = [one.decision for one in found if one.status == "done"]
    assert len(made) == 1 and made[0].startswith("Broaden the cleanup in `list_charts()`")


def test_a_verdict_that_leaves_the_code_as_it_is_is_in_force() -> None:
    review = (
        "## Issues\n\n#### 1. Errors of `find_chart` are lost\n\nThis should be fixed before merging.\n\n"
        "#### 2. `max()` builtin\n\nUses the builtin of 1.21, fine given the target 1.25.\n"
    )
    found = decided(("user", "review it"), ("agent", review))
    assert [one.status for one in found] == ["done", "active"]
