"""Compacts a conversation: each completed segment becomes a checkpoint of the route, whose section stands in its place.

segment → checkpoint (redacted, evidence, search) → its section → journal record with the originals (acknowledged)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from ralf import project as projects, routing
from ralf.allocation.shares import COMPACT_AT, Allocation, allocate, compaction_due, outgoing
from ralf.checkpointing.flow import checkpoint
from ralf.checkpointing.section import Summarizer
from ralf.compaction import records
from ralf.compaction.outputs import Outputs
from ralf.compaction.records import Part, Status
from ralf.compaction.rendering import Record
from ralf.compaction.segments import Completed, Segments, segments_of
from ralf.conversation.messages import Count, Message, checked, cost, results
from ralf.conversation.results import store_results
from ralf.conversation.transcript import Conversation
from ralf.conversation.truncation import Pins
from ralf.errors import NotFound, UsageError
from ralf.project import Project
from ralf.refining import refine
from ralf.route import history
from ralf.text import tokens
from ralf.text.cleaning import fenced, one_line, shown, trimmed
from ralf.text.frozen import dataclass, field

Root = str | os.PathLike[str] | None

Why = Literal["", "threshold", "buffer", "manual"]

Placed = tuple[range, Part]
"""The indices of the messages from the first to the last that a part is made of, and the part."""

_HEAD = "## Completed: "  # stands before the title in the first line of what a segment gave way to

_TITLE = 70  # characters

_LINE = 160  # characters of an output that are left where they are: the line in its place is no shorter


@dataclass(frozen=True, slots=True)
class Compaction:
    """A conversation after a look at its window.

    messages   those that stay; the same objects where nothing was done
    why        why the window was to be compacted, "" where it was not
    parts      what gave way in this call
    before     tokens of all messages; `after`: of those that stay
    current    tokens of the current task, which is never changed
    oversized  what to do where those are more than its share of the window, "" else
    status     count and time of the route's compactions
    warnings   what the reader should know
    """

    messages: tuple[Message, ...]
    why: Why
    parts: tuple[Part, ...]
    before: int
    after: int
    current: int
    oversized: str
    status: Status
    warnings: tuple[str, ...] = ()

    @property
    def reduction(self) -> float:
        """The share of all tokens that left, 0 to 1."""
        return 1 - self.after / self.before if self.before else 0.0


def compact(
    messages: Sequence[Message],
    window: int,
    route: str,
    *,
    used: int | None = None,
    completed: Completed | None = None,
    pins: Pins = (),
    mid_turn: bool = False,
    percent: int = COMPACT_AT,
    force: bool = False,
    summarizer: Summarizer | None = None,
    count: Count | None = None,
    root: Root = None,
) -> Compaction:
    """Compact the completed segments of a conversation, if its window is as full as that.

    window     its size in tokens
    route      the route whose checkpoints the segments become
    used       tokens in the window as the model's interface says; None: those of the messages
    completed  the messages that complete a task; None: as `segments_of` tells them
    pins       messages that stay, such as one of memory: see `truncate`
    mid_turn   whether a turn is open: then only tokens in the buffer are a reason
    percent    of the window, from which on it is compacted
    force      compact whatever is used
    summarizer  asked once for each checkpoint: its text stands in the place of a segment; None: the segment's record
    count      how many tokens a text has; None: exactly, by o200k_base

    Pinned messages and those of the current task stay as they are; so does a segment whose record would not be smaller,
    or that JSON cannot hold. Of the summaries that are more than their share of the window the oldest are cut to their
    first lines. Below the mark, of the output of tools in completed segments what is more than its share is stored, the
    oldest first, and a line refers to it. Nothing to do: nothing is written. UsageError for a refused route, window or
    pin, or the name of a model; Busy, Damaged, OSError: then nothing was compacted.
    """
    project = projects.find(root)
    route = routing.check_new(project, route)
    if summarizer is not None and not hasattr(summarizer, "summarize"):
        hint = "for the name of a model: `ralf.checkpoint(ROUTE, TRANSCRIPT, summarizer=NAME)`"
        raise UsageError(f"summarizer {summarizer!r}", "an object with a method `summarize` is expected", hint)
    counted = count if count is not None else tokens.count
    costs = [cost(message, counted) for message in checked(messages)]
    before, shares, parts = sum(costs), allocate(window), segments_of(messages, completed, pins)
    current, full = sum(costs[index] for index in parts.current), max(before, used or 0)
    why: Why = "manual" if force else compaction_due(full, window, percent=percent, mid_turn=mid_turn)
    work = _Work(project, route, messages, costs, counted)
    made, status = list(messages), records.status(project, route)
    planned = work.planned(parts, shares.summaries, summarizer) if why else []
    if planned:
        trees = [{name: getattr(part, name) for name in Part.__slots__} for _, part in planned]
        keys = [part.original["digests"][0] for _, part in planned]
        status = records.append(project, route, "compaction", keys, parts=trees)
        spans = [span for span, _ in planned]
        made = [*_replaced(messages, zip(spans, status.parts, strict=True))]  # as they were recorded first
    elif not why:
        made = work.stored(parts, shares.tool_output)
    known = dict(zip(map(id, messages), costs, strict=True))
    return Compaction(
        tuple(made),
        why,
        status.parts if planned else (),
        before,
        sum(known.get(id(message)) or cost(message, counted) for message in made),
        current,
        _oversized(current, shares, route),
        status,
        tuple(work.warnings),
    )


def undo(messages: Sequence[Message], route: str, *, root: Root = None) -> list[Message]:
    """A conversation with the originals back in the places of what the last compaction put there.

    NotFound where nothing was compacted, or its summaries are not in the conversation; Busy, Damaged, OSError.
    """
    project = projects.find(root)
    last = records.last_compaction(project, route)
    if not last.parts:
        raise NotFound(route, "no compaction to undo", f"ralf context show {route}")
    found = list(messages)
    for part in last.parts:
        original = records.decoded(project, part.original, route)
        there = [*(original[place] for place in part.stays), *part.made]
        starts = (at for at in range(len(found) - len(there) + 1) if found[at : at + len(there)] == there)
        if (start := next(starts, None)) is None:
            raise NotFound(route, f"the summary of {part.title!r} is not in the conversation")
        found[start : start + len(there)] = original
    records.append(project, route, "undo", [])
    return found


def _replaced(messages: Sequence[Message], placed: Iterable[Placed]) -> Iterator[Message]:
    """The messages, with those of each span that stay and those that were made of the others in its place."""
    start = 0
    for span, part in sorted(placed, key=lambda one: one[0].start):
        yield from messages[start : span.start]
        yield from (messages[span[place]] for place in part.stays)
        yield from part.made
        start = span.stop
    yield from messages[start:]


def _oversized(current: int, shares: Allocation, route: str) -> str:
    if current <= shares.active_task:
        return ""
    what = f"the current task has {current:,} tokens, more than its share of {shares.active_task:,}"
    return f'{what}: split it (ralf task split {route} "TITLE" "TITLE"), or hand over'


@dataclass(frozen=True, slots=True)
class _Work:
    """What one compaction does, before it is recorded; arguments as in `compact`, `costs` by message."""

    project: Project
    route: str
    messages: Sequence[Message]
    costs: Sequence[int]
    count: Count
    warnings: list[str] = field(default_factory=list)

    def planned(self, parts: Segments, share: int, summarizer: Summarizer | None) -> list[Placed]:
        """The segments and summaries that give way, each with its span and what stands there then."""
        found = [*self._completed(parts.completed, summarizer)]
        left = sum(self.costs[index] for index in parts.summaries) + sum(part.after for _, part in found) - share
        for index in parts.summaries:
            if left > 0 and not any(index in span for span, _ in found):
                lines = str(self.messages[index]["content"]).split("\n")
                head = [line for line in lines if line.startswith(_HEAD)][:1]
                shorter = [*self._part("shortened", [index], head, "The rest left the window")]
                left -= sum(part.before - part.after for _, part in shorter)
                found += shorter
        return found

    def _completed(self, segments: Sequence[Sequence[int]], summarizer: Summarizer | None) -> Iterator[Placed]:
        """The completed segments, each with the section of its checkpoints, where that is smaller."""
        outputs, sections = Outputs(self.project, self.route), dict[str, list[Mapping[str, Any]]]()
        sessions = list[str]()
        for own in segments:
            source = Conversation([outputs.put_back(self.messages[n]) for n in own], len(own), self.project.root)
            by = Record() if summarizer is None else summarizer
            checkpoint(self.route, source, root=self.project.root, summarizer=by, reason="compaction")
            sessions.append(source.session)
        if sessions and summarizer is None and (problem := refine.start(self.project, self.route)):
            self.warnings.append(problem)
        for _, record in history.checkpoints(self.project, self.route):
            sections.setdefault(record.payload.get("source", {}).get("session", ""), []).append(record.payload)
        for own, session in zip(segments, sessions, strict=True):
            if found := sections.get(session):
                title = trimmed(one_line(found[0]["title"]).strip('"'), _TITLE)
                size = sum(self.costs[index] for index in own)
                foot = f"Sources: {session}, {len(own)} messages, {size:,} tokens; find them"
                yield from self._part("compacted", own, [f"{_HEAD}{title}", *(one["text"] for one in found)], foot)

    def _part(self, kind: str, own: Sequence[int], lines: Sequence[str], foot: str) -> Iterator[Placed]:
        """A part with the place of its messages, if its text is smaller and JSON can hold them."""
        text = "\n".join([*lines, f"{foot}: `ralf context search WORDS --route {self.route}`"])
        made = {"role": "user", "content": fenced(shown(text), short=kind == "shortened")}
        before, after = sum(self.costs[index] for index in own), cost(made, self.count)
        if not lines or after >= before:
            return
        span, title = range(own[0], own[-1] + 1), lines[0].removeprefix(_HEAD)
        try:
            data = records.encoded([dict(self.messages[index]) for index in span])
        except (TypeError, ValueError, RecursionError):
            self.warnings.append(f"{title}: stays: JSON cannot hold its messages")
            return
        original = {"digests": [self.project.store.put_blob([data])], "size": len(data)}
        stays = tuple(place for place, index in enumerate(span) if index not in own)
        yield span, Part(kind, title, before, after, (made,), original, stays)

    def stored(self, parts: Segments, share: int) -> list[Message]:
        """The messages with the oldest outputs of completed segments stored, so that the others fit a share."""
        made, outputs = list(self.messages), Outputs(self.project, self.route)
        found = [index for own in parts.completed for index in own if results(made[index])]
        for index in found[: outgoing([self.costs[index] for index in found], share)]:
            [made[index]] = store_results([made[index]], outputs, over=_LINE)
        if outputs.stored:
            content = {"digests": outputs.stored, "size": 0}  # so that a check and a forget find them
            records.append(self.project, self.route, "rolled", outputs.stored, outputs=[content])
        return made
