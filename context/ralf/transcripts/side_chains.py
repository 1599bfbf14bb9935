"""What the sub-agents of a Claude Code session did: side chains within its log, and logs of their own beside it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ralf.errors import RalfError
from ralf.text.cleaning import without_middle
from ralf.text.frozen import replace
from ralf.text.patterns import regex
from ralf.transcripts.events import Event, Record, words
from ralf.transcripts.lines import Line, open_regular, read_lines

# The log of a sub-agent is `SESSION/subagents/agent-ID.jsonl` beside `SESSION.jsonl`. Its calls stand at the record by
# which the session learns that the sub-agent has ended: so each is read once, and belongs to the segment in which its
# result arrived. What the sub-agent was asked and what it said on the way are left out; its report is the result.


_MOST = 16 << 20  # bytes of a sub-agent's log that are read

_KEPT = (900, 600)  # characters of a call or an answer of a sub-agent

_ID = regex(r"[A-Za-z0-9_-]{1,64}")

_NOTICE = regex(r"\s{0,20}<task-notification>")

_TASK = regex(r"<task-id>([A-Za-z0-9_-]{1,64})</task-id>")

_STATUS = regex(r"<status>(\w{1,20})</status>")

_RUNNING = frozenset({"running", "pending", "in_progress", "started"})

_BEFORE_REPORT = "<tools-used-before-summary>"


def side_chain_lines(log: Path, agent: str) -> Iterator[Line]:
    """The lines of a sub-agent's log beside a session's `log`; none where no such file is, or a link leads to it."""
    if not _ID.fullmatch(agent):
        return
    inside = Path(log.stem, "subagents", f"agent-{agent}.jsonl")
    path = log.parent / inside
    if Path(os.path.realpath(path)) != Path(os.path.realpath(log.parent), inside):
        return
    with suppress(RalfError), open_regular(path) as file:
        for line in read_lines(file):
            if not line.finished or line.start > _MOST:
                return
            yield line


def side_chain_answered(events: Iterable[Event], agent: str, calls: dict[str, Event]) -> Iterator[Event]:
    """The calls among a sub-agent's events that have an answer, each with its answer and at its place, both shortened.

    calls  those that wait for their answer, by id; kept up to date
    """
    for event in events:
        if event.kind == "call":
            calls[event.call_id] = event
        elif event.kind == "result" and (call := calls.pop(event.call_id, None)) is not None:
            yield _short(replace(call, start=event.start, end=event.end), agent)
            yield _short(event, agent)


def _short(event: Event, agent: str) -> Event:
    text, omitted = without_middle(event.text, *_KEPT)
    return replace(event, text=text, cut=event.cut + omitted, agent=agent, window=None)


def side_chain_ended(text: str) -> str:
    """The task that a client's notice says has ended; "" for any other text."""
    if not _NOTICE.match(text):
        return ""
    task, status = _TASK.search(text), _STATUS.search(text)
    return task[1] if task and status and status[1].lower() not in _RUNNING else ""


def side_chain_told(text: str) -> str:
    """The report of a sub-agent in such a notice, up to the last closing tag; "" where it has none."""
    _, opened, rest = text.partition("<result>")
    return rest.rpartition("</result>")[0].strip() if opened else ""


def side_chain_report(details: Record) -> str:
    """What a sub-agent reported, without what the client puts around it; "" where the record does not hold it."""
    parts = details.get("content")
    texts = [words(part.get("text")) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n".join(text for text in texts if text.strip() and not text.startswith(_BEFORE_REPORT))


def side_chain_launched(details: Record) -> str:
    """The task that goes on in the background behind an answer; "" for none."""
    agent = words(details.get("agentId")) if details.get("status") in ("async_launched", "launched") else ""
    return words(details.get("backgroundTaskId")) or agent
