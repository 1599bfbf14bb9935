"""Follows a transcript as it grows, and reports a project's status: how far off the next checkpoint is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ralf import config, environment, project as projects, routing
from ralf.checkpointing.due import BudgetWatcher
from ralf.checkpointing.flow import CheckpointReport, checkpoint
from ralf.errors import RalfError, TranscriptNotFound, UsageError
from ralf.model import ActiveWork, Spend
from ralf.project import Project
from ralf.route import offsets
from ralf.route.fold import owed
from ralf.route.load import load_state
from ralf.routing import Choice
from ralf.text import tokens
from ralf.transcripts.events import Position, session_of_log
from ralf.transcripts.reader import counted, estimate_since, newest_logs, open_transcript

# --------------------
# Follows a growing transcript.


POLL_SECONDS = 1.0


def watch(
    route: str,
    transcript: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    every: int | None = None,
    once: bool = False,
    as_text: bool = False,
    again: bool = False,
    wait: Callable[[float], None] = time.sleep,
    idle: Callable[[str], None] = lambda _: None,
) -> Iterator[CheckpointReport]:
    """Yield a report for each checkpoint that falls due as the transcript grows, for ever or `once` over what is there.

    every    tokens between checkpoints; None: as configured
    as_text  see `checkpoint`
    again    take a session that another route has already from its beginning (`holding.begin_of`)
    wait     how to pass the seconds between two looks
    idle     told, with `once`, why none fell due

    A transcript that does not exist yet is waited for (with `once`: TranscriptNotFound). Errors: `checkpoint`.
    """
    if every is not None and every < 1:
        raise UsageError("--every", f"{every} is no number of tokens", "--every 50000")
    project = projects.find(root)
    route = routing.check_new(project, route)
    path = Path(transcript)
    limits = config.of(project).limits
    if every is not None:
        limits = replace(limits, tokens=every, percent=None)
    watcher: BudgetWatcher | None = None
    begin: Position | None = None
    seen = Position()
    size = -1
    while True:
        grown = _size(path)
        if grown is None and once:
            raise TranscriptNotFound(path, "no such transcript", f"ralf checkpoint --watch {route} --transcript FILE")
        if grown is not None and grown != size:
            size = grown
            source = open_transcript(path, root=project.root, as_text=as_text)
            if source.rewritten:
                hint = f"ralf checkpoint {route} --transcript {path}"
                raise UsageError(path, "is a run folder: it does not grow as a log does", hint)
            if watcher is None or watcher.session != source.session:
                begin = offsets.begin_of(project, route, source, again=again)
                position = begin or offsets.ingest_offset(project, route, source.session).position
                watcher = BudgetWatcher(limits, position, session=source.session)
                seen = position
            for event in source.events(seen):
                watcher.see(event, tokens.count(counted(event)))
            seen = source.end
            if watcher.due:
                report = checkpoint(
                    route, path, root=root, reason=watcher.due, segment_tokens=every, begin=begin, as_text=as_text
                )
                if report.checkpoints:
                    offsets.keep(project, report.route, source)
                left = max(0, watcher.tokens - report.tokens_read)
                watcher.taken(offsets.ingest_offset(project, route, source.session).position, left=left)
                yield report
            elif once:
                idle(
                    f"{route}: no checkpoint is due: {watcher.tokens:,} of {watcher.threshold:,} tokens since the"
                    f" last one; to make one all the same: ralf checkpoint {route}"
                )
        if once:
            return
        wait(POLL_SECONDS)


def _size(path: Path) -> int | None:
    """The transcript's bytes, None before there is one; what else is wrong with it is said when it is opened."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
    except OSError:
        return 0


# --------------------
# The status of a project.


_OTHERS = 3  # other routes that are named


