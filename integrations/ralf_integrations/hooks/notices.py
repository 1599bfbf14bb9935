"""Hands the notices that wait in a session's inbox to its agent."""

from __future__ import annotations

from dataclasses import replace

from ralf import names
from ralf.errors import RalfError
from ralf_integrations.hooks import complaints, instant, known
from ralf_integrations.hooks.answer import LIMIT, Answer, takes_context
from ralf_integrations.hooks.session import Session


def delivered(said: Answer, session: Session) -> Answer:
    """The answer with the notices that wait, where it hands nothing else to the agent: a receipt is told by the text of
    a whole answer. Otherwise, and where not all fit, the session's next hook looks again.
    """
    payload, project = session.payload, session.project
    if payload.agent or not instant.size(instant.inbox_of(str(project.folder), names.slug(payload.session))):
        return said
    from ralf_integrations import inbox  # few sessions are told anything
    from ralf_integrations.hooks import handover

    try:
        if takes_context(payload) and not said.context:
            told = inbox.told(inbox.take(project, payload.session, LIMIT))
            said = replace(said, context=handover.noted(session, "notice", told))
        if inbox.waiting(project, payload.session):
            known.look_again(project, payload.session)
    except (RalfError, OSError) as error:  # what the hook itself has to say is said all the same
        complaints.add(project, payload.name, error)
    return said
