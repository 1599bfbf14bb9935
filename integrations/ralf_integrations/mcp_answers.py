"""What the MCP tools answer, without the SDK: each a value with the fields of the Python API, and `text` for the model.

Words that come out of a route stand in `text` alone, in the fence that says that they are data; the other fields are
names, numbers and labels. The answers have no slots: the SDK takes a slot for a default when it makes their schema.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ralf
from ralf import project as projects, routing, tokens
from ralf.briefing.fence import TOKENS, characters, fenced, shown
from ralf.errors import RalfError, RouteNotFound, TranscriptNotFound, UsageError
from ralf.project import Project
from ralf.reader import RouteSummary
from ralf.search import SearchHit
from ralf.text import clean, one_line
from ralf.transcripts import ofproject
from ralf.trim import trimmed
from ralf_integrations import caller
from ralf_integrations.hooks import known

DEFAULT_TOKENS, LEAST_TOKENS, MOST_TOKENS = 2_500, 100, 20_000
MOST_HITS, MOST_ROUTES = 20, 100
_CHARACTERS_PER_TOKEN = 4
_SHOWS = re.compile(r"ralf context show (\S+)(?: --section (\w+))?")
_NAME = 200  # characters of a short field that comes out of a file


@dataclass(frozen=True)
class Context:
    """A route's context: its bookkeeping, and its text within the budget. `rule`: how the route was chosen."""

    route: str
    rule: str
    revision: int
    checkpoint_count: int
    last_checkpoint: str
    total_tokens_consumed: int
    text: str
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Hit:
    """Where something was found; its words are in `Found.text`, under the same number."""

    route: str
    kind: str
    id: str
    score: float
    source: str
    status: str


@dataclass(frozen=True)
class Found:
    """What a search found, best first; `left_out`: hits for which the budget had no room."""

    hits: list[Hit]
    left_out: int
    text: str


@dataclass(frozen=True)
class Recorded:
    """A decision that was recorded, or that was known in the same words."""

    route: str
    id: str
    kind: str
    status: str
    origin: str
    timestamp: str
    supersedes: str
    text: str


@dataclass(frozen=True, slots=True)
class Written:
    """One checkpoint that was written."""

    checkpoint_id: str
    tokens: int
    tokens_stored: int | None
    recall: float | None


@dataclass(frozen=True)
class Checkpointed:
    """What a checkpoint came to; `checkpoints` is empty where nothing was new."""

    route: str
    revision: int
    transcript: str
    checkpoints: list[Written]
    tokens_read: int
    tokens_stored: int
    kept: int
    dropped: int
    text: str
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Route:
    """One line of the list of routes."""

    route: str
    revision: int
    last_checkpoint: str
    checkpoint_count: int
    total_tokens_consumed: int
    damaged: bool


@dataclass(frozen=True)
class Routes:
    """The routes of the project, the newest checkpoint first, and the one that is meant when none is named."""

    routes: list[Route]
    left_out: int
    current: str
    rule: str
    text: str


@dataclass(frozen=True)
class Used:
    """The route that was chosen, for a session or, where the client names none, for the project (`session` is "")."""

    route: str
    session: str
    exists: bool
    text: str


class Answers:
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
            last_checkpoint=_short(found.last_checkpoint),
            total_tokens_consumed=found.total_tokens_consumed,
            text=found.render(max_tokens, section=section),
            warnings=[clean(warning) for warning in found.warnings],
        )

    def search(self, query: str, route: str | None = None, limit: int = 5, max_tokens: int = DEFAULT_TOKENS) -> Found:
        """What is known about a question, in a route or in all of them, whole hits within the budget."""
        hits = ralf.search(query, route=route or None, root=self._root, limit=limit)
        texts = _fitting([_hit_text(number, hit) for number, hit in enumerate(hits, start=1)], max_tokens)
        left = len(hits) - len(texts)
        closing = f"({left} more: a larger max_tokens, or a narrower query)\n" if left else ""
        return Found(
            hits=[
                Hit(hit.route, hit.kind, _short(hit.id), hit.score, _short(hit.source), hit.status)
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
            text=f"recorded in {choice.route} as {_short(made.id)}{_short(replaced)}",
        )

    def checkpoint(self, route: str | None = None, transcript: str | None = None) -> Checkpointed:
        """Take what is new in this session's transcript, or in another one of this project, into a route."""
        choice = self._choice(route)
        path = self._transcript(transcript or None)
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
        head = f"This session's route: {choice.route} ({_short(choice.rule)})\n"
        texts = _fitting([head, *map(_route_text, found[:MOST_ROUTES])], max_tokens)
        shown_routes = max(0, len(texts) - 1)
        left = len(found) - shown_routes
        closing = f"({left} more: ralf context list)\n" if left else "" if found else "no routes yet\n"
        return Routes(
            routes=[
                Route(
                    one.route,
                    one.revision,
                    _short(one.last_checkpoint),
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
            own = seen.get(caller.session(project))
            if own is not None and own.is_file():
                return own
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


def _fitting(texts: Sequence[str], max_tokens: int) -> list[str]:
    """The first texts that fit a budget with their fence; at least a part of the first."""
    left = max_tokens - TOKENS - 20  # and the closing line
    room = _CHARACTERS_PER_TOKEN * left - characters()
    kept: list[str] = []
    for text in texts:
        cut = text if kept else _cut(text, left, room)
        size = tokens.count(cut) + 1
        if size > left or len(cut) > room:
            break
        kept.append(cut)
        left, room = left - size, room - len(cut)
    return kept


def _cut(text: str, most_tokens: int, most_characters: int) -> str:
    size = most_characters
    while tokens.count(cut := text if len(text) <= size else f"{trimmed(text, size - 1)}\n") + 1 > most_tokens:
        size = len(cut) * 2 // 3
        if size < 3:
            return ""
    return cut


def _hit_text(number: int, hit: SearchHit) -> str:
    status = f" [{hit.status}]" if hit.status not in ("", "active") else ""
    source = f" ({_short(hit.source)})" if hit.source else ""
    lines = shown(hit.text).strip().split("\n")
    return f"{number}. {hit.route} {hit.kind} {_short(hit.id)}{status}{source}\n" + "".join(
        f"   {line}".rstrip() + "\n" for line in lines
    )


def _route_text(found: RouteSummary) -> str:
    parts = [f"{found.checkpoint_count} checkpoint{'s' * (found.checkpoint_count != 1)}"]
    parts += [f"last {_short(found.last_checkpoint)}"] if found.last_checkpoint else []
    parts += [_short(part) for part in (found.current_task, found.work_status) if part]
    parts += [f"damaged: {_short(found.damage)}"] if found.damage else []
    return f"- {found.route}: {', '.join(parts)}\n"


def _short(text: str) -> str:
    """A short field that comes out of a file, on one line."""
    return trimmed(shown(one_line(clean(text))), _NAME)
