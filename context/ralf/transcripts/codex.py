"""Codex rollouts: JSON lines, a record for each item of the conversation and for each event of the client's."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from ralf.briefing.fence import outside
from ralf.transcripts import codextyped
from ralf.transcripts.codexcalls import CALLS, OUTPUTS, Base, Calls
from ralf.transcripts.content import Record, blocks, first, said, words
from ralf.transcripts.events import START, Event, Position
from ralf.transcripts.head import Head
from ralf.transcripts.lines import Line, lines_before, open_regular, read_lines, restored

_WRAPPERS = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"})
_ITEMS = frozenset({"message", "reasoning"}) | CALLS | OUTPUTS
_READ = frozenset({"response_item", "event_msg", "turn_context", "compacted", "token_usage_record"})
_TURN_ENDS = frozenset({"task_started", "task_complete", "turn_aborted"})
_EVENTS = frozenset({"token_count", "user_message", "agent_message", "item_completed"}) | _TURN_ENDS

# What a record is, where only scalars come before it, as in every rollout that was seen: so it is certain.
_TYPES = re.compile(
    rb'\s*+\{(?:\s*+"(?:timestamp|ordinal)"\s*+:\s*+(?:"[^"\\]*+"|\d++)\s*+,)*+\s*+"type"\s*+:\s*+"([^"\\]*+)"'
    rb'(?:\s*+,\s*+"payload"\s*+:\s*+\{\s*+"type"\s*+:\s*+"([^"\\]*+)")?'
)
_NOT_A_PERSONS = re.compile(rb'"role"\s*:\s*"(?:developer|system)"')
_ITEM = re.compile(rb'"item"\s*:\s*\{\s*"type"\s*:\s*"([^"\\]*)"(?:\s*,\s*"id"\s*:\s*"([^"\\]*)")?')
_NEAR = 1_000  # bytes behind the types in which these two are looked for
_CWD = re.compile(r"<cwd>([^<>\n]{1,4096})</cwd>")
_MALFORMED_SHOWN = 20


def reader(path: Path, head: Head) -> Codex | None:
    """The reader of this file if it is a Codex rollout."""
    records = head.records or [head.document]
    return Codex(path, records) if any(map(_is_ours, records)) else None


def _is_ours(record: Record) -> bool:
    if isinstance(record.get("payload"), dict):
        return words(record.get("type")) in _WRAPPERS
    if record.get("type") == "session_meta":
        return True  # a first record that is longer than the head
    return record.get("record_type") == "state" or _is_old_head(record)


def _is_old_head(record: Record) -> bool:
    """Whether a record is the first one of a rollout from before September 2025, whose records have no wrapper."""
    return "type" not in record and "id" in record and "timestamp" in record and "instructions" in record


class Codex:
    """A Codex rollout; see ralf.transcripts.Transcript for the fields."""

    format = "codex"

    def __init__(self, path: Path, records: Iterable[Record]) -> None:
        self.path = path
        meta = next((found for record in records if (found := _meta(record))), {})
        self.session = words(meta.get("id")) or words(path.stem)
        self.cwd = words(meta.get("cwd")) or _told_cwd(records)
        git = meta.get("git")
        self.branch = words(git.get("branch")) if isinstance(git, dict) else ""
        self.skipped: Counter[str] = Counter()
        self.malformed: list[int] = []
        self._end = (0, 0)

    @property
    def end(self) -> Position:
        """The place after the last record that was consumed."""
        return Position(*self._end)

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events after a place.

        A last line without line end is taken when it is a whole record, else it waits; so does a message of the agent
        that may turn out to be the summary of a compaction.
        """
        self.skipped.clear()
        self.malformed.clear()
        self._end = (after.byte, after.line)
        reading = _Pass(self.skipped, self.cwd)
        with open_regular(self.path, after) as file:
            reading.recall(lines_before(file, after))
            for line in read_lines(file, after):
                record = self._record(line, reading)
                if record is None and not line.finished:
                    self.skipped["unfinished"] += 1
                    return
                if record is not None:
                    yield from reading.events(record, line)
                held = reading.held[0].start if reading.held else None
                self._end = (held.byte, held.line) if held else (line.end, line.number + 1)

    def _record(self, line: Line, reading: _Pass) -> Record | None:
        if line.finished and (what := reading.passed_over(line.data)):
            self.skipped[what] += 1
            return None
        try:
            if line.cut:
                self.skipped["oversized"] += 1
                record = restored(line)
            else:
                record = json.loads(line.data.decode("utf-8", "replace").removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            return record
        if line.finished and not line.cut and not line.data.isspace():
            self.skipped["malformed"] += 1
            if len(self.malformed) < _MALFORMED_SHOWN:
                self.malformed.append(line.number + 1)
        return None


class _Pass:
    """One reading from a place to the end: what has to be remembered between records."""

    def __init__(self, skipped: Counter[str], cwd: str) -> None:
        self.skipped = skipped
        self.held: list[Event] = []
        self._cwd = cwd
        self._calls = Calls(self._others)
        self._announced: deque[str] = deque(maxlen=8)
        self._met: dict[str, int] = {}

    def recall(self, lines: Iterable[Line]) -> None:
        """Learn from the records just before: names of called tools, what runs, what was announced, the folder."""
        skipped, self.skipped = self.skipped, Counter()
        for line in lines:
            if not self.passed_over(line.data):
                with suppress(ValueError, RecursionError):
                    record = json.loads(line.data.decode("utf-8", "replace"))
                    if isinstance(record, dict):
                        deque(self.events(record, line), maxlen=0)
        self.held = []
        self.skipped = skipped

    def passed_over(self, data: bytes) -> str:
        """What a finished line is that says nothing; "" for one that has to be read."""
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
            if self.held:
                self.held += made  # as that of a compaction it would be no usage of the conversation
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
        if self.held and (made or inner in _TURN_ENDS):
            yield from self._released()
        yield from made

    # ---- what the agent said ----

    def _answer(self, payload: Record, base: Base, *, wrapped: bool) -> Iterator[Event]:
        """A message. One that was not announced waits: it may be the summary of a compaction, which is the next one."""
        yield from self._released()
        text = said(payload.get("content"))
        if not text.strip() or not (others := self._others(text)):
            return
        event = base.event("assistant", others)
        if wrapped and _same(text) not in self._announced:
            self.held = [event]
        else:
            yield event

    def _released(self) -> Iterator[Event]:
        held, self.held = self.held, []
        yield from held

    def _compacted(self, payload: Record, base: Base) -> Iterator[Event]:
        text = words(payload.get("message"))
        if self.held and self.held[0].text.strip() not in text:
            yield from self._released()
        start = self.held[0].start if self.held else None
        self.held = []
        yield base.event("compaction", text, start=start)

    # ---- events of the client's ----

    def _told(self, inner: str, payload: Record, base: Base) -> list[Event]:
        item = payload.get("item")
        what = words(item.get("type")) if isinstance(item, dict) else ""
        if inner == "user_message" or what == "UserMessage":
            return self._request(codextyped.in_event(payload), base, by_event=True)
        if inner == "task_started":
            capacity = _whole(payload.get("model_context_window")) or None
            return [base.event("other", "", capacity=capacity)] if capacity else []
        if inner == "agent_message":
            return self._announce(words(payload.get("message")))
        if isinstance(item, dict) and what == "AgentMessage":
            return self._announce("\n".join(words(block.get("text")) for block in blocks(item.get("content"))))
        if isinstance(item, dict) and what == "CommandExecution":
            return self._calls.executed(item, base)
        if isinstance(item, dict) and what == "FileChange":
            return self._calls.patched(item, base)
        self.skipped[what or inner or "untyped"] += 1
        return []

    def _announce(self, text: str) -> list[Event]:
        self._announced.append(_same(text))
        if self.held and _same(text) == _same(self.held[0].text):
            return list(self._released())
        return []

    # ---- items of the conversation ----

    def _item(self, inner: str, payload: Record, base: Base) -> list[Event]:
        if inner == "message":
            if payload.get("role") != "user":
                self.skipped[words(payload.get("role")) or "no role"] += 1
                return []
            return self._request(codextyped.in_message(payload), base, by_event=False)
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
        key, way = _same(text), -1 if by_event else 1
        met = self._met.pop(key, 0)
        if met + way:
            self._met[key] = met + way
            for gone in list(islice(self._met, max(0, len(self._met) - 64))):
                del self._met[gone]
        return [base.event("user", text)] if met * way >= 0 else []

    def _others(self, text: str) -> str:
        """The text without what ralf itself had printed there."""
        others = outside(text)
        if others != text:
            self.skipped["own output"] += 1
        return others


def _unwrapped(record: Record) -> tuple[str, Record]:
    """What a record is, and what it holds; an old one without a wrapper holds itself."""
    kind, payload = words(record.get("type")), record.get("payload")
    if isinstance(payload, dict):
        return kind, payload
    return ("response_item", record) if kind in _ITEMS else (kind or words(record.get("record_type")) or "untyped", {})


def _meta(record: Record) -> Record:
    payload = record.get("payload")
    if record.get("type") == "session_meta" and isinstance(payload, dict):
        return payload
    return record if _is_old_head(record) else {}


def _told_cwd(records: Iterable[Record]) -> str:
    """The working directory that the first records name otherwise than in a field of their own."""
    found = first((_unwrapped(record)[1] for record in islice(records, 20)), "cwd")
    if found:
        return found
    texts = (said(_unwrapped(record)[1].get("content")) for record in islice(records, 20))
    return next((match[1] for text in texts if (match := _CWD.search(text))), "")


def _usage(payload: Record, base: Base) -> list[Event]:
    """What the window holds: after each answer of the model, and after its calls once more with the window's size."""
    info = payload.get("info")
    last = payload.get("usage") if not isinstance(info, dict) else info.get("last_token_usage")
    if not isinstance(last, dict):
        return []
    window = _whole(last.get("total_tokens"))  # after a compaction this one alone is told
    if not window:
        counts = [_whole(last.get(key)) for key in ("input_tokens", "output_tokens")]
        window = None if counts[0] is None else sum(count or 0 for count in counts)
    capacity = _whole(info.get("model_context_window")) if isinstance(info, dict) else None
    return [base.event("other", "", window=window, capacity=capacity or None)]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _same(text: str) -> str:
    return " ".join(text.split())
