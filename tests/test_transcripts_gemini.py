"""Gemini CLI's session logs, as version 0.61.0 writes them: what becomes which event, and what never becomes one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from gemini_records import CONTEXT, SESSION, SET_UP, WHEN, Record, asked, called, ran, said, write
from ralf.checkpointing.due import BudgetWatcher
from ralf.config import Limits
from ralf.facts.facts import extract
from ralf.project import Project
from ralf.transcripts.events import START, Event
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


def test_what_hooks_put_into_a_prompt_is_not_what_a_person_typed(tmp_path: Path) -> None:
    """The client writes it before the prompt, behind it, and into the answers of tools."""
    both = f"{CONTEXT}\n\nplease go on"
    record = asked(both, CONTEXT, displayContent=[{"text": both}])
    assert told(read(tmp_path, record)) == [("user", "please go on")]
    assert told(read(tmp_path, asked(CONTEXT))) == []


def test_a_message_that_is_written_once_more_is_told_once_wherever_a_reading_begins(tmp_path: Path) -> None:
    first, again = said("Step 1"), said("Step 1", ran("ls", "a.py"))
    path = write(tmp_path / "session-x.jsonl", asked("build"), first, again, again, said("Done.", id_="g2"))
    whole = list(open_transcript(path).events())
    assert [event.text for event in whole if event.kind == "assistant"] == ["Step 1", "Done."]
    for place in {event.end for event in whole} | {START}:
        behind = list(open_transcript(path).events(place))
        assert told(behind) == told([event for event in whole if event.start.byte >= place.byte])


def test_a_command_that_failed_has_its_status_and_only_what_it_printed(tmp_path: Path) -> None:
    output = (
        "<untrusted_context>\nOutput: no such file\nhere\nExit Code: 2\nProcess Group PGID: 1\n</untrusted_context>"
    )
    call = called("run_shell_command", {"command": "ls /nope"}, {"output": output})
    result = read(tmp_path, said("", call))[-1]
    assert (result.text, result.exit_status, result.failed) == ("no such file\nhere", 2, True)


def test_a_command_that_printed_nothing_has_no_output(tmp_path: Path) -> None:
    assert read(tmp_path, said("", ran("true", "(empty)")))[-1].text == ""


def test_a_tool_that_failed_or_was_declined_says_so(tmp_path: Path) -> None:
    failed = called("read_file", {"file_path": "nope"}, {"error": "File not found"}, status="error")
    declined = called("write_file", {"file_path": "a"}, {"error": "cancelled"}, status="cancelled", id_="c2")
    results = [event for event in read(tmp_path, said("", failed, declined)) if event.kind == "result"]
    assert [(one.text, one.failed, one.refused) for one in results] == [
        ("File not found", True, False),
        ("cancelled", True, True),
    ]


def test_files_and_to_dos_of_its_tools_are_facts(tmp_path: Path) -> None:
    made = called(
        "write_file", {"file_path": "/w/a.py", "content": "x"}, {"output": "ok"}, resultDisplay={"isNewFile": True}
    )
    changed = called(
        "replace", {"file_path": "/w/b.py", "old_string": "a", "new_string": "b"}, {"output": "ok"}, id_="c2"
    )
    todos = [{"description": "one", "status": "completed"}, {"description": "two", "status": "in_progress"}]
    listed = called("write_todos", {"todos": todos}, {"output": "ok"}, id_="c3")
    found = extract(read(tmp_path, asked("build"), said("", made, changed, listed)), base="/w")
    assert {item.path: item.did for item in found.facts.paths} == {"a.py": ("created",), "b.py": ("edited",)}


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
    due = [watcher.see(event, 1) or watcher.state.due for event in events[:3]]
    assert due[-1] == "compaction"


def test_records_of_the_client_alone_are_skipped_and_counted(tmp_path: Path) -> None:
    info = {"id": "i", "timestamp": WHEN, "type": "info", "content": "update available"}
    source = open_transcript(
        write(tmp_path / "session-x.jsonl", info, {"$rewindTo": "u1"}, {"$set": {"lastUpdated": WHEN}})
    )
    assert list(source.events()) == []
    assert source.skipped == {"info": 1, "rewound": 1, "state": 2, "session": 1}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path))
    return tmp_path / ".gemini" / "tmp"


def test_the_sessions_of_a_project_are_found_by_what_the_client_keeps_beside_them(tmp_path: Path, home: Path) -> None:
    project = Project(tmp_path / "tides")
    path = write(home / "tides" / "chats" / f"session-2026-11-27T11-46-{SESSION[:8]}.jsonl", asked("build"))
    write(home / "other" / "chats" / "session-2026-11-27T11-46-00000000.jsonl", asked("paint"))
    (home / "tides" / ".project_root").write_text(str(project.root))
    (home / "other" / ".project_root").write_text("/srv/other")
    assert [found for _, found in logs_of_gemini(project)] == newest_logs(project) == [path]
    assert log_of_session(SESSION) == path


def test_a_log_of_another_shape_is_none_of_its(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text(json.dumps({"sessionId": "s", "role": "user", "content": hashlib.sha256().hexdigest()}) + "\n")
    assert open_transcript(path).format != "gemini"
