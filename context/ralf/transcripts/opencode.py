"""opencode's sessions, in the log that ralf keeps of them, and in the document that `opencode export` prints.

opencode keeps its sessions in a database whose rows change while the agent works: no place in it lies before another
for good, and its tables differ between versions. So each message, call and result is logged once, when it is complete,
a line each: the plugin (`integrations/ralf_integrations/clients/opencode.js`) sends it to a process that redacts and
appends it (`integrations/ralf_integrations/hooks/session_log.py`).

Words that are forgotten later are masked in place. No byte moves, so offsets and line numbers stay true.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from ralf.storage.files import open_single_link
from ralf.text.cleaning import besides
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
    is_frame,
    labels,
    leaves,
    object_in,
    whole,
    words,
)
from ralf.transcripts.lines import (
    FINGERPRINT_HEAD,
    FINGERPRINT_TAIL,
    Base,
    Fingerprint,
    Head,
    Line,
    Log,
    Pass,
    open_regular,
    parsed,
)
from ralf.transcripts.typed import answers_in

VERSION = 2
"""Of the log: 1 was not redacted."""

Spans = Iterable[tuple[int, int]]

_MASK = "*"

_STRING = regex(r'"((?:[^"\\]|\\.)*+)"')

_TEXTS = ("text", "input", "output", "error")

_OWN_WORDS = frozenset(
    (
        *("type", "role", "id", "time", "tool", "status", "exit", "created", "synthetic", "summary", "cwd", "window"),
        *("message", "reasoning", "call", "result", "user", "assistant", "completed", "tokens", *_TEXTS),
        *("finish", "failure", "rewound", "ignored", "answers"),
    )
)
"""Names and values of the log itself, which are never masked."""

_SILENT = b'{"type":"message","role":"user"'


_RAN = "The following tool was executed by the user"
"""The client's sentence before a command that the person ran."""

_REJECTED = "The user rejected permission to use this specific tool call"

_FEEDBACK = f"{_REJECTED} with the following feedback: "

_DISMISSED = "The user dismissed this question"

_OWN_TOOLS = frozenset(
    """apply_patch bash codesearch edit glob grep list lsp multiedit patch plan_enter plan_exit question read skill task
    todoread todowrite webfetch websearch write""".split()
)
"""The client's own tools. The error of any other one is what a server or a plugin says, also where it begins like the
client's sentence for a refusal."""

_ABORTED = ("MessageAbortedError", "The operation was aborted.", "Aborted")
"""The name and the texts of the error of a turn that the person interrupted."""

_UNANSWERED = "Unanswered"

_PLACEHOLDER = regex(r"(?:New|Child) session - \d{4}-\d\d-\d\dT")


def reader(path: Path, head: Head) -> OpenCode | Export | None:
    """The log or the export of a session of opencode; None for any other file."""
    meta = next(iter(head.records), {}) if head.in_lines else head.document
    if head.in_lines and meta.get("type") == "session":
        is_ours = meta.get("client") == "opencode" and meta.get("log") in (1, VERSION)
        return OpenCode(path, meta) if is_ours else None
    info = object_in(meta, "info")
    is_export = words(info.get("id")).startswith("ses_") and ("messages" in meta or not head.whole)
    return Export(path, info) if is_export else None


