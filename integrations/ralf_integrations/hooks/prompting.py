"""A prompt was submitted: a route that it names, or the wish to go on, brings a brief; the first names the route."""

from __future__ import annotations

from contextlib import suppress

from ralf import command, routing
from ralf.briefing import fence, standing
from ralf.errors import Damaged
from ralf.trim import trimmed
from ralf_integrations.hooks import earlier, handover, naming, wishes
from ralf_integrations.hooks.answer import Answer
from ralf_integrations.hooks.session import Session
from ralf_integrations.hooks.wishes import Wish

_LONGEST_NAMED = 100  # characters of what stands for a route and names none


def prompted(session: Session) -> Answer:
    """What is handed over with a prompt: the brief of a route that it asks for, once in a window that does not hold it.

    A route that is named becomes the session's where nobody has chosen one and nothing of the session is in a
    checkpoint; a session without a route gets one that is named after its first request. With `inject: off` only
    `--load-context` brings anything.
    """
    if session.known.owed:
        return _of_run(session)
    prompt = standing.besides(fence.outside(session.payload.prompt))
    wish = wishes.read(prompt, routing.names_of(session.project))
    if (session.settings.inject == "off" and wish.kind != "load") or (session.known.forked and wish.kind == "continue"):
        wish = Wish()
    if not wish.kind:
        return Answer() if naming.by_request(session, prompt) else _in_doubt(session)
    route, said = _meant(session, wish)
    if not route and wish.kind != "load":
        return Answer() if naming.by_request(session, prompt) else _in_doubt(session)
    if not route:
        return _unknown(session, wish)
    said += [
        sentence
        for sentence in (earlier.unread(earlier.catch_up(session.project, route, session.payload.session)),)
        if sentence
    ]
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
    if session.has_route or naming.has_begun(session):
        return "", []  # it goes on with what it has begun itself
    found = earlier.meant(session, wish.about)
    return (found[0].route, earlier.said_of(found)) if found else ("", [])


def _of_run(session: Session) -> Answer:
    """The brief of a run's route, which has waited for the run's prompt: nothing where that holds it."""
    text, route = session.known.owed, session.route
    session.note(owed="", briefed=tuple(dict.fromkeys((*session.known.briefed, route))))
    prompt = session.payload.prompt
    is_there = any(words in prompt and words not in fence.outside(prompt) for words in handover.beginnings(route))
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
    text = command.typed(text, session.project.command)
    return Answer(context=session.hand("line", handover.words(text)))


def _in_doubt(session: Session) -> Answer:
    """One line about the work that was interrupted here, for a session that may mean it, once; never its brief."""
    client_asked = session.payload.prompt.lstrip().startswith(wishes.NO_REQUEST)
    if session.settings.inject == "off" or session.known.forked or client_asked:
        return Answer()
    is_told = any(one.what == "line" for one in session.known.handed)
    return Answer() if is_told else Answer(context=session.hand("line", earlier.announced(session)))


def _is_taken(session: Session) -> bool:
    """Whether a part of the session was taken into its route; nothing can be where that is damaged."""
    with suppress(Damaged):
        return bool(session.standing.position.byte)
    return False
