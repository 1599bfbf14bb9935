"""Compacts a conversation: each completed segment becomes a checkpoint of the route, whose section stands in its place.

segment → checkpoint (redacted, evidence, search) → its section → journal record with the originals (acknowledged)
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from ralf import project as projects, routing
from ralf.allocation.shares import COMPACT_AT, allocate, compaction_due, outgoing
from ralf.checkpointing.flow import checkpoint
from ralf.checkpointing.section import Summarizer
from ralf.compaction import records
from ralf.compaction.records import Part, Status
from ralf.compaction.rendering import Record
from ralf.compaction.segments import Completed, Segments, segments_of
from ralf.conversation.messages import Count, Message, changed, checked, cost, results
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

Placed = tuple[Sequence[int], Part]
"""The indices of the messages that a part is made of, and the part."""

_HEAD = "## Completed: "  # stands before the title in the first line of what a segment gave way to

_TITLE = 70  # characters


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
    count: Count = tokens.count,
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
    count      how many tokens a text has; exactly, by o200k_base, if not given

    Pinned messages and those of the current task stay as they are; so does a segment whose record would not be smaller,
    or that JSON cannot hold. Of the summaries that are more than their share of the window the oldest are cut to their
    first lines. Below the mark, of the output of tools in completed segments what is more than its share is stored, the
    oldest first, and a line stands in its place. UsageError for a refused route, window, pin or summarizer; Busy,
    Damaged, OSError: then nothing was compacted.
    """
    project = projects.find(root)
    route = routing.check_new(project, route)
    if summarizer is not None and not hasattr(summarizer, "summarize"):
        hint = "for the name of a model: `ralf.checkpoint(ROUTE, TRANSCRIPT, summarizer=NAME)`"
        raise UsageError(f"summarizer {summarizer!r}", "an object with a method `summarize` is expected", hint)
    costs = [cost(message, count) for message in checked(messages)]
    before, shares, parts = sum(costs), allocate(window), segments_of(messages, completed, pins)
    current, full = sum(costs[index] for index in parts.current), max(before, used or 0)
    why: Why = "manual" if force else compaction_due(full, window, percent=percent, mid_turn=mid_turn)
    work = _Work(project, route, messages, costs, count)
    found = [*(work.planned(parts, shares.summaries, summarizer) if why else work.stored(parts, shares.tool_output))]
    status, made = records.status(project, route), list(messages)
    if found:
        status = records.append_parts(project, route, "compaction" if why else "rolled", [part for _, part in found])
        instead = dict[int, tuple[Message, ...]]()
        for (own, _), part in zip(found, status.parts, strict=True):  # as they were recorded first
            instead |= {**dict.fromkeys(own, ()), own[-1]: part.made}
        made = [one for index, message in enumerate(messages) for one in instead.get(index, (message,))]
    oversized = ""
    if current > shares.active_task:
        what = f"the current task has {current:,} tokens, more than its share of {shares.active_task:,}"
        oversized = f'{what}: split it (ralf task edit {route} --into "TITLE" --into "TITLE"), or hand over'
    known = dict(zip(map(id, messages), costs, strict=True))
    return Compaction(
        tuple(made),
        why,
        status.parts if found else (),
        before,
        sum(known.get(id(message)) or cost(message, count) for message in made),
        current,
        oversized,
        status,
        tuple(work.warnings),
    )


def undo(messages: Sequence[Message], route: str, *, root: Root = None) -> list[Message]:
    """A conversation with the originals back in the places of what the last compaction put there; undone again, of the
    one before.

    NotFound where nothing was compacted, or its summaries are not in the conversation; Busy, Damaged, OSError.
    """
    project = projects.find(root)
    found = list(messages)
    for part in records.to_undo(project, route):
        original = records.decoded(project, part.original, route)
        there = [*(original[place] for place in part.stays), *part.made]
        starts = (at for at in range(len(found) - len(there) + 1) if found[at : at + len(there)] == there)
        if (start := next(starts, None)) is None:
            raise NotFound(route, f"the summary of {part.title!r} is not in the conversation")
        found[start : start + len(there)] = original
    records.append_parts(project, route, "undo", [])
    return found


