"""The route of a session whose agent reads one before it works: it is the one that the agent goes on with."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from ralf import routing
from ralf.errors import RalfError
from ralf.facts.commands import command_text, is_shell, only_looks, simple_commands
from ralf.facts.steps import Steps
from ralf.project import Project
from ralf.route import offsets
from ralf.transcripts.events import Event
from ralf.transcripts.reader import open_transcript
from ralf_integrations.hooks import session_registry

_READS = frozenset("show list search status log why diff health".split())
"""Verbs of our own that change nothing."""


def move_by_reading(project: Project, session: str, route: str) -> bool:
    """Make a route that a session's agent reads the session's, where nobody has named one for it and it has done no
    work: nothing of it was recorded, and it has only looked at things. Whether it moved.
    """
    choice = routing.choose(project, session=session)
    if choice.is_chosen or choice.route == route or offsets.of_session(project, session)[0]:
        return False
    known = session_registry.load(project, session)
    try:
        if known.transcript and any(map(_is_work, open_transcript(Path(known.transcript)).events())):
            return False
    except (RalfError, OSError):  # of one that cannot be read nobody knows
        return False
    routing.use(project, route, session=session, rule=routing.READ)
    return True


def _is_work(event: Event) -> bool:
    """Whether an event is a call that does more than to look."""
    if event.kind != "call" or "ralf" in event.tool:  # our own MCP tools
        return False
    if is_shell(event.tool):
        commands = [simple.words for simple in simple_commands(command_text(event.input))]
        return not all(_is_reading(words) for words in commands)
    steps = Steps("")
    list(steps.take(event))
    return any(step.kind in ("edit", "agent") for step in steps.pending)


def _is_reading(words: Sequence[str]) -> bool:
    if words and words[0].rpartition("/")[2] == "ralf":
        return not _READS.isdisjoint(words)
    return only_looks(shlex.join(words))
