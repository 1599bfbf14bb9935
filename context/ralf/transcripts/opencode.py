"""opencode's sessions, in the log that ralf keeps of them.

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
from ralf.transcripts.events import START, Event, Position, Record, arguments, leaves, object_in, whole, words
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
    )
)
"""Names and values of the log itself, which are never masked."""

_SILENT = b'{"type":"message","role":"user"'


def reader(path: Path, head: Head) -> OpenCode | None:
    """The log of a session of opencode; None for any other file."""
    if not head.in_lines:
        return None
    meta = next(iter(head.records), {})
    is_ours = meta.get("type") == "session" and meta.get("client") == "opencode" and meta.get("log") in (1, VERSION)
    return OpenCode(path, meta) if is_ours else None


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


class _Pass(Pass):
    """Where the session works, and which of its calls wait for their results."""

    def __init__(self, skipped: Counter[str], cwd: str) -> None:
        super().__init__(skipped)
        self._cwd = cwd

    def passed_over(self, line: Line) -> str:
        """What a finished line is that says nothing; see `Pass`."""
        return "message" if line.data.startswith(_SILENT) else ""

    def events(self, record: Record, line: Line) -> Iterator[Event]:
        """The events of one record."""
        base = Base({"timestamp": _time(record.get("time"))}, line, self._cwd)
        kind, text = words(record.get("type")), words(record.get("text"))
        if _is_masked(text) or (kind == "call" and _is_masked(leaves(record.get("input")))):
            self.skipped["forgotten"] += 1
        elif kind == "text":
            yield from self._said(record, text, base)
        elif kind == "reasoning":
            yield from [base.event("thinking", text)] if text.strip() else ()
        elif kind == "call":
            given = arguments(record.get("input"))
            call_id, tool = words(record.get("id")), words(record.get("tool"))
            yield base.event("call", leaves(given), tool=tool, call_id=call_id, input=given)
        elif kind == "result":
            yield self._answered(record, base)
        elif kind == "message" and record.get("role") == "assistant":
            yield from self._told(record, base)
        else:
            self.skipped[kind or "untyped"] += 1

    def _said(self, record: Record, text: str, base: Base) -> Iterator[Event]:
        role = record.get("role")
        if record.get("synthetic") is True:  # by the client, or by a plugin
            self.skipped["injected"] += 1
        elif role == "summary":
            yield base.event("compaction", text)
        elif role == "user":
            if text := besides(self.others(_unquoted(text))).strip():
                yield base.event("user", text)
        elif text := self.others(text).strip():
            yield base.event("assistant", text)

    def _answered(self, record: Record, base: Base) -> Event:
        status = record.get("exit")
        status = status if isinstance(status, int) and not isinstance(status, bool) else None
        failed = record.get("status") != "completed"
        text = words(record.get("error")) or words(record.get("output"))
        return base.event(
            "result",
            "" if _is_masked(text) else self.others(text),
            tool=words(record.get("tool")),
            call_id=words(record.get("id")),
            exit_status=status,
            failed=failed or bool(status),
            refused=failed and "rejected permission" in words(record.get("error")),
            created=record.get("created") is True,
        )

    def _told(self, record: Record, base: Base) -> Iterator[Event]:
        """What the window holds after an answer; that of a summary says how full it was before."""
        self._cwd = base.cwd = words(record.get("cwd")) or self._cwd
        tokens, said = object_in(record, "tokens"), words(record.get("error"))
        cache = object_in(tokens, "cache")
        counts = (*(tokens.get(key) for key in ("input", "output", "reasoning")), cache.get("read"), cache.get("write"))
        window = sum(whole(count) or 0 for count in counts)
        if record.get("summary") is True or not (window or said):
            self.skipped["message"] += 1
        else:
            yield base.event("other", said, window=window or None, capacity=whole(record.get("window")) or None)


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
    kept = {*_OWN_WORDS, *(words(record.get(name)) for name in ("id", "call", "tool", "status"))}

    def masked(string: str) -> Spans:
        return [(0, len(string))] if string not in kept else ()

    return _without(text.encode("utf-8", "surrogateescape"), masked)


def _stars(text: str) -> str:
    return _MASK * len(text.encode("utf-8", "surrogateescape"))