class OpenCode(Log):
    """A log of a session of opencode; see ralf.transcripts.reader.Transcript for the fields."""

    format = "opencode"

    def __init__(self, path: Path, meta: Record) -> None:
        super().__init__(path, session=words(meta.get("session")), cwd=words(meta.get("directory")))

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events after a place."""
        return self._read(_Pass(self.skipped, self.cwd), after)

    def mark(self, end: Position) -> Fingerprint | None:
        """The fingerprint of what lies before a place, which masking does not change: of the first line, and of where
        the lines before the place end. None where the file is shorter than that.
        """
        with open_regular(self.path) as file:
            if os.fstat(file.fileno()).st_size < end.byte:
                return None
            head = file.readline(FINGERPRINT_HEAD)[: end.byte]
            file.seek(max(0, end.byte - FINGERPRINT_TAIL))
            lines = file.read(end.byte - file.tell()).split(b"\n")
        sizes = ",".join(str(len(line)) for line in lines)
        return Fingerprint(hashlib.sha256(head).hexdigest(), hashlib.sha256(sizes.encode()).hexdigest())


class Export(Document):
    """The export of a session of opencode; see ralf.transcripts.reader.Transcript for the fields."""

    format = "opencode"

    def __init__(self, path: Path, info: Record) -> None:
        super().__init__(path, session=words(info.get("id")), cwd=words(info.get("directory")))
        self._info = info

    def _pass(self) -> Pass:
        title = words(self._info.get("title"))
        form: Form = "program" if words(self._info.get("parentID")) else ""
        return _ExportPass(self.skipped, self.cwd, form, "" if _PLACEHOLDER.match(title) else title)

    def _accepts(self, record: Record) -> bool:
        return "parts" in record and "role" in object_in(record, "info")

    def _after(self, line: Line) -> Iterator[Event]:
        """The messages that are taken back, and that the next one will delete."""
        if to := words(object_in(self._info, "revert").get("messageID")):
            base = Base({"timestamp": _time(object_in(self._info, "time").get("updated"))}, line, self.cwd)
            yield base.event("mark", "", form="rewound", input={"to": to})


class _Session(Pass):
    """What the log and the export of a session share: where it works, which calls are the person's or ask them."""

    def __init__(self, skipped: Counter[str], cwd: str, form: Form = "") -> None:
        super().__init__(skipped)
        self._cwd = cwd
        self._form = form
        self._is_shell = False  # the next command is the person's
        self._shell = ""  # the call that is
        self._asked: dict[str, object] = {}

    def passed_over(self, line: Line) -> str:
        """What a finished line is that says nothing; see `Pass`."""
        return "message" if line.data.startswith(_SILENT) else ""

    def _typed(self, text: str, id_: str, base: Base) -> Iterator[Event]:
        text = besides(self.others(_unquoted(text))).strip()
        if is_frame(text):
            self.skipped["unknown frame"] += 1
            yield base.event("other", text)
        elif text:
            yield base.event("user", text, form=self._form, id=id_)

    def _put_in(self, text: str) -> None:
        """A text of the client's or of a plugin's in the person's name."""
        self._is_shell = text == _RAN
        self.skipped["injected"] += 1

    def _called(self, tool: str, call_id: str, value: object, base: Base) -> Event:
        given = arguments(value)
        if tool == "question":
            self._asked[call_id] = given.get("questions")
        if self._is_shell and tool == "bash":
            self._is_shell, self._shell = False, call_id
            return base.event("mark", words(given.get("command")), form="ran")
        return base.event("call", leaves(given), tool=tool, call_id=call_id, input=given)

    def _answered(
        self,
        tool: str,
        call_id: str,
        state: Record,
        base: Base,
        *,
        status: object,
        created: bool,
        chosen: object = None,
    ) -> Iterator[Event]:
        """A result, and the words of a person in it.

        state   its `status`, `output` and `error`
        status  the exit status
        chosen  for each question the labels that were chosen, None where only the output tells
        """
        status = status if isinstance(status, int) and not isinstance(status, bool) else None
        failed = state.get("status") != "completed"
        error = words(state.get("error"))
        text = error or words(state.get("output"))
        text = "" if _is_masked(text) else self.others(text)
        if call_id and call_id == self._shell:
            self._shell = ""
            yield base.event("mark", text, form="printed", exit_status=status, failed=failed or bool(status))
            return
        is_refused = failed and tool in _OWN_TOOLS and error.startswith((_REJECTED, _DISMISSED))
        yield base.event(
            "result",
            text,
            tool=tool,
            call_id=call_id,
            exit_status=status,
            failed=failed or bool(status),
            refused=is_refused,
            form="refused" if is_refused else "",
            created=created,
        )
        if is_refused and error.startswith(_FEEDBACK):
            yield base.event("user", error.removeprefix(_FEEDBACK).strip(), form="refused", call_id=call_id)
        is_closed = is_refused and error == _DISMISSED
        for answer, about in _answers(self._asked.pop(call_id, None), text, chosen):
            if is_closed or (answer and not failed):
                yield base.event("user", DECLINED if is_closed else answer, form="answer", input=about)

    def _ended(self, name: str, said: str, finish: object, base: Base) -> Iterator[Event]:
        """How an answer of the model ended."""
        if name in _ABORTED or said in _ABORTED:
            yield base.event("mark", "", form="interrupted")
        elif name or said:
            yield base.event("mark", said or name, form="stopped")
        elif finish == "stop":
            yield base.event("mark", "", form="ended")


