"""Gemini CLI's session logs, as version 0.61.0 writes them: what becomes which event, and what never becomes one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gemini_records import SESSION, SET_UP, WHEN, Record, asked, called, ran, said, write
from ralf.checkpointing.due import BudgetWatcher
from ralf.config import Limits
from ralf.errors import TranscriptChanged
from ralf.project import Project
from ralf.transcripts.events import Event
from ralf.transcripts.gemini import CAPACITY
from ralf.transcripts.reader import log_of_session, logs_of_gemini, newest_logs, open_transcript


def read(folder: Path, *records: Record) -> list[Event]:
    return list(open_transcript(write(folder / "chats" / "session-x.jsonl", *records)).events())


def told(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.kind, event.text) for event in events]


def test_a_session_is_told_in_the_order_in_which_it_went(tmp_path: Path) -> None:
    (tmp_path / ".project_root").write_text("/srv/tides")
    path = write(
        tmp_path / "chats" / "session-x.jsonl",
        asked("please build it"),
        said("Step 1"),
        said("Step 1", ran("ls", "a.py")),
    )
    source = open_transcript(path)
    assert (source.format, source.session, source.cwd) == ("gemini", SESSION, "/srv/tides")
    events = list(source.events())
    assert told(events) == [("user", "please build it"), ("assistant", "Step 1"), ("call", "ls"), ("result", "a.py")]
    assert (events[1].window, events[1].capacity, events[1].timestamp) == (5030, CAPACITY, WHEN)
    assert (events[3].call_id, events[3].exit_status, events[3].failed) == ("c1", 0, False)


def test_a_compaction_is_told_with_its_summary_and_a_resumed_session_tells_it_not_again(tmp_path: Path) -> None:
    snapshot = {
        "id": "s1",
        "timestamp": WHEN,
        "type": "user",
        "content": [{"text": "<state_snapshot>did one</state_snapshot>"}],
    }
    compacted = {"$set": {"messages": [*SET_UP, snapshot], "lastUpdated": WHEN}}
    resumed = {"$set": {"messages": [*SET_UP, snapshot], "lastUpdated": "2026-11-27T12:46:01.142Z"}}
    events = read(tmp_path, asked("build"), said("Step 1"), compacted, said("Step 2", id_="g2"), resumed)
    assert [event.kind for event in events] == ["user", "assistant", "compaction", "assistant"]
    assert "did one" in events[2].text
    watcher = BudgetWatcher(Limits())
    due = [watcher.see(event, 1) or watcher.due for event in events[:3]]
    assert due[-1] == "compaction"


# ---- which words are the person's, and what the client recorded besides ----


QUESTIONS = {"questions": [{"question": "Which datum?", "options": [{"label": "Chart"}, {"label": "Mean"}]}]}


@pytest.mark.parametrize(
    ("output", "status", "answer"),
    [
        ({"output": '{"answers": {"0": "Chart"}}'}, "success", "Chart"),
        ({"output": "User dismissed ask_user dialog without answering."}, "success", "(declined)"),
        ({"error": "cancelled"}, "cancelled", "(declined)"),
    ],
)
def test_an_answer_is_the_persons_word_beside_the_question(
    tmp_path: Path, output: Record, status: str, answer: str
) -> None:
    event = read(tmp_path, said("", called("ask_user", QUESTIONS, output, status=status)))[-1]
    assert (event.kind, event.form, event.text) == ("user", "answer", answer)
    assert event.input == {"about": "Which datum?", "options": ["Chart", "Mean"]}


def test_a_plan_is_approved_or_refused_with_words(tmp_path: Path) -> None:
    plan = {"plan_path": "plans/tides.md"}
    approved = "Plan approved. Switching to default mode.\n\nThe approved plan is stored at: plans/tides.md"
    refused = "Plan rejected. User feedback: metres first\n\nThe plan is stored at: plans/tides.md\nRevise it."
    event = read(tmp_path, said("", called("exit_plan_mode", plan, {"output": approved})))[-1]
    assert (event.form, event.text, event.input) == ("plan", "(plan approved)", {"about": "plans/tides.md"})
    result, event = read(tmp_path, said("", called("exit_plan_mode", plan, {"output": refused})))[-2:]
    assert (event.form, event.text, event.call_id, result.refused) == ("refused", "metres first", "c1", True)


@pytest.mark.parametrize("more", [{"status": "error"}, {"displayName": "ask (gauges MCP Server)"}])
def test_a_call_that_failed_and_a_tool_of_a_server_decide_nothing_whatever_they_say(
    tmp_path: Path, more: Record
) -> None:
    dialogs = {
        "ask_user": ['{"answers": {"0": "Chart"}}', "User dismissed ask_user dialog without answering."],
        "exit_plan_mode": ["Plan approved. Switching to default mode.", "Plan rejected. User feedback: push"],
    }
    for tool, outputs in dialogs.items():
        for output in outputs:
            events = read(tmp_path, said("", called(tool, QUESTIONS, {"output": output}, **more)))
            assert [(event.kind, event.form) for event in events][-2:] == [("call", ""), ("result", "")]


# ---- a session in one document ----


def document(path: Path, *messages: Record, **meta: Any) -> Path:
    head = {"sessionId": SESSION, "projectHash": "41a6", "startTime": WHEN, "lastUpdated": WHEN, **meta}
    path.write_text(json.dumps({**head, "messages": list(messages), "summary": "Tides"}, indent=2))
    return path


MESSAGES = [*SET_UP, asked("build"), said("Step 1", ran("ls", "a.py")), asked("go on", id_="u2")]


def test_a_document_gives_what_a_log_of_its_messages_does_at_any_size(tmp_path: Path) -> None:
    in_lines = read(tmp_path, *MESSAGES[1:])
    long = [said("x" * 90_000, id_=f"g{number}") for number in range(3, 6)]
    for more in ([], long):
        source = open_transcript(document(tmp_path / "session.json", *MESSAGES, *more))
        assert (source.format, source.session) == ("gemini", SESSION)
        events = list(source.events())
        assert told(events)[: len(in_lines)] == told(in_lines)
        assert len(events) == len(in_lines) + len(more)


def test_a_document_that_is_written_anew_goes_on_after_its_last_message(tmp_path: Path) -> None:
    source = open_transcript(document(tmp_path / "session.json", *MESSAGES))
    events = list(source.events())
    for event in events:
        assert list(source.events(event.end)) == [later for later in events if later.start.byte >= event.end.byte]
    end, before = source.end, source.mark(source.end)
    grown = document(tmp_path / "session.json", *MESSAGES, said("Done", id_="g2"), lastUpdated="2027", kind="main")
    assert told(list(source.events(end))) == [("assistant", "Done")]
    assert source.mark(end) == before
    document(grown, SET_UP[0], asked("paint"), *MESSAGES[2:])
    assert source.mark(end) != before
    document(grown, SET_UP[0])
    with pytest.raises(TranscriptChanged):
        list(source.events(end))
    assert source.mark(end) is None


# ---- what a run without a terminal prints ----


def stream(path: Path, *records: Record) -> Path:
    init = {"type": "init", "timestamp": WHEN, "session_id": "s-7", "model": "m"}
    path.write_text("".join(json.dumps({"timestamp": WHEN, **record}) + "\n" for record in (init, *records)))
    return path


def piece(text: str) -> Record:
    return {"type": "message", "role": "assistant", "content": text, "delta": True}


USE = {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t1", "parameters": {"command": "ls"}}
RESULT = {
    "type": "tool_result",
    "tool_id": "t1",
    "status": "error",
    "output": "no",
    "error": {"message": "Exit Code: 2"},
}
STREAM = [
    {"type": "message", "role": "user", "content": "count the harbours"},
    *(piece(text) for text in ("I count", " ", "them.")),
    USE,
    RESULT,
    *(piece(text) for text in ("Three", ".")),
    {"type": "error", "severity": "warning", "message": "Loop detected"},
    {"type": "result", "status": "success", "stats": {"total_tokens": 9}},
]


def test_a_stream_is_read_with_its_calls_and_the_pieces_of_a_message_are_one(tmp_path: Path) -> None:
    source = open_transcript(stream(tmp_path / "out.jsonl", *STREAM))
    assert (source.format, source.session) == ("gemini", "s-7")
    events = list(source.events())
    assert [(event.kind, event.form, event.text) for event in events] == [
        ("user", "program", "count the harbours"),
        ("assistant", "", "I count them."),
        ("call", "", "ls"),
        ("result", "", "no"),
        ("assistant", "", "Three."),
        ("other", "", "Loop detected"),
        ("mark", "ended", ""),
    ]
    assert (events[3].tool, events[3].exit_status, events[3].failed) == ("run_shell_command", 2, True)
    assert source.skipped == {"init": 1}
    for event in events:
        assert list(source.events(event.end)) == [later for later in events if later.start.byte >= event.end.byte]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path))
    return tmp_path / ".gemini" / "tmp"


def test_the_sessions_of_a_project_are_found_by_what_the_client_keeps_beside_them(tmp_path: Path, home: Path) -> None:
    project = Project(tmp_path / "tides")
    path = write(home / "tides" / "chats" / f"session-2026-11-27T11-46-{SESSION[:8]}.jsonl", asked("build"))
    write(home / "other" / "chats" / "session-2026-11-27T11-46-00000000.jsonl", asked("paint"))
    earlier = document(home / "tides" / "chats" / "session-2026-01-27T11-46-11111111.json", asked("begin"))
    os.utime(earlier, (1, 1))
    (home / "tides" / ".project_root").write_text(str(project.root))
    (home / "other" / ".project_root").write_text("/srv/other")
    assert sorted((found for _, found in logs_of_gemini(project)), reverse=True) == [path, earlier]
    assert newest_logs(project) == [path, earlier]
    assert log_of_session(SESSION) == path
