"""A limit of time holds where one of a few tries keeps to it, and fails where none does."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import clocks
from clocks import TRIES, in_line, within


def test_work_that_takes_too_long_each_time_fails_and_once_in_time_is_enough() -> None:
    ticks = [*range(0, 20, 2)]
    with pytest.raises(AssertionError, match=r"2\.00 s, the least of 5; 1 s are the most"):
        within(1, lambda: None, lambda: ticks.pop(0))
    ticks, done = [0, 2, 2, 2], []
    within(1, lambda: done.append(1), lambda: ticks.pop(0))
    assert (len(done), ticks) == (2, [])


def test_a_slower_machine_gets_more_time_in_line_and_slow_work_fails_there_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def clock() -> float:
        return ticks.pop(0)

    monkeypatch.setitem(clocks._REFERENCES, clock, (lambda: None, 2.0))
    ticks = [0, 5, 5, 11]  # the reference takes three times as long
    within(2, lambda: None, clock)
    ticks = [0, 7, 7, 13] * TRIES
    with pytest.raises(AssertionError, match=r"7\.00 s, the least of 5; 2 s are the most, 6\.00 s here now"):
        within(2, lambda: None, clock)
    ticks = [0, 21, 21, 2_021] * TRIES
    with pytest.raises(AssertionError, match=r"20\.00 s here now"):
        within(2, lambda: None, clock)


@pytest.mark.ci
@pytest.mark.parametrize("clock", [time.process_time, time.monotonic])
def test_the_machine_is_measured_by_the_clock_of_the_limit(clock: Callable[[], float]) -> None:
    assert 1.0 <= clocks.slower(clock) <= 10.0
    with pytest.raises(AssertionError, match="are the most"):
        within(0, lambda: None, clock)


def test_what_grows_too_fast_each_time_fails_and_once_in_line_is_enough() -> None:
    large = [9.0] * TRIES
    with pytest.raises(AssertionError, match="4 times are the most"):
        in_line(lambda: 2.0, large.pop, most=4)
    assert large == []
    large = [7.0, 9.0]
    in_line(lambda: 2.0, large.pop, most=4)
