"""The MCP tools of a project, without the SDK."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ralf
from ralf import environment, project, routing
from ralf.errors import Busy, Damaged, NotFound, RalfError, RouteNotFound, TranscriptNotFound, UsageError
from ralf.finding.reader import RouteSummary
from ralf.finding.search import SearchHit
from ralf.project import Project
from ralf.route import history, offsets
from ralf.text import tokens
from ralf.text.cleaning import clean, fenced, one_line, shown, trimmed
from ralf.text.patterns import regex
from ralf.transcripts.reader import newest_logs, open_transcript
from ralf_integrations.hooks import prompt_intent, session_registry
from ralf_integrations.mcp import answers, caller
from ralf_integrations.mcp.answers import (
    Checkpointed,
    Context,
    Found,
    HandedOver,
    Hit,
    Received,
    Recorded,
    Route,
    Routes,
    Sent,
    Used,
    Written,
    noted,
    short,
)

DEFAULT_TOKENS, LEAST_TOKENS, MOST_TOKENS = 2_500, 100, 20_000
MOST_HITS, MOST_ROUTES, MOST_ITEMS = 20, 100, 40
_LONGEST = 2_000  # characters of an error
_WHY = (
    (UsageError, "ralf refuses this"),
    (NotFound, "there is no such thing"),
    (Damaged, "a file is damaged"),
    (Busy, "somebody else is at it"),
    (RalfError, "it failed"),
    (OSError, "a file cannot be used"),
)
_SHOWS = regex(r"ralf show (\S+)(?: --section (\w+))?")


class Tools:
    """The tools of one project. Errors: RalfError and OSError, as the Python API raises them."""

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self._root = root
        self._used = ""  # the route of a session that its client does not name

    @property
    def _project(self) -> Project:
        return project.find(self._root)

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
        if route and (session := caller.session(self._project)):
            prompt_intent.move_by_reading(self._project, session, found.route)

        def answer(text_tokens: int) -> Context:
            return Context(
                rule=answers.rule_of(choice.rule),
                revision=found.revision,
                checkpoint_count=found.checkpoint_count,
                last_checkpoint=answers.time_of(found.last_checkpoint),
                total_tokens_consumed=found.total_tokens_consumed,
                text=found.render(text_tokens, section=section),
                warnings=_warned(found.warnings),
                foreign=found.foreign,
            )

        return answers.within_budget(answer, max_tokens)

    def search(self, query: str, route: str | None = None, limit: int = 5, max_tokens: int = DEFAULT_TOKENS) -> Found:
        """What is known about a question, in a route or in all of them, in whole hits within the answer's budget."""
        warnings: list[str] = []
        hits = ralf.search(query, route=route or None, root=self._root, limit=limit, warnings=warnings)
        return answers.within_budget(lambda text_tokens: _found(hits, text_tokens, warnings), max_tokens)

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
        choice = self._writing(route)
        if route and supersedes:  # under an earlier name, a label means what it meant there
            supersedes = history.label(supersedes, "DEC")
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
            id=answers.id_of(made.id),
            kind=answers.label(made.kind, answers.KINDS),
            status=answers.label(made.status, answers.STATUSES),
            origin=answers.label(made.origin, answers.ORIGINS),
            timestamp=answers.time_of(made.timestamp),
            supersedes=answers.id_of(made.supersedes),
            text=noted(f"recorded in {choice.route} as {short(made.id)}{short(replaced)}"),
        )

    def hand_over(self, route: str | None = None, *, text: str = "", **fields: Any) -> HandedOver:
        """Record what this session hands over to whoever goes on with a route."""
        choice = self._writing(route)
        made = ralf.hand_over(choice.route, text, root=self._root, **fields)
        marks = dict.fromkeys((*made.handover.marks, *(mark for entry in made.added for mark in entry.marks)))
        return HandedOver(
            ids=[answers.id_of(entry.id) for entry in made.added if entry.id],
            not_found=[short(mark) for mark in marks],
            timestamp=answers.time_of(made.handover.at),
            text=noted(short(str(made))),
        )

    def checkpoint(self, route: str | None = None, transcript: str | None = None) -> Checkpointed:
        """Take what is new in this session's transcript, or in another one of this project, into a route: without one,
        into that which has the beginning of it.
        """
        choice = self._choice(route)
        path = self._transcript(transcript or None)
        source = open_transcript(path)
        if not route:
            choice = offsets.route_of(self._project, source.session, choice)
        begin = offsets.begin_of(self._project, choice.route, source)
        report = ralf.checkpoint(choice.route, source, root=self._root, begin=begin)
        if report.checkpoints:
            offsets.keep(self._project, report.route, source)
        made = [Written(answers.id_of(one.checkpoint_id), one.tokens, one.tokens_stored) for one in report.checkpoints]
        what = "no message and no call yet" if report.blank else "nothing new"
        text = f"{choice.route}: {what} in {one_line(str(path))}"
        if made:
            names = ", ".join(one.checkpoint_id for one in made)
            text = f"{choice.route}: {names}: {report.tokens_read:,} tokens of {one_line(str(path))} became"
            text = f"{text} {report.tokens_stored:,}"
        return Checkpointed(
            revision=report.revision,
            checkpoints=made,
            tokens_read=report.tokens_read,
            tokens_stored=report.tokens_stored,
            text=noted(text),
            warnings=_warned([*report.warnings, *([report.damage] if report.damage else [])]),
        )

    def routes(self, max_tokens: int = DEFAULT_TOKENS) -> Routes:
        """The routes of the project."""
        choice = self._choice(None)
        found = ralf.list_routes(root=self._root)
        return answers.within_budget(lambda text_tokens: _listed(found, choice, text_tokens), max_tokens)

    def use(self, route: str, *, is_new: bool = False) -> Used:
        """Set the route of this session; of one that its client does not name, for this server alone."""
        project = self._project
        session = caller.session(project)
        found = routing.known(project, route)
        name = found or routing.check_typed(project, route, is_new=is_new)
        if session:
            routing.use(project, name, session=session)
        else:
            self._used = name
        new = "" if found else ": nothing is kept of it yet"
        return Used(found is not None, noted(f"{name} is the route of this session{new}"))

    # ---- what was learned across tasks ----

    def memory(self, query: str = "", kind: str | None = None, max_tokens: int = DEFAULT_TOKENS) -> answers.Memory:
        """What the agent has learned, or of that what concerns a question, within the answer's budget."""
        from ralf.memory import selection, writing  # few calls need the memory
        from ralf.memory.wording import line

        agent = environment.memory_name()
        found = writing.load(self._project, agent)
        items = found.best(kind)[:MOST_ITEMS]
        if query:
            chosen = selection.for_task(self._project, agent, query, tokens=selection.ON_REQUEST)
            items = [item for item in chosen.items if kind in (None, item.kind)]
        lines = [f"{line(item)}\n" for item in items]

        def answer(text_tokens: int) -> answers.Memory:
            texts = answers.fitting([shown(one) for one in lines], text_tokens)
            left = len(lines) - len(texts)
            closing = f"({left} more: a larger max_tokens, or a query)\n" if left else ""
            return answers.Memory(
                items=[
                    answers.Remembered(
                        answers.id_of(item.id),
                        item.kind,
                        item.status,
                        item.origin,
                        item.uses,
                        item.confidence,
                    )
                    for item in items[: len(texts)]
                ],
                left_out=left,
                text=fenced("".join(texts) + closing) or "nothing is remembered of that",
                warnings=_warned(found.warnings),
            )

        return answers.within_budget(answer, max_tokens)

    def propose(
        self, kind: str, text: str, *, error: str = "", resolution: str = "", evidence: Sequence[str] = ()
    ) -> answers.Proposed:
        """Offer an item to the user, who decides whether it counts."""
        from ralf.memory.family import stated
        from ralf.memory.writing import add

        given = {"error": error, "resolution": resolution}
        delta = stated(kind, text, origin="agent", evidence=tuple(evidence), **{k: v for k, v in given.items() if v})
        _, item = add(self._project, environment.memory_name(), delta)
        more = "the user decides whether it counts" if item.status == "offered" else "it was known"
        told = noted(f"{short(item.id)}: {more}")
        return answers.Proposed(answers.id_of(item.id), item.kind, item.status, told)

    def send_message(
        self, to: str, summary: str, facts: Sequence[str] = (), artifacts: Sequence[str] = (), action: str = ""
    ) -> Sent:
        """Leave a message in another agent's inbox."""
        from ralf_integrations import agent_messages  # few sessions write any

        project = self._project
        sender = agent_messages.own_names(caller.session(project))[0]
        made = agent_messages.compose(project, summary, facts=facts, artifacts=artifacts, action=action, sender=sender)
        receiver, _ = agent_messages.send(project, to, made)
        return Sent(
            tokens.count(made.render()), noted(f"{receiver}: waits for its next hook, or until it reads its messages")
        )

    def receive_messages(self) -> Received:
        """The messages and notices that wait for this agent; they are not handed over again."""
        from ralf_integrations import agent_messages, inbox

        project = self._project
        found = agent_messages.receive(project, agent_messages.own_names(caller.session(project)))
        return Received(len(found), inbox.rendered(found) or "no message waits")

    # ---- which route, which transcript ----

    def _choice(self, route: str | None) -> routing.Choice:
        project = self._project
        session = caller.session(project)
        choice = routing.choose(project, route or None, session=session or None)
        if session:
            choice = offsets.route_of(project, session, choice)
        elif self._used and not route:
            choice = routing.Choice(self._used, routing.CHOSEN)
        return routing.Choice(routing.known(project, choice.route) or choice.route, choice.rule)

    def _writing(self, route: str | None) -> routing.Choice:
        """The route to write to; UsageError for a name that is nearly an existing one's, and not this session's own."""
        choice = self._choice(route)
        if route and choice.route != self._choice(None).route:
            routing.check_typed(self._project, choice.route)
        return choice

    def _transcript(self, named: str | None) -> Path:
        """The session log that is meant. Only logs that clients keep of this project are read: an agent may call this
        without being asked, or because a page told it to, and what it calls for is kept.
        """
        project = self._project
        kept = newest_logs(project)
        seen = {one.session: Path(one.transcript) for one in session_registry.all_sessions(project) if one.transcript}
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
        real = os.path.realpath(project.root / named)
        found = next((path for path in (*kept, *seen.values()) if os.path.realpath(path) == real), None)
        if found is None:
            what = "is no session log that a client keeps of this project: not read"
            hint = "checkpoint() takes this session's; a person can name any file: ralf checkpoint --help"
            raise UsageError(clean(named), what, hint)
        return found


