"""The loss report of a checkpoint, and the proof that refuses or enlarges what loses too much."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ralf import routing
from ralf.errors import NotFound
from ralf.model import Decision, RouteContext
from ralf.project import Project
from ralf.proof import recall as recalling
from ralf.proof.recall import KINDS, Item, Recall, Words
from ralf.route import history
from ralf.route.fold import entry_of, section_of
from ralf.route.matching import said
from ralf.storage.journal import Digest, Store, has_blob
from ralf.summarize import Segment, Summarizer, Summary
from ralf.text.cleaning import one_line
from ralf.text.patterns import regex
from ralf.transcripts.events import read_evidence

# ---- the loss report ----


@dataclass(frozen=True, slots=True)
class Loss:
    """What became of the items of one kind: every one that occurred is in one of the three counts.

    kept     given back by the checkpoint
    merged   seen again, or said again, and folded into one that was kept
    dropped  not in the checkpoint; its evidence holds them, at `lines` of the session
    """

    kind: str
    kept: int
    merged: int
    dropped: int
    lines: str = ""

    @property
    def total(self) -> int:
        """How many there were."""
        return self.kept + self.merged + self.dropped


class Sums:
    """Adds up what `losses` count."""

    __slots__ = ()
    losses: Sequence[Loss | LossReport]

    @property
    def kept(self) -> int:
        """Items of all kinds that are given back."""
        return sum(loss.kept for loss in self.losses)

    @property
    def merged(self) -> int:
        """Items of all kinds that were folded into kept ones."""
        return sum(loss.merged for loss in self.losses)

    @property
    def dropped(self) -> int:
        """Items of all kinds that only the evidence holds."""
        return sum(loss.dropped for loss in self.losses)


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of a model's answer.

    failure     why nothing came of it, "" when something did
    kept        sentences and items that were believed
    verdicts    how many listed items it kept, reworded, dropped …; `unmentioned`: of which it said nothing
    unborne     sentences that were left out, each with what it names that stands nowhere in the evidence
    refused     what else was not done, and why
    left_alone  changes to what had moved on meanwhile
    """

    summarizer: str
    failure: str = ""
    kept: int = 0
    verdicts: Mapping[str, int] = field(default_factory=dict)
    unborne: tuple[tuple[str, tuple[str, ...]], ...] = ()
    refused: tuple[str, ...] = ()
    left_alone: int = 0


def answered(payload: Mapping[str, Any]) -> Answered:
    """What the record of a model's answer says of it."""
    told = payload.get("answer", {})
    return Answered(
        summarizer=str(payload.get("summarizer", "")),
        failure=str(payload.get("reason", "")),
        kept=int(payload.get("kept", 0)),
        verdicts=told.get("verdicts", {}),
        unborne=tuple((str(sentence), tuple(map(str, missing))) for sentence, missing in told.get("unborne", ())),
        refused=tuple(map(str, told.get("refused", ()))),
        left_alone=int(payload.get("left_alone", 0)),
    )


@dataclass(frozen=True, slots=True)
class LossReport(Sums):
    """What one checkpoint came to.

    tokens, tokens_stored  o200k_base tokens of the segment, and of what it came to
    recall                 share of the probes that the checkpoint's part of the file gives back
    recall_with_search     share that it or its evidence gives back
    added                  what the probe found missing, so that it was added to the section: how many of each kind
    refused                the summariser whose work was refused, and why
    evidence               whether its evidence is still kept
    answer                 what became of the answer of the model that was asked about it last; None where none was
    """

    route: str
    checkpoint_id: str
    summarizer: str
    session: str
    lines: str
    tokens: int
    tokens_stored: int
    recall: float | None
    recall_with_search: float | None
    added: Mapping[str, int]
    refused: str
    evidence: bool
    losses: tuple[Loss, ...]
    answer: Answered | None = None


def account(
    items: Iterable[Item], words: Words, decisions: Sequence[Decision], known: Sequence[Decision]
) -> tuple[Loss, ...]:
    """What became of a segment's items.

    words      what the checkpoint says
    decisions  those that it lists; `known`, the route's active ones before it, into which a repeated one is merged
    """
    kept: Counter[str] = Counter()
    merged: Counter[str] = Counter()
    dropped: dict[str, list[int]] = {kind: [] for kind in KINDS}
    seen: set[tuple[str, str]] = set()
    for item in items:
        if not words.give_back(item):
            dropped[item.kind].append(item.line)
        else:
            counted = merged if item.key in seen or item.kind == "decisions" else kept
            counted[item.kind] += 1
            seen.add(item.key)
    before = set(map(said, known))
    for decision in decisions:  # a sentence became the listed decision, and is merged into it
        counted = merged if said(decision) in before else kept
        counted["decisions"] += 1
    losses = (Loss(kind, kept[kind], merged[kind], len(lines), _ranges(lines)) for kind, lines in dropped.items())
    return tuple(loss for loss in losses if loss.total)


