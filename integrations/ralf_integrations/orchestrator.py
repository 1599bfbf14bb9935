"""An orchestrator's own state (who works on what, what waits, what it decided, how its channels are) as checkpoints of
a route, by the same means as a session's: when its own window is nearly full, and whenever it asks.

It has no transcript that we know, so its checkpoint is a record of the kind `checkpoint` without a source: the fold,
the brief, search, log, diff, revert and verify take it as it is. What was told since the last checkpoint is remembered
in the cache, so that each call may come from a new process.

Assignments become to-dos in progress, what waits to-dos that are pending and next steps, so that the next
orchestrator's brief leads with them; channels become findings.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralf import project, routing
from ralf.document.tree import to_tree
from ralf.errors import UsageError
from ralf.model import ActiveWork, Decision, RouteContext, Todo
from ralf.redact import redactor_for
from ralf.route.load import load_state
from ralf.route.write import open_route
from ralf.storage import durable, files, locks
from ralf.storage.files import content_of
from ralf.storage.journal import encoded
from ralf.text import tokens
from ralf.text.cleaning import clean, one_line, trimmed

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


# ---- checkpoints of the state ----

PRESSURE = 70.0
"""Percent of its own window at which an orchestrator is checkpointed."""

STEP = 5.0
"""Points above the last checkpoint of the same window at which it is checkpointed again."""

_MOST_FULL = 100  # times its size that a window is told to hold
_FALLEN = 10.0  # points below the last checkpoint's pressure at which the window was emptied meanwhile


@dataclass(frozen=True, slots=True)
class SelfCheckpoint:
    """What a look at one's own pressure came to.

    checkpointed   whether a checkpoint was written by this call
    percent        how full the window is, 100 for full
    checkpoint_id  of the newest one of this orchestrator, "" for none yet
    tokens_since   tokens that came into the window since that one, `updates_since`: updates; both 0 right after it
    """

    checkpointed: bool
    percent: float
    checkpoint_id: str
    tokens_since: int
    updates_since: int


@dataclass(frozen=True, slots=True)
class _Counters:
    """What is remembered between two checkpoints; losing it costs one more checkpoint at most.

    tokens, percent  in the window at the last checkpoint, 0 where the window was emptied since
    seen             in the window at the last look
    updates          since the last checkpoint
    digest           of the state that the last checkpoint holds
    """

    tokens: int = 0
    percent: float = 0.0
    seen: int = 0
    updates: int = 0
    digest: str = ""
    checkpoint_id: str = ""


class Orchestrator:
    """One orchestrator, whose state is kept in a route of its own; it goes on with what that route says."""

    def __init__(self, route: str, root: str | os.PathLike[str] | None = None) -> None:
        """`route`, `root`: as in `ralf.checkpoint`. UsageError for a refused name; Damaged, OSError."""
        self._project = project.find(root)
        self._route = routing.check_new(self._project, route)
        self._state, self._counters = self._remembered() or self._kept()

    @property
    def _path(self) -> Path:
        return self._project.cache / "orchestrators" / f"{self._route}.json"

    @property
    def state(self) -> State:
        """What it knows now."""
        return self._state

    def update(
        self,
        *,
        assignments: Mapping[str, str] | None = None,
        queue: Iterable[str] | None = None,
        decisions: Iterable[Decided] | None = None,
        channels: Mapping[str, str] | None = None,
        goal: str | None = None,
    ) -> None:
        """Say what is now; None: as before. No checkpoint is written by this.

        decisions  added to those that are known; each a text, a text and its reason, or {"decision" "rationale"}

        UsageError for what is not of these shapes; Busy.
        """
        with self._alone():
            before = self._state
            told = updated(
                before, assignments=assignments, queue=queue, decisions=decisions, channels=channels, goal=goal
            )
            if told != before:
                self._state = of_tree(redactor_for(self._project).tree(asdict(told)))
                self._count(updates=self._counters.updates + 1)

    def check_pressure(self, tokens: int, window: int) -> SelfCheckpoint:
        """Checkpoint what is known, if the window is `PRESSURE` percent full, and again at each further `STEP` points.

        tokens, window  of the orchestrator's own context window: how many are in it, and its size

        The counters start anew after a checkpoint that was acknowledged, and only then: after an error the next call
        tries again. Raises UsageError (no such figures), Busy, OSError, Damaged.
        """
        if tokens < 0 or window < 1 or tokens > _MOST_FULL * window:
            hint = '"tokens": 150000, "window": 200000'
            raise UsageError("pressure", f"{tokens} of {window} tokens is no window", hint)
        with self._alone():
            return self._checked(tokens, round(100 * tokens / window, 1))

    def _checked(self, tokens: int, percent: float) -> SelfCheckpoint:
        before = self._counters
        if tokens < before.seen and percent < before.percent - _FALLEN:  # emptied: the mark can be crossed again
            before = self._count(tokens=0, percent=0.0)
        due = PRESSURE if before.percent < PRESSURE else before.percent + STEP
        written = False
        if percent >= due:
            written = self._write("pressure", max(0, tokens - before.tokens))
            self._count(tokens=tokens, percent=percent, seen=tokens, updates=0)
        else:
            self._count(seen=tokens)
        known = self._counters
        return SelfCheckpoint(written, percent, known.checkpoint_id, max(0, tokens - known.tokens), known.updates)

    def checkpoint(self, reason: str = "manual") -> tuple[bool, str]:
        """Checkpoint what is known now: whether one was written, and the id of the one that holds it.

        Raises Busy, OSError, Damaged.
        """
        with self._alone():
            written = self._write(reason, 0)
            self._count(updates=0)
            return written, self._counters.checkpoint_id

    # ---- the checkpoint ----

    def _write(self, reason: str, size: int) -> bool:
        """Write a checkpoint of the state; False where nothing is known, or the last one holds the same."""
        payload: dict[str, Any] = redactor_for(self._project).tree(payload_of(self._state))
        digest = hashlib.sha256(encoded(payload)).hexdigest()
        if self._state == State() or digest == self._counters.digest:
            return False
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        payload |= {"period": [now, now], "tokens": size, "reason": reason}
        seed = "\0".join((self._route, self._counters.checkpoint_id, digest))  # of two at once one lands
        with open_route(self._project, self._route) as writer:
            writer.append("checkpoint", payload, id=f"checkpoint-{hashlib.sha256(seed.encode()).hexdigest()[:40]}")
            label = newest(writer.context)
        self._count(digest=digest, checkpoint_id=label)
        return True

    # ---- what is remembered ----

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One call at a time, which goes on with what other processes have told meanwhile."""
        with ExitStack() as stack:
            with suppress(OSError):  # nothing can be remembered there either
                self._project.prepare()
                lock = self._project.folder / "locks" / "orchestrators" / f"{self._route}.lock"
                stack.enter_context(locks.locked(lock, self._route))
            self._state, self._counters = self._remembered() or (self._state, self._counters)
            yield

    def _count(self, **changes: Any) -> _Counters:
        self._counters = replace(self._counters, **changes)
        with suppress(OSError):  # a cache that cannot be written costs a checkpoint, not what is in one
            self._project.prepare()
            files.make(self._path.parent)
            content = {"counters": asdict(self._counters), "state": asdict(self._state)}
            durable.write(self._path, json.dumps(content).encode())
        return self._counters

    def _remembered(self) -> tuple[State, _Counters] | None:
        """What the cache has, None where it has nothing that can be used."""
        try:
            tree = json.loads(content_of(self._path))
            counters = _Counters(**tree["counters"])
            if {key: type(value) for key, value in asdict(counters).items()} != _KINDS:
                return None
            return of_tree(tree["state"]), counters
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageError):
            return None

    def _kept(self) -> tuple[State, _Counters]:
        """What the route says."""
        found = load_state(self._project, self._route)
        if found is None:
            return State(), _Counters()
        return of_route(found.context), _Counters(checkpoint_id=newest(found.context))


_KINDS = {"tokens": int, "percent": float, "seen": int, "updates": int, "digest": str, "checkpoint_id": str}
