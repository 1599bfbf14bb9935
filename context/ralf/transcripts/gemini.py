"""Gemini CLI's session logs, in its three forms.

* Lines: the client writes a message when it is complete, and the whole message again, with the same id, once its calls
  are answered. A record `$set` replaces fields of the session, the list of messages among them: after a compaction of
  its window, and when a session is resumed. `$rewindTo` takes a message and all after it back.
* One document with the same messages, as versions before 2026 wrote it anew at each change.
* The events that a run without a terminal prints (`--output-format stream-json`).
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path

from ralf.storage.files import content_of
from ralf.text.cleaning import besides
from ralf.text.frozen import replace
from ralf.text.patterns import regex
from ralf.transcripts.elements import Document
from ralf.transcripts.events import (
    DECLINED,
    START,
    Event,
    Form,
    Position,
    Record,
    arguments,
    blocks,
    first,
    is_frame,
    labels,
    leaves,
    object_in,
    status_of,
    time_of,
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

_FILES, _FILES_END = "--- Content from referenced files ---", "--- End of content ---"
"""Around the files that the client adds to a message."""

_CANCELLED = "Request cancelled."
"""The client's sentence for a turn that the person interrupted."""

_DISMISSED = "User dismissed ask_user dialog without answering."

_APPROVED, _REJECTED, _PLACE = "Plan approved.", "Plan rejected. ", "\n\nThe plan is stored at: "

_FEEDBACK = "User feedback: "

_OF_SERVER = " MCP Server)"
"""How the title of a tool ends that is none of the client's own, whatever its name: some versions put none before it.
"""

_FIRST_LINES = 2  # of a log: a list of messages that is set there was told by no record before

_SHELL = "run_shell_command"

_UNTRUSTED = regex(r"\A<untrusted_context>\n(.*?)\n?</untrusted_context>\s*\Z", re.S)

_AROUND = regex(r"(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*")

_EXIT = "Exit Code: "

_BEFORE = regex(r"(?:Command: (?:[^\n]*\n){1,200}?Directory: [^\n]*\n)?(?:Output|Stdout): ")
"""What stands before what a command printed; earlier versions repeated the command."""

_NOTHING = ("(none)", "0")
"""An error or a signal that there was not, in earlier versions."""


def reader(path: Path, head: Head) -> Gemini | GeminiDocument | GeminiStream | None:
    """The log of a session of Gemini CLI; None for any other file."""
    meta = next(iter(head.records), {}) if head.in_lines else head.document
    if "projectHash" in meta and words(meta.get("sessionId")):
        is_document = not head.in_lines or isinstance(meta.get("messages"), list)
        return GeminiDocument(path, meta) if is_document else Gemini(path, meta)
    records = list(islice(head.records, _LOOKED_AT)) if head.in_lines else []
    return GeminiStream(path, records) if any(map(_is_of_stream, records)) else None


_LOOKED_AT = 20  # records of a stream, which may have lost its beginning


