"""`ralf mcp`: every tool, through the SDK's own client."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import ralf
import storekit
from loopkit import until
from ralf import api, project as projects, routing
from ralf.text import tokens
from ralf.text.cleaning import OWN_OUTPUT, outside
from ralf_integrations.hooks import session_registry

server = pytest.importorskip("ralf_integrations.mcp.server", reason="the extra mcp is not installed")
from mcp import Client  # noqa: E402

pytestmark = pytest.mark.ci

TOOLS = {
    *("get_context", "search", "list_routes", "record_decision", "checkpoint", "hand_over", "use_route"),
    *("get_memory", "propose_memory", "send_message", "receive_messages"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    storekit.write_session(root / "session.jsonl", 6_000)
    ralf.checkpoint("tide", root / "session.jsonl", root=root)
    ralf.record_decision("tide", "We use batch size 5 instead of 6.", origin="agent", root=root)
    ralf.record_decision("harbour", "Use the northern gauge", rationale="the southern one drifts", root=root)
    return root


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The number of a real process that stands for the client: who started the tests may be the system's first one."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        monkeypatch.setattr(os, "getppid", lambda: process.pid)
        yield process.pid


served = cache(
    server.server
)  # it keeps nothing of a call: a project needs one, whose tools take a while to be declared


def driven(root: Path, drive: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        async with Client(served(root)) as client:
            return await drive(client)

    return asyncio.run(run())


def called(root: Path, tool: str, **arguments: Any) -> Any:
    return driven(root, lambda client: client.call_tool(tool, arguments))


def text_of(result: Any) -> str:
    (content,) = result.content
    return str(content.text)


def refused(root: Path, tool: str, *words: str, **arguments: Any) -> None:
    result = called(root, tool, **arguments)
    assert result.is_error, result
    text = text_of(result)
    assert "\nhint: " in text and "Traceback" not in text and all(word in text for word in words), text
    assert outside(text).count("\n") == 0, text


# ---- tools ----


@pytest.mark.ci
def test_every_tool_tells_what_it_takes_and_what_it_gives(made: Path) -> None:
    tools = driven(made, lambda client: client.list_tools()).tools
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert tool.description and tool.annotations, tool.name
        assert "\n" not in tool.description and "  " not in tool.description, tool.name


@pytest.mark.parametrize("budget", [100, 300, 2_500])
@pytest.mark.parametrize("tool", ["get_context", "search", "list_routes"])
def test_what_is_read_is_fenced_and_within_its_budget(made: Path, tool: str, budget: int) -> None:
    arguments = {"get_context": {"route": "tide"}, "search": {"query": "tide batch size"}, "list_routes": {}}[tool]
    result = called(made, tool, max_tokens=budget, **arguments)
    text = text_of(result)
    assert tokens.count(text) <= budget and len(text) <= 4 * budget
    assert text.startswith(OWN_OUTPUT)
    assert "tide" not in outside(f"x\n{text}\ny")


@pytest.mark.ci
def test_an_agents_decision_is_recorded_once_and_as_an_agents(project: Path) -> None:
    told = {"decision": "Keep metres", "route": "tide", "rationale": "charts use them", "alternatives": ["feet: no"]}
    for _ in range(2):
        assert "recorded in tide as DEC-002, active" in text_of(called(project, "record_decision", **told))
    decision = ralf.get_context("tide", root=project).decisions[-1]
    assert (decision.id, decision.origin, decision.rationale, decision.alternatives) == (
        "DEC-002",
        "agent",
        "charts use them",
        ("feet: no",),
    )
    second = called(project, "record_decision", decision="Keep feet", route="tide", supersedes="DEC-002")
    assert "in the place of DEC-002" in text_of(second)


def kept_by_claude(root: Path, tmp_path: Path, session: str) -> Path:
    """A log of a session that Claude Code keeps of a project."""
    path = storekit.session_log(tmp_path, root, session)
    storekit.write_session(path, 2_000, session)
    return path


@pytest.mark.ci
def test_a_checkpoint_takes_a_session_log_that_a_client_keeps_of_the_project(project: Path, tmp_path: Path) -> None:
    log = kept_by_claude(project, tmp_path, "mine")
    result = called(project, "checkpoint", route="new", transcript=str(log))
    assert "new: cp-001: " in text_of(result) and str(log) in text_of(result)
    again = called(project, "checkpoint", route="new", transcript=str(log))
    assert "new: nothing new" in text_of(again)


def test_a_checkpoint_takes_no_other_file_whoever_asks_for_it(project: Path, tmp_path: Path) -> None:
    private = tmp_path / "private.txt"
    private.write_text("the words of somebody else\n" * 50)
    (project / "link.txt").symlink_to(private)
    elsewhere = storekit.session_log(tmp_path, tmp_path / "other", "s-8")
    storekit.write_session(elsewhere, 2_000, "s-8")
    linked = storekit.session_log(tmp_path, project, "s-7")
    linked.symlink_to(private)
    named = (str(private), "../private.txt", "link.txt", "session.jsonl", "/etc/passwd", str(elsewhere), str(linked))
    for path in (*named, f"{linked.parent}/../../../private.txt"):
        refused(project, "checkpoint", route="new", transcript=path)
    refused(project, "checkpoint", route="new")
    refused(project, "get_context", route="new")


def test_a_route_that_is_not_there_yet_may_be_chosen_and_is_no_terminals(project: Path) -> None:
    routing.use(projects.find(project), "mine")

    async def chosen(client: Any) -> Any:
        used = await client.call_tool("use_route", {"route": "fresh"})
        return used, await client.call_tool("list_routes", {})

    used, listed = driven(project, chosen)
    assert "nothing is kept of it yet" in text_of(used)
    assert "route: fresh (" in text_of(listed)
    assert routing.choose(projects.find(project)).route == "mine"


def test_a_message_is_sent_to_another_agent_and_taken_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = ["The column `tide` is NOT NULL now."]
    refused(project, "send_message", to="reviewer", summary="Nobody has this name yet.")
    for words in (("add", "Review"), ("claim",)):
        assert storekit.process("task", *words, cwd=project, RALF_AGENT="reviewer").status == 0
    sent = called(project, "send_message", to="reviewer", summary="The schema changed.", facts=facts)
    assert "reviewer: " in text_of(sent)
    refused(project, "send_message", to="reviewer", summary="Look.", facts=["x\n" * 11])
    monkeypatch.setenv("RALF_AGENT", "reviewer")
    taken = called(project, "receive_messages")
    assert facts[0] in text_of(taken)
    assert "NOT NULL" not in outside(text_of(taken))
    assert text_of(called(project, "receive_messages")) == "no message waits"


@pytest.mark.ci
def test_an_argument_that_a_tool_does_not_have_is_refused_by_name(project: Path) -> None:
    before = storekit.kept_bytes(project)
    for tool, needed in (
        ("get_context", {}),
        ("search", {"query": "gauge"}),
        ("list_routes", {}),
        ("record_decision", {"decision": "Use the northern gauge"}),
        ("checkpoint", {}),
        ("use_route", {"route": "tide"}),
        ("send_message", {"to": "reviewer", "summary": "Look."}),
    ):
        result = called(project, tool, **needed, max_token=50)
        assert result.is_error and "max_token: " in text_of(result), tool
    assert storekit.kept_bytes(project) == before
    listed = driven(project, lambda client: client.list_tools()).tools
    assert all(tool.input_schema["additionalProperties"] is False for tool in listed)


@pytest.mark.ci
def test_what_is_wrong_is_a_tool_error_with_a_hint(project: Path) -> None:
    refused(project, "get_context", 'get_context(route="tide")', route="tyde")
    refused(project, "get_context", route="../x")
    refused(project, "get_context", "max_tokens", route="tide", max_tokens=1)
    refused(project, "search", "limit", query="x", limit=1_000)
    refused(project, "search", "query")
    refused(project, "record_decision", decision=" ", route="tide")
    refused(project, "record_decision", "DEC-900", decision="x y", route="tide", supersedes="DEC-900")
    refused(project, "use_route", route="a/b")
    storekit.route_file(project, "tide").write_text("<<<<<<< mine\n")
    storekit.journal_file(project, "tide").write_text("nonsense\n")
    refused(project, "get_context", route="tide")


def test_what_an_agent_proposes_to_remember_is_offered_and_read_back_in_the_fence(project: Path) -> None:
    offered = called(project, "propose_memory", kind="preference", text="indent: tabs")
    assert "preference-1: offered" in text_of(offered)
    result = text_of(called(project, "get_memory"))
    assert "[preference-1]" in result and "offered" in result and "tabs" not in outside(result)
    assert "preference-1" not in text_of(called(project, "get_memory", query="indent the file"))
    api.accept_item("preference-1", root=project)
    assert "[preference-1]" in text_of(called(project, "get_memory", query="indent the file"))
    refused(project, "propose_memory", kind="preference", text="tabs")


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.lists(st.text(max_size=9))
NAMES = st.sampled_from(
    "route max_tokens query section limit decision rationale alternatives supersedes kind transcript".split()
)


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(
    calls=st.lists(st.tuples(st.sampled_from(sorted(TOOLS)), st.dictionaries(NAMES, VALUES)), min_size=3, max_size=6)
)
def test_whatever_the_arguments_are_there_is_a_result_or_a_hint(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    async def drive(client: Any) -> None:
        for tool, arguments in calls:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error or "\nhint: " in text_of(result), (tool, arguments, result)

    driven(tmp_path_factory.mktemp("any"), drive)


# ---- the process ----


@pytest.mark.ci
def test_a_process_whose_client_is_killed_ends_by_itself(made: Path, tmp_path: Path) -> None:
    client = f"import subprocess, sys, time; p = subprocess.Popen({storekit.command('mcp')!r}, stdin=subprocess.PIPE)"
    client += "; print(p.pid, flush=True); time.sleep(60)"
    parent = storekit.start(client, cwd=made)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    until(lambda: not session_registry.process_start(pid))
