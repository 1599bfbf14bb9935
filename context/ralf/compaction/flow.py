"""Compacts a conversation: each completed segment becomes a checkpoint of the route, and its record stands in its
place.

segment → redacted → rendered → checkpoint (evidence, search) → journal record with the originals (acknowledged)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from ralf import project as projects, routing
from ralf.allocation.shares import COMPACT_AT, Allocation, allocate, compaction_due
from ralf.checkpointing.flow import checkpoint
from ralf.checkpointing.section import Segment, Summarizer, Summary
from ralf.compaction import records
from ralf.compaction.outputs import Outputs, put_back, rolled
from ralf.compaction.records import Part, Status
from ralf.compaction.rendering import HEAD, of_model, of_record
from ralf.compaction.segments import Completed, Segments, segments_of
from ralf.conversation.messages import TOO_DEEP, Count, Message, checked, cost
from ralf.conversation.summary import redacted, transcript_of
from ralf.conversation.truncation import Pins
from ralf.errors import NotFound, RalfError
from ralf.project import Project
from ralf.text import tokens
from ralf.text.cleaning import fenced, shown
from ralf.text.frozen import dataclass, field
from ralf.transcripts.chat import events_of

Root = str | os.PathLike[str] | None

Why = Literal["", "threshold", "buffer", "manual"]


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
    summarizer: Summarizer | str | None = None,
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
    summarizer, count  see `ralf.conversation.summary.summarize`; the text of one that is an object stands in the place
               of a segment, and what was recorded of it where there is none

    Pinned messages and those of the current task stay as they are; so does a segment whose record would not be smaller,
    or that JSON cannot hold. Of the summaries that are more than their share of the window the oldest are cut to their
    first lines. Below the mark, of the output of tools in completed segments what is more than its share is stored, the
    oldest first, and a line refers to it. Nothing to do: nothing is written. UsageError for a refused route, window or
    pin; Busy, Damaged, OSError: then nothing was compacted.
    """
    project = projects.find(root)
    route = routing.check_new(project, route)
    counted = count if count is not None else tokens.count
    costs = [cost(message, counted) for message in checked(messages)]
    before, shares, parts = sum(costs), allocate(window), segments_of(messages, completed, pins)
    current, full = sum(costs[index] for index in parts.current), max(before, used or 0)
    why: Why = "manual" if force else compaction_due(full, window, percent=percent, mid_turn=mid_turn)
    made, after, status, warnings = tuple(messages), before, None, list[str]()
    if not why:
        rest = rolled(messages, parts, costs, shares.tool_output, Outputs(project, route))
        if rest is not None:
            made, after = tuple(rest), sum(cost(message, counted) for message in rest)
    else:
        work = _Work(project, route, messages, costs, counted, summarizer)
        planned = work.planned(parts, shares.summaries)
        warnings = work.warnings
        if planned:
            after += sum(part.after - part.before for _, part in planned)
            status = records.append_compaction(project, route, [part for _, part in planned], before, after)
            first = {part.key: part for part in status.parts}  # as they were recorded first
            made = tuple(_replaced(messages, [(span, first[part.key]) for span, part in planned]))
    return Compaction(
        made,
        why,
        status.parts if status is not None else (),
        before,
        after,
        current,
        _oversized(current, shares, route),
        status or records.status(project, route),
        tuple(warnings),
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
    records.append_note(project, route, "undo", of=last.last_compacted)
    return found


def _replaced(messages: Sequence[Message], placed: Iterable[tuple[range, Part]]) -> Iterator[Message]:
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


class _Heard:
    """A summariser that keeps what it gave."""

    def __init__(self, asked: Summarizer) -> None:
        self.name = asked.name
        self.summaries: list[Summary] = []
        self._asked = asked

    def summarize(self, segment: Segment) -> Summary:
        """See `Summarizer`."""
        self.summaries.append(self._asked.summarize(segment))
        return self.summaries[-1]


@dataclass(frozen=True, slots=True)
class _Work:
    """What one compaction does, before it is recorded; arguments as in `compact`, `costs` by message."""

    project: Project
    route: str
    messages: Sequence[Message]
    costs: Sequence[int]
    count: Count
    summarizer: Summarizer | str | None
    warnings: list[str] = field(default_factory=list)

    @property
    def find(self) -> str:
        """The command that finds what left the window."""
        return f"`ralf context search WORDS --route {self.route}`"

    def planned(self, parts: Segments, share: int) -> list[tuple[range, Part]]:
        """The segments and summaries that give way, each with its span and what stands there then."""
        found = [part for own in parts.completed for part in self._compacted(own)]
        left = sum(self.costs[index] for index in parts.summaries) + sum(part.after for _, part in found) - share
        for index in parts.summaries:
            if left > 0 and not any(index in span for span, _ in found):
                shorter = [*self._shortened(index)]
                left -= sum(part.before - part.after for _, part in shorter)
                found += shorter
        return found

    def _compacted(self, own: Sequence[int]) -> Iterator[tuple[range, Part]]:
        """A completed segment's record, or what a model makes of it; nothing where that is no smaller."""
        size, asked = sum(self.costs[index] for index in own), self.summarizer
        if size >= TOO_DEEP:
            return
        plain = redacted(self.project, put_back([self.messages[n] for n in own], Outputs(self.project, self.route)))
        events = [*events_of(plain)]
        heard = _Heard(asked) if asked is not None and not isinstance(asked, str) else None
        with transcript_of(plain, plain) as path:
            sources = f"Sources: {path.stem}, {len(own)} messages, {size:,} tokens; find them: {self.find}"
            text = of_record(events, path.stem, size, os.fspath(self.project.root))
            parts = [*self._part("compacted", own, f"{text}\n{sources}")]
            if not parts and heard is None:
                return
            try:
                checkpoint(self.route, path, root=self.project.root, summarizer=heard or asked, reason="compaction")
            except (RalfError, OSError) as error:  # the record has the messages all the same
                self.warnings.append(f"{path.stem}: in no checkpoint: {error}")
        if heard is not None and heard.summaries:
            parts = [*self._part("compacted", own, f"{of_model(heard.summaries, events)}\n{sources}")]
        yield from parts

    def _shortened(self, index: int) -> Iterator[tuple[range, Part]]:
        """A summary that is cut to its first line; nothing where that is no smaller."""
        lines = str(self.messages[index].get("content", "")).split("\n")
        if head := next((line for line in lines if line.startswith(HEAD)), ""):
            yield from self._part("shortened", [index], f"{head}\nThe rest left the window: {self.find}")

    def _part(self, kind: str, own: Sequence[int], text: str) -> Iterator[tuple[range, Part]]:
        """A part with the place of its messages, if its text is smaller and JSON can hold them."""
        made = {"role": "user", "content": fenced(shown(text), short=kind == "shortened")}
        before, after = sum(self.costs[index] for index in own), cost(made, self.count)
        if after >= before:
            return
        title, gone = text.split("\n")[0].removeprefix(HEAD), set(own)
        span = range(own[0], own[-1] + 1)
        whole, stays = self.messages[own[0] : span.stop], tuple(n for n, index in enumerate(span) if index not in gone)
        try:
            original = records.kept(self.project, whole)
        except (TypeError, ValueError, RecursionError):
            self.warnings.append(f"{title}: stays: JSON cannot hold its messages")
            return
        yield span, Part(kind, records.key_of(whole), title, before, after, (made,), original, stays)
