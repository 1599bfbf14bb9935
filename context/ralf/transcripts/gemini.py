"""Gemini CLI's session logs: messages that are appended, and appended once more when they have grown.

The client writes a message when it is complete, and the whole message again, with the same id, once its calls are
answered. A record `$set` replaces fields of the session, the list of messages among them: after a compaction of its
window, and when a session is resumed.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path

from ralf.storage.files import content_of
from ralf.text.cleaning import besides
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
    tokens_of,
    words,
)
from ralf.transcripts.lines import Base, Head, Line, Log, Pass

CAPACITY = 1_048_576
"""Tokens that the client takes the window of a Gemini model to have; its log does not say."""

_ROOT = ".project_root"  # in the client's folder of a project: the project's directory

_MOST_ROOT = 8 << 10  # bytes of it

_REMEMBERED = 64  # messages that may be written once more

_AT_ONCE = 5.0  # seconds between a compaction's summary and the record that holds it

_OPENING, _CLOSING = "<hook_context>", "</hook_context>"

_STATUS = regex(r"-?[0-9]{1,9}\Z")

_SNAPSHOT = "<state_snapshot>"

_OPENED = ("<session_context>", _SNAPSHOT)
"""How texts begin that the client itself puts into the user's messages."""

_SHELL = "run_shell_command"

_UNTRUSTED = regex(r"\A<untrusted_context>\n(.*?)\n?</untrusted_context>\s*\Z", re.S)

_AROUND = regex(r"(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*")

_EXIT = "Exit Code: "


def reader(path: Path, head: Head) -> Gemini | None:
    """The log of a session of Gemini CLI; None for any other file."""
    if not head.in_lines:
        return None
    meta = next(iter(head.records), {})
    return Gemini(path, meta) if "projectHash" in meta and words(meta.get("sessionId")) else None


def without_injected(text: str) -> str:
    """The text without what hooks have put in: the client writes that into the same text, between two tags."""
    kept, end = list[str](), 0
    for start, stop, _ in _injections(text):
        kept.append(text[end:start].removesuffix("\n\n"))
        end = stop + 2 * text.startswith("\n\n", stop)
    return "".join([*kept, text[end:]])


def _injections(text: str) -> Iterator[tuple[int, int, str]]:
    """What stands between two tags, with the places where the first one begins and the second one ends."""
    end = 0
    while (start := text.find(_OPENING, end)) >= 0 and (stop := text.find(_CLOSING, start)) >= 0:
        end = stop + len(_CLOSING)
        yield start, end, text[start + len(_OPENING) : stop]


def injected(record: Record) -> Iterator[str]:
    """The texts that hooks have handed to the model in a message, as the hooks wrote them."""
    texts = [words(block.get("text")) for block in blocks(record.get("content"))]
    texts += [_output(call)[0] for call in _calls(record)]
    for text in texts:
        for _, _, found in _injections(text):
            yield html.unescape(found)


def project_of(log: Path) -> str:
    """The directory of the project that a log is of, as the client keeps it beside its logs; "" where it does not."""
    with suppress(OSError):
        return content_of(log.parent.parent / _ROOT, most=_MOST_ROOT).decode("utf-8", "replace").strip()
    return ""


