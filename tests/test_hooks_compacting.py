"""Around a compaction: a checkpoint before, steering for the client's summary, and the record beside that summary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import handingkit
from handingkit import DECISIONS, GOAL, ROUTE
from ralf.project import Project
from ralf.text.cleaning import outside
from ralf_integrations.hooks import entry, receipts, session_registry
from ralf_integrations.hooks.messages import LIMIT, length

made, home, on_route = handingkit.made, handingkit.home, handingkit.on_route
pytestmark = pytest.mark.usefixtures("on_route")


def summarised(root: Path, summary: str) -> None:
    """Claude Code's compacting agent ends, which tells the summary first."""
    fields = {"agent_id": "a1", "agent_type": "", "last_assistant_message": f"<analysis>-</analysis><summary>{summary}"}
    assert handingkit.hook("SubagentStop", "old", root, **fields).context == ""


@pytest.mark.ci
def test_the_clients_summary_is_told_what_to_keep_in_its_own_words_within_the_limit(project: Path) -> None:
    answer = handingkit.hook("PreCompact", "old", project, trigger="auto")
    for words in (GOAL, *DECISIONS, "src/reader.py", "TideError"):
        assert " ".join(words.split()) in answer.steering
    assert "DEC-00" in answer.steering
    assert length(answer.steering) <= LIMIT
    assert outside(answer.steering).count("\n") == 0  # one sentence of ours, and all else in the fence


def test_a_person_who_types_compact_is_shown_one_line_and_nothing_is_lost_by_it(project: Path) -> None:
    answer = handingkit.hook("PreCompact", "old", project, trigger="manual")
    assert 0 < len(answer.steering) <= 120 and "\n" not in answer.steering  # the client shows what it steers by
    summarised(project, "Work went on.")
    text = handingkit.start("old", project, "compact")
    assert all(" ".join(words.split()) in text for words in (GOAL, *DECISIONS))


@pytest.mark.ci
def test_beside_a_summary_stand_the_state_and_what_it_lacks_once(project: Path) -> None:
    handingkit.hook("PreCompact", "old", project, trigger="auto")
    summarised(project, f"{DECISIONS[0]}. At step 7; src/reader.py was edited.")
    text = handingkit.start("old", project, "compact")
    assert GOAL in text  # the last message, whatever the summary says
    assert "levels.py" in text and "pytest -q tests/test_reader.py" in text
    assert " ".join(DECISIONS[2].split()) in text and DECISIONS[1] in text
    assert DECISIONS[0] not in text
    assert handingkit.hook("PostCompact", "old", project, compact_summary=GOAL).context == ""
    assert handingkit.prompt("old", project, "thanks, now run the other tests as well") == ""


@pytest.mark.ci
def test_where_the_summary_is_not_known_yet_all_is_handed_over_and_nothing_twice(project: Path) -> None:
    text = handingkit.start("old", project, "compact")
    for words in (GOAL, *DECISIONS):
        assert " ".join(words.split()) in text
    handingkit.hook("PostCompact", "old", project, trigger="auto", compact_summary="I did one and two.")
    assert session_registry.load(Project(project), "old").waiting == ""
    assert handingkit.prompt("old", project, "continue") == ""


def test_a_summary_that_stands_in_the_log_already_is_read_there(project: Path) -> None:
    handingkit.hook("PreCompact", "old", project, trigger="auto")
    summary = {"type": "user", "isCompactSummary": True, "sessionId": "old", "uuid": "u", "cwd": "/srv/tide"}
    summary["message"] = {"role": "user", "content": f"This session is being continued. {GOAL} {DECISIONS[0]}"}
    with handingkit.kept(project, "old").open("a") as file:
        file.write(
            json.dumps({"type": "system", "subtype": "compact_boundary", "sessionId": "old", "uuid": "b"}) + "\n"
        )
        file.write(json.dumps(summary) + "\n")
    text = handingkit.start("old", project, "compact")
    assert DECISIONS[1] in text


def test_a_compaction_within_a_subagent_is_none_of_the_sessions_window(project: Path) -> None:
    tree = {"session_id": "old", "cwd": str(project), "trigger": "auto", "agent_id": "a2", "agent_type": "Explore"}
    said: list[str] = []
    entry.run("claude-code", "PreCompact", json.dumps(tree).encode(), said.append)
    assert said == []
    summarised(project, "The subagent has looked at two files.")
    known = session_registry.load(Project(project), "old")
    assert (known.compaction, known.compacted, known.waiting) == ("", False, "")
    assert handingkit.prompt("old", project, "thanks, now run the other tests as well") == ""


def test_a_log_that_ralf_cannot_read_keeps_nobody_from_being_handed_what_there_is(project: Path) -> None:
    log = handingkit.kept(project, "x")
    log.write_text('{"of": "no client"}\n{"known": "here"}\n')
    assert GOAL in handingkit.start("x", project)
    assert GOAL in handingkit.hook("PreCompact", "x", project, trigger="auto").steering
    assert GOAL in handingkit.start("x", project, "compact")
    assert GOAL in handingkit.prompt("y", project, f"--load-context {ROUTE}", transcript=log)


# ---- receipts ----


def claude_record(session: str, text: str) -> str:
    attachment = {"type": "hook_additional_context", "content": [text], "hookName": "SessionStart"}
    return json.dumps({"type": "attachment", "attachment": attachment, "sessionId": session}) + "\n"


def codex_record(text: str) -> str:
    blocks = [{"type": "input_text", "text": text}]
    payload = {"type": "message", "role": "developer", "content": blocks}
    return json.dumps({"timestamp": "2026-03-01T08:00:00Z", "type": "response_item", "payload": payload}) + "\n"


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_a_receipt_says_whether_the_very_bytes_are_in_the_log(project: Path, client: str) -> None:
    log = handingkit.kept(project, "r-1")
    text = handingkit.start("r-1", project, client=client, transcript=log)
    known = session_registry.load(Project(project), "r-1")
    assert text
    assert [one.arrived for one in receipts.arrivals(known)] == [None]  # there is no log yet
    record = claude_record("r-1", text) if client == "claude-code" else codex_record(text)
    log.write_text(record.replace("Gauge", "x").replace("harbour", "harbor"))
    assert [one.arrived for one in receipts.arrivals(known)] == [False]
    with log.open("a") as file:
        file.write('{"torn": "hook_additional_context\n' + record + "[[\n")
    (found,) = receipts.arrivals(known)
    assert (found.handed.what, found.handed.event, found.arrived) == ("brief", "SessionStart", True)
