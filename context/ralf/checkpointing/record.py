"""Builds a checkpoint's record from one segment of a transcript.

segment → redact → facts + summary → probe → evidence blob → payload
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ralf import config
from ralf.checkpointing.due import Piece
from ralf.errors import BlobNotFound, DamagedBlob, TranscriptChanged
from ralf.facts import facts, handover as handovers, pasted, progress
from ralf.facts.errors import named_errors, telling_errors
from ralf.facts.facts import Extracted
from ralf.format.codec import dump_yaml, to_tree
from ralf.model import ActiveWork, Attempt, HandOver, RouteContext
from ralf.project import Project
from ralf.proof import loss, recall
from ralf.redact import redactor_for
from ralf.route import cap, history, offsets
from ralf.route.offsets import IngestOffset
from ralf.summarize import Segment, Summarizer, Summary
from ralf.summarize.english import is_errand_request, is_question
from ralf.text import tokens
from ralf.text.cleaning import one_line, trimmed
from ralf.text.matcher import AnyOf
from ralf.text.patterns import regex
from ralf.text.sentences import promised, sentences, split
from ralf.transcripts.events import Event, keep_evidence, read_evidence
from ralf.transcripts.lines import Fingerprint
from ralf.transcripts.reader import Transcript

GOAL_FROM = 25

GOAL_TO = 2_000

_MOST_EVIDENCE = 6  # segments of the session that a summary is held against

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
            **_goal(piece.events, context, extracted),
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
            **self._handed_over(piece, offset.session),
            **_before_handover(piece, offset.session, context.handover),
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

    def _handed_over(self, piece: Piece, session: str) -> dict[str, Any]:
        """What the client's own summary of its window hands over, held against what the session said before it."""
        found = [number for number, event in enumerate(piece.events) if event.kind == "compaction" and event.text]
        handover = handovers.of_compaction(piece.events[found[-1]].text) if found else None
        if handover is None or self.source.origin == "import":
            return {}
        place = found[-1]
        before = [event.text for event in piece.events[:place] if event.kind != "compaction"]
        for digest in history.evidence_of(self.project, self.route, session)[-_MOST_EVIDENCE:]:
            with suppress(BlobNotFound, DamagedBlob):
                before += [line.text for line in read_evidence(self.project.store, digest)]
        handover = handovers.verified(handover, before)
        when = piece.events[place].timestamp
        tokens_before = sum(tokens.estimate(event.text) for event in piece.events[:place] if event.kind != "compaction")
        made = replace(handover, timestamp=when, session=session, tokens=min(tokens_before, piece.tokens))
        return {"handover": to_tree(made)} if made else {}

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
            work=_work_of(context, offset.session),
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


def _before_handover(piece: Piece, session: str, handover: HandOver | None) -> dict[str, int]:
    """How many tokens of a segment came before the hand-over that its agent has recorded by itself: no work after it.

    One of another session knows nothing of this one.
    """
    if handover is None or handover.author not in ("agent", "user") or handover.session not in ("", session):
        return {}
    earlier = (event for event in piece.events if event.timestamp and event.timestamp <= handover.timestamp)
    count = min(piece.tokens, sum(tokens.estimate(event.text) for event in earlier if event.kind != "compaction"))
    return {"before_handover": count} if count else {}


def _period(events: Sequence[Event]) -> list[str]:
    times = [event.timestamp for event in events if event.timestamp]
    return [times[0], times[-1]] if times else ["", ""]


def _work_of(context: RouteContext, session: str) -> ActiveWork:
    """The work so far; what the session before has committed is told among the facts alone."""
    work, history = context.active_work, context.checkpoint_history
    if not work.git.commits or (history and history[-1].session == session):
        return work
    return replace(work, git=replace(work.git, commits=()))


def _without_work(event: Event) -> Event:
    """A note of a run after which others came: where it left the work is not where it stands."""
    if event.kind != "note" or "work" not in event.input:
        return event
    return replace(event, input={key: value for key, value in event.input.items() if key != "work"})


_ANSWER = AnyOf(r"(?:y|yes|yep|yeah|no|nope|ok(?:ay)?|sure|option|[0-9a-e])\b(?:[^\w,][^,]{0,12})?$")