def _is_of_stream(record: Record) -> bool:
    kind = record.get("type")
    if kind == "init":
        return bool(words(record.get("session_id"))) and "timestamp" in record
    return kind in ("tool_use", "tool_result") and bool(words(record.get("tool_id"))) and "timestamp" in record


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
        self._form = _form_of(meta)

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events after a place."""
        return self._read(_Pass(self.skipped, self.cwd, self._form), after)


class GeminiDocument(Document):
    """A session of Gemini CLI in one document; see ralf.transcripts.reader.Transcript for the fields."""

    format = "gemini"

    def __init__(self, path: Path, meta: Record) -> None:
        super().__init__(path, session=words(meta.get("sessionId")), cwd=project_of(path))
        self._form = _form_of(meta)

    def _pass(self) -> Pass:
        return _Pass(self.skipped, self.cwd, self._form)

    def _accepts(self, record: Record) -> bool:
        return "type" in record


def _form_of(meta: Record) -> Form:
    return "program" if meta.get("kind") == "subagent" else ""


class _Pass(Pass):
    """What was told of the last messages, which may be written once more. `form`: how the person's came."""

    def __init__(self, skipped: Counter[str], cwd: str, form: Form) -> None:
        super().__init__(skipped)
        self._cwd = cwd
        self._form = form
        self._told: dict[str, set[str]] = {}  # message → what was told of it

    def passed_over(self, line: Line) -> str:
        """What a finished line is that says nothing; see `Pass`."""
        if not line.data.startswith(b'{"$set"') or line.number < _FIRST_LINES:
            return ""
        return "" if _SNAPSHOT.encode() in line.data or b'"summary"' in line.data else "state"

    def events(self, record: Record, line: Line) -> Iterator[Event]:
        """The events of one record."""
        base = Base(record, line, self._cwd)
        if "$set" in record:
            yield from self._set(object_in(record, "$set"), line, base)
            return
        if "$rewindTo" in record:
            yield base.event("mark", "", form="rewound", input={"to": words(record.get("$rewindTo"))})
            return
        kind, id_ = words(record.get("type")), words(record.get("id"))
        if kind == "user":
            text = self._typed(record)
            if is_frame(text):
                self.skipped["unknown frame"] += 1
                yield base.event("other", text)
            elif text and self._is_new(id_, "text"):
                yield base.event("user", text, form=self._form, id=id_)
        elif kind == "gemini":
            yield from self._answered(record, id_, base)
        elif kind == "error":
            yield base.event("mark", leaves(record.get("content")), form="stopped")
        elif kind == "info" and leaves(record.get("content")).strip() == _CANCELLED:
            yield base.event("mark", "", form="interrupted")
        else:
            self.skipped[kind or "session"] += 1

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
        text = "\n".join(filter(None, kept))
        text, _, files = text.partition(_FILES)
        text += files.rpartition(_FILES_END)[2] if _FILES_END in files else ""
        text = besides(self.others(text)).strip()
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
        if state not in ("success", "error", "cancelled") or not self._is_new(id_, f"result {call_id}"):
            return
        text, failed = _output(call)
        text = without_injected(text)
        if found := _UNTRUSTED.match(text):
            text = found[1]
        status = None
        if tool == _SHELL and (printed := _BEFORE.match(text)):
            text, status = _printed(text[printed.end() :])
        display = object_in(call, "resultDisplay")
        has_asked = state != "error" and not words(call.get("displayName")).endswith(_OF_SERVER)
        is_rejected = has_asked and tool == "exit_plan_mode" and text.startswith(_REJECTED)
        is_refused = state == "cancelled" or is_rejected
        yield base.event(
            "result",
            self.others(text),
            tool=tool,
            call_id=call_id,
            exit_status=status,
            failed=failed or state != "success" or bool(status),
            refused=is_refused,
            form="refused" if is_refused else "",
            created=display.get("isNewFile") is True,
        )
        decided = _decided(tool, given, text, is_cancelled=state == "cancelled") if has_asked else ()
        for words_, form, about in decided:
            yield base.event("user", words_, form=form, input=about, call_id=call_id if form == "refused" else "")

    def _set(self, changed: Record, line: Line, base: Base) -> Iterator[Event]:
        """What fields of the session say: its title, its messages where no record has told them, a compaction."""
        base.timestamp = time_of(changed.get("lastUpdated"))
        if title := words(changed.get("summary")):
            yield base.event("mark", title, form="titled")
        if line.number < _FIRST_LINES:
            for message in blocks(changed.get("messages")):
                if "$set" not in message:
                    yield from self.events(message, line)
        else:
            yield from self._compacted(changed, base)

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