class _Pass(_Session):
    """The log: a record for each text, call and result."""

    _message = ""

    def events(self, record: Record, line: Line) -> Iterator[Event]:
        """The events of one record."""
        base = Base({"timestamp": _time(record.get("time"))}, line, self._cwd)
        kind, text, id_ = words(record.get("type")), words(record.get("text")), words(record.get("id"))
        tool = words(record.get("tool"))
        if _is_masked(text) or (kind == "call" and _is_masked(leaves(record.get("input")))):
            self.skipped["forgotten"] += 1
        elif kind == "text":
            yield from self._said(record, text, id_, base)
        elif kind == "reasoning":
            yield from [base.event("thinking", text)] if text.strip() else ()
        elif kind == "call":
            yield self._called(tool, id_, record.get("input"), base)
        elif kind == "result":
            status, created, chosen = record.get("exit"), record.get("created") is True, record.get("answers")
            yield from self._answered(tool, id_, record, base, status=status, created=created, chosen=chosen)
        elif kind == "message" and record.get("role") == "assistant":
            yield from self._usage(record, base)
        elif kind == "rewound" and id_:
            yield base.event("mark", "", form="rewound", input={"to": id_})
        else:
            self.skipped[kind or "untyped"] += 1

    def _said(self, record: Record, text: str, id_: str, base: Base) -> Iterator[Event]:
        role = record.get("role")
        if _is_put_in(record):
            self._put_in(text if role == "user" else "")
        elif role == "summary":
            yield base.event("compaction", text)
        elif role == "user":
            of = words(record.get("message")) or id_
            yield from self._typed(text, of if of != self._message else id_, base)
            self._message = of
        elif text := self.others(text).strip():
            yield base.event("assistant", text)

    def _usage(self, record: Record, base: Base) -> Iterator[Event]:
        """What the window holds after an answer; that of a summary says how full it was before."""
        self._cwd = base.cwd = words(record.get("cwd")) or self._cwd
        window = _window(record)
        is_summary = record.get("summary") is True
        if window and not is_summary:
            yield base.event("other", "", window=window, capacity=whole(record.get("window")) or None)
        failure, said = words(record.get("failure")), words(record.get("error"))
        marks = [] if is_summary else list(self._ended(failure, said, record.get("finish"), base))
        yield from marks
        if is_summary or not (window or marks):
            self.skipped["message"] += 1


