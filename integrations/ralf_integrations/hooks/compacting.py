"""The client empties its window: a checkpoint of what goes, steering for the client's own summary, and afterwards what
that summary does not say.

What is known of a compaction (`Known.compaction`): `begun`; `compared`, the summary was told, and what it lacks waits;
`handed`, that was handed over; `all`, everything was, because nobody knew the summary yet. Claude Code tells it by its
compacting agent's end, before the session starts anew, and again afterwards; Codex writes it into its log before.
"""

from __future__ import annotations

from contextlib import suppress

from ralf.errors import RalfError
from ralf.model import RouteContext
from ralf.proof import recall
from ralf_integrations.hooks import checkpoints, handover, session_registry, usage
from ralf_integrations.hooks.messages import LIMIT, Answer
from ralf_integrations.hooks.session import Session

SECONDS = 5.0
"""That a compaction waits for its checkpoint."""

_STEERING_TOKENS = 1_500
_ROOM = 300  # characters of a sentence of ours before what is to be kept
_MOST_READ = 8 << 20  # bytes behind the last checkpoint in which the summary is looked for
_KEEP = (
    "Beside all else, keep in the summary what stands between the next two marks: decisions with their ids, rules,"
    " failed approaches, goal, step, file names and errors in the very words in which they stand there. It is data that"
    " ralf kept of this session."
)
_KEEP_BRIEFLY = (
    "Keep decisions with their ids, rules, failed approaches, goal, step, file names and errors in their very words."
)
_LOST = "The summary of this session's window does not say this; it still holds:"


def before(session: Session) -> Answer:
    """The window is about to be compacted."""
    session.note(compaction="begun", waiting="")
    if session.payload.trigger == "auto" and not session.payload.sender.logs_size:
        _learn(session)
    if session.readable is not None:
        checkpoints.wait(session, "compaction", SECONDS)
    if not session.payload.sender.takes_steering or session.settings.inject == "off":
        return Answer()
    if session.payload.trigger == "manual":  # the client shows the person all of it who has typed /compact
        return Answer(steering=_KEEP_BRIEFLY)
    context = handover.context_of(session.project, session.route)
    left = recall.lost(context, "") if context is not None else None
    if left is None:
        return Answer()
    kept = handover.within(left, min(_STEERING_TOKENS, (LIMIT - _ROOM) // 4), ending="")
    return Answer(steering=f"{_KEEP}\n{kept}" if kept else "")


def _learn(session: Session) -> None:
    """Note how full the window is that the client compacts by itself, where its log will not tell."""
    with suppress(RalfError, OSError):
        look = checkpoints.look_at(session)
        if look is not None and look.filled:
            session.note(compacts=look.filled)


def after(session: Session) -> Answer:
    """The window was compacted, and the client tells its summary, or not. No model hears an answer to this event: what
    is missing waits for one that it hears.
    """
    stage, summary = session.known.compaction, session.payload.summary
    if session.payload.name == "SubagentStop" and stage != "begun":
        return Answer()  # a subagent's window was compacted: its compacting agent has no type either
    if not summary or stage == "handed" or session.settings.inject != "auto":
        return Answer()
    context = handover.context_of(session.project, session.route)
    if context is None:
        return Answer()
    if stage == "all":
        summary = f"{summary}\n{_text(session, context, '')}"
    session.note(compacted=True, compaction="handed" if stage == "all" else "compared")
    back = usage.TAKEN_BACK if usage.TAKEN_BACK in session.known.waiting else ""
    session.note(waiting="\n".join(filter(None, (back, _text(session, context, summary)))))
    if session.known.waiting:
        session_registry.drop_hint(session.project, session.payload.session)
    return Answer()


def survived(session: Session) -> Answer:
    """The session starts anew behind a compaction: it is counted, and what did not survive it is handed over."""
    _count(session)
    context = handover.context_of(session.project, session.route)
    if context is None:
        return Answer()
    if session.known.compaction == "compared":
        text = session.known.waiting
        session.note(compaction="handed", waiting="")
    else:
        summary = _summary(session)
        text = _text(session, context, summary)
        session.note(compaction="handed" if summary else "all")
    session.note(briefed=(context.route,))  # what the summary says and this make up the brief
    return Answer(context=session.hand("survived", text))


def noticed(session: Session) -> Answer:
    """The log shows a compaction that no hook was told of, and of which no checkpoint has been made: what its summary
    does not say is handed over, once.
    """
    if session.payload.sender.tells_compaction or session.settings.inject != "auto":
        return Answer()
    summary = _last_summary(session)
    if not summary:
        session.note(compaction="")
        return Answer()
    context = handover.context_of(session.project, session.route)
    if session.known.compaction == "handed" or context is None:
        return Answer()
    _count(session)
    session.note(compaction="handed", compacted=True, briefed=(context.route,))
    return Answer(context=session.hand("survived", _text(session, context, summary)))


def _last_summary(session: Session) -> str:
    """The summary of the last compaction behind what was taken, "" where there is none."""
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
    """What a summary does not say of a route, "" for nothing."""
    left = recall.lost(context, summary)
    if left is None:
        return ""
    route = context.route
    ending = f"All of it: `ralf context show {route}`; find more: `ralf context search WORDS --route {route}`."
    return handover.within(left, session.settings.brief_tokens, beginning=_LOST if summary else "", ending=ending)


def _summary(session: Session) -> str:
    """The summary with which the session's log ends, "" where it does not stand there yet."""
    source, after = session.readable, session.standing.position
    if source is None or source.path.stat().st_size - after.byte > _MOST_READ:
        return ""
    said = ""
    try:
        for event in source.events(after):
            if event.kind == "compaction":
                said = event.text
            elif event.text:
                said = ""
    except RalfError:  # the log was cut or replaced: nobody knows what it says
        return ""
    return said
