"""Completed segments of a conversation give way to summaries (formats/agent-memory.md, statements 2 to 10, 24, 25)."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tests.faults import compactions, conversations

import compactkit
import ralf
from compactkit import PLANTED, SYSTEM, Messages, conversation, said
from ralf import project
from ralf.compaction import records
from ralf.compaction.flow import LARGE, TARGET, Compaction, compact, undo
from ralf.compaction.outputs import Outputs
from ralf.compaction.segments import segments_of
from ralf.conversation.messages import cost, groups
from ralf.conversation.results import restore
from ralf.conversation.summary import is_summary
from ralf.errors import NotFound
from ralf.maintenance.forget import forget
from ralf.maintenance.verify import verify
from ralf.text import tokens

ROUTE = "TASK-7"
WORDS = 1_500  # of a small segment


def compacted(messages: Messages, root: Path, **more: object) -> Compaction:
    return compact(messages, 30_000, ROUTE, root=root, force=True, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Messages, Compaction, Path]:
    """One conversation that was compacted, for tests that only look."""
    root = tmp_path_factory.mktemp("compacted")
    messages = conversation([WORDS], 200)
    return messages, compacted(messages, root), root


# ---- when ----


@pytest.mark.ci
def test_statement_2_159_999_tokens_are_compacted_by_nobody_and_160_000_are(tmp_path: Path) -> None:
    messages = conversation([WORDS], 200)
    before = compact(messages, 200_000, ROUTE, used=159_999, root=tmp_path)
    assert (before.why, before.messages) == ("", tuple(messages))
    assert not (tmp_path / ".autonomous").exists()
    after = compact(messages, 200_000, ROUTE, used=160_000, root=tmp_path)
    assert after.why == "threshold" and len(after.messages) < len(messages)


@pytest.mark.ci
def test_statement_25_a_jump_into_the_buffer_compacts_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    messages = conversation([WORDS], 200)
    assert compact(messages, 200_000, ROUTE, used=180_000, mid_turn=True, root=tmp_path).why == ""
    assert compact(messages, 200_000, ROUTE, used=180_001, mid_turn=True, root=tmp_path).why == "buffer"


# ---- what ----


@pytest.mark.ci
def test_statement_3_the_current_task_stays_byte_for_byte_and_what_is_completed_goes(
    once: tuple[Messages, Compaction, Path],
) -> None:
    messages, made, _ = once
    current = [messages[index] for index in segments_of(messages).current]
    assert list(map(id, made.messages[-len(current) :])) == list(map(id, current))
    assert [message["role"] for message in made.messages[:2]] == ["system", "user"]
    assert len(made.messages) == 2 + len(current)


def test_statement_3_a_current_task_over_its_share_is_reported_with_an_offer_to_split_it(tmp_path: Path) -> None:
    messages = [SYSTEM, said("user", "tide " * 13_000)]
    made = compact(messages, 30_000, ROUTE, root=tmp_path, force=True)
    assert made.messages == tuple(messages) and made.current > 12_000
    assert "ralf task split TASK-7" in made.oversized
    assert compact([SYSTEM], 30_000, ROUTE, root=tmp_path).oversized == ""


def test_statement_4_all_items_under_the_five_keys_return(once: tuple[Messages, Compaction, Path]) -> None:
    items = once[1].parts[0].items
    keys = ("decisions_made", "files_modified", "blockers_encountered", "delegations", "outcomes")
    missing = [key for key in keys if PLANTED[key][1] not in " ".join(items.get(key, ()))]
    assert missing == []


def test_statement_5_the_six_kinds_that_are_always_kept_are_in_the_summary(
    once: tuple[Messages, Compaction, Path],
) -> None:
    text = once[1].messages[1]["content"]
    assert [words for _, words in PLANTED.values() if words not in text] == []
    assert "because nobody has to run a server" in text
    assert "the same command passed later" in text
    assert "tide.toml: timeout = 30 → timeout = 60" in text


@pytest.mark.ci
def test_statement_6_no_raw_byte_is_in_the_summary_and_the_evidence_still_finds_it(tmp_path: Path) -> None:
    task = compactkit.planted(7, WORDS)
    made = compacted([SYSTEM, *task.done(), said("user", "Go on.")], tmp_path)
    text = json.dumps(made.messages)
    assert task.raw and not [mark for mark in task.raw if mark in text]
    hits = ralf.search(task.raw[0], root=tmp_path)
    assert any(task.raw[0] in hit.text for hit in hits)


def test_statement_6_an_approach_that_failed_is_one_line_with_its_reason(
    once: tuple[Messages, Compaction, Path],
) -> None:
    [line] = once[1].parts[0].items["failed_attempts"]
    assert line == "tried a lock per row, failed because SQLite locks the whole file"


@pytest.mark.ci
def test_statement_7_segments_of_25_000_tokens_lose_85_percent_and_the_figures_are_those_of_the_messages(
    tmp_path: Path,
) -> None:
    messages = conversation([25_000, 15_000, 29_000], 15_000)
    made = compact(messages, 100_000, ROUTE, root=tmp_path)
    assert made.why == "threshold" and len(made.parts) == 3
    large = [part for part in made.parts if part.before >= LARGE]
    assert len(large) == 2 and all(part.reduction >= TARGET for part in large)
    for part in made.parts:
        assert part.after == sum(cost(message, tokens.count) for message in part.made)
    assert made.after == sum(cost(message, tokens.count) for message in made.messages)
    assert made.before == sum(cost(message, tokens.count) for message in messages)
    assert made.reduction == 1 - made.after / made.before < min(part.reduction for part in made.parts)


def test_statement_9_count_and_time_are_in_the_one_record_of_the_compaction(
    once: tuple[Messages, Compaction, Path],
) -> None:
    _, made, root = once
    here = project.find(root)
    [entry] = list(here.store.read(f"{records.STREAMS}{ROUTE}"))
    record = json.loads(entry.record)
    assert (record["count"], record["last"]) == (1, made.status.last_compacted)
    assert records.status(here, ROUTE) == made.status


@pytest.mark.ci
def test_statement_9_a_process_that_is_killed_at_any_call_leaves_the_state_before_or_after() -> None:
    """`python -m tests.faults.compactions` is the long run at every call."""
    found = compactions.run(step=120)
    assert dict(found.examples) == {}
    assert found.rounds > 1


@pytest.mark.ci
def test_statement_9_the_judge_finds_a_compaction_that_is_recorded_without_what_undoes_it(tmp_path: Path) -> None:
    messages = compactions.conversation()
    compact(messages, 30_000, compactions.ROUTE, root=tmp_path, force=True)
    blobs = [path for path in (tmp_path / ".autonomous/context/blobs").rglob("*") if path.is_file()]
    for path in blobs:
        path.unlink()
    assert compactions.judge(tmp_path, messages)


@pytest.mark.ci
def test_statement_10_compacting_twice_changes_nothing(tmp_path: Path) -> None:
    messages = conversation([WORDS], 200)
    first = compacted(messages, tmp_path)
    kept = (tmp_path / f".autonomous/context/journal/{records.STREAMS}{ROUTE}.jsonl").read_bytes()
    again, twice = compacted(messages, tmp_path), compacted(list(first.messages), tmp_path)
    assert json.dumps(again.messages) == json.dumps(first.messages) == json.dumps(twice.messages)
    assert (again.status, twice.parts) == (first.status, ())
    assert (tmp_path / f".autonomous/context/journal/{records.STREAMS}{ROUTE}.jsonl").read_bytes() == kept


# ---- undo, shares, segments ----


@pytest.mark.ci
def test_an_undo_gives_the_messages_back_byte_for_byte_and_the_next_compaction_counts(tmp_path: Path) -> None:
    messages = conversation([WORDS, WORDS], 200)
    made = compacted(messages, tmp_path)
    assert json.dumps(undo(made.messages, ROUTE, root=tmp_path)) == json.dumps(messages)
    with pytest.raises(NotFound, match=ROUTE):
        undo(made.messages, ROUTE, root=tmp_path)
    assert compacted(messages, tmp_path).status.count == 2
    with pytest.raises(NotFound, match=ROUTE):
        undo(messages, ROUTE, root=tmp_path)


@pytest.mark.ci
def test_summaries_over_their_share_are_cut_to_their_first_lines_the_oldest_first(tmp_path: Path) -> None:
    messages = conversation([WORDS, WORDS, WORDS], 200)
    made = compacted(messages, tmp_path)
    again = compact(list(made.messages), 4_000, ROUTE, root=tmp_path, force=True)
    assert [part.kind for part in again.parts] == ["shortened"] * len(again.parts)
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
    here = project.find(tmp_path)
    assert restore(made.messages, Outputs(here, ROUTE)) == messages
    assert compact(list(made.messages), 12_000, ROUTE, root=tmp_path, used=100).messages == made.messages
    assert verify(root=tmp_path).findings == ()


def test_a_segment_ends_behind_the_results_of_open_calls_and_what_the_agent_still_says() -> None:
    task = compactkit.Task(1)
    task.runs("ralf task done 'The reader reads both'", "TASK-1: completed")
    task.says("The reader is done.")
    messages = [SYSTEM, *task.messages, said("user", "Go on."), said("assistant", "I do.")]
    found = segments_of(messages)
    assert found.completed == ((1, 2, 3, 4),)
    assert (found.current, found.kept) == ((5, 6), (0,))
    assert segments_of(messages, completed=[2]) == found
    assert segments_of(messages, completed=lambda message: False).completed == ()


def test_a_task_whose_completion_was_refused_is_the_current_one() -> None:
    task = compactkit.Task(1)
    task.runs("ralf task done 'It works'", "error: TASK-1: `verify` did not pass", failed=False)
    task.runs("ralf task done 'It works'", "Exit code 1", failed=True)
    task.says("In a fence:\n```\n<promise>COMPLETE</promise>\n```")
    assert segments_of([SYSTEM, *task.messages]).completed == ()


def test_a_segment_whose_summary_would_be_no_smaller_stays(tmp_path: Path) -> None:
    messages = [said("user", "Hello."), said("assistant", "<promise>COMPLETE</promise>"), said("user", "Go on.")]
    made = compacted(messages, tmp_path)
    assert (made.messages, made.status.count, made.reduction) == (tuple(messages), 0, 0)


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


@pytest.mark.ci
def test_random_conversations_are_divided_without_loss_and_no_call_is_parted_from_its_result() -> None:
    dice = random.Random(23)  # noqa: S311  the same each time
    for _ in range(150):
        messages = conversations.conversation(dice)
        for place in sorted(dice.sample(range(len(messages) + 1), min(3, len(messages))), reverse=True):
            messages.insert(place, said("assistant", "Done.\n<promise>COMPLETE</promise>"))
        found = segments_of(messages)
        parts = [*found.completed, found.current, found.kept]
        assert sorted(index for part in parts for index in part) == list(range(len(messages)))
        for group in groups(messages):
            own = {index for index in group if index not in found.kept}
            assert sum(bool(own & set(part)) for part in (*found.completed, found.current)) <= 1
