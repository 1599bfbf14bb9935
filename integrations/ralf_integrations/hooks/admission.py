"""Whether hooks act in a project: only where this user has opted it in, never because of what lies in it."""

from __future__ import annotations

import json
from contextlib import suppress

from ralf.errors import RalfError
from ralf.ownership import registry
from ralf.project import Project
from ralf_integrations.hooks import answer as answers
from ralf_integrations.hooks.payload import Payload

_NOT_OPTED_IN = (
    "ralf: hooks do nothing here: the settings in .autonomous/context came with the repository, and you have not opted"
    " this project in; to do that: ralf init"
)
_UNANSWERED = (
    "ralf: hooks do nothing here: .autonomous/context holds what is not known to be yours (a clone, a moved project, a"
    " store of an earlier version); to look at it, and to accept it: ralf context trust"
)


def is_admitted(project: Project) -> bool:
    """Whether hooks act in the project. UsageError, Damaged where its registration cannot be read."""
    return project.owner.has_opted_in


def introduce(project: Project, payload: Payload) -> str:
    """Register a project that this user has said nothing of, and adopt its store where that is proven to be theirs.

    Returns what is to be written to standard output, "" for nothing: the person is told once why hooks do nothing.
    """
    owner = project.owner
    known = owner.registration
    if known is not None and known.pending != registry.ADOPTING:
        return ""
    if not answers.takes_notice(payload):
        return ""
    from ralf.ownership import adoption  # once in a project

    with suppress(RalfError, OSError):  # no folder to remember it in: then it is not said again and again either
        made = adoption.register(project)
        if not made.hooks:
            return json.dumps({"systemMessage": _UNANSWERED if made.pending else _NOT_OPTED_IN})
    return ""
