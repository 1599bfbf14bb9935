"""The log that ralf's plugin keeps of opencode's sessions: what becomes which event, and what never becomes one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opencode_records import ASKED, CALL, DONE, RESULT, SAID, SESSION, Record, write
from ralf.project import Project
from ralf.transcripts.events import START, Event
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


def test_texts_that_a_plugin_or_the_client_put_in_are_nobodys_words(tmp_path: Path) -> None:
    assert read(tmp_path, {**ASKED, "synthetic": True}, {**SAID, "synthetic": True}) == []


def test_a_summary_of_the_window_is_a_compaction_and_its_usage_none_of_the_conversation(tmp_path: Path) -> None:
    summary = {**SAID, "role": "summary", "text": "did one and two"}
    events = read(tmp_path, ASKED, summary, {**DONE, "summary": True})
    assert [(event.kind, event.window) for event in events] == [("user", None), ("compaction", None)]


def test_a_call_that_the_person_declined_never_ran(tmp_path: Path) -> None:
    error = "The user rejected permission to use this specific tool call."
    (result,) = read(tmp_path, {"type": "result", "id": "c", "tool": "bash", "status": "error", "error": error})
    assert (result.refused, result.failed, result.text) == (True, True, error)


def test_a_line_that_is_not_finished_waits(tmp_path: Path) -> None:
    path = write(tmp_path / f"{SESSION}.jsonl", ASKED)
    with path.open("a") as file:
        file.write(json.dumps(SAID)[:-5])
    source = open_transcript(path)
    assert [event.kind for event in source.events(START)] == ["user"]
    path.write_bytes(path.read_bytes()[: source.end.byte] + json.dumps(SAID).encode() + b"\n")
    assert [event.kind for event in source.events(source.end)] == ["assistant"]


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
