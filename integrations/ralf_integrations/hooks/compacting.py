"""The client empties its window: a checkpoint of what goes, steering for the client's own summary, and afterwards the
record beside that summary.

What is known of a compaction (`Known.compaction`): `begun`; `compared`, the summary was told, and what goes beside it
waits; `handed`, that was handed over. Claude Code tells its summary by its compacting agent's end, before the session
starts anew, and again afterwards; Codex writes it into its log before.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from ralf.brief.views import after_compaction
from ralf.errors import RalfError
from ralf.model import RouteContext
from ralf.text import tokens
from ralf_integrations.hooks import checkpoints, handover
from ralf_integrations.hooks.messages import LIMIT, Answer
from ralf_integrations.hooks.session import Session

SECONDS = 5.0
"""That a compaction waits for its checkpoint."""

_STEERING_TOKENS = 1_500
_ROOM = 300  # characters of a sentence of ours before what is to be kept
_MOST_READ = 8 << 20  # bytes behind the last checkpoint in which the summary is looked for
_KEEP = (
    "Beside all else, keep in the summary what stands between the next two marks: what the person asked for, pins, file"
    " names, failing checks and errors in the very words in which they stand there. It is data that ralf kept of this"
    " session."
)
_KEEP_BRIEFLY = "Keep what the person asked for, decisions, file names, failing checks and errors in their very words."
_BESIDE = "Beside the summary of this session's window, by the record:"


def before(session: Session) -> Answer:
    """The window is about to be compacted."""
    session.note(compaction="begun", waiting="")
    if session.readable is not None:
        checkpoints.start(session, "compaction", seconds=SECONDS)
    if not session.payload.sender.takes_steering or session.settings.inject == "off":
        return Answer()
    if session.payload.trigger == "manual":  # the client shows the person all of it who has typed /compact
        return Answer(steering=_KEEP_BRIEFLY)
    context = handover.context_of(session.project, session.route)
    if context is None:
        return Answer()
    left = handover.left(session, context)
    most = min(_STEERING_TOKENS, (LIMIT - _ROOM) // 4, left)
    made = partial(context.render, section="resume", fenced=False)
    kept = handover.within(made, left, most, command=context.command)
    if not kept:
        return Answer(steering=_KEEP_BRIEFLY)
    session.note(cost=session.known.cost + tokens.estimate(kept))
    return Answer(steering=f"{_KEEP}\n{kept}")


def after(session: Session) -> Answer:
    """The window was compacted, and the client tells its summary, or not. No model hears an answer to this event: what
    goes beside it waits for one that it hears.
    """
    stage, summary = session.known.compaction, session.payload.summary
    if session.payload.name == "SubagentStop" and stage != "begun":
        return Answer()  # a subagent's window was compacted: its compacting agent has no type either
    if not summary or stage == "handed" or session.settings.inject != "auto":
        return Answer()
    context = handover.context_of(session.project, session.route)
    if context is None:
        return Answer()
    session.note(compacted=True, compaction="compared", waiting=_text(session, context, summary), hint="")
    return Answer()


def survived(session: Session) -> Answer:
    """The session starts anew behind a compaction: it is counted, and what goes beside the summary is handed over."""
    _count(session)
    context = handover.context_of(session.project, session.route)
    if context is None:
        return Answer()
    is_compared = session.known.compaction == "compared"
    text = session.known.waiting if is_compared else _text(session, context, _summary(session))
    session.note(compaction="handed", waiting="", briefed=(context.route,))  # with the summary it makes up the brief
    return Answer(context=text, what="survived")


def noticed(session: Session) -> Answer:
    """The log shows a compaction that no hook was told of, and of which no checkpoint has been made: what goes beside
    its summary is handed over, once.
    """
    if session.settings.inject != "auto":
        return Answer()
    summary = _summary(session)
    if not summary:
        session.note(compaction="")
        return Answer()
    context = handover.context_of(session.project, session.route)
    if session.known.compaction == "handed" or context is None:
        return Answer()
    session.note(compacted=True)
    return survived(session)


def _summary(session: Session) -> str:
    """The client's summary at the last compaction behind what was taken, "" where there is none, or no log that tells
    it.
    """
    source, after = session.readable, session.standing.position
    if source is None or source.size() - after.byte > _MOST_READ:
        return ""
    with suppress(RalfError, OSError):
        return next((event.text for event in reversed([*source.events(after)]) if event.kind == "compaction"), "")
    return ""


def _count(session: Session) -> None:
    """Record that the window was compacted, with the time: both stand in one record."""
    from ralf.compaction import records  # a session is compacted now and then

    with suppress(RalfError, OSError):  # the hand-over counts more
        records.count_clients(session.project, session.payload.session)


def _text(session: Session, context: RouteContext, summary: str) -> str:
    """The record of a route beside a summary, "" for nothing."""
    made = partial(after_compaction, context.without_foreign(), summary)
    left, most = handover.left(session, context), session.settings.brief_tokens
    return handover.within(made, left, most, command=context.command, beginning=_BESIDE if summary else "")
