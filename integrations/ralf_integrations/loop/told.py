"""What a client's own records tell of a start, as they grow: its session and transcript, tokens, the price, a usage
limit, the last message.

Read are the client's result and its transcript, never what the agent has printed. A client that is not known tells
nothing; one that ralf's hooks have seen is known by its process. Sub-agents keep transcripts of their own, which are
not read: their tokens count when the client reports its totals at the end.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralf.errors import RalfError
from ralf.project import Project
from ralf.storage.files import content_of, open_regular
from ralf.text.cleaning import clean
from ralf.text.patterns import regex
from ralf.transcripts.reader import is_own_log, log_of_session
from ralf_integrations.health import limits, tail as health
from ralf_integrations.health.limits import Limit
from ralf_integrations.hooks import session_registry
from ralf_integrations.loop.launch import CLAUDE, CODEX
from ralf_integrations.loop.logs import tail
from ralf_integrations.loop.state import Running

EVERY = 5.0
"""Seconds between two looks at an agent that runs: so much later a cap is seen at most."""

_MOST = 16 << 20  # bytes that one look reads; a longer line is passed over
_END = 4 << 20  # bytes at the end of an output in which its last record is looked for
_HEAD = 16 << 10
_MOST_MESSAGE = 1 << 20
_LATEST = 200  # rollouts among which one is looked for
_KINDS = {CLAUDE: b'"assistant"', CODEX: b'"event_msg"'}  # what stands in each record that tells something
_SESSION_ID = regex(r"^session id: ([0-9a-f-]{36})\s*$", 8)  # MULTILINE
_UNREADABLE = (OSError, RalfError, ValueError, RecursionError)


@dataclass(slots=True)
class Told:
    """What the client of one start has reported so far."""

    project: Project
    known: Running
    output: Path  # what it prints
    errors: Path
    client: str = ""  # whose records they are, "" for none
    session: str = ""  # its own, "" where unknown
    transcript: Path | None = None  # None while there is none
    size: int = 0  # bytes of it that were read
    tokens: int | None = None  # input without what the cache held, and output; None where unknown
    usd: float | None = None  # as the client says
    limit: Limit | None = None  # the usage limit that it ended with
    message: str = ""  # the agent's last message, once it is over
    _next: float = -math.inf
    _answers: dict[tuple[object, object], int] = field(default_factory=dict)
    _rates: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client, self.session = self.known.client, self.known.session

    def look(self) -> None:
        """Read what is new in the transcript, if it is time to. Never an error: what cannot be read tells nothing."""
        if self.known.client in _KINDS and time.monotonic() >= self._next:
            self._go_on()
            self._next = time.monotonic() + EVERY

    def finish(self, status: int | None) -> None:
        """Read the rest of what a start tells that is over; its exit status: None where nobody knows."""
        while self._go_on():
            pass
        with suppress(*_UNREADABLE):
            if self.known.client == CLAUDE:
                self._finish_claude()
            elif self.known.client == CODEX:
                self._finish_codex(status)
            if self.known.client and self.transcript is not None:  # what the client's result does not tell
                end = health.read(self.transcript)
                self.message = self.message or end.said
                self.limit = self.limit or limits.of_words(end.stopped, end.failed)
                if self.limit is not None and not self.limit.until:
                    self.limit = replace(self.limit, until=limits.resets(self._rates, datetime.now(UTC)))

    def _go_on(self) -> bool:
        before = self.size
        with suppress(*_UNREADABLE):
            self._find()
            if self.transcript is not None and self.client in _KINDS:
                self._read(self.transcript)
        return self.size > before

    def _find(self) -> None:
        """The transcript, once it is there; where the client does not name its session, by what ralf's hooks have seen
        of its process.
        """
        if self.transcript is not None:
            return
        if not self.session and self.client == CODEX:
            self.session = self._session_of_codex()
        found = log_of_session(self.session, most=_LATEST) if self.session else None
        if found is None and self.known.process and self.known.born:
            sessions = session_registry.all_sessions(self.project)
            those = (one for one in sessions if (one.pid, one.born) == (self.known.process, self.known.born))
            seen = max(those, key=lambda one: one.seen, default=None)
            if seen is not None and seen.transcript:
                found, self.session, self.client = Path(seen.transcript), seen.session, seen.client
        if found is not None and found.is_file() and is_own_log(found):
            self.transcript = found

    def _read(self, path: Path) -> None:
        with open_regular(path, follow=True) as file:
            file.seek(self.size)
            data = file.read(_MOST)
        whole = data[: data.rfind(b"\n") + 1]
        self.size += len(whole) or (len(data) if len(data) == _MOST else 0)
        for record in _records(line for line in whole.splitlines() if _KINDS[self.client] in line):
            self._take_claude(record) if self.client == CLAUDE else self._take_codex(record)

    def _take_claude(self, record: Mapping[str, Any]) -> None:
        """An answer of several lines is told in each of them, and the last one counts."""
        message = record.get("message")
        if record.get("type") != "assistant" or not isinstance(message, dict):
            return
        key = message.get("id"), record.get("requestId")
        names = ("input_tokens", "cache_creation_input_tokens", "output_tokens")
        if (counts := _counts(message.get("usage"), names)) and all(isinstance(one, str | None) for one in key):
            self.tokens = (self.tokens or 0) + sum(counts) - self._answers.get(key, 0)
            self._answers[key] = sum(counts)

    def _finish_claude(self) -> None:
        result = _last_record(self.output)
        if result.get("type") != "result":
            return
        said, usd, models = result.get("result"), result.get("total_cost_usd"), result.get("modelUsage")
        if not self.session and isinstance(result.get("session_id"), str):
            self.session = result["session_id"]
            while self._go_on():
                pass
        if isinstance(said, str) and result.get("is_error") is not True:
            self.message = clean(said)
        if isinstance(usd, int | float) and 0 <= usd < math.inf:
            self.usd = float(usd)
        names = ("inputTokens", "cacheCreationInputTokens", "outputTokens")
        all_models = [_counts(model, names) for model in models.values()] if isinstance(models, dict) else []
        self.tokens = max(sum(map(sum, all_models)), self.tokens or 0) or None  # sub-agents' are among the former
        self.limit = limits.of_claude_result(result)

    def _take_codex(self, record: Mapping[str, Any]) -> None:
        """The totals and the rates that it told last."""
        payload = record.get("payload")
        if record.get("type") != "event_msg" or not isinstance(payload, dict):
            return
        info = payload.get("info")
        if payload.get("type") == "token_count":
            usage = info.get("total_token_usage") if isinstance(info, dict) else None
            if given := _counts(usage, ("input_tokens",)):
                cached, made = (sum(_counts(usage, (name,))) for name in ("cached_input_tokens", "output_tokens"))
                self.tokens = max(0, given[0] - cached) + made
            if isinstance(rates := payload.get("rate_limits"), dict):
                self._rates = rates

    def _finish_codex(self, status: int | None) -> None:
        if self.known.last:
            with suppress(OSError):
                self.message = clean(content_of(Path(self.known.last), most=_MOST_MESSAGE).decode("utf-8", "replace"))
        if self.transcript is None and status != 0:
            last = _last_record(self.output)  # of `codex exec --json`
            error = last.get("error") if last.get("type") == "turn.failed" else None
            failed = limits.of_words(str(error.get("message"))) if isinstance(error, dict) else None
            self.limit = limits.of_codex_errors(tail(self.errors)) or failed

    def _session_of_codex(self) -> str:
        """The session that `codex exec` names in the head of what it prints, before any word of a model; or that it
        names first with `--json`.
        """
        head = _head(self.errors).partition("\n--------\nuser")[0]
        if found := _SESSION_ID.search(head):
            return found[1]
        for record in _records([_head(self.output).partition("\n")[0]]):
            if record.get("type") == "thread.started":
                return str(record.get("thread_id") or "")
        return ""


def _counts(usage: object, names: tuple[str, ...]) -> list[int]:
    """The whole numbers that a mapping has under names."""
    return [value for name in names if type(value := usage.get(name)) is int] if isinstance(usage, dict) else []


def _records(lines: Iterable[bytes | str]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        with suppress(ValueError, RecursionError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found


def _last_record(path: Path) -> Mapping[str, Any]:
    """What the last line of an output holds, empty where that is no record."""
    return next(_records([tail(path, _END).strip().rpartition("\n")[2]]), {})


def _head(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        return file.read(_HEAD).decode("utf-8", "replace")
    return ""
