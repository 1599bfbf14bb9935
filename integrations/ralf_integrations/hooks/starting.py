"""A session starts: it is handed what it goes on with, or told in a line where that is. `inject` says how much."""

from __future__ import annotations

from ralf import routing
from ralf_integrations.hooks import compacting, earlier, forks, handover, known, pressure, runs
from ralf_integrations.hooks.answer import Answer
from ralf_integrations.hooks.known import Known
from ralf_integrations.hooks.session import Session

_STILL_THERE = ("resume", "fork")
"""Sources after which the window holds what it held before."""


def started(session: Session) -> Answer:
    """What a session that starts is handed (`_started`). What it was told of its full window before a compaction is
    taken back, by the next hook where this one hands over something else.
    """
    is_emptied = session.payload.source == "compact" and session.known.told > 0
    answer = _started(session)
    if is_emptied:
        session.note(waiting="\n".join(filter(None, (session.known.waiting, pressure.TAKEN_BACK))))
        known.look_again(session.project, session.payload.session)
    return answer


def _started(session: Session) -> Answer:
    """What a session that starts is handed, by the configured `inject`.

    auto   after a compaction what did not survive it; the brief where the environment names the route, or a loop's run
           has one; else the line
    line   the line; `brief`: the brief; `off`: nothing

    A session that is resumed still has its window: it gets the line at most, where others have gone on with its route.
    """
    source, mode = session.payload.source, session.settings.inject
    if source not in _STILL_THERE:
        session.note(told=0, briefed=())
    session.note(ended=False)
    if source in ("clear", "compact"):
        session.note(compacted=True)
    if source == "fork":
        forks.begun(session)
    if mode == "off":
        return Answer()
    if source == "compact" and mode == "auto":
        return compacting.survived(session)
    left = earlier.catch_up(session.project, session.route, session.payload.session) if session.has_route else []
    runs.catch_up(session)
    answer = _handed(session, left)
    if source not in ("clear", "compact"):
        runs.begun(session)  # afterwards: what is handed over tells of the runs before
    return answer


def _handed(session: Session, left: list[Known]) -> Answer:
    """What goes with the route, or with the work that was left here."""
    source, mode = session.payload.source, session.settings.inject
    context = handover.context_of(session.project, session.route) if session.has_route else None
    if context is None:
        here = source not in _STILL_THERE and not session.is_route_chosen
        return Answer(context=session.hand("line", earlier.announced(session))) if here else Answer()
    if handover.is_held(session, context):
        return Answer()
    said = [
        *map(earlier.told, earlier.of_route(session.project, session.route, session.payload.session)[:1]),
        earlier.unread(left),
    ]
    said = [sentence for sentence in said if sentence]
    named = session.choice.rule.startswith("$") or session.choice.rule in routing.OF_RUN
    if source not in _STILL_THERE and (mode == "brief" or (mode == "auto" and named)):
        if session.project.run:  # its prompt may hold the brief
            session.note(owed=handover.brief(session, context, said=said))
            return Answer()
        return Answer(context=handover.briefed(session, context, said=said))
    return Answer(context=session.hand("line", handover.line(session, session.route, said=said)))
