"""`ralf status --all`: what each session's log, its hooks and the journal say of it; and the notices it may leave."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import ralf
import storekit
from kit.claude_log import ClaudeLog
from ralf import project
from ralf.allocation.shares import allocate
from ralf.compaction import records
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.transcripts import reader
from ralf_integrations import inbox
from ralf_integrations.health import tail
from ralf_integrations.health.look import Health, look, nudge
from ralf_integrations.health.rules import Session
from ralf_integrations.hooks import session_registry
from ralf_integrations.hooks.session_registry import KnownSession
from storekit import Cli

NOW = 1_772_355_600.0  # 2026-03-01T09:00:00Z


class Log(ClaudeLog):
    """A session log whose records have times, in minutes from `NOW`."""

    def __init__(self, path: Path, session: str) -> None:
        super().__init__(path, session, Path("/srv/tide"))
        self._calls = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def _write(self, kind: str, minute: float, content: Any, filled: int = 0, **fields: Any) -> Log:
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(NOW + minute * 60))
        self._record(kind, content, usage={"input_tokens": filled, "output_tokens": 0}, timestamp=at, **fields)
        return self

    def asks(self, minute: float, text: str = "Go on with the tide table.") -> Log:
        """The person asks for something."""
        return self._write("user", minute, text)

    def tells(self, minute: float, filled: int, text: str = "Done.") -> Log:
        """The agent says something, with so many tokens in its window."""
        return self._write("assistant", minute, [{"type": "text", "text": text}], filled)

    def begins(self, minute: float, filled: int, command: str, *, tool: str = "Bash") -> Log:
        """The agent calls a tool."""
        self._calls += 1
        use = {"type": "tool_use", "id": f"c{self._calls}", "name": tool, "input": {"command": command}}
        return self._write("assistant", minute, [use], filled)

    def gets(self, minute: float, text: str, *, failed: bool = False) -> Log:
        """The last call answers."""
        result = {"type": "tool_result", "tool_use_id": f"c{self._calls}", "content": text, "is_error": failed}
        return self._write("user", minute, [result])

    def compacts(self, minute: float, left: int) -> Log:
        """The client compacts its window."""
        self._write("system", minute, "", subtype="compact_boundary", compactMetadata={"postTokens": left})
        return self._write("user", minute, "So far: ...", isCompactSummary=True)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    root = tmp_path / "project"
    root.mkdir()
    ownership.init(project.find(root), share=False)
    return project.find(root)


def log_of(here: Project, session: str, **fields: Any) -> Log:
    """A session that hooks have seen, in a log of its own; its client is this process."""
    log = Log(storekit.session_log(here.root.parent, here.root, session), session)
    born = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    told = {"client": "claude-code", "pid": os.getpid(), "born": born, "seen": NOW, "route": "tide"} | fields
    session_registry.save(here, KnownSession(session, transcript=str(log.log), **told))
    return log


def now(here: Project, **more: Any) -> Health:
    return look(root=here.root, now=NOW, **more)


def only(here: Project, **more: Any) -> Session:
    (session,) = now(here, **more).sessions
    return session


def rules_of(session: Session) -> list[str]:
    return [warned.rule for warned in session.warnings]


# ---- figures ----


def test_pressure_growth_and_projections_come_from_the_clients_own_figures(here: Project) -> None:
    log = log_of(here, "s-1").asks(-11)
    for minute in range(-10, 0):
        log.begins(minute, 100_000 + 2_000 * (minute + 10), "make").gets(minute, "ok")
    found = only(here)
    assert (found.tokens, found.window, found.percent) == (118_000, 200_000, 59.0)
    assert found.growth == 2_000.0
    assert found.minutes_to_compaction == (167_000 - 118_000) / 2_000
    assert found.minutes_to_checkpoint == 1.0  # 60 % are 2,000 tokens away
    assert found.state == "working" and not found.warnings


def test_statement_26_a_session_of_142_000_tokens_at_720_a_minute_is_25_minutes_from_its_threshold(
    here: Project,
) -> None:
    log = log_of(here, "s-1").asks(-9)
    for minute in range(-8, 2, 2):
        log.begins(minute, 142_000 + 720 * minute, "make").gets(minute, "ok")
    memory = here.folder / "memory"
    memory.mkdir(parents=True)
    (memory / "executor.md").write_text("x" * 3_000)
    found = look(root=here.root, now=NOW).sessions[0]
    assert (found.tokens, found.percent, found.growth) == (142_000, 71.0, 720.0)
    assert found.minutes_to_threshold == 25.0
    assert (found.compactions, found.minutes_since_compaction, found.memory_size) == (0, None, 3_000)
    assert found.allocation == allocate(200_000)


def test_statement_26_compactions_are_counted_as_hooks_recorded_them_or_the_log_shows_them(here: Project) -> None:
    log = log_of(here, "s-1").tells(-9, 150_000).compacts(-7, 20_000).tells(-6, 24_000)
    found = only(here)
    assert (found.compactions, found.minutes_since_compaction) == (1, 7.0)
    for _ in range(3):
        last = records.count_clients(here, "s-1")
    log.tells(-5, 25_000)
    assert (only(here).compactions, last.count) == (3, 3)


def test_the_active_task_is_what_came_since_the_last_one_was_complete(here: Project) -> None:
    log = log_of(here, "s-1").asks(-9, "word " * 4_000).tells(-8, 20_000, "All of it.\n\n<promise>COMPLETE</promise>")
    assert only(here).active_task_tokens == 0
    log.asks(-7, "word " * 1_000).begins(-6, 24_000, "ralf task done 'It works'").gets(-5, "error", failed=True)
    assert 900 <= only(here).active_task_tokens <= 1_400
    log.begins(-4, 24_000, "ralf task done 'It works'").gets(-3, "TASK-1: completed").asks(-2, "And now?")
    assert only(here).active_task_tokens < 100


@pytest.mark.ci
def test_statement_27_a_session_nearly_full_of_one_task_is_told_to_split_it(here: Project) -> None:
    log_of(here, "s-1").asks(-9, "word " * 90_000).tells(-8, 150_001, "Yes.")
    found = only(here)
    assert found.active_task_tokens > 80_000 and "task" in rules_of(found)
    [warned] = [one for one in found.warnings if one.rule == "task"]
    assert "ralf task edit TASK --into" in warned.hint
    log_of(here, "s-2").asks(-9, "word " * 1_000).tells(-8, 190_000, "Yes.")
    assert "task" not in rules_of(next(one for one in now(here).sessions if one.session == "s-2"))


@pytest.mark.ci
def test_tokens_since_the_last_checkpoint_and_its_age_come_from_the_journal(here: Project) -> None:
    log = Log(storekit.session_log(here.root.parent, here.root, "s-1"), "s-1")
    storekit.write_session(log.log, 30_000)
    session_registry.save(here, KnownSession("s-1", transcript=str(log.log), route="tide", seen=NOW))
    found = only(here)
    assert 20_000 < found.unsaved < 40_000 and found.last_checkpoint == ""
    ralf.checkpoint("tide", log.log, root=here.root)
    found = only(here)
    assert found.unsaved == 0
    assert found.minutes_since_checkpoint is not None and 0 < found.minutes_since_checkpoint <= 61


@pytest.mark.ci
def test_of_a_long_log_only_the_end_is_read_and_the_rest_is_estimated(
    here: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(here, "s-1")
    storekit.write_session(log.log, 400_000)
    log.tells(-1, 90_000)
    read = [0]
    plain = os.read

    def counted(descriptor: int, size: int) -> bytes:
        data = plain(descriptor, size)
        read[0] += len(data)
        return data

    monkeypatch.setattr(os, "read", counted)
    found = only(here)
    assert found.tokens == 90_000
    assert 260_000 < found.unsaved < 540_000
    assert "unsaved" in rules_of(found)
    start, events = tail._events(reader.open_transcript(log.log), log.log.stat().st_size, tail.LIMIT)
    assert log.log.stat().st_size - start.byte <= tail.LIMIT and events


# ---- states ----


def test_a_session_whose_turn_has_ended_or_that_asks_waits_for_the_person(here: Project) -> None:
    log_of(here, "done").asks(-30).tells(-29, 9_000)
    log_of(here, "asks").asks(-30).begins(-29, 9_000, "Which one?", tool="AskUserQuestion")
    assert {one.session: one.state for one in now(here).sessions} == {"done": "waiting", "asks": "waiting"}


def test_an_open_turn_from_which_nothing_comes_is_silent_after_a_while(here: Project) -> None:
    log = log_of(here, "s-1").asks(-30).begins(-9, 9_000, "make")
    assert only(here).state == "working"
    here.folder.mkdir(parents=True, exist_ok=True)
    here.config_file.write_text("health_silent: 5\n")
    found = only(here)
    assert (found.state, found.minutes_silent, rules_of(found)) == ("silent", 9.0, ["silent"])
    log.gets(-1, "ok")
    assert only(here).state == "working"


def test_the_same_call_that_fails_again_and_again_with_the_same_output_is_stuck(here: Project) -> None:
    log = log_of(here, "s-1").asks(-30)
    for number in range(3):
        assert only(here).state != "stuck"
        log.begins(-5, 9_000, "make test").gets(-5, f"Exit code 2\nno rule, after {number}.3 s", failed=True)
    found = only(here)
    assert (found.state, rules_of(found)) == ("stuck", ["stuck"])
    assert "failed 3 times" in found.stuck and "make test" in found.stuck
    log.begins(-4, 9_000, "make test").gets(-4, "Exit code 2\nanother fault", failed=True)
    assert only(here).state == "working"


def test_a_session_at_the_usage_limit_of_its_client_is_parked_until_it_goes_on(here: Project) -> None:
    log, said = log_of(here, "s-1").asks(-30), "You've hit your session limit · resets in 2h"
    log._write("assistant", -9, [{"type": "text", "text": said}], isApiErrorMessage=True)
    found = only(here)
    assert (found.state, found.parked, found.parked_until) == ("parked", said, NOW + 111 * 60)
    log.asks(-1)
    assert only(here).state == "working"


def test_ended_and_killed_are_told_apart_and_what_a_killed_one_has_not_saved_is_said(here: Project) -> None:
    log_of(here, "over", ended=True).asks(-30).tells(-29, 9_000)
    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone.wait()
    log_of(here, "gone", pid=gone.pid, born=1).asks(-30).begins(-29, 9_000, "make everything anew")
    log_of(here, "again", born=1).asks(-30).tells(-29, 9_000)  # a process that has its number now
    found = {one.session: one for one in now(here).sessions}
    assert {name: one.state for name, one in found.items()} == {"over": "ended", "gone": "killed", "again": "killed"}
    assert rules_of(found["gone"]) == ["killed"]
    assert "--transcript" in found["gone"].warnings[0].hint


# ---- which sessions ----


def test_sessions_that_the_client_keeps_are_listed_but_not_other_projects_ones(here: Project) -> None:
    slug = "".join(c if c.isalnum() else "-" for c in str(here.root))
    folder = here.root.parent / ".claude" / "projects"
    Log(folder / slug / "mine.jsonl", "mine").tells(-1, 9_000)
    Log(folder / "another" / "theirs.jsonl", "theirs").tells(-1, 9_000)
    log_of(here, "seen").tells(-1, 9_000)
    Log(folder / slug / "begun-when-it-was-resumed.jsonl", "seen").asks(-1)
    assert len(look(root=here.root).sessions) == 2
    found = {one.session: one.seen_by_hooks for one in look(root=here.root).sessions}
    assert found == {"mine": False, "seen": True}


@pytest.mark.parametrize("content", [b"", b"\0\0\0", b"{}\n", b"not a log\n", b'{"type":"assistant","sessionId":"s'])
def test_a_log_of_any_content_never_breaks_the_look(here: Project, content: bytes) -> None:
    log_of(here, "s-1").log.write_bytes(content)
    (session_registry.folder(here) / "bad.json").write_bytes(content)
    log_of(here, "s-2").tells(-1, 9_000)
    found = {one.session: one for one in now(here).sessions}
    assert set(found) == {"s-1", "s-2"} and found["s-2"].tokens == 9_000
    if found["s-1"].problem:
        assert rules_of(found["s-1"]) == ["unreadable"]


def test_looking_changes_nothing(here: Project) -> None:
    log_of(here, "s-1").tells(-1, 190_000)
    before = storekit.kept_bytes(here.root)
    now(here)
    assert storekit.kept_bytes(here.root) == before


# ---- nudges ----


def said(here: Project, session: str = "s-1") -> list[str]:
    return [notice.text for notice in inbox.waiting(here, session)]


def test_a_session_that_crosses_the_mark_is_told_once_until_it_crosses_it_again(here: Project) -> None:
    log = log_of(here, "s-1").tells(-9, 130_000)
    assert nudge(here, now(here)) == []
    log.tells(-8, 141_000)
    assert nudge(here, now(here)) == ["s-1"]
    log.tells(-7, 150_000)
    assert nudge(here, now(here)) == nudge(project.find(here.root), now(here)) == []
    (told,) = said(here)
    assert told.startswith("ralf: the window is 70 % full. Before it is compacted, hand over, in at most 400 words: ")
    log.compacts(-6, 30_000).tells(-5, 145_000)  # crossed twice between two looks
    assert nudge(here, now(here)) == ["s-1"]
    log.tells(-4, 100_000)
    assert nudge(here, now(here)) == []
    log.tells(-3, 160_000)
    assert nudge(here, now(here)) == ["s-1"]
    assert len(said(here)) == 3


# ---- the commands ----


@pytest.fixture
def made(here: Project) -> Path:
    log_of(here, "s-1").tells(-1, 150_000)
    return here.root


@pytest.fixture
def ralf_cli(here: Project, made: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    session_registry.save(
        here,
        KnownSession(
            "s-1", transcript=str(storekit.session_log(made.parent, made, "s-1")), route="tide", seen=time.time()
        ),
    )
    return Cli(made, monkeypatch, capfd)


def test_the_command_prints_a_table_its_warnings_and_json(ralf_cli: Cli) -> None:
    ran = ralf_cli("status", "--all")
    assert ran.status == 0
    assert ran.lines[1].split()[:3] == ["s-1", "waiting", "tide"]
    assert "warning: s-1: pressure: " in ran.err
    (session,) = ralf_cli("status", "--all", "--json").json()["sessions"]
    assert session["percent"] == 75.0 and session["warnings"][0]["rule"] == "pressure"


def test_a_notice_goes_to_a_session_by_id_prefix_or_to_all_sessions_of_a_route(
    ralf_cli: Cli, here: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_registry.save(here, KnownSession("3f2a91-22", route="tide", seen=time.time()))
    assert ralf_cli("send", "3f2a", "Read it again", "--from", "Ana").status == 0
    assert [(notice.sender, notice.text) for notice in inbox.waiting(here, "3f2a91-22")] == [("Ana", "Read it again")]
    sent = ralf_cli("send", "tide", "Hand over", "--json").json()
    assert {one["to"] for one in sent} == {"s-1", "3f2a91-22"}
    ralf_cli("send", "nobody", "x").complains(3, "nobody")
    ralf_cli("send", "harbour", "x").complains(3, "harbour")
    ralf_cli("send", "tide").complains(2, "ralf send")
    ralf_cli("send", "s-1", " ").complains(2, "s-1")
    monkeypatch.setenv("CODEX_THREAD_ID", "s-1")
    assert [(one["text"], one["by"]) for one in ralf_cli("send", "--json").json()] == [("Hand over", "user")]
