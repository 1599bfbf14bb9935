"""Where a project stands: its route, its newest session, and how far the next checkpoint is."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from ralf import config, environment, holding, routing, sessions, state as states, tokens
from ralf.errors import RalfError
from ralf.model import Spend
from ralf.project import Project
from ralf.refining.refinement import owed
from ralf.routing import Choice
from ralf.transcripts import clientlogs, ofproject, open_transcript

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
    model             the configured model that improves checkpoints, "" for none
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
    state = states.load(project, name)
    header = state.own.context_checkpoint if state is not None else None
    transcript, since, holder, problem = _newest_session(project, name)
    names = holding.recent(project, None)
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
        others=tuple(other for other in names if other != name)[:_OTHERS],
        routes=len(names),
        tokens_since=since,
        tokens_to_next=None if since is None else max(0, settings.segment_limit - since),
        problem=problem,
        damage=state.damage if state else "",
        foreign=state is not None and state.context.foreign,
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
    if holding.is_chosen(choice):
        return choice
    session = environment.session()
    if not session:
        newest = ofproject.newest_first(project)[:1]
        if not newest:
            return choice
        choice = routing.choose(project, session=clientlogs.session_of(newest[0]))
        session = _session_in(newest[0])
    return holding.route_of(project, session, choice)


def _session_in(path: Path) -> str:
    """The session that a log is of, as checkpoints of it say."""
    try:
        return open_transcript(path).session
    except RalfError:
        return clientlogs.session_of(path)


def _model(project: Project, route: str) -> tuple[str, str, Spend]:
    """The configured model, why it is not asked, and what models have cost the project."""
    if not os.path.lexists(project.local_config_file):
        return "", "", Spend()
    from ralf import localconfig
    from ralf.refining import spend, worker

    spends = spend.of_project(project).values()
    total = spend.total(spends, spend.now()[:10])
    try:
        settings = localconfig.of(project)
    except RalfError as error:
        return "", str(error), total
    off = spend.switched_off(spends, settings.summarizer) if settings.summarizer else ""
    problem = worker.switched_off(settings.summarizer, route, off) if off else settings.cap.spent(total)
    return settings.summarizer, problem, total


def _newest_session(project: Project, route: str) -> tuple[Path | None, int | None, str, str]:
    """The newest session, its tokens since its last checkpoint, the other route that has it, and what is wrong."""
    found = ofproject.newest_first(project)
    if not found:
        return None, None, "", ""
    holder = ""
    try:
        source = open_transcript(found[0])
        after = sessions.standing(project, route, source.session).position
        if not after.byte:
            holder, after = holding.of_session(project, source.session, but=route)
        since = sum(tokens.estimate(event.text) for event in source.events(after) if event.kind != "compaction")
    except RalfError as error:
        return found[0], None, holder, str(error)
    return found[0], since, holder, ""
