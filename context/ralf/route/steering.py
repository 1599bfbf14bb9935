"""What is handed over to whoever goes on, and what steers the work: its goal, its next steps, what is closed."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ralf import environment, project as projects, routing
from ralf.errors import NotFound, UsageError
from ralf.facts import handover as handovers
from ralf.format import merge
from ralf.format.codec import from_tree, to_tree
from ralf.model import Decision, HandOver, RouteContext
from ralf.redact import redactor_for
from ralf.route import fold, matching, state
from ralf.route.corrections import origin_of
from ralf.route.write import open_route, utc_now
from ralf.text import cleaning
from ralf.text.cleaning import clean, one_line, trimmed

AUTHORS = ("agent", "user")
"""Who writes a hand-over: the words of an item's `origin`."""

_LONGEST_GOAL = 2_000  # characters


def hand_over(
    route: str,
    text: str = "",
    *,
    goal: str = "",
    state: str = "",
    done: Iterable[str] = (),
    next: Iterable[str] = (),  # noqa: A002
    questions: Iterable[str] = (),
    decided: Iterable[str] = (),
    never: Iterable[str] = (),
    names: Iterable[str] = (),
    author: str = "agent",
    root: str | os.PathLike[str] | None = None,
) -> HandOver:
    """Record what is handed over to whoever goes on with a route, and return it; durable when this returns.

    text       Markdown, or a JSON object with these names as keys; parts under headings such as "Next" go where they
               belong (`ralf.summarize.handover`)
    goal       what the work is about, `state` how it stands; `done`, `next` what was finished and what comes next
    questions  that nobody has answered
    decided    choices that bind, each "what because why": recorded as the author's decisions
    never      what failed and is not to be tried again: recorded as failed approaches
    names      exact ids, paths and commands that will be needed
    author     who wrote it: agent, or user for a person, whose goal no agent's replaces, and who may decide again what
               a person has dropped

    It leads the context of the route until newer work makes it old, and never makes a rule. What there is no room for
    is left out; `record_hand_over` counts it. Raises UsageError (a refused name, nothing said, JSON of another form),
    Busy, OSError.
    """
    fields = {"goal": goal, "state": state, "done": done, "next": next, "questions": questions, "names": names}
    given = fields | {"decided": decided, "never": never}
    return record_hand_over(route, text, author=author, root=root, **given).handover


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came of a hand-over: itself, which may be empty, the decisions that it named by their labels, and how many
    items had no room.

    buried    decisions of an agent that a person had dropped: only a person may decide them again
    warnings  what the writer should know of; `damage`: what is wrong with the route file, which then stays as it is
    """

    handover: HandOver
    decisions: tuple[str, ...] = ()
    failed_approaches: tuple[str, ...] = ()
    left_out: int = 0
    buried: int = 0
    warnings: tuple[str, ...] = ()
    damage: str = ""


def record_hand_over(
    route: str,
    text: str = "",
    *,
    author: str = "agent",
    root: str | os.PathLike[str] | None = None,
    **given: str | Iterable[str],
) -> Recorded:
    """Do what `hand_over` does, and return all that came of it. Errors: as there."""
    if author not in AUTHORS:
        raise UsageError(route, f"the author of a hand-over is one of {', '.join(AUTHORS)}", 'author="user"')
    try:
        told = handovers.read(text)
    except ValueError as error:
        raise UsageError(route, f"the hand-over {error}", f"ralf handover {cleaning.slug(route)} --help") from None
    fields = {name: getattr(told.handover, name, ()) or getattr(told, name, ()) for name in handovers.FIELDS}
    told = handovers.of_fields(fields | {name: value for name, value in given.items() if value}, told.left_out)
    if not told.handover and not told.decided and not told.never:
        hint = f'ralf handover {cleaning.slug(route)} --state "WHERE IT STANDS" --next "WHAT COMES NEXT"'
        raise UsageError(route, "a hand-over needs words", hint)
    project = projects.find(root)
    route = routing.check_new(project, route)
    project.check_links()
    redactor = redactor_for(project)
    now = utc_now()
    made = replace(told.handover, author=author, timestamp=now, session=environment.session() or "")
    decisions = [Decision(decision=what, rationale=why) for what, why in map(_reasoned, told.decided)]
    decisions += [
        Decision(kind="failed-approach", decision=what, rationale=why) for what, why in map(_reasoned, told.never)
    ]
    payload = {
        "handover": to_tree(made),
        "decisions": [to_tree(replace(item, timestamp=now, origin=author)) for item in decisions],
        "timestamp": now,
    }
    with open_route(project, route) as writer:
        writer.absorb_edits()
        payload = redactor.tree(payload)
        writer.append("handover", payload, id=f"handover-{uuid.uuid4().hex}")
        writer.render_file()
    known = {matching.said(item): item.id for item in writer.context.decisions if item.status == "active"}
    labels: dict[str, list[str]] = {"decision": [], "failed-approach": []}
    buried = 0
    for item in (from_tree(Decision, tree) for tree in payload["decisions"]):
        label = known.get(matching.said(item), "")
        buried += not label
        if label and label not in labels[item.kind]:
            labels[item.kind].append(label)
    decided, failed = map(tuple, labels.values())
    made = from_tree(HandOver, payload["handover"])
    return Recorded(made, decided, failed, told.left_out, buried, tuple(writer.warnings), writer.damage)


def _reasoned(text: str) -> tuple[str, str]:
    """What was decided, and why, of "what because why"."""
    what, _, why = text.partition(" because ")
    return what.strip().rstrip(",;:"), why.strip()


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
    said = trimmed(one_line(clean(step)), handovers.LONGEST)
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
        if handover is not None:
            handover = replace(handover, next=keep(handover.next), questions=keep(handover.questions))
        return replace(context, active_work=work, handover=handover)

    _steer(route, changed, root)
    if not found:
        words = trimmed(one_line(clean(what)), 60)
        raise NotFound(route, f"nothing open begins with {words!r}", f"ralf context show {route} --section work")
    return found[0]


def _steer(route: str, changed: Callable[[RouteContext], RouteContext], root: str | os.PathLike[str] | None) -> None:
    """Record what a program makes of a route's context; nothing where it changes nothing."""
    project = projects.find(root)
    route = routing.check_new(project, route)
    project.check_links()
    with open_route(project, route) as writer:
        writer.absorb_edits()
        after = changed(writer.context)
        changes = [state.redacted(project, one) for one in merge.diff(to_tree(writer.context), to_tree(after))]
        if changes:
            payload = {"timestamp": utc_now(), "changes": changes, "origin": "agent"}
            writer.append("edit", payload, id=f"steer-{uuid.uuid4().hex}")
            writer.render_file()
