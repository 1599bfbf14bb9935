"""Valid bytes of every kind that ralf reads: what the fuzzer bends."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import gemini_records as gemini
import opencode_records as opencode
import ralf
import rollouts as codex
from ralf.document import guarded_yaml
from ralf.maintenance import ownership
from ralf.maintenance.ownership import CONFIG_TEXT
from ralf.project import Project

ROUTE = "sample"
_AT = "2026-03-01T08:{:02d}:00.000Z"


def _said(number: int, role: str, content: object, **more: object) -> dict[str, Any]:
    message = {"role": role, "content": content}
    record = {"type": role, "sessionId": "s-1", "cwd": "/srv/tide", "timestamp": _AT.format(number), "message": message}
    return record | more


def _claude_code() -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "c1", "name": "Edit", "input": {"file_path": "/srv/tide/a.py", "old_string": "a"}}
    run = {"type": "tool_use", "id": "c2", "name": "Bash", "input": {"command": "pytest -q"}}
    todo = {"content": "Write the test", "status": "in_progress", "activeForm": "Writing"}
    todos = {"type": "tool_use", "id": "c3", "name": "TodoWrite", "input": {"todos": [todo]}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "The file has been updated"}
    failed = {"type": "tool_result", "tool_use_id": "c2", "content": "Exit code 1\nE  assert 1", "is_error": True}
    asked = {"questions": [{"question": "Which?"}], "answers": {"Which?": "the second"}, "annotations": {}}
    queued = {"type": "queued_command", "prompt": "And the docs", "commandMode": "prompt"}
    told = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "We use SQLite."}, call]
    return [
        {"type": "summary", "summary": "Tides", "leafUuid": "x"},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {"trackedFileBackups": {}}},
        _said(1, "user", "Please carry the tide table over, and never touch the old columns."),
        _said(2, "assistant", told),
        _said(3, "user", [result], toolUseResult={"type": "create", "filePath": "/srv/tide/a.py"}),
        _said(4, "assistant", [run, todos], isSidechain=False),
        _said(5, "user", [failed], toolUseResult={"stdout": "", "stderr": "x", "interrupted": False}),
        _said(6, "user", [result], toolUseResult=asked),
        {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"postTokens": 9}, "sessionId": "s-1"},
        _said(7, "user", "This session is being continued from a previous conversation.", isCompactSummary=True),
        {"type": "queue-operation", "operation": "enqueue", "content": "And the docs", "sessionId": "s-1"},
        {"type": "queue-operation", "operation": "remove", "sessionId": "s-1"},
        {"type": "attachment", "attachment": queued},
        {"type": "progress", "data": {"x": [1, 2]}, "sessionId": "s-1"},
        _said(8, "user", "<command-name>/review</command-name><command-args>the parser</command-args>"),
        _said(9, "assistant", "Done. <promise>COMPLETE</promise>", isApiErrorMessage=False),
    ]


_CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "Please fix the parser of the tide tables."},
    {
        "role": "assistant",
        "content": "We decided to use SQLite.",
        "tool_calls": [{"id": "c", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "a.py"},
    {"role": "assistant", "thought": "Look", "action": "cat a.py", "content": "x", "agent": "main"},
    {"role": "user", "content": "print()\nbash-$", "agent": "main", "message_type": "observation"},
]

_TEXT = """\
# Session

User: Please carry the tide table over to the new reader.

We decided to use SQLite instead of CSV, because it is one file.

```python
print("a")
```

> and write the docs, too

