"""The real `claude` and `codex` call `ralf mcp`, and what it answers is in what their model is sent."""

from __future__ import annotations

import json
from pathlib import Path

import offline
import pytest
from offline import CLAUDE, CODEX, World, said, tool, why_not

import ralf
import storekit
from ralf.text.cleaning import OWN_OUTPUT

pytestmark = [pytest.mark.release, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

SERVER = {"command": "/tmp/venv/bin/ralf", "args": ["mcp"]}


@pytest.fixture
def world(world: World, tmp_path: Path) -> World:
    storekit.write_session(tmp_path / "session.jsonl", 6_000)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=world.project, summarizer=storekit.Listing())
    return world


def test_claude_reads_a_route_and_records_a_decision(world: World) -> None:
    (world.folder / "mcp.json").write_text(json.dumps({"mcpServers": {"ralf": SERVER}}))
    steps = [
        tool("mcp__ralf__get_context", {"route": "tide", "max_tokens": 1_000}),
        tool("mcp__ralf__record_decision", {"decision": "Keep metres everywhere", "route": "tide"}),
        tool("mcp__ralf__get_context", {"route": "tyde"}),
        said("Read."),
    ]
    done = world.run(f"{CLAUDE} --mcp-config /tmp/run/mcp.json -p 'Carry on'", {"main": steps})
    assert done.status == 0, done.err + done.out
    sent = world.asked()[-1]
    assert sent.count(OWN_OUTPUT) == 6, sent  # the fence's two lines, in each of the three answers
    assert "We use batch size 10 instead of 11." in sent
    assert "recorded in tide as DEC-004" in sent
    assert 'hint: get_context(route="tide")' in sent
    assert "Keep metres everywhere" in [one.decision for one in ralf.get_context("tide", root=world.project).decisions]


def test_codex_is_offered_the_tools(world: World) -> None:
    """It asks its model before a server is up, and groups a server's tools, which the scripted model cannot call."""
    toml = f'[mcp_servers.ralf]\ncommand = "{SERVER["command"]}"\nargs = ["mcp"]\ncwd = "{offline.INSIDE}"\n'
    usage = {"input_tokens": 1_000, "cached": 0, "output_tokens": 50}
    wait = {"name": "exec_command", "arguments": {"cmd": "sleep 3"}}
    steps = [{"text": "", "call": wait, "usage": usage}, {"text": "Read.", "usage": usage}]
    done = world.run(f"{CODEX} 'Carry on'", {"main": steps}, model="openai", toml=toml)
    assert done.status == 0, done.err + done.out
    (group,) = (one for one in world.requests()[-1]["body"]["tools"] if one.get("name") == "mcp__ralf")
    assert {one["name"] for one in group["tools"]} >= {"get_context", "record_decision", "use_route"}
