"""Codex rollouts: their items, which words a person typed and ran, and what the client recorded of a turn."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ralf.text.cleaning import besides, one_line, outside, without_middle
from ralf.text.patterns import regex
from ralf.transcripts.codex_tools import CALLS, OUTPUT_KEPT, OUTPUTS, Calls
from ralf.transcripts.events import (
    START,
    Event,
    Form,
    Position,
    Record,
    blocks,
    first,
    is_frame,
    object_in,
    said,
    session_of_log,
    tokens_of,
    whole,
    words,
)
from ralf.transcripts.lines import Base, Head, Line, Log, Pass

# ---- the words that a person typed ----


_BY_PERSON = "user.text"
"""The kind that newer versions give to the blocks that were typed."""

_REQUEST = "## My request for Codex:"
"""An editor's extension puts what is open before the words that were typed, and this line between the two: the last
such line, since what is open may hold one."""

_SHELL = "<user_shell_command>"
"""How a command begins that the person ran, as the model is shown it."""

_SHELL_RESULT = regex(r"\s*Exit code: (-?\d{1,9})\n(?:Duration: [^\n]*\n)?(?:Output:\n)?")

_FRAME = regex(
    r"<(?:environment_context|user_instructions|permissions instructions|apps_instructions|plugins_instructions"
    r"|skills?_instructions|skill|collaboration_mode|model_switch|personality_spec|turn_aborted|subagent_notification"
    r"|hook_prompt|user_shell_command|user_action|image)\b|</image>"
)
"""How the client's own texts in the user's role begin, and `_MACHINE`."""

_MACHINE = (
    "# AGENTS.md instructions",
    "Another language model started to solve this problem",
    "You are performing a CONTEXT CHECKPOINT COMPACTION",
    "You have exceeded the maximum number of tokens",
)


class Words(NamedTuple):
    """What stands in a message in the user's role.

    typed   a person's words, "" for none
    shell   the frames of commands that the person ran
    others  texts that are one element of an unknown name
    """

    typed: str
    shell: list[str]
    others: list[str]


def words_of_message(payload: Record) -> Words:
    """Take a `response_item` in the user's role apart, by the kinds of its blocks where it has them, else by how each
    text begins.
    """
    kinds = payload.get("content_item_kinds")
    if not isinstance(kinds, list):
        kinds = object_in(payload, "internal_chat_message_metadata_passthrough").get("content_item_kinds")
    typed, shell, others = list[str](), list[str](), list[str]()
    texts = [words(block.get("text")).strip() for block in blocks(payload.get("content"))]
    for number, text in enumerate(texts):
        if text.startswith(_SHELL):
            shell.append(text)
        elif isinstance(kinds, list):
            if kinds[number : number + 1] == [_BY_PERSON]:
                typed.append(text)
        elif is_frame(text) and not _FRAME.match(text):
            others.append(text)
        elif not text.startswith(_MACHINE) and not _FRAME.match(text):
            typed.append(text)
    return Words(_requested("\n".join(filter(None, typed))), shell, others)


def typed_in_event(payload: Record) -> str:
    """The words that a person typed as a `user_message` or `UserMessage` event tells them, "" for none."""
    if "item" in payload:
        content = object_in(payload, "item").get("content")
        return _requested("\n".join(text for block in blocks(content) if (text := words(block.get("text"))).strip()))
    return _requested(words(payload.get("message"))) if payload.get("kind") in (None, "plain") else ""


def _requested(text: str) -> str:
    text = besides(outside(text)).strip()
    _, found, request = text.rpartition(_REQUEST) if text.startswith("# ") else ("", "", "")
    return request.strip() if found else text


# ---- records: one for each item of the conversation and for each event of the client ----


_WRAPPERS = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"})

_ITEMS = frozenset({"message", "reasoning"}) | CALLS | OUTPUTS

_READ = frozenset({"response_item", "event_msg", "turn_context", "compacted", "token_usage_record"})

_COMPLETE = frozenset({"task_complete", "turn_complete"})

_TURN_ENDS = frozenset({"task_started", "turn_started", "turn_aborted"}) | _COMPLETE

_EVENTS = (
    frozenset({"token_count", "user_message", "agent_message", "item_completed", "thread_rolled_back", "error"})
    | _TURN_ENDS
)

_BY_SHELL = regex(rb'"source"\s*:\s*"(?:user_shell|userShell)"')
"""A command that the person ran, in a record of any length: within a string its quotation marks are escaped."""

_TYPED = regex(rb'"type"\s*:\s*"(?:user_message|UserMessage)"')
"""An event that tells what a person typed. If a file has any, nothing else does."""

# What a record is, where only scalars come before it, as in every rollout that was seen: so it is certain.
_TYPES = regex(
    rb'\s*+\{(?:\s*+"(?:timestamp|ordinal)"\s*+:\s*+(?:"[^"\\]*+"|\d++)\s*+,)*+\s*+"type"\s*+:\s*+"([^"\\]*+)"'
    rb'(?:\s*+,\s*+"payload"\s*+:\s*+\{\s*+"type"\s*+:\s*+"([^"\\]*+)")?'
)

_NOT_A_PERSONS = regex(rb'"role"\s*:\s*"(?:developer|system)"')

_ITEM = regex(rb'"item"\s*:\s*\{\s*"type"\s*:\s*"([^"\\]*)"(?:\s*,\s*"id"\s*:\s*"([^"\\]*)")?')

_NEAR = 1_000  # bytes behind the types in which these two are looked for

_CWD = regex(r"<cwd>([^<>\n]{1,4096})</cwd>")


def reader(path: Path, head: Head) -> Codex | None:
    """The reader of this file if it is a Codex rollout."""
    records = head.records or [head.document]
    if not any(map(_is_ours, records)):
        return None
    typed = _TYPED.search(head.data)
    return Codex(path, records, typed=typed.start() if typed else None)


def _is_ours(record: Record) -> bool:
    if isinstance(record.get("payload"), dict):
        return words(record.get("type")) in _WRAPPERS
    longer_than_head = record.get("type") == "session_meta"
    return longer_than_head or record.get("record_type") == "state" or _is_old_head(record)


def _is_old_head(record: Record) -> bool:
    """Whether a record is the first one of a rollout from before September 2025, whose records have no wrapper."""
    return "type" not in record and "id" in record and "timestamp" in record and "instructions" in record


class Codex(Log):
    """A Codex rollout; see ralf.transcripts.reader.Transcript for the fields."""

    format = "codex"

    def __init__(self, path: Path, records: Iterable[Record], *, typed: int | None = None) -> None:
        """typed: the place of the first event that tells what a person typed, None where the head has none."""
        meta = next((found for record in records if (found := _meta(record))), {})
        super().__init__(
            path,
            session=words(meta.get("id")) or session_of_log(path),
            cwd=words(meta.get("cwd")) or _told_cwd(records),
            branch=words(object_in(meta, "git").get("branch")),
        )
        self._typed = typed
        self._form: Form = "program" if _is_of_an_agent(meta) else ""

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events after a place. A message of the agent that may be the summary of a compaction waits."""
        by_events = self._typed is not None and self._typed < after.byte
        return self._read(_Pass(self.skipped, self.cwd, self._form, by_events=by_events), after)


