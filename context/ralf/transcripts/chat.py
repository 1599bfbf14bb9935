"""Chat messages with a role and a content: a JSON array, an object that holds one, or one message a line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from ralf.text.patterns import regex
from ralf.transcripts.elements import elements
from ralf.transcripts.events import (
    START,
    Event,
    Position,
    Record,
    arguments,
    blocks,
    first,
    is_frame,
    is_observation,
    leaves,
    said,
    status_of,
    time_of,
    words,
)
from ralf.transcripts.lines import (
    Base,
    Growing,
    Head,
    Line,
    open_regular,
    others,
    parsed,
    read_lines,
)
from ralf.transcripts.typed import typed

LISTS = ("messages", "history", "trajectory", "conversation", "conversations")
"""Keys under which an object holds its messages."""

_ROLES = ("user", "human", "assistant", "tool", "function", "system", "developer")

_SHOWS_STATUS = regex(
    rb'"(?:content|text)": ?"(?:<exception>[^"\\]{0,2000}</exception>(?:\\n)?)?<returncode>'
    rb'|"trajectory_format": ?"mini-swe-agent'
)
"""How the log of an agent begins whose commands stand in a block of its message, and their answers in a user's."""

_BLOCK_OPENS = regex(r"```(?:bash|sh|shell|mswea_bash_command)\s*")

_OF_THE_LOOP = regex(
    r"\s{0,4}(?:Please always provide EXACTLY ONE action|Format error|The last command <command>|<format_error>"
    r"|No tool calls found|Tool call error)"
)
"""What the loop of such an agent says itself where no command ran."""


def reader(path: Path, head: Head) -> Chat | None:
    """The reader of this file if it holds chat messages."""
    in_blocks = _SHOWS_STATUS.search(head.data) is not None
    if head.opening.startswith(b"["):
        return Chat(path, [], in_blocks=in_blocks) if _may_be_messages(head) else None
    if head.in_lines and any(_is_message(record) for record in head.records):
        return Chat(path, head.records, in_lines=True, in_blocks=in_blocks)
    if any(_holds_messages(head.document.get(key), head.whole) for key in LISTS):
        return Chat(path, [head.document], in_blocks=in_blocks)
    return None


