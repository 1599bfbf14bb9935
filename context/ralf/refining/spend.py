"""What models have cost a project, and whether one may be asked again: read off the routes' records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ralf import routing, snapshot, state as states
from ralf.errors import Damaged, UsageError
from ralf.files.opening import content_of
from ralf.journal import MALFORMED
from ralf.model import Spend
from ralf.project import Project
from ralf.refining.refinement import IN_A_ROW
from ralf.tree import from_tree, to_tree

_MOST = 1e15  # tokens or dollars
_AMOUNT = re.compile(r"(?:(\$)\s*)?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d[\d_]*(?:\.\d+)?)\s*(tokens?|usd|dollars?)?\Z", re.I)


@dataclass(frozen=True, slots=True)
class Cap:
    """What may be spent in a day (UTC): tokens, estimates included, and US dollars; None: as much as there is."""

    tokens: int | None = None
    usd: float | None = None

    @classmethod
    def parse(cls, text: str) -> Cap:
        """`200000 tokens`, `2.50 USD`, or both with a comma between; a bare number is tokens."""
        tokens: int | None = None
        usd: float | None = None
        for part in re.split(r",\s+|\s+and\s+", text.strip()) if text.strip() else ():
            found = _AMOUNT.match(part.strip())
            unit = (found[3] or "").lower() if found else ""
            if found is None or (found[1] and unit.startswith("token")):
                raise UsageError(
                    "daily_cap", f"expected tokens or USD, got {part.strip()!r}", "daily_cap: 200000 tokens, 2.50 USD"
                )
            number = found[2].replace("_", "").replace(",", "")
            if not float(number) < _MOST:
                raise UsageError("daily_cap", f"{part.strip()[:40]!r} is more than anybody has", "leave the line out")
            if found[1] or unit.startswith(("usd", "dollar")):
                usd = float(number)
            else:
                tokens = int(float(number))
        return cls(tokens, usd)

    def spent(self, today: Spend) -> str:
        """Why no more may be spent today, "" while something is left."""
        if self.tokens is not None and today.day_tokens >= self.tokens:
            return f"daily cap spent: {today.day_tokens:,} of {self.tokens:,} tokens"
        if self.usd is not None and today.day_cost_usd >= self.usd:
            return f"daily cap spent: ${today.day_cost_usd:.2f} of ${self.usd:.2f}"
        return ""


def now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def of(project: Project, route: str) -> Spend:
    """What models have cost a route; nothing for a route that cannot be read."""
    try:
        state = states.load(project, route)
    except (Damaged, OSError):
        return Spend()
    return state.recorded.context_checkpoint.spend if state is not None else Spend()


def of_project(project: Project) -> dict[str, Spend]:
    """What models have cost each route. Of a journal that stands as it did it is known from the time before."""
    marks = project.store.marks("routes")
    known = _remembered(project)
    found = {}
    for route in routing.names_of(project):
        mark, spend = known.get(route, ("", _NOTHING))
        found[route] = spend if mark and mark == marks.get(route) else of(project, route)
    kept = {route: (marks[route], found[route]) for route in found if route in marks}
    if kept != known:
        _remember(project, kept)
    return found


_NOTHING = Spend()
_Kept = dict[str, tuple[str, Spend]]
"""By route, the mark of its journal (`Store.marks`) and what models have cost it by then."""


def _place(project: Project) -> Path:
    return project.cache / "spend.json"


def _remembered(project: Project) -> _Kept:
    """What was kept; nothing where it is gone, or not as it was written."""
    try:
        content = content_of(_place(project))
        _, _, kept = content.partition(b"\n")
        if snapshot.with_sum(kept) != content:
            return {}
        tree = json.loads(kept)
        cost = {route: from_tree(Spend, spend) for route, spend in tree["spends"].items()}
        return {str(route): (str(mark), cost.get(route, _NOTHING)) for route, mark in tree["marks"].items()}
    except (OSError, *MALFORMED):
        return {}


def _remember(project: Project, kept: _Kept) -> None:
    from ralf.files import atomic

    marks = {route: mark for route, (mark, _) in kept.items()}
    spends = {route: to_tree(spend) for route, (_, spend) in kept.items() if spend != _NOTHING}
    content = json.dumps({"marks": marks, "spends": spends}, separators=(",", ":")).encode()
    with suppress(OSError):  # a cache that cannot be written costs time
        project.make_room(_place(project))
        atomic.write(_place(project), snapshot.with_sum(content))


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


def total(spends: Iterable[Spend], day: str) -> Spend:
    """The sum of several routes; `day_tokens` and `day_cost_usd` are of this day, and of later ones if the clock was
    put back.
    """
    found = list(spends)
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


def switched_off(spends: Iterable[Spend], summarizer: str) -> str:
    """Why a model is not asked any more: its last calls, on whichever routes, all failed; "" while it is."""
    mine = [spend for spend in spends if spend.summarizer == summarizer]
    last_success = max((spend.succeeded for spend in mine), default="")
    failed = sorted((when, spend.failure) for spend in mine for when in spend.failed if when > last_success)
    return f"off after {IN_A_ROW} failures in a row: {failed[-1][1]}" if len(failed) >= IN_A_ROW else ""