class _Pass(Pass):
    """Which calls run, what the agent has announced, and which of its messages may be a summary.

    form       how the messages came
    by_events  an event before that place has told what a person typed
    """

    def __init__(self, skipped: Counter[str], cwd: str, form: Form = "", *, by_events: bool = False) -> None:
        super().__init__(skipped)
        self._cwd = cwd
        self._form = form
        self._by_events = by_events
        self._before = ""  # the message that the first event may tell once more
        self._calls = Calls(self.others)
        self._announced: deque[str] = deque(maxlen=8)
        self._ran: dict[str, int] = {}  # command → how often more a message has it than events

    def passed_over(self, line: Line) -> str:
        """What a finished line is that says nothing; see `Pass`."""
        data = line.data
        found = _TYPES.match(data)
        if found is None:
            return ""
        kind, inner = found[1].decode("utf-8", "replace"), (found[2] or b"").decode("utf-8", "replace")
        if kind == "response_item" and inner:
            if inner == "message" and _NOT_A_PERSONS.search(data, found.end(), found.end() + _NEAR):
                return "developer"
            return "" if inner in _ITEMS else inner
        if kind == "event_msg" and inner == "item_completed":
            item = _ITEM.search(data, found.end(), found.end() + _NEAR)
            what = item[1].decode("utf-8", "replace") if item else ""
            if item and what in ("CommandExecution", "FileChange") and not _BY_SHELL.search(data, item.end()):
                id_ = (item[2] or b"").decode("utf-8", "replace")
                return "" if self._calls.tells(id_) else what
            return "" if what in ("", "UserMessage", "AgentMessage", "CommandExecution", "FileChange") else what
        if inner == "exec_command_end" and kind == "event_msg" and _BY_SHELL.search(data, found.end()):
            return ""
        if kind == "event_msg" and inner:
            return "" if inner in _EVENTS else inner
        return "" if kind in _READ or kind in _ITEMS else kind

    def events(self, record: Record, line: Line) -> Iterator[Event]:
        """The events of one record."""
        kind, payload = _unwrapped(record)
        base = Base(record, line, self._cwd)
        if kind == "turn_context":
            self._cwd = words(payload.get("cwd")) or self._cwd
            self.skipped[kind] += 1
            return
        if kind == "compacted":
            yield from self._compacted(payload, base)
            return
        inner = words(payload.get("type"))
        if kind == "token_usage_record" or (kind == "event_msg" and inner == "token_count"):
            made = _usage(payload, base)
            if self.waiting:
                self.waiting += made  # as that of a compaction it would be no usage of the conversation
                return
        elif kind == "event_msg":
            made = self._told(inner, payload, base)
        elif kind == "response_item":
            if inner == "message" and payload.get("role") == "assistant":
                yield from self._answer(payload, base, wrapped="payload" in record)
                return
            made = self._item(inner, payload, base)
        else:
            self.skipped[kind] += 1
            return
        if self.waiting and (made or inner in _TURN_ENDS):
            yield from self._released()
        yield from made

    # ---- what the agent said ----

    def _answer(self, payload: Record, base: Base, *, wrapped: bool) -> Iterator[Event]:
        """A message. One that was not announced waits: it may be the summary of a compaction, which is the next one."""
        yield from self._released()
        text = said(payload.get("content"))
        if not text.strip() or not (others := self.others(text)):
            return
        event = base.event("assistant", others)
        is_answer = isinstance(payload.get("phase"), str)  # of a summary no phase of the turn is recorded
        if wrapped and not is_answer and one_line(text) not in self._announced:
            self.waiting = [event]
        else:
            yield event

    def _released(self) -> Iterator[Event]:
        held, self.waiting = self.waiting, []
        yield from held

    def _compacted(self, payload: Record, base: Base) -> Iterator[Event]:
        text = words(payload.get("message"))
        if self.waiting and self.waiting[0].text.strip() not in text:
            yield from self._released()
        start = self.waiting[0].start if self.waiting else None
        self.waiting = []
        yield base.event("compaction", text, start=start)

    # ---- events of the client's ----

    def _told(self, inner: str, payload: Record, base: Base) -> list[Event]:
        item = object_in(payload, "item")
        what = words(item.get("type"))
        if inner == "user_message" or what == "UserMessage":
            return self._typed_by_event(typed_in_event(payload), words(item.get("id")), base)
        if inner in ("task_started", "turn_started"):
            capacity = whole(payload.get("model_context_window")) or None
            return [base.event("other", "", capacity=capacity)] if capacity else []
        if inner in _COMPLETE:
            failed = words(object_in(payload, "error").get("message"))
            stopped = [base.event("mark", failed, form="stopped")] if failed else []
            return [*stopped, base.event("mark", "", form="ended")]
        if inner == "turn_aborted":
            return [_aborted(words(payload.get("reason")), base)]
        if inner == "thread_rolled_back":
            turns = whole(payload.get("num_turns"))
            return [base.event("mark", "", form="rewound", input={"turns": turns})] if turns else []
        if inner == "error":
            return [base.event("mark", words(payload.get("message")), form="stopped")]
        if inner == "exec_command_end":
            return self._ran_by_person(payload, base)
        if inner == "agent_message":
            return self._announce(words(payload.get("message")))
        if what == "AgentMessage":
            return self._announce("\n".join(words(block.get("text")) for block in blocks(item.get("content"))))
        if what == "CommandExecution" and item.get("source") in ("user_shell", "userShell"):
            return self._ran_by_person(item, base)
        if what == "CommandExecution":
            return self._calls.executed(item, base)
        if what == "FileChange":
            return self._calls.patched(item, base)
        self.skipped[what or inner or "untyped"] += 1
        return []

    def _announce(self, text: str) -> list[Event]:
        self._announced.append(one_line(text))
        if self.waiting and one_line(text) == one_line(self.waiting[0].text):
            return list(self._released())
        return []

    # ---- items of the conversation ----

    def _item(self, inner: str, payload: Record, base: Base) -> list[Event]:
        if inner == "message":
            if payload.get("role") != "user":
                self.skipped[words(payload.get("role")) or "no role"] += 1
                return []
            return self._message(payload, base)
        if inner == "reasoning":
            parts = [block for key in ("summary", "content") for block in blocks(payload.get(key))]
            text = "\n".join(text for block in parts if (text := words(block.get("text"))))
            return [base.event("thinking", text)] if text.strip() else []
        if inner in CALLS:
            return self._calls.called(inner, payload, base)
        if inner in OUTPUTS:
            return self._calls.answered(payload, base)
        self.skipped[inner or "untyped"] += 1
        return []

    # ---- what a person typed and ran ----

    def _message(self, payload: Record, base: Base) -> list[Event]:
        """A message in the user's role: a person's where no event tells what a person typed."""
        parts = words_of_message(payload)
        events = [event for frame in parts.shell for event in self._shown_to_model(frame, base)]
        if self._by_events:
            if not parts.shell:
                self.skipped["repeated" if parts.typed else "injected"] += 1
            return events
        if parts.others:
            self.skipped["unknown frame"] += len(parts.others)
            events.append(base.event("other", "\n".join(parts.others)))
        if parts.typed:
            self._before = one_line(parts.typed)
            events.append(base.event("user", parts.typed, form=self._form, id=words(payload.get("id"))))
        elif not events:
            self.skipped["injected"] += 1
        return events

    def _typed_by_event(self, text: str, id_: str, base: Base) -> list[Event]:
        """An event that tells what a person typed; a message right before the first one may have told the same."""
        before, self._before, self._by_events = self._before, "", True
        if not text or one_line(text) == before:
            self.skipped["repeated" if text else "injected"] += 1
            return []
        return [base.event("user", text, form=self._form, id=id_)]

    def _ran_by_person(self, payload: Record, base: Base) -> list[Event]:
        """A command that the person ran, of which an event tells."""
        given = payload.get("command")
        argv = [words(word) for word in given] if isinstance(given, list) else [words(given)]
        is_script = len(argv) == _SCRIPT and argv[1].startswith("-")
        status = payload.get("exit_code")
        status = status if isinstance(status, int) and not isinstance(status, bool) else None
        printed = first([payload], "aggregated_output") or first([payload], "stdout") + first([payload], "stderr")
        return self._shell(argv[-1] if is_script else " ".join(argv), status, printed, base, by_event=True)

    def _shown_to_model(self, frame: str, base: Base) -> list[Event]:
        """A command that the person ran, as the model was shown it."""
        command = frame.partition("<command>")[2].partition("</command>")[0].strip()
        result = frame.partition("<result>")[2].rpartition("</result>")[0]
        header = _SHELL_RESULT.match(result)
        status = int(header[1]) if header else None
        printed = result[header.end() :] if header else result
        return self._shell(command, status, printed.removesuffix("\n"), base, by_event=False)

    def _shell(self, command: str, status: int | None, printed: str, base: Base, *, by_event: bool) -> list[Event]:
        """Its marks, once: a rollout has it as an event, as a message, or as both, in either order."""
        key, way = one_line(command), -1 if by_event else 1
        balance = self._ran.pop(key, 0)
        if balance + way:
            self._ran[key] = balance + way
            for oldest in list(islice(self._ran, max(0, len(self._ran) - 64))):
                del self._ran[oldest]
        if balance * way < 0:
            self.skipped["repeated"] += 1
            return []
        text = self.others(without_middle(printed, *OUTPUT_KEPT)[0])
        ran = base.event("mark", command, form="ran")
        return [ran, base.event("mark", text, form="printed", exit_status=status, failed=bool(status))]


