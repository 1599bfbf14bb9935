"""Has a model hand over what the newest checkpoints came to, in a detached worker; the brief never waits for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ralf import environment, project
from ralf.config.local_config import Cap, LocalConfig, local_config_of
from ralf.errors import Busy, NotFound, RalfError
from ralf.facts.state import State
from ralf.model import Checkpoint, RouteContext
from ralf.model.entries import Entry, Message, SessionEntries, Step, from_tree
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.refining import spending
from ralf.refining.command import Command, NoAnswer, Usage, command_of
from ralf.refining.prompting import Detail, detail_of, prompt
from ralf.route import handing_over, history
from ralf.route.entries import sessions_of
from ralf.route.fold import owed
from ralf.route.load import load_state
from ralf.route.write import open_route
from ralf.storage import locks
from ralf.talk.answer import Answer, BadAnswer, Refused, answer_of, checked, schema
from ralf.talk.names import Quotes, Shown, texts_of
from ralf.talk.turns import Talk, joined
from ralf.text.cleaning import one_line, trimmed
from ralf.transcripts.events import Event, Position
from ralf.transcripts.reader import log_of_session, open_transcript

LEAST, LEAST_AT_END = 3_000, 10_000
"""Tokens of work below which no model is asked, and below which none is at the end of a session or task."""

_COVERED = 10_000  # tokens of work after a hand-over of the agent's or the person's up to which none is needed

_ENDS = ("session-end", "task-completed", "todos-done", "run-ended")  # reasons of checkpoints

NOTHING = "no message, no edit and no failing check in it: no model was asked"
"""Why nobody was asked."""


@dataclass(frozen=True, slots=True)
class Refinement:
    """What asking a model about some checkpoints came to.

    checkpoint_id  the newest of them
    failure        why nothing came of it, "" when something did; `text`: what was taken of it, in one line
    input_tokens, output_tokens, cost_usd  as the tool says; `estimated`: the tokens are ours, it tells none
    """

    route: str
    checkpoint_id: str
    summarizer: str
    model: str = ""
    failure: str = ""
    text: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    cost_usd: float | None = None


def refine(
    project: Project, route: str, checkpoints: Sequence[str], command: Command, *, cap: Cap | None = None
) -> Refinement:
    """Have a model hand over what some checkpoints came to, and record it: also that nothing did, and what it cost.

    checkpoints  oldest first
    cap          what may be spent in a day; when it is spent, that is what is recorded

    The caller holds the route's worker lock; the route's own is free while the model runs. Raises NotFound (no such
    checkpoint), Busy, OSError, DamagedJournal.
    """
    asking = _Asking(project, route, checkpoints, command)
    try:
        if cap not in (None, Cap()) and (spent := cap.spent(spending.spend_of_project(project))):
            return asking.failed(spent)  # without a cap the other routes need no look
        payloads = _payloads(project, route, checkpoints)
        segment = joined(_entries_of(payloads))
        return asking.ask(payloads, segment) if _has_substance(segment) else asking.outcome(failure=NOTHING)
    except (BadAnswer, NoAnswer) as error:
        return asking.failed(str(error), settled=isinstance(error, Refused) or getattr(error, "is_settled", False))
    except (RalfError, OSError):
        raise
    except Exception as error:  # noqa: BLE001  # unrecorded, a fault of ours would be paid for again and again
        return asking.failed(f"internal: {type(error).__name__}: {error}"[:200])


class _Asking:
    """One call of `refine`: the model is asked at most twice."""

    def __init__(self, project: Project, route: str, checkpoints: Sequence[str], command: Command) -> None:
        self._project, self._route, self._names, self._command = project, route, list(checkpoints), command
        self._redactor = redactor_for(project)
        self._called = ""
        self._usage = Usage(model=command.model)

    def ask(self, payloads: Sequence[Mapping[str, Any]], segment: Talk) -> Refinement:
        """Ask about a segment, hold the answer against the record, and record it."""
        sessions = sessions_of(self._project, self._route)
        state = load_state(self._project, self._route)
        if state is None:
            raise NotFound(self._route, "no such route", "ralf list")
        details = dict(_details(self._project, payloads))
        keep = dict.fromkeys(str(hint) for payload in payloads for hint in payload.get("keep", ()))
        asked = prompt(segment, State.of(joined(sessions).entries), state.recorded.carried, details, keep)
        self._called = spending.now()
        answer = self._answer(asked.text)
        quotes = Quotes(segment.entries)
        ended, session = str(payloads[-1].get("period", ("", ""))[1]), _session_of(payloads[-1])
        entries = (entry for one in sessions for entry in one.entries)
        names = Shown([self._redactor.text(asked.shown), *texts_of(entries)])
        by = self._usage.model or self._command.name
        made, kept = checked(answer, names, quotes, model=by, at=ended, session=session)
        with open_route(self._project, self._route) as writer:
            if not {entry.checkpoint_id for entry in writer.context.checkpoint_history} & set(self._names):
                raise NoAnswer("the checkpoint has gone from the route")  # by a revert: nothing of it may come back
            done = handing_over.record(
                self._project, writer, made, kept, answer.ended, quotes=quotes, call=self._call()
            )
        return self.outcome(text=str(done))

    def _answer(self, text: str, wrong: str = "") -> Answer:
        """The answer; once more with what was wrong with it where it cannot be read."""
        told = f"Your last answer could not be read: {trimmed(one_line(wrong), 200)}\nOne JSON object only.\n"
        known = environment.of_a_summarizer(self._command.keeps)
        reply = self._command.ask(self._redactor.text(text + told if wrong else text), schema(), known)
        self._usage = self._usage.with_more(reply.usage)
        if reply.tree is None:
            if reply.is_odd and not wrong:
                return self._answer(text, reply.problem)
            raise NoAnswer(reply.problem, is_settled=reply.is_words)
        try:
            return answer_of(self._redactor.tree(reply.tree))
        except BadAnswer as error:
            if wrong or isinstance(error, Refused):
                raise
            return self._answer(text, str(error))

    def failed(self, reason: str, *, settled: bool = False) -> Refinement:
        """Record why nothing came of it; `settled`: the model is not asked about these checkpoints again."""
        reason = self._redactor.text(reason)  # a program tells which key it was refused for
        with open_route(self._project, self._route) as writer:
            handing_over.record_failure(writer, {**self._call(), "reason": reason, "settled": settled})
        return self.outcome(failure=reason)

    def outcome(self, *, failure: str = "", text: str = "") -> Refinement:
        """What this call came to."""
        took = asdict(self._usage)
        return Refinement(self._route, self._names[-1], self._command.name, failure=failure, text=text, **took)

    def _call(self) -> dict[str, Any]:
        names = {"checkpoints": self._names, "summarizer": self._command.name}
        return {**names, "called": self._called, **asdict(self._usage)}


# ---- what a segment holds ----


def _payloads(project: Project, route: str, names: Sequence[str]) -> list[Mapping[str, Any]]:
    """The records of some checkpoints. NotFound for one that the route does not have."""
    known = {label: one.payload for label, one in history.checkpoints(project, route)}
    for name in names:
        if name not in known:
            raise NotFound(route, f"has no checkpoint {name}", f"ralf show {route}")
    return [known[name] for name in names]


def _session_of(payload: Mapping[str, Any]) -> str:
    return str(payload.get("source", {}).get("session", ""))


def _entries_of(payloads: Sequence[Mapping[str, Any]]) -> list[SessionEntries]:
    """The entries of some checkpoints, by session."""
    found: dict[str, list[Entry]] = {}
    for payload in payloads:
        entries = (from_tree(tree) for tree in payload.get("entries") or () if isinstance(tree, dict))
        found.setdefault(_session_of(payload), []).extend(entry for entry in entries if entry is not None)
    return [SessionEntries(session, tuple(entries)) for session, entries in found.items()]


def _has_substance(segment: Talk) -> bool:
    """Whether a segment holds a message, an edit or a failing check."""
    steps = [entry for entry in segment.entries if isinstance(entry, Step)]
    is_work = any(step.files or (step.checks and step.has_failed) for step in steps)
    return is_work or any(isinstance(entry, Message) for entry in segment.entries)


def _details(project: Project, payloads: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Detail]]:
    """What calls have beyond their entries, by their ids: out of the client's logs, as far as they are still there."""
    redactor = redactor_for(project)
    for payload in payloads:
        source, path = payload.get("source", {}), log_of_session(_session_of(payload))
        if path is None:
            continue
        with suppress(RalfError, OSError):
            start = Position(int(source.get("from_byte", 0)), int(source.get("from_line", 0)))
            to_byte = int(source.get("to_byte", 0))
            events = [event for event in open_transcript(path).events(start) if event.end.byte <= to_byte]
            calls: dict[str, Event] = {}
            for event in redactor.events(events)[0]:
                if event.kind == "call":
                    calls[event.call_id] = event
                elif event.kind == "result" and event.call_id in calls:
                    call = calls.pop(event.call_id)
                    yield call.call_id, detail_of(call.input, call.text, event.text)


