"""Claude Code session logs, with the side chains of its sub-agents."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice, takewhile
from pathlib import Path
from zlib import crc32

from ralf.errors import RalfError
from ralf.text.cleaning import clean, one_line
from ralf.text.frozen import replace
from ralf.text.patterns import regex
from ralf.transcripts.chain import Chain, follows
from ralf.transcripts.claude_person import answers, is_declined, source_of, was_not_asked
from ralf.transcripts.events import (
    START,
    Event,
    Form,
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
from ralf.transcripts.side_chains import (
    side_chain_answered,
    side_chain_ended,
    side_chain_launched,
    side_chain_lines,
    side_chain_report,
    side_chain_told,
)
from ralf.transcripts.typed import DECLINED, Queue, expands, part, reason_given

_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}

_USED = frozenset({"user", "assistant", "system", "queue-operation", "attachment", "last-prompt", "pr-link", *_TITLES})

# Type of a record whose `type` comes before any nested value: the whole prefix is scalars, so the type is certain.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'

_TYPE = regex(
    rb'\s*+\{(?:\s*+(?!"type")' + _STRING + rb"\s*+:\s*+(?:" + _STRING + rb'|[^\s",{}\[\]]++)\s*+,)*+'
    rb'\s*+"type"\s*+:\s*+"([^"\\]*+)"'
)

# A record of use has one of these as a whole string somewhere, whatever the order of keys and the spacing.
_NEEDED = regex(
    rb'"(?:user|assistant|compact_boundary|turn_duration|stop_hook_summary|queue-operation|queued_command|rewound'
    rb'|t(?:ask|odo)_reminder|(?:custom|ai)-title|pr-link|type"\s*:\s*"summary)"'
)

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

_CANCELLED = regex(r"\s*<tool_use_error>(?:Sibling tool call errored|Cancelled: parallel tool call)")

_CONTINUED = "This session is being continued from a previous conversation"

_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")

_ASKS, _PLANS = "AskUserQuestion", "ExitPlanMode"

_OF_PROGRAMS = ("program", "sdk")
"""Senders that are no person: what such a one answers or approves is nobody's decision."""

_APPROVED = "(plan approved)"

_ENDS = ("turn_duration", "stop_hook_summary")

_NOTICED = 200  # characters by which a queued notice is known

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
        return self._read(_Pass(self.skipped, self.path, after), after)


