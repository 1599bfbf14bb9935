"""What the pages of routes show: the list, the budget of a brief, and decisions as a lineage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ralf import config
from ralf.errors import Damaged, UsageError
from ralf.finding.reader import RouteSummary, list_routes
from ralf.model import Decision
from ralf_integrations.web.reading import Page, ViewedProject, paged

LEAST_BUDGET, MOST_BUDGET = 250, 8_000
"""Tokens between which the slider moves."""


def listed(project: ViewedProject, number: int, words: str = "") -> tuple[Page[RouteSummary], int]:
    """A page of the routes, the one with the newest checkpoint first, and how many there are in all.

    words  only routes whose name, task, title or last message holds them
    """
    found = list_routes(root=project)
    wanted = words.casefold().split()
    fitting = [one for one in found if all(word in _words_of(one) for word in wanted)]
    return paged(fitting, number), len(found)


def _words_of(one: RouteSummary) -> str:
    return f"{one.route} {one.current_task} {one.title} {one.last_request} {one.work_status}".casefold()


def budget_of(project: ViewedProject, asked: str) -> tuple[int, int]:
    """The budget that was asked for, within bounds, and the one that hooks have."""
    try:
        configured = config.of(project).brief_tokens
    except (UsageError, Damaged):
        configured = config.Config().brief_tokens
    wanted = int(asked) if asked.isdecimal() and len(asked) < 7 else configured
    return min(MOST_BUDGET, max(LEAST_BUDGET, wanted)), configured


@dataclass(frozen=True, slots=True)
class Line:
    """A decision with those that it replaced, the newest first."""

    decision: Decision
    earlier: tuple[Decision, ...] = ()


def lineage(decisions: Iterable[Decision], kinds: Sequence[str]) -> list[Line]:
    """Decisions of some kinds, the newest first and those in force before the others; each with its predecessors."""
    chosen = [one for one in decisions if one.kind in kinds]
    by_id = {one.id: one for one in chosen if one.id}
    replaced_by: dict[str, str] = {}
    for one in chosen:
        if one.supersedes in by_id:
            replaced_by[one.supersedes] = one.id
        if one.superseded_by in by_id:
            replaced_by[one.id] = one.superseded_by
    before: dict[str, list[Decision]] = {}
    for old, new in replaced_by.items():
        before.setdefault(new, []).append(by_id[old])
    seen = set[str]()
    newest = chosen[::-1]
    newest.sort(key=lambda item: item.status != "active")
    heads = (one for one in newest if one.id not in replaced_by)
    lines = [Line(one, tuple(_predecessors(one, before, seen))) for one in heads]
    circle = (one for one in chosen if one.id in replaced_by and one.id not in seen)  # an edit of the file may make one
    return [*lines, *map(Line, circle)]


def _predecessors(decision: Decision, before: dict[str, list[Decision]], seen: set[str]) -> Iterable[Decision]:
    left = list(before.get(decision.id, ()))
    while left:
        one = left.pop(0)
        if one.id not in seen:
            seen.add(one.id)
            yield one
            left += before.get(one.id, ())
