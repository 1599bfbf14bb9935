"""An orchestrator's own state (who works on what, what waits, what it decided, how its channels are) as checkpoints of
a route, by the same means as a session's: when its own window is nearly full, and whenever it asks.

It has no transcript that we know, so its checkpoint is a record of the kind `checkpoint` without a source: the fold,
the brief, search, log, diff, revert and verify take it as it is. What was told since the last checkpoint is remembered
in the cache, so that each call may come from a new process.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralf import project as projects, routing, state as states
from ralf.errors import UsageError
from ralf.files import atomic, folders, locks
from ralf.files.opening import content_of
from ralf.journal import encoded
from ralf.writer import writing
from ralf_integrations.orchestrator.state import Decided, State, newest, of_route, of_tree, payload_of, updated

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
        self._project = projects.find(root)
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
                self._state = of_tree(self._project.redactor.tree(asdict(told)))
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
        payload: dict[str, Any] = self._project.redactor.tree(payload_of(self._state))
        digest = hashlib.sha256(encoded(payload)).hexdigest()
        if self._state == State() or digest == self._counters.digest:
            return False
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        payload |= {"period": [now, now], "tokens": size, "reason": reason}
        seed = "\0".join((self._route, self._counters.checkpoint_id, digest))  # of two at once one lands
        with writing(self._project, self._route) as writer:
            writer.append("checkpoint", payload, id=f"checkpoint-{hashlib.sha256(seed.encode()).hexdigest()[:40]}")
            label = newest(writer.context)
            writer.show()
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
                stack.enter_context(locks.held(lock, self._route))
            self._state, self._counters = self._remembered() or (self._state, self._counters)
            yield

    def _count(self, **changes: Any) -> _Counters:
        self._counters = replace(self._counters, **changes)
        with suppress(OSError):  # a cache that cannot be written costs a checkpoint, not what is in one
            self._project.prepare()
            folders.make(self._path.parent)
            content = {"counters": asdict(self._counters), "state": asdict(self._state)}
            atomic.write(self._path, json.dumps(content).encode())
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
        found = states.load(self._project, self._route)
        if found is None:
            return State(), _Counters()
        return of_route(found.context), _Counters(checkpoint_id=newest(found.context))


_KINDS = {"tokens": int, "percent": float, "seen": int, "updates": int, "digest": str, "checkpoint_id": str}