class Gemini(Log):
    """A session log of Gemini CLI; see ralf.transcripts.reader.Transcript for the fields."""

    format = "gemini"

    def __init__(self, path: Path, meta: Record) -> None:
        super().__init__(path, session=words(meta.get("sessionId")), cwd=project_of(path))

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events after a place."""
        return self._read(_Pass(self.skipped, self.cwd), after)


class _Pass(Pass):
    """What was told of the last messages, which may be written once more."""

    def __init__(self, skipped: Counter[str], cwd: str) -> None:
        super().__init__(skipped)
        self._cwd = cwd
        self._told: dict[str, set[str]] = {}  # message → what was told of it

    def passed_over(self, line: Line) -> str:
        """What a finished line is that says nothing; see `Pass`."""
        return "state" if line.data.startswith(b'{"$set"') and _SNAPSHOT.encode() not in line.data else ""

    def events(self, record: Record, line: Line) -> Iterator[Event]:
        """The events of one record."""
        base = Base(record, line, self._cwd)
        if "$set" in record:
            yield from self._compacted(object_in(record, "$set"), base)
            return
        kind, id_ = words(record.get("type")), words(record.get("id"))
        if kind == "user":
            text = self._typed(record)
            if text and self._is_new(id_, "text"):
                yield base.event("user", text)
        elif kind == "gemini":
            yield from self._answered(record, id_, base)
        elif kind == "error":
            yield base.event("other", leaves(record.get("content")))
        else:
            self.skipped[kind or ("rewound" if "$rewindTo" in record else "session")] += 1

    def _is_new(self, id_: str, what: str) -> bool:
        told = self._told.setdefault(id_, set())
        for gone in list(islice(self._told, max(0, len(self._told) - _REMEMBERED))):
            del self._told[gone]
        is_new = what not in told
        told.add(what)
        return is_new

    def _typed(self, record: Record) -> str:
        """What a person typed: not what hooks and the client have put in, nor what tools have answered."""
        content = record.get("displayContent") or record.get("content")
        texts = [words(block.get("text")) for block in blocks(content)]
        kept = [without_injected(text).strip() for text in texts if not text.lstrip().startswith(_OPENED)]
        text = besides(self.others("\n".join(filter(None, kept)))).strip()
        if not text:
            self.skipped["injected"] += 1
        return text

    def _answered(self, record: Record, id_: str, base: Base) -> Iterator[Event]:
        """What is new of the agent's message: thoughts, words with the window's figure, calls with their results."""
        for number, thought in enumerate(blocks(record.get("thoughts"))):
            text = ": ".join(filter(None, (words(thought.get("subject")), words(thought.get("description")))))
            if text and self._is_new(id_, f"thought {number}"):
                yield base.event("thinking", text)
        text = self.others("\n".join(filter(None, (words(b.get("text")) for b in blocks(record.get("content"))))))
        window = tokens_of(object_in(record, "tokens"), "total") or None
        is_said = bool(text.strip()) and self._is_new(id_, "text")
        if window and not self._is_new(id_, "tokens"):
            window = None
        if is_said or window:
            capacity = CAPACITY if window and "gemma" not in words(record.get("model")) else None
            text = text if is_said else ""
            yield base.event("assistant" if is_said else "other", text, window=window, capacity=capacity)
        for call in _calls(record):
            yield from self._call(call, id_, base)

    def _call(self, call: Record, id_: str, base: Base) -> Iterator[Event]:
        call_id, tool, given = words(call.get("id")), words(call.get("name")), arguments(call.get("args"))
        if self._is_new(id_, f"call {call_id}"):
            yield base.event("call", leaves(given), tool=tool, call_id=call_id, input=given)
        state = words(call.get("status"))
        if base.cut and call.get("result") and not state:
            state = "success"  # it stands behind the result, in the part of a very long line that is not held
        if state not in ("success", "error", "cancelled") or not self._is_new(id_, f"result {call_id}"):
            return
        text, failed = _output(call)
        text = without_injected(text)
        if found := _UNTRUSTED.match(text):
            text = found[1]
        status = None
        if tool == _SHELL and text.startswith("Output: "):
            text, status = _printed(text)
        display = object_in(call, "resultDisplay")
        yield base.event(
            "result",
            self.others(text),
            tool=tool,
            call_id=call_id,
            exit_status=status,
            failed=failed or state != "success" or bool(status),
            refused=state == "cancelled",
            created=display.get("isNewFile") is True,
        )

    def _compacted(self, changed: Record, base: Base) -> Iterator[Event]:
        """The summary of a window that the client has compacted just now. A session that is resumed repeats it."""
        for message in islice(blocks(changed.get("messages")), 3):
            text = "\n".join(words(block.get("text")) for block in blocks(message.get("content")))
            if not text.lstrip().startswith(_SNAPSHOT):
                continue
            times = first([message], "timestamp"), first([changed], "lastUpdated")
            if abs(_seconds(times[0]) - _seconds(times[1])) <= _AT_ONCE:
                base.timestamp = times[0]
                yield base.event("compaction", text)
                return
        self.skipped["state"] += 1


def _calls(record: Record) -> list[Record]:
    calls = record.get("toolCalls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _output(call: Record) -> tuple[str, bool]:
    """What the model was told that a tool answered, and whether that is an error."""
    parts, failed = [], False
    for part in blocks(call.get("result")):
        response = object_in(object_in(part, "functionResponse"), "response")
        failed = failed or "error" in response
        parts.append(words(part.get("text")) or leaves(response.get("error") or response.get("output") or ""))
    return "\n".join(filter(None, parts)), failed


def _printed(text: str) -> tuple[str, int | None]:
    """What a command printed, and its exit status, which the client only tells where it is not 0."""
    lines, status = text.removeprefix("Output: ").split("\n"), 0
    while len(lines) > 1 and _AROUND.fullmatch(lines[-1]):
        line = lines.pop()
        if line.startswith(_EXIT):
            told = line.removeprefix(_EXIT)
            status = int(told) if _STATUS.match(told) else 1
        elif line.startswith(("Error: ", "Signal: ")):
            status = status or 1
    printed = "\n".join(lines)
    return ("" if printed == "(empty)" else printed), status


def _seconds(timestamp: str) -> float:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return 0.0
