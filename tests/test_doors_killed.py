"""Stores of frameworks in a process that is killed at each of its calls that touch the disk."""

# ruff: noqa: D102  # a door writes, reads and deletes

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.rig import Notes, killed_at

import storekit
from ralf.document.index import files_in
from ralf.maintenance.purge import Wording, remains
from ralf.maintenance.verify import verify
from ralf.project import Project
from ralf_integrations.doors.openai_agents import RalfSession

pytestmark = [pytest.mark.release(seconds=90), pytest.mark.filterwarnings("default")]  # LangGraph's own

LARGE = "the northern gauge counts in fathoms " * 2_000

KEY = {"project_key": "p", "session_id": "s"}

THREAD: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


class Items:
    """A session of OpenAI's SDK."""

    def __init__(self, root: Path) -> None:
        self._session = RalfSession("s", root)

    def write(self, name: str, text: str) -> None:
        asyncio.run(self._session.add_items([{"name": name}, {"text": text}]))

    def read(self) -> list[str]:
        items = asyncio.run(self._session.get_items())
        assert ["text" in item for item in items] == [False, True] * (len(items) // 2)
        return [item["name"] for item in items[::2]]

    def delete(self) -> None:
        asyncio.run(self._session.clear_session())


class Entries:
    """A session of the Claude Agent SDK, whose batches are sent again by whoever does not know that they arrived."""

    def __init__(self, root: Path) -> None:
        from ralf_integrations.doors.claude_sdk import RalfSessionStore

        self._store = RalfSessionStore(root)

    def write(self, name: str, text: str) -> None:
        entry = {"type": "user", "uuid": name, "timestamp": "2026-03-01T08:00:00Z", "text": text}
        asyncio.run(self._store.append(KEY, [entry]))

    def read(self) -> list[str]:
        return [entry["uuid"] for entry in asyncio.run(self._store.load(KEY)) or ()]

    def delete(self) -> None:
        asyncio.run(self._store.delete(KEY))


class Checkpoints:
    """A thread of LangGraph's, each checkpoint of which continues the one before."""

    def __init__(self, root: Path) -> None:
        from ralf_integrations.doors.langgraph import RalfSaver

        self._saver = RalfSaver(root)

    def write(self, name: str, text: str) -> None:
        from langgraph.checkpoint.base import empty_checkpoint

        found = self._saver.get_tuple(THREAD)
        made = empty_checkpoint() | {"channel_values": {"name": name, "text": text}}
        metadata: Any = {"source": "loop", "step": -1 if found is None else 1}
        config = self._saver.put(THREAD if found is None else found.config, made, metadata, {})
        self._saver.put_writes(config, [("name", name)], "task")

    def read(self) -> list[str]:
        found = [*self._saver.list(THREAD)][::-1]
        parents = [one.parent_config["configurable"]["checkpoint_id"] for one in found if one.parent_config]
        assert parents == [one.checkpoint["id"] for one in found][:-1]
        for one in found:
            assert one.pending_writes in ([], [("task", "name", one.checkpoint["channel_values"]["name"])])
        return [one.checkpoint["channel_values"]["name"] for one in found]

    def delete(self) -> None:
        self._saver.delete_thread("t")


@pytest.fixture(params=[Items, Entries, Checkpoints])
def door(request: pytest.FixtureRequest) -> Callable[[Path], Any]:
    for needed, kind in (("claude_agent_sdk", Entries), ("langgraph", Checkpoints)):
        if request.param is kind:
            pytest.importorskip(needed, reason=f"{needed} is not installed")
    kind: Callable[[Path], Any] = request.param
    return kind


def each_kill(work: Callable[[Path], None], begin: Callable[[Path], None], above: Path) -> Iterator[Path]:
    """The folders of projects in which work was killed, at another call in each; every second one lost its index."""
    number, lives = 0, False
    while not lives:
        root = above / str(number)
        root.mkdir()
        begin(root)
        lives = not killed_at(number, lambda root=root: work(root))  # type: ignore[misc]
        if number % 2:
            for path in files_in(Project(root).cache):
                path.unlink(missing_ok=True)
        yield root
        number += 1
    assert number > 20


def test_what_was_acknowledged_before_a_kill_is_there_once_and_the_next_write_lands(
    door: Callable[[Path], Any], tmp_path: Path
) -> None:
    def work(root: Path) -> None:
        for name, text in (("b", "short"), ("c", LARGE)):
            door(root).write(name, text)
            Notes(root / "notes")(name)

    for root in each_kill(work, lambda root: door(root).write("a", "short"), tmp_path):
        written = ["a", "b", "c"]
        acknowledged = 1 + len(Notes(root / "notes").read())
        found = door(root).read()
        assert found in (written[:acknowledged], written[: acknowledged + 1])
        door(root).write("d", LARGE)
        assert door(root).read() == [*found, "d"]
        assert not verify(root=root).damaged


def test_a_deletion_that_was_killed_is_completed_by_the_same_call(door: Callable[[Path], Any], tmp_path: Path) -> None:
    def begin(root: Path) -> None:
        door(root).write("a", LARGE)
        door(root).write("b", "the northern gauge")

    for root in each_kill(lambda root: door(root).delete(), begin, tmp_path):
        door(root).delete()
        assert door(root).read() == []
        assert remains(storekit.context_of(root), Wording(["northern gauge"])) == []
