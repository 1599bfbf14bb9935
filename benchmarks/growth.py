"""What history costs: the 1,000th against the 2,000th checkpoint, decision and read of a route that is at its cap."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import measure
from measure import Row, main
from synthetic import turn

import ralf
from ralf.route.cap import CAP
from ralf.text import tokens

TITLE = "Growth of a route at its cap"

EARLY, LATE = 1_000, 2_000
LIMIT = 1.2
ROUTE = "loop"


class _Cost(NamedTuple):
    """CPU seconds, read calls, and bytes read by them, of one call."""

    cpu: float
    calls: int
    read: int


class _Loop:
    """A project whose one route gets a checkpoint a turn.

    one_session  whether one transcript grows all the time, or each turn is a session with a transcript of its own
    """

    def __init__(self, root: Path, *, one_session: bool, turns: int = 0) -> None:
        self.root = root
        self._folder = root / ".autonomous" / "context"
        self.turns = turns
        self._one_session = one_session
        root.mkdir(exist_ok=True)

    def checkpoint(self) -> None:
        session = "one" if self._one_session else f"session-{self.turns}"
        transcript = self.root / ("one.jsonl" if self._one_session else "newest.jsonl")
        with transcript.open("ab" if self._one_session else "wb") as file:
            file.writelines(turn(self.turns, session))
        self.turns += 1
        begin = _now()
        report = ralf.checkpoint(ROUTE, transcript, root=self.root)
        self.last = _since(begin)
        assert len(report.checkpoints) == 1

    def decide(self) -> None:
        begin = _now()
        ralf.record_decision(ROUTE, f"Use way {time.monotonic_ns()}", rationale="it is another one", root=self.root)
        self.last = _since(begin)

    def read(self) -> None:
        begin = _now()
        ralf.get_context(ROUTE, root=self.root, max_tokens=2_500).render()
        self.last = _since(begin)

    def forget(self) -> None:
        shutil.rmtree(self._folder / "cache")

    def copy(self, to: Path) -> _Loop:
        return _Loop(measure.copied(self.root, to), one_session=self._one_session, turns=self.turns)

    def file_tokens(self) -> int:
        path = self._folder / "routes" / f"{ROUTE}.md"
        return tokens.estimate(path.read_text(encoding="utf-8"))

    def sizes(self) -> dict[str, int]:
        return {
            part: sum(path.stat().st_size for path in (self._folder / part).rglob("*") if path.is_file())
            for part in ("routes", "journal", "blobs", "cache")
        }


def produce(rounds: int) -> list[Row]:
    """In this process, tokenizer loaded, every call on what lies on disk; early and late store in turns."""
    tokens.count("loaded")
    with tempfile.TemporaryDirectory() as scratch:
        return [
            *_compared(Path(scratch, "many"), "a session a checkpoint", one_session=False, rounds=4 * rounds),
            *_compared(Path(scratch, "one"), "one long session", one_session=True, rounds=4 * rounds),
        ]


def _compared(root: Path, how: str, *, one_session: bool, rounds: int) -> list[Row]:
    late = _Loop(root, one_session=one_session)
    while late.turns < EARLY - 1:
        late.checkpoint()
    early = late.copy(root.with_name(root.name + "-early"))
    while late.turns < LATE - 1:
        late.checkpoint()
    size = early.file_tokens()
    assert 0.9 * CAP <= size <= CAP, f"the route is not at its cap: {size:,} tokens"
    rows = [Row(f"{how}: the route file at its cap", size / 1000, "k tokens, estimated")]
    for what, call in _CALLS:
        costs: dict[str, list[_Cost]] = {"early": [], "late": []}
        for number in range(rounds):
            pair = (("early", early), ("late", late))
            for name, loop in pair if number % 2 else pair[::-1]:
                call(loop)
                costs[name].append(loop.last)
        rows += _rows(f"{how}: {what}", costs)
    rows += [
        Row(f"{how}: {part} after {late.turns:,} checkpoints", size / 1e6, "MB") for part, size in late.sizes().items()
    ]
    if not one_session:
        lost = {}
        for name, loop in (("early", early), ("late", late)):
            loop.forget()
            loop.read()
            lost[name] = [loop.last]
        rows += _rows(f"{how}: get_context, cache deleted", lost, target=None)
    return rows


_CALLS: tuple[tuple[str, Callable[[_Loop], None]], ...] = (
    ("checkpoint", _Loop.checkpoint),
    ("decide", _Loop.decide),
    ("get_context and render", _Loop.read),
)


def _rows(what: str, costs: dict[str, list[_Cost]], target: float | None = LIMIT) -> list[Row]:
    # The mean: every few writes one has to fold, and those count.
    means = {name: [statistics.fmean(column) for column in zip(*taken, strict=True)] for name, taken in costs.items()}
    rows = []
    for column, (unit, scale) in enumerate((("ms CPU", 1000.0), ("read calls", 1.0), ("KB read", 1e-3))):
        early, late = means["early"][column] * scale, means["late"][column] * scale
        if column == 0:
            rows.append(Row(f"{what}, {EARLY:,}th", early, unit, 1.0))
        if early:  # 0 where the kernel does not tell
            promised = target if column == 0 else None
            rows.append(Row(f"{what}, {LATE:,}th", late, unit, late / early, 0, promised))
    return rows


def _now() -> _Cost:
    calls, read = _reads()
    return _Cost(time.process_time(), calls, read)


def _since(begin: _Cost) -> _Cost:
    cpu = time.process_time()
    calls, read = _reads()
    return _Cost(cpu - begin.cpu, calls - begin.calls, read - begin.read)


def _reads() -> tuple[int, int]:
    """Read calls of this process so far, and the bytes they gave; 0 where the kernel does not tell."""
    try:
        lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text("ascii").splitlines())
    except OSError:
        return 0, 0
    return int(lines["syscr"]), int(lines["rchar"])


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