## User
Never touch the old columns.
"""


def _codex() -> list[dict[str, Any]]:
    patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-a\n+b\n*** End Patch"
    usage = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
    return [
        codex.meta("/srv/tide", git={"branch": "main"}),
        codex.turn("/srv/tide"),
        *codex.typed("Keep the batch size at 9"),
        *codex.agent("We use size 9."),
        codex.event("token_count", info={"last_token_usage": usage, "model_context_window": 1000}),
        codex.call("exec_command", {"cmd": "pytest -q"}, "c1"),
        codex.item("function_call_output", call_id="c1", output="Process running with session ID 7\nOutput:\n"),
        codex.call("write_stdin", {"session_id": 7}, "c2"),
        codex.item("function_call_output", call_id="c2", output="Exit code: 1\nOutput:\nno\n"),
        codex.item("custom_tool_call", name="apply_patch", input=patch, call_id="c3"),
        codex.item("custom_tool_call_output", call_id="c3", output=[{"text": "Done"}]),
        codex.completed("CommandExecution", "e1", command=["bash", "-lc", "ls"], exit_code=1),
        codex.completed("FileChange", "e2", changes={"/srv/a.py": {"type": "add"}}, status="completed"),
        codex.wrapped("compacted", {"message": "Summary: We use size 9.", "replacement_history": []}),
    ]


def _gemini() -> list[dict[str, Any]]:
    snapshot = {"id": "s1", "type": "user", "content": [{"text": "<state_snapshot>done</state_snapshot>"}]}
    return [
        gemini.META,
        {"$set": {"messages": gemini.SET_UP}},
        gemini.asked(f"{gemini.CONTEXT}\n\nKeep the size at 9"),
        gemini.said("We use size 9.", gemini.ran("pytest -q", "no\nExit Code: 1")),
        {"$set": {"messages": [snapshot]}},
        {"id": "e1", "type": "error", "content": "quota"},
    ]


def _lines(records: Sequence[object]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@cache
def transcripts() -> tuple[bytes, ...]:
    """A session of each format."""
    before = [{"id": "s-1", "timestamp": _AT.format(0), "instructions": None}, {"record_type": "state"}]
    before += [record["payload"] for record in _codex() if "item" in record["type"]]
    head = {"type": "session", "client": "opencode", "log": 2, "session": "ses_1", "directory": "/srv/tide"}
    log = [head, opencode.ASKED, opencode.SAID, opencode.CALL, opencode.RESULT, opencode.DONE]
    return (
        *(_lines(records) for records in (_claude_code(), _claude_code(), _codex(), before, _gemini(), log, _CHAT)),
        json.dumps(_CHAT).encode(),
        json.dumps({"info": {"a": 1}, "messages": _CHAT}, indent=1).encode(),
        _TEXT.encode(),
    )


def fill(root: Path) -> None:
    """Make a store with two routes and a full cache."""
    session = root / "src" / "session.jsonl"
    session.parent.mkdir(exist_ok=True)
    session.write_bytes(_lines(_claude_code()))
    project = Project(root)
    ownership.init(project, share=False)
    project.config_file.write_text(CONFIG_TEXT)
    for route in (ROUTE, "other"):
        ralf.checkpoint(route, session, root=root)
        ralf.record_decision(route, "Use SQLite", rationale="one file", alternatives=["CSV: slow"], root=root)
    session.write_bytes(_lines([*_claude_code(), _said(10, "assistant", "We keep the batch size at 10.")]))
    ralf.checkpoint(ROUTE, session, root=root)
    ralf.search("batch", root=root)


@cache
def _made() -> dict[str, bytes]:
    """The files of a store."""
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder))
        store = Path(folder) / ".autonomous" / "context"
        return {
            path.relative_to(store).as_posix(): path.read_bytes()
            for path in sorted(store.rglob("*"))
            if path.is_file() and not path.name.startswith("index.db")
        }


@cache
def route_files() -> tuple[bytes, ...]:
    """Ours, an old one, one of a person's."""
    ours = [content for name, content in _made().items() if name.startswith("routes/")]
    brought = (
        b'---\ndecisions:\n  - {id: "DEC-001", decision: "Use FastAPI", status: "active"}\nx-notes: [1, {a: b}]\n---\n'
    )
    edited = ours[0].replace(
        b"\n---\n\n##", b"\nmine: |-\n  one\n  two\n---\n\nMy notes\n\n```\n## no heading\n```\n\n##", 1
    )
    return (*ours, brought + b"\nText\n\n## Checkpoint History\n\n### Checkpoint 2\n\nx\n\n### Mine\n\n- y\n", edited)


@cache
def front_matters() -> tuple[bytes, ...]:
    """The front matter of these."""
    styles = (
        b"a: |-\n  one\n  two\nb: >\n  folded\nc: 'it''s'\nd: \"\\u00e9\"\n'e f': [1, 0.5, true, ~, {g: h}]\n? i\n: j\n"
    )
    return (*(content.split(b"\n---\n")[0].removeprefix(b"---\n") + b"\n" for content in route_files()), styles)


