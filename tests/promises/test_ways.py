"""Whatever reaches an agent, by whichever way, is the user's own or says on its line that it is not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from promises.test_arrivals import Arrival, copy, shared_records
from promises.user import User

pytestmark = pytest.mark.ci

OWN = "Count the tides from zero"
LABEL = re.compile(r"\(import\)|\bforeign\b|\(somebody\)")
COMMANDS = {
    "status": ("status",),
    "the list of routes": ("list",),
    "a route": ("show", "default"),
    "a route within a budget": ("show", "default", "--max-tokens", "400"),
    "a search": ("search", "STRANGE setup script of the page"),
    "what stands behind a decision": ("show", "default", "DEC-001"),
    "the history of a route": ("log", "default"),
    "the tasks": ("task", "list", "--all"),
    "a task": ("task", "show", "TASK-900"),
    "the next task": ("task", "claim"),
    "the memory": ("memory", "show"),
    "the memory for a prompt": ("memory", "show", "--for", "push the setup script"),
    "a copy for readers": ("", "export", "default"),
    "what a fresh agent reads": ("", "task", "show", "--max-tokens", "8000"),
    "the plan": ("plan",),
    "the health of sessions": ("", "status", "--all", "--idle"),
    "the route in use": ("route",),
    "a health check": ("", "doctor"),
    "the check of the store": ("verify",),
    "the start of an agent": ("", "--load-context", "default"),
    "messages": ("", "send"),
    "runs": ("run", "show"),
}
TOOLS = {
    "get_context": {"route": "default"},
    "search": {"query": "STRANGE setup script of the page"},
    "list_routes": {},
    "get_memory": {"query": "push the setup script"},
    "receive_messages": {},
}


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> User:
    """A user with a route, a task and a memory of their own, among which lie a stranger's files and shared records."""
    folder = tmp_path_factory.mktemp("ways")
    at = Arrival(folder)
    at.user.does("decide", "harbour", OWN)
    at.user.does("memory", "add", "fact", OWN)
    at.user.adds(OWN)
    at.user.does("search", OWN)
    copy(at)
    at.kit = folder / "another"
    shared_records(at)
    return at.user


def unlabelled(said: str) -> list[str]:
    """The lines with strange words of which nothing says, there or at the head of their item, that they are strange."""
    found, is_labelled = [], False
    for line in said.split("\n"):
        if not line.startswith(("  ", ">")):
            is_labelled = False
        is_labelled |= LABEL.search(line) is not None
        if "STRANGE" in line and not is_labelled:
            found.append(line)
    return found


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_command_shows_nothing_strange_without_a_label(reached: User, words: tuple[str, ...]) -> None:
    ran = reached.ralf(*words)
    assert "Traceback" not in ran.err
    assert unlabelled(ran.out) == []
    assert "STRANGE" not in ran.err


def test_no_tool_hands_over_anything_strange_without_a_label(reached: User) -> None:
    pytest.importorskip("mcp")
    with reached.mcp() as server:
        assert set(TOOLS) <= set(server.tools())
        for tool, arguments in TOOLS.items():
            answer = server.calls(tool, **arguments)
            assert not answer.get("isError"), answer
            texts = [part["text"] for part in answer["content"]]
            assert [line for text in texts for line in unlabelled(text)] == [], tool
        assert OWN in json.dumps(server.calls("get_context", route="harbour"))
        assert "STRANGE" in json.dumps(server.calls("get_context", route="default"))


def test_the_strange_words_are_there_to_be_shown(reached: User) -> None:
    assert "STRANGE-GOAL" in reached.does("show", "default").out
    assert "STRANGE-TASK" in reached.does("task", "list").out
    assert OWN in reached.does("memory", "show").out
    assert Path(reached.project, ".autonomous/context/shared").is_dir()
