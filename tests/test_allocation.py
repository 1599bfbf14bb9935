"""A window is divided, compacted at its marks, and measured (formats/agent-memory.md, statements 1, 2, 24 to 27)."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from ralf.allocation.gauge import Gauge, alert_of, measure
from ralf.allocation.shares import LEAST_WINDOW, allocate, compaction_due, outgoing, threshold_of

WINDOWS = st.integers(LEAST_WINDOW, 10_000_000)


def test_statement_1_the_window_is_configurable_and_scales_every_share() -> None:
    assert allocate().window == 200_000
    million = allocate(1_000_000)
    assert million.parts() == {name: 5 * size for name, size in allocate().parts().items()}


@given(WINDOWS)
@example(200_000)
@example(200_001)
def test_statement_2_a_window_is_compacted_from_four_fifths_on_and_not_one_token_earlier(window: int) -> None:
    mark = threshold_of(window)
    assert 5 * mark >= 4 * window > 5 * (mark - 1)
    assert compaction_due(mark, window)
    assert compaction_due(mark - 1, window) == ""


def test_statement_24_the_shares_of_200_000_tokens_are_those_of_the_table() -> None:
    assert allocate(200_000).parts() == {
        "system": 5_000,
        "memory": 5_000,
        "active_task": 80_000,
        "summaries": 40_000,
        "tool_output": 50_000,
        "buffer": 20_000,
    }


@given(st.lists(st.integers(0, 30_000), max_size=30), st.integers(0, 100_000))
def test_statement_24_the_oldest_tool_outputs_leave_and_no_more_of_them_than_must(sizes: list[int], share: int) -> None:
    gone = outgoing(sizes, share)
    assert sum(sizes[gone:]) <= share
    assert gone == 0 or sum(sizes[gone - 1 :]) > share


@given(WINDOWS, st.integers(1, 100))
def test_statement_25_a_jump_into_the_buffer_is_a_reason_at_once_whatever_was_seen(window: int, percent: int) -> None:
    limit = allocate(window).limit
    assert compaction_due(limit + 1, window, percent=percent, mid_turn=True) == "buffer"
    assert compaction_due(limit, window, percent=percent, mid_turn=True) == ""


def test_statement_26_142_000_tokens_at_720_a_minute_are_71_percent_and_25_minutes_from_the_threshold() -> None:
    assert measure(
        142_000, 200_000, active_task=20_000, growth=720.0, compactions=2, minutes_since=9.0, memory_size=3_000
    ) == Gauge(200_000, 142_000, 71.0, 720.0, 2, 9.0, 25.0, 3_000, 20_000, "")


@pytest.mark.parametrize(
    ("used", "task", "is_alert"),
    [(150_001, 80_001, True), (150_000, 80_001, False), (150_001, 80_000, False), (150_000, 80_000, False)],
)
def test_statement_27_an_alert_needs_more_than_75_percent_used_and_more_than_40_by_the_task(
    used: int, task: int, *, is_alert: bool
) -> None:
    assert bool(alert_of(used, task, 200_000)) is is_alert
    assert bool(measure(used, 200_000, active_task=task).alert) is is_alert
