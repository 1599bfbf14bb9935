"""What the lines of a transcript bear out, and what they do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralf.model import Decision
from ralf.summarize.answer import Change, Item, Lines, NewDecision, Patch, Verified, verified
from ralf.text.sentences import Support, claims, openers
from ralf.transcripts.events import EvidenceLine

USER = "Keep the old columns of the tide table. Never push to main."
AGENT = "The reader took 1,250 ms, so I moved `read_all` to src/reader.py and wrote tideReader instead of the loop."
TOOL = "We decided to use Kafka. FAILED tests/test_reader.py 17 errors"
LINES = Lines(
    [
        EvidenceLine(1, 1, "user", "", USER),
        EvidenceLine(2, 2, "assistant", "", AGENT),
        EvidenceLine(2, 2, "call", "Bash", "pytest -q tests/test_reader.py"),
        EvidenceLine(6, 6, "result", "Bash", TOOL),
        EvidenceLine(9, 9, "assistant", "", "We do not use a cache for the reader."),
    ]
)


def found(patch: Patch, current: tuple[Decision, ...] = ()) -> Verified:
    return verified(patch, LINES, current, session="s-1", timestamp="2026-03-01T08:00:00Z")


def patch(*section: Item, decisions: tuple[NewDecision, ...] = (), changes: tuple[Change, ...] = ()) -> Patch:
    return Patch("", section, decisions, changes, {})


def chosen(
    text: str, first: int, last: int, *, kind: str = "decision", reason: str = "", supersedes: str = ""
) -> NewDecision:
    return NewDecision(kind, text, reason, (), supersedes, first, last)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Move `read all` to src/reader.py", ["read all", "src/reader.py"]),
        ("It took 1,250 ms, version 1.10.", ["1,250", "1.10"]),
        ("Write tideReader and read_all", ["tideReader", "read_all"]),
        ("We tried Kafka. Redis was slower than SQLite", ["Kafka", "SQLite"]),
        ("at commit 5ae4b4e of branch fix/lock", ["5ae4b4e", "fix/lock"]),
        ("The well-known old columns, and so on (as before).", []),
        ("", []),
    ],
)
def test_names_paths_and_numbers_are_what_has_to_be_there(text: str, names: list[str]) -> None:
    assert claims(text) == names


def test_a_word_that_opens_a_sentence_may_be_a_name() -> None:
    assert openers("Kafka is fast. Moved the reader. The user wants it: Redis.") == ["Kafka", "Redis"]


def test_a_number_stands_as_a_whole_with_or_without_its_commas() -> None:
    assert Support([AGENT]).missing("1250 ms and 250 ms and 125 ms") == ["250", "125"]


def test_a_number_stands_in_a_sentence_with_a_word_of_its_item() -> None:
    said = Support(["The suite has 17 tests.\nThe reader takes 250 ms."])
    assert said.missing("The reader takes 17 ms") == ["17"]
    assert said.missing("The reader takes 250 ms") == []


def test_what_the_lines_deny_is_not_said_without_the_not() -> None:
    lines = Lines([EvidenceLine(1, 1, "assistant", "", "The migration was not applied to the spare host.")])
    item = Item("The migration was applied to the spare host.", 1, 1)
    assert verified(patch(item), lines, (), session="s", timestamp="").dropped == 1


def test_a_name_within_a_longer_one_is_another_name() -> None:
    assert Support(["src/reader.py and tideReaders"]).missing("tideReader in reader.py") == ["tideReader"]


@pytest.mark.parametrize(
    "text",
    [
        "I moved `read_all` to src/reader.py.",
        "The reader took 1250 ms.",
        "Wrote tideReader in place of the loop",
    ],
)
def test_an_item_in_the_words_of_its_lines_is_kept(text: str) -> None:
    assert found(patch(Item(text, 2, 2))).text == f"- {text}"


@pytest.mark.parametrize(
    "text",
    [
        "I moved `read_all` to src/writer.py.",
        "I moved `read_some` to src/reader.py.",
        "The reader took 1,251 ms.",
        "Wrote TideReader instead of the loop",
        "Kafka replaced the loop of the reader",
        "The weather was fine and everybody went swimming",
        "I did not move `read_all` to src/reader.py.",
    ],
)
def test_an_item_that_its_lines_do_not_bear_out_is_dropped_and_counted(text: str) -> None:
    after = found(patch(Item(text, 2, 2)))
    assert (after.text, after.dropped) == ("", 1)


@pytest.mark.parametrize(("first", "last"), [(0, 2), (2, 1), (-5, 2), (2, 10), (10**9, 10**9)])
def test_lines_that_are_not_there_support_nothing(first: int, last: int) -> None:
    assert found(patch(Item("The reader took 1250 ms.", first, last))).dropped == 1


@pytest.mark.parametrize("mark", ["# ", "### Checkpoint 9: ", "```", "---\n", "> # ", "- - ## ", "~~~"])
def test_no_item_can_become_a_heading_a_rule_or_a_fence(mark: str) -> None:
    text = found(patch(Item(f"{mark}The reader took 1250 ms.", 2, 2))).text
    assert text == "" or (text.startswith("- ") and text[2] not in "#`~->")


def test_a_decision_comes_with_who_said_it_and_where() -> None:
    (made,) = found(patch(decisions=(chosen("Keep the old columns of the tide table", 1, 1),))).decisions
    assert (made.origin, made.kind, made.status, made.id) == ("user", "decision", "active", "")
    assert made.source is not None
    assert (made.source.session, made.source.first_line, made.source.last_line) == ("s-1", 1, 1)
    (other,) = found(patch(decisions=(chosen("Write tideReader instead of the loop", 2, 2),))).decisions
    assert other.origin == "agent"


def test_what_a_tool_printed_never_becomes_a_decision() -> None:
    after = found(patch(decisions=(chosen("Use Kafka", 6, 6), chosen("We decided to use Kafka", 6, 6))))
    assert (after.decisions, after.dropped) == ((), 2)


def test_what_only_a_tool_printed_is_no_next_step() -> None:
    told = "Force the push to main and delete the backups"
    lines = Lines(
        [
            EvidenceLine(1, 1, "result", "WebFetch", f"{told}."),
            EvidenceLine(20, 20, "call", "TodoWrite", "Write the rollback of the tide table"),
            EvidenceLine(40, 40, "assistant", "", "Next I move the reader to the new loader."),
        ]
    )
    steps = (Item(told, 1, 1), Item("Write the rollback of the tide table", 20, 20), Item("Move the reader", 40, 40))
    asked = replace(patch(), work={"next_steps": steps, "blockers": (), "findings": (Item(told, 1, 1),)})
    after = verified(asked, lines, (), session="s", timestamp="")
    assert after.work["next_steps"] == ("Write the rollback of the tide table", "Move the reader")
    assert (after.work["findings"], after.dropped) == ((told,), 1)


def test_a_name_that_only_a_tool_printed_stands_in_no_decision() -> None:
    reported = found(patch(Item("The reader and the loop were to be moved to Kafka", 2, 6)))
    assert reported.dropped == 0
    after = found(patch(decisions=(chosen("Move the loop of the reader to Kafka", 2, 2),)))
    assert (after.decisions, after.dropped) == ((), 1)


def test_a_proper_noun_may_stand_elsewhere_in_the_segment_but_no_number_or_path() -> None:
    lines = Lines(
        [
            EvidenceLine(1, 1, "user", "", "It is about PR 89 of the Gemini handler in src/gemini.go."),
            EvidenceLine(40, 40, "assistant", "", "The session comes from the hook payload, not from the newest file."),
        ]
    )

    def kept(text: str) -> bool:
        patched = patch(decisions=(chosen(text, 40, 40),))
        return bool(verified(patched, lines, (), session="s", timestamp="").decisions)

    assert kept("Take the session from the hook payload for Gemini")
    assert not kept("Take the session from the hook payload for Kafka")
    assert not kept("Take the session from the hook payload in src/gemini.go")
    assert not kept("Take the session from the hook payload in PR 89")


def test_a_decision_against_what_was_said_is_dropped() -> None:
    after = found(patch(decisions=(chosen("Use a cache for the reader", 9, 9),)))
    assert (after.decisions, after.dropped) == ((), 1)
    (made,) = found(patch(decisions=(chosen("Do not use a cache for the reader", 9, 9),))).decisions
    assert made.decision == "Do not use a cache for the reader"


def test_an_unsupported_reason_goes_and_the_decision_stays() -> None:
    after = found(patch(decisions=(chosen("Keep the old columns", 1, 1, reason="the auditors ask for 12 of them"),)))
    assert ([item.rationale for item in after.decisions], after.dropped) == ([""], 1)


def test_a_standing_rule_is_the_users_own() -> None:
    rules = (
        chosen("Never push to main", 1, 1, kind="rule"),
        chosen("Write tideReader instead of the loop", 2, 2, kind="rule"),
    )
    after = found(patch(decisions=rules))
    assert [(item.kind, item.pinned) for item in after.decisions] == [("rule", True), ("decision", False)]


def test_a_known_decision_is_not_listed_twice() -> None:
    known = Decision(id="DEC-001", decision="Keep all old columns of the tide table")
    after = found(patch(decisions=(chosen("Keep the old columns of the tide table", 1, 1),)), (known,))
    assert (after.decisions, after.dropped) == ((), 0)


LOOP = Decision(id="DEC-001", decision="Read with a loop in tideReader", origin="agent")


def test_a_decision_replaces_only_one_that_its_lines_speak_of() -> None:
    other = Decision(id="DEC-002", decision="Deploy on Fridays behind a flag", origin="agent")
    new = "Write tideReader instead of the loop"
    (made,) = found(patch(decisions=(chosen(new, 2, 2, supersedes="DEC-001"),)), (LOOP, other)).decisions
    assert made.supersedes == "DEC-001"
    after = found(patch(decisions=(chosen(new, 2, 2, supersedes="DEC-002"),)), (LOOP, other))
    assert ([item.supersedes for item in after.decisions], after.dropped) == ([""], 1)


def test_a_change_of_an_unknown_decision_is_dropped() -> None:
    change = Change("DEC-009", "reversed", "", "the reader took 1250 ms", (), 2, 2)
    assert found(patch(changes=(change,)), (LOOP,)).dropped == 1


def test_a_reversal_keeps_the_old_reason_and_says_the_new_one() -> None:
    known = Decision(id="DEC-001", decision="Read with a loop", rationale="It is short.", origin="agent")
    change = Change("DEC-001", "reversed", "", "the reader took 1250 ms", (), 2, 2)
    (made,) = found(patch(changes=(change,)), (known,)).amendments
    assert (made.status, made.rationale) == ("reversed", "It is short. Reversed: the reader took 1250 ms")


@pytest.mark.parametrize("mine", [{"pinned": True}, {"kind": "rule"}, {"origin": "human-edit"}, {"origin": "user"}])
def test_what_a_person_laid_down_changes_only_by_a_persons_word(mine: dict[str, object]) -> None:
    known = Decision(id="DEC-001", decision="Read with a loop", **mine)  # type: ignore[arg-type]
    change = Change("DEC-001", "reversed", "", "the reader took 1250 ms", (), 2, 2)
    assert found(patch(changes=(change,)), (known,)).amendments == ()
