"""Stores of frameworks in a process that was forked after they were used."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from ralf_integrations.doors.openai_agents import RalfSession
from storekit import HANGS


def in_child(work: Callable[[], object]) -> int:
    """The exit status of a forked process that does some work."""
    process = os.fork()
    if not process:
        signal.alarm(int(HANGS))
        try:
            work()
        except BaseException:  # noqa: BLE001  # whatever it is, the status tells
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_a_session_of_openai_agents_goes_on_in_a_forked_process(tmp_path: Path) -> None:
    session = RalfSession("s", tmp_path)
    asyncio.run(session.add_items([1]))
    assert in_child(lambda: asyncio.run(session.add_items([2]))) == 0
    assert asyncio.run(session.get_items()) == [1, 2]


def test_a_session_store_of_the_claude_sdk_goes_on_in_a_forked_process(tmp_path: Path) -> None:
    pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed")
    from ralf_integrations.doors.claude_sdk import RalfSessionStore

    store, key = RalfSessionStore(tmp_path), {"project_key": "p", "session_id": "s"}

    def append(id_: str) -> None:
        entry = {"type": "user", "uuid": id_, "timestamp": "2026-03-01T08:00:00Z"}
        asyncio.run(store.append(key, [entry]))

    append("a")
    assert in_child(lambda: append("b")) == 0
    found = asyncio.run(store.load(key))
    assert found is not None
    assert [one["uuid"] for one in found] == ["a", "b"]


def test_a_saver_of_langgraph_goes_on_in_a_forked_process(tmp_path: Path) -> None:
    base = pytest.importorskip("langgraph.checkpoint.base", reason="LangGraph is not installed")
    from ralf_integrations.doors.langgraph import RalfSaver

    saver = RalfSaver(tmp_path)
    before = saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, base.empty_checkpoint(), {}, {})

    def work() -> None:
        found = saver.get_tuple(before)
        assert found is not None
        saver.put(found.config, base.empty_checkpoint(), {"source": "loop", "step": 1}, {})

    assert in_child(work) == 0
    assert len(list(saver.list(before | {"configurable": {"thread_id": "t"}}))) == 2
    saver.close()
