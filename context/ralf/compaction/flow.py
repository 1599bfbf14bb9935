"""Compacts a conversation: each completed segment becomes a checkpoint of the route and a summary in its place.

segment → transcript, redacted → digest → checkpoint (evidence, search) → record with the originals (acknowledged)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from ralf import project as projects, routing
from ralf.allocation.shares import COMPACT_AT, Allocation, allocate, compaction_due
from ralf.checkpointing.flow import checkpoint
from ralf.checkpointing.section import Summarizer
from ralf.compaction import records
from ralf.compaction.digest import digest_of
from ralf.compaction.outputs import Outputs, rolled
from ralf.compaction.records import Part, Status
from ralf.compaction.segments import Completed, Segments, segments_of
from ralf.conversation.messages import Count, Message, cost
from ralf.conversation.results import restore
from ralf.conversation.summary import is_summary, transcript_of
from ralf.errors import NotFound, RalfError
from ralf.project import Project
from ralf.text import tokens
from ralf.text.cleaning import fenced, shown
from ralf.text.frozen import dataclass
from ralf.transcripts.reader import open_transcript

Root = str | os.PathLike[str] | None

TARGET = 0.85
"""The share of a segment's tokens that is to leave, from `LARGE` tokens on. What did leave is reported."""

LARGE = 25_000

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
    mid_turn   whether a turn is open: then only tokens in the buffer are a reason
    percent    of the window, from which on it is compacted
    force      compact whatever is used
    summarizer, count  see `ralf.conversation.summary.summarize`

    The messages of the current task stay as they are. A segment whose summary would not be smaller stays, too. Of the
    summaries that are more than their share of the window the oldest are cut to their first lines. Below the mark, of
    the output of tools in completed segments what is more than its share is stored, the oldest first, and a line refers
    to it. Nothing to do: nothing is written. UsageError for a refused route or window; Busy, Damaged, OSError: then
    nothing was compacted.
    """
    project = projects.find(root)
    route = routing.check_new(project, route)
    counted = count if count is not None else tokens.count
    costs = [cost(message, counted) for message in messages]
    before, shares, parts = sum(costs), allocate(window), segments_of(messages, completed)
    current = sum(costs[index] for index in parts.current)
    told = _oversized(current, shares, route)
    full = max(before, used or 0)
    why: Why = "manual" if force else compaction_due(full, window, percent=percent, mid_turn=mid_turn)
    if not why:
        kept = rolled(messages, parts, costs, shares.tool_output, Outputs(project, route))
        after = before if kept is None else sum(cost(message, counted) for message in kept)
        found = tuple(messages if kept is None else kept)
        return Compaction(found, why, (), before, after, current, told, records.status(project, route))
    work = _Work(project, route, messages, costs, counted, summarizer)
    planned = work.planned(parts, shares.summaries)
    if not planned:
        status = records.status(project, route)
        return Compaction(tuple(messages), why, (), before, before, current, told, status, tuple(work.warnings))
    after = before + sum(part.after - part.before for _, part in planned)
    status = records.append_compaction(project, route, [part for _, part in planned], before, after)
    made = {part.key: part for part in status.parts}  # as they were recorded first
    placed = [(indices, made[part.key]) for indices, part in planned]
    found = tuple(_replaced(messages, placed))
    return Compaction(found, why, status.parts, before, after, current, told, status, tuple(work.warnings))


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
        place = _place(found, part.made)
        if place is None:
            raise NotFound(route, f"the summary of {part.title!r} is not in the conversation")
        found[place : place + len(part.made)] = records.decoded(project, part.original, route)
    records.append_note(project, route, "undo", of=last.last_compacted)
    return found


def _place(messages: Sequence[Message], made: Sequence[Message]) -> int | None:
    size = len(made)
    return next((at for at in range(len(messages) - size + 1) if list(messages[at : at + size]) == list(made)), None)


def _replaced(messages: Sequence[Message], placed: Iterable[tuple[Sequence[int], Part]]) -> Iterable[Message]:
    """The messages with each part's in the place of the first of those that gave way."""
    first = {indices[0]: part for indices, part in placed}
    gone = {index for indices, _ in placed for index in indices}
    for index, message in enumerate(messages):
        if index in first:
            yield from first[index].made
        elif index not in gone:
            yield message


def _oversized(current: int, shares: Allocation, route: str) -> str:
    if current <= shares.active_task:
        return ""
    what = f"the current task has {current:,} tokens, more than its share of {shares.active_task:,}"
    return f'{what}: split it (ralf task split {route} "TITLE" "TITLE"), or hand over'


class _Work:
    """What one compaction does, before it is recorded."""

    def __init__(
        self,
        project: Project,
        route: str,
        messages: Sequence[Message],
        costs: Sequence[int],
        counted: Count,
        summarizer: Summarizer | str | None,
    ) -> None:
        self.warnings: list[str] = []
        self._project = project
        self._route = route
        self._messages = messages
        self._costs = costs
        self._counted = counted
        self._summarizer = summarizer

    def planned(self, parts: Segments, share: int) -> list[tuple[Sequence[int], Part]]:
        """The segments and summaries that give way, and what stands in their places."""
        made = [(indices, self._compacted(indices)) for indices in parts.completed]
        found: list[tuple[Sequence[int], Part]] = [(indices, part) for indices, part in made if part is not None]
        summaries = [index for index in parts.kept if is_summary(self._messages[index])]
        left = sum(self._costs[index] for index in summaries) + sum(part.after for _, part in found) - share
        for index in summaries:
            if left > 0 and (part := self._shortened(index)) is not None:
                left -= part.before - part.after
                found.append(((index,), part))
        return found

    def _compacted(self, indices: Sequence[int]) -> Part | None:
        own = [self._messages[index] for index in indices]
        original = restore(own, Outputs(self._project, self._route))
        before = sum(self._costs[index] for index in indices)
        with transcript_of(self._project, original, original) as path:
            source = open_transcript(path)
            events = tuple(source.events())
            digest = digest_of(events, path.stem, before)
            sources = f"{path.stem}, {len(own)} messages, {before:,} tokens"
            sources = f"{sources}; find them: `ralf context search WORDS --route {self._route}`"
            made = {"role": "user", "content": fenced(shown(digest.render(sources)))}
            after = cost(made, self._counted)
            if after >= before:
                return None
            try:
                checkpoint(self._route, path, root=self._project.root, summarizer=self._summarizer, reason="compaction")
            except (RalfError, OSError) as error:  # the record has the messages all the same
                self.warnings.append(f"{path.stem}: in no checkpoint: {error}")
        return self._part("compacted", digest.title, own, made, before, after, digest.tree())

    def _shortened(self, index: int) -> Part | None:
        message = self._messages[index]
        lines = str(message.get("content", "")).split("\n")
        head = next((line for line in lines if line.startswith("## Completed: ")), "")
        if not head:
            return None
        more = f"The rest left the window: `ralf context search WORDS --route {self._route}`"
        made = {"role": "user", "content": fenced(shown(f"{head}\n{more}\n"), short=True)}
        before, after = self._costs[index], cost(made, self._counted)
        title = head.removeprefix("## Completed: ")
        return self._part("shortened", title, [message], made, before, after, {}) if after < before else None

    def _part(
        self, kind: str, title: str, own: Sequence[Message], made: Message, before: int, after: int, items: Any
    ) -> Part:
        kept = records.kept(self._project, own)
        return Part(kind, records.key_of(own), title, before, after, items, (made,), kept)
