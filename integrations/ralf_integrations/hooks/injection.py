"""What a session is handed when it starts, and with a prompt: the brief of a route, or a line that there is one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from ralf import config, routing
from ralf.errors import Damaged
from ralf.text.cleaning import besides, outside, trimmed
from ralf_integrations.hooks import (
    checkpoints,
    handover,
    memory,
    previous_sessions,
    prompt_intent,
    session_registry,
    usage,
)
from ralf_integrations.hooks.messages import Answer
from ralf_integrations.hooks.prompt_intent import Wish
from ralf_integrations.hooks.session import Session
from ralf_integrations.hooks.session_registry import KnownSession
from ralf_integrations.stores import beside

_STILL_THERE = ("resume", "fork")
"""Sources after which the window holds what it held before."""


_OTHER_MACHINES = 3.0
"""Seconds in which a session that starts takes in what was recorded elsewhere."""


def started(session: Session) -> Answer:
    """What a session that starts is handed (`_started`). What it was told of its full window before a compaction is
    taken back, by the next hook where this one hands over something else.
    """
    is_emptied = session.payload.source == "compact" and session.known.told > 0
    answer = _started(session)
    if is_emptied:
        session.note(waiting="\n".join(filter(None, (session.known.waiting, usage.TAKEN_BACK))))
        session_registry.drop_hint(session.project, session.payload.session)
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
        session.note(told=0, briefed=(), recalled=False)
    session.note(ended=False)
    if source in ("clear", "compact"):
        session.note(compacted=True)
    if source == "fork":
        previous_sessions.note_fork(session)
    if mode == "off":
        return Answer()
    if source in ("startup", "clear") and memory.may_be_untidy(session):
        checkpoints.tidy_later(session)
    beside.before(session.project, seconds=_OTHER_MACHINES)
    if source == "compact" and mode == "auto":
        from ralf_integrations.hooks import compacting  # few sessions start so

        survived = compacting.survived(session)
        # The session may go on by itself, without a prompt.
        return memory.handed_over(session, survived) if session.has_route else survived
    left = (
        previous_sessions.catch_up(session.project, session.route, session.payload.session) if session.has_route else []
    )
    previous_sessions.catch_up_runs(session)
    answer = _handed(session, left)
    if source not in ("clear", "compact"):
        previous_sessions.note_run(session)  # afterwards: what is handed over tells of the runs before
    return answer


def _handed(session: Session, left: list[KnownSession]) -> Answer:
    """What goes with the route, or with the work that was left here."""
    source, mode = session.payload.source, session.settings.inject
    context = handover.context_of(session.project, session.route) if session.has_route else None
    if context is None:
        here = source not in _STILL_THERE and not session.is_route_chosen
        return Answer(context=session.hand("line", previous_sessions.left_work_line(session))) if here else Answer()
    if handover.is_held(session, context):
        return Answer()
    said = [
        *map(
            previous_sessions.last_session_text,
            previous_sessions.ended_sessions(session.project, session.route, session.payload.session)[:1],
        ),
        previous_sessions.untaken_text(left),
    ]
    named = session.is_route_chosen and session.choice.rule != routing.CHOSEN
    if source not in _STILL_THERE and (mode == "brief" or (mode == "auto" and named)):
        if session.project.run:  # its prompt may hold the brief
            session.note(owed=handover.brief(session, context, said=said))
            return Answer()
        return Answer(context=handover.briefed(session, context, said=said))
    return Answer(context=session.hand("line", handover.line(session, session.route, said=said)))


# ---- prompts ----


_LONGEST_NAMED = 100  # characters of what stands for a route and names none


def prompted(session: Session) -> Answer:
    """What is handed over with a prompt: `_prompted`, and behind it, once in a window, what the memory has of it."""
    said = _prompted(session)
    if not said.context and not session.payload.sender.tells_compaction:
        from ralf_integrations.hooks import compacting  # of few clients only the log tells

        said = replace(said, context=compacting.noticed(session).context)
    return memory.handed_over(session, said)


def _prompted(session: Session) -> Answer:
    """The brief of a route that a prompt asks for, once in a window that does not hold it.

    A route that is named becomes the session's where nobody has chosen one and nothing of the session is in a
    checkpoint; a session without a route gets one that is named after its first request. With `inject: off` only
    `--load-context` brings anything.
    """
    if session.known.owed:
        return _of_run(session)
    prompt = besides(outside(session.payload.prompt))
    wish = prompt_intent.read(prompt, routing.names_of(session.project))
    if (session.settings.inject == "off" and wish.kind != "load") or (session.known.forked and wish.kind == "continue"):
        wish = Wish()
    route, said = _meant(session, wish) if wish.kind else ("", [])
    if not route and wish.kind != "load":
        return Answer() if prompt_intent.name_by_request(session, prompt) else _in_doubt(session)
    if not route:
        return _unknown(session, wish)
    left = previous_sessions.catch_up(session.project, route, session.payload.session)
    said.append(previous_sessions.untaken_text(left))
    context = handover.context_of(session.project, route)
    if context is None:
        return _unknown(session, wish) if wish.kind == "load" else Answer()
    own = route == session.route
    if not own and not session.is_route_chosen and not _is_taken(session):
        session.use(route)
        own = True
    if route in session.known.briefed or handover.is_held(session, context):
        return Answer(notice=f"ralf: this window holds the context of {route} already" if wish.kind == "load" else "")
    said.append(
        f"{route} is the route of this session now." if own else f"The route of this session is {session.route}."
    )
    return Answer(context=handover.briefed(session, context, said=said))


def _meant(session: Session, wish: Wish) -> tuple[str, list[str]]:
    """The route that is asked for, "" for none, and what is to be said of the choice."""
    if wish.route:
        return wish.route, []
    if wish.other:
        return "", []
    if session.is_route_chosen or (session.has_route and handover.context_of(session.project, session.route)):
        return session.route, []
    if session.has_route or prompt_intent.has_begun(session):
        return "", []  # it goes on with what it has begun itself
    found = previous_sessions.sessions_meant(session, wish.about)
    return (found[0].route, previous_sessions.sentences_about(found)) if found else ("", [])


def _of_run(session: Session) -> Answer:
    """The brief of a run's route, which has waited for the run's prompt: nothing where that holds it."""
    text, route = session.known.owed, session.route
    session.note(owed="", briefed=tuple(dict.fromkeys((*session.known.briefed, route))))
    prompt = session.payload.prompt
    is_there = any(words in prompt and words not in outside(prompt) for words in handover.beginnings(route))
    return Answer() if is_there else Answer(context=session.hand("brief", text))


def _unknown(session: Session, wish: Wish) -> Answer:
    """What is said where something was asked for by name that is not there."""
    named = trimmed(wish.other or session.route, _LONGEST_NAMED)
    error = routing.not_found(session.project, named)
    if named in error.closest:  # there, and all of it somebody else's
        text = f"No context was loaded: all of route {named} came with the repository: `ralf context show {named}`."
    else:
        close = f" Did you mean {', '.join(error.closest)}?" if error.closest else ""
        text = f"No context was loaded: route {named} has none.{close} All routes: `ralf context list`."
    text = config.typed(text, session.project.command)
    return Answer(context=session.hand("line", handover.words(text)))


def _in_doubt(session: Session) -> Answer:
    """One line about the work that was interrupted here, for a session that may mean it, once; never its brief."""
    client_asked = session.payload.prompt.lstrip().startswith(prompt_intent.NO_REQUEST)
    if session.settings.inject == "off" or session.known.forked or client_asked:
        return Answer()
    is_told = any(one.what == "line" for one in session.known.handed)
    return Answer() if is_told else Answer(context=session.hand("line", previous_sessions.left_work_line(session)))


def _is_taken(session: Session) -> bool:
    """Whether a part of the session was taken into its route; nothing can be where that is damaged."""
    with suppress(Damaged):
        return bool(session.standing.position.byte)
    return False