class GeminiStream(Log):
    """What a run without a terminal printed; see ralf.transcripts.reader.Transcript for the fields."""

    format = "gemini"

    def __init__(self, path: Path, records: list[Record]) -> None:
        super().__init__(path, session=first(records, "session_id"))

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events after a place. Pieces of a message wait for what follows the last of them."""
        return self._read(_StreamPass(self.skipped), after)


class _StreamPass(Pass):
    """Which tools were called, and the pieces of the message that the agent is writing."""

    def __init__(self, skipped: Counter[str]) -> None:
        super().__init__(skipped)
        self._tools: dict[str, str] = {}
        self._pieces = list[str]()
        self._end = START

    def passed_over(self, line: Line) -> str:
        """No line can be told by its bytes."""
        return ""

    def events(self, record: Record, line: Line) -> Iterator[Event]:
        """The events of one record."""
        base, kind, text = Base(record, line, ""), words(record.get("type")), words(record.get("content"))
        if kind == "message" and record.get("role") == "assistant" and record.get("delta") is True:
            if not self.waiting:
                self.waiting, self._pieces = [base.event("assistant", "")], []
            self._pieces.append(text)
            self._end = base.end
            return
        held, self.waiting = self.waiting, []
        if held and (said := self.others("".join(self._pieces))).strip():
            yield replace(held[0], text=said, end=self._end)
        if kind == "message" and record.get("role") == "assistant":
            yield from [base.event("assistant", said)] if (said := self.others(text)).strip() else ()
        elif kind == "message" and record.get("role") == "user":
            typed = besides(self.others(without_injected(text))).strip()
            yield from [base.event("user", typed, form="program")] if typed else ()
        elif kind == "tool_use":
            yield self._called(record, base)
        elif kind == "tool_result":
            yield self._answered(record, base)
        elif kind in ("error", "result"):
            yield _ended(record, base)
        else:
            self.skipped[kind or "untyped"] += 1

    def _called(self, record: Record, base: Base) -> Event:
        call_id, tool, given = words(record.get("tool_id")), words(record.get("tool_name")), record.get("parameters")
        self._tools[call_id] = tool
        input_ = arguments(given)
        return base.event("call", leaves(input_), tool=tool, call_id=call_id, input=input_)

    def _answered(self, record: Record, base: Base) -> Event:
        call_id = words(record.get("tool_id"))
        tool, error = self._tools.pop(call_id, ""), words(object_in(record, "error").get("message"))
        status = status_of(error, {}) if tool == _SHELL else None
        failed = record.get("status") != "success"
        text = self.others(words(record.get("output")) or error)
        return base.event("result", text, tool=tool, call_id=call_id, failed=failed, exit_status=status)


def _ended(record: Record, base: Base) -> Event:
    """How a run ended, or what failed in it; a warning is kept and says nothing of that."""
    if record.get("type") == "result" and record.get("status") == "success":
        return base.event("mark", "", form="ended")
    is_warning = record.get("severity") == "warning"
    text = words(record.get("message")) or words(object_in(record, "error").get("message"))
    return base.event("other", text) if is_warning else base.event("mark", text, form="stopped")


def _decided(tool: str, given: Record, text: str, *, is_cancelled: bool) -> Iterator[tuple[str, Form, Record]]:
    """What a person decided by the dialog of a tool: their words, how they came, and what they answer.

    given         the call's arguments
    text          the tool's answer
    is_cancelled  the dialog was closed
    """
    if tool == "ask_user":
        questions = given.get("questions")
        try:
            answers: Record = {} if is_cancelled or text == _DISMISSED else dict(json.loads(text)["answers"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return
        for number, question in enumerate(questions if isinstance(questions, list) else []):
            asked = question if isinstance(question, dict) else {}
            about = {"about": words(asked.get("question")), "options": labels(asked.get("options"))}
            if answer := words(answers.get(str(number))) or ("" if answers else DECLINED):
                yield answer, "answer", about
    elif tool == "exit_plan_mode" and not is_cancelled:
        about = {"about": first([given], "plan_path") or first([given], "plan_filename")}
        if text.startswith(_APPROVED):
            yield "(plan approved)", "plan", about
        elif text.startswith(_REJECTED + _FEEDBACK):
            yield text.removeprefix(_REJECTED + _FEEDBACK).partition(_PLACE)[0].strip(), "refused", about


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
    lines, status = text.split("\n"), 0
    while len(lines) > 1 and _AROUND.fullmatch(lines[-1]):
        line = lines.pop()
        if line.startswith(_EXIT):
            told = line.removeprefix(_EXIT)
            status = int(told) if _STATUS.match(told) else 1
        elif line.startswith(("Error: ", "Signal: ")) and line.partition(": ")[2] not in _NOTHING:
            status = status or 1
    printed = "\n".join(lines)
    return ("" if printed == "(empty)" else printed), status


def _seconds(timestamp: str) -> float:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return 0.0
