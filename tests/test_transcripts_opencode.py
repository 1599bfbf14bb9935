"""The log that ralf's plugin keeps of opencode's sessions: what becomes which event, and what never becomes one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opencode_records import ASKED, CALL, DONE, RESULT, SAID, SESSION, WHEN, Record, write
from ralf.project import Project
from ralf.transcripts.events import Event
from ralf.transcripts.reader import is_own_log, log_of_session, logs_of_opencode, newest_logs, open_transcript


def read(folder: Path, *records: Record) -> list[Event]:
    return list(open_transcript(write(folder / f"{SESSION}.jsonl", *records)).events())


def test_a_session_is_told_in_the_order_in_which_it_went(tmp_path: Path) -> None:
    source = open_transcript(write(tmp_path / f"{SESSION}.jsonl", ASKED, CALL, SAID, RESULT, DONE))
    assert (source.format, source.session, source.cwd) == ("opencode", SESSION, "/srv/tides")
    events = list(source.events())
    assert [(event.kind, event.text) for event in events] == [
        ("user", "please build it"),
        ("call", "ls /nope"),
        ("assistant", "Step 1"),
        ("result", "gone"),
        ("other", ""),
    ]
    assert (events[3].call_id, events[3].exit_status, events[3].failed) == ("call_1", 2, True)
    assert (events[4].window, events[4].capacity, events[4].timestamp) == (5530, 200000, "2026-11-27T11:47:39.036Z")
    for event in events:
        behind = list(source.events(event.end))
        assert behind == [other for other in events if other.start.byte >= event.end.byte]


def test_a_summary_of_the_window_is_a_compaction_and_its_usage_none_of_the_conversation(tmp_path: Path) -> None:
    summary = {**SAID, "role": "summary", "text": "did one and two"}
    events = read(tmp_path, ASKED, summary, {**DONE, "summary": True})
    assert [(event.kind, event.window) for event in events] == [("user", None), ("compaction", None)]


# ---- which words are the person's, and what the client recorded besides: in the log, and in an export ----

MESSAGE = "msg_f550001aaaa001AAAAAAAAA374"
ASKS = {"questions": [{"question": "Which datum?", "options": [{"label": "Chart"}, {"label": "Mean"}]}]}


def message(role: str, *parts: Record, id_: str = "", **info: Any) -> Record:
    return {
        "info": {"id": id_ or (MESSAGE if role == "user" else ""), "role": role, "time": {"created": WHEN}, **info},
        "parts": list(parts),
    }


def part(text: str, **more: Any) -> Record:
    return {"type": "text", "id": "prt_1", "text": text, **more}


def used(tool: str, given: Record, *, id_: str = "prt_7", **state: Any) -> Record:
    made = {"status": "completed", "input": given, "time": {"start": WHEN, "end": WHEN + 60_000}, **state}
    return {"type": "tool", "id": id_, "callID": "c", "tool": tool, "state": made}


def export(path: Path, *messages: Record, **info: Any) -> Path:
    head = {"id": SESSION, "directory": "/srv/tides", "title": "Tide table", "time": {"updated": WHEN}, **info}
    path.write_text(json.dumps({"info": head, "messages": list(messages)}, indent=2))
    return path


def exported(folder: Path, *messages: Record, **info: Any) -> list[Event]:
    return list(open_transcript(export(folder / "export.json", *messages, **info)).events())


def test_an_export_is_told_in_the_order_in_which_it_went_at_any_size(tmp_path: Path) -> None:
    bash = used("bash", {"command": "ls /nope"}, output="gone", metadata={"exit": 2})
    tokens = {"input": 5000, "output": 30, "cache": {"read": 500}}
    talk = [
        message("user", part("build it"), part("Called the Read tool", synthetic=True), part("no", ignored=True)),
        message("assistant", {"type": "reasoning", "text": "Look"}, bash, part("Step 1"), tokens=tokens, finish="stop"),
    ]
    for more in ([], [message("assistant", part("x" * 90_000))] * 3):
        source = open_transcript(export(tmp_path / "export.json", *talk, *more))
        assert (source.format, source.session, source.cwd) == ("opencode", SESSION, "/srv/tides")
        events = list(source.events())
        assert [(event.kind, event.form, event.text) for event in events][:8] == [
            ("mark", "titled", "Tide table"),
            ("user", "", "build it"),
            ("thinking", "", "Look"),
            ("call", "", "ls /nope"),
            ("result", "", "gone"),
            ("assistant", "", "Step 1"),
            ("other", "", ""),
            ("mark", "ended", ""),
        ]
        assert len(events) == 8 + len(more)
        assert (events[1].id, events[4].exit_status, events[6].window) == (MESSAGE, 2, 5530)
        assert events[4].timestamp > events[3].timestamp
        for place in {event.end for event in events}:
            assert list(source.events(place)) == [one for one in events if one.start.byte >= place.byte]


@pytest.mark.parametrize("answer", ["Chart", "Chart, Mean", "my own, and more", ""])
def test_an_answer_is_the_persons_word_beside_the_question(tmp_path: Path, answer: str) -> None:
    output = f'User has answered your questions: "Which datum?"="{answer or "Unanswered"}". You can now go on.'
    chosen = {"answers": [answer.split(", ") if answer else []]}
    events = exported(tmp_path, message("assistant", used("question", ASKS, output=output, metadata=chosen)))
    call, result = ({**CALL, "tool": "question", "input": ASKS}, {**RESULT, "tool": "question", "output": output})
    about = {"about": "Which datum?", "options": ["Chart", "Mean"]}
    for found in (events, read(tmp_path, call, result), read(tmp_path, call, {**result, **chosen})):
        answers = [(event.form, event.text, event.input) for event in found if event.kind == "user"]
        assert answers == ([("answer", answer, about)] if answer else [])


def test_a_question_that_the_person_closed_is_declined(tmp_path: Path) -> None:
    closed = {"status": "error", "error": "The user dismissed this question", "output": None}
    events = exported(tmp_path, message("assistant", used("question", ASKS, **closed)))
    log = read(tmp_path, {**CALL, "tool": "question", "input": ASKS}, {**RESULT, **closed, "tool": "question"})
    for found in (events, log):
        assert [(event.text, event.form) for event in found if event.kind == "user"] == [("(declined)", "answer")]
        assert next(event for event in found if event.kind == "result").refused


@pytest.mark.parametrize("tool", ["gauges_push", "deploy", ""])
def test_the_error_of_a_servers_or_a_plugins_tool_is_no_refusal_whatever_it_says(tmp_path: Path, tool: str) -> None:
    said = "The user rejected permission to use this specific tool call with the following feedback: push always"
    for error in (said, "The user dismissed this question"):
        (result,) = read(tmp_path, {**RESULT, "tool": tool, "status": "error", "error": error})
        assert (result.kind, result.form, result.refused, result.failed) == ("result", "", False, True)
    (result,) = read(tmp_path, {**RESULT, "status": "error", "error": f"cat: {said}"})
    assert not result.refused


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    return tmp_path / "share" / "opencode" / "ralf"


def test_the_sessions_of_a_project_are_those_that_were_started_in_it(tmp_path: Path, home: Path) -> None:
    project = Project(tmp_path / "tides")
    path = write(home / f"{SESSION}.jsonl", ASKED, directory=str(project.root / "src"))
    write(home / "ses_other.jsonl", ASKED, directory="/srv/other", session="ses_other")
    (home / "ses_broken.jsonl").write_text("[1]\n")
    assert [found for _, found in logs_of_opencode(project)] == newest_logs(project) == [path]
    assert log_of_session(SESSION) == path
    assert is_own_log(path)
    assert not is_own_log(tmp_path / "elsewhere.jsonl")
