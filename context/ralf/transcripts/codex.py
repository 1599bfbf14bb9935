"""Codex rollouts: their items, what its tools did and said, and which words a person typed."""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ralf.text.cleaning import besides, clean, one_line, outside, without_middle
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
    session_of_log,
    tokens_of,
    whole,
    words,
)
from ralf.transcripts.lines import Base, Head, Line, Log, Pass, parsed

# ---- the output of a tool, without what the client wrote around it ----


_HEADER = regex(
    r"(?:(?:Chunk ID|Wall time|Exit code|Process exited with code|Process running with session ID|Original token count"
    r"|Total output lines|Script (?:completed|failed|terminated|running))\b[^\n]{0,200}\n)+Output:\n"
)

_STATUS = regex(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.M)

_RUNNING = regex(r"^Process running with session ID (\d{1,18})$", re.M)

_SCRIPT_FAILED = regex(r"^Script (?:failed|terminated)\b", re.M)

_NEVER_RAN = regex(
    r"unsupported (?:custom tool )?call\b|failed to parse function arguments|(?:exec command|patch) rejected\b"
    r"|rejected by user|tool call (?:was )?(?:rejected|denied)|user (?:rejected|denied|cancelled)\b"
)

_FAILED = regex(
    r"aborted\b|command (?:timed out|aborted)\b|execution error\b|apply_patch verification failed\b"
    r"|(?:exec_command|write_stdin) failed\b|err(?:or)?: |unable to locate image\b|Script error\b"
)


@dataclass(frozen=True, slots=True)
class Output:
    """An output taken apart.

    text     the tool's words
    status   the command's exit status, None where nothing tells it
    running  the client's name of the process, where the command goes on in the background; else ""
    failed   it did not do what it was called for; `refused`: it never ran
    """

    text: str
    status: int | None = None
    running: str = ""
    failed: bool = False
    refused: bool = False


def parse_output(value: object) -> Output:
    """The output of a call, in any of the forms in which versions of the client have written it.

    A text; blocks of text; a text that is JSON with `output` and `metadata.exit_code`; an object with `content` and
    `success`. A text may begin with lines of the client's that end with `Output:`.
    """
    if isinstance(value, Mapping):
        found = _apart(words(value.get("content")) or words(value.get("output")))
        return replace(found, failed=found.failed or value.get("success") is False)
    if not isinstance(value, str):
        return _apart(_joined(value))
    tree = parsed(value) if value.startswith("{") and '"metadata"' in value else None
    if tree is None or not isinstance(tree.get("output"), str) or "metadata" not in tree:
        return _apart(clean(value))
    status = object_in(tree, "metadata").get("exit_code")
    status = status if isinstance(status, int) and not isinstance(status, bool) else None
    return Output(words(tree["output"]), status, failed=bool(status))


def _joined(content: object) -> str:
    parts = [words(block.get("text")) for block in blocks(content)]
    return "".join(part if part.endswith("\n") else f"{part}\n" for part in parts if part).removesuffix("\n")


def _apart(text: str) -> Output:
    found = Output(text)
    header = _HEADER.match(text)
    if header is None:
        refused = bool(_NEVER_RAN.match(text))
        return Output(text, failed=refused or bool(_FAILED.match(text)), refused=refused)
    for _ in range(2):  # a patch within a command has a header of its own
        if header is None or found.status is not None:
            break
        status, running = _STATUS.search(header[0]), _RUNNING.search(header[0])
        found = Output(
            found.text[header.end() :],
            int(status[1]) if status else None,
            running[1] if running else found.running,
            found.failed or bool(status and int(status[1])) or bool(_SCRIPT_FAILED.search(header[0])),
        )
        header = _HEADER.match(found.text)
    return found


# ---- calls, their results, and processes in the background ----


CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})

OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
"""Types of the items that are calls, and of those that are what a tool answered."""

WITHIN = "exec-"
"""How the ids begin of what a script has called: the conversation itself holds no record of that."""

_ESCAPED = regex(rb"%([0-9a-fA-F]{2})")

_OUTPUT_KEPT = (6_000, 6_000)  # characters of what a command printed that no item of the conversation shows


