"""Hands the notices that wait in a session's inbox to its agent, each exactly once as far as the client's log tells.

A notice counts as delivered when the answer that holds it was written. A hook that is killed before it can say so
leaves the notice waiting: the next one looks into the client's log whether that very text has arrived.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ralf import names
from ralf.errors import Busy, RalfError
from ralf.files import locks
from ralf_integrations.hooks import complaints, instant, known
from ralf_integrations.hooks.answer import LIMIT, Answer, takes_context
from ralf_integrations.hooks.session import Session

if TYPE_CHECKING:
    from ralf_integrations.inbox import Notice


@contextmanager
def handed(said: Answer, session: Session) -> Iterator[Answer]:
    """The answer with the notices that wait, where it hands nothing else to the agent: a receipt is told by the text of
    a whole answer. Otherwise, and where not all fit, the session's next hook looks again.

    They are delivered when the block has written the answer and ends without an error. One hook at a time has them.
    """
    payload, project = session.payload, session.project
    with ExitStack() as claim:
        notices: list[Notice] = []
        if not payload.agent and instant.size(instant.inbox_of(str(project.folder), names.slug(payload.session))):
            try:
                said, notices = _with_waiting(said, session, claim)
            except (RalfError, OSError) as error:  # what the hook itself has to say is said all the same
                complaints.add(project, payload.name, error)
        yield said
        if notices:
            from ralf_integrations import inbox

            try:
                inbox.deliver(project, payload.session, notices)
            except (RalfError, OSError) as error:
                complaints.add(project, payload.name, error)


def _with_waiting(said: Answer, session: Session, claim: ExitStack) -> tuple[Answer, list[Notice]]:
    """The answer with the notices that it hands over, and these."""
    from ralf_integrations import inbox  # few sessions are told anything

    payload, project = session.payload, session.project
    if not inbox.waiting(project, payload.session):
        return said, []
    known.look_again(project, payload.session)
    if said.context or not takes_context(payload):
        return said, []
    try:
        path = project.folder / "locks" / "inbox" / f"{names.slug(payload.session)}.lock"
        claim.enter_context(locks.held(path, payload.session, 0))
    except Busy:  # another hook of the session hands them over at this moment
        return said, []
    waiting = inbox.waiting(project, payload.session)
    arrived = _arrived(waiting, session)
    if arrived:
        inbox.deliver(project, payload.session, arrived)
    found = inbox.fitting(waiting[len(arrived) :], LIMIT)
    return replace(said, context=session.hand("notice", inbox.told(found))), found


def _arrived(waiting: list[Notice], session: Session) -> list[Notice]:
    """Those, the oldest, that a hook has handed over which could not say so any more."""
    from ralf_integrations import inbox
    from ralf_integrations.hooks import receipts

    before = {one.digest for one in session.known.handed if one.what == "notice"}
    for count in range(len(waiting), 0, -1) if before else ():
        digest = hashlib.sha256(inbox.told(waiting[:count]).encode("utf-8", "surrogatepass")).hexdigest()
        if digest in before:
            checked = receipts.check(session.project, session.payload.session)
            return waiting[:count] if any(one.digest == digest and there for one, there in checked) else []
    return []