_SCRIPT = 3
"""Words of a command that a shell runs: the shell, its switch, the script."""


def _aborted(reason: str, base: Base) -> Event:
    """How a turn ended before its end: only two of the client's reasons are none of the person's."""
    if reason == "review_ended":
        return base.event("mark", "", form="ended")
    return base.event("mark", reason, form="stopped" if reason == "budget_limited" else "interrupted")


def _is_of_an_agent(meta: Record) -> bool:
    """Whether the client, an agent of it, or a program to which it is a tool, began the session: nobody typed in it."""
    source = meta.get("source")
    by_agent = source == "mcp" or (isinstance(source, dict) and not source.keys().isdisjoint(("subagent", "internal")))
    return by_agent or words(meta.get("thread_source")) not in ("", "user")


def _unwrapped(record: Record) -> tuple[str, Record]:
    """What a record is, and what it holds; an old one without a wrapper holds itself."""
    kind, payload = words(record.get("type")), record.get("payload")
    if isinstance(payload, dict):
        return kind, payload
    return ("response_item", record) if kind in _ITEMS else (kind or words(record.get("record_type")) or "untyped", {})


def _meta(record: Record) -> Record:
    if record.get("type") == "session_meta":
        return object_in(record, "payload")
    return record if _is_old_head(record) else {}


def _told_cwd(records: Iterable[Record]) -> str:
    """The working directory that the first records name otherwise than in a field of their own."""
    payloads = [_unwrapped(record)[1] for record in islice(records, 20)]
    texts = (said(payload.get("content")) for payload in payloads)
    return first(payloads, "cwd") or next((match[1] for text in texts if (match := _CWD.search(text))), "")


def _usage(payload: Record, base: Base) -> list[Event]:
    """What the window holds: after each answer of the model, and after its calls once more with the window's size."""
    info = payload.get("info")
    last = payload.get("usage") if not isinstance(info, dict) else info.get("last_token_usage")
    if not isinstance(last, dict):
        return []
    window = whole(last.get("total_tokens"))  # after a compaction this one alone is told
    if not window:
        window = tokens_of(last, "input_tokens", "output_tokens")
    capacity = whole(info.get("model_context_window")) if isinstance(info, dict) else None
    return [base.event("other", "", window=window, capacity=capacity or None)]