def to_record(losses: Sequence[Loss]) -> dict[str, Any]:
    """Losses as a checkpoint's record holds them: the sums, and by kind what was kept, merged, dropped, and the lines
    of what was dropped.
    """
    return {
        "kept": sum(one.kept for one in losses),
        "dropped": sum(one.dropped for one in losses),
        "loss": {one.kind: [one.kept, one.merged, one.dropped, *filter(None, [one.lines])] for one in losses},
    }


def from_record(payload: Mapping[str, Any]) -> tuple[Loss, ...]:
    """The losses that a checkpoint's record holds."""
    return tuple(
        Loss(kind, int(kept), int(merged), int(dropped), "".join(lines))
        for kind, (kept, merged, dropped, *lines) in payload.get("loss", {}).items()
    )


def loss_reports(route: str, *, at: str | None = None, root: str | os.PathLike[str] | None = None) -> list[LossReport]:
    """What each checkpoint of a route kept, merged and dropped, oldest first.

    at  this checkpoint only: `cp-002` or `2`

    Raises RouteNotFound, NotFound (no such checkpoint), UsageError (a refused name), DamagedJournal.
    """
    project, found = routing.find(route, root)
    wanted = history.label_now(project, route, history.label(at)) if at is not None else None
    payloads: dict[str, Mapping[str, Any]] = {}
    answers: dict[str, Answered] = {}
    for checkpoint_id, record in history.records(project, found):
        if checkpoint_id and record.kind == "checkpoint":
            payloads[checkpoint_id] = record.payload
        elif record.kind in ("refinement", "unrefined") and not record.foreign:
            answers[str(record.payload.get("refines", ""))] = answered(record.payload)
    reports = [
        replace(report(project, found, checkpoint_id, payload), answer=answers.get(checkpoint_id))
        for checkpoint_id, payload in payloads.items()
        if wanted in (None, checkpoint_id)
    ]
    if wanted is not None and not reports:
        raise NotFound(found, f"has no checkpoint {at}", f"ralf context show {found} --loss")
    return reports


def report(project: Project, route: str, checkpoint_id: str, payload: Mapping[str, Any]) -> LossReport:
    """The loss report that a checkpoint's record holds."""
    source = payload.get("source", {})
    digest = str(payload.get("evidence", ""))
    return LossReport(
        route=route,
        checkpoint_id=checkpoint_id,
        summarizer=str(payload.get("summarizer", "")),
        session=str(source.get("session", "")),
        lines=history.lines_of(payload),
        tokens=int(payload.get("tokens", 0)),
        tokens_stored=int(payload.get("tokens_stored", 0)),
        recall=payload.get("recall"),
        recall_with_search=payload.get("recall_with_search"),
        added=payload.get("added", {}),
        refused=str(payload.get("refused", "")),
        evidence=bool(digest) and has_blob(project.store, digest),
        losses=from_record(payload),
    )


def _ranges(lines: Iterable[int]) -> str:
    """Line numbers in few words: `12, 18-22`."""
    parts: list[list[int]] = []
    for line in sorted(set(lines)):
        if parts and line <= parts[-1][1] + 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in parts)


# ---- what a file gives back ----


def recalled(
    context: RouteContext, checkpoint_id: str, items: Sequence[Item], *, kinds: Sequence[str] = recalling.PROBED
) -> Recall:
    """What a route's file gives back of a checkpoint's segment: by its section, and by all that is no history."""
    entry = entry_of(context, checkpoint_id)
    section = section_of(context, entry) if entry is not None else None
    words = recalling.Words.of(section.text if section is not None else "", *_elsewhere(context))
    return recalling.measure(items, words, kinds=kinds)


def _elsewhere(context: RouteContext) -> list[str]:
    """The texts of a route's file but its history."""
    return [context.goal, *recalling.texts((context.active_work, context.facts, *context.decisions), numbers=True)]


# ---- a summary, proved ----


CERTAIN = ("requests", "to-dos", "paths", "failed commands")
"""What is promised whole: each one that is missing is added to the section."""

FLOOR = 0.9
"""Recall below which the numbers that are missing are added, too. Reasons: docs/format.md, "Recall"."""

EMBEDDED = "extractive"
"""The summariser whose work stands where another's is refused."""

# Each looks behind itself: of a run of letters only the beginning is a place to begin at.
_NAMES = regex(r"(?<![A-Za-z0-9])[A-Za-z0-9]++(?:[_./:-][A-Za-z0-9]++)+|(?<![a-z])[a-z]++[A-Z]\w+|\d{3,}")