def _found(hits: Sequence[SearchHit], text_tokens: int, warnings: Sequence[str]) -> Found:
    """The first hits whose lines fit the text, how many are left out, and what kept a search from finding more."""
    texts = [answers.of_hit(number, hit) for number, hit in enumerate(hits, start=1)]
    texts = answers.fitting(texts, text_tokens)
    left = len(hits) - len(texts)
    closing = f"({left} more: a larger max_tokens, or a narrower query)\n" if left else ""
    closing += "".join(f"({short(warning)})\n" for warning in warnings)
    return Found(
        hits=[
            Hit(
                number,
                answers.label(hit.kind, answers.KINDS),
                answers.id_of(hit.id),
                hit.score,
                answers.label(hit.status, answers.STATUSES),
            )
            for number, hit in enumerate(hits[: len(texts)], start=1)
        ],
        left_out=left,
        text=fenced("".join(texts) + closing) or "nothing found",
    )


def _listed(found: Sequence[RouteSummary], choice: routing.Choice, text_tokens: int) -> Routes:
    """The first routes whose lines fit the text, and how many are left out."""
    head = f"This session's route: {choice.route} ({short(choice.rule)})\n"
    told = [answers.of_route(number, one) for number, one in enumerate(found[:MOST_ROUTES], start=1)]
    texts = answers.fitting([head, *told], text_tokens)
    shown_routes = max(0, len(texts) - 1)
    left = len(found) - shown_routes
    closing = f"({left} more: ralf list)\n" if left else "" if found else "no routes yet\n"
    return Routes(
        routes=[
            Route(
                number,
                one.revision,
                answers.time_of(one.last_checkpoint),
                one.checkpoint_count,
                one.total_tokens_consumed,
                bool(one.damage),
                one.foreign,
            )
            for number, one in enumerate(found[:shown_routes], start=1)
        ],
        left_out=left,
        current=next((number for number, one in enumerate(found, start=1) if one.route == choice.route), 0),
        rule=answers.rule_of(choice.rule),
        text=fenced("".join(texts) + closing),
    )


