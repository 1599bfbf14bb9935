"""opencode's sessions, in the log that ralf's plugin keeps of them.

opencode keeps its sessions in a database whose rows change while the agent works: no place in it lies before another
for good, and its tables differ between versions. The plugin writes each message, call and result down once, when it is
complete, a line each: `integrations/ralf_integrations/clients/opencode.js`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ralf.text.cleaning import besides
from ralf.transcripts.events import START, Event, Position, Record, arguments, leaves, object_in, whole, words
from ralf.transcripts.lines import Base, Head, Line, Log, Pass

_VERSION = 1

_SILENT = b'{"type":"message","role":"user"'


def reader(path: Path, head: Head) -> OpenCode | None:
    """The log of a session of opencode; None for any other file."""
    if not head.in_lines:
        return None
    meta = next(iter(head.records), {})
    is_ours = meta.get("type") == "session" and meta.get("client") == "opencode" and meta.get("log") == _VERSION
    return OpenCode(path, meta) if is_ours else None


class OpenCode(Log):
    """A log of a session of opencode; see ralf.transcripts.reader.Transcript for the fields."""

    format = "opencode"

    def __init__(self, path: Path, meta: Record) -> None:
        super().__init__(path, session=words(meta.get("session")), cwd=words(meta.get("directory")))

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events after a place."""
        return self._read(_Pass(self.skipped, self.cwd), after)


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
        if kind == "text":
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
        return base.event(
            "result",
            self.others(words(record.get("error")) or words(record.get("output"))),
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


def _unquoted(text: str) -> str:
    """What was typed on a command line: `opencode run` puts quotation marks around words with blanks."""
    return text[1:-1].replace('\\"', '"') if len(text) > 2 and text[0] == text[-1] == '"' else text


def _time(milliseconds: object) -> str:
    """Milliseconds since 1970 as ISO 8601, "" for anything else."""
    if not isinstance(milliseconds, int | float) or not 0 < milliseconds < 1e14:
        return ""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
