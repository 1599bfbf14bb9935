"""What agents of the project have learned, in a session: it is handed over with the first prompt, which says what the
task is; the session's checkpoints are looked at for more of it; and what came of it is judged as the session ends.

A session waits for the first alone. All else is done by a process of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ralf import config, environment
from ralf.errors import RalfError
from ralf.memory.model import DEFAULT_AGENT
from ralf.model import RouteContext
from ralf.project import Project
from ralf.text import tokens
from ralf.text.cleaning import besides, outside
from ralf.text.frozen import replace
from ralf.text.tokens import CHARACTERS_PER_TOKEN
from ralf.transcripts.reader import open_transcript
from ralf_integrations.hooks import error_log, handover, receipts, session_registry
from ralf_integrations.hooks.messages import LIMIT, Answer, length, takes_context
from ralf_integrations.hooks.session import Session

_FEWEST = 100  # tokens without which nothing is handed over

_STARTS = ("auto", "brief")  # of `inject`: what a session is handed that asks for nothing


def handed_over(session: Session, said: Answer) -> Answer:
    """The answer to a prompt, and with it what the memory has of the task, once in a window."""
    settings, known = session.settings, session.known
    wanted = settings.memory == "on" and settings.inject in _STARTS and not known.recalled
    if not wanted or not takes_context(session.payload) or (known.waiting and not said.context):
        return said
    room = LIMIT - length(said.context) - 1
    context = handover.context_of(session.project, session.route) if session.has_route else None
    most = handover.allowance(session, context).beside(0, given=tokens.estimate(said.context))
    most = min(room // CHARACTERS_PER_TOKEN, most)
    if most < _FEWEST:
        return said  # the next prompt may have room
    session.note(recalled=True)
    from ralf.memory import selection  # once in a window

    name, most = environment.memory_name(), min(selection.UNASKED, most)
    try:
        chosen = selection.for_task(session.project, name, _task_of(session, context), tokens=most)
    except (RalfError, OSError) as error:  # what else there is to say is said all the same
        error_log.add(session.project, session.payload.name, error)
        return said
    if not chosen.items or length(chosen.text) > room:
        return said
    text = "\n".join(filter(None, (said.context, chosen.text)))
    return replace(said, context=text, what=said.what or "memory", labels=tuple(item.id for item in chosen.items))


def _task_of(session: Session, context: RouteContext | None) -> str:
    """What the prompt asks for, and what the session's route is about."""
    from ralf.memory.selection import task_of

    asked = besides(outside(session.payload.prompt))
    return "\n".join(filter(None, (asked, task_of(context) if context is not None else "")))


# ---- in a process of its own (`checkpoints.make`) ----


def learn(project: Project, route: str, session: str, ended: Sequence[Path] = ()) -> None:
    """Take in what a route's checkpoints hold; of a session that is over also what came of what it was handed.

    session  as the client's hooks tell it
    ended    its transcripts where it is over

    Errors: `ralf.memory.writing.record`.
    """
    from ralf.memory import harvest, writing

    known = session_registry.load(project, session)
    name = known.memory or DEFAULT_AGENT
    harvest.take_in(project, route, agent=name)
    offered = writing.load(project, name).offers if ended else ()
    if offered:  # the client shows nothing at the end itself
        what = f"ralf memory show; to take one in: ralf memory accept {offered[0].id}"
        line = f"{len(offered)} offered to the memory: {what}"
        error_log.leave(project, config.typed(line, project.command))
    if not ended or not any(one.labels for one in known.handed):
        return
    there = [one.handed for one in receipts.arrivals(known) if one.arrived and one.handed.labels]
    labels = list(dict.fromkeys(label for one in there for label in one.labels))
    for transcript in ended if labels else ():
        after = _lines_before(transcript, min(one.at for one in there))
        logged = open_transcript(transcript).session
        harvest.judge(project, route, agent=name, session=logged, labels=labels, after=after)


def _lines_before(transcript: Path, byte: int) -> int:
    """How many lines of a transcript end before a byte."""
    count = 0
    with suppress(OSError), transcript.open("rb") as file:
        while byte > 0 and (part := file.read(min(byte, 1 << 20))):
            count += part.count(b"\n")
            byte -= len(part)
    return count
