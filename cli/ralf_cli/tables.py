"""Tables as text: aligned columns, and the list of routes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ralf.finding.reader import RouteSummary

HEADINGS = ("ROUTE", "CHECKPOINTS", "LAST CHECKPOINT", "TOKENS", "TASK", "STATUS")
"""The columns of the list of routes."""
RIGHT = (1, 3)
"""The columns of it that are aligned right."""


def cells(route: RouteSummary) -> tuple[object, ...]:
    """Return a route's row in the list of routes."""
    return (
        f"{route.route} (foreign)" if route.foreign else route.route,
        route.checkpoint_count,
        route.last_checkpoint or "-",
        route.total_tokens_consumed,
        route.current_task or "-",
        route.work_status or "-",
    )


def aligned(headings: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = ()) -> str:
    """Return rows as lines of aligned columns, below their headings. `right`: columns that are aligned right."""
    lines = [headings, *([cell(value) for value in row] for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(headings))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if n in right else text.ljust(width)
            for n, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def cell(value: object) -> str:
    """Return a value as it stands in a table."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