def _may_be_messages(head: Head) -> bool:
    """Whether a list begins with a message, as far as the head tells: it may be empty, or cut in its first element."""
    rest = head.data.lstrip()[1:].lstrip()
    if rest[:1] != b"{":
        return rest[:1] in (b"]", b"")
    try:
        first_one, _ = json.JSONDecoder().raw_decode(rest.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return True
    return "role" in first_one


def _holds_messages(value: object, whole: bool) -> bool:
    """Whether a list is one of messages. Where the head does not hold the `whole` file, another list may be."""
    return isinstance(value, list) and (not value or not whole or (isinstance(value[0], dict) and "role" in value[0]))


def _has_role(record: Record) -> bool:
    return "role" in record


def _is_message(record: Record) -> bool:
    return isinstance(record.get("role"), str) and ("content" in record or "tool_calls" in record)


class Chat(Growing):
    """Chat messages; see ralf.transcripts.reader.Transcript for the fields.

    A file that is written anew with more messages at its end goes on after the last one that was read. Agents that show
    a tool's answer as a user's message are recognised by the action that came before it (SWE-agent), or by the exit
    status with which it begins (mini-swe-agent, whose command is the block of shell in the message before).
    """

    format = "chat"

    def __init__(
        self, path: Path, records: Iterable[Record], *, in_lines: bool = False, in_blocks: bool = False
    ) -> None:
        session = first(records, "session_id") or first(records, "sessionId")
        super().__init__(path, session=session, cwd=first(records, "cwd"))
        self._in_lines = in_lines
        self._in_blocks = in_blocks

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events after a place. Messages over 8 MiB are counted, not read; an unfinished last one waits.

        DamagedTranscript at the end of a first reading that has found no message, where one is finished.
        """
        self._start(after)
        reading = _Pass(self.skipped, resumed=after.byte > 0, in_blocks=self._in_blocks)
        with open_regular(self.path, after) as file:
            for line in read_lines(file, after) if self._in_lines else elements(file, LISTS, _has_role, after):
                record = None if line.cut else parsed(line.data)
                if record is None and not line.finished:
                    self.skipped["unfinished"] += 1
                    return
                end = Position(line.end, line.number + 1)
                if record is not None:
                    yield from reading.events(record, line)
                elif line.cut:
                    self.skipped["oversized"] += 1
                    yield Event("other", "", Position(line.start, line.number), end, cut=line.end - line.start)
                elif not line.data.isspace():
                    self._skip_malformed(line.number)
                self.end = end
        if after == START and not reading.has_understood:
            self.refuse_unread()


def events_of(messages: Iterable[Record]) -> Iterator[Event]:
    """The events of messages that a program holds; `start.line` of one is the number of its message, from 0."""
    reading = _Pass(Counter(), resumed=False, in_blocks=False)
    for number, record in enumerate(messages):
        yield from reading.events(record, Line(b"", number, number + 1, number))


def _block_of(record: Record) -> tuple[str, Record]:
    """The command in the only block of shell in a message, and the message without it."""
    rest: list[str] = []
    found: list[list[str]] = []
    within = False
    for line in said(record.get("content")).split("\n"):
        if within and line.startswith("```"):
            within = False
        elif within:
            found[-1].append(line)
        elif _BLOCK_OPENS.fullmatch(line):
            within = True
            found.append([])
        else:
            rest.append(line)
    if len(found) != 1 or within:
        return "", record
    return "\n".join(found[0]).strip(), {**record, "content": "\n".join(rest).strip()}


class _Pass:
    """One reading from a place to the end: which tools were called, and whether an answer is due.

    has_understood  a record was a message
    """

    def __init__(self, skipped: Counter[str], *, resumed: bool, in_blocks: bool) -> None:
        self.skipped = skipped
        self.has_understood = False
        self._in_blocks = in_blocks
        self._tools: dict[str, str] = {}
        self._commands: set[str] = set()
        self._acted = resumed
        self._action = ""

    def events(self, record: Record, line: Line) -> Iterator[Event]:
        """The events of one message."""
        base = Base(record, line, words(record.get("cwd")))
        base.timestamp = base.timestamp or time_of(record.get("created_at"))
        role = record.get("role")
        self.has_understood = self.has_understood or role in _ROLES
        if role == "assistant":
            yield from self._assistant(record, base)
        elif record.get("is_demo") is True:
            self.skipped["demonstration"] += 1
        elif role in ("tool", "function") or (role == "user" and self._is_observation(record)):
            yield self._result(record, base)
        elif role in ("user", "human"):
            yield from self._user(record, base)
        else:
            self.skipped[str(role) if role in _ROLES else "unknown role" if isinstance(role, str) else "no role"] += 1

    def _assistant(self, record: Record, base: Base) -> Iterator[Event]:
        action, calls = words(record.get("action")), record.get("tool_calls")
        calls = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        if self._in_blocks and not calls and not action:
            action, record = _block_of(record)
        self._action = action if not calls else ""
        self._acted = bool(action)
        content = record.get("thought") if self._action and isinstance(record.get("thought"), str) else None
        for block in blocks(record.get("content") if content is None else content):
            kind = block.get("type")
            text = words(block.get("text")) or words(block.get("thinking"))
            if kind == "tool_use":
                yield self._call(block.get("name"), block.get("id"), block.get("input"), base)
            elif text.strip() and (text := others(text, self.skipped)):
                yield base.event("thinking" if kind in ("thinking", "reasoning") else "assistant", text)
        for call in calls:
            function = call.get("function")
            function = function if isinstance(function, dict) else call
            yield self._call(function.get("name"), call.get("id"), function.get("arguments"), base)
        if self._action.strip():
            yield self._call("bash", "", {"command": self._action.strip()}, base)

    def _call(self, name: object, call_id: object, given: object, base: Base) -> Event:
        if isinstance(given, str):
            given = parsed(given.encode("utf-8", "replace")) or {"arguments": given}
        taken = arguments(given)
        self._tools[words(call_id)] = words(name)
        if taken.keys() & {"command", "cmd"} and not taken.keys() & {"path", "file_path"}:
            self._commands.add(words(call_id))
        return base.event("call", leaves(taken), tool=words(name), call_id=words(call_id), input=taken)

    def _result(self, record: Record, base: Base) -> Event:
        ids = record.get("tool_call_ids")
        call_id = words(record.get("tool_call_id")) or (words(ids[0]) if isinstance(ids, list) and ids else "")
        return self._answer(said(record.get("content")), call_id, record, base)

    def _answer(self, text: str, call_id: str, record: Record, base: Base) -> Event:
        tool = self._tools.pop(call_id, "") or words(record.get("name"))
        status = status_of(text, record) if call_id in self._commands or not call_id else None
        self._commands.discard(call_id)
        failed = record.get("is_error") is True or bool(status)
        return base.event(
            "result", others(text, self.skipped), tool=tool, call_id=call_id, failed=failed, exit_status=status
        )

    def _user(self, record: Record, base: Base) -> Iterator[Event]:
        """The answers of tools, and one message of what was typed in all blocks."""
        typed_ones = list[str]()
        for block in blocks(record.get("content")):
            if block.get("type") == "tool_result":
                yield self._answer(said(block.get("content")), words(block.get("tool_use_id")), block, base)
                continue
            text = words(block.get("text"))
            if not text.strip() or not (text := others(text, self.skipped)):
                continue
            request = "" if self._in_blocks and _OF_THE_LOOP.match(text) else typed(text)
            if is_frame(request):
                self.skipped["unknown frame"] += 1
                yield base.event("other", request)
            elif request:
                typed_ones.append(request)
            else:
                self.skipped["machine-written"] += 1
        if typed_ones:
            yield base.event("user", "\n".join(typed_ones), id=first([record], "id") or first([record], "uuid"))

    def _is_observation(self, record: Record) -> bool:
        """Whether a user's message is what an action of the agent answered. The first one never is."""
        if self._in_blocks and self._acted:
            return is_observation(said(record.get("content")))
        shown = self._action or record.get("message_type") == "observation"
        return (
            "agent" in record
            and self._acted
            and (bool(shown) or said(record.get("content")).rstrip().endswith("bash-$"))
        )
