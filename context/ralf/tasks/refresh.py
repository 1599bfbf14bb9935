"""What a fresh agent reads first: who it is, its task, what came before, what comes next, and what to do.

Only what is needed is read, however many tasks there are: the states of the task, of the next few and of those before
it, and the contexts of a few routes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ralf import environment, project as projects
from ralf.errors import RalfError, RouteNotFound
from ralf.model import Carried, Decision, RouteContext
from ralf.tasks import leases
from ralf.tasks.model import ENDED_ITSELF, TaskState
from ralf.tasks.refresh_text import MAX_TOKENS, Neighbour as Neighbour, Refresh as Refresh
from ralf.tasks.routes import route_of
from ralf.text.cleaning import prose

if TYPE_CHECKING:
    from ralf.project import Project
    from ralf.tasks.book import Book

MOST_BEFORE = 64
"""Tasks before this one that are read, the nearest."""

MOST_ROUTES = 24
"""Tasks before this one of which the routes are read, the nearest."""

_MOST_NEXT = 12  # tasks after this one whose titles are read

_MOST_FILES = 8  # that are named of a task before this one


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
    return store.Tasks(project).read(
        lambda book: gather(project, book, by=by, lease=lease, task=task, max_tokens=max_tokens)
    )


def gather(
    project: Project,
    book: Book,
    *,
    by: str,
    lease: str = "",
    task: str | None = None,
    max_tokens: int = MAX_TOKENS,
) -> Refresh:
    """What an agent reads first: see `refresh`, which finds all that this is given."""
    action, state = _meant(book, by, lease, task)
    found = Refresh(agent=by, action=action, task=state, command=project.command, max_tokens=max_tokens)
    segments = next(
        (one.segments for one in book.chains() if state and any(state.task.id in ids for ids in one.segments)), ()
    )
    if state is not None:
        found = replace(found, **_coming(book, state, segments))
    if action == "hand-over" and not found.checkpoint:  # the rest of its segment comes first
        action = "claim"
    if state is None or action in ("claim", "hand-over", "stop"):
        return replace(found, action=action)
    if state.claim is not None and action == "work":
        found = replace(found, lease=state.claim.lease(state.task.id))
    elif state.claim is not None:
        found = replace(found, holder=state.claim.by)
    from ralf.finding.reader import get_context  # for start-up: a task often has no route yet

    problems = [*filter(None, [book.plan[1]])]
    context = _context(project, state, problems, lambda route: get_context(route, root=project.root))
    before = _before(book, state, segments)
    found = replace(found, context=context, **_inherited(project, before, context, problems))
    return replace(found, warnings=tuple(problems))


# ---- which task is meant ----


def _meant(book: Book, by: str, lease: str, task: str | None) -> tuple[str, TaskState | None]:
    """What is to be done, and with which task."""
    if task is not None:
        state = book.get(book.resolve(task))
        is_own = state.claim is not None and (state.claim.by == by or state.claim.lease(state.task.id) == lease)
        return "work" if is_own else "look", state
    leased = _leased(book, lease) if lease else None
    if leased is not None and leased[0] == "work":
        return leased
    claimed = book.states(book.claimed()).values()
    own = next((one for one in claimed if one.claim is not None and one.claim.by == by), None)
    # the environment may still name the lease of a task that was done before
    return ("work", own) if own is not None else leased or ("claim", None)


def _leased(book: Book, lease: str) -> tuple[str, TaskState] | None:
    """What became of the claim that a lease names; None for one that nobody knows any more."""
    id_, number = leases.parsed(lease)
    state = book.states([id_]).get(id_)
    if state is None:
        return None
    if state.claim is not None and state.claim.number == number:
        return "work", state
    has_ended = any(one.number == number and one.outcome in ENDED_ITSELF for one in state.attempts)
    return "hand-over" if has_ended else "stop", state


# ---- what comes next, and what came before ----


def _neighbour(state: TaskState) -> Neighbour:
    """A task beside this one: nothing is said of what somebody else has written."""
    task, proof = state.task, state.evidence
    if state.is_foreign:
        return Neighbour(task.id, status="foreign")
    summary = state.summary or (state.reason if task.status == "failed" else "")
    return Neighbour(task.id, task.title, task.status, proof.state if proof is not None else "", summary)


def _coming(book: Book, state: TaskState, segments: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Where a task stands in its chain, and what comes after it: fields of `Refresh`."""
    row = [(id_, part) for part, ids in enumerate(segments) for id_ in ids]
    place = next((number for number, (id_, _) in enumerate(row) if id_ == state.task.id), len(row))
    later = dict(row[place + 1 : place + 1 + _MOST_NEXT])
    following = [one for one in book.states([*later]).values() if one.task.status == "pending"]
    return {
        "in_plan": bool(row),
        "next": tuple(map(_neighbour, following)),
        "checkpoint": state.task.checkpoint or any(later[one.task.id] != row[place][1] for one in following[:1]),
    }