@dataclass(frozen=True, slots=True)
class _Work:
    """What one compaction does, before it is recorded; arguments as in `compact`, `costs` by message."""

    project: Project
    route: str
    messages: Sequence[Message]
    costs: Sequence[int]
    count: Count
    warnings: list[str] = field(default_factory=list)

    @property
    def find(self) -> str:
        """The command that finds what left the window."""
        return f"`ralf search WORDS --route {self.route}`"

    def planned(self, parts: Segments, share: int, summarizer: Summarizer | None) -> list[Placed]:
        """The segments and summaries that give way."""
        found = [*self._completed(parts.completed, summarizer)]
        left = sum(self.costs[index] for index in parts.summaries) + sum(part.after for _, part in found) - share
        for index in parts.summaries:
            lines = str(self.messages[index]["content"]).split("\n")
            head = next((line for line in lines if line.startswith(_HEAD)), "")
            if left > 0 and head:
                text = fenced(f"{head}\nThe rest left the window: {self.find}", short=True)
                shorter = [*self._part("shortened", [index], {"role": "user", "content": text}, head)]
                left -= sum(part.before - part.after for _, part in shorter)
                found += shorter
        return found

    def _completed(self, segments: Sequence[Sequence[int]], summarizer: Summarizer | None) -> Iterator[Placed]:
        """The completed segments, each with the section of its checkpoints, where that is smaller."""
        whole, sessions = records.put_back(self.project, self.route, self.messages), list[str]()
        for own in segments:
            source = Conversation([whole[index] for index in own], len(own), self.project.root)
            by = Record() if summarizer is None else summarizer
            checkpoint(self.route, source, root=self.project.root, summarizer=by, reason="compaction")
            sessions.append(source.session)
        if sessions and summarizer is None and (problem := refine.start(self.project, self.route)):
            self.warnings.append(problem)
        sections = dict[str, list[Mapping[str, Any]]]()
        for _, record in history.checkpoints(self.project, self.route):
            sections.setdefault(record.payload.get("source", {}).get("session", ""), []).append(record.payload)
        for own, session in zip(segments, sessions, strict=True):
            if found := sections.get(session):
                head = _HEAD + trimmed(one_line(found[0]["title"]).strip('"'), _TITLE)
                size = sum(self.costs[index] for index in own)
                foot = f"Sources: {session}, {len(own)} messages, {size:,} tokens; find them: {self.find}"
                text = fenced(shown("\n".join([head, *(one["text"] for one in found), foot])))
                yield from self._part("compacted", own, {"role": "user", "content": text}, head)

    def stored(self, parts: Segments, share: int) -> Iterator[Placed]:
        """The oldest messages with outputs in completed segments that leave so that the others fit their share."""

        def line(_: Any) -> str:
            return f"[Result stored at {self.route}: it left the window]"

        found = [index for own in parts.completed for index in own if results(self.messages[index])]
        for index in found[: outgoing([self.costs[index] for index in found], share)]:
            yield from self._part("stored", [index], changed(self.messages[index], str, line), "output of tools")

    def _part(self, kind: str, own: Sequence[int], made: Message, title: str) -> Iterator[Placed]:
        """A part with the indices of its messages, if what is made of them is smaller and JSON can hold them."""
        before, after = sum(self.costs[index] for index in own), cost(made, self.count)
        if after >= before:
            return
        span = range(own[0], own[-1] + 1)
        stays = tuple(place for place, index in enumerate(span) if index not in own)
        try:
            original = records.kept(self.project, self.messages[span.start : span.stop])
        except (TypeError, ValueError, RecursionError):
            self.warnings.append(f"{title}: stays: JSON cannot hold its messages")
            return
        yield own, Part(kind, title.removeprefix(_HEAD), before, after, (made,), original, stays)
