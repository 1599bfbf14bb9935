"""A graph that is killed in the middle and continues: run it twice. Needs langgraph and the extra `frameworks`."""

import operator
import os
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph

from ralf_integrations.doors.langgraph import RalfSaver


class State(TypedDict):
    """What the graph adds up."""

    steps: Annotated[list[str], operator.add]


def work(_: State) -> State:
    """Work, and die the first time."""
    if not Path("again").exists():
        Path("again").touch()
        os.kill(os.getpid(), 9)  # as if the machine went down
    return {"steps": ["worked"]}


builder = StateGraph(State)
builder.add_node("plan", lambda _: {"steps": ["planned"]})
builder.add_node("work", work)
builder.add_edge(START, "plan")
builder.add_edge("plan", "work")
builder.add_edge("work", END)
graph = builder.compile(checkpointer=RalfSaver())
thread = {"configurable": {"thread_id": "nightly"}}
begun = graph.get_state(thread).next
print(graph.invoke(None if begun else {"steps": []}, thread)["steps"])
