"""Builds a checkpoint's record from one segment of a transcript.

segment → redact → entries → work + facts + summary → evidence blob → payload
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ralf import config
from ralf.brief.work import work_of
from ralf.checkpointing.due import Piece
from ralf.checkpointing.section import Extractive, Segment, Summarizer, Summary, beginning
from ralf.document.tree import to_tree
from ralf.document.yaml_text import dump
from ralf.errors import TranscriptChanged
from ralf.facts import noted, progress
from ralf.facts.facts import facts_of
from ralf.model import ActiveWork, Attempt, Decision, Facts, RouteContext
from ralf.model.entries import Entry, Mark, SessionEntries, to_tree as to_entry_tree
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import offsets
from ralf.route.entries import sessions_of
from ralf.route.offsets import IngestOffset
from ralf.routing import task_named
from ralf.storage import git_files
from ralf.talk.names import Shown
from ralf.talk.recording import Recording
from ralf.talk.turns import joined
from ralf.text import tokens
from ralf.text.cleaning import one_line, trimmed
from ralf.text.sentences import promised
from ralf.transcripts.events import Event, keep_evidence
from ralf.transcripts.lines import Fingerprint
from ralf.transcripts.reader import Transcript

GOAL_TO = 2_000

_SAID = 240  # characters of the line that says what came of a run


@dataclass(frozen=True, slots=True)
class _Extracted:
    """What a segment came to.

    entries    by the client's records
    facts      of the segment; `retracted`: of earlier ones, which were taken back by rewinding in it
    taken_back  how the lines of messages begin that stand in earlier sections, and were taken back so
    work       where the work stands after it
    decisions  those in the fields of notes
    pending    calls that have no result yet
    """

    entries: list[Entry]
    facts: Facts
    retracted: Facts
    taken_back: tuple[str, ...]
    work: ActiveWork
    decisions: tuple[Decision, ...]
    pending: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class RecordBuilder:
    """Builds the records of one transcript's segments.

    reason      why the checkpoints are made
    agent_type  written into a new route
    keep        what the user wants to be kept
    """

    project: Project
    route: str
    source: Transcript
    summarizer: Summarizer
    reason: str
    agent_type: str
    keep: tuple[str, ...]

    def build_record(
        self,
        piece: Piece,
        offset: IngestOffset,
        context: RouteContext,
        following: Sequence[Event] = (),
        run: Attempt | None = None,
    ) -> tuple[dict[str, Any], IngestOffset]:
        """Store a segment's evidence; return its record's payload and the session's offset after it.

        offset     the session's offset before
        context    the route before
        following  the first events of the next segment, where there is one: for a secret that the border cuts in two
        run        the run of a loop that the record is to tell of

        Raises TranscriptChanged where the transcript shrank meanwhile.
        """
        redactor = redactor_for(self.project)
        if self.source.attempt is not None and not progress.is_newest(context.active_work, self.source.attempt):
            piece = replace(piece, events=tuple(map(_without_work, piece.events)))
        notes = [redactor.digest(event.text) for event in piece.events] if self.source.rewritten else []
        events, tails = redactor.events(piece.events, tails=offset.tails, following=following)
        piece = replace(piece, events=tuple(events))
        extracted = self._extracted(piece, offset, context)
        segment = self._segment(piece, offset, context, extracted)
        summary = summed_up(segment, self.summarizer)
        digest = keep_evidence(self.project.store, piece.events)
        mark = (
            self.source.mark(piece.end)
            if not notes
            else Fingerprint("", hashlib.sha256("".join(notes).encode()).hexdigest())
        )
        if mark is None:
            raise TranscriptChanged(self.source.path, "shrank while it was read", "try again")
        pending = tuple(offsets.pending_tree(event) for event in extracted.pending)
        kept = {
            "title": summary.title,
            "text": summary.text,
            "key_events": list(summary.key_events),
            "decisions": [to_tree(decision) for decision in summary.decisions],
            "facts": to_tree(extracted.facts),
        }
        retracted = to_tree(extracted.retracted)
        payload: dict[str, Any] = {
            "source": {
                "session": offset.session,
                "from_byte": piece.start.byte,
                "to_byte": piece.end.byte,
                "from_line": piece.start.line,
                "to_line": piece.end.line,
                "head": mark.head,
                "tail": mark.tail,
            },
            "period": _period(piece.events),
            "tokens": piece.tokens,
            "reason": self.reason,
            "summarizer": self.summarizer.name,
            **kept,
            "active_work": to_tree(replace(summary.active_work, last_runs=())),
            "agent_type": self.agent_type,
            **_goal(piece.events, context, extracted),
            "tokens_stored": tokens.count(dump(kept)),
            "entries": [to_entry_tree(entry) for entry in extracted.entries],
            **({"retracted": retracted} if retracted else {}),
            **({"taken_back": list(extracted.taken_back)} if extracted.taken_back else {}),
            **({"in_project": True} if _is_in(self.source.cwd, self.project.root) else {}),
            "evidence": digest,
            "pending": list(pending),
            **({"origin": "import"} if self.source.origin == "import" else {}),
            **({"tails": tails} if tails else {}),
            **({"keep": list(self.keep)} if self.keep else {}),
        }
        if self.source.origin == "import":  # nobody said it: it stood in a file
            payload |= {"origin": "import", "goal_origin": "import"}
            payload["active_work"] = {**payload["active_work"], "origin": "import"}
        # Once more: a summariser may have put together what stood apart. Entries are parts of events.
        entries = payload.pop("entries")
        made = {**redactor.tree(payload), "entries": entries}
        if notes:
            made["source"]["notes"] = notes
        if run is not None:
            made["attempt"] = progress.run_tree(self._told(run, piece.events), redactor)
        return made, IngestOffset(offset.session, piece.end, mark.head, mark.tail, pending, tails)

    def _told(self, run: Attempt, events: Sequence[Event]) -> Attempt:
        """A run with what a client's session says of its end; one that has told it itself is as it is."""
        if self.source.attempt is not None:
            return run
        said = [event.text for event in events if event.kind == "assistant" and event.text.strip()]
        when = next((event.timestamp for event in reversed(events) if event.timestamp), "")
        last = trimmed(one_line(said[-1]), _SAID) if said else ""
        return replace(run, outcome=promised("\n".join(said)), timestamp=when, said=last)

    def _extracted(self, piece: Piece, offset: IngestOffset, context: RouteContext) -> _Extracted:
        base = redactor_for(self.project).text(self.source.cwd)
        known = sessions_of(self.project, self.route)
        of_session = next((one.entries for one in known if one.session == offset.session), ())
        entries = self._entries(piece, offset, of_session, base)
        before, own = joined(known), joined([SessionEntries(offset.session, tuple(entries))])
        others = (one for one in known if one.session != offset.session)
        talk = joined([*others, SessionEntries(offset.session, (*of_session, *entries))])
        unsolved = [error for error in context.facts.errors if not error.fixed_by]
        notes = [event for event in piece.events if event.kind == "note"]
        found = facts_of(own.entries, unsolved, notes, base)
        known_back = {message.id for message, _ in (*before.taken_back, *own.taken_back)}
        back = [message for message, _ in talk.taken_back if message.id not in known_back]
        return _Extracted(
            entries,
            found,
            progress.without(facts_of(before.entries), facts_of(talk.entries)) if back else Facts(),
            tuple(map(beginning, back)),
            work_of(self._work(piece, context), talk) if entries else self._work(piece, context),
            noted.decisions(piece.events, offset.session, self.source.origin),
            _unanswered([*map(offsets.pending_event, offset.pending), *piece.events]),
        )

    def _work(self, piece: Piece, context: RouteContext) -> ActiveWork:
        """The work before a segment, with its task, and with what its notes say of it."""
        work = context.active_work
        first = next((event.text for event in piece.events if event.kind == "user"), "")
        if not work.current_task and (task := task_named(first)):
            work = replace(work, current_task=task)
        for event in piece.events:
            work = noted.work(event, work) if event.kind == "note" else work
        return work

    def _entries(self, piece: Piece, offset: IngestOffset, known: Sequence[Entry], base: str) -> list[Entry]:
        """What the segment came to, by the client's records; with the calls before it that have no result yet."""
        before = [entry for entry in known if isinstance(entry, Mark)]
        items = next((mark.items for mark in reversed(before) if mark.kind == "todos"), ())
        branch = next((mark.value for mark in reversed(before) if mark.kind == "branch"), "")
        checks = frozenset(config.of(self.project).checks)
        recording = Recording(base, offset.session, items=items, branch=branch, checks=checks)
        if not branch and self.source.branch:
            recording.stands_on(redactor_for(self.project).text(self.source.branch), piece.events[0])
        for event in (*map(offsets.pending_event, offset.pending), *piece.events):
            recording.take(event)
        return recording.all()

    def _segment(self, piece: Piece, offset: IngestOffset, context: RouteContext, extracted: _Extracted) -> Segment:
        return Segment(
            session=offset.session,
            events=piece.events,
            facts=extracted.facts,
            tokens=piece.tokens,
            decisions=[decision for decision in context.decisions if decision.status == "active"],
            active_work=extracted.work,
            keep=self.keep,
            noted=extracted.decisions,
            entries=extracted.entries,
        )


