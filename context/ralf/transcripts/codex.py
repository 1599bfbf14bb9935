"""Codex rollouts: JSON lines, a record for each item of the conversation and for each event of the client's."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from ralf.transcripts import clientlogs, codextyped
from ralf.transcripts.codexcalls import CALLS, OUTPUTS, Calls
from ralf.transcripts.content import Record, blocks, first, said, whole, words
from ralf.transcripts.events import START, Event, Position
from ralf.transcripts.head import Head
from ralf.transcripts.lines import Line
from ralf.transcripts.records import Base, Log, Pass

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


class Codex(Log):
    """A Codex rollout; see ralf.transcripts.Transcript for the fields."""

    format = "codex"

    def __init__(self, path: Path, records: Iterable[Record]) -> None:
        meta = next((found for record in records if (found := _meta(record))), {})
        git = meta.get("git")
        super().__init__(
            path,
            session=words(meta.get("id")) or clientlogs.session_of(path),
            cwd=words(meta.get("cwd")) or _told_cwd(records),
            branch=words(git.get("branch")) if isinstance(git, dict) else "",
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
        if wrapped and _same(text) not in self._announced:
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
        item = payload.get("item")
        what = words(item.get("type")) if isinstance(item, dict) else ""
        if inner == "user_message" or what == "UserMessage":
            return self._request(codextyped.in_event(payload), base, by_event=True)
        if inner == "task_started":
            capacity = whole(payload.get("model_context_window")) or None
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
        if self.waiting and _same(text) == _same(self.waiting[0].text):
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
    window = whole(last.get("total_tokens"))  # after a compaction this one alone is told
    if not window:
        counts = [whole(last.get(key)) for key in ("input_tokens", "output_tokens")]
        window = None if counts[0] is None else sum(count or 0 for count in counts)
    capacity = whole(info.get("model_context_window")) if isinstance(info, dict) else None
    return [base.event("other", "", window=window, capacity=capacity or None)]


def _same(text: str) -> str:
    return " ".join(text.split())