class _Pass(Pass):
    """Which tools were called, what is in the queue, whether a compaction has begun, which tasks have ended, and which
    record follows which.
    """

    def __init__(self, skipped: Counter[str], log: Path, after: Position) -> None:
        super().__init__(skipped)
        self._log: Path | None = log
        self._after = after.byte
        self._chain = Chain(log, after.byte)
        self._begun: dict[str, str] = {}  # messages and answers, each with the newest message that follows it
        self._ended: set[str] = set()
        self._aside: dict[str, Event] = {}  # calls of side chains that wait for their answer
        self._tools: dict[str, str] = {}
        self._asked: dict[str, Record] = {}  # questions and plans that wait for the person
        self._queue = Queue()
        self._said = ""
        self._expands = False
        self._last = ("", "")  # the last message, and what it follows
        self._failed = False  # the service failed at it
        self._readers = {
            "assistant": self._assistant,
            "user": self._user,
            "queue-operation": self._queued,
            "attachment": self._attached,
            "system": self._system,
            "last-prompt": self._rewound,
            "pr-link": self._requested,
            **dict.fromkeys(_TITLES, self._titled),
        }

    def recall(self, lines: Iterable[Line]) -> None:
        """Learn from the records just before that place, without the logs of the sub-agents that ended there."""
        log, self._log = self._log, None
        super().recall(lines)
        self._log = log

    def passed_over(self, line: Line) -> str:
        """The type of a record that says nothing; see `Pass`."""
        kind = _says_nothing(line)
        if kind:
            self._chain.pass_over(line)
        return kind

    def events(self, record: Record, line: Line) -> Iterator[Event]:
        """The events of one record."""
        if self._chain.has(record, self._before(line.start)):
            self.skipped["repeated"] += 1
            return
        kinds = (record.get("type"), object_in(record, "message").get("role"))
        kind = next((kind for kind in kinds if isinstance(kind, str)), "untyped")
        base = Base(record, line, words(record.get("cwd")))
        if record.get("isSidechain") is True:
            self.skipped["sidechain"] += 1
            agent = words(record.get("agentId")) or "sub-agent"
            yield from side_chain_answered(self._done(record, base), agent, self._aside)
        elif kind in self._readers:
            made = self._readers[kind](record, base)
            yield from self._behind_waiting(made) if made and self.waiting else made
        else:
            self.skipped[kind] += 1
        self._chain.add(record)

    def _behind_waiting(self, made: list[Event]) -> list[Event]:
        """What is told of some events and a boundary before them, from whose summary marks do not part it."""
        if all(event.kind == "mark" for event in made):
            self.waiting += made
            return []
        (boundary, *marks), self.waiting = self.waiting, []
        if made[0].kind != "compaction":
            return [boundary, *marks, *made]
        return [*made, *(replace(mark, start=made[0].start, end=made[0].end) for mark in marks)]

    def _before(self, byte: int) -> int:
        """Up to where the file may be searched for an id: not at all for what is only recalled."""
        return byte if self._log else 0

    def _system(self, record: Record, base: Base) -> list[Event]:
        subtype = record.get("subtype")
        if subtype == "compact_boundary":
            told = object_in(record, "compactMetadata")
            before = whole(told.get("preTokens")) if told.get("trigger") == "auto" else None
            self.waiting = [base.event("compaction", "", window=whole(told.get("postTokens")), before=before)]
        elif subtype in _ENDS:
            return [base.event("mark", "", form="ended")]
        else:
            self.skipped["system"] += 1
        return []

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
            record = None if line.cut or _says_nothing(line) else parsed(line.data)
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
            told = self.others(said(message.get("content")))
            if record.get("isApiErrorMessage") is True:
                self._failed = True
                return [base.event("mark", told, form="stopped")]
            return [base.event("other", told)]
        self._said = ""
        self._expands = self._failed = False
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
        if message.get("stop_reason") == "end_turn" and any(event.kind == "assistant" for event in made):
            made.append(base.event("mark", "", form="ended"))
        return made

    def _call(self, block: Record, base: Base, window: int | None) -> Event:
        name, call_id, given = words(block.get("name")), words(block.get("id")), block.get("input")
        self._tools[call_id] = name
        if name in (_ASKS, _PLANS) and isinstance(given, dict):
            self._asked[call_id] = given
        return base.event("call", leaves(given), tool=name, call_id=call_id, input=arguments(given), window=window)

    def _user(self, record: Record, base: Base) -> list[Event]:
        content = object_in(record, "message").get("content")
        if record.get("isCompactSummary") is True:
            return [self._compaction(content, base)]
        if "planContent" in record and (plan := words(record["planContent"]).strip()):
            # approved, and begun in a fresh context
            return [self._message(_APPROVED, "plan", record, base, about=plan)]
        expansion = self._is_expansion(content)
        made: list[Event] = []
        typed: list[str] = []
        form: Form = ""
        source: str | None = None
        for block in blocks(content):
            kind = block.get("type")
            if kind == "text":
                text = words(block.get("text"))
                source = source_of(record, expansion=expansion) if source is None else source
                if text.startswith(_CONTINUED) and source in ("", "sdk", "turn"):
                    made.append(self._compaction(text, base))
                elif source == "client":
                    self.skipped["meta"] += 1
                    made.extend(self._notice(text, base))
                elif text := self.others(text):
                    what, meant = part(text, proven=source in ("person", "program"), of_turn=source == "turn")
                    if what not in ("message", "command"):
                        made.extend(self._besides(what, meant, text, base))
                    elif own := self._queue.again(meant):
                        self.skipped["repeated"] += 1
                        self._begin(own, record, base)
                    else:
                        form = "program" if source in _OF_PROGRAMS else "command" if what == "command" else form
                        typed.append(meant)
            elif isinstance(kind, str) and kind.endswith("tool_result"):
                made.extend(self._result(block, record, base))
        if typed:
            beside = any(event.kind == "result" for event in made)
            made.append(self._message("\n".join(typed), form, record, base, begins=not beside))
        return made

    def _message(
        self, text: str, form: Form, record: Record, base: Base, *, begins: bool = True, **named: object
    ) -> Event:
        """Words of the person. `begins`: whether they begin a turn, so that another one may take their place."""
        own = words(record.get("uuid"))
        parent = self._begin(own, record, base) if begins else ""
        return base.event("user", text, form=form, id=own, parent=parent, input=named)

    def _begin(self, own: str, record: Record, base: Base) -> str:
        """A message, whose id is `own`, begins a turn with a record: what it follows."""
        parent = self._chain.nearest(follows(record), self._before(base.start.byte))
        if parent:
            self._begun[parent] = own
            # the service failed at the last message: this one is said after it, not in its place
            last, self._last = self._last, (own, parent)
            parent = last[0] if self._failed and last[1] == parent else parent
            self._failed = False
        return parent

    def _besides(self, what: str, meant: str, text: str, base: Base) -> Iterator[Event]:
        """What a text in a record of the person is if it is no message of theirs."""
        if what == "unknown":
            self.skipped["unknown frame"] += 1
            yield base.event("other", meant)
        elif what in _MARKS:
            yield base.event("mark", clean(meant), form=_MARKS[what])
        else:
            self.skipped["machine-written"] += 1
            yield from self._notice(text, base)

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
        if answer.tool and answer.tool not in (_ASKS, _PLANS) and not answer.failed:
            return
        text, given = said(block.get("content")), self._asked.pop(answer.call_id, {})
        if was_not_asked(record):
            return
        declined = block.get("is_error") is True and is_declined(record, answer.tool)
        own, of_program = words(record.get("uuid")), source_of(record) in _OF_PROGRAMS
        if answer.tool == _ASKS:
            declined = declined or text.startswith(DECLINED)
            if answer.failed and not declined:
                return
            reason = clean(reason_given(text, record.get("userFeedback"))) if declined else ""
            for form, about, told, options in answers(text, details, given, declined=declined, reason=reason):
                named = {"about": about, "options": options}
                call_id = answer.call_id if declined else ""
                form = "program" if of_program else form
                yield base.event("user", told, form=form, id=own, call_id=call_id, input=named)
        elif answer.tool == _PLANS:
            plan = clean(words(details.get("plan")) or words(given.get("plan")))
            if declined:
                yield from self._refused(text, record, answer, base, about=plan)
            elif not answer.failed and details.get("isAgent") is not True and not of_program:
                yield base.event("user", _APPROVED, form="plan", id=own, input={"about": plan})
        elif declined:
            yield from self._refused(text, record, answer, base)

    def _refused(self, text: str, record: Record, answer: Event, base: Base, **named: object) -> Iterator[Event]:
        """What a person said with the refusal of a call."""
        told = clean(reason_given(text, record.get("userFeedback")))
        if told and told != self._said:  # the same words decline each of several calls made at once
            self._said = told
            form: Form = "program" if source_of(record) in _OF_PROGRAMS else "refused"
            own = words(record.get("uuid"))
            yield base.event("user", told, form=form, id=own, call_id=answer.call_id, input=named)

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
        declined = block.get("is_error") is True and is_declined(record, tool)
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
            form="refused" if declined else "cancelled" if failed and _CANCELLED.match(text) else "",
            created=created and not failed,
            task="" if failed else side_chain_launched(details),
        )

    def _queued(self, record: Record, base: Base) -> list[Event]:
        text, operation, source = said(record.get("content")), record.get("operation"), source_of(record)
        what, meant = part(text, proven=source == "person")
        of_person = what in ("message", "command") and source != "client"
        found = meant if of_person else one_line(text)[:_NOTICED]
        if operation != "enqueue":
            self._queue.took(operation, found)
            form = _LEAVES.get(operation) if isinstance(operation, str) else None
            return [base.event("mark", found, form=form)] if form else []
        if of_person:
            own = f"queue:{base.timestamp}:{crc32(found.encode()):08x}"
            self._queue.put(found, own)
            return [base.event("user", found, form="program" if source in _OF_PROGRAMS else "queued", id=own)]
        self._queue.put(found, "")
        return [base.event("mark", found, form="noticed"), *self._besides(what, meant, text, base)]

    def _attached(self, record: Record, base: Base) -> list[Event]:
        attachment = record.get("attachment")
        if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
            text, mode = said(attachment.get("prompt")), attachment.get("commandMode")
            sources = source_of(record), source_of(attachment)
            of_person = "client" not in sources
            if of_person and mode == "bash" and text.strip():
                return [base.event("mark", clean(text.strip()), form="ran")]
            if of_person and mode in (None, "prompt"):
                what, found = part(text, proven="person" in sources)
                if what in ("message", "command") and not self._queue.handed_over(found):
                    own = words(record.get("uuid"))
                    return [
                        base.event("user", found, form="queued", id=own),
                        base.event("mark", found, form="handed"),
                    ]
            if notices := list(self._notice(text, base)):
                return notices
        elif (todos := _reminded(attachment)) and not self.waiting:
            return [base.event("other", "", tool=_LIST, input={"todos": todos})]
        self.skipped["attachment"] += 1
        return []

    def _rewound(self, record: Record, base: Base) -> list[Event]:
        """That the conversation was rewound to its record `leafUuid`, which is the last that was kept."""
        leaf = record.get("leafUuid") or record.get("cutUuid")
        if record.get("rewound") is True and isinstance(leaf, str):
            last = self._chain.nearest(leaf, self._before(base.start.byte))
            if last and last not in self._begun and self._log and self._after:
                self._begun = self._begun_before(self._log) | self._begun
            if to := self._begun.get(last):
                return [base.event("mark", "", form="rewound", input={"to": to})]
        self.skipped["last-prompt"] += 1
        return []

    def _begun_before(self, log: Path) -> dict[str, str]:
        """Which message follows which message or answer in the part of the log before this pass."""
        earlier = _Pass(Counter(), log, START)
        earlier._log = None  # what sub-agents did is not asked
        with suppress(RalfError), open_regular(log) as file:
            for line in takewhile(lambda line: line.end <= self._after, read_lines(file)):
                if not earlier.passed_over(line) and (record := line.record) is not None:
                    deque(earlier.events(record, line), maxlen=0)
        return earlier._begun

    def _requested(self, record: Record, base: Base) -> list[Event]:
        number = whole(record.get("prNumber"))
        text = str(number) if number else words(record.get("prUrl"))
        return [base.event("mark", text, form="requested")] if text else []

    def _titled(self, record: Record, base: Base) -> list[Event]:
        """The client's title of the session. A `summary` is of the session that its last record is of: others, which
        the client may write here, too, are passed over.
        """
        kind = words(record.get("type"))
        text = words(record.get(_TITLES[kind])).strip()
        leaf = words(record.get("leafUuid"))
        if not text or (kind == "summary" and not self._chain.knows(leaf, self._before(base.start.byte))):
            self.skipped[kind] += 1
            return []
        return [base.event("mark", text, form="titled")]


_MARKS: dict[str, Form] = {"ran": "ran", "printed": "printed", "interrupted": "interrupted"}

_LEAVES: dict[str, Form] = {"remove": "handed", "dequeue": "sent", "popAll": "unsent"}


def _says_nothing(line: Line) -> str:
    """The type of a record that says nothing, "" for one that has to be parsed."""
    found = _TYPE.match(line.data)
    if found and (kind := found[1].decode("utf-8", "replace")) not in _USED:
        return kind
    if line.cut or _NEEDED.search(line.data):
        return ""
    found = found or _LAST_TYPE.match(line.data)
    return found[1].decode("utf-8", "replace") if found and line.data.rstrip().endswith(b"}") else ""


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


def _finished(text: str, details: Record) -> bool:
    """Whether a command that did not fail ended with status 0: not in the background, its status not explained away."""
    elsewhere = details.get("backgroundTaskId") or details.get("returnCodeInterpretation")
    return not elsewhere and not text.startswith("Command running in background")
