"""Codex rollouts: what becomes which event, and what never becomes one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import rollouts as r
from factskit import Extracted, extract
from ralf.transcripts.events import Event, Position
from ralf.transcripts.reader import Transcript, open_transcript
from rollouts import Record


def read(folder: Path, *records: Record | Sequence[Record]) -> tuple[Transcript, list[Event]]:
    transcript = open_transcript(r.write(folder / "rollout.jsonl", r.meta(), r.turn(), *records))
    return transcript, list(transcript.events())


def told(folder: Path, *records: Record | Sequence[Record]) -> list[tuple[str, str]]:
    return [(event.kind, event.text) for event in read(folder, *records)[1] if event.kind != "other"]


def facts(folder: Path, *records: Record | Sequence[Record]) -> Extracted:
    return extract(read(folder, *records)[1], base="/w")


def test_a_session_is_told_in_the_order_in_which_it_went(tmp_path: Path) -> None:
    think = r.item("reasoning", id="rs", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="xx")
    transcript, events = read(
        tmp_path,
        r.typed("Please build it"),
        think,
        r.agent("I will"),
        r.call("exec_command", {"cmd": "ls", "workdir": "src", "yield_time_ms": 250}),
        r.ran("a.py\n"),
        r.counted(60_060),
    )
    assert (transcript.format, transcript.session, transcript.cwd) == ("codex", r.SESSION, "/w")
    assert [(event.kind, event.text) for event in events] == [
        ("user", "Please build it"),
        ("thinking", "hm"),
        ("assistant", "I will"),
        ("call", "ls\nsrc\n250"),
        ("result", "a.py\n"),
        ("other", ""),
    ]
    call, result, usage = events[3:]
    assert (call.tool, call.call_id, call.input["cmd"], call.cwd) == ("exec_command", "call_1", "ls", "/w/src")
    assert (result.tool, result.call_id, result.exit_status, result.failed) == ("exec_command", "call_1", 0, False)
    assert (usage.window, usage.capacity, usage.timestamp) == (60_060, 258_400, r.WHEN)
    assert transcript.end == events[-1].end == Position((tmp_path / "rollout.jsonl").stat().st_size, 10)


@pytest.mark.parametrize(
    "record",
    [
        r.injected("<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
        r.injected("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nbe short\n</INSTRUCTIONS>", kind="agents_md.x"),
        r.message("user", "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nbe short\n</INSTRUCTIONS>"),
        r.message("user", "<turn_aborted>\n  <reason>interrupted</reason>\n</turn_aborted>"),
        r.message("user", '<skill name="x">\nDo as I say\n</skill>'),
        r.message("user", "Another language model started to solve this problem and produced a summary: x"),
        r.handed("Notes of ralf"),
        r.message("developer", "<permissions instructions>all</permissions instructions>"),
        r.event("agent_reasoning", text="hm"),
        r.wrapped("world_state", {"full": True, "state": {"agents_md": {"text": "be short"}}}),
        r.item("some_later_item", role="user", content="no"),
    ],
)
def test_what_the_client_or_a_hook_wrote_is_never_told(tmp_path: Path, record: Record) -> None:
    transcript, events = read(tmp_path, record, r.typed("go"))
    assert [(event.kind, event.text) for event in events] == [("user", "go")]
    assert sum(transcript.skipped.values()) > 2


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("Wall time: 0.1 seconds\nProcess exited with code 3\nOutput:\nno such file\n", 3, "no such file\n"),
        (json.dumps({"output": "no\n", "metadata": {"exit_code": 127, "duration_seconds": 0.1}}), 127, "no\n"),
        ("Wall time: 0 seconds\nOutput:\nExit code: 1\nWall time: 0 seconds\nOutput:\nbad patch\n", 1, "bad patch\n"),
        ("exec_command failed for `x`: not found", None, "exec_command failed for `x`: not found"),
        ({"content": "no", "success": False}, None, "no"),
    ],
)
def test_a_command_that_failed_says_so_in_every_versions_form(
    tmp_path: Path, text: Any, status: int | None, words: str
) -> None:
    call = r.call("shell", {"command": ["bash", "-lc", "run it"], "workdir": "/w"})
    result = read(tmp_path, call, r.output(text))[1][-1]
    assert (result.exit_status, result.failed, result.text) == (status, True, words)
    assert [(c.command, c.status, c.exit) for c in facts(tmp_path, call, r.output(text)).facts.commands] == [
        ("run it", "failed", status)
    ]


def test_a_patch_names_the_files_that_it_made_changed_moved_and_removed(tmp_path: Path) -> None:
    patch = (
        "*** Begin Patch\n*** Add File: src/new.py\n+x\n*** Update File: src/old.py\n@@\n-a\n+b\n"
        "*** Update File: src/from.py\n*** Move to: src/to.py\n@@\n-a\n+b\n*** Delete File: /w/gone.py\n*** End Patch"
    )
    wanted = {
        "src/new.py": ("created",),
        "src/old.py": ("edited",),
        "src/from.py": ("deleted",),
        "src/to.py": ("created",),
        "gone.py": ("deleted",),
    }
    done = "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\n"
    heredoc = f"apply_patch <<'EOF'\n{patch}\nEOF"
    for call, of in (
        (r.custom("apply_patch", patch), "custom_tool_call_output"),
        (r.call("apply_patch", {"input": patch}), "function_call_output"),
        (r.call("exec_command", {"cmd": heredoc}), "function_call_output"),
        (r.call("shell", {"command": ["apply_patch", patch]}), "function_call_output"),
        (r.call("shell", {"command": ["bash", "-lc", heredoc]}), "function_call_output"),
    ):
        found = facts(tmp_path, call, r.output(done, of=of))
        assert {fact.path: fact.did for fact in found.facts.paths} == wanted
    refused = r.output("apply_patch verification failed: no such file", of="custom_tool_call_output")
    assert facts(tmp_path, r.custom("apply_patch", patch), refused).facts.paths == ()


def test_a_script_tells_its_commands_and_changes_by_events_alone(tmp_path: Path) -> None:
    """Newer models call tools from a script: its items name none of them."""
    command = ["/bin/bash", "-lc", "make all"]
    ended = {"status": "failed", "exit_code": 2, "aggregated_output": "error: no rule\n", "cwd": "file:///w/a%20b"}
    changes = {"/w/a.py": {"type": "add", "content": "x"}, "/w/b.py": {"type": "update", "move_path": "/w/c.py"}}
    records = [
        r.custom("exec", "await tools.exec_command({cmd: 'make all'})"),
        r.completed("CommandExecution", "exec-1", command=command, **ended),
        r.completed("FileChange", "exec-2", changes=changes, status="completed", stdout="done"),
        r.output([{"type": "input_text", "text": "Script completed\nOutput:\n"}], of="custom_tool_call_output"),
    ]
    found = facts(tmp_path, *records)
    assert [(fact.command, fact.exit) for fact in found.facts.commands] == [("make all", 2)]
    assert [fact.error for fact in found.facts.errors] == ["error: no rule"]
    assert {fact.path: fact.did for fact in found.facts.paths} == {
        "a.py": ("created",),
        "b.py": ("deleted",),
        "c.py": ("created",),
    }
    assert next(event.cwd for event in read(tmp_path, *records)[1] if event.text.startswith("/bin/bash")) == "/w/a b"
    direct = r.completed("CommandExecution", "call_1", command=command, **ended)
    assert told(tmp_path, r.call("exec_command", {"cmd": "x"}), direct, r.ran("")) == [("call", "x"), ("result", "")]


def test_a_command_in_the_background_ends_when_its_process_does(tmp_path: Path) -> None:
    start = r.call("exec_command", {"cmd": "make test", "yield_time_ms": 250})
    running = r.output("Wall time: 0.2 seconds\nProcess running with session ID 71\nOutput:\ncollecting\n")
    poll = r.call("write_stdin", {"session_id": 71, "chars": ""}, "call_2")
    still = r.output("Wall time: 5 seconds\nProcess running with session ID 71\nOutput:\n…\n", "call_2")
    again = r.call("write_stdin", {"session_id": 71, "chars": ""}, "call_3")
    ended = r.output("Wall time: 5 seconds\nProcess exited with code 1\nOutput:\nerror: 1 test failed\n", "call_3")
    found = facts(tmp_path, start, running, poll, still)
    assert found.facts.commands == ()
    found = facts(tmp_path, start, running, poll, still, again, ended)
    assert [(fact.command, fact.exit, fact.runs) for fact in found.facts.commands] == [("make test", 1, 1)]
    assert [fact.error for fact in found.facts.errors] == ["error: 1 test failed"]

    over = r.completed("CommandExecution", "call_1", exit_code=1, aggregated_output="error: 1 test failed\n")
    for records in ([over], [over, poll, ended]):
        found = facts(tmp_path, start, running, *records)
        assert [(fact.command, fact.exit, fact.runs) for fact in found.facts.commands] == [("make test", 1, 1)]
        assert [fact.command for fact in found.facts.errors] == ["make test"]
    stopped = r.completed("CommandExecution", "call_1", exit_code=-1, status="failed", aggregated_output="")
    assert facts(tmp_path, start, running, stopped).facts.commands == ()


DB = {"id": "db", "question": "Which one?", "options": [{"label": "SQLite", "description": "x"}, {"label": "Postgres"}]}


def answers(folder: Path, given: Any, *questions: Record) -> list[Event]:
    ask = r.call("request_user_input", {"questions": questions})
    told = given if isinstance(given, str) else json.dumps({"answers": given})
    return [event for event in read(folder, ask, r.output(told))[1] if event.kind == "user"]


@pytest.mark.parametrize("output", ['{"answers": {}}', "request_user_input was cancelled before receiving a response"])
def test_a_question_that_the_person_closed_is_declined(tmp_path: Path, output: str) -> None:
    (answer,) = answers(tmp_path, output, DB)
    assert (answer.text, answer.form, answer.input["about"]) == ("(declined)", "answer", "Which one?")


def test_the_summary_of_a_compaction_is_told_as_nothing_else(tmp_path: Path) -> None:
    summary = r.message("assistant", "We did one and two")
    records = [*r.agent("two"), r.counted(240_060), summary, r.counted(1_020), r.compacted("We did one and two")]
    transcript, events = read(tmp_path, *records, r.counted(6_041), r.agent("three"))
    kinds = [(event.kind, event.window) for event in events]
    assert kinds == [
        ("assistant", None),
        ("other", 240_060),
        ("compaction", None),
        ("other", 6_041),
        ("assistant", None),
    ]
    assert events[2].text.endswith("We did one and two") and "replacement" not in events[2].text

    path = r.write(tmp_path / "torn.jsonl", r.meta(), *records[:-2])
    torn = open_transcript(path)
    assert [event.kind for event in torn.events()] == ["assistant", "other"]
    before = torn.end
    r.write(path, r.meta(), *records)
    assert [event.kind for event in torn.events(before)] == ["compaction"]
    assert transcript.session == torn.session == r.SESSION


@pytest.mark.parametrize(
    "after", [r.call("exec_command", {"cmd": "ls"}), r.event("task_complete"), r.typed("more"), r.compacted("else")]
)
def test_a_message_that_was_not_announced_is_told_as_soon_as_it_is_no_summary(
    tmp_path: Path, after: Record | list[Record]
) -> None:
    said = r.message("assistant", "It is done")
    assert told(tmp_path, said, r.counted(10)) == []
    assert told(tmp_path, said, r.counted(10), after)[0] == ("assistant", "It is done")
    late = r.event("agent_message", message="It is done")
    assert told(tmp_path, said, late, r.counted(10)) == [("assistant", "It is done")]


# ---- which words are the person's, and what the client recorded besides ----


def people(folder: Path, *records: Record | Sequence[Record]) -> list[str]:
    return [event.text for event in read(folder, *records)[1] if event.kind == "user"]


def marks(folder: Path, *records: Record | Sequence[Record]) -> list[tuple[str, str, dict[str, Any]]]:
    events = read(folder, *records)[1]
    return [(event.form, event.text, dict(event.input)) for event in events if event.kind == "mark"]


@pytest.mark.parametrize("told", [r.typed, r.typed_before])
def test_where_events_tell_what_was_typed_no_other_message_is_a_persons(tmp_path: Path, told: Any) -> None:
    later = r.message("user", "Warning: you have used much of your window")
    assert people(tmp_path, told("go"), r.agent("one"), later, told("go on")) == ["go", "go on"]


def test_without_such_events_a_message_is_a_persons_but_for_the_clients_own_texts(tmp_path: Path) -> None:
    rules = r.message("user", "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nbe brief\n</INSTRUCTIONS>")
    assert people(tmp_path, rules, r.message("user", "name the lake"), r.message("assistant", "Mill Lake.")) == [
        "name the lake"
    ]
    kinds = r.item("message", role="user", content="later", content_item_kinds=["user.text"])
    other = r.item("message", role="user", content="no", content_item_kinds=["hooks.additional_context"])
    assert people(tmp_path, kinds, other) == ["later"]


SHELL = "<user_shell_command>\n<command>\ngit status\n</command>\n<result>\n{}\n</result>\n</user_shell_command>"


def test_a_command_that_the_person_ran_is_told_once_with_what_it_printed(tmp_path: Path) -> None:
    argv = ["/bin/zsh", "-lc", "git status"]
    ran = r.event("exec_command_end", command=argv, exit_code=1, aggregated_output="no\n", source="user_shell")
    item = r.completed("CommandExecution", "c", command=argv, exit_code=1, aggregated_output="no\n", source="userShell")
    shown = r.message("user", SHELL.format("Exit code: 1\nDuration: 0.1 seconds\nOutput:\nno\n"))
    for records in ([ran], [item], [shown], [ran, shown], [shown, ran], [item, shown]):
        events = read(tmp_path, r.typed("go"), records)[1][1:]
        assert [(event.kind, event.form, event.text.strip()) for event in events] == [
            ("mark", "ran", "git status"),
            ("mark", "printed", "no"),
        ]
        assert (events[1].exit_status, events[1].failed) == (1, True)
    assert len(marks(tmp_path, ran, shown, ran, shown)) == 4
    agents = r.event("exec_command_end", command=argv, exit_code=1, stdout='"source":"user_shell"', source="agent")
    assert marks(tmp_path, agents) == []


@pytest.mark.parametrize(
    ("record", "mark"),
    [
        (r.event("task_complete", turn_id="t"), ("ended", "", {})),
        (r.event("turn_aborted", reason="interrupted"), ("interrupted", "interrupted", {})),
        (r.event("turn_aborted", reason="budget_limited"), ("stopped", "budget_limited", {})),
        (r.event("thread_rolled_back", num_turns=2), ("rewound", "", {"turns": 2})),
        (r.event("error", message="You have hit your usage limit."), ("stopped", "You have hit your usage limit.", {})),
    ],
)
def test_what_the_client_records_of_a_turn_is_a_mark(tmp_path: Path, record: Record, mark: Any) -> None:
    assert marks(tmp_path, r.typed("go"), record) == [mark]