_LONGEST = 200  # characters of an item that is added

_MOST = 30  # items of one kind that are added

_ADDED = {
    "requests": "Also asked",
    "to-dos": "Also on the list",
    "paths": "Also read or edited",
    "failed commands": "Also failed",
}


@dataclass(frozen=True, slots=True)
class Proved:
    """A summary that was accepted.

    words    all that the checkpoint will say in the route file
    recall   what those give back of the segment
    added    how many items of each kind the probe found missing, so that they were added to the section
    refused  the summariser whose work was refused, and why; "" where none was
    """

    summary: Summary
    words: Words
    recall: Recall
    added: Mapping[str, int]
    refused: str = ""


def summed_up(segment: Segment, summarizer: Summarizer, items: Sequence[Item]) -> Proved:
    """What the summariser makes of the segment; what the embedded one makes of it, where that one's loses too much.

    items  what the segment holds, by `items.seen`
    """
    summary, refused = summarizer.summarize(segment), ""
    if summarizer.name != EMBEDDED:
        from ralf.summarize.extractive import Extractive

        own = Extractive().summarize(segment)
        reason = refusal(own, summary, items)
        if reason:
            summary, refused = own, f"{summarizer.name}: {reason}"
    missing = [decision for decision in segment.noted if decision not in summary.decisions]
    if missing:
        summary = replace(summary, decisions=(*summary.decisions, *missing))
    words = Words.of(segment.facts, *_parts(summary))
    recall = recalling.measure(items, words)
    added = _to_add(recall)
    if added:
        lines = [f"- **{_ADDED[kind]}:** {'; '.join(texts)}" for kind, texts in added.items()]
        summary = replace(summary, text="\n".join([summary.text, *lines]))
        words = Words.of(segment.facts, *_parts(summary))
        recall = recalling.measure(items, words)
    return Proved(summary, words, recall, {kind: len(texts) for kind, texts in added.items()}, refused)


def refusal(own: Summary, other: Summary, items: Sequence[Item]) -> str:
    """Why `other` must not take the place of `own`, the embedded summary of the same segment; "" where it may.

    Looked for are the decisions and open to-dos that `own` lists, the numbers and names to which the segment comes back
    (`items`, by `items.seen`), and the names that the section of `own` tells.
    """
    wanted = [item for item in items if item.kind in ("numbers", "names")]
    wanted += [Item("decisions", decision.decision, 0) for decision in own.decisions]
    wanted += [Item("to-dos", todo.content, 0) for todo in own.active_work.todos if todo.status != "completed"]
    wanted += [Item("names told", name, 0) for name in _NAMES.findall(own.text)]
    return recalling.refuse(_given_back(own, wanted), _given_back(other, wanted))


def with_search(store: Store, digest: Digest, recall: Recall) -> float | None:
    """The share that the checkpoint or, for what it does not give back, its evidence holds, as search will read it."""
    asked = sum(recall.asked.values())
    if not asked:
        return None
    lines: dict[int, list[str]] = {}
    if recall.missing:
        for line in read_evidence(store, digest, {item.line for item in recall.missing}):
            lines.setdefault(line.line, []).append(one_line(line.text))
    found = ((recalling.beginning(item.text), lines.get(item.line, ())) for item in recall.missing)
    held = sum(any(beginning in text for text in texts) for beginning, texts in found)
    return 100 * (asked - len(recall.missing) + held) // asked / 100


def _parts(summary: Summary) -> tuple[object, ...]:
    return summary.title, summary.text, summary.key_events, summary.decisions, summary.active_work


def _given_back(summary: Summary, wanted: Sequence[Item]) -> Recall:
    """What a summary by itself gives back; a decision counts where it is listed as one, each for one."""
    decided = recalling.measure(wanted, Words.of(summary.decisions), kinds=("decisions",))
    listed = min(decided.found.get("decisions", 0), len(summary.decisions))
    rest = recalling.measure(wanted, Words.of(*_parts(summary)), kinds=("to-dos", "numbers", "names", "names told"))
    missing = (*decided.missing, *rest.missing)
    return Recall({**decided.asked, **rest.asked}, {"decisions": listed, **rest.found}, missing)


def _to_add(recall: Recall) -> dict[str, list[str]]:
    """The words of what has to be added to the section, by kind."""
    low = recall.share is not None and recall.share < FLOOR
    found: dict[str, list[str]] = {}
    for item in recall.missing:
        texts = found.setdefault(item.kind, [])
        if (item.kind in CERTAIN or (low and item.kind in _ADDED)) and len(texts) < _MOST:
            text = one_line(item.text)
            texts.append(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
    return {kind: texts for kind, texts in found.items() if texts}