def _warned(warnings: Sequence[str]) -> str:
    return fenced(shown("\n".join(warnings)), short=True)


def _as_call(hint: str) -> str:
    """A command that shows a route as the call that does the same: who has the tools may have no terminal."""
    found = _SHOWS.fullmatch(hint)
    if found is None:
        return hint.replace(" --new", " use_route(…, new=true)")
    section = f', section="{found[2]}"' if found[2] else ""
    return f'get_context(route="{found[1]}"{section})'


def told(error: RalfError | OSError) -> str:
    """An error as a model is told it: a sentence of ours, and in the fence what is wrong and what to do next."""
    if isinstance(error, RouteNotFound):
        hint = f'get_context(route="{error.closest[0]}")' if error.closest else "list_routes()"
        return refusal(error, f"{error}\nhint: {hint}")
    if isinstance(error, RalfError):
        return refusal(error, f"{error}\nhint: {_as_call(error.hint) or 'ralf doctor --store'}")
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "ralf"
    return refusal(error, f"{where}: {error.strerror or error}\nhint: make it readable and writable, then try again")


def refusal(error: Exception | None, words: str) -> str:
    """What an agent is told where a call failed: why, in a sentence of ours, and the words about it in the fence."""
    why = next((said for kind, said in _WHY if isinstance(error, kind)), "an argument makes no sense")
    return f"The call failed: {why}.\n{fenced(trimmed(shown(words), _LONGEST), short=True)}"
