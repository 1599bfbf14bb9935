"""What a session is handed when it starts, and with a prompt: the brief of a route, or a line that there is one."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from ralf import config, environment, routing
from ralf.errors import RalfError
from ralf.text import tokens
from ralf.text.cleaning import besides, outside, trimmed
from ralf.text.frozen import replace
from ralf.text.tokens import CHARACTERS_PER_TOKEN
from ralf_integrations.hooks import error_log, handover, previous_sessions, prompt_intent
from ralf_integrations.hooks.messages import LIMIT, Answer, length, takes_context
from ralf_integrations.hooks.prompt_intent import Wish
from ralf_integrations.hooks.session import Session

_STILL_THERE = ("resume", "fork")
"""Sources after which the window holds what it held before."""


def started(session: Session) -> Answer:
    """What a session that starts is handed, by the configured `inject`.

    auto   after a compaction what did not survive it; the brief where the environment names the route, or a loop's run
           has one; else the line
    line   the line; `brief`: the brief; `off`: nothing

    A session that is resumed still has its window: it gets the line at most, where others have gone on with its route.
    """
    source, mode = session.payload.source, session.settings.inject
    if source not in _STILL_THERE:
        session.note(told=0, briefed=(), recalled=False, hint="")  # its figures are of another window
    if source == "fork":
        session.note(forked=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"))
    session.note(ended=False, compacted=session.known.compacted or source in ("clear", "compact"))
    if mode == "off":
        return Answer()
    if source == "compact" and mode == "auto":
        from ralf_integrations.hooks import compacting  # few sessions start so

        survived = compacting.survived(session)
        # The session may go on by itself, without a prompt.
        return _with_memory(session, survived) if session.has_route else survived
    previous_sessions.catch_up_runs(session)
    answer = _handed(session)
    if source not in ("clear", "compact"):
        previous_sessions.note_run(session)  # afterwards: what is handed over tells of the runs before
    return answer


def _handed(session: Session) -> Answer:
    """What goes with the route, or with the work that was left here."""
    project, route, mode = session.project, session.route, session.settings.inject
    is_new = session.payload.source not in _STILL_THERE
    left = previous_sessions.catch_up(project, route, session.payload.session) if session.has_route else ""
    context = handover.context_of(project, route) if session.has_route else None
    if context is None:
        here = is_new and not session.is_route_chosen
        return Answer(context=previous_sessions.unfinished_line(session), what="line") if here else Answer()
    if handover.is_held(session, context):
        return Answer()
    ended = previous_sessions.ended_sessions(project, route, session.payload.session)[:1]
    said = [*map(previous_sessions.last_session_text, ended), left]
    named = session.is_route_chosen and not session.choice.is_kept
    if not is_new or not (mode == "brief" or (mode == "auto" and named)):
        return Answer(context=handover.line(session, route, said=said), what="line")
    text = handover.brief(session, context, said=said)
    if project.run:  # its prompt may hold the brief
        session.note(owed=text)
        return Answer()
    return _briefed(session, context.route, text)


# ---- prompts ----


_LONGEST_NAMED = 100  # characters of what stands for a route and names none


def prompted(session: Session) -> Answer:
    """What is handed over with a prompt: `_prompted`, and behind it, once in a window, what the memory has of it."""
    return _with_memory(session, _prompted(session))


def _prompted(session: Session) -> Answer:
    """The brief of a route that a prompt asks for, once in a window that does not hold it.

    The first prompt of a session gives it its route: the one that it names, or a new one. It stays there whatever a
    later prompt names. A prompt that says nothing but to go on means the session's route, or, where it has none, the
    only work that was interrupted here within a day. With `inject: off` only `--load-context` brings anything.
    """
    if session.known.owed:
        return _of_run(session)
    project, prompt = session.project, besides(outside(session.payload.prompt))
    wish = prompt_intent.read(prompt, routing.names_meant(project), partial(prompt_intent.ids_of, project))
    is_load = wish.kind == "load"
    if session.settings.inject == "off" and not is_load:
        wish = Wish()
    if is_load and not wish.route and wish.other:
        return _unknown(session, wish)
    prompt_intent.name_by_work(session)
    said: list[str] = []
    route, is_own = wish.route, wish.kind in ("load", "continue")
    if wish.kind == "continue" and not _goes_on(session):
        found = previous_sessions.unfinished(session)
        one = previous_sessions.interrupted(session, found)
        if one is not None:
            route, said = one.session.route, one.about(found)
    if session.is_open and not prompt_intent.give_route(session, prompt, route) and not is_load:
        return Answer()
    route = route or (session.route if is_own else "")
    if not route:
        return Answer()
    said.append(previous_sessions.catch_up(project, route, session.payload.session))
    context = handover.context_of(project, route)
    if context is None:
        return _unknown(session, wish) if is_load else Answer()
    if route in session.known.briefed or handover.is_held(session, context):
        return Answer(notice=f"ralf: this window holds the context of {route} already" if is_load else "")
    said.append(
        f"{route} is the route of this session now."
        if route == session.route
        else f"The route of this session is {session.route}, and stays it: what stands above is of {route}."
    )
    return _briefed(session, route, handover.brief(session, context, said=said))


def _goes_on(session: Session) -> bool:
    """Whether a session has something of its own to go on with: the work of its route, or what it has begun."""
    if not session.is_open or (session.has_route and handover.context_of(session.project, session.route) is not None):
        return True
    return session.readable is not None and prompt_intent.has_worked(session.readable)


def _of_run(session: Session) -> Answer:
    """The brief of a run's route, which has waited for the run's prompt: nothing where that holds it."""
    said, prompt = _briefed(session, session.route, session.known.owed), session.payload.prompt
    session.note(owed="")
    is_there = any(words in prompt and words not in outside(prompt) for words in handover.beginnings(session.route))
    return Answer() if is_there else said


def _briefed(session: Session, route: str, text: str) -> Answer:
    """The brief of a route, which is not to be handed over again in this window."""
    session.note(briefed=tuple(dict.fromkeys((*session.known.briefed, route))))
    return Answer(context=text, what="brief")


def _unknown(session: Session, wish: Wish) -> Answer:
    """What is said where something was asked for by name that is not there."""
    named = trimmed(wish.other or session.route, _LONGEST_NAMED)
    error = routing.not_found(session.project, named)
    if named in error.closest:  # there, and all of it somebody else's
        text = f"No context was loaded: all of route {named} came with the repository: `ralf show {named}`."
    else:
        close = f" Did you mean {', '.join(error.closest)}?" if error.closest else ""
        text = f"No context was loaded: route {named} has none.{close} All routes: `ralf list`."
    text = config.typed(text, session.project.command)
    return Answer(context=handover.words(text), what="line")


# ---- what agents of the project have learned: with the first prompt, which says what the task is ----

_FEWEST = 100  # tokens without which nothing is handed over

_STARTS = ("auto", "brief")  # of `inject`: what a session is handed that asks for nothing


def _with_memory(session: Session, said: Answer) -> Answer:
    """The answer to a prompt, and with it what the memory has of the task, once in a window."""
    settings, known, project = session.settings, session.known, session.project
    wanted = settings.memory == "on" and settings.inject in _STARTS and not known.recalled
    if not wanted or not takes_context(session.payload) or (known.waiting and not said.context):
        return said
    room = LIMIT - length(said.context) - 1
    context = handover.context_of(project, session.route) if session.has_route else None
    left = max(handover.left(session, context), handover.LEAST) - tokens.estimate(said.context)
    most = min(room // CHARACTERS_PER_TOKEN, settings.brief_tokens, left)
    if most < _FEWEST:
        return said  # the next prompt may have room
    session.note(recalled=True)
    from ralf.memory import selection  # once in a window

    task = (besides(outside(session.payload.prompt)), selection.task_of(context) if context is not None else "")
    most = min(selection.UNASKED, most)
    try:
        chosen = selection.for_task(project, environment.memory_name(), "\n".join(filter(None, task)), tokens=most)
    except (RalfError, OSError) as error:  # what else there is to say is said all the same
        error_log.add(project, session.payload.name, error)
        return said
    if not chosen.items or length(chosen.text) > room:
        return said
    text = "\n".join(filter(None, (said.context, chosen.text)))
    return replace(said, context=text, what=said.what or "memory", labels=tuple(item.id for item in chosen.items))
