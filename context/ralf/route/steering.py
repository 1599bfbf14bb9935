"""What steers the work: its goal, its next steps, what is closed."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import replace

from ralf import project as projects, routing
from ralf.document import merge
from ralf.document.tree import to_tree
from ralf.errors import NotFound, UsageError
from ralf.model import RouteContext
from ralf.model.handover import Part
from ralf.route import fold, state
from ralf.route.closing import CLOSED
from ralf.route.corrections import origin_of
from ralf.route.write import open_route, utc_now
from ralf.text.cleaning import clean, one_line, trimmed

_LONGEST_GOAL, _LONGEST_STEP = 2_000, 1_200  # characters


def set_goal(route: str, goal: str, *, origin: str | None = None, root: str | os.PathLike[str] | None = None) -> None:
    """Set what a route is about now; what it began as stays known. A goal of a person (`origin="user"`) gives way to a
    person's alone. Durable when this returns. Raises UsageError, Busy, OSError.
    """
    said = trimmed(one_line(clean(goal)), _LONGEST_GOAL)
    if not said:
        raise UsageError(route, "a goal needs words", 'set_goal(ROUTE, "WHAT IT IS ABOUT")')

    def changed(context: RouteContext) -> RouteContext:
        return fold.with_goal(context, said, origin_of(route, origin))

    _steer(route, changed, root)


def add_next(route: str, step: str, *, root: str | os.PathLike[str] | None = None) -> None:
    """Add what comes next to a route, behind the steps that it has; it stays until it is done or closed. Durable when
    this returns. Raises UsageError, Busy, OSError.
    """
    said = trimmed(one_line(clean(step)), _LONGEST_STEP)
    if not said:
        raise UsageError(route, "a step needs words", 'add_next(ROUTE, "WHAT COMES NEXT")')

    def changed(context: RouteContext) -> RouteContext:
        work = context.active_work
        if said not in work.next_steps and len(work.next_steps) >= fold.MAX_OPEN_TODOS:
            what = f"has {len(work.next_steps)} next steps: nobody reads more"
            raise UsageError(route, what, 'close(ROUTE, "THE BEGINNING OF ITS WORDS")')
        steps = tuple(dict.fromkeys([*work.next_steps, said]))
        by_hand = tuple(dict.fromkeys([*work.by_hand, said]))
        return replace(context, active_work=replace(work, next_steps=steps, by_hand=by_hand))

    _steer(route, changed, root)


def close_route(route: str, *, root: str | os.PathLike[str] | None = None) -> None:
    """Close a route: nobody is told any more that it is unfinished. Its next record opens it. Durable when this
    returns. Raises RouteNotFound, UsageError, Busy, OSError.
    """

    def changed(context: RouteContext) -> RouteContext:
        return replace(context, active_work=replace(context.active_work, work_status=CLOSED))

    _steer(routing.find(route, root)[1], changed, root)


def close(route: str, what: str, *, root: str | os.PathLike[str] | None = None) -> str:
    """Close a next step, a to-do, a blocker or an open question of a route, and return its words.

    what  its words, or their beginning

    Durable when this returns. Raises RouteNotFound, NotFound (nothing of that name is open), UsageError, Busy, OSError.
    """
    route = routing.find(route, root)[1]
    said = one_line(clean(what)).strip().casefold()
    if not said:
        raise UsageError(route, "what is closed needs words", 'close(ROUTE, "THE BEGINNING OF ITS WORDS")')
    found: list[str] = []

    def keep(items: tuple[str, ...]) -> tuple[str, ...]:
        for item in items:
            if not found and one_line(item).casefold().startswith(said):
                found.append(item)
        return tuple(item for item in items if item not in found)

    def changed(context: RouteContext) -> RouteContext:
        work, handover = context.active_work, context.handover
        steps, blockers, by_hand = map(keep, (work.next_steps, work.blockers, work.by_hand))
        open_ = keep(tuple(todo.content for todo in work.todos if todo.status != "completed"))
        todos = tuple(
            todo if todo.content in open_ or todo.status == "completed" else replace(todo, status="completed")
            for todo in work.todos
        )
        work = replace(work, todos=todos, next_steps=steps, blockers=blockers, by_hand=by_hand)
        over = keep(tuple(entry.text for entry in handover.current("open")))
        kept = tuple(entry for entry in handover.kept if entry.kind != "open" or entry.text in over)
        last = handover.last
        if last is not None and (left := keep(last.next)) != last.next:
            parts = (replace(part, items=keep_items(part)) if part.kind == "next" else part for part in last.parts)
            last = replace(last, next=left, parts=tuple(parts))
        return replace(context, active_work=work, handover=replace(handover, last=last, kept=kept))

    def keep_items(part: Part) -> tuple[str, ...]:
        return tuple(item for item in part.items if not any(one_line(item).endswith(one) for one in found))

    _steer(route, changed, root)
    if not found:
        words = trimmed(one_line(clean(what)), 60)
        raise NotFound(route, f"nothing open begins with {words!r}", f"ralf context show {route} --section work")
    return found[0]


def _steer(route: str, changed: Callable[[RouteContext], RouteContext], root: str | os.PathLike[str] | None) -> None:
    """Record what a program makes of a route's context; nothing where it changes nothing."""
    project = projects.find(root)
    route = routing.check_new(project, route)
    with open_route(project, route) as writer:
        writer.absorb_edits()
        after = changed(writer.context)
        changes = [state.redacted(project, one) for one in merge.diff(to_tree(writer.context), to_tree(after))]
        if changes:
            payload = {"timestamp": utc_now(), "changes": changes, "origin": "agent"}
            writer.append("edit", payload, id=f"steer-{uuid.uuid4().hex}")
            writer.render_file()