@cache
def records() -> tuple[bytes, ...]:
    """The records of journals, and whole journals."""
    journals = [content for name, content in _made().items() if name.endswith(".jsonl") and name.startswith("journal")]
    bare = [
        b"\n".join(json.dumps(json.loads(line)["record"]).encode() for line in text.splitlines()) for text in journals
    ]
    imported = {"document": guarded_yaml.load(front_matters()[0].decode())}
    kinds = [
        {"v": 1, "revision": 9, "parent": 8, "kind": kind, "payload": payload, "render": ""}
        for kind, payload in (
            ("import", imported),
            (
                "edit",
                {"changes": [{"at": ["goal"], "value": "x"}, {"at": ["decisions", 0, "status"], "was": "active"}]},
            ),
            ("unknown", {"x": 1}),
        )
    ]
    return (*bare, *bare, *journals, *(json.dumps(record).encode() for record in kinds))


@cache
def caches() -> tuple[bytes, ...]:
    """What lies in the cache."""
    return tuple(content for name, content in _made().items() if name.startswith("cache/"))


@cache
def configs() -> tuple[bytes, ...]:
    """Both configuration files."""
    local = b'summarizer: command\ncommand: ["touch", "/tmp/pwned"]\ntimeout: 5\nmodel: "m"\ndaily_cap: "2000 tokens"\n'
    whole = b"threshold: 25%\nwindow: 100000\npressure: 50\nworktrees: isolated\narchive_days: 30\n"
    return CONFIG_TEXT.replace("#", "").encode(), local, whole, b"summarizer: claude\narguments: [a, 1]\n"


@cache
def route_names() -> tuple[bytes, ...]:
    """Names, allowed and not."""
    return tuple(b"TASK-001 sample SAMPLE api-refactoring a/b ../../x con x.md a..b feature/x".split())


@cache
def answers() -> tuple[bytes, ...]:
    """What a model may answer, and what a client's hook is told."""
    quoted = {"text": "d", "words": "since r", "line": 1}
    whole: dict[str, object] = {
        **dict.fromkeys(("now", "why"), "t"),
        **{name: ["t"] for name in ("next", "open", "done", "facts")},
        "decisions": [{**quoted, "reason": "r", "rejected": ["o"]}],
        "avoid": [{"what": "g", "why": "w", "line": 2}],
        "lasting": [quoted],
        "ended": [{"id": "DEC-001", "why": "#1", "words": "", "line": 0}],
    }
    hook = {"session_id": "s", "transcript_path": "/x", "cwd": "/", "hook_event_name": "Stop", "tool_input": {"a": [1]}}
    return json.dumps(whole).encode(), json.dumps(whole, indent=1).encode(), json.dumps(hook).encode()


@cache
def payloads() -> tuple[bytes, ...]:
    """What clients tell their hooks; `ROOT` stands for the project."""
    base = {"session_id": "0b7e-1", "transcript_path": "ROOT/src/session.jsonl", "cwd": "ROOT"}
    call = {"tool_name": "Bash", "tool_input": {"command": "echo hi"}, "tool_use_id": "t1", "tool_response": "hi"}
    more: list[dict[str, object]] = [
        {"source": "startup"},
        {"prompt": "please go on", "permission_mode": "default", "prompt_id": "p"},
        {**call, "tool_response": {"stdout": "hi", "interrupted": False}, "duration_ms": 19},
        {"tool_calls": [call, call], "effort": {"level": "medium"}},
        {"trigger": "auto", "custom_instructions": None, "compact_summary": "It went on."},
        {"stop_hook_active": False, "background_tasks": [], "last_assistant_message": "Done."},
        {"reason": "other", "turn_id": "t", "model": "m"},
        {"agent_id": "a-1", "agent_type": "Explore"},
    ]
    return tuple(json.dumps(base | fields).encode() for fields in more)


@cache
def anything() -> tuple[bytes, ...]:
    """Of everything something."""
    return (*route_files(), *records(), *transcripts(), *configs(), *route_names())
