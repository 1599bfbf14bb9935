"""Limits of time on a machine that others use, too: they add to what is measured, and take nothing away."""

from __future__ import annotations

import time
from collections.abc import Callable

TRIES = 5


def within(limit: float, work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> None:
    """Fails where some work takes longer each time that it is done: five times at most, until it is done in time.

    limit  seconds, of processor time where `clock` is no other
    """
    took: list[float] = []
    while not took or (took[-1] >= limit and len(took) < TRIES):
        began = clock()
        work()
        took.append(clock() - began)
    assert min(took) < limit, f"{min(took):.2f} s, the least of {len(took)}; {limit} s are the most"


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
