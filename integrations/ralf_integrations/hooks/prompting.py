"""A prompt was submitted: a route that it names, or the wish to go on, brings a brief; the first names the route."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from ralf import command, routing
from ralf.briefing import fence, standing
from ralf.errors import Damaged
from ralf.routing import DEFAULT
from ralf.transcripts import requests
from ralf.trim import trimmed
from ralf_integrations.hooks import earlier, handover, wishes
from ralf_integrations.hooks.answer import Answer
from ralf_integrations.hooks.known import Known
from ralf_integrations.hooks.session import Session
from ralf_integrations.hooks.wishes import Wish

_LONGEST_NAMED = 100  # characters of what stands for a route and names none


def prompted(session: Session) -> Answer:
    """What is handed over with a prompt: the brief of a route that it asks for, once in a window that does not hold it.

    A route that is named becomes the session's where nobody has chosen one and nothing of the session is in a
    checkpoint; a session without a route gets one that is named after its first request. With `inject: off` only
    `--load-context` brings anything.
    """
    prompt = standing.besides(fence.outside(session.payload.prompt))
    wish = wishes.read(prompt, routing.names_of(session.project))
    if session.settings.inject == "off" and wish.kind != "load":
        wish = Wish()
    if not wish.kind:
        _name(session, prompt)
        return Answer()
    route, said = _meant(session, wish)
    if not route:
        return _unknown(session, wish)
    said += [sentence for sentence in (earlier.unread(earlier.catch_up(session, route)),) if sentence]
    context = handover.context_of(session.project, route)
    if context is None:
        return _unknown(session, wish)
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
    if session.is_route_chosen or _has_context(session):
        return session.route, []
    if session.choice.rule != DEFAULT or next(_requests(session), "") not in ("", session.payload.prompt.strip()):
        return "", []  # it goes on with what it has begun itself
    found: list[Known] = earlier.meant(session)
    if not found:
        return "", []
    others = earlier.offered(found[1:])
    return found[0].route, [sentence for sentence in (earlier.told(found[0]), others) if sentence]


def _unknown(session: Session, wish: Wish) -> Answer:
    """What is said where something was asked for by name that is not there."""
    if wish.kind != "load":
        return Answer()
    named = trimmed(wish.other or session.route, _LONGEST_NAMED)
    error = routing.not_found(session.project, named)
    if named in error.closest:  # there, and all of it somebody else's
        text = f"No context was loaded: all of route {named} came with the repository: `ralf context show {named}`."
    else:
        close = f" Did you mean {', '.join(error.closest)}?" if error.closest else ""
        text = f"No context was loaded: route {named} has none.{close} All routes: `ralf context list`."
    text = command.typed(text, session.project.command)
    return Answer(context=session.hand("line", handover.words(text)))


def _name(session: Session, prompt: str) -> None:
    """Give a session without a route one that is named after its first request: after the first that makes a name, for
    people begin with a greeting, too.
    """
    if session.choice.rule != DEFAULT or _is_taken(session):
        return
    for request in (*_requests(session), prompt):
        if wishes.is_request(request) and routing.name(session.project, request, session=session.payload.session):
            session.rerouted()
            return


def _has_context(session: Session) -> bool:
    """Whether the session's route has anything to hand over; damage of the route that nobody chose stops no other."""
    with suppress(*((Damaged,) if session.choice.rule == DEFAULT else ())):
        return handover.context_of(session.project, session.route) is not None
    return False


def _is_taken(session: Session) -> bool:
    """Whether a part of a session without a route was taken into `default`; nothing can be where that is damaged."""
    with suppress(Damaged):
        return bool(session.standing.position.byte)
    return False


def _requests(session: Session) -> Iterator[str]:
    """What the session was asked for first, as far as its log tells yet."""
    return iter(()) if session.readable is None else requests(session.readable)