def summed_up(segment: Segment, summarizer: Summarizer) -> Summary:
    """What a summariser makes of a segment, with the decisions in fields of its notes. What another than the embedded
    one names must stand in the segment: a line with a name that does not is marked.
    """
    summary = summarizer.summarize(segment)
    noted = [decision for decision in segment.noted if decision not in summary.decisions]
    if summarizer.name != Extractive.name:
        shown = Shown([event.text for event in segment.events])
        summary = replace(
            summary,
            text="\n".join(marked(line, shown) for line in summary.text.split("\n")),
            decisions=tuple(replace(one, decision=marked(one.decision, shown)) for one in summary.decisions),
        )
    return replace(summary, decisions=(*summary.decisions, *noted))


def marked(line: str, shown: Shown) -> str:
    """A line of a model's, with the names in it that the record does not show."""
    missing = ", ".join(shown.missing(line))
    return f"{line} (not found in the record: {missing})" if missing else line


def _unanswered(events: Sequence[Event]) -> tuple[Event, ...]:
    """The calls among some events that have no result."""
    results = {event.call_id for event in events if event.kind == "result"}  # some logs have one before its call
    return tuple(event for event in events if event.kind == "call" and event.call_id not in results)


def _is_in(cwd: str, root: Path) -> bool:
    """Whether a session's folder lies in the repository of a project, and is there."""
    top = git_files.worktree(root) if cwd and os.path.isdir(cwd) else None  # noqa: PTH112
    return top is not None and git_files.worktree(Path(cwd)) == top


def _period(events: Sequence[Event]) -> list[str]:
    times = [event.timestamp for event in events if event.timestamp]
    return [times[0], times[-1]] if times else ["", ""]


def _without_work(event: Event) -> Event:
    """A note of a run after which others came: where it left the work is not where it stands."""
    if event.kind != "note" or "work" not in event.input:
        return event
    return replace(event, input={key: value for key, value in event.input.items() if key != "work"})


def _goal(events: Sequence[Event], context: RouteContext, extracted: _Extracted) -> dict[str, str]:
    """The task's title, where the route has no goal, and the first message, where the route knows none."""
    found: dict[str, str] = {}
    if not context.goal:
        noted = any(event.kind == "note" for event in events)
        found["goal"] = context.active_work.task_title or (extracted.work.task_title if noted else "")
    if not context.began_as:
        first = next((event.text.strip() for event in events if event.kind == "user" and event.text.strip()), "")
        found["began_as"] = _within(first)
    return {key: text for key, text in found.items() if text}


def _within(text: str) -> str:
    return text if len(text) <= GOAL_TO else text[: GOAL_TO - 1].rstrip() + "…"
