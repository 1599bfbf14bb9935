"""Claude Code session logs, with the side chains of its sub-agents."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ralf.errors import RalfError
from ralf.text.cleaning import clean, without_middle
from ralf.text.patterns import regex
from ralf.transcripts.events import (
    START,
    Event,
    Position,
    Record,
    arguments,
    blocks,
    first,
    leaves,
    object_in,
    said,
    tokens_of,
    whole,
    words,
)
from ralf.transcripts.lines import Base, Head, Line, Log, Pass, open_regular, parsed, read_lines
from ralf.transcripts.typed import DECLINED, Queue, answered, expands, reason_given, typed

_USED = frozenset({"user", "assistant", "system", "queue-operation", "attachment"})

# Type of a record whose `type` comes before any nested value: the whole prefix is scalars, so the type is certain.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'

_TYPE = regex(
    rb'\s*+\{(?:\s*+(?!"type")' + _STRING + rb"\s*+:\s*+(?:" + _STRING + rb'|[^\s",{}\[\]]++)\s*+,)*+'
    rb'\s*+"type"\s*+:\s*+"([^"\\]*+)"'
)

# A record of use has one of these as a whole string somewhere, whatever the order of keys and the spacing.
_NEEDED = regex(rb'"(?:user|assistant|compact_boundary|queue-operation|queued_command|t(?:ask|odo)_reminder)"')

_REMINDERS = ("task_reminder", "todo_reminder")
"""Attachments in which the client tells its agent the to-do list as it is: also what another session of the same list,
a teammate or the client itself has changed, of which this log has no call.
"""

_LIST = "TodoWrite"

_MOST_REMINDED = 1_000

_LAST_TYPE = regex(rb'.*"type"\s*:\s*"([^"\\]*)"', re.S)

_EXIT = regex(r"\s*(?:Error: |<error>)?Exit code (\d{1,9})\b")

_NEVER_RAN = (
    "<tool_use_error>",
    DECLINED,
    "[Request interrupted",
    "User rejected",
    "Permission to use",
    "Permission for this action",
    "Claude requested permissions",
    "This command requires approval",
    "Interrupted by user",
)

_UNTOLD = (2, 1, 175)  # the newest version known to write no `toolDenialKind`

_CONTINUED = "This session is being continued from a previous conversation"

_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")

_HEAD_RECORDS = 20  # records that are looked at for the branch: outside a repository none names one


def reader(path: Path, head: Head) -> ClaudeCode | None:
    """The reader of this file if it is a Claude Code session log."""
    records = head.records or [head.document]
    return ClaudeCode(path, records) if any(map(_is_ours, records)) else None


def _is_ours(record: Record) -> bool:
    kind = record.get("type")
    if "payload" in record or "messages" in record:  # other clients
        return False
    if not isinstance(kind, str):
        return "sessionId" in record and "message" in record  # a first record that is longer than the head
    said = isinstance(record.get("message"), dict)  # a program's log has a line of text there
    return "sessionId" in record or said or kind in {"summary", "file-history-snapshot"}


class ClaudeCode(Log):
    """A Claude Code session log; see ralf.transcripts.reader.Transcript for the fields."""

    format = "claude-code"

    def __init__(self, path: Path, records: Iterable[Record]) -> None:
        branch = first(islice(records, _HEAD_RECORDS), "gitBranch")
        super().__init__(path, session=first(records, "sessionId"), cwd=first(records, "cwd"), branch=branch)

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events after a place. The boundary of a compaction whose summary is not there yet waits."""
        return self._read(_Pass(self.skipped, self.path), after)


