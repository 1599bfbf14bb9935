"""What is remembered from one call to the next, where several threads ask for it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ralf
import storekit
from ralf import project as projects
from ralf.format import codec
from ralf.model import Decision
from ralf.route import state

ROUTES = ("tide", "ebb", "flood")


@pytest.fixture(autouse=True)
def _in_turns() -> Iterator[None]:
    """Each thread has its turn as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(*works: Callable[[], None]) -> None:
    failed: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # told by the thread that waits
            failed.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


@pytest.mark.parametrize("times", [500, pytest.param(3_000, marks=pytest.mark.slow(seconds=3))])
def test_each_thread_reads_the_route_that_it_asks_for(tmp_path: Path, times: int) -> None:
    for route in ROUTES:
        ralf.record_decision(route, f"Keep the {route}", root=tmp_path)
    project = projects.find(tmp_path)

    def read(route: str) -> None:
        content = project.route_file(route).read_bytes()
        for _ in range(times):
            kept = state.load_snapshot(project.cache, route)
            assert kept is not None
            context = state.parse_file(project, route, content)
            assert {kept.context.route, context.route} == {route}

    at_once(*(lambda route=route: read(route) for route in ROUTES))  # type: ignore[misc]


def test_an_item_has_its_own_text_though_another_thread_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_MOST_KNOWN", 16)

    def look(name: int) -> None:
        for number in range(3_000):
            items = tuple(Decision(id=f"{name}-{number}-{place}") for place in range(5))
            texts = codec._texts.of(items)
            assert [json.loads(text)["id"] for text in texts] == [item.id for item in items]

    at_once(*(lambda name=name: look(name) for name in range(4)))  # type: ignore[misc]


AT_THE_END = """
import atexit, sys, threading
import ralf
from ralf import project
from ralf.errors import RalfError
from ralf.storage import files

def hold():
    with files.locked(project.find(sys.argv[1]).route_lock("tide"), "tide"):
        held.set()
        ended.wait()

def decide():
    ended.set()
    made = ralf.record_decision("tide", "Go on", root=sys.argv[1])
    print(made.id)

class Late:
    def __del__(self):
        try:
            ralf.get_context
        except RalfError as error:
            sys.__stdout__.write(f"{error}\\n")

held, ended = threading.Event(), threading.Event()
threading.Thread(target=hold, daemon=True).start()
held.wait()
atexit.register(decide)
late = Late()
"""


def test_a_decision_at_interpreter_exit_is_recorded_and_later_calls_fail_clearly(tmp_path: Path) -> None:
    """Then no thread can be started, and no tokenizer loaded."""
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END, str(tmp_path)],
        cwd=tmp_path,
        env=storekit.environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["DEC-001", "ralf: get_context: the interpreter is ending: nothing was done"]
    assert len(storekit.records_of(tmp_path, "tide")) == 1