class _ExportPass(_Session):
    """The export: a record for each message, with its parts. `title`: the session's, told with the first one."""

    def __init__(self, skipped: Counter[str], cwd: str, form: Form, title: str) -> None:
        super().__init__(skipped, cwd, form)
        self._title = title
        self._last = ""  # what was typed last
        self._ids = set[str]()  # of messages
        self._again = ""  # what the client sends once more behind the summary of a window that had overflown

    def events(self, record: Record, line: Line) -> Iterator[Event]:
        """The events of one message."""
        info, parts = object_in(record, "info"), list(blocks(record.get("parts")))
        base = Base({"timestamp": _time(object_in(info, "time").get("created"))}, line, self._cwd)
        if (id_ := words(info.get("id"))) in self._ids:
            self.skipped["repeated"] += 1
            return
        self._ids.update([id_] if id_ else [])
        if self._title:
            yield base.event("mark", self._title, form="titled")
            self._title = ""
        if info.get("role") == "user":
            yield from self._asks(info, parts, base)
        elif info.get("role") == "assistant":
            self._cwd = base.cwd = words(object_in(info, "path").get("cwd")) or self._cwd
            yield from self._answers(info, parts, base)
        else:
            self.skipped["no role"] += 1

    def _asks(self, info: Record, parts: list[Record], base: Base) -> Iterator[Event]:
        typed = list[str]()
        for part in parts:
            kind, text = words(part.get("type")), words(part.get("text"))
            if kind == "compaction":
                self._again = self._last if part.get("overflow") is True else ""
            if kind == "text" and not _is_put_in(part):
                typed.append(text)
            elif kind == "text":
                self._put_in(text)
            else:
                self.skipped[kind or "untyped"] += 1
        text = "\n".join(filter(None, typed))
        if text and text == self._again:
            self.skipped["repeated"] += 1
        else:
            yield from self._typed(text, words(info.get("id")), base)
        self._last, self._again = text or self._last, "" if text else self._again

    def _answers(self, info: Record, parts: list[Record], base: Base) -> Iterator[Event]:
        is_summary, began = info.get("summary") is True, base.timestamp
        for part in parts:
            kind, text = words(part.get("type")), words(part.get("text"))
            base.timestamp = _time(object_in(part, "time").get("end")) or began
            if kind == "tool":
                yield from self._used(part, object_in(part, "state"), base)
            elif kind == "reasoning" and text.strip():
                yield base.event("thinking", text)
            elif kind == "text" and is_summary:
                yield base.event("compaction", text)
            elif kind == "text" and not _is_put_in(part) and (said := self.others(text).strip()):
                yield base.event("assistant", said)
            elif kind != "step-start":
                self.skipped[kind or "untyped"] += 1
        base.timestamp = _time(object_in(info, "time").get("completed")) or base.timestamp
        if not is_summary:
            if window := _window(info):
                yield base.event("other", "", window=window)
            error = object_in(info, "error")
            said = words(object_in(error, "data").get("message"))
            yield from self._ended(words(error.get("name")), said, info.get("finish"), base)

    def _used(self, part: Record, state: Record, base: Base) -> Iterator[Event]:
        tool, call_id, times = words(part.get("tool")), words(part.get("id")), object_in(state, "time")
        base.timestamp = _time(times.get("start")) or base.timestamp
        yield self._called(tool, call_id, state.get("input"), base)
        if state.get("status") in ("completed", "error"):
            base.timestamp = _time(times.get("end")) or base.timestamp
            meta = object_in(state, "metadata")
            created = tool == "write" and meta.get("exists") is False
            chosen, status = meta.get("answers"), meta.get("exit")
            yield from self._answered(tool, call_id, state, base, status=status, created=created, chosen=chosen)


def _window(record: Record) -> int | None:
    """Tokens in the window after an answer, None where the record does not tell."""
    tokens = object_in(record, "tokens")
    cache = object_in(tokens, "cache")
    counts = (*(tokens.get(key) for key in ("input", "output", "reasoning")), cache.get("read"), cache.get("write"))
    return sum(whole(count) or 0 for count in counts) or None