class _Pass(Pass):
    """Which tools were called, what is in the queue, whether a compaction has begun, and which tasks have ended."""

    def __init__(self, skipped: Counter[str], log: Path) -> None:
        super().__init__(skipped)
        self._log: Path | None = log
        self._ended: set[str] = set()
        self._aside: dict[str, Event] = {}  # calls of side chains that wait for their answer
        self._tools: dict[str, str] = {}
        self._queue = Queue()
        self._said = ""
        self._expands = False
        self._readers = {
            "assistant": self._assistant,
            "user": self._user,
            "queue-operation": self._queued,
            "attachment": self._attached,
        }

    def recall(self, lines: Iterable[Line]) -> None:
        """Learn from the records just before that place, without the logs of the sub-agents that ended there."""
        log, self._log = self._log, None
        super().recall(lines)
        self._log = log

    def passed_over(self, line: Line) -> str:
        """The type of a record that says nothing; see `Pass`."""
        found = _TYPE.match(line.data)
        if found and (kind := found[1].decode("utf-8", "replace")) not in _USED:
            return kind
        if line.cut or _NEEDED.search(line.data):
            return ""
        found = found or _LAST_TYPE.match(line.data)
        return found[1].decode("utf-8", "replace") if found and line.data.rstrip().endswith(b"}") else ""

    def events(self, record: Record, line: Line) -> Iterator[Event]:
        """The events of one record."""
        kinds = (record.get("type"), object_in(record, "message").get("role"))
        kind = next((kind for kind in kinds if isinstance(kind, str)), "untyped")
        base = Base(record, line, words(record.get("cwd")))
        if record.get("isSidechain") is True:
            self.skipped["sidechain"] += 1
            agent = words(record.get("agentId")) or "sub-agent"
            yield from side_chain_answered(self._done(record, base), agent, self._aside)
        elif kind in self._readers:
            made = self._readers[kind](record, base)
            if made and self.waiting:
                if made[0].kind != "compaction":
                    yield from self.waiting
                self.waiting = []
            yield from made
        elif kind == "system" and record.get("subtype") == "compact_boundary":
            told = object_in(record, "compactMetadata")
            before = whole(told.get("preTokens")) if told.get("trigger") == "auto" else None
            self.waiting = [base.event("compaction", "", window=whole(told.get("postTokens")), before=before)]
        else:
            self.skipped[kind] += 1

    def _done(self, record: Record, base: Base) -> Iterator[Event]:
        """The calls and answers of a sub-agent's record."""
        for block in blocks(object_in(record, "message").get("content")):
            kind = block.get("type")
            if isinstance(kind, str) and kind.endswith("tool_use"):
                yield self._call(block, base, None)
            elif isinstance(kind, str) and kind.endswith("tool_result"):
                yield self._answer(block, record, base)

    def _of_agent(self, agent: str, base: Base) -> Iterator[Event]:
        """What a sub-agent did, by its own log: at the place of the record that says that it has ended."""
        if not agent or agent in self._ended:
            return
        self._ended.add(agent)
        done: list[Event] = []
        for line in side_chain_lines(self._log, agent) if self._log else ():
            record = None if line.cut or self.passed_over(line) else parsed(line.data)
            if record is not None and record.get("isSidechain") is True:
                own = Base(record, line, words(record.get("cwd")))
                own.start, own.end = base.start, base.end
                done.extend(self._done(record, own))
        yield from side_chain_answered(done, agent, {})

    def _notice(self, text: str, base: Base) -> Iterator[Event]:
        """What is told where a client's notice says that a task of the background has ended."""
        task = side_chain_ended(text)
        if task and task not in self._ended:
            yield from self._of_agent(task, base)
            if report := self.others(side_chain_told(text)):
                yield base.event("result", report, tool="Agent", call_id=task)
            yield base.event("other", "", task=task)

    def _assistant(self, record: Record, base: Base) -> list[Event]:
        message = record.get("message")
        if not isinstance(message, dict):
            self.skipped["malformed"] += 1
            return []
        if record.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            told = (words(block.get("text")) for block in blocks(message.get("content")))
            return [base.event("other", self.others("\n".join(filter(None, told))))]
        self._said = ""
        self._expands = False
        window = tokens_of(object_in(message, "usage"), *_USAGE)
        made = []
        for block in blocks(message.get("content")):
            kind = block.get("type")
            text = words(block.get(kind)) if kind in ("text", "thinking") else ""
            if kind == "text" and text.strip() and text != "(no content)" and (text := self.others(text)):
                made.append(base.event("assistant", text, window=window))
            elif kind == "thinking" and text.strip():
                made.append(base.event("thinking", text, window=window))
            elif isinstance(kind, str) and kind.endswith("tool_use"):
                made.append(self._call(block, base, window))
        if not made and window is not None:
            made.append(base.event("other", "", window=window))
        return made

    def _call(self, block: Record, base: Base, window: int | None) -> Event:
        name, call_id, given = words(block.get("name")), words(block.get("id")), block.get("input")
        self._tools[call_id] = name
        return base.event("call", leaves(given), tool=name, call_id=call_id, input=arguments(given), window=window)

    def _user(self, record: Record, base: Base) -> list[Event]:
        content = object_in(record, "message").get("content")
        if record.get("isCompactSummary") is True:
            return [self._compaction(content, base)]
        made: list[Event] = []
        meta = record.get("isMeta") is True or _origin(record) not in ("", "human") or self._is_expansion(content)
        for block in blocks(content):
            kind = block.get("type")
            if kind == "text":
                text = words(block.get("text"))
                if text.startswith(_CONTINUED):
                    made.append(self._compaction(text, base))
                elif meta:
                    self.skipped["meta"] += 1
                    made.extend(self._notice(text, base))
                elif text := self.others(text):
                    request = typed(text)
                    if not request:
                        self.skipped["machine-written"] += 1
                        made.extend(self._notice(text, base))
                    elif self._queue.again(request):
                        self.skipped["repeated"] += 1
                    else:
                        made.append(base.event("user", request))
            elif isinstance(kind, str) and kind.endswith("tool_result"):
                made.extend(self._result(block, record, base))
        return made

    def _is_expansion(self, content: object) -> bool:
        """Whether a user's record is the prompt of the slash command in the record before it, which old versions do not
        mark: a list of blocks, where what is typed at a terminal is a string.
        """
        expansion = self._expands and isinstance(content, list)
        self._expands = isinstance(content, str) and expands(content)
        return expansion

    def _compaction(self, content: object, base: Base) -> Event:
        text = said(content)
        if not self.waiting:
            return base.event("compaction", text)
        begun = self.waiting[0]
        return base.event("compaction", text, start=begun.start, window=begun.window, before=begun.before)

    def _result(self, block: Record, record: Record, base: Base) -> Iterator[Event]:
        details = object_in(record, "toolUseResult")
        if details.get("status") == "completed":
            yield from self._of_agent(words(details.get("agentId")), base)
        answer = self._answer(block, record, base)
        yield answer
        text, tool, call_id = said(block.get("content")), answer.tool, answer.call_id
        declined = block.get("is_error") is True and _declined(record, tool)
        asked = tool == "AskUserQuestion"
        told = reason_given(text, record.get("userFeedback")) if declined or asked else ""
        told = clean(told or (answered(text, details) if asked else ""))
        if told and told != self._said:  # the same words decline each of several calls made at once
            self._said = told
            yield base.event("user", told, call_id=call_id if declined else "")

    def _answer(self, block: Record, record: Record, base: Base) -> Event:
        """What a tool answered."""
        details = object_in(record, "toolUseResult")
        call_id = words(block.get("tool_use_id"))
        tool = self._tools.pop(call_id, "")
        text = said(block.get("content"))
        failed = block.get("is_error") is True or details.get("interrupted") is True
        status = None
        if failed and (found := _EXIT.match(text)):
            status = int(found[1])
        elif not failed and (tool == "Bash" or "stdout" in details) and _finished(text, details):
            status = 0
        declined = block.get("is_error") is True and _declined(record, tool)
        never_ran = failed and (text.lstrip().startswith(_NEVER_RAN) or "toolDenialKind" in record)
        created = details.get("type") == "create" or text.startswith("File created")
        report = side_chain_report(details) if "agentId" in details and not failed else ""
        return base.event(
            "result",
            self.others(report or text),
            tool=tool,
            call_id=call_id,
            failed=failed or bool(status),
            exit_status=status,
            refused=declined or never_ran,
            created=created and not failed,
            task="" if failed else side_chain_launched(details),
        )

    def _queued(self, record: Record, base: Base) -> list[Event]:
        text = said(record.get("content"))
        request = typed(text)
        if record.get("operation") != "enqueue":
            self._queue.took(record.get("operation"), request)
            return []
        if not request:
            self.skipped["machine-written"] += 1
            return list(self._notice(text, base))
        self._queue.put(request)
        return [base.event("user", request)]

    def _attached(self, record: Record, base: Base) -> list[Event]:
        attachment = record.get("attachment")
        if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
            text = said(attachment.get("prompt"))
            by_person = attachment.get("commandMode") in (None, "prompt") and _origin(attachment) in ("", "human")
            request = typed(text) if by_person and attachment.get("isMeta") is not True else ""
            if request and not self._queue.handed_over(request):
                return [base.event("user", request)]
            if notices := list(self._notice(text, base)):
                return notices
        elif (todos := _reminded(attachment)) and not self.waiting:
            return [base.event("other", "", tool=_LIST, input={"todos": todos})]
        self.skipped["attachment"] += 1
        return []


