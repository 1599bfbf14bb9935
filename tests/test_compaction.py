"""Completed segments give way to their records (formats/agent-memory.md, statements 2 to 10, 24, 25)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.faults import compactions

import compactkit
from compactkit import SYSTEM, Messages, conversation, said
from ralf import project
from ralf.checkpointing.section import Segment, Summary
from ralf.compaction import records
from ralf.compaction.flow import Compaction, compact, undo
from ralf.compaction.segments import segments_of
from ralf.conversation.messages import cost
from ralf.conversation.summary import is_summary
from ralf.maintenance.forget import forget
from ralf.maintenance.verify import verify
from ralf.text import tokens

ROUTE = "TASK-7"
WORDS = 1_500  # of a small segment


def compacted(messages: Messages, root: Path, **more: object) -> Compaction:
    return compact(messages, 30_000, ROUTE, root=root, force=True, **more)  # type: ignore[arg-type]


# ---- what ----


@pytest.mark.ci
def test_agent_ceos_table_106_000_tokens_become_34_000_and_what_is_always_preserved_is_among_them(
    tmp_path: Path,
) -> None:
    system, memory = said("system", words_of(5_000)), said("user", f"# Agent Memory - executor\n{words_of(2_990)}")
    tasks, last = [full(number, size) for number, size in enumerate((25_000, 18_000, 35_000), 1)], compactkit.Task(4)
    while size_of(last.messages) < 20_000:
        last.noise(400)
    messages = [system, memory, *(message for task in tasks for message in task), *last.messages]
    assert 105_000 < size_of(messages) < 108_500
    made = compact(messages, 132_000, "TASK-9", pins=[1], root=tmp_path)
    assert (made.why, made.warnings, len(made.parts)) == ("threshold", (), 3)
    assert made.after == size_of(made.messages) <= 34_000
    assert [made.messages[0], made.messages[1], *made.messages[-len(last.messages) :]] == [
        system,
        memory,
        *last.messages,
    ]
    sent = json.dumps(made.messages, ensure_ascii=False)
    assert [words for number in (1, 2, 3) for words in preserved(number) if words not in sent] == []
    assert undo(made.messages, "TASK-9", root=tmp_path) == messages


def full(number: int, size: int) -> Messages:
    """A task of about so many tokens in which an agent says, among much else, what is always to be preserved."""
    task = compactkit.Task(number)
    sentences = preserved(number)
    for place in range(10_000):
        if size_of(task.messages) > size:
            break
        task.noise(500)
        task.says(f"Let me look at file {place} of part {number}, since the reading may be off there as well.")
        if place < len(sentences) and place % 2:
            task.says(sentences[place])
    task.says("\n".join([*sentences[::2], "<promise>COMPLETE</promise>"]))
    return task.messages


def preserved(number: int) -> list[str]:
    """A sentence of each kind that agent.ceo always preserves."""
    return [
        f"Decision {number}: queue the gauges in SQLite. Rationale: nobody has to run a server for it.",
        f"I created src/gauge_{number}.py and changed src/levels_{number}.py.",
        f"TASK-{number} went from pending to review, and the docs are with the writer now.",
        f"The import of part {number} failed on the byte order mark; reading it as utf-8-sig resolves that.",
        f"The setting retry_limit of part {number} is 5 now, it was 3.",
        f"Ana gets table {number} by 2026-12-0{number}, 17:00.",
    ]


def words_of(count: int) -> str:
    """A text of so many tokens."""
    return "gauge " * count


def size_of(messages: Sequence[Any]) -> int:
    """Their tokens."""
    return sum(cost(message, tokens.count) for message in messages)


@pytest.mark.ci
def test_statement_7_segments_of_25_000_tokens_lose_85_percent_and_the_figures_are_those_of_the_messages(
    tmp_path: Path,
) -> None:
    messages = conversation([25_000, 15_000, 29_000], 15_000)
    made = compact(messages, 100_000, ROUTE, root=tmp_path)
    assert made.why == "threshold" and len(made.parts) == 3
    large = [part for part in made.parts if part.before >= 25_000]
    assert len(large) == 2 and all(part.after <= 0.15 * part.before for part in large)
    for part in made.parts:
        assert part.after == sum(cost(message, tokens.count) for message in part.made)
    assert made.after == sum(cost(message, tokens.count) for message in made.messages)
    assert made.before == sum(cost(message, tokens.count) for message in messages)


@pytest.mark.ci
def test_statement_9_a_process_that_is_killed_at_any_call_leaves_the_state_before_or_after() -> None:
    found = compactions.run(compactions.Size(step=120))
    assert dict(found.examples) == {}
    assert found.rounds > 1


# ---- undo, shares, segments ----


@pytest.mark.ci
def test_summaries_over_their_share_are_cut_to_their_first_lines_the_oldest_first(tmp_path: Path) -> None:
    messages = conversation([WORDS, WORDS, WORDS], 200)
    made = compacted(messages, tmp_path)
    again = compact(list(made.messages), 4_000, ROUTE, root=tmp_path, force=True)
    assert [part.kind for part in again.parts] == ["shortened"] * len(again.parts)
    pinned = compact(list(made.messages), 4_000, "other", root=tmp_path, force=True, pins=[1])
    assert pinned.messages[1] is made.messages[1] and pinned.parts
    left = [message for message in again.messages if is_summary(message)]
    assert len(left) == 3 and sum(cost(one, tokens.count) for one in left) <= 800
    assert left[0]["content"].count("\n") < left[-1]["content"].count("\n")
    assert undo(again.messages, ROUTE, root=tmp_path) == list(made.messages)


def test_statement_24_tool_output_over_its_share_is_stored_the_oldest_first_and_the_current_task_keeps_its_own(
    tmp_path: Path,
) -> None:
    messages = conversation([WORDS, WORDS], 1_500)
    made = compact(messages, 12_000, ROUTE, root=tmp_path, used=100)
    assert made.why == "" and made.after < made.before
    changed = [index for index, pair in enumerate(zip(messages, made.messages, strict=True)) if pair[0] != pair[1]]
    assert changed[0] == 3 and not set(changed) & set(segments_of(messages).current)
    assert compact(list(made.messages), 12_000, ROUTE, root=tmp_path, used=100).messages == made.messages
    assert verify(root=tmp_path).findings == ()
    assert undo(made.messages, ROUTE, root=tmp_path) == messages


@pytest.mark.ci
def test_secrets_are_in_no_summary_and_a_forget_reaches_the_originals(tmp_path: Path) -> None:
    key = "AKIA" + "QX7ZP2MN4RT6WVLD"
    task = compactkit.planted(7, WORDS)
    task.says(f"I set the option `key` to {key}.")
    made = compacted([SYSTEM, *task.done(), said("user", "Go on.")], tmp_path)
    assert key not in json.dumps(made.messages)
    forget(ROUTE, text="Husum", root=tmp_path)
    original = records.decoded(
        project.find(tmp_path), records.status(project.find(tmp_path), ROUTE).parts[0].original, ""
    )
    assert "Husum" not in json.dumps(original)


# ---- pins, models, shapes ----


class Model:
    """A summariser that is asked once for each checkpoint."""

    name = "mine"

    def __init__(self) -> None:
        self.asked = 0

    def summarize(self, segment: Segment) -> Summary:
        """See `Summarizer`."""
        self.asked += 1
        return Summary("The reader", "- reads both forms of src/reader_7.py\n- and src/nowhere.py")


@pytest.mark.ci
def test_the_text_of_a_model_that_the_caller_passes_stands_in_the_place_of_the_record(tmp_path: Path) -> None:
    model = Model()
    made = compacted(conversation([WORDS], 200), tmp_path, summarizer=model)
    lines = made.messages[1]["content"].split("\n")
    marked = "- and src/nowhere.py (not found in the record: src/nowhere.py)"
    assert lines[1:4] == ["## Completed: The reader", "- reads both forms of src/reader_7.py", marked]
    assert (model.asked, made.warnings) == (1, ())
    assert "and src/nowhere.py (not found" in project.find(tmp_path).route_file(ROUTE).read_text()


def test_a_turn_that_left_no_to_do_open_is_complete_when_the_person_goes_on() -> None:
    task = compactkit.Task(1)
    for status in ("in_progress", "completed"):
        task.calls("TodoWrite", {"todos": [{"content": "Read both forms", "status": status}]}, "ok")
    task.says("Both are read.")
    messages = [SYSTEM, *task.messages, said("user", "Now the docs.")]
    assert segments_of(messages[:-1]).completed == ()
    assert segments_of(messages).completed == ((1, 2, 3, 4, 5, 6),)
    assert segments_of([SYSTEM, *task.messages[:3], said("user", "Well?")]).completed == ()


def test_calls_that_are_items_complete_a_task_and_are_in_its_record(tmp_path: Path) -> None:
    found: Messages = [said("user", "Read both forms.")]
    for number, command in enumerate((*[f"cat log/{n}" for n in range(20)], "pytest", "ralf task done 'Both'")):
        given = {"call_id": f"c{number}", "name": "shell", "arguments": json.dumps({"command": command})}
        output = "1 passed in 0.1s" if command == "pytest" else "reading " * 40
        found += [{"type": "function_call", **given}, {"type": "function_call_output", "call_id": f"c{number}"}]
        found[-1]["output"] = output
    made = compacted([*found, said("user", "Go on.")], tmp_path)
    assert len(made.messages) == 2
    assert "- `pytest`: 1 passed in 0.1s" in made.messages[0]["content"]
    assert "- `ralf task done 'Both'`" in made.messages[0]["content"]


def test_a_record_of_an_earlier_version_is_read_and_undone(tmp_path: Path) -> None:
    messages = conversation([WORDS], 200)
    made = compacted(messages, tmp_path)
    [file] = (tmp_path / ".autonomous/context/journal" / records.STREAMS).rglob("*.jsonl")
    here = project.find(tmp_path)
    [entry] = list(here.store.read(f"{records.STREAMS}{ROUTE}"))
    tree = json.loads(entry.record)
    tree["parts"][0] |= {"items": {"outcomes": ["12 passed"]}}
    del tree["parts"][0]["stays"]
    file.unlink()
    here.store.append(f"{records.STREAMS}{ROUTE}", json.dumps(tree).encode(), id=entry.id, after=None)
    assert undo(made.messages, ROUTE, root=tmp_path) == messages
