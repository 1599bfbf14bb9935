"""What the first page answers: what waits for the person, and what happened within a day; each thing on one line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote

from ralf.errors import RalfError
from ralf.finding.reader import RouteSummary, get_context, list_routes
from ralf.memory import writing
from ralf.memory.model import Item
from ralf.model import Decision
from ralf.storage.journal import Written
from ralf.tasks.model import TaskList, TaskState
from ralf.tasks.store import Tasks
from ralf_integrations.health.rules import Session
from ralf_integrations.web.reading import ViewedProject
from ralf_integrations.web.sessions import Look

T = TypeVar("T")

MOST = 8
"""Lines of one kind; the page says how many more there are."""

_MOST_ROUTES = 40  # whose decisions are looked at


@dataclass(frozen=True, slots=True)
class Line:
    """One thing, and what there is to know of it."""

    name: str
    link: str  # below the server's path
    text: str = ""
    state: str = ""  # a word for it, which has a colour
    when: str | float = ""  # ISO 8601 or seconds since 1970
    command: str = ""  # what the person types
    offer: str = ""  # of a memory that waits to be accepted the agent
    item: Item | None = None  # what is offered


@dataclass(frozen=True, slots=True)
class Group:
    """Lines of one kind, and how many more there are at `link`."""

    title: str
    lines: tuple[Line, ...]
    more: int
    link: str


def shown(project: ViewedProject, look: Look) -> tuple[list[Group], list[Group]]:
    """What waits, and what happened. What cannot be read is a line of what waits."""
    problems = [Line("sessions", "/sessions", look.problem, "damaged")] if look.problem else []
    began = datetime.now(UTC) - timedelta(days=1)

    def read(name: str, make: Callable[[], T], otherwise: T) -> T:
        try:
            return make()
        except (RalfError, OSError) as error:
            problems.append(Line(name, f"/{name}", str(error), "damaged"))
            return otherwise

    routes = list_routes(root=project)
    tasks = read("tasks", Tasks(project).list, TaskList())
    done = read("tasks", lambda: _completed(project, tasks, _stamp(began)), list[Line]())
    offers = read("memory", lambda: [*_offers(project)], list[Line]())
    needing = [one for one in look.sessions if one.state in ("parked", "stuck", "silent")]
    damaged = [Line(one.route, _at(one.route), one.damage, "damaged") for one in routes if one.damage]
    damaged += [Line(path.name, "/tasks", why, "damaged") for path, why in tasks.damaged]
    written = project.store.written("routes")
    fresh = [
        (one, written[one.route])
        for one in routes
        if one.route in written and written[one.route].written >= began.timestamp() * 1e9 and not one.damage
    ]
    waits = (
        _group("Damaged", "/routes", [*problems, *damaged]),
        _group("Sessions that need you", "/sessions", needing, _session),
        _group("The loop", "/sessions", list(_loop(look))),
        _group("Tasks that failed, or wait for one that did", "/tasks", _failed(tasks)),
        _group("Not written by your ralf", "/routes", [*_foreign(routes), *_not_ours(tasks)]),
        _group("Offered to be remembered", "/memory", offers),
    )
    happened = (
        _group("Routes", "/routes", fresh, _route),
        _group("Tasks completed", "/tasks", done),
        _group("Decisions", "/routes", _decided(project, fresh, _stamp(began)), _decision),
        _group("Sessions", "/sessions", [one for one in look.sessions if one not in needing], _session),
    )
    return [one for one in waits if one.lines], [one for one in happened if one.lines]


def _stamp(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def _decided(
    project: ViewedProject, routes: Sequence[tuple[RouteSummary, Written]], since: str
) -> list[tuple[str, Decision]]:
    found = list[tuple[str, Decision]]()
    for one, written in routes[:_MOST_ROUTES]:
        with suppress(RalfError, OSError):
            newest = _newest(project, one.route, written.changed)
            found += [(one.route, decision) for decision in newest if decision.timestamp >= since]
    return sorted(found, key=lambda pair: pair[1].timestamp, reverse=True)


@lru_cache(maxsize=256)
def _newest(project: ViewedProject, route: str, _changed: int) -> tuple[Decision, ...]:
    """The newest decisions of a route that are this user's; read again where its journal has changed."""
    own = (one for one in reversed(get_context(route, root=project).active_decisions) if one.id and one.timestamp)
    return tuple(islice(own, _MOST_ROUTES))


