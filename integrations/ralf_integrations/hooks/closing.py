"""A task is complete, the agent has stopped, the session is over: the segment is closed, within the client's time."""

from __future__ import annotations

import json

from ralf.files.opening import without_waiting
from ralf_integrations import environment
from ralf_integrations.hooks import detached, foreground, tooluse
from ralf_integrations.hooks.answer import Answer
from ralf_integrations.hooks.session import Session

SECONDS = 2.0
"""That a headless run which stops may wait for its checkpoint."""

_MOST_HEAD = 256 << 10  # bytes of a rollout's first record


def completed(session: Session) -> Answer:
    """The client says that a task is complete."""
    _start(session, "task-completed")
    return Answer()


def stopped(session: Session) -> Answer:
    """The agent has stopped: for good in a headless run, which ends with it; else until the person goes on."""
    if is_headless(session):
        if not foreground.take(session, "session-end", SECONDS):
            _start(session, "session-end")
    elif (look := tooluse.looked(session)) is not None:
        tooluse.act(session, look)
    return Answer()


def ended(session: Session) -> Answer:
    """The session is over. A client waits for a second or two at the most, so nothing is waited for here."""
    session.note(ended=True)
    _start(session, "session-end")
    return Answer()


def is_headless(session: Session) -> bool:
    """Whether the client ends when the agent stops."""
    client = session.payload.client
    if client == "claude-code":
        return environment.claude_is_headless()
    rollout = session.payload.transcript
    if client == "codex" and rollout is not None:
        try:
            with open(rollout, "rb", opener=without_waiting) as file:
                head = json.loads(file.readline(_MOST_HEAD))["payload"]
            return "exec" in (head.get("source"), str(head.get("originator", "")).removeprefix("codex_"))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return False
    return False


def _start(session: Session, why: detached.Why) -> None:
    source = session.transcript
    if source is not None and source.path.stat().st_size > session.standing.position.byte:
        detached.start(session, why)