# --------------------
# When a model is asked.


def due(context: RouteContext) -> tuple[str, ...]:
    """The checkpoints that a model is to be asked about now, oldest first; () for nothing to ask."""
    names = owed(context)
    entries = [entry for entry in context.checkpoint_history if entry.checkpoint_id in names]
    least = LEAST_AT_END if entries and entries[-1].reason in _ENDS else LEAST
    if sum(entry.tokens for entry in entries) < least:
        return ()
    last = context.handover.last
    is_theirs = last is not None and last.author in ("agent", "person")
    if last is not None and is_theirs and tokens_since(context.checkpoint_history, last.at) < _COVERED:
        return ()
    return names


def tokens_since(entries: Sequence[Checkpoint], at: str) -> int:
    """Tokens of work after a time: of a checkpoint in whose time it lies the share that came after it."""
    found, start = 0.0, ""
    for entry in entries:
        found += entry.tokens * _share(start, at, entry.timestamp)
        start = entry.timestamp or start
    return round(found)


def _share(start: str, at: str, end: str) -> float:
    """Which share of the time from a start to an end comes after a time; all of it where the times do not tell."""
    if end and end <= at:
        return 0.0
    try:
        begin, middle, last = map(datetime.fromisoformat, (start, at, end))
        return 1.0 if middle <= begin else (last - middle) / (last - begin)
    except (ValueError, TypeError, ZeroDivisionError):
        return 1.0


