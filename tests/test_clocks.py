"""A limit of time holds where one of a few tries keeps to it, and fails where none does."""

from __future__ import annotations

import pytest

from clocks import TRIES, in_line, within


def test_work_that_takes_too_long_each_time_fails_and_once_in_time_is_enough() -> None:
    ticks = [*range(0, 20, 2)]
    with pytest.raises(AssertionError, match=r"2\.00 s, the least of 5; 1 s are the most"):
        within(1, lambda: None, lambda: ticks.pop(0))
    ticks, done = [0, 2, 2, 2], []
    within(1, lambda: done.append(1), lambda: ticks.pop(0))
    assert (len(done), ticks) == (2, [])


def test_what_grows_too_fast_each_time_fails_and_once_in_line_is_enough() -> None:
    large = [9.0] * TRIES
    with pytest.raises(AssertionError, match="4 times are the most"):
        in_line(lambda: 2.0, large.pop, most=4)
    assert large == []
    large = [7.0, 9.0]
    in_line(lambda: 2.0, large.pop, most=4)
