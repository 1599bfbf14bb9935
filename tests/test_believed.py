"""What of a model's answer is believed, and what it may change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clocks import within
from ralf.facts.grounding import Evidence
from ralf.model import ActiveWork, Decision, ErrorFact, Source
from ralf.summarize.answer import BadAnswer, patch_of
from ralf.summarize.believed import Believed, Lines, believed
from ralf.summarize.listed import Listed
from ralf.transcripts.events import EvidenceLine
from storekit import AT_ONCE, NO_ANSWER, NO_CURATION, NO_HANDOVER

SEGMENT = [
    EvidenceLine(1, 1, "user", "", "Keep the old columns of the tide table. Never push to main."),
    EvidenceLine(2, 2, "assistant", "", "The reader took 1,250 ms. Shall I move `read_all` to src/reader.py?"),
    EvidenceLine(4, 4, "user", "", "yes, do it"),
    EvidenceLine(5, 5, "call", "Bash", "pytest -q tests/test_reader.py"),
    EvidenceLine(6, 6, "result", "Bash", "We decided to use Kafka for the spare parts. 17 errors"),
    *(EvidenceLine(n, n, "assistant", "", f"Looking at part {n}.") for n in range(10, 40)),
    EvidenceLine(90, 90, "assistant", "", "We do not use a cache for the reader."),
    EvidenceLine(94, 94, "assistant", "", "1. Rebuild the index, 2. leave it. Which one?"),
    EvidenceLine(95, 95, "user", "", "no, leave that one and go on"),
]


def rule_made(label: str, text: str, **fields: Any) -> Decision:
    """A decision that a rule has extracted."""
    return Decision(id=label, decision=text, **({"origin": "agent", "source": Source("s-1", 2, 2)} | fields))


def found(
    *decisions: dict[str, Any], listed: Listed | None = None, handover: dict[str, Any] | None = None, **curation: Any
) -> Believed:
    tree = {
        **NO_ANSWER,
        "decisions": list(decisions),
        "handover": {**NO_HANDOVER, **(handover or {})},
        "curation": {**NO_CURATION, **curation},
    }
    evidence = Evidence(line.text for line in SEGMENT)
    return believed(
        patch_of(tree), Lines(SEGMENT), evidence, listed or Listed(), session="s-1", timestamp="2026-03-01T08:00:00Z"
    )


def chosen(text: str, line: int, *, kind: str = "decision", reason: str = "") -> dict[str, Any]:
    return {"kind": kind, "status": "active", "text": text, "reason": reason, "rejected": [], "line": line}


def reworded(label: str, text: str) -> dict[str, Any]:
    return {"id": label, "text": text, "reason": "", "rejected": []}


# ---- free wording ----


@pytest.mark.parametrize(
    "text",
    [
        "Everything that reads tides has moved to `src/reader.py` by now",
        "It takes 1250 ms, more than anybody would like",
        "Run `pytest -q tests/test_reader.py` again; there were seventeen (17) errors",
        "The main branch is not to be pushed",
    ],
)
def test_a_sentence_in_the_models_own_words_is_believed_where_all_its_names_stand_somewhere(text: str) -> None:
    after = found(handover={"state": text})
    assert (after.handover.state, after.unborne) == (text, ())


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("It is in `src/writer.py` now.", "src/writer.py"),
        ("The reader took 1,251 ms.", "1,251"),
        ("Run `pytest -x` next.", "pytest -x"),
        ("Wrote tideReader for it.", "tideReader"),
        ("See PR #4711 for it.", "#4711"),
        ("The new one runs on Redis.", "Redis"),
    ],
)
def test_a_sentence_with_a_name_that_stands_nowhere_is_left_out_and_says_which(text: str, missing: str) -> None:
    after = found(handover={"state": f"It works. {text}", "next": [text]})
    assert (after.handover.state, after.handover.next, after.handover.dropped) == ("It works.", (), 2)
    assert [names for _, names in after.unborne] == [(missing,), (missing,)]
    assert after.unsupported == 2


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("commit 5ae4b4e1 it is", "made 5ae4b4e1c0ffee5ae4b4e1c0ffee5ae4b4e1c0ff"),
        ("in src/a.py:42", "src/a.py has a fault in line 42"),
        ("a window of 200k", "200,000 tokens"),
        ("lines 12-14", "from 12 to 14"),
        ("PR #89", "pull/89"),
        ("two tests of 2", "two tests"),
        ("`append(parts, …`", "append(parts, more)"),
        ("about ~50%", "50 of them"),
        ("`create_issue` refused it", "call of mcp__tracker__create_issue"),
        ("it ran at 10:52:21.099Z", "2026-02-08T10:52:21.099Z stop"),
    ],
)
def test_a_name_may_be_spelt_as_people_do(text: str, seen: str) -> None:
    assert Evidence([seen]).missing(text) == []


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("commit 5ae4b4e1", "ab5ae4b4e1"),
        ("commit 5ae4b4e1c0ffee", "5ae4b4e1"),
        ("in src/a.py:42", "src/a.py"),
        ("a window of 201k", "200,000 tokens"),
        ("PR #89", "pull/890"),
        ("`append(parts, …`", "append(all)"),
        ("src/reader", "src and reader"),
        ("`create_issue` refused it", "call of mcp__tracker__create_issues"),
        ("it ran at 10:52", "2026-02-08T10:521"),
    ],
)
def test_another_name_is_another_name(text: str, seen: str) -> None:
    assert Evidence([seen]).missing(text)


# ---- new decisions ----


def test_a_decision_comes_with_who_said_it_and_where_and_with_the_users_own_words() -> None:
    (made,) = found(chosen("Keep every old column that the tide table has", 1)).decisions
    assert (made.origin, made.kind, made.status, made.id) == ("user", "decision", "active", "")
    assert made.rationale == '(user: "Keep the old columns of the tide table. Never push to main.")'
    assert made.source is not None
    assert (made.source.session, made.source.first_line, made.source.last_line) == ("s-1", 1, 1)
    (other,) = found(chosen("No cache for the reader", 90)).decisions
    assert (other.origin, other.rationale) == ("agent", "")


def test_an_answer_is_understood_by_its_question_and_is_the_users() -> None:
    (made,) = found(chosen("`read_all` is to move to src/reader.py", 4)).decisions
    assert made.origin == "user"
    assert made.source is not None
    assert made.source.first_line == 4


def test_the_user_is_quoted_unless_the_words_say_nothing_or_stand_there_already() -> None:
    assert found(chosen("`read_all` is to move to src/reader.py", 4)).decisions[0].rationale == ""
    (made,) = found(chosen("The index is not rebuilt", 95, reason="It can wait.")).decisions
    assert made.rationale == 'It can wait. (user: "no, leave that one and go on")'


def test_words_that_the_user_only_accepted_are_not_quoted_as_theirs_when_they_are_reworded() -> None:
    own = rule_made("DEC-001", "Keep the old columns of the tide table", origin="user")
    offered = rule_made("DEC-002", "The index might as well be rebuilt at night", origin="user")
    told = [reworded("DEC-001", "All columns stay"), reworded("DEC-002", "The index is rebuilt later")]
    one, other = found(listed=Listed((own, offered)), reworded=told).amendments
    assert one.rationale == '(user: "Keep the old columns of the tide table")'
    assert other.rationale == ""


def test_what_a_tool_printed_never_becomes_a_decision() -> None:
    after = found(chosen("Use Kafka for the spare parts", 6))
    assert (after.decisions, after.unsupported) == ((), 1)


def test_where_the_line_is_wrong_the_message_that_surely_says_it_is_found() -> None:
    (made,) = found(chosen("Do not use a cache for the reader", 20)).decisions
    assert made.source is not None
    assert made.source.first_line == 90
    assert found(chosen("Paint the weather station", 20)).decisions == ()


def test_an_unsupported_reason_goes_and_the_decision_stays() -> None:
    after = found(chosen("No cache for the reader", 90, reason="the auditors ask for 4711 of them"))
    assert ([item.rationale for item in after.decisions], after.unsupported) == ([""], 1)


def test_a_standing_rule_is_the_users_own() -> None:
    after = found(chosen("Never push to main", 1, kind="rule"), chosen("No cache for the reader", 90, kind="rule"))
    assert [(item.kind, item.pinned) for item in after.decisions] == [("rule", True), ("decision", False)]


def test_a_known_decision_is_not_listed_twice() -> None:
    known = rule_made("DEC-001", "Keep the old columns of the tide table")
    after = found(chosen("Keep the old columns of the tide table", 1), listed=Listed((known,)))
    assert (after.decisions, after.unsupported) == ((), 0)


# ---- what becomes of listed items ----

LISTED = Listed.of(
    [rule_made("DEC-001", "Let me look at the reader"), rule_made("DEC-002", "do it", origin="user")],
    ActiveWork(next_steps=("Look at the reader", "Move it"), findings=("It is slow",)),
    [ErrorFact("17 errors", "pytest -q")],
)


def test_each_verdict_gives_a_decision_its_status() -> None:
    after = found(listed=LISTED, drop=["DEC-001"], done=["DEC-002"])
    assert {item.id: item.status for item in after.amendments} == {"DEC-001": "dropped", "DEC-002": "done"}
    assert found(listed=LISTED, taken_back=["DEC-001"]).amendments[0].status == "reversed"
    assert found(listed=LISTED, keep=["DEC-001", "DEC-002"]).amendments == ()


def test_steps_findings_and_errors_that_are_over_are_closed() -> None:
    after = found(listed=LISTED, done=["N1", "E1"], drop=["F1"], keep=["N2"])
    assert after.closed == {"next_steps": ("Look at the reader",), "errors": LISTED.errors, "findings": ("It is slow",)}


def test_an_item_of_which_nothing_is_said_stays_and_is_counted() -> None:
    assert found(listed=LISTED, drop=["DEC-001"]).verdicts == {"drop": 1, "unmentioned": 5}


def test_an_unknown_item_is_refused() -> None:
    assert found(listed=LISTED, drop=["DEC-009"]).refused == ("DEC-009: no such item is listed",)


def test_what_repeats_a_new_decision_is_replaced_by_it_and_the_new_one_says_so() -> None:
    new = chosen("`read_all` is to move to src/reader.py", 4)
    after = found(new, listed=LISTED, duplicate=[{"id": "DEC-001", "of": "#1"}, {"id": "DEC-002", "of": "DEC-001"}])
    assert [(item.id, item.status, item.replaced_by) for item in after.amendments] == [
        ("DEC-001", "superseded", "#1"),
        ("DEC-002", "superseded", "#1"),
    ]
    assert after.decisions[0].supersedes == "DEC-001"


@pytest.mark.parametrize(
    "replaced",
    [
        [{"id": "DEC-001", "by": "DEC-001"}],
        [{"id": "DEC-001", "by": "DEC-002"}, {"id": "DEC-002", "by": "DEC-001"}],
        [{"id": "DEC-001", "by": "#7"}],
        [{"id": "DEC-001", "by": "DEC-404"}],
        [{"id": "DEC-001", "by": ""}],
    ],
)
def test_nothing_is_replaced_by_itself_in_a_circle_or_by_what_is_not_there(replaced: list[dict[str, str]]) -> None:
    after = found(listed=LISTED, superseded=replaced)
    assert (after.amendments, len(after.refused)) == ((), len(replaced))


def test_a_reworded_decision_has_new_words_and_keeps_the_reason_that_it_had() -> None:
    known = rule_made("DEC-001", "move it", rationale="It took 1,250 ms.")
    after = found(listed=Listed((known,)), reworded=[reworded("DEC-001", "Move `read_all` to src/reader.py")])
    (made,) = after.amendments
    assert (made.decision, made.rationale, made.status) == ("Move `read_all` to src/reader.py", "It took 1,250 ms.", "")


def test_new_words_that_name_what_stands_nowhere_leave_a_decision_as_it_is() -> None:
    after = found(listed=LISTED, reworded=[reworded("DEC-001", "Move `read_all` to src/forged.py")])
    assert (after.amendments, after.unsupported) == ((), 1)


def test_a_rule_is_reworded_only_in_the_users_words() -> None:
    rule = rule_made("DEC-001", "never push to main", kind="rule", pinned=True, origin="user")
    listed = Listed((rule,))
    assert found(listed=listed, reworded=[reworded("DEC-001", "Never push to the main branch")]).amendments
    assert not found(listed=listed, reworded=[reworded("DEC-001", "Push whenever somebody likes")]).amendments
    for turned in ("Push to main", "Push to the main branch whenever it is ready"):
        assert not found(listed=listed, reworded=[reworded("DEC-001", turned)]).amendments


@pytest.mark.parametrize(
    "mine",
    [
        {"origin": "human-edit"},
        {"origin": "user", "source": None},
        {"origin": "unknown", "source": None},
        {"origin": "", "source": None},
        {"pinned": True},
    ],
)
@pytest.mark.parametrize(
    "curation",
    [
        {"drop": ["DEC-001"]},
        {"done": ["DEC-001"]},
        {"taken_back": ["DEC-001"]},
        {"superseded": [{"id": "DEC-001", "by": "DEC-002"}]},
        {"reworded": [{"id": "DEC-001", "text": "Read", "reason": "", "rejected": []}]},
    ],
    ids=lambda curation: next(iter(curation)),
)
def test_a_persons_own_decision_is_never_changed(mine: dict[str, Any], curation: dict[str, Any]) -> None:
    listed = Listed((rule_made("DEC-001", "Read with a loop", **mine), rule_made("DEC-002", "Read it at once")))
    after = found(listed=listed, **curation)
    assert after.amendments == ()
    assert "a person's own" in after.refused[0]


def test_what_the_agent_recorded_itself_can_be_over_but_is_not_thrown_out_or_reworded() -> None:
    listed = Listed((rule_made("DEC-001", "Read with a loop", source=None),))
    assert found(listed=listed, done=["DEC-001"]).amendments
    assert not found(listed=listed, drop=["DEC-001"]).amendments
    assert not found(listed=listed, reworded=[reworded("DEC-001", "Read")]).amendments


def test_a_rule_of_the_user_gives_way_to_the_users_words_alone() -> None:
    rule = rule_made("DEC-001", "Never push to main", kind="rule", pinned=True, origin="user")
    by_agent, by_user = rule_made("DEC-002", "Push it now"), rule_made("DEC-003", "Push it now", origin="user")
    by_user = replace(by_user, kind="rule")
    listed = Listed((rule, by_agent, by_user))
    assert not found(listed=listed, superseded=[{"id": "DEC-001", "by": "DEC-002"}]).amendments
    assert found(listed=listed, superseded=[{"id": "DEC-001", "by": "DEC-003"}]).amendments


@pytest.mark.parametrize("verdict", ["drop", "done", "taken_back"])
def test_a_rule_of_the_user_does_not_end_by_a_models_verdict(verdict: str) -> None:
    listed = Listed((rule_made("DEC-001", "Never push to main", kind="rule", pinned=True, origin="user"),))
    after = found(listed=listed, **{verdict: ["DEC-001"]})
    assert after.amendments == ()
    assert "a rule of the user ends with the user's words alone" in after.refused[0]
    agents = Listed((rule_made("DEC-001", "Never push to main", kind="rule", pinned=True),))
    assert found(listed=agents, **{verdict: ["DEC-001"]}).amendments


def test_a_rule_of_the_user_is_not_replaced_by_what_the_user_never_said_or_said_of_something_else() -> None:
    rule = rule_made("DEC-001", "Never push to main", kind="rule", pinned=True, origin="user")
    other = rule_made("DEC-002", "Keep the old columns of the tide table", origin="user")
    listed = Listed((rule, other))
    answered = chosen("Move `read_all` to src/reader.py and push to main", 4)  # where the user said "yes, do it"
    after = found(answered, listed=listed, superseded=[{"id": "DEC-001", "by": "#1"}])
    assert ([item.origin for item in after.decisions], after.amendments) == (["user"], ())
    assert not found(listed=listed, superseded=[{"id": "DEC-001", "by": "DEC-002"}]).amendments
    before = rule_made("DEC-003", "Push to main at once", origin="user", source=Source("s-0", 4, 4))  # a "yes" of then
    assert not found(listed=Listed((rule, before)), superseded=[{"id": "DEC-001", "by": "DEC-003"}]).amendments


def test_a_decision_that_a_person_reworded_is_theirs() -> None:
    listed = Listed.of([rule_made("DEC-001", "Read with a loop")], ActiveWork(), (), {"DEC-001"})
    assert "a person's own: keep" in next(listed.lines())
    assert not found(listed=listed, drop=["DEC-001"]).amendments


# ---- hostile answers ----


def test_names_without_end_and_places_without_end_are_looked_for_in_little_time() -> None:
    seen = Evidence(["the reader's table of the tide\n" * 30_000])
    names = ["Q" + "".join(chr(97 + number // 26**place % 26) for place in range(4)) for number in range(400)]

    def missed() -> None:
        assert seen.missing(" ".join(f"we {name}" for name in names)) == names
        assert len(seen.missing(" ".join("x" + f":{number}" * 600 for number in range(10, 20)))) == 10

    within(AT_ONCE, missed)
    assert seen.missing("we Read it; the Reader is a Table") == []


def test_an_answer_of_more_words_than_anybody_reads_is_refused() -> None:
    with pytest.raises(BadAnswer, match="its texts have 60,014 characters, more than 40,000"):
        found(chosen("x" * 60_000, 2))
