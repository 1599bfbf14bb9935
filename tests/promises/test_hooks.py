"""A hook answers its client whatever happens, never stands in its way, and records what is due."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit import command
from kit.command import Ran
from promises.user import JOURNAL, ROUTES, User, captured

CAPTURED = ("claude_autocompact", "codex_autocompact", "gemini_basic")  # with all events of each client
SETTINGS = Path(".autonomous/context/config.yaml")
CLIENTS = {"claude": "claude-code", "codex": "codex", "gemini": "gemini"}
NAMES = {"claude": "SessionStart", "codex": "PostToolUse", "gemini": "BeforeAgent"}


def called(user: User, capture: str, event: str, stdin: str | bytes, **env: str) -> Ran:
    """Call the hook of an event of the client that a capture is of."""
    return user.ralf("hook", event, "--client", CLIENTS[capture.partition("_")[0]], stdin=stdin, env=env)


def blocks_nobody(ran: Ran, event: str = "") -> None:
    """Fails unless a client goes on with this answer: status 0, and JSON that denies nothing, or nothing at all."""
    assert (ran.status, ran.err) == (0, ""), ran
    if not ran.out or (event == "PreCompact" and not ran.out.startswith("{")):
        return  # what a hook prints before a compaction is added to what the client asks its model for
    answer = json.loads(ran.out)
    assert isinstance(answer, dict)
    assert answer.get("continue", True) is True
    assert answer.get("decision", "") in ("", "approve"), answer
    assert answer.get("hookSpecificOutput", {}).get("permissionDecision", "allow") == "allow"


def files(*folders: Path) -> list[tuple[str, bytes]]:
    """Everything in folders; a folder in them has no bytes."""
    found = [path for folder in folders for path in sorted(folder.rglob("*"))]
    return [(str(path), path.read_bytes() if path.is_file() else b"") for path in found]


@pytest.mark.ci
@pytest.mark.parametrize("capture", CAPTURED)
def test_every_event_of_a_client_is_answered_with_status_0_and_json_that_blocks_nothing(
    user: User, capture: str
) -> None:
    session = user.session()
    session.says("Move the tide table from CSV to SQLite.")
    session.grows(1_000)
    for call in captured(capture, user):
        payload = call["stdin"]
        log = Path(payload["transcript_path"])
        if call["transcript_seen"]["exists"] and not log.exists():
            log.write_bytes(session.log.read_bytes())
        event = payload["hook_event_name"]
        blocks_nobody(called(user, capture, event, json.dumps(payload), **call["env"]), event)
    command.settle()
    assert user.ralf("status").status == 0


def a_damaged_journal(user: User) -> None:
    for path in (user.project / JOURNAL).rglob("*.jsonl"):
        path.write_bytes(b"\x00garbage\n" + path.read_bytes()[: path.stat().st_size // 2])


def a_file_where_the_routes_lie(user: User) -> None:
    shutil.rmtree(user.project / ROUTES)
    (user.project / ROUTES).write_text("")


HARMS: dict[str, Callable[[User], object]] = {
    "damaged journal": a_damaged_journal,
    "damaged settings": lambda user: (user.project / SETTINGS).write_text("threshold: [\n\x00: ::"),
    "damaged route file": lambda user: user.route_file("harbour").write_bytes(b"---\n<<<<<<< HEAD\n\xff\xfe"),
    "a file where the routes lie": a_file_where_the_routes_lie,
    "a log that is a folder": lambda user: Path(captured("claude_basic", user)[0]["stdin"]["transcript_path"]).mkdir(),
    "no log": lambda _: None,
}


@pytest.mark.ci
@pytest.mark.parametrize("harm", HARMS)
def test_a_hook_blocks_no_client_when_its_store_or_log_is_broken(user: User, harm: str) -> None:
    user.does("decide", "harbour", "Use SQLite for the tide table")
    HARMS[harm](user)
    for call in captured("claude_basic", user):
        event = call["stdin"]["hook_event_name"]
        ran = called(user, "claude", event, json.dumps(call["stdin"]), **call["env"] | {"RALF_TASK_ID": "harbour"})
        blocks_nobody(ran, event)
    command.settle()


ODD: dict[str, Any] = {
    "nothing": b"",
    "not json": b"{{{ \xff\x00",
    "a list": b"[]",
    "null": b"null",
    "wrong types": json.dumps({"session_id": 3, "transcript_path": [], "cwd": {}, "prompt": None}).encode(),
    "another folder": json.dumps({"session_id": "s", "transcript_path": "/etc/passwd", "cwd": "/nowhere"}).encode(),
    "names that climb": json.dumps({"session_id": "../../x", "transcript_path": "../../x", "cwd": "\x00"}).encode(),
    "deep": b'{"session_id":' * 3_000 + b"1" + b"}" * 3_000,
}


@pytest.mark.parametrize(("client", "odd"), list(zip(itertools.cycle(CLIENTS), ODD, strict=False)))
def test_a_hook_blocks_no_client_that_sends_garbage(user: User, client: str, odd: str) -> None:
    for event in (NAMES[client], "An event of a later version"):
        blocks_nobody(called(user, client, event, ODD[odd]))


@pytest.mark.ci
@pytest.mark.parametrize("capture", ["claude_basic", "codex_basic", "gemini_basic"])
def test_hooks_leave_no_trace_in_a_project_that_has_not_opted_in(stranger: User, capture: str) -> None:
    calls = captured(capture, stranger)
    log = Path(calls[0]["stdin"]["transcript_path"])
    log.write_text('{"type":"user","message":{"role":"user","content":"Move the tide table."}}\n')
    was = files(stranger.home, stranger.project)
    for call in calls:
        ran = called(stranger, capture, call["stdin"]["hook_event_name"], json.dumps(call["stdin"]), **call["env"])
        assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert files(stranger.home, stranger.project) == was


THRESHOLD = 2_000


@pytest.mark.ci
def test_no_stretch_of_the_threshold_goes_without_a_checkpoint_and_none_is_made_earlier(user: User) -> None:
    user.does("config", "threshold", THRESHOLD)
    session = user.session()
    session.begins("Move the tide table from CSV to SQLite.")
    counts = []
    for _ in range(6):
        session.grows(1_000)
        assert session.hook("PostToolBatch") == {}
        counts.append(len(checkpoints(user, session.route)))
    found = checkpoints(user, session.route)
    assert len(found) >= 2
    assert counts == sorted(counts) and counts[1] == 0
    assert all(0.7 * THRESHOLD <= tokens <= THRESHOLD + 1_000 for tokens in found), found


def checkpoints(user: User, route: str) -> list[int]:
    """The tokens of each checkpoint of a route."""
    ran = user.ralf("show", route, "--json")
    return [] if ran.status == 3 else [entry["tokens"] for entry in ran.json()["checkpoints"]]


@pytest.mark.ci
def test_the_end_of_a_session_makes_one_checkpoint_of_what_is_left(user: User) -> None:
    session = user.session()
    session.begins("Move the tide table from CSV to SQLite.")
    session.edits("src/tides.py")
    route = session.route
    assert checkpoints(user, route) == []
    session.hook("SessionEnd", reason="exit")
    assert len(checkpoints(user, route)) == 1
    assert "src/tides.py" in user.does("show", route).out
    session.hook("SessionEnd", reason="exit")
    assert len(checkpoints(user, route)) == 1


@pytest.mark.ci
def test_a_hook_writes_nothing_into_the_project_while_nothing_is_due(user: User) -> None:
    user.does("decide", "harbour", "Use SQLite for the tide table")
    session = user.session()
    session.begins("Move the tide table from CSV to SQLite.", env={"RALF_TASK_ID": "harbour"})
    was = files(user.project / ROUTES, user.project / JOURNAL)
    for _ in range(5):
        session.grows(1_000)
        assert session.hook("PostToolBatch", env={"RALF_TASK_ID": "harbour"}) == {}
    assert session.hook("Stop", env={"RALF_TASK_ID": "harbour"}) == {}
    assert files(user.project / ROUTES, user.project / JOURNAL) == was


@pytest.mark.ci
def test_a_compaction_makes_a_checkpoint_and_what_was_asked_before_is_handed_over_after_it(user: User) -> None:
    session = user.session()
    session.begins("Move the tide table from CSV to SQLite. Heights stay in centimetres.")
    session.edits("src/tides.py")
    session.hook("PreCompact", trigger="auto")
    assert len(checkpoints(user, session.route)) == 1
    summary = "<summary>\nThe agent looked around.\n</summary>"
    session.hook("SubagentStop", agent_id="a1", agent_type="", last_assistant_message=summary)
    handed = session.handed("SessionStart", source="compact")
    assert "Heights stay in centimetres." in handed
    assert "src/tides.py" in handed
