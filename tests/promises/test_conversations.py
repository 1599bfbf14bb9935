"""Conversations of an agent loop of one's own (docs/library.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from promises.user import User

Message = dict[str, Any]


def conversation() -> list[Message]:
    """A system prompt, a request that is pinned, forty turns with a tool's call and result, and a last request."""
    found: list[Message] = [
        {"role": "system", "content": "You mend the tide server."},
        {"role": "user", "content": "Make the tests pass, and change no public name."},
    ]
    for turn in range(40):
        given = {"type": "tool_use", "id": f"t{turn}", "name": "Bash", "input": {"command": f"pytest part_{turn}"}}
        levels = " ".join(f"level-{turn}-{row}" for row in range(40))
        result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": levels}
        found += [{"role": "assistant", "content": [given]}, {"role": "user", "content": [result]}]
    return [*found, {"role": "user", "content": "Now write the docs."}]


def python(user: User, code: str, *given: object) -> Any:
    """What a program prints as JSON that gets some values as JSON."""
    ran = user.python("import json, sys\ngiven = json.loads(sys.stdin.read())\n" + code, stdin=json.dumps(given))
    assert ran.status == 0, ran
    return ran.json()


def count(messages: list[Message]) -> int:
    """The words of messages as compact JSON: no measure of theirs finds fewer."""
    return sum(len(json.dumps(message, separators=(",", ":")).split()) for message in messages)


TRUNCATED = """
from ralf.conversation.truncation import truncate
def words(text):
    return len(text.split())
messages, budgets = given
print(json.dumps([list(truncate(messages, budget, pins=[1], count=words).messages) for budget in budgets]))
"""


def test_a_cut_conversation_is_never_over_its_budget_and_keeps_what_is_promised(user: User) -> None:
    messages, budgets = conversation(), [40, 100, 300, 1_000, 1_700, 10_000]
    cut = python(user, TRUNCATED, messages, budgets)
    assert cut[-1] == messages
    for budget, kept in zip(budgets, cut, strict=True):
        assert count(kept) <= budget
        assert (kept[:2], kept[-1]) == (messages[:2], messages[-1]), budget
        newest = kept[2:]
        assert newest == messages[len(messages) - len(newest) :], budget  # without a gap, calls with their results
        assert not newest or newest[0]["role"] != "user" or len(newest) == 1, budget
    assert len(cut[2]) < len(cut[3]) < len(cut[4]) < len(messages)


def test_a_conversation_that_cannot_fit_is_shortened_and_still_not_over_its_budget(user: User) -> None:
    messages = [{"role": "system", "content": "rule " * 900}, {"role": "user", "content": "level " * 900}]
    for budget, kept in zip([0, 50, 500], python(user, TRUNCATED, messages, [0, 50, 500]), strict=True):
        assert count(kept) <= budget


@pytest.mark.ci
def test_what_is_cut_becomes_a_checkpoint_that_is_found_and_the_same_again_writes_nothing(user: User) -> None:
    code = """
from ralf.conversation.summary import summarize
messages, = given
made = [summarize(messages, 6_000, "tide") for _ in range(2)]
print(json.dumps([list(one.messages) for one in made]))
"""
    messages = conversation()
    messages[4]["content"] = "Remember that the gauge at Dover speaks feet."
    once, again = python(user, code, [messages[0], messages[1], *messages[4:5], *messages])
    assert once == again
    assert (once[0], once[-1]) == (messages[0], messages[-1])
    assert len(json.dumps(once)) < len(json.dumps(messages)) * 0.7
    assert user.does("show", "tide", "--json").json()["checkpoint_count"] == 1
    assert any("Dover" in hit["text"] for hit in user.does("search", "gauge Dover feet", "--json").json())


COMPACTED = """
from ralf.compaction.flow import compact, undo
messages, more = given
made = list(compact(messages, 8_000, "tide", used=7_000, **more).messages)
print(json.dumps([made, undo(made, "tide")]))
"""


def finished(*said: str) -> list[Message]:
    """A conversation whose first task is complete and whose second one has begun."""
    messages = conversation()[:-1]
    closing = "\n\n".join([*said, "<promise>COMPLETE</promise>"])
    return [*messages, {"role": "assistant", "content": closing}, {"role": "user", "content": "Now write the docs."}]


@pytest.mark.ci
def test_completed_tasks_are_compacted_the_current_one_is_whole_and_undo_gives_every_message_back(user: User) -> None:
    messages = finished("Both forms are read.")
    made, undone = python(user, COMPACTED, messages, {})
    assert undone == messages
    assert (made[0], made[-1]) == (messages[0], messages[-1])
    assert len(json.dumps(made)) < len(json.dumps(messages)) / 2


@pytest.mark.ci
def test_what_the_agent_said_at_the_end_of_a_compacted_task_is_sent_whole(user: User) -> None:
    closing = ["Decision: use tabs.", "Rationale: the linter wants them."]
    made, _ = python(user, COMPACTED, finished(*closing), {})
    assert all(words in json.dumps(made) for words in closing)


@pytest.mark.ci
def test_a_pinned_message_survives_compaction(user: User) -> None:
    messages = finished("Both forms are read.")
    made, _ = python(user, COMPACTED, messages, {"pins": [1]})
    assert messages[1] in made


def test_large_results_are_kept_with_the_run_and_restored_as_they_were(user: User) -> None:
    code = """
from ralf.agent import AgentRun
from ralf.conversation.results import restore, store_results
messages, = given
with AgentRun("nightly") as run:
    short = store_results(messages, run)
    print(json.dumps([short, restore(short, run)]))
    run.complete()
"""
    messages = conversation()
    messages[3]["content"][0]["content"] = "level " * 4_000
    short, restored = python(user, code, messages)
    assert restored == messages
    assert len(json.dumps(short)) < len(json.dumps(messages)) - 20_000
