"""What an orchestrator knows: as a value, out of what it tells, as a checkpoint's record, and back out of a route.

Assignments become to-dos in progress, what waits to-dos that are pending and next steps, so that the next
orchestrator's brief leads with them; channels become findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ralf import tokens
from ralf.context import RouteContext
from ralf.errors import UsageError
from ralf.model import ActiveWork, Decision, Todo
from ralf.text import clean, one_line
from ralf.tree import to_tree
from ralf.trim import trimmed

NAME = "orchestrator"
_CHANNEL = "channel "
_LONGEST = 400  # characters of one entry, as of a to-do
_MOST = 200  # entries of each kind
_SECTION = 20  # of them that the section names

Decided = str | Mapping[str, str] | tuple[str, str]
"""What was decided: a text, a text and its reason, or {"decision" "rationale"}."""


@dataclass(frozen=True, slots=True)
class State:
    """What an orchestrator knows.

    assignments  who (a session, an agent) works on what
    queue        what waits, the next first
    decisions    what it decided lately: each a text, or a text and its reason
    channels     how each of its channels is, in a few words
    goal         what all of it is for, "" where it does not say
    """

    assignments: Mapping[str, str] = field(default_factory=dict)
    queue: tuple[str, ...] = ()
    decisions: tuple[tuple[str, str], ...] = ()
    channels: Mapping[str, str] = field(default_factory=dict)
    goal: str = ""


def updated(
    before: State,
    *,
    assignments: Mapping[str, str] | None = None,
    queue: Iterable[str] | None = None,
    decisions: Iterable[Decided] | None = None,
    channels: Mapping[str, str] | None = None,
    goal: str | None = None,
) -> State:
    """The state after it was told what is now, None: as before; decisions are added. UsageError for what has not the
    shape of these.
    """
    known = dict(before.decisions) | dict(_decision(one) for one in _items("decisions", decisions or ()))
    return State(
        assignments=before.assignments if assignments is None else _texts("assignments", assignments),
        queue=before.queue if queue is None else tuple(_text("queue", one) for one in _items("queue", queue)),
        decisions=tuple(known.items())[-_MOST:],
        channels=before.channels if channels is None else _texts("channels", channels),
        goal=before.goal if goal is None else _text("goal", goal),
    )


def payload_of(state: State) -> dict[str, Any]:
    """The payload of its checkpoint's record, but for its time, size and reason."""
    todos = [Todo(content=f"{who}: {what}", status="in_progress") for who, what in state.assignments.items()]
    todos += [Todo(content=what, status="pending") for what in state.queue]
    work = ActiveWork(
        current_phase=NAME,
        work_status="in_progress" if todos else "idle",
        todos=tuple(todos[:_MOST]),
        next_steps=state.queue,
        findings=tuple(f"{_CHANNEL}{name}: {how}" for name, how in state.channels.items()),
    )
    decisions = [Decision(decision=said, rationale=why, origin="agent") for said, why in state.decisions]
    lines = [f"- **Assigned:** {who}: {what}" for who, what in list(state.assignments.items())[:_SECTION]]
    lines += [f"- **Waits:** {what}" for what in state.queue[:_SECTION]]
    lines += [f"- **Channel:** {name}: {how}" for name, how in list(state.channels.items())[:_SECTION]]
    text = "\n".join(lines)
    counts = f"{len(state.assignments)} assigned, {len(state.queue)} waiting"
    return {
        "summarizer": NAME,
        "title": f"Orchestrator: {counts}",
        "text": text,
        "key_events": [counts],
        "decisions": [to_tree(decision) for decision in decisions],
        "facts": {},
        "active_work": to_tree(work),
        "agent_type": NAME,
        "goal": state.goal,
        "tokens_stored": tokens.count(text),
    }


def of_route(context: RouteContext) -> State:
    """What a route says of it; an empty one where no orchestrator has made a checkpoint."""
    if not newest(context):
        return State()
    work = context.active_work
    pairs = [todo.content.partition(": ")[::2] for todo in work.todos if todo.status == "in_progress"]
    channels = [one.removeprefix(_CHANNEL).partition(": ")[::2] for one in work.findings if one.startswith(_CHANNEL)]
    return State(
        assignments={who: what for who, what in pairs if what},
        queue=tuple(todo.content for todo in work.todos if todo.status == "pending"),
        channels=dict(channels),
        goal=context.goal,
    )


def newest(context: RouteContext) -> str:
    """The id of the newest checkpoint that an orchestrator has made, "" for none."""
    made = (entry.checkpoint_id for entry in reversed(context.checkpoint_history) if entry.summarizer == NAME)
    return next(made, "")


def of_tree(tree: Mapping[str, Any]) -> State:
    """A state as a tree; UsageError where it is none."""
    return State(
        assignments=_texts("assignments", tree["assignments"]),
        queue=tuple(_text("queue", one) for one in _items("queue", tree["queue"])),
        decisions=tuple(_decision(one) for one in _items("decisions", tree["decisions"])),
        channels=_texts("channels", tree["channels"]),
        goal=_text("goal", tree["goal"], empty=True),
    )


def _items(what: str, value: object) -> list[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise UsageError(what, "expected a list", f'"{what}": ["…"]')
    return list(value)[-_MOST:] if what == "decisions" else list(value)[:_MOST]


def _texts(what: str, value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise UsageError(what, "expected a name and a text for each", f'"{what}": {{"NAME": "…"}}')
    return {_text(what, name): _text(what, text) for name, text in list(value.items())[:_MOST]}


def _decision(value: object) -> tuple[str, str]:
    if isinstance(value, Mapping):
        return _text("decisions", value.get("decision")), _text("decisions", value.get("rationale") or " ", empty=True)
    if isinstance(value, list | tuple) and len(value) == 2:
        return _text("decisions", value[0]), _text("decisions", value[1], empty=True)
    return _text("decisions", value), ""


def _text(what: str, value: object, *, empty: bool = False) -> str:
    if not isinstance(value, str) or not (empty or value.strip()):
        raise UsageError(what, f"expected words, got {ascii(value)[:60]}", f'"{what}": …')
    return trimmed(one_line(clean(value)), _LONGEST)
