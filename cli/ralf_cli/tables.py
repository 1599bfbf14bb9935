"""What the commands print, as text: aligned columns, JSON, the list of routes, a message on one line. No click here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from ralf.text.cleaning import clean, one_line, trimmed, without_middle

if TYPE_CHECKING:
    from ralf.finding.reader import RouteSummary

_ECHOED = 200  # characters of what a command has taken in that it says again

_LONGEST = 1_000  # characters of an error, which can quote a path of 4,096

_TOLD = 44  # characters of what a route is about, and of what was asked last


def listed(routes: Iterable[RouteSummary]) -> str:
    """The list of routes."""
    headings = ("ROUTE", "CHECKPOINTS", "LAST CHECKPOINT", "TOKENS", "STATUS", "ABOUT", "ASKED LAST")
    return aligned(headings, map(_cells, routes), (1, 3)) + "\n"


def _cells(route: RouteSummary) -> tuple[object, ...]:
    return (
        f"{route.route} (foreign)" if route.foreign else route.route,
        route.checkpoint_count,
        route.last_checkpoint or "-",
        route.total_tokens_consumed,
        f"closed: {route.closed}".removesuffix(": closed") if route.closed else in_brief(route.work_status),
        in_brief(": ".join(filter(None, (route.current_task, route.title)))),
        in_brief(route.last_request),
    )


def in_brief(text: str) -> str:
    """A text on one line, cut, `-` for none."""
    return trimmed(one_line(clean(text)), _TOLD) or "-"


def so_many(count: int, noun: str) -> str:
    """A number of things: `1 route`, `2,000 routes`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def echoed(text: str) -> str:
    """What was taken in, as far as it tells which it was: a person has just typed it."""
    return text if len(text) <= _ECHOED else f"{text[:_ECHOED].rstrip()}…"


def aligned(headings: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = ()) -> str:
    """Return rows as lines of aligned columns, below their headings. `right`: columns that are aligned right."""
    lines = [headings, *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(headings))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if n in right else text.ljust(width)
            for n, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def as_json(value: Any) -> str:
    """Return a value as JSON: a dataclass as its fields, a path as its text, any other collection as a list."""
    import json  # for whoever asks for it

    return json.dumps(value, ensure_ascii=False, indent=2, default=_plain)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return list(value) if isinstance(value, Iterable) else str(value)


def bounded(text: str) -> str:
    """A message as one line without control characters, its middle cut where it is long: an agent may read it."""
    text = one_line(clean(text))
    return without_middle(text, _LONGEST * 3 // 4, _LONGEST // 4)[0]
