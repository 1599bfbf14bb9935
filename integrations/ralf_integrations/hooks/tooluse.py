"""After tools were used: a checkpoint where one has fallen due, and a word to the agent at each mark of pressure."""

from __future__ import annotations

from ralf import command
from ralf_integrations.hooks import detached, hints, pressure, taking, usage
from ralf_integrations.hooks.answer import Answer, takes_context
from ralf_integrations.hooks.session import Session
from ralf_integrations.hooks.usage import Look


def used(session: Session) -> Answer:
    """Start what is due, and return: the agent waits for nothing. The hint says when the next look is."""
    look = looked(session)
    if look is None:
        hints.write(session.project, session.payload.session, session.payload.transcript, size=0, until=0)
        return Answer()
    told, now = pressure.reached(session.settings, look, session.known.told)
    word = pressure.word(session.settings, look, told) if now else ""
    back = told < session.known.told
    if not takes_context(session.payload):
        told, word, back = session.known.told, "", False
    if told != session.known.told:
        session.note(told=told)
    if word:
        from ralf_integrations.hooks import handover  # few looks have something to say

        how = handover.words(command.typed(pressure.commands(session.route), session.project.command))
        word = session.hand("pressure", f"{word}\n{how}")
    elif back:
        word = session.hand("pressure", pressure.TAKEN_BACK)
    act(session, look)
    return Answer(context=word)


def looked(session: Session) -> Look | None:
    """Look at the session; None while there is no transcript."""
    source = session.transcript
    if source is None:
        return None
    scale = usage.factor(hints.scale(session.project, session.payload.session))
    payload = session.payload
    stand = taking.start(session.project, session.route, payload.session, source)
    found = session.known
    look = usage.look(
        source, stand, session.settings, payload.client, known=found.window, compacted=found.compacts, scale=scale
    )
    if (look.window, look.compacted) != (found.window, found.compacts):
        session.note(window=look.window, compacts=look.compacted)
    return look


def act(session: Session, look: Look) -> None:
    """Say until when no look is needed, and start the checkpoint that is due: it foretells better, when it is made."""
    project, payload = session.project, session.payload
    told, scale = session.known.told, hints.scale(project, payload.session)
    hints.foretell(
        project, payload.session, payload.transcript, look, settings=session.settings, told=told, scale=scale
    )
    if look.due:
        detached.start(session, "due")
