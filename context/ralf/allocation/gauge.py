"""How healthy an agent's window is: how full, how soon it is compacted, and whether one task takes too much of it."""

from __future__ import annotations

from collections.abc import Sequence

from ralf.allocation.shares import COMPACT_AT, threshold_of
from ralf.text.frozen import dataclass

GROWTH_POINTS = 20
"""Answers of the agent over which growth is measured, at the most."""

GROWTH_MINUTES = 30.0
"""Minutes before the newest of them from which on they count."""

FULL_AT, TASK_AT = 75, 40
"""Percent of the window above which it is nearly full, and above which the current task is too large for it."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """The figures of one window.

    total_tokens, used_tokens, utilization_percent  its size, what is in it, and that in percent of it
    growth                        tokens that it gains in a minute (`growth_of`), None where unknown
    compaction_count              how often it was compacted
    time_since_last_compaction    in minutes, None where it never was
    projected_time_to_threshold   minutes until it is compacted, at this growth; None where it does not grow
    memory_size                   bytes of the agent's memory document
    active_task_tokens            of the current task
    alert                         what to do, "" for nothing
    """

    total_tokens: int
    used_tokens: int
    utilization_percent: float
    growth: float | None
    compaction_count: int
    time_since_last_compaction: float | None
    projected_time_to_threshold: float | None
    memory_size: int
    active_task_tokens: int
    alert: str


def measure(
    used: int,
    window: int,
    *,
    active_task: int = 0,
    growth: float | None = None,
    compactions: int = 0,
    minutes_since: float | None = None,
    memory_size: int = 0,
    percent: int = COMPACT_AT,
) -> Gauge:
    """The figures of a window with `used` tokens; arguments as in `Gauge`, `percent` as in `compaction_due`."""
    return Gauge(
        total_tokens=window,
        used_tokens=used,
        utilization_percent=round(100 * used / window, 1),
        growth=None if growth is None else round(growth, 1),
        compaction_count=compactions,
        time_since_last_compaction=minutes_since,
        projected_time_to_threshold=minutes_until(threshold_of(window, percent), used, growth),
        memory_size=memory_size,
        active_task_tokens=active_task,
        alert=alert_of(used, active_task, window),
    )


def growth_of(points: Sequence[tuple[float, int]]) -> float | None:
    """Tokens that a window gains in a minute, from times in seconds and the tokens in it then, oldest first.

    Measured from the first to the last of the newest `GROWTH_POINTS` that lie within `GROWTH_MINUTES` of the newest.
    None for fewer than two, or where no time passed; negative where it shrank.
    """
    near = [point for point in points[-GROWTH_POINTS:] if points[-1][0] - point[0] <= GROWTH_MINUTES * 60]
    minutes = (near[-1][0] - near[0][0]) / 60 if near else 0.0
    return (near[-1][1] - near[0][1]) / minutes if minutes > 0 else None


def minutes_until(mark: int, used: int, growth: float | None) -> float | None:
    """Minutes until a window has `mark` tokens; 0 where it has, None where it does not grow."""
    if growth is None or growth <= 0:
        return None
    return round(max(0, mark - used) / growth, 1)


def alert_of(used: int, active_task: int, window: int) -> str:
    """What to do where a window is above `FULL_AT` percent and its task above `TASK_AT` percent of it; else ""."""
    if used * 100 <= FULL_AT * window or active_task * 100 <= TASK_AT * window:
        return ""
    share = 100 * active_task / window
    return f"the current task alone fills {share:.0f} % of the window: split it, or save its state"