def _answers(asked: object, text: str, chosen: object) -> Iterator[tuple[str, Record]]:
    """What a person answered to each question of the tool `question`, "" for nothing, and what it answers. Arguments as
    above.
    """
    questions = [one for one in asked if isinstance(one, dict)] if isinstance(asked, list) else []
    offered = [(words(question.get("question")), labels(question.get("options"))) for question in questions]
    answers = dict(answers_in(text, dict(offered)))
    for number, (about, options) in enumerate(offered):
        answer = "" if (answer := answers.get(about, "")) == _UNANSWERED else answer
        if isinstance(chosen, list):
            given = chosen[number] if number < len(chosen) else []
            texts = map(words, given if isinstance(given, list) else [given])
            answer = ", ".join(label for label in texts if label and not _is_masked(label))
        yield answer, {"about": about, "options": options}


def _is_put_in(text: Record) -> bool:
    """Whether the client or a plugin put a text in: it is nobody's words."""
    return text.get("synthetic") is True or text.get("ignored") is True


def _is_masked(text: str) -> bool:
    """Whether a text was forgotten, all of it."""
    return bool(text) and not text.strip(_MASK + "\n")


def _unquoted(text: str) -> str:
    """What was typed on a command line: `opencode run` puts quotation marks around words with blanks."""
    return text[1:-1].replace('\\"', '"') if len(text) > 2 and text[0] == text[-1] == '"' else text


def _time(milliseconds: object) -> str:
    """Milliseconds since 1970 as ISO 8601, "" for anything else."""
    if not isinstance(milliseconds, int | float) or not 0 < milliseconds < 1e14:
        return ""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# ---- masking ----


def mask(path: Path, find: Callable[[str], Spans]) -> int:
    """Replace words in a log by as many `*`, in place; returns how many lines were changed.

    find  the places of the words in the text of a JSON string, whose escapes it has to understand

    The first line and the names of fields stay. OSError for what is no regular file of its own, or cannot be written.
    """
    return _rewrite(path, lambda line, _: _without(line, find))


def blank(path: Path, start: int, end: int) -> int:
    """Mask all that was said and printed in the lines from one byte offset to another; returns how many were changed.
    Raises what `mask` raises.
    """
    return _rewrite(path, lambda line, at: _blanked(line) if start <= at < end else line)


def holds(path: Path, find: Callable[[str], Spans]) -> bool:
    """Whether `mask` would change a log. OSError where it cannot be read."""
    with open_regular(path) as file:
        file.readline()
        return any(_without(line, find) != line for line in file)


def _rewrite(path: Path, changed: Callable[[bytes, int], bytes]) -> int:
    """Put lines of the same length in the place of those that are to change."""
    count = 0
    with os.fdopen(open_single_link(str(path), os.O_RDWR), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        at = len(file.readline())
        while line := file.readline():
            made = changed(line, at)
            if made != line and len(made) == len(line):
                os.pwrite(file.fileno(), made, at)
                count += 1
            at += len(line)
        os.fsync(file.fileno())
    return count


def _without(line: bytes, find: Callable[[str], Spans]) -> bytes:
    text = line.decode("utf-8", "surrogateescape")
    parts, done = list[str](), 0
    for string in _STRING.finditer(text):
        if string[1] in _OWN_WORDS:
            continue
        for first, last in find(string[1]):
            start, stop = string.start(1) + first, string.start(1) + last
            parts += [text[done:start], _stars(text[start:stop])]
            done = stop
    return "".join([*parts, text[done:]]).encode("utf-8", "surrogateescape") if parts else line


def _blanked(line: bytes) -> bytes:
    """The line with every value masked that somebody said, gave or was answered."""
    record = parsed(line)
    if record is None or record.keys().isdisjoint(_TEXTS):
        return line
    text = line.decode("utf-8", "surrogateescape")
    names = ("id", "call", "message", "tool", "status", "finish", "failure")
    kept = {*_OWN_WORDS, *(words(record.get(name)) for name in names)}

    def masked(string: str) -> Spans:
        return [(0, len(string))] if string not in kept else ()

    return _without(text.encode("utf-8", "surrogateescape"), masked)


def _stars(text: str) -> str:
    return _MASK * len(text.encode("utf-8", "surrogateescape"))
