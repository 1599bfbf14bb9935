"""The session stores for agent frameworks keep the frameworks' contracts on every store."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from memory_store import MemoryStore

import natskit
from contexts import quick
from ralf import project as projects
from ralf.storage.filestore import FileStore
from ralf_integrations.doors.claude_sdk import RalfSessionStore
from ralf_integrations.doors.openai_agents import RalfSession

pytestmark = pytest.mark.ci(seconds=30)

STORES = [
    pytest.param(FileStore, id="FileStore"),
    pytest.param(MemoryStore, id="MemoryStore"),
    *(pytest.param(servers, id=name) for name, servers in natskit.SERVERS.items()),
]

_count = itertools.count()


@pytest.fixture(params=STORES)
def fresh(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """Makes a project; its store is one of the kinds of store."""
    natskit.ready(request.param)
    monkeypatch.setattr(projects, "open_store", request.param)

    def make() -> Path:
        folder = tmp_path / str(next(_count))
        folder.mkdir()
        return folder

    return make


def test_the_claude_agent_sdk_s_fourteen_contracts_hold(fresh: Callable[[], Path]) -> None:
    testing = pytest.importorskip("claude_agent_sdk.testing", reason="claude-agent-sdk is not installed")
    asyncio.run(testing.run_session_store_conformance(lambda: RalfSessionStore(fresh())))


@pytest.mark.release(seconds=20)
@pytest.mark.filterwarnings("default")  # LangGraph's own
def test_all_of_langgraph_s_conformance_suite_passes(fresh: Callable[[], Path]) -> None:
    conformance = pytest.importorskip("langgraph.checkpoint.conformance", reason="LangGraph's suite is not installed")
    from ralf_integrations.doors.langgraph import RalfSaver

    @conformance.checkpointer_test(name="RalfSaver")  # type: ignore[untyped-decorator,unused-ignore]
    async def saver() -> AsyncIterator[RalfSaver]:
        yield RalfSaver(fresh())

    report = asyncio.run(conformance.validate(saver))
    assert [f"{name}: {one.failures}" for name, one in report.results.items() if not one.passed] == []
    assert sum(one.tests_passed for one in report.results.values()) == 81


ITEMS = st.lists(st.dictionaries(st.sampled_from(["role", "content", "id"]), st.text(max_size=5)), max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add_items"), ITEMS),
        st.tuples(st.just("get_items"), st.sampled_from([None, 0, 1, 2, 100])),
        st.tuples(st.just("pop_item")),
        st.tuples(st.just("clear_session")),
    ),
    max_size=12,
)


@settings(quick, suppress_health_check=list(__import__("hypothesis").HealthCheck))
@given(steps=STEPS)
def test_a_session_of_openai_agents_answers_as_the_framework_s_own(
    fresh: Callable[[], Path], steps: list[tuple[Any, ...]]
) -> None:
    memory = pytest.importorskip("agents.memory", reason="openai-agents is not installed")

    async def answers(session: Any) -> list[Any]:
        found = [await getattr(session, name)(*given) for name, *given in steps]
        return [*found, await session.get_items()]

    theirs = memory.SQLiteSession("s-1")
    root = fresh()
    assert asyncio.run(answers(RalfSession("s-1", root))) == asyncio.run(answers(theirs))
    assert asyncio.run(RalfSession("s-1", root).get_items()) == asyncio.run(theirs.get_items())
    theirs.close()
