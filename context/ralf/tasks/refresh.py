"""What a fresh agent reads first: who it is, its task, what came before, what comes next, and what to do.

Only what is needed is read, however many tasks there are: the states of the task, of the next few and of those before
it, and the contexts of as many routes as there can be room for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from ralf import environment, project as projects
from ralf.errors import RalfError, RouteNotFound, UsageError
from ralf.model import RouteContext
from ralf.tasks.evidence import edited
from ralf.tasks.model import ENDED_ITSELF, TaskState
from ralf.tasks.refresh_text import composed
from ralf.tasks.refresh_words import MAX_TOKENS, Before, Next, Refresh
from ralf.tasks.routes import route_of
from ralf.text.cleaning import OWN_OUTPUT
from ralf.text.frozen import dataclass

if TYPE_CHECKING:
    from ralf.project import Project
    from ralf.tasks.book import Book, Chain
    from ralf.tasks.store import Tasks as Stored


MOST_BEFORE = 64
"""Tasks before this one of which the state is read, the nearest; of those beyond only the number is told."""

MOST_ROUTES = 24
"""Routes of tasks before this one that are read for their decisions, the nearest."""

_MOST_NEXT = 12  # tasks after this one whose titles are read

CHARACTERS_PER_TOKEN = 4


# ---- what is needed of the store and of the plan ----


class Tasks(Protocol):
    """The tasks of a project, as far as they are asked for here."""

    def get(self, name: str) -> TaskState:
        """The task of an id or title; NotFound."""

    def states(self, ids: Sequence[str]) -> Mapping[str, TaskState]:
        """Those of these tasks that there are."""

    def held(self, by: str) -> Sequence[TaskState]:
        """The tasks that somebody has claimed."""

    def waiting(self, limit: int) -> tuple[int, Sequence[TaskState]]:
        """How many tasks are pending, and the first of those that can be claimed now."""


class Planned:
    """The plan in force, as far as it is asked for here: reading its file takes longer than all the rest."""

    def __init__(self, chains: Sequence[Chain]) -> None:
        self.chains = chains
        self._before: dict[str, str] = {}
        for chain in chains:
            ids = [id_ for segment in chain.segments for id_ in segment]
            self._before.update(zip(ids[1:], ids, strict=False))

    def waits(self, id_: str) -> tuple[str, ...]:
        """The task that must be completed before this one by the plan."""
        before = self._before.get(id_)
        return () if before is None else (before,)


def _render(found: Refresh, max_tokens: int | None = None, *, fenced: bool = True) -> str:
    """See `Refresh.render`."""
    wanted = found.max_tokens if max_tokens is None else max_tokens
    text = found.made if found.made and wanted == found.max_tokens else composed(found, wanted).text
    if fenced:
        return text
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(OWN_OUTPUT))


Refresh.render = _render  # type: ignore[assignment, method-assign]


def gather(
    project: Project,
    tasks: Tasks,
    plan: Planned | None,
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
    place = _place(plan, state.task.id) if state is not None else _Place()
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
    problems = [*warnings]
    context = _context(project, state.task.context_route, problems)
    before, more = _before(tasks, plan, state, place)
    before, unread = _with_routes(project, before, state.task.context_route, context, max_tokens, problems)
    found = replace(found, context=context, before=before, more_before=more, unread=unread, warnings=tuple(problems))
    text, brief = composed(found, max_tokens)
    return replace(found, brief=brief, made=text)


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
        asked, plan = _Asked(tasks, book), Planned(book.chains())
        problems = [book.plan[1]] if book.plan[1] else []
        return gather(project, asked, plan, by=by, lease=lease, task=task, max_tokens=max_tokens, warnings=problems)

    return tasks.read(gathered)


class _Asked:
    """The tasks as one look at the book shows them."""

    def __init__(self, tasks: Stored, book: Book) -> None:
        self._tasks = tasks
        self._book = book

    def get(self, name: str) -> TaskState:
        return self._tasks.state(self._book, self._tasks.resolve(self._book, name))

    def states(self, ids: Sequence[str]) -> Mapping[str, TaskState]:
        found = self._book.states(ids) if ids else {}
        held = self._tasks.is_held
        return {id_: one if held(one, known) else replace(one, claim=None) for id_, (one, known) in found.items()}

    def held(self, by: str) -> Sequence[TaskState]:
        return [one for one in self.states(self._book.held()).values() if one.claim is not None and one.claim.by == by]

    def waiting(self, limit: int) -> tuple[int, Sequence[TaskState]]:
        pending = self._book.counts()["pending"]
        lost = [id_ for id_, one in self.states(self._book.held()).items() if one.claim is None and not one.waits_for]
        return pending, [*self.states([*self._book.ready(lambda _: True, limit), *lost]).values()][:limit]


# ---- which task is meant ----


def _meant(tasks: Tasks, by: str, lease: str, task: str | None) -> tuple[str, TaskState | None]:
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


def _leased(tasks: Tasks, lease: str) -> tuple[str, TaskState] | None:
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
    if attempt is None or attempt.outcome not in ENDED_ITSELF:
        return "stop", state
    return "hand-over", state


# ---- what comes next ----


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a task stands in the plan: in which chain, what comes before it there, the nearest first, and what comes
    after it: up to the next checkpoint, and beyond it.
    """

    chain: str = ""
    position: int = 0
    length: int = 0
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()


