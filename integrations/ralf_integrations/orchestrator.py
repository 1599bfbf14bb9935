"""An orchestrator's own state (who works on what, what waits, what it decided, how its channels are), kept in a route.

It has no transcript that we know, so what it says is a record of the kind `checkpoint` without a source: the fold, the
brief, search, log, diff, revert and verify take it as it is. Assignments become to-dos in progress, what waits to-dos
that are pending and next steps, so that the next orchestrator's brief leads with them; channels become findings.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralf import config, environment, project as projects, routing
from ralf.document.tree import load, to_tree
from ralf.errors import RalfError, UsageError
from ralf.model import ActiveWork, Decision, RouteContext, Todo
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route.write import open_route
from ralf.storage.journal import encoded
from ralf.text import tokens
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.transcripts.reader import log_of_session
from ralf_integrations.health import tail
from ralf_integrations.hooks import session_registry

NAME = "orchestrator"

MOST_BYTES = 4 << 20
"""Of what is given at once."""

_CHANNEL = "channel "
_LONGEST = 400  # characters of one entry, as of a to-do
_MOST = 200  # entries of each kind
_SECTION = 20  # of them that the section names
_MOST_FULL = 100  # times its size that a window is said to hold
_KINDS: dict[str, type] = dict.fromkeys(("assignments", "channels"), dict) | dict.fromkeys(("queue", "decisions"), list)
_KINDS |= {"goal": str, "tokens": int, "window": int}
_SHAPE = '{"assignments": {"NAME": "TASK"}, "queue": ["TASK"], "decisions": ["TEXT"], "channels": {"NAME": "HEALTH"}}'


@dataclass(frozen=True, slots=True)
class State:
    """What an orchestrator knows."""

    assignments: Mapping[str, str] = field(default_factory=dict)  # who (a session, an agent) works on what
    queue: tuple[str, ...] = ()  # what waits, the next first
    channels: Mapping[str, str] = field(default_factory=dict)  # how each of its channels is, in a few words
    goal: str = ""  # what all of it is for


@dataclass(frozen=True, slots=True)
class Held:
    """What a hand-over of an orchestrator came to."""

    recorded: bool  # whether it said anything new: then it is durable
    checkpoint_id: str  # of the newest record that holds its state, "" for none yet
    tokens: int | None = None  # in its own window; None where nobody can tell
    window: int | None = None
    percent: float | None = None
    ends: bool = False  # whether the window is so full that it should end, and a fresh orchestrator go on


def hand_over(route: str, given: bytes, *, root: str | os.PathLike[str] | None = None) -> Held:
    """Hold what an orchestrator says in a route, over what that knows of it already; nothing new writes nothing.

    given  JSON with any of `assignments`, `queue`, `channels` and `goal`, each in place of what was said before, and
           `decisions`, added to those that are known: texts, or {"decision", "rationale"}. `tokens` and `window` say
           how full its own context window is; without them its session's log tells, where that is known

    UsageError for a refused name and for what has not this shape; Busy, OSError, Damaged.
    """
    tree = _tree(given)
    project = projects.find(root)
    route = routing.check_new(project, route)
    redacted: dict[str, Any] = redactor_for(project).tree(tree)
    used, window = _given_usage(tree) or _own_usage(project)
    decisions = [_decision(one) for one in redacted.get("decisions", [])[:_MOST]]
    with open_route(project, route) as writer:
        before = of_route(writer.context)
        state = _updated(before, redacted)
        known = {one.decision for one in writer.context.decisions}
        new = [one for one in decisions if one.decision not in known]
        label, is_new = _newest(writer.context), state != before or bool(new)
        if is_new:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            payload = _payload(state, new) | {"period": [now, now], "tokens": 0, "reason": "manual"}
            seed = "\0".join((route, label, hashlib.sha256(encoded(payload)).hexdigest()))
            writer.append("checkpoint", payload, id=f"checkpoint-{hashlib.sha256(seed.encode()).hexdigest()[:40]}")
            label = _newest(writer.context)
    percent = round(100 * used / window, 1) if used is not None and window else None
    ends = percent is not None and percent >= config.of(project).hand_over_at
    return Held(is_new, label, used, window, percent, ends)


def of_route(context: RouteContext) -> State:
    """What a route says of it; an empty one where no orchestrator has said anything."""
    if not _newest(context):
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


def _newest(context: RouteContext) -> str:
    """The id of the newest checkpoint that an orchestrator has made, "" for none."""
    made = (entry.checkpoint_id for entry in reversed(context.checkpoint_history) if entry.summarizer == NAME)
    return next(made, "")


def _updated(before: State, given: Mapping[str, Any]) -> State:
    values: dict[str, Any] = {}
    for key in given.keys() & {"assignments", "channels"}:
        values[key] = {_text(key, name): _text(key, text) for name, text in list(given[key].items())[:_MOST]}
    if "queue" in given:
        values["queue"] = tuple(_text("queue", one) for one in given["queue"][:_MOST])
    if "goal" in given:
        values["goal"] = _text("goal", given["goal"])
    return replace(before, **values)


def _payload(state: State, decisions: list[Decision]) -> dict[str, Any]:
    assigned = [f"{who}: {what}" for who, what in state.assignments.items()]
    channels = [f"{name}: {how}" for name, how in state.channels.items()]
    todos = [Todo(content=one, status="in_progress") for one in assigned]
    todos += [Todo(content=one, status="pending") for one in state.queue]
    work = ActiveWork(
        current_phase=NAME,
        work_status="in_progress" if todos else "idle",
        todos=tuple(todos[:_MOST]),
        next_steps=state.queue,
        findings=tuple(_CHANNEL + one for one in channels),
    )
    kinds = (("Assigned", assigned), ("Waits", state.queue), ("Channel", channels))
    text = "\n".join(f"- **{kind}:** {one}" for kind, all_ in kinds for one in all_[:_SECTION])
    counts = f"{len(assigned)} assigned, {len(state.queue)} waiting"
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


def _given_usage(tree: Mapping[str, Any]) -> tuple[int, int] | None:
    used, window = tree.get("tokens"), tree.get("window")
    if used is None and window is None:
        return None
    if used is None or window is None or used < 0 or window < 1 or used > _MOST_FULL * window:
        raise UsageError("tokens, window", "are no window: give both, or neither", '"tokens": 150000, "window": 200000')
    return used, window


def _own_usage(project: Project) -> tuple[int | None, int | None]:
    """The tokens in the window of the session that calls, and its size, as its log tells; None where it does not."""
    session = environment.session()
    with suppress(RalfError, OSError):
        known = session_registry.load(project, session)
        log = Path(known.transcript) if known.transcript else log_of_session(session) if session else None
        if log is not None:
            end = tail.read(log)
            return end.filled, end.capacity or known.window or config.of(project).window
    return None, None


def _tree(given: bytes) -> Mapping[str, Any]:
    tree = None
    with suppress(ValueError):
        tree = load(given.decode()) if len(given) <= MOST_BYTES else None
    if not isinstance(tree, dict):
        raise UsageError("standard input", "is not a JSON object, or larger than 4 MiB", _SHAPE)
    tree = {key: value for key, value in tree.items() if value is not None}
    for key, value in tree.items():
        if key not in _KINDS:
            raise UsageError("standard input", f"unknown key {key!a}", f"known keys: {', '.join(_KINDS)}")
        if type(value) is not _KINDS[key]:
            raise UsageError(key, "is of another type than expected", _SHAPE)
    return tree


def _decision(value: object) -> Decision:
    said, why = (value.get("decision"), value.get("rationale")) if isinstance(value, Mapping) else (value, None)
    rationale = _text("decisions", why) if why else ""
    return Decision(decision=_text("decisions", said), rationale=rationale, origin="agent")


def _text(what: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(what, f"expected words, got {ascii(value)[:60]}", f'"{what}": …')
    return trimmed(one_line(clean(value)), _LONGEST)
