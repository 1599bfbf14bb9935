"""The shares of a context window, and when it is to be compacted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from ralf.config import DEFAULT_WINDOW
from ralf.errors import UsageError
from ralf.text.frozen import dataclass

SHARES = {"system": 25, "memory": 25, "active_task": 400, "summaries": 200, "tool_output": 250, "buffer": 100}
"""Thousandths of the window that each part has. The buffer also has the tokens that rounding leaves."""

LEAST_WINDOW = 40
"""The smallest window in tokens of which each part has one."""

COMPACT_AT = 80
"""Percent of the window at which completed segments are compacted."""

Due = Literal["", "threshold", "buffer"]
"""Why a window is to be compacted; "" where it is not."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """The most tokens that each part of a window may have; together they are the window.

    system       the system prompt and the tools' descriptions
    memory       what is loaded of lasting memory
    active_task  the current task, with the output of its tools: never compacted
    summaries    the summaries of compacted segments
    tool_output  the output of tools in completed segments: the oldest leaves first
    buffer       never filled; tokens in it mean that the window is compacted at once
    """

    window: int
    system: int
    memory: int
    active_task: int
    summaries: int
    tool_output: int
    buffer: int

    @property
    def limit(self) -> int:
        """The most tokens of the window that are outside of the buffer."""
        return self.window - self.buffer

    def parts(self) -> dict[str, int]:
        """The parts in the table's order, without the window."""
        return {name: getattr(self, name) for name in SHARES}


def allocate(window: int = DEFAULT_WINDOW) -> Allocation:
    """The shares of a window of so many tokens. UsageError for one below `LEAST_WINDOW`."""
    if window < LEAST_WINDOW:
        raise UsageError(str(window), f"a window has at least {LEAST_WINDOW} tokens", "name its size in tokens")
    parts = {name: window * share // 1000 for name, share in SHARES.items() if name != "buffer"}
    return Allocation(window, **parts, buffer=window - sum(parts.values()))


def threshold_of(window: int, percent: int = COMPACT_AT) -> int:
    """The fewest tokens in a window at which it is compacted."""
    return -(-window * percent // 100)


def compaction_due(used: int, window: int, *, percent: int = COMPACT_AT, mid_turn: bool = False) -> Due:
    """Why a window with `used` tokens is to be compacted now; "" where it is not.

    percent   of the window, at which it is compacted between two turns
    mid_turn  whether a turn is open: then only tokens in the buffer are a reason, whatever was seen before
    """
    if used > allocate(window).limit:
        return "buffer"
    return "threshold" if not mid_turn and used >= threshold_of(window, percent) else ""


def outgoing(sizes: Sequence[int], share: int) -> int:
    """How many of some tool outputs, oldest first, have to leave so that the others fit into their share."""
    return len(sizes) - sum(size <= share for size in accumulate(reversed(sizes)))
