"""Sums what models have cost, by the routes' records, and says when one is not asked any more."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from ralf import routing
from ralf.errors import Damaged
from ralf.model import Spend
from ralf.project import Project
from ralf.route.fold import IN_A_ROW
from ralf.route.load import load_state


def now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def spend_of_route(project: Project, route: str) -> Spend:
    """What models have cost a route; nothing for a route that cannot be read."""
    try:
        state = load_state(project, route)
    except (Damaged, OSError):
        return Spend()
    return state.recorded.context_checkpoint.spend if state is not None else Spend()


def spend_of_project(project: Project) -> Spend:
    """What models have cost all routes."""
    return total(spend_of_route(project, route) for route in routing.names_of(project))


def total(spends: Iterable[Spend], day: str = "") -> Spend:
    """The sum of several routes; `day_tokens` and `day_cost_usd` are of this day, "" for today, and of later ones if
    the clock was put back.
    """
    found = list(spends)
    day = day or now()[:10]
    today = [spend for spend in found if spend.day >= day]
    return Spend(
        calls=sum(spend.calls for spend in found),
        tokens=sum(spend.tokens for spend in found),
        estimated_tokens=sum(spend.estimated_tokens for spend in found),
        cost_usd=round(sum(spend.cost_usd for spend in found), 4),
        day=day,
        day_tokens=sum(spend.day_tokens for spend in today),
        day_cost_usd=round(sum(spend.day_cost_usd for spend in today), 4),
    )


def as_fields(spend: Spend) -> dict[str, int | float | str]:
    """What models have cost, for a reader: the same names everywhere."""
    return {
        "calls": spend.calls,
        "tokens": spend.tokens,
        "estimated_tokens": spend.estimated_tokens,
        "cost_usd": spend.cost_usd,
        "last_failure": spend.failure,
        "last_success": spend.succeeded,
    }


def switched_off(spend: Spend, summarizer: str, route: str) -> str:
    """That a model is not asked about a route any more, for its last calls all failed, and how to switch it on again;
    "" while it is asked.
    """
    if not summarizer or spend.summarizer != summarizer or len(spend.failed) < IN_A_ROW:
        return ""
    reason = f"off after {IN_A_ROW} failures in a row: {spend.failure} ({spend.failed[-1]})"
    again = f"ralf checkpoint {route} --summarizer {summarizer}"
    return f"{summarizer} is {reason}; a call that works switches it on: {again}"
