"""The state of an agent's run, put and got: 20 KB after 10 and after 10,000 of them, beside LangGraph's SqliteSaver.

    pip install langgraph-checkpoint-sqlite     what is compared; without it ralf is measured alone
    python benchmarks/runs.py

Both take turns in one run and on one disk, and each put is durable when it returns. Figures are
medians, but for all puts until the last, whose mean has what each does now and then: SQLite copies its log, ralf drops
old states. A get is by who holds the run, and anew by a new object or connection, as the next process makes one.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import Row, main

from ralf.agent.run import AgentRun

TITLE = "The state of a run, 20 KB"

FEW, MANY = 10, 10_000

ROUNDS = 200


def text(size: int) -> str:
    """A text as states have it: prose, quotes and line ends."""
    return "".join(random.Random(7).choices('abcdefghijklmnop qrstuvwxyz    "\n', k=size))  # noqa: S311


class Ours:
    """A run whose step is held."""

    name = "ralf"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._state = text(20_480).encode()
        self._run = AgentRun("run", root=folder)

    def put(self) -> None:
        """Save the state."""
        self._run.save(self._state)

    def get(self) -> None:
        """Load it, as who has saved it."""
        assert self._run.load() == self._state

    def get_anew(self) -> None:
        """Load it, as the next process does."""
        assert AgentRun("run", root=self._folder).peek() == self._state


class Theirs:
    """LangGraph's saver on SQLite."""

    name = "SqliteSaver"

    def __init__(self, folder: Path) -> None:
        self._open: Any = importlib.import_module("langgraph.checkpoint.sqlite").SqliteSaver.from_conn_string
        self._empty: Any = importlib.import_module("langgraph.checkpoint.base").empty_checkpoint
        self._new_id: Any = importlib.import_module("langgraph.checkpoint.base.id").uuid6
        self._place = str(folder / "saver.sqlite")
        self._context = self._open(self._place)
        self._saver = self._context.__enter__()
        self._config: Any = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}
        self._thread = {"configurable": {"thread_id": "thread"}}
        self._state = text(20_480)

    def put(self) -> None:
        """Save the state."""
        checkpoint = self._empty()
        checkpoint.update(id=str(self._new_id()), channel_values={"state": self._state}, channel_versions={"state": 1})
        self._config = self._saver.put(self._config, checkpoint, {"source": "loop", "step": 1, "parents": {}}, {})

    def get(self) -> None:
        """Load it, as who has saved it."""
        assert self._saver.get_tuple(self._thread).checkpoint["channel_values"]["state"] == self._state

    def get_anew(self) -> None:
        """Load it, as the next process does."""
        with self._open(self._place) as saver:
            assert saver.get_tuple(self._thread).checkpoint["channel_values"]["state"] == self._state


def _turns(cases: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each case, which take turns."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            begin = time.perf_counter()
            case()
            found[name].append((time.perf_counter() - begin) * 1e3)
    return found


def _rows(count: int, what: str, found: dict[str, list[float]], before: dict[str, float]) -> list[Row]:
    """The rows of a case after so many puts; `before`: what ralf took after few."""
    figure = statistics.fmean if what == "puts until" else statistics.median
    base = figure(found["SqliteSaver"]) if "SqliteSaver" in found else None
    rows = []
    for name, times in found.items():
        value, ours = figure(times), name == "ralf"
        target = 1.0 if ours and what != "get anew" else None
        rows.append(
            Row(f"{what} after {count:,}: {name}", value, "ms elapsed", value / base if base else None, 0, target)
        )
        if ours and what in before:
            rows.append(Row(f"{what} after {count:,}: ralf, to that after {FEW}", value, "ms", value / before[what]))
        if ours:
            before.setdefault(what, value)
    return rows


def produce(rounds: int) -> list[Row]:
    """The rows; `rounds` of the harness are too few for what a disk does."""
    rounds = max(rounds, ROUNDS)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        kinds: list[type[Ours] | type[Theirs]] = [Ours]
        if importlib.util.find_spec("langgraph"):
            kinds.insert(0, Theirs)
        stores = [kind(Path(folder)) for kind in kinds]
        before: dict[str, float] = {}
        for count, puts in ((FEW, FEW), (MANY, MANY - FEW)):
            found = _turns({store.name: store.put for store in stores}, puts)
            if count == MANY:
                rows += _rows(count, "puts until", found, {})
            found = _turns({store.name: store.put for store in stores}, rounds)
            rows += _rows(count, "put", found, before)
            for what, name in (("get", "get"), ("get anew", "get_anew")):
                rows += _rows(count, what, _turns({one.name: getattr(one, name) for one in stores}, rounds), before)
    return rows


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
