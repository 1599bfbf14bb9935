"""Hooks of Gemini CLI and opencode: checkpoints, compactions, receipts, and how full the window is."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

import gemini_records as g
import hookkit
import opencode_records as o
import ralf
import storekit
from hookkit import Rig
from ralf_integrations.health import look as health
from ralf_integrations.hooks import receipts, session_registry

CHOICE = "Use SQLite instead of Postgres, because one file needs no server."
START = {"gemini": "SessionStart", "opencode": "session.created"}
TOOLS_USED = {"gemini": "AfterTool", "opencode": "tool.execute.after"}
each = pytest.mark.parametrize("client", ["gemini", "opencode"])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in storekit.environment(tmp_path).items():
        if name in ("GEMINI_CLI_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
            monkeypatch.setenv(name, value)
    return tmp_path


def rig(home: Path, client: str) -> Rig:
    made = hookkit.rig(home / "tides", client=client, session=g.SESSION if client == "gemini" else o.SESSION)
    made.environment["BB5_ROUTE"] = "tides"
    return made


def work(made: Rig, words: int = 0) -> None:
    """Have the session ask, say, and run a command that prints so many words."""
    printed = " ".join(f"word{number}" for number in range(words))
    if made.client == "gemini":
        g.write(made.transcript, g.asked("move the tide table"), g.said(CHOICE), g.said(CHOICE, g.ran("ls", printed)))
    else:
        said, result = {**o.SAID, "text": CHOICE}, {**o.RESULT, "output": printed, "exit": 0}
        o.write(made.transcript, o.ASKED, o.CALL, said, result, o.DONE, directory=str(made.root))


@pytest.mark.ci
@each
def test_a_checkpoint_falls_due_at_the_threshold(home: Path, client: str) -> None:
    made = rig(home, client)
    made.configure(threshold=4_000)
    work(made, 5_000)
    tools_used = TOOLS_USED[client]
    assert made.hook(tools_used, tool_name="bash").out == ""
    before = made.checkpoints("tides")
    assert {reason for reason, _ in before} == {"threshold"}
    assert CHOICE in ralf.get_context("tides", root=made.root).history
    assert made.hook(tools_used, tool_name="bash").out == ""
    assert made.checkpoints("tides") == before


@each
def test_what_was_handed_over_is_found_in_the_log(home: Path, client: str) -> None:
    made = rig(home, client)
    ralf.record_decision("tides", "Use SQLite <3 & one file", root=made.root)
    handed = made.hook(START[client], source="startup").context
    assert "SQLite <3 & one file" in handed
    known = session_registry.load(made.project, made.session)
    assert [one.arrived for one in receipts.arrivals(known)] == [None]  # there is no log yet
    if client == "gemini":
        escaped = html.escape(handed, quote=False).replace("&amp;", "&")
        g.write(made.transcript, g.asked(f"<hook_context>{escaped}</hook_context>\n\ngo on"))
    else:
        o.write(made.transcript, o.ASKED, {**o.ASKED, "synthetic": True, "text": handed}, directory=str(made.root))
    assert [one.arrived for one in receipts.arrivals(known)] == [True]


@pytest.mark.ci
def test_a_compaction_that_no_hook_is_told_of_is_noticed_once(home: Path) -> None:
    made = rig(home, "gemini")
    work(made)
    made.hook("SessionEnd", reason="exit")  # what is in a checkpoint can be handed over
    assert len(made.checkpoints("tides")) == 1
    ralf.record_decision("tides", CHOICE, root=made.root)
    content = [{"text": "<state_snapshot>done</state_snapshot>"}]
    snapshot = {"id": "s", "timestamp": g.WHEN, "type": "user", "content": content}
    record = {"$set": {"messages": [*g.SET_UP, snapshot], "lastUpdated": g.WHEN}}
    more = g.said("Step 3", g.ran("ls", "x"), id_="g3")
    with made.transcript.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in (g.said("Step 2", id_="g2"), record, more))
    handed = made.hook("AfterTool", tool_name="run_shell_command").context
    assert "Use SQLite instead of Postgres" in handed
    assert made.hook("AfterTool", tool_name="run_shell_command").out == ""
    assert "compaction" in [reason for reason, _ in made.checkpoints("tides")]


@each
def test_health_tells_how_full_the_window_is(home: Path, client: str) -> None:
    made = rig(home, client)
    work(made)
    made.hook(TOOLS_USED[client], tool_name="bash")
    (session,) = health.look(root=made.root).sessions
    wanted = (5030, 1_048_576) if client == "gemini" else (5530, 200_000)
    assert (session.client, session.tokens, session.window) == (client, *wanted)
