"""What the pages of routes show: the list, a route with the brief as it is handed over, its decisions as a lineage, and
what changed between two of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ralf import config, routing
from ralf.brief.wording import value
from ralf.document.merge import Change, find
from ralf.document.tree import to_tree
from ralf.errors import Damaged, UsageError
from ralf.finding.reader import RouteSummary, get_context, list_routes
from ralf.model import Decision, RouteContext
from ralf.route import history
from ralf.route.comparing import Told
from ralf_integrations.web.paging import Page, paged
from ralf_integrations.web.reading import ViewedProject

LEAST_BUDGET, MOST_BUDGET = 250, 8_000
"""Tokens between which the slider moves."""

_MOST_CHANGES = 300  # rows of a difference


# ---- the list ----


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


# ---- the brief within a budget ----


def budget_of(project: ViewedProject, asked: str) -> tuple[int, int]:
    """The budget that was asked for, within bounds, and the one that hooks have."""
    try:
        configured = config.of(project).brief_tokens
    except (UsageError, Damaged):
        configured = config.Config().brief_tokens
    wanted = int(asked) if asked.isdecimal() and len(asked) < 7 else configured
    return min(MOST_BUDGET, max(LEAST_BUDGET, wanted)), configured


# ---- decisions as a lineage ----


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


# ---- a route ----


@dataclass(frozen=True, slots=True)
class Route:
    """A route as its page shows it."""

    context: RouteContext


def shown(project: ViewedProject, name: str) -> Route:
    """A route. Errors: `get_context`."""
    context = get_context(name, root=project)
    return Route(context)


# ---- what changed between two checkpoints ----


@dataclass(frozen=True, slots=True)
class Row:
    """One field of one item that changed."""

    item: str
    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed between two moments, in words by subject, and field by field.

    route    as it is called now
    moments  between which a person can choose
    rows     fields of decisions and of the work; `more`: how many others changed
    """

    route: str
    before: str
    after: str
    moments: tuple[str, ...]
    words: dict[str, list[Told]]
    rows: tuple[Row, ...]
    more: int


def difference(project: ViewedProject, name: str, before: str, after: str) -> Difference:
    """What changed in a route between two checkpoints or revisions; "" for the one before the newest, and for now.

    Errors: `history.diff`.
    """
    route = routing.existing(project, name)
    present = history.at_present(project, route)
    labels = [entry.checkpoint_id for entry in present.checkpoint_history]
    before = _moment(project, name, before) if before else history.newest_but_one(project, route)
    after = _moment(project, name, after) if after else history.NOW
    contexts = history.contexts_at(project, route, {before, after})
    one, other = contexts[before], contexts[after]
    found = history.between((before, one), (after, other))
    words: dict[str, list[Told]] = {}
    for told in found.words:
        words.setdefault(told.subject, []).append(told)
    rows = list(_rows(to_tree(one), to_tree(other), found.changes))
    moments = tuple(dict.fromkeys(("r0", *labels, history.NOW, before, after)))
    more = max(0, len(rows) - _MOST_CHANGES)
    return Difference(route, before, after, moments, words, tuple(rows[:_MOST_CHANGES]), more)


def _moment(project: ViewedProject, name: str, said: str) -> str:
    return history.label(said)


_NOT_SHOWN = frozenset(("source", "further_sources", "timestamp", "origin", "open_files", "completed_steps", "todos"))
"""Fields that change with every checkpoint, or that the words tell better."""


def _rows(was: Any, now: Any, changes: Iterable[Change]) -> Iterable[Row]:
    """The fields that changed of decisions that are on both sides, and of the work."""
    for change in changes:
        at = [str(key) for key in change["at"]]
        of_decision = at[0] == "decisions" and len(at) > 2
        if not of_decision and at[0] not in ("active_work", "goal", "handover"):
            continue
        item, fields = (at[1], at[2:]) if of_decision else (at[0].replace("_", " "), at[1:])
        if at == ["goal"]:
            item, fields = "route", at
        if "order" in change or _NOT_SHOWN & set(fields):
            continue
        one, other = find(was, at), find(now, at)
        if isinstance(one, dict) or isinstance(other, dict):
            yield from _inner(item, fields, _tree(one), _tree(other))
        else:
            yield Row(item, " ".join(fields).replace("_", " "), _told(one), _told(other))


def _inner(item: str, fields: Sequence[str], one: dict[str, Any], other: dict[str, Any]) -> Iterable[Row]:
    for key in dict.fromkeys((*one, *other)):
        if key not in _NOT_SHOWN and one.get(key) != other.get(key):
            yield Row(item, " ".join([*fields, key]).replace("_", " "), _told(one.get(key)), _told(other.get(key)))


def _tree(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _told(found: Any) -> str:
    return "" if found is None else value(found)