def _decision(found: tuple[str, Decision]) -> Line:
    route, one = found
    by = "you" if one.origin in ("user", "human-edit") else one.origin
    return Line(one.id, f"{_at(route)}/why/{quote(one.id, safe='')}", f"{route}: {one.decision}", by, one.timestamp)


def _group(title: str, link: str, things: Sequence[Any], line: Callable[[Any], Line] = lambda line: line) -> Group:
    """The first of some things, each as the line that is made of it."""
    return Group(title, tuple(map(line, things[:MOST])), max(0, len(things) - MOST), link)


def _at(route: str) -> str:
    return f"/routes/{quote(route, safe='')}"


def _route(found: tuple[RouteSummary, Written]) -> Line:
    one, written = found
    status = one.closed or one.work_status.replace("_", " ")
    return Line(one.route, _at(one.route), one.last_request or one.title, status, written.written / 1e9)


def _foreign(routes: Sequence[RouteSummary]) -> list[Line]:
    found = [one.route for one in routes if one.foreign]
    return [Line(one, _at(one), "a route", "foreign", command=f"ralf trust {one}") for one in found]


def _session(one: Session) -> Line:
    said = one.parked or one.stuck or (one.warnings[0].text if one.warnings else "")
    on = f"{one.client or 'client unknown'} on {one.route or 'no route'}"
    link = f"/session?id={quote(one.session, safe='')}"
    return Line(one.session[:8], link, f"{on}: {said}" if said else on, one.state, one.last)


def _loop(look: Look) -> Iterator[Line]:
    loop = look.loop
    if loop.began and not loop.ended and not loop.is_running:
        yield Line("loop", "/sessions", "its process is gone", "killed", loop.updated, command="ralf loop")
    for client, until in loop.parked.items():
        if until > time.time():
            yield Line("loop", "/sessions", f"the usage limit of {client} lasts until then", "parked", until)


def _task(state: TaskState, text: str, word: str, when: str = "") -> Line:
    link = f"/task?id={quote(state.task.id, safe='')}"
    return Line(state.task.id, link, f"{state.task.title}: {text}" if text else state.task.title, word, when)


def _failed(tasks: TaskList) -> list[Line]:
    """The tasks that failed, and those that wait for one that failed, was cancelled, or is not there."""
    status = {one.task.id: one.task.status for one in tasks.tasks}
    failed = [one for one in tasks.tasks if one.task.status == "failed"]
    lines = [_task(one, one.reason, "failed", one.finished) for one in failed]
    for one in tasks.tasks:
        lost = [id_ for id_ in one.waits_for if status.get(id_, "failed") in ("failed", "cancelled")]
        if lost and one.task.status == "pending" and not one.is_foreign:
            lines.append(_task(one, f"waits for {', '.join(lost)}", "blocked"))
    return lines


def _not_ours(tasks: TaskList) -> list[Line]:
    foreign = (_task(one, "", "foreign") for one in tasks.tasks if one.is_foreign)
    return [replace(line, text="a task", command=f"ralf trust {line.name}") for line in foreign]


def _completed(project: ViewedProject, tasks: TaskList, since: str) -> list[Line]:
    found = [one for one in tasks.tasks if one.task.status == "completed" and one.finished >= since]
    found.sort(key=lambda one: one.finished, reverse=True)
    told = [*Tasks(project).as_told(found[:MOST]), *found[MOST:]]
    return [_task(one, one.summary, one.evidence.state if one.evidence else "claimed", one.finished) for one in told]


def _offers(project: ViewedProject) -> Iterator[Line]:
    for agent in writing.agents(project):
        for item in writing.load(project, agent).offers:
            link = f"/memory/item?agent={quote(agent, safe='')}&id={quote(item.id, safe='')}"
            yield Line(item.id, link, item.words, "offered", item.added, offer=agent, item=item)