def _before(book: Book, state: TaskState, segments: Sequence[Sequence[str]]) -> list[TaskState]:
    """The tasks before one, the nearest first: those of its chain, and those that it depends on, directly or not."""
    row = [id_ for ids in segments for id_ in ids]
    earlier = row[: row.index(state.task.id)][::-1] if row else []
    found: dict[str, TaskState] = {}
    level = [*earlier[:1], *state.task.after, *earlier[1:MOST_BEFORE]]
    while level and len(found) < MOST_BEFORE:
        wanted = [one for one in dict.fromkeys(level) if one not in found and one != state.task.id]
        new = book.states(wanted[: MOST_BEFORE - len(found)])
        found |= new
        level = [on for one in new.values() for on in one.task.after]
    return [*found.values()]


def _context(
    project: Project, state: TaskState, problems: list[str], read: Callable[[str], RouteContext | None]
) -> RouteContext | None:
    """The context of a task's route, None where it has nothing yet, or cannot be read."""
    try:
        route = route_of(project, state.task.context_route)  # without a look at the names of all others
        return read(route) if route is not None else None
    except RouteNotFound:
        return None
    except (RalfError, OSError) as error:
        problems.append(str(error))
        return None


def _inherited(
    project: Project, before: Sequence[TaskState], own: RouteContext | None, problems: list[str]
) -> dict[str, Any]:
    """What the tasks before one, and their routes, leave to it: fields of `Refresh`. What its own route says, or
    another one before, is not said again.
    """
    if not before:
        return {}
    from ralf.route.load import load_state  # for start-up: a first task has nothing before it
    from ralf.tasks.evidence import edited

    def read(route: str) -> RouteContext | None:
        found = load_state(project, route)
        return found.context if found is not None else None

    known = {own.route} if own is not None else set()
    said = {prose(item.decision).casefold() for item in (own.active_decisions if own is not None else ())}
    decisions, neighbours = list[Decision](), [*map(_neighbour, before)]
    handed: tuple[str, Carried] | None = None
    for number, state in enumerate(before[:MOST_ROUTES]):
        context = _context(project, state, problems, read)
        if context is None or context.wholly_foreign or context.route in known:
            continue
        known.add(context.route)
        neighbours[number] = replace(neighbours[number], files=tuple(edited(context)[: -_MOST_FILES - 1 : -1]))
        for item in reversed(context.active_decisions):
            if (words := prose(item.decision).casefold()) and words not in said:
                said.add(words)
                decisions.append(replace(item, id=f"{context.route} {item.id}"))
        if handed is None and context.handover.last is not None:
            from ralf.brief.wording import new_handover

            handed = (context.route, context.handover) if new_handover(context) is not None else None
    decisions.sort(key=lambda item: not (item.pinned or item.kind == "rule"))
    from_route, handover = handed or ("", None)
    return {
        "before": tuple(neighbours),
        "decisions": tuple(decisions),
        "handover": handover,
        "handed_from": from_route,
    }