class Calls:
    """The calls of one reading whose results are still to come. `others` takes our own output out of a text.

    A command that goes on in the background has no result before its end: an event tells that, or the output of a later
    call that asked its process.
    """

    def __init__(self, others: Callable[[str], str]) -> None:
        self._others = others
        self._tools: dict[str, str] = {}
        self._asked: dict[str, Mapping[str, Any]] = {}
        self._running: dict[str, str] = {}  # process → the call that started it, "" once its end was told
        self._polls: dict[str, str] = {}  # call → the process that it asks

    def tells(self, id_: str) -> bool:
        """Whether an event about a command or patch of this id says what no item of the conversation does."""
        return id_.startswith(WITHIN) or id_ in self._running.values()

    def called(self, inner: str, payload: Record, base: Base) -> list[Event]:
        """The events of an item that is a call."""
        call_id = words(payload.get("call_id")) or words(payload.get("id"))
        if inner == "local_shell_call":
            return [self._call("local_shell", call_id, payload.get("action"), base)]
        if inner == "web_search_call":  # its answer is not recorded
            call = self._call("web_search", call_id, payload.get("action"), base)
            self._tools.pop(call_id, None)
            return [call, base.event("result", "", tool="web_search", call_id=call_id)]
        given = payload.get("arguments" if inner == "function_call" else "input")
        name, space = words(payload.get("name")), words(payload.get("namespace"))
        name = f"{space}__{name}" if space not in ("", "functions") else name
        if isinstance(given, str):
            tree = parsed(given) if inner == "function_call" else None
            given = {"input": given} if tree is None else tree
        return [self._call(name, call_id, given, base)]

    def _call(self, name: str, call_id: str, given: object, base: Base, *, cwd: str = "") -> Event:
        taken = arguments(given)
        self._tools[call_id] = name
        if name == "write_stdin":
            self._polls[call_id] = str(taken.get("session_id", ""))
        elif name == "request_user_input":
            self._asked[call_id] = taken
        where = cwd or words(taken.get("workdir")) or words(taken.get("working_directory"))
        where = posixpath.normpath(posixpath.join(base.cwd, where)) if where else base.cwd
        return base.event("call", leaves(taken), tool=name, call_id=call_id, input=taken, cwd=where)

    def answered(self, payload: Record, base: Base) -> list[Event]:
        """The events of an item that is what a tool answered."""
        call_id = words(payload.get("call_id"))
        tool, output = self._tools.pop(call_id, ""), parse_output(payload.get("output"))
        process = self._polls.pop(call_id, "")
        if output.running and not process:
            self._running[output.running] = call_id
            return [base.event("result", self._others(output.text), tool=tool)]  # not yet the call's result
        answer, secret = answered_questions(self._asked.pop(call_id, None), output.text)
        text = "" if secret else self._others(output.text)
        ended: dict[str, Any] = {
            "exit_status": output.status,
            "failed": output.failed,
            "refused": output.refused,
        }
        made = []
        if process in self._running and not output.refused:
            started = self._running[process]
            if started and output.status is not None:
                self._running[process] = ""
                made.append(base.event("result", text, tool="exec_command", call_id=started, **ended))
                text = ""
            ended = {}
        made.append(base.event("result", text, tool=tool, call_id=call_id, **ended))
        if answer:
            made.append(base.event("user", answer))
        return made

    def executed(self, item: Record, base: Base) -> list[Event]:
        """A command of which an event tells: one that a script ran, or the end of one in the background."""
        id_, status = words(item.get("id")), whole(item.get("exit_code"))
        text = self._others(without_middle(words(item.get("aggregated_output")), *_OUTPUT_KEPT)[0])
        result = base.event(
            "result",
            text,
            tool="exec_command",
            call_id=id_,
            exit_status=status,
            failed=bool(status) or item.get("status") == "failed",
            refused=item.get("status") == "declined",
        )
        process = next((name for name, call in self._running.items() if call == id_), None)
        if process is not None and status is not None:
            self._running[process] = ""
            return [result]
        if not id_.startswith(WITHIN):
            return []  # it was stopped with the client, or is in the conversation itself
        call = self._call("exec_command", id_, {"command": item.get("command")}, base, cwd=_folder(item.get("cwd")))
        self._tools.pop(id_, None)
        return [call, result]

    def patched(self, item: Record, base: Base) -> list[Event]:
        """Files that a script changed, of which an event tells."""
        id_, changes = words(item.get("id")), item.get("changes")
        if not id_.startswith(WITHIN) or not isinstance(changes, dict):
            return []
        failed = item.get("status") != "completed"
        text = "\n".join(part for path, change in changes.items() for part in (words(path), leaves(change)) if part)
        call = base.event("call", text, tool="apply_patch", call_id=id_, input=arguments({"changes": changes}))
        output = self._others(words(item.get("stderr" if failed else "stdout")))
        return [call, base.event("result", output, tool="apply_patch", call_id=id_, failed=failed)]


def _folder(value: object) -> str:
    """A folder that newer versions write as a `file:` URL."""
    text = words(value)
    if not text.startswith("file://"):
        return text
    plain = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), text.removeprefix("file://").encode())
    return words(plain.decode("utf-8", "replace"))


# ---- the words that a person typed ----


_BY_PERSON = "user.text"
"""The kind that newer versions give to the blocks that were typed."""

_REQUEST = "## My request for Codex:"
"""An editor's extension puts what is open before the words that were typed, and this line between the two: the last
such line, since what is open may hold one."""

_WRAPPED = regex(r"<([a-z][\w-]*)(?:\s[^<>]*)?>.*</\1>\s*\Z", re.S)

_OPENED = regex(
    r"<(?:environment_context|user_instructions|turn_aborted|user_shell_command|user_action|image)\b|</image>"
)

_MACHINE = (
    "# AGENTS.md instructions",
    "Another language model started to solve this problem",
    "You are performing a CONTEXT CHECKPOINT COMPACTION",
    "You have exceeded the maximum number of tokens",
)

_NOTE = "user_note: "


