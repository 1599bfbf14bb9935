"""Memory: what holds beyond one task, and who may say so."""

from __future__ import annotations

import pytest

from promises.user import MEMORY, User, save

pytestmark = pytest.mark.ci

AGENT = {"CLAUDECODE": "1"}
GAUGE = "the gauge at Dover speaks feet"


def handed(user: User, task: str) -> str:
    """What an agent is handed for a task."""
    return user.does("memory", "show", "--for", task).out


def test_what_a_person_adds_is_handed_to_the_agent_of_a_task_that_it_concerns(user: User) -> None:
    assert user.types("memory", "add", "fact", GAUGE)[0] == 0
    user.types("memory", "add", "fact", "the printer needs thick paper")
    found = handed(user, "why is the gauge at Dover so high?")
    assert GAUGE in found
    assert "thick paper" not in found


def test_all_of_the_memory_is_shown_in_one_word_and_a_kind_without_items_is_no_empty_memory(user: User) -> None:
    assert "nothing is remembered" in user.does("memory", "show", "trap").err
    user.types("memory", "add", "fact", GAUGE)
    assert GAUGE in user.does("memory", "--all").out
    said = user.does("memory", "show", "trap").err
    assert "no trap" in said and "nothing is remembered" not in said


def test_what_an_agent_offers_counts_once_a_person_has_accepted_it(user: User) -> None:
    user.does("memory", "add", "fact", GAUGE, env=AGENT)
    assert GAUGE in user.does("memory").out
    assert GAUGE not in handed(user, "the gauge at Dover")
    assert user.types("memory", "accept", "fact-1")[0] == 0
    assert GAUGE in handed(user, "the gauge at Dover")


@pytest.mark.parametrize(
    "typed",
    [("accept", "fact-2"), ("drop", "fact-1"), ("edit", "fact-1", "text=the gauge at Dover speaks metres")],
    ids=["accept", "drop", "edit"],
)
def test_no_agent_accepts_its_own_offer_or_changes_what_a_person_said(user: User, typed: tuple[str, ...]) -> None:
    user.types("memory", "add", "fact", GAUGE)
    user.does("memory", "add", "fact", "the gauge at Deal speaks feet, too", env=AGENT)
    user.ralf("memory", *typed, env=AGENT)
    found = handed(user, "the gauge at Dover, the gauge at Deal")
    assert GAUGE in found
    assert "Deal speaks feet" not in found


def test_no_agent_goes_back_to_what_the_memory_was_before_a_person_spoke(user: User) -> None:
    user.types("memory", "add", "fact", "the printer needs thick paper")
    user.types("memory", "add", "fact", GAUGE)
    user.ralf("memory", "edit", "--to", "r1", env=AGENT)
    assert GAUGE in handed(user, "the gauge at Dover")


def test_the_memory_file_is_the_persons_to_edit(user: User) -> None:
    user.types("memory", "add", "fact", GAUGE)
    user.types("memory", "add", "fact", "the harbour closes at noon")
    path = user.project / MEMORY / "main.md"
    user.edit(path, "speaks feet", "speaks fathoms")
    lines = path.read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if "closes at noon" in line)
    last = next(number for number in range(first + 1, len(lines)) if not lines[number].startswith("  "))
    save(path, "".join([*lines[:first], "- the ferry takes no lorries\n", *lines[last:]]))
    for _ in range(2):
        found = user.does("memory").out
        assert "speaks fathoms" in found
        assert "the ferry takes no lorries" in found
        assert "speaks feet" not in found
        assert "closes at noon" not in found
        user.types("memory", "add", "fact", "the crane is out of order")
    assert "the ferry takes no lorries" in path.read_text()


def test_a_trap_that_a_session_fell_into_is_handed_over_with_what_resolved_it(user: User) -> None:
    first = user.session()
    first.says("Make the tests of the tide table pass.")
    first.runs("npm test", "Error: connect ECONNREFUSED 127.0.0.1:6379", failed=True)
    first.runs("docker compose up -d redis", "Container redis Started")
    first.runs("npm test", "12 passing")
    first.answers("The tests pass.")
    first.hook("SessionEnd", reason="other")
    found = handed(user, "npm test cannot connect")
    assert "docker compose up -d redis" in found
    assert "ECONNREFUSED 127.0.0.1:6379" in found


def test_a_forgotten_memory_is_in_no_file_of_the_store(user: User) -> None:
    user.types("memory", "add", "fact", "Zanzibar pays in doubloons")
    user.types("memory", "add", "fact", GAUGE)
    user.does("decide", "harbour", "Read the gauges twice a day")
    user.does("forget", "harbour", "--text", "pays in doubloons", "--yes")
    assert not [path for path, found in user.store_bytes() if b"doubloons" in found]
    assert GAUGE in handed(user, "the gauge at Dover")
