"""LangGraph's graphs keep their checkpoints in ralf's store, and two writers never fork a thread."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph.graph", reason="LangGraph is not installed")

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

import ralf
from ralf.errors import Conflict
from ralf.maintenance.forget import forget
from ralf.maintenance.purge import Wording, remains
from ralf_integrations.doors.langgraph import RalfSaver

pytestmark = pytest.mark.filterwarnings("default")  # LangGraph's own

THREAD = {"configurable": {"thread_id": "plan / 7"}}


class State(TypedDict):
    """What the graph adds up."""

    steps: Annotated[list[str], operator.add]


def graph(saver: RalfSaver, *, asks: bool = False) -> Any:
    """Two steps, the second of which may ask a person."""
    builder = StateGraph(State)
    builder.add_node("plan", lambda _: {"steps": ["planned"]})
    builder.add_node("work", lambda _: {"steps": [interrupt("Go on?") if asks else "worked"]})
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "work")
    builder.add_edge("work", END)
    return builder.compile(checkpointer=saver)


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[RalfSaver]:
    made = RalfSaver(tmp_path)
    yield made
    made.close()


def test_a_graph_goes_on_in_another_process(saver: RalfSaver, tmp_path: Path) -> None:
    """The first one stops where a person is asked."""
    graph(saver, asks=True).invoke({"steps": ["asked"]}, THREAD)
    later = RalfSaver(tmp_path)
    assert graph(later, asks=True).invoke(Command(resume="yes"), THREAD)["steps"] == ["asked", "planned", "yes"]
    later.close()


def test_of_two_writers_that_continue_one_checkpoint_the_second_is_refused(saver: RalfSaver, tmp_path: Path) -> None:
    graph(saver).invoke({"steps": []}, THREAD)
    other = RalfSaver(tmp_path)
    loaded = other.get_tuple(THREAD)
    assert loaded is not None
    graph(saver).invoke({"steps": ["first"]}, THREAD)
    with pytest.raises(Conflict, match="continued by another writer"):
        other.put(loaded.config, empty_checkpoint(), {"source": "input", "step": 4, "parents": {}}, {})
    assert "first" in graph(other).get_state(THREAD).values["steps"]
    other.close()


def test_a_large_state_lies_out_of_line_and_a_deleted_thread_leaves_nothing(saver: RalfSaver, tmp_path: Path) -> None:
    words = "a conversation of some length " * 20_000
    graph(saver).invoke({"steps": [words]}, THREAD)
    assert graph(saver).get_state(THREAD).values["steps"][0] == words
    context = tmp_path / ".autonomous" / "context"
    assert {path.stat().st_size < 9_000 for path in (context / "journal").rglob("*.jsonl")} == {True}
    saver.delete_thread("plan / 7")
    assert saver.get_tuple(THREAD) is None
    left = [path for name in ("journal", "blobs") for path in (context / name).rglob("*") if path.is_file()]
    assert left == [context / "blobs" / "gone"]  # digests of blobs, which `verify` does not miss


def test_a_text_that_is_forgotten_goes_from_threads_too_and_they_stay_readable(
    saver: RalfSaver, tmp_path: Path
) -> None:
    graph(saver).invoke({"steps": ["the password is hunter2hunter2"]}, THREAD)
    ralf.record_decision("TASK-1", "Rotate the password hunter2hunter2", root=tmp_path)
    saver.close()
    forget("TASK-1", text="hunter2hunter2", root=tmp_path)
    assert remains(tmp_path, Wording(["hunter2hunter2"])) == []
    later = RalfSaver(tmp_path)
    assert graph(later).get_state(THREAD).values["steps"][0] == f"the password is {'*' * 14}"
    later.close()