def _place(plan: Planned | None, id_: str) -> _Place:
    for chain in plan.chains if plan is not None else ():
        for number, segment in enumerate(chain.segments):
            if id_ in segment:
                at = segment.index(id_)
                earlier = [one for part in chain.segments[:number] for one in part] + [*segment[:at]]
                beyond = tuple(one for part in chain.segments[number + 1 :] for one in part)
                length = sum(map(len, chain.segments))
                before, after = tuple(reversed(earlier)), tuple(segment[at + 1 :])
                return _Place(chain.name, len(earlier) + 1, length, before, after, beyond)
    return _Place()


def _next_of(state: TaskState) -> Next:
    return Next(state.task.id, "" if state.is_foreign else state.task.title, state.task.status)


def _after(tasks: Tasks, state: TaskState, place: _Place) -> dict[str, Any]:
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
        "position": place.position,
        "length": place.length,
        "next": listed,
        "more_next": more,
        "checkpoint": state.task.checkpoint or (is_last and (later is not None or len(beyond) > len(far))),
        "after_checkpoint": later,
    }


# ---- what came before ----


def _before(tasks: Tasks, plan: Planned | None, state: TaskState, place: _Place) -> tuple[tuple[Before, ...], int]:
    """The tasks before one, the nearest first, and how many more there are: those of its chain since the start, and
    those that it depends on, directly or not.
    """
    seen = {state.task.id}
    found: dict[str, TaskState] = {}
    beyond = set(place.before[MOST_BEFORE:])
    level = [*place.before[:1], *state.task.after, *_waits(plan, state.task.id), *place.before[1:MOST_BEFORE]]
    while level:
        wanted = [one for one in dict.fromkeys(level) if one not in seen]
        room = MOST_BEFORE - len(found)
        beyond.update(wanted[room:])
        seen.update(wanted)
        states = tasks.states(wanted[:room]) if room and wanted else {}
        new = [states[one] for one in wanted[:room] if one in states]
        found.update((one.task.id, one) for one in new)
        level = [one for each in new for one in (*each.task.after, *_waits(plan, each.task.id))]
    return tuple(map(_before_of, found.values())), len(beyond - found.keys())


def _waits(plan: Planned | None, id_: str) -> Iterator[str]:
    if plan is not None:
        yield from plan.waits(id_)


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


def _with_routes(
    project: Project,
    before: Sequence[Before],
    own: str,
    context: RouteContext | None,
    max_tokens: int,
    warnings: list[str],
) -> tuple[tuple[Before, ...], tuple[str, ...]]:
    """The tasks with what their routes say, each route read once, and the routes that were not read: there would be no
    room for what they hold.
    """
    now = context.route if context is not None else own
    called: dict[str, str] = {own: now}  # as the tasks name the routes, as they are called now
    known: dict[str, RouteContext | None] = {now: context}
    made: list[Before] = []
    unread: dict[str, None] = {}
    room = 2 * CHARACTERS_PER_TOKEN * max_tokens
    for one in before:
        if one.route not in called:
            if room < 0 or len(called) > MOST_ROUTES:
                unread[one.route] = None
                made.append(one)
                continue
            found = _called_now(project, one.route, warnings)
            called[one.route] = found or one.route
            if called[one.route] not in known:
                held = _state_of(project, found, warnings) if found else None
                known[called[one.route]] = held
                room -= sum(len(item.decision) for item in held.active_decisions) if held is not None else 0
        route = called[one.route]
        made.append(_with_route(replace(one, route=route), known[route], is_own=route == now))
    return tuple(made), tuple(unread)


def _called_now(project: Project, route: str, warnings: list[str]) -> str | None:
    """The name that a task's route has now; None where there is none, or its name is refused."""
    try:
        return route_of(project, route)
    except (RalfError, OSError) as error:
        warnings.append(str(error))
        return None


def _with_route(one: Before, context: RouteContext | None, *, is_own: bool) -> Before:
    if context is None or context.wholly_foreign:
        return one
    if is_own:  # the brief tells the rest
        return replace(one, decisions=context.active_decisions)
    from ralf.brief.wording import new_handover

    is_fresh = new_handover(context) is not None
    return replace(
        one,
        decisions=context.active_decisions,
        handover=context.handover if is_fresh else None,
        files=tuple(reversed(edited(context))),
    )


def _context(project: Project, route: str, warnings: list[str]) -> RouteContext | None:
    """The context of the task's own route, None where it has nothing yet."""
    try:
        found = route_of(project, route)  # without a look at the names of all others
        if found is None:
            return None
        from ralf.finding.reader import get_context  # for start-up: a task often has no route yet

        return get_context(found, root=project.root)
    except RouteNotFound:
        return None
    except (RalfError, OSError) as error:
        warnings.append(str(error))
        return None


def _state_of(project: Project, route: str, warnings: list[str]) -> RouteContext | None:
    """The context of another route, as its records and file have it."""
    from ralf.route.load import load_state

    try:
        state = load_state(project, route)
    except (RalfError, OSError) as error:
        warnings.append(str(error))
        return None
    return state.context if state is not None else None
