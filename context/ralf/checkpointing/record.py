"""Builds a checkpoint's record from one segment of a transcript.

segment → redact → facts + summary → probe → evidence blob → payload
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ralf import config
from ralf.checkpointing.due import Piece
from ralf.errors import TranscriptChanged
from ralf.facts import facts, progress
from ralf.facts.facts import Extracted
from ralf.format.codec import dump_yaml, to_tree
from ralf.model import Attempt, RouteContext
from ralf.project import Project
from ralf.proof import loss, recall
from ralf.redact import redactor_for
from ralf.route import cap, offsets
from ralf.route.offsets import IngestOffset
from ralf.summarize import Segment, Summarizer, Summary
from ralf.text import tokens
from ralf.text.cleaning import one_line, trimmed
from ralf.text.sentences import promised
from ralf.transcripts.events import Event, keep_evidence
from ralf.transcripts.lines import Fingerprint
from ralf.transcripts.reader import Transcript

GOAL_FROM = 25

GOAL_TO = 2_000

_SAID = 240  # characters of the line that says what came of a run

_SAID_ALIKE = 40  # characters by which a statement is found again


@dataclass(frozen=True, slots=True)
class RecordBuilder:
    """Builds the records of one transcript's segments.

    reason      why the checkpoints are made
    agent_type  written into a new route
    keep        what the user wants to be kept
    """

    project: Project
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
        seen = recall.seen(piece.events)
        proved = loss.summed_up(segment, self.summarizer, seen)
        digest = keep_evidence(self.project.store, piece.events)
        mark = (
            self.source.mark(piece.end)
            if not notes
            else Fingerprint("", hashlib.sha256("".join(notes).encode()).hexdigest())
        )
        if mark is None:
            raise TranscriptChanged(self.source.path, "shrank while it was read", "try again")
        pending = tuple(offsets.pending_tree(event) for event in extracted.pending)
        asked = offsets.asked_tree(piece.events)
        kept = {
            "title": proved.summary.title,
            "text": proved.summary.text,
            "key_events": list(proved.summary.key_events),
            "decisions": [to_tree(decision) for decision in proved.summary.decisions],
            "facts": to_tree(extracted.facts),
        }
        payload = {
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
            "summarizer": self.summarizer.name if not proved.refused else loss.EMBEDDED,
            **kept,
            "active_work": to_tree(replace(proved.summary.active_work, last_runs=())),
            "agent_type": self.agent_type,
            "goal": "" if context.goal else _goal(piece.events, context, extracted),
            "recall": proved.recall.share,
            "recall_with_search": loss.with_search(self.project.store, digest, proved.recall),
            "added": proved.added,
            "refused": proved.refused,
            **loss.to_record(loss.account(seen, proved.words, proved.summary.decisions, segment.decisions)),
            "tokens_stored": tokens.count(dump_yaml(kept)),
            "evidence": digest,
            "pending": list(pending),
            **({"origin": "import"} if self.source.origin == "import" else {}),
            **({"asked": asked} if asked else {}),
            **({"tails": tails} if tails else {}),
            **({"keep": list(self.keep)} if self.keep else {}),
        }
        if self.source.origin == "import":  # nobody said it: it stood in a file
            payload |= {"origin": "import", "goal_origin": "import"}
            payload["active_work"] = {**payload["active_work"], "origin": "import"}
        # Once more as a whole: a summariser may have put together what stood apart.
        made = redactor.tree(payload)
        if notes:
            made["source"]["notes"] = notes
        if run is not None:
            made["attempt"] = progress.run_tree(self._told(run, piece.events, proved.summary), redactor)
        return made, IngestOffset(offset.session, piece.end, mark.head, mark.tail, pending, asked, tails)

    def _told(self, run: Attempt, events: Sequence[Event], summary: Summary) -> Attempt:
        """A run with what a client's session says of its end; one that has told it itself is as it is."""
        if self.source.attempt is not None:
            return run
        said = [event.text for event in events if event.kind == "assistant"]
        when = next((event.timestamp for event in reversed(events) if event.timestamp), "")
        last = one_line(summary.active_work.last_statement)
        if last[:_SAID_ALIKE] not in one_line(
            "\n".join(said)
        ):  # of the session before: this one has said nothing like it
            last = one_line(said[-1]) if said else ""
        return replace(run, outcome=promised("\n".join(said)), timestamp=when, said=trimmed(last, _SAID))

    def _extracted(self, piece: Piece, offset: IngestOffset, context: RouteContext) -> Extracted:
        return facts.extract(
            piece.events,
            base=redactor_for(self.project).text(self.source.cwd),
            work=context.active_work,
            pending=[offsets.pending_event(tree) for tree in offset.pending],
            unsolved=[error for error in context.facts.errors if not error.fixed_by],
            session=offset.session,
            origin=self.source.origin,
        )

    def _segment(self, piece: Piece, offset: IngestOffset, context: RouteContext, extracted: Extracted) -> Segment:
        return Segment(
            session=offset.session,
            events=piece.events,
            facts=extracted.facts,
            tokens=piece.tokens,
            decisions=[decision for decision in context.decisions if decision.status == "active"],
            active_work=extracted.work,
            keep=self.keep,
            before=[offsets.asked_event(offset.asked)] if offset.asked else (),
            dropped=cap.of(context),
            noted=extracted.decisions,
        )


def _period(events: Sequence[Event]) -> list[str]:
    times = [event.timestamp for event in events if event.timestamp]
    return [times[0], times[-1]] if times else ["", ""]


def _without_work(event: Event) -> Event:
    """A note of a run after which others came: where it left the work is not where it stands."""
    if event.kind != "note" or "work" not in event.input:
        return event
    return replace(event, input={key: value for key, value in event.input.items() if key != "work"})


def _goal(events: Sequence[Event], context: RouteContext, extracted: Extracted) -> str:
    """The first request that says something, else the task's title, also one that notes tell."""
    for event in events:
        text = event.text.strip()
        if event.kind == "user" and len(text) >= GOAL_FROM and not (text.startswith("/") or config.is_all(text)):
            return text if len(text) <= GOAL_TO else text[: GOAL_TO - 1].rstrip() + "…"
    noted = any(event.kind == "note" for event in events)
    return context.active_work.task_title or (extracted.work.task_title if noted else "")