_BEGINS = AnyOf(
    r"^(?:(?:ok(?:ay)?|so|now|and|then|hi|hey|hello|help|please|yes|yeah|well|next|first|alright|great|cool)\b"
    r"[ ,.!:\u2014-]{0,4}){0,4}+"
    r"(?:(?:can|could|would|will) (?:you|we) |please |let['\u2019]?s |let us "
    r"|i(?:['\u2019]d| would)? (?:want|like|need|love)(?: you)? to "
    r"|we (?:need to|have to|should|want to) |help me |go ahead and ){0,3}+"
    r"(?:add|analy[sz]e|brainstorm|build|carry|clean up|convert|create|debug|design|document|explore|extend|finish"
    r"|fix|implement|improve|integrate|investigate|look into|make|migrate|move (?:on )?to|optimi[sz]e|plan|port|publish"
    r"|rebase|redesign|refactor|release|remove|rename|replace|resolve|review|rewrite|set up|speed up|split|start"
    r"|support|tackle|upgrade|work on|write)\b",
)

_SUBJECT = regex(
    r"(?i:\b(?:PR|MR|pull request|issue|ticket)s? ?#?\d+|(?<!\w)#\d+|\b[A-Z]{2,10}-\d+\b|`[^`\n]+`|\b\w[\w-]{0,60}/\w"
    r"|\b\w+\.[a-z]{2,4}\b)|[a-z][A-Z]|\w_\w",
)

_ASKS_WHAT_TO_DO = AnyOf(r"^\W{0,4}(?:\w+,? ){0,3}?(?:what|how|where) (?:should|shall|do|can|would) (?:we|i|you)\b")

_TELLING = 60  # characters from which an order names its subject in words


def _names_subject(text: str) -> bool:
    """Whether a request says by itself what the work is about: an order with something that it is about. An answer, a
    pasted log and an errand say it of what stands before them.
    """
    own = pasted.own(text).strip()
    if len(own) < max(GOAL_FROM, len(text.strip()) // 2) or text.startswith("/") or config.is_all(text):
        return False
    first = split(one_line(own))[:2]
    begins = any(
        (_BEGINS(one) and not _ANSWER.match(one) and not is_errand_request(one)) or _ASKS_WHAT_TO_DO(one)
        for one in first
    )
    return begins and (bool(_SUBJECT.search(own)) or (len(own) >= _TELLING and not is_question(own)))


_SHOWN = "fix what was pasted: "  # how the goal begins where a person pasted a failure, and wrote nothing


def _shown_to_fix(text: str) -> str:
    """Of a request that is nothing but the output of a program what is to be fixed: the line that names what failed,
    and the one that says where and how; else "".
    """
    own = [line for line in pasted.own(text).splitlines() if line.strip()]
    if "\n" not in text or len(named_errors("\n".join(own), len(own))) < len(own):
        return ""
    told = dict.fromkeys([*named_errors(text, 1), *telling_errors(text, 1)])
    return _SHOWN + ": ".join(told) if told else ""


def _goal(events: Sequence[Event], context: RouteContext, extracted: Extracted) -> dict[str, str]:
    """What the work is about now: the newest request that names a subject, or, of one that is pasted output alone, the
    error in it; and what it began as, where that is another.
    Where nothing is known yet, the first request that says something, else the task's title, also one that notes tell.
    """
    texts = [event.text.strip() for event in events if event.kind == "user"]
    subjects = (text if _names_subject(text) else _shown_to_fix(text) for text in reversed(texts))
    named = next(filter(None, subjects), "")
    if context.goal:
        return {"goal": _within(named)}
    told = (text for text in texts if not (text.startswith("/") or config.is_all(text)))
    first = next((text for text in told if len(text) >= GOAL_FROM), "")
    if not first:
        noted = any(event.kind == "note" for event in events)
        return {"goal": context.active_work.task_title or (extracted.work.task_title if noted else "")}
    goal, began = named or first, _short_first(events) or first
    return {"goal": _within(goal)} | ({"began_as": _within(began)} if began != goal else {})


_QUESTION = 140  # characters of the question that a first request answers


def _short_first(events: Sequence[Event]) -> str:
    """The first request of all, where it is short and yet an order, or the answer to a question, with that; else ""."""
    asked = ""
    for event in events:
        text = event.text.strip()
        if event.kind == "assistant":
            asked = next((one.text for one in reversed(sentences(text)) if is_question(one.text)), "")
        elif event.kind == "user" and text and not (text.startswith("/") or config.is_all(text)):
            if len(text) >= GOAL_FROM or _ANSWER.match(text) or not (asked or _BEGINS(text)):
                return ""
            return f"{text} (to: {trimmed(asked, _QUESTION)})" if asked else text
    return ""


def _within(text: str) -> str:
    return text if len(text) <= GOAL_TO else text[: GOAL_TO - 1].rstrip() + "…"
