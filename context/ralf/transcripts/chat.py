"""Chat messages with a role and a content: a JSON array, an object that holds one, or one message a line."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from ralf.text.patterns import regex
from ralf.transcripts.events import (
    START,
    Event,
    Position,
    Record,
    arguments,
    blocks,
    first,
    is_observation,
    leaves,
    said,
    status_of,
    time_of,
    words,
)
from ralf.transcripts.lines import (
    LINE_LIMIT,
    PIECE,
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
        """The events after a place. Messages over 8 MiB are counted, not read; an unfinished last one waits."""
        self._start(after)
        reading = _Pass(self.skipped, resumed=after.byte > 0, in_blocks=self._in_blocks)
        with open_regular(self.path, after) as file:
            for line in read_lines(file, after) if self._in_lines else elements(file, after):
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
    """One reading from a place to the end: which tools were called, and whether an answer is due."""

    def __init__(self, skipped: Counter[str], *, resumed: bool, in_blocks: bool) -> None:
        self.skipped = skipped
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
        if role == "assistant":
            yield from self._assistant(record, base)
        elif record.get("is_demo") is True:
            self.skipped["demonstration"] += 1
        elif role in ("tool", "function") or (role == "user" and self._is_observation(record)):
            yield self._result(record, base)
        elif role in ("user", "human"):
            yield from self._user(record, base)
        else:
            self.skipped[role if isinstance(role, str) else "no role"] += 1

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
        for block in blocks(record.get("content")):
            if block.get("type") == "tool_result":
                yield self._answer(said(block.get("content")), words(block.get("tool_use_id")), block, base)
                continue
            text = words(block.get("text"))
            if not text.strip() or not (text := others(text, self.skipped)):
                continue
            if self._in_blocks and _OF_THE_LOOP.match(text):
                self.skipped["machine-written"] += 1
                continue
            request = typed(text)
            if request:
                yield base.event("user", request)
            else:
                self.skipped["machine-written"] += 1

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


# ---- the elements of a JSON list in a file, one at a time: the file is never held whole ----

_SPACE = regex(rb"[\s,:]*+")

_CHARACTERS = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'

_IN_CHARACTERS = regex(_CHARACTERS, re.S)

_BETWEEN = regex(rb'[^"{}\[\]]*+(?:"' + _CHARACTERS + rb'"[^"{}\[\]]*+)*+', re.S)

_SCALAR = regex(rb"[^\s,\]}]*+")


def elements(file: io.BufferedReader, after: Position) -> Iterator[Line]:
    """The elements from a place on: those of the list that the file is, or of the first list of messages in its object.

    Of an element over LINE_LIMIT nothing is held. An element that has no end yet is given last, unfinished; what
    follows the list is not read.
    """
    values = _Values(file, after.byte)
    if after.byte == 0:
        opening = values.peek()
        values.skip()
        if opening == b"{" and not _enter(values):
            return
    number = after.line
    while values.peek() not in (b"", b"]", b"}"):
        start = values.at
        data = values.take()
        cut = values.at - start if data is None else 0
        yield Line(data or b"", start, values.at, number, cut=cut, finished=values.finished)
        number += 1
        if not values.finished:
            return


def _enter(values: _Values) -> bool:
    """Go into the first list of messages; false if the object has none."""
    while values.peek() == b'"':
        key = _json(values.take())
        if values.peek() == b"[" and key in LISTS:
            outside = values.at
            values.skip()
            inside = values.at
            message = _json(values.take()) if values.peek() == b"{" else None
            if isinstance(message, dict) and "role" in message:
                values.move(inside)
                return True
            values.move(outside)
        values.take()
        if not values.finished:
            return False
    return False


def _json(data: bytes | None) -> object:
    try:
        return None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None


class _Values:
    """The JSON values in a file from a byte on. `at` is the byte after the last one taken."""

    def __init__(self, file: io.BufferedReader, at: int) -> None:
        self._file = file
        self.move(at)

    def move(self, at: int) -> None:
        """Go to a byte."""
        self._file.seek(at)
        self._held = b""
        self._from = 0
        self.at = at
        self.finished = True

    def peek(self) -> bytes:
        """The first byte of what comes next, b"" at the end of the file."""
        while True:
            found = _SPACE.match(self._held, self._from)
            self._go(found.end() if found else self._from)
            if self._from < len(self._held):
                return self._held[self._from : self._from + 1]
            if not self._more():
                return b""

    def skip(self) -> None:
        """Go past that byte."""
        self._go(self._from + 1)

    def take(self) -> bytes | None:
        """The value that begins here; None if it is too long. `finished` tells whether its end is in the file."""
        kind, first = self.peek(), self.at
        keep = self._from
        depth, in_string, self.finished = 0, False, True
        while True:
            where = self._from
            if in_string:
                where = _end_of(_IN_CHARACTERS, self._held, where)
                mark = self._held[where : where + 1]
                if mark == b'"':
                    in_string, where = False, where + 1
            elif depth or kind in b'"{[':
                where = _end_of(_BETWEEN, self._held, where) if depth else where
                mark = self._held[where : where + 1]
                where += len(mark)
                in_string = mark == b'"'
                depth += (mark in (b"{", b"[")) - (mark in (b"}", b"]"))
            else:
                where = _end_of(_SCALAR, self._held, where)
                mark = self._held[where : where + 1]
            self._go(where)
            done = mark and not in_string and depth == 0
            if done:
                break
            if mark and mark != b"\\":
                continue
            if self.at - first > LINE_LIMIT:
                keep = -1
            dropped = self._from if keep < 0 else keep
            read = self._more(dropped)
            keep = keep if keep < 0 else 0
            if not read:
                self.finished = False
                break
        return None if keep < 0 or self.at - first > LINE_LIMIT else self._held[keep : self._from]

    def _go(self, where: int) -> None:
        self.at += where - self._from
        self._from = where

    def _more(self, dropped: int | None = None) -> bool:
        """Read on, and let go of what lies before `dropped` (default: before here)."""
        piece = self._file.read(PIECE)
        dropped = self._from if dropped is None else dropped
        self._held = self._held[dropped:] + piece
        self._from -= dropped
        return bool(piece)


def _end_of(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)
    return found.end() if found else at
