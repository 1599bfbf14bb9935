"""The MCP tools of a project, without the SDK."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import ralf
from ralf import project as projects, routing
from ralf.briefing.fence import fenced
from ralf.errors import RalfError, RouteNotFound, TranscriptNotFound, UsageError
from ralf.project import Project
from ralf.text import clean
from ralf.transcripts import ofproject, open_transcript
from ralf_integrations import existing
from ralf_integrations.hooks import known
from ralf_integrations.mcp import caller, lines
from ralf_integrations.mcp.answers import Checkpointed, Context, Found, Hit, Recorded, Route, Routes, Used, Written
from ralf_integrations.mcp.lines import short

DEFAULT_TOKENS, LEAST_TOKENS, MOST_TOKENS = 2_500, 100, 20_000
MOST_HITS, MOST_ROUTES = 20, 100
_SHOWS = re.compile(r"ralf context show (\S+)(?: --section (\w+))?")


class Tools:
    """The tools of one project. Errors: RalfError and OSError, as the Python API raises them."""

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self._root = root

    @property
    def _project(self) -> Project:
        return projects.find(self._root)

    def context(
        self,
        route: str | None = None,
        max_tokens: int = DEFAULT_TOKENS,
        query: str | None = None,
        section: str | None = None,
    ) -> Context:
        """The context of a route; None: the one that is meant."""
        choice = self._choice(route)
        found = ralf.get_context(choice.route, root=self._root, query=query or None)
        return Context(
            route=found.route,
            rule=choice.rule,
            revision=found.revision,
            checkpoint_count=found.checkpoint_count,
            last_checkpoint=short(found.last_checkpoint),
            total_tokens_consumed=found.total_tokens_consumed,
            text=found.render(max_tokens, section=section),
            warnings=[clean(warning) for warning in found.warnings],
        )

    def search(self, query: str, route: str | None = None, limit: int = 5, max_tokens: int = DEFAULT_TOKENS) -> Found:
        """What is known about a question, in a route or in all of them, whole hits within the budget."""
        hits = ralf.search(query, route=route or None, root=self._root, limit=limit)
        texts = lines.fitting([lines.of_hit(number, hit) for number, hit in enumerate(hits, start=1)], max_tokens)
        left = len(hits) - len(texts)
        closing = f"({left} more: a larger max_tokens, or a narrower query)\n" if left else ""
        return Found(
            hits=[
                Hit(hit.route, hit.kind, short(hit.id), hit.score, short(hit.source), hit.status)
                for hit in hits[: len(texts)]
            ],
            left_out=left,
            text=fenced("".join(texts) + closing) or "nothing found",
        )

    def record(
        self,
        decision: str,
        route: str | None = None,
        rationale: str = "",
        alternatives: Sequence[str] = (),
        supersedes: str | None = None,
        kind: str = "decision",
    ) -> Recorded:
        """Record an agent's decision."""
        choice = self._choice(route)
        made = ralf.record_decision(
            choice.route,
            decision,
            rationale=rationale,
            alternatives=alternatives,
            supersedes=supersedes or None,
            origin="agent",
            kind=kind,
            root=self._root,
        )
        replaced = f", in the place of {made.supersedes}" if made.supersedes else ""
        return Recorded(
            route=choice.route,
            id=made.id,
            kind=made.kind,
            status=made.status,
            origin=made.origin,
            timestamp=made.timestamp,
            supersedes=made.supersedes,
            text=f"recorded in {choice.route} as {short(made.id)}{short(replaced)}",
        )

    def checkpoint(self, route: str | None = None, transcript: str | None = None) -> Checkpointed:
        """Take what is new in this session's transcript, or in another one of this project, into a route: without one,
        into that which has the beginning of it.
        """
        choice = self._choice(route)
        path = self._transcript(transcript or None)
        if choice.rule == routing.DEFAULT:
            has, _ = existing.begun(self._project).get(open_transcript(path).session, ("", 0))
            choice = routing.Choice(has or choice.route, choice.rule)
        report = ralf.checkpoint(choice.route, path, root=self._root)
        made = [Written(one.checkpoint_id, one.tokens, one.tokens_stored, one.recall) for one in report.checkpoints]
        text = f"{choice.route}: nothing new"
        if made:
            names = ", ".join(one.checkpoint_id for one in made)
            text = f"{choice.route}: {names}: {report.tokens_read:,} tokens became {report.tokens_stored:,}"
        warnings = [*report.warnings, *([report.damage] if report.damage else [])]
        return Checkpointed(
            route=choice.route,
            revision=report.revision,
            transcript=clean(str(path)),
            checkpoints=made,
            tokens_read=report.tokens_read,
            tokens_stored=report.tokens_stored,
            kept=report.kept,
            dropped=report.dropped,
            text=text,
            warnings=[clean(warning) for warning in warnings],
        )

    def routes(self, max_tokens: int = DEFAULT_TOKENS) -> Routes:
        """The routes of the project."""
        choice = self._choice(None)
        found = ralf.list_routes(root=self._root)
        head = f"This session's route: {choice.route} ({short(choice.rule)})\n"
        texts = lines.fitting([head, *map(lines.of_route, found[:MOST_ROUTES])], max_tokens)
        shown_routes = max(0, len(texts) - 1)
        left = len(found) - shown_routes
        closing = f"({left} more: ralf context list)\n" if left else "" if found else "no routes yet\n"
        return Routes(
            routes=[
                Route(
                    one.route,
                    one.revision,
                    short(one.last_checkpoint),
                    one.checkpoint_count,
                    one.total_tokens_consumed,
                    bool(one.damage),
                )
                for one in found[:shown_routes]
            ],
            left_out=left,
            current=choice.route,
            rule=choice.rule,
            text=fenced("".join(texts) + closing),
        )

    def names(self) -> list[str]:
        """The names of all routes."""
        return routing.names_of(self._project)

    def use(self, route: str) -> Used:
        """Choose the route of this session."""
        project = self._project
        session = caller.session(project)
        found = routing.known(project, route)
        routing.use(project, found or route, session=session or None)
        new = "" if found else ": nothing is kept of it yet"
        return Used(found or route, session, found is not None, f"{found or route} is the route of this session{new}")

    def resume(self, route: str | None = None, max_tokens: int = DEFAULT_TOKENS) -> str:
        """What a fresh agent is told to go on with a route."""
        found = self.context(route, max_tokens, section="brief")
        return (
            f"Carry on with the route {found.route}. What is known of it stands below. Read the files that it names"
            " again before you change them. For more, call get_context or search; for a choice that you make, call"
            f" record_decision.\n\n{found.text}"
        )

    # ---- which route, which transcript ----

    def _choice(self, route: str | None) -> routing.Choice:
        project = self._project
        choice = routing.choose(project, route or None, session=caller.session(project) or None)
        return routing.Choice(routing.known(project, choice.route) or choice.route, choice.rule)

    def _transcript(self, named: str | None) -> Path:
        """The session log that is meant. Only those of this project are read: an agent may call this without being
        asked, and what it calls for is kept.
        """
        project = self._project
        kept = ofproject.newest_first(project)
        seen = {one.session: Path(one.transcript) for one in known.everyone(project) if one.transcript}
        if named is None:
            session = caller.session(project)
            own = seen.get(session)
            if own is not None and own.is_file():
                return own
            if session:  # no client has told its log: another session's is not this one's
                kept = [path for path in kept if path.stem.endswith(session)]
            if not kept:
                what = "no client has kept a session of this project here"
                raise TranscriptNotFound(project.root, what, 'checkpoint(transcript="PATH")')
            return kept[0]
        if "\0" in named:
            raise UsageError(ascii(named), "not a path", 'checkpoint(transcript="PATH")')
        path = Path(named) if Path(named).is_absolute() else project.root / named
        real = os.path.realpath(path)
        inside = Path(real).is_relative_to(os.path.realpath(project.root))
        if not inside and real not in {os.path.realpath(one) for one in (*kept, *seen.values())}:
            what = "neither lies in the project nor is a session of it: not read"
            raise UsageError(clean(named), what, f"ralf context checkpoint ROUTE --transcript {clean(named)}")
        return path


def _as_call(hint: str) -> str:
    """A command that shows a route as the call that does the same: who has the tools may have no terminal."""
    found = _SHOWS.fullmatch(hint)
    if found is None:
        return hint
    section = f', section="{found[2]}"' if found[2] else ""
    return f'get_context(route="{found[1]}"{section})'


def told(error: RalfError | OSError) -> str:
    """An error as a model is told it: what is wrong, and what to do next."""
    if isinstance(error, RouteNotFound):
        hint = f'get_context(route="{error.closest[0]}")' if error.closest else "list_routes()"
        return clean(f"{error}\nhint: {hint}")
    if isinstance(error, RalfError):
        return clean(f"{error}\nhint: {_as_call(error.hint) or 'ralf context verify'}")
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "ralf"
    return clean(f"{where}: {error.strerror or error}\nhint: make it readable and writable, then try again")