def _reminded(attachment: object) -> list[dict[str, str]]:
    """The list of which the client reminds its agent, as a call of the tool that sets the whole of it would have it."""
    if not isinstance(attachment, dict) or attachment.get("type") not in _REMINDERS:
        return []
    content = attachment.get("content")
    items = [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []
    shown = (item for item in items if object_in(item, "metadata").get("_internal") is not True)
    return [
        {"content": subject, "status": words(item.get("status")), "id": words(item.get("id"))}
        for item in islice(shown, _MOST_REMINDED)
        if (subject := words(item.get("subject") or item.get("content")).strip())
    ]


def _declined(record: Record, tool: str) -> bool:
    """Whether the client says in a field of the record that a person declined the call.

    Versions to 2.1.175 know no `toolDenialKind` and say so in `toolUseResult` only, where the error of an MCP server
    stands, too: of its tools it is not believed. A shell's error begins with its exit status there.
    """
    if "userFeedback" in record or "toolDenialKind" in record:
        return "userFeedback" in record or record["toolDenialKind"] == "user-rejected"
    told = record.get("toolUseResult")
    if not isinstance(told, str) or tool.startswith("mcp__") or _version(record) > _UNTOLD:
        return False
    return told == "User rejected tool use" or told.startswith(f"Error: {DECLINED}")


def _version(record: Record) -> tuple[int, ...]:
    """The client's version that a record names, () where it names none."""
    return tuple(int(part) for part in words(record.get("version")).split(".") if part.isdecimal() and len(part) < 9)


def _origin(record: Record) -> str:
    return words(object_in(record, "origin").get("kind"))


def _finished(text: str, details: Record) -> bool:
    """Whether a command that did not fail ended with status 0: not in the background, its status not explained away."""
    elsewhere = details.get("backgroundTaskId") or details.get("returnCodeInterpretation")
    return not elsewhere and not text.startswith("Command running in background")


# ---- sub-agents: side chains within a log, and logs of their own beside it ----

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
