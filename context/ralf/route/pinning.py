"""Pins a message of the person's, so that every brief shows it; `undo` takes a pin off."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence

from ralf import project as projects, routing
from ralf.document.tree import to_tree
from ralf.errors import NotFound
from ralf.model import Pin
from ralf.model.entries import Message, SessionEntries
from ralf.route.corrections import origin_of
from ralf.route.entries import sessions_of
from ralf.route.write import open_route, utc_now
from ralf.text.cleaning import trimmed

_LONGEST = 4_000  # characters


def pin(route: str, message: str, *, origin: str | None = None, root: str | os.PathLike[str] | None = None) -> Pin:
    """Pin a message of the person's, and return the pin; durable when this returns. One that is pinned stays as it is.

    message  its line in the transcript, of several sessions in the newest that has one there, or its id
    origin   who pins it: user, agent; None: unknown

    Raises RouteNotFound, NotFound (no message there), UsageError (a refused name), Busy, OSError, DamagedJournal.
    """
    project = projects.find(root)
    route = routing.existing(project, route)
    found = _message(sessions_of(project, route), message.strip())
    if found is None:
        raise NotFound(route, f"has no message of the person's at {message}", f"ralf search WORDS --route {route}")
    made = Pin(found.id, found.line, found.session, found.at, trimmed(found.text, _LONGEST), origin_of(route, origin))
    with open_route(project, route) as writer:
        writer.absorb_edits()
        known = next((one for one in writer.context.pinned if one.id == made.id), None)
        if known is None:
            payload = {"timestamp": utc_now(), "origin": made.origin, "pin": to_tree(made)}
            writer.append("pin", payload, id=f"pin-{uuid.uuid4().hex}")
            writer.render_file()
    return known or made


def _message(sessions: Sequence[SessionEntries], named: str) -> Message | None:
    """The message of this id, or the newest session's at this line."""
    said = [entry for one in sessions[::-1] for entry in one.entries if isinstance(entry, Message)]
    return next((one for one in said if named in (one.id, str(one.line))), None)