# --------------------
# The detached worker.
#
# Nothing is queued: the journal shows which checkpoints are owed, so the next worker resumes after a crash.


def start(project: Project, route: str) -> str:
    """Start a worker for a route if a model is configured and something is owed it; returns at once.

    Returns why no worker could be started, "" for nothing to say: the next session that starts says that the model is
    switched off (`is_off`).
    """
    try:
        settings = local_config_of(project)
        if not settings.summarizer:
            return ""
        state = load_state(project, route)
        if state is not None and not _off(state.recorded, settings) and due(state.recorded):
            environment.start_detached(__name__, __file__, [str(project.root), route])
    except (RalfError, OSError, NotImplementedError) as error:  # the last: a system without `setsid` in `posix_spawn`
        return str(error)
    return ""


def _off(context: RouteContext, settings: LocalConfig) -> str:
    return spending.switched_off(context.context_checkpoint.spend, settings.summarizer, context.route)


def main(arguments: Sequence[str]) -> None:
    """Ask what is due: `ROOT ROUTE`."""
    root, route = arguments
    os.chdir("/")
    with suppress(RalfError, OSError):  # nobody looks on; what is owed stays owed
        work(project.find(root), route)


def work(project: Project, route: str) -> list[Refinement]:
    """Ask what is due, until nothing is, the model fails too often, or another worker is at it."""
    done: list[Refinement] = []
    settings = local_config_of(project)
    if not settings.summarizer:
        return done
    command = command_of(settings, settings.summarizer)

    def owed_now() -> tuple[str, ...]:
        state = load_state(project, route)
        return due(state.recorded) if state is not None and not _off(state.recorded, settings) else ()

    asked: tuple[str, ...] = ()
    while (names := owed_now()) and names != asked:
        # What falls due while the lock is given back is seen by this loop, or by the worker that then gets the lock.
        with suppress(Busy), locks.locked(project.worker_lock(route), route, timeout=0):
            if owed_now() == names:  # no other worker has asked about them meanwhile
                done.append(refine(project, route, names, command, cap=settings.cap))
        asked = names
    return done


def ask_now(
    project: Project, route: str, command: Command, checkpoints: Sequence[str], *, cap: Cap
) -> list[Refinement]:
    """Have a model hand over what these checkpoints came to, or the newest one that none has, while the caller waits.

    Busy when a worker is at the route for longer than a call may take.
    """
    with locks.locked(project.worker_lock(route), f"{route}: the model's work", timeout=command.timeout):
        state = load_state(project, route)
        entries = state.recorded.checkpoint_history if state is not None else ()
        open_ = [entry.checkpoint_id for entry in entries if not entry.refines]
        wanted = [name for name in checkpoints if name in open_] if checkpoints else open_[-1:]
        return [refine(project, route, wanted, command, cap=cap)] if wanted else []