@dataclass(frozen=True, slots=True)
class Status:
    """One look at a project.

    rule              which rule chose the route
    opted_in          whether this user has opted the project in
    hooks             whether it has not switched its hooks off
    transcript        this project's newest session, None where no client has kept one
    session_route     the other route that has it, where this one has nothing of it; "" else
    others            other routes, the one that was written last first; `routes`: how many there are in all
    tokens_since      tokens in it since the last checkpoint that any route has of it, an estimate; None without one
    tokens_to_next    tokens until the threshold, an estimate; None without a transcript
    problem           why the session could not be looked at, "" for nothing
    damage            what is wrong with the route file, "" for nothing
    foreign           whether the route holds what came with the repository; no other field tells of it
    title             the task's title, else what the route is about, else its first message
    last_request      the last message; `work_status`: where the answer to it stands
    model             the configured model that hands over, "" for none
    model_problem     why it is not asked, "" while it is
    owed              checkpoints of the route that it has not been asked about
    spend             what models have cost the route; `spend_total`: the project, its `day_` fields for today (UTC)
    """

    root: Path
    route: str
    rule: str
    opted_in: bool
    hooks: bool
    revision: int
    checkpoint_count: int
    last_checkpoint: str
    total_tokens_consumed: int
    threshold: str
    transcript: Path | None = None
    session_route: str = ""
    others: tuple[str, ...] = ()
    routes: int = 0
    tokens_since: int | None = None
    tokens_to_next: int | None = None
    problem: str = ""
    damage: str = ""
    foreign: bool = False
    title: str = ""
    last_request: str = ""
    work_status: str = ""
    model: str = ""
    model_problem: str = ""
    owed: int = 0
    spend: Spend = field(default_factory=Spend)
    spend_total: Spend = field(default_factory=Spend)


def status(project: Project, route: str | None = None) -> Status:
    """The status of a project and of the route that is meant. Raises UsageError for a refused name or configuration."""
    choice = meant(project, route)
    settings = config.of(project)
    name = routing.known(project, choice.route) or choice.route
    state = load_state(project, name)
    own = state.own if state is not None else None
    header = own.context_checkpoint if own is not None else None
    work = own.active_work if own is not None else ActiveWork()
    transcript, since, holder, problem = _newest_session(project, name)
    names, archived = offsets.recent(project, None), routing.archived(project)
    model, model_problem, total = _model(project, name)
    return Status(
        root=project.root,
        route=choice.route,
        rule=choice.rule,
        opted_in=project.owner.has_opted_in,
        hooks=settings.hooks == "on",
        revision=header.revision if header else 0,
        checkpoint_count=header.checkpoint_count if header else 0,
        last_checkpoint=header.last_checkpoint if header else "",
        total_tokens_consumed=header.total_tokens_consumed if header else 0,
        threshold=settings.threshold,
        transcript=transcript,
        session_route=holder,
        others=tuple(other for other in names if other != name and other not in archived)[:_OTHERS],
        routes=len(names),
        tokens_since=since,
        tokens_to_next=None if since is None else max(0, settings.due_at - since),
        problem=problem,
        damage=state.damage if state else "",
        foreign=state is not None and state.context.foreign,
        title=(work.task_title or own.goal or own.began_as) if own is not None else "",
        last_request=work.last_request,
        work_status=work.work_status,
        model=model,
        model_problem=model_problem,
        owed=len(owed(state.recorded)) if state and model else 0,
        spend=state.recorded.context_checkpoint.spend if state else Spend(),
        spend_total=total,
    )


def meant(project: Project, named: str | None = None) -> Choice:
    """The route that is meant, as `routing.choose` tells it; where no client's session runs us and nobody has chosen a
    route for the project, that of the project's newest session: a person asks for it from outside. One that nobody has
    chosen, and that has nothing of the session, gives way to the one that has it.
    """
    choice = routing.choose(project, named)
    if choice.is_chosen:
        return choice
    session = environment.session()
    if not session:
        newest = newest_logs(project)[:1]
        if not newest:
            return choice
        session = session_of_log(newest[0])
        choice = routing.choose(project, session=session)
        with suppress(RalfError):  # checkpoints name the session as the log does
            session = open_transcript(newest[0]).session
    return offsets.route_of(project, session, choice)


def _model(project: Project, route: str) -> tuple[str, str, Spend]:
    """The configured model, why it is not asked, and what models have cost the project."""
    if not os.path.lexists(project.local_config_file):
        return "", "", Spend()
    from ralf.config import local_config
    from ralf.refining import spending

    total = spending.spend_of_project(project)
    try:
        settings = local_config.local_config_of(project)
    except RalfError as error:
        return "", str(error), total
    off = spending.switched_off(spending.spend_of_route(project, route), settings.summarizer, route)
    return settings.summarizer, off or settings.cap.spent(total), total


def _newest_session(project: Project, route: str) -> tuple[Path | None, int | None, str, str]:
    """The newest session, its tokens since its last checkpoint, the other route that has it, and what is wrong."""
    found = newest_logs(project)
    if not found:
        return None, None, "", ""
    holder = ""
    try:
        source = open_transcript(found[0])
        after = offsets.ingest_offset(project, route, source.session).position
        if not after.byte:
            holder, after = offsets.of_session(project, source.session, but=route)
        since = estimate_since(source, after)
    except RalfError as error:
        return found[0], None, holder, str(error)
    return found[0], since, holder, ""
