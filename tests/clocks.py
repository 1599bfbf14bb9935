"""Limits of time on a machine that others use, too: they add to what is measured, and take nothing away."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

TRIES = 5
_SLOWEST = 10.0  # times as long as the machine for which limits are written: what is worth a limit fails it by more


def _counted() -> None:
    assert sum(number & 7 for number in range(1_000_000))


def _started() -> None:
    subprocess.run([sys.executable, "-c", "import json, subprocess"], check=True)


_REFERENCES: dict[Callable[[], float], tuple[Callable[[], None], float]] = {
    time.process_time: (_counted, 0.05),
    time.monotonic: (_started, 0.06),
}
"""For each clock some work, and the seconds that it takes on the machine for which limits are written, when idle."""


def slower(clock: Callable[[], float]) -> float:
    """How many times as long as the machine for which limits are written this one takes just now; 1 to 10."""
    if clock not in _REFERENCES:
        return 1.0
    work, seconds = _REFERENCES[clock]
    began = clock()
    work()
    return min(max(1.0, (clock() - began) / seconds), _SLOWEST)


def within(limit: float, work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> None:
    """Fails where some work takes longer each time that it is done: five times at most, until it is done in time.

    limit  seconds, of processor time where `clock` is no other; more in line with `slower` on a slower machine
    """
    took: list[float] = []
    while len(took) < TRIES:
        began = clock()
        work()
        took.append(clock() - began)
        if took[-1] < limit or took[-1] < (most := limit * slower(clock)):
            return
    raise AssertionError(f"{min(took):.2f} s, the least of {len(took)}; {limit} s are the most, {most:.2f} s here now")


def in_line(small: Callable[[], float], large: Callable[[], float], most: float, spare: float = 0.0) -> None:
    """Fails where the seconds of a large case are, each of five times, more than so many times those of a small one.

    spare  seconds that the large one may take besides
    """
    ratios: list[tuple[float, float]] = []
    while len(ratios) < TRIES:
        ratios.append((small(), large()))
        if ratios[-1][1] < most * ratios[-1][0] + spare:
            return
    raise AssertionError(f"small and large took {ratios}; {most} times are the most")
