"""The sessions that clients keep of a project from before ralf was there: what of them is not taken, and taking it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ralf import config, redact, routing
from ralf.checkpointing.flow import CheckpointReport, checkpoint
from ralf.checkpointing.section import Extractive
from ralf.errors import RalfError
from ralf.project import Project
from ralf.redact.redactor import Redactor
from ralf.transcripts.reader import open_transcript, requests
from ralf_integrations.client import CLIENTS
from ralf_integrations.hooks import prompt_intent

BEGUN = "begun"
"""The rule beside those of `routing`: the route that has most of a session already."""


@dataclass(frozen=True, slots=True)
class Existing:
    """A session of which something is not taken."""

    path: Path  # its transcript
    client: str
    session: str
    size: int  # bytes of the transcript
    left: int  # those of them that are in no route yet
    route: str  # where it would go
    rule: str  # why


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one session: a report, or why there is none."""

    session: Existing
    report: CheckpointReport | None = None
    problem: str = ""


def found(project: Project, client: str | None = None) -> tuple[Existing, ...]:
    """The sessions of a client (None: of all) of which something is in no route yet, the oldest first; writes nothing.

    A session that cannot be read, or in which nobody asked for anything, is left out.
    """
    kept = [
        (when, path, one.name)
        for one in CLIENTS.values()
        if one.sessions is not None and client in (None, one.name)
        for when, path in one.sessions(project)
    ]
    if not kept:
        return ()
    patterns = config.redact_patterns_of(project)
    key = secrets.token_bytes(32)  # one that is forgotten: a look makes none
    redactor = Redactor(key, redact.compiled(project.config_file, patterns))
    from ralf_integrations.health.look import begun  # only an import looks at sessions

    taken, given = begun(project, routing.names_of(project)), set[str]()

    def look(path: Path, client: str) -> Existing | None:
        source = open_transcript(path)
        size = path.stat().st_size
        route, byte = taken.get(source.session, ("", 0))
        if byte >= size:
            return None
        if route:
            return Existing(path, client, source.session, size, size - byte, route, BEGUN)
        asked = tuple(requests(source))
        if not asked:
            return None
        # The route that hooks would have given the session, and that no other session of this look gets.
        redacted = [redactor.text(request) for request in asked if prompt_intent.is_request(request)]
        choice = routing.of_past(project, session=source.session, branch=source.branch, requests=redacted, given=given)
        if choice.rule == routing.FIRST_REQUEST:
            given.add(choice.route)
        route = routing.known(project, choice.route) or choice.route
        return Existing(path, client, source.session, size, size, route, choice.rule)

    sessions = []
    for _, path, of in sorted(kept):
        with suppress(RalfError, OSError):
            sessions.append(look(path, of))
    return tuple(session for session in sessions if session is not None)


def take(
    project: Project, those: Iterable[Existing], *, progress: Callable[[Existing, int, int], None] | None = None
) -> Iterator[Taken]:
    """Checkpoint sessions one by one, offline and with the embedded summariser; what goes wrong with one of them is
    told, and the next one taken. A session that goes on later stays with the route that it was taken into.

    progress  told which session it is, how many bytes of its transcript are done, and how many there are
    """
    for session in those:
        try:
            report = checkpoint(
                session.route,
                session.path,
                root=project.root,
                summarizer=Extractive(),
                reason="manual",
                run="",  # whichever it was in, it is not ours
                progress=None if progress is None else partial(progress, session),
            )
            if report.checkpoints and session.rule not in (routing.CHOSEN, BEGUN):
                routing.use(project, session.route, session=session.session)
        except (RalfError, OSError) as error:
            yield Taken(session, problem=str(error))
        else:
            yield Taken(session, report)
