"""Which event does what."""

from __future__ import annotations

from dataclasses import replace

from ralf_integrations.hooks.answer import Answer, takes_context
from ralf_integrations.hooks.session import Session


def handle(session: Session) -> Answer:
    """Do what an event asks for, and say what is to be said. Errors come as they are: `entry` fails open.

    Events of a subagent, or of the compaction itself, do nothing: the main window is not theirs.
    """
    return Answer() if session.payload.agent else _with_waiting(session, _answered(session))


def _answered(session: Session) -> Answer:
    match session.payload.event:  # each imports what it needs, and no more
        case "session-start":
            from ralf_integrations.hooks import starting

            return starting.started(session)
        case "prompt":
            from ralf_integrations.hooks import prompting

            return prompting.prompted(session)
        case "before-compaction":
            from ralf_integrations.hooks import compacting

            return compacting.before(session)
        case "after-compaction":
            from ralf_integrations.hooks import compacting

            return compacting.after(session)
        case "tools-used":
            from ralf_integrations.hooks import tooluse

            return tooluse.used(session)
        case "task-completed":
            from ralf_integrations.hooks import closing

            return closing.completed(session)
        case "stopped":
            from ralf_integrations.hooks import closing

            return closing.stopped(session)
        case "session-end":
            from ralf_integrations.hooks import closing

            return closing.ended(session)
        case _:
            return Answer()


def _with_waiting(session: Session, said: Answer) -> Answer:
    """The answer; where it hands the model nothing, the text that has waited for one that can. Alone, for a receipt is
    for a whole text.
    """
    waiting = session.known.waiting
    if not waiting or said.context or not takes_context(session.payload):
        return said

    session.note(waiting="")
    return replace(said, context=session.hand("survived", waiting))
