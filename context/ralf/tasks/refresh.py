"""What a fresh agent reads first: who it is, its task, what came before, what comes next, and what to do.

Only what is needed is read, however many tasks there are: the states of the task, of the next few and of those before
it, and the contexts of as many routes as there can be room for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ralf import environment, project as projects
from ralf.errors import RalfError, RouteNotFound, UsageError
from ralf.model import RouteContext
from ralf.tasks.evidence import edited
from ralf.tasks.model import ENDED_ITSELF, TaskState
from ralf.tasks.refresh_text import MAX_TOKENS, Before as Before, Next as Next, Refresh as Refresh, composed
from ralf.tasks.routes import route_of

if TYPE_CHECKING:
    from ralf.project import Project
    from ralf.tasks.book import Book, Chain
    from ralf.tasks.store import Tasks

MOST_BEFORE = 64
"""Tasks before this one of which the state is read, the nearest; of those beyond only the number is told."""

MOST_ROUTES = 24
"""Routes of tasks before this one that are read for their decisions, the nearest."""

_MOST_NEXT = 12  # tasks after this one whose titles are read

_CHARACTERS = 8  # of decisions for each token of the text: of more routes there is no room for what they hold


class Asked:
    """The tasks as one look at the book shows them."""

    def __init__(self, tasks: Tasks, book: Book) -> None:
        self._tasks = tasks
        self._book = book

    def get(self, name: str) -> TaskState:
        """The task of an id or title; TaskNotFound, UsageError."""
        return self._tasks.state(self._book, self._tasks.resolve(self._book, name))

    def states(self, ids: Sequence[str]) -> Mapping[str, TaskState]:
        """Those of these tasks that there are."""
        return {one.task.id: one for one in self._tasks.shown(self._book, ids)}

    def held(self, by: str) -> Sequence[TaskState]:
        """The tasks that somebody has claimed."""
        return [one for one in self._tasks.held(self._book) if one.claim is not None and one.claim.by == by]

    def waiting(self, limit: int) -> tuple[int, Sequence[TaskState]]:
        """How many tasks are pending, and the first of those that can be claimed now."""
        lost = [one for one in self._tasks.held(self._book) if one.claim is None and not one.waits_for]
        ready = self._tasks.shown(self._book, self._book.ready(lambda _: True, limit))
        return self._book.counts()["pending"], [*ready, *lost][:limit]


def refresh(
    *,
    by: str = "",
    lease: str | None = None,
    task: str | None = None,
    max_tokens: int = MAX_TOKENS,
    root: str | os.PathLike[str] | None = None,
) -> Refresh:
    """What a fresh agent reads first.

    by          its name; "": as a claim would name it
    lease       the token of its claim; None: that of the environment. To read this is a sign of life of its holder
    task        the task, by id or title, held or not; None: that of the lease, else the one that the agent holds
    max_tokens  of `render`, and of the brief in it

    Writes nothing. TaskNotFound, UsageError for a title that several have, and for what is no lease.
    """
    from ralf.tasks import keeping, store

    project = projects.find(root)
    by, lease = store.holder(project, by), environment.lease() if lease is None else lease
    if lease:
        keeping.touch(lease, root=root)
    tasks = store.Tasks(project)

    def gathered(book: Book) -> Refresh:
        asked, problems = Asked(tasks, book), filter(None, [book.plan[1]])
        return gather(
            project, asked, book.chains(), by=by, lease=lease, task=task, max_tokens=max_tokens, warnings=problems
        )

    return tasks.read(gathered)


def gather(
    project: Project,
    tasks: Asked,
    chains: Sequence[Chain],
    *,
    by: str,
    lease: str = "",
    task: str | None = None,
    max_tokens: int = MAX_TOKENS,
    warnings: Iterable[str] = (),
) -> Refresh:
    """What an agent reads first: see `refresh`, which finds all that this is given."""
    action, state = _meant(tasks, by, lease, task)
    found = Refresh(agent=by, action=action, task=state, command=project.command, max_tokens=max_tokens)
    place = _place(chains, state.task.id) if state is not None else _Place()
    if state is not None:
        found = replace(found, **_after(tasks, state, place))
    if action == "hand-over" and (found.next or not found.checkpoint):  # the rest of its segment comes first
        action = "claim"
    if action in ("claim", "hand-over"):
        pending, ready = tasks.waiting(_MOST_NEXT)
        listed = tuple(map(_next_of, ready))
        action = action if action == "hand-over" else "claim" if listed else "wait" if pending else "end"
        return replace(found, action=action, pending=pending, ready=listed if action == "claim" else ())
    if state is None or action == "stop":
        return found
    if state.claim is not None and action == "work":
        found = replace(found, lease=state.claim.lease(state.task.id))
    elif state.claim is not None:
        found = replace(found, holder=state.claim.by)
    problems, named = [*warnings], state.task.context_route
    context = _own_context(project, named, problems)
    earlier, more = _before(tasks, chains, state, place)
    before, unread = _with_routes(project, earlier, context, named, _CHARACTERS * max_tokens, problems)
    found = replace(found, context=context, before=before, more_before=more, unread=unread, warnings=tuple(problems))
    text, brief = composed(found, max_tokens)
    return replace(found, brief=brief, made=text)


# ---- which task is meant ----


def _meant(tasks: Asked, by: str, lease: str, task: str | None) -> tuple[str, TaskState | None]:
    """What is to be done, and with which task."""
    if task is not None:
        state = tasks.get(task)
        is_own = state.claim is not None and (state.claim.by == by or state.claim.lease(state.task.id) == lease)
        return "work" if is_own else "look", state
    leased = _leased(tasks, lease) if lease else None
    if leased is not None and leased[0] == "work":
        return leased
    if held := tasks.held(by):  # the environment still names the lease of a task that was done before it
        return "work", held[0]
    return leased or ("claim", None)


def _leased(tasks: Asked, lease: str) -> tuple[str, TaskState] | None:
    """What became of the claim that a lease names; None for one that nobody knows any more."""
    id_, _, number = lease.rpartition(":")
    if not id_ or not number.isdecimal() or len(number) > 18:
        raise UsageError("RALF_LEASE", f"{lease[:80]!r} is not a lease", "unset RALF_LEASE")
    state = tasks.states([id_]).get(id_)
    if state is None:
        return None
    if state.claim is not None and state.claim.number == int(number):
        return "work", state
    attempt = next((one for one in state.attempts if one.number == int(number)), None)
    return "hand-over" if attempt is not None and attempt.outcome in ENDED_ITSELF else "stop", state


# ---- what comes next ----


class _Place(NamedTuple):
    """Where a task stands in the plan: in which chain, what comes before it there, the nearest first, and what comes
    after it: up to the next checkpoint, and beyond it.
    """

    chain: str = ""
    length: int = 0
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    beyond: Sequence[str] = ()


def _place(chains: Sequence[Chain], id_: str) -> _Place:
    for chain in chains:
        ids = [one for segment in chain.segments for one in segment]
        if id_ in ids:
            at = ids.index(id_)
            segment = next(segment for segment in chain.segments if id_ in segment)
            rest = len(segment) - segment.index(id_)
            return _Place(chain.name, len(ids), ids[:at][::-1], ids[at + 1 : at + rest], ids[at + rest :])
    return _Place()


def _next_of(state: TaskState) -> Next:
    return Next(state.task.id, "" if state.is_foreign else state.task.title, state.task.status)


def _after(tasks: Asked, state: TaskState, place: _Place) -> dict[str, Any]:
    """Where a task stands, and what comes after it: fields of `Refresh`."""
    after = () if state.task.checkpoint else place.after
    beyond = (*place.after, *place.beyond) if state.task.checkpoint else place.beyond
    near, far = after[:_MOST_NEXT], beyond[:_MOST_NEXT]
    states = tasks.states([*near, *far])
    pending = {id_: _next_of(one) for id_, one in states.items() if one.task.status == "pending"}
    listed = tuple(pending[id_] for id_ in near if id_ in pending)
    later = next((pending[id_] for id_ in far if id_ in pending), None)
    more = len(after) - len(near)
    is_last = not listed and not more
    return {
        "chain": place.chain,
        "position": len(place.before) + 1 if place.length else 0,
        "length": place.length,
        "next": listed,
        "more_next": more,
        "checkpoint": state.task.checkpoint or (is_last and (later is not None or len(beyond) > len(far))),
        "after_checkpoint": later,
    }


# ---- what came before ----


def _before(tasks: Asked, chains: Sequence[Chain], state: TaskState, place: _Place) -> tuple[list[Before], int]:
    """The tasks before one, the nearest first, and how many more there are: those of its chain since the start, and
    those that it depends on, directly or not.
    """
    waits = {two: one for chain in chains for one, two in pairwise([id_ for ids in chain.segments for id_ in ids])}
    seen = {state.task.id}
    found: dict[str, TaskState] = {}
    beyond = set(place.before[MOST_BEFORE:])
    level = [*place.before[:1], *state.task.after, *place.before[1:MOST_BEFORE]]
    while level:
        wanted = [one for one in dict.fromkeys(level) if one not in seen]
        room = MOST_BEFORE - len(found)
        beyond.update(wanted[room:])
        seen.update(wanted)
        states = tasks.states(wanted[:room]) if room and wanted else {}
        new = [states[one] for one in wanted[:room] if one in states]
        found.update((one.task.id, one) for one in new)
        level = [one for each in new for one in (*each.task.after, waits.get(each.task.id, "")) if one]
    return [_before_of(one) for one in found.values()], len(beyond - found.keys())


def _before_of(state: TaskState) -> Before:
    task = state.task
    return Before(
        id=task.id,
        title=task.title,
        status=task.status,
        finished=state.finished,
        evidence=state.evidence.state if state.evidence is not None else "",
        summary=state.summary or (state.reason if task.status == "failed" else ""),
        route=task.context_route,
        is_foreign=state.is_foreign,
    )


def _context(
    project: Project, named: str, warnings: list[str], read: Callable[[str], RouteContext | None]
) -> RouteContext | None:
    """The context of a route that a task names, None where it has nothing yet, or cannot be read."""
    try:
        route = route_of(project, named)  # without a look at the names of all others
        return read(route) if route is not None else None
    except RouteNotFound:
        return None
    except (RalfError, OSError) as error:
        warnings.append(str(error))
        return None


def _own_context(project: Project, named: str, warnings: list[str]) -> RouteContext | None:
    from ralf.finding.reader import get_context  # for start-up: a task often has no route yet

    return _context(project, named, warnings, lambda route: get_context(route, root=project.root))


def _with_routes(
    project: Project, before: Sequence[Before], own: RouteContext | None, named: str, room: int, warnings: list[str]
) -> tuple[tuple[Before, ...], tuple[str, ...]]:
    """The tasks with what their routes say, each route read once, and the routes that were not read: there would be no
    room for what they hold.

    own, named  the context of the task's own route, and how the task calls that
    """

    def read(route: str) -> RouteContext | None:
        from ralf.route.load import load_state

        state = load_state(project, route)
        return state.context if state is not None else None

    known: dict[str, RouteContext | None] = {named: own}
    made, unread = [], dict[str, None]()
    for one in before:
        if one.route not in known and (room < 0 or len(known) > MOST_ROUTES):
            unread[one.route] = None
        elif one.route not in known:
            found = known[one.route] = _context(project, one.route, warnings, read)
            room -= sum(len(item.decision) for item in found.active_decisions) if found is not None else 0
        made.append(_with_route(one, known.get(one.route), own))
    return tuple(made), tuple(unread)


def _with_route(one: Before, context: RouteContext | None, own: RouteContext | None) -> Before:
    if context is None or context.wholly_foreign:
        return one
    one = replace(one, route=context.route, decisions=context.active_decisions)
    if own is not None and context.route == own.route:  # the brief tells the rest
        return one
    from ralf.brief.wording import new_handover

    is_fresh = new_handover(context) is not None
    return replace(one, handover=context.handover if is_fresh else None, files=tuple(reversed(edited(context))))