def typed_in_message(payload: Record) -> str:
    """The words that a person typed of a `response_item` in the user's role, "" for none.

    Newer versions say of each block where it comes from. Of older ones what stands whole between two tags, or begins as
    the client's texts do, is taken for the client's: such versions record what was typed as an event, too (`in_event`).
    """
    kinds = object_in(payload, "internal_chat_message_metadata_passthrough").get("content_item_kinds")
    texts = [words(block.get("text")) for block in blocks(payload.get("content"))]
    if isinstance(kinds, list):
        texts = [text for text, kind in zip(texts, kinds, strict=False) if kind == _BY_PERSON]
    else:
        texts = [text for text in texts if not _is_machine_written(text.strip())]
    return _requested("\n".join(text for text in texts if text.strip()))


def typed_in_event(payload: Record) -> str:
    """The words that a person typed as a `user_message` or `UserMessage` event tells them, "" for none."""
    if "item" in payload:
        content = object_in(payload, "item").get("content")
        return _requested("\n".join(text for block in blocks(content) if (text := words(block.get("text"))).strip()))
    return _requested(words(payload.get("message"))) if payload.get("kind") in (None, "plain") else ""


def answered_questions(asked: object, output: str) -> tuple[str, bool]:
    """What a person answered to `request_user_input`, each behind its question, a line each; whether one is secret.

    asked   the call's arguments
    output  the text of its output, JSON
    """
    try:
        given = json.loads(output)["answers"]
        questions = [dict(question) for question in asked["questions"]]  # type: ignore[index]
        answers = [(question, given[question["id"]]["answers"]) for question in questions if question["id"] in given]
    except (ValueError, TypeError, KeyError, RecursionError):
        return "", False
    lines, secret = [], False
    for question, given in answers:
        if question.get("isSecret") is True:
            secret = True
        elif isinstance(given, list) and (texts := [words(text).removeprefix(_NOTE) for text in given if words(text)]):
            lines.append(" ".join([words(question.get("question")), *texts]).strip())
    return "\n".join(lines), secret


def _requested(text: str) -> str:
    text = besides(outside(text)).strip()
    _, found, request = text.rpartition(_REQUEST) if text.startswith("# ") else ("", "", "")
    return request.strip() if found else text


def _is_machine_written(text: str) -> bool:
    return bool(text.startswith(_MACHINE) or _OPENED.match(text) or _WRAPPED.match(text))


# ---- records: one for each item of the conversation and for each event of the client ----


_WRAPPERS = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"})

_ITEMS = frozenset({"message", "reasoning"}) | CALLS | OUTPUTS

_READ = frozenset({"response_item", "event_msg", "turn_context", "compacted", "token_usage_record"})

_TURN_ENDS = frozenset({"task_started", "task_complete", "turn_aborted"})

_EVENTS = frozenset({"token_count", "user_message", "agent_message", "item_completed"}) | _TURN_ENDS

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
    return Codex(path, records) if any(map(_is_ours, records)) else None


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

    def __init__(self, path: Path, records: Iterable[Record]) -> None:
        meta = next((found for record in records if (found := _meta(record))), {})
        super().__init__(
            path,
            session=words(meta.get("id")) or session_of_log(path),
            cwd=words(meta.get("cwd")) or _told_cwd(records),
            branch=words(object_in(meta, "git").get("branch")),
        )

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events after a place. A message of the agent that may be the summary of a compaction waits."""
        return self._read(_Pass(self.skipped, self.cwd), after)


class _Pass(Pass):
    """Which calls run, what the agent has announced, and which of its messages may be a summary."""

    def __init__(self, skipped: Counter[str], cwd: str) -> None:
        super().__init__(skipped)
        self._cwd = cwd
        self._calls = Calls(self.others)
        self._announced: deque[str] = deque(maxlen=8)
        self._met: dict[str, int] = {}

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
            if item and what in ("CommandExecution", "FileChange"):
                id_ = (item[2] or b"").decode("utf-8", "replace")
                return "" if self._calls.tells(id_) else what
            return "" if what in ("", "UserMessage", "AgentMessage") else what
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
        if wrapped and one_line(text) not in self._announced:
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
            return self._request(typed_in_event(payload), base, by_event=True)
        if inner == "task_started":
            capacity = whole(payload.get("model_context_window")) or None
            return [base.event("other", "", capacity=capacity)] if capacity else []
        if inner == "agent_message":
            return self._announce(words(payload.get("message")))
        if what == "AgentMessage":
            return self._announce("\n".join(words(block.get("text")) for block in blocks(item.get("content"))))
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
            return self._request(typed_in_message(payload), base, by_event=False)
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

    def _request(self, text: str, base: Base, *, by_event: bool) -> list[Event]:
        """A request, which stands in the rollout as a message, as an event, or as both, in either order."""
        if not text:
            self.skipped["injected"] += 1
            return []
        key, way = one_line(text), -1 if by_event else 1
        met = self._met.pop(key, 0)
        if met + way:
            self._met[key] = met + way
            for gone in list(islice(self._met, max(0, len(self._met) - 64))):
                del self._met[gone]
        return [base.event("user", text)] if met * way >= 0 else []


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
