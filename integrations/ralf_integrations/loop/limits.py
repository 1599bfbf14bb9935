"""Usage limits of clients: recognised in their own records of an error, and the time at which they end.

A limit is never looked for in what an agent says or prints: a record of the client has to call it one.

    Claude Code  `isApiErrorMessage` with `error: rate_limit` or status 429, or the result of `--output-format json`
    Codex        `codex_error_info: usage_limit_exceeded`, or the `ERROR:` line that ends standard error
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ralf.text.patterns import regex
from ralf_integrations.loop.logs import tail

UNNAMED = 900
"""Seconds for which the loop waits where a client names no time."""

LEAST = 60
"""Seconds for which it waits at least: the clocks of two machines differ, and a limit may be told again."""

_LATE = timedelta(minutes=10)  # by which a time of day may lie in the past before the next day's is meant
_TOO_MANY = 429
_FULL = 100
_MOST = 2_000  # characters of a message that are looked at
_LAST = 64 << 10  # bytes of a log in which its last record is looked for
_FURTHEST = timedelta(days=35)
_YEARS = timedelta(days=3_650)

_CLAUDE = regex(r"\blimit reached\b|\bhit your (?!.{0,30}\bspend)[^.\n]{0,40}\blimit\b|\busage limit\b", re.IGNORECASE)

_NOT_A_USAGE_LIMIT = regex(r"not your usage limit|\bspend(?:ing)? limit\b", re.IGNORECASE)

_CODEX = regex(r"ERROR:\s+(You['\u2019]ve hit your usage limit.*)", re.DOTALL)

_EPOCH = regex(r"\|\s*(\d{10})(\d{3})?\b")

_AT = regex(
    r"\b(?:resets?|try again)(?: at| on)?\s+"
    r"(?:(?P<month>[A-Z][a-z]{2,8})\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?,?(?: (?P<year>\d{4}),?)?(?: at)? )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[AaPp][Mm])?\b(?!\s*(?:d|h|m|day|hour|min))"
    r"(?:\s*\((?P<zone>[A-Za-z0-9_+/-]{1,40})\))?"
)

_UNIT = r"\d{1,5}\s*(?:days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b[, ]*(?:and )?"

_IN = regex(rf"\b(?:resets?|try again) in\s+(?P<text>(?:{_UNIT})+)")

_PART = regex(r"(\d{1,5})\s*([dhms])")

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()


@dataclass(frozen=True, slots=True)
class Limit:
    """A usage limit that a client has told.

    until  when it ends, seconds since 1970; 0 where the client names no time
    said   the client's words
    """

    until: float = 0.0
    said: str = ""

    def ends(self, now: float) -> float:
        """When to try again."""
        return max(self.until or now + UNNAMED, now + LEAST)


def of_claude_record(record: Mapping[str, Any]) -> Limit | None:
    """The limit that a record of a transcript tells, which is the last thing said in it; None for any other."""
    if record.get("isApiErrorMessage") is not True:
        return None
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    said = content if isinstance(content, str) else _joined(content)
    if record.get("error") == "rate_limit" or record.get("apiErrorStatus") == _TOO_MANY or _EPOCH.search(said[:_MOST]):
        return _of_claude(said, time_of(record.get("timestamp")))
    return None


def of_claude_result(record: Mapping[str, Any], now: datetime) -> Limit | None:
    """The limit that the result of `claude -p --output-format json` tells; None for any other."""
    said = record.get("result")
    if record.get("type") != "result" or record.get("is_error") is not True or not isinstance(said, str):
        return None
    told = record.get("api_error_status")
    return _of_claude(said, now) if told in (None, _TOO_MANY) else None


def _of_claude(said: str, at: datetime) -> Limit | None:
    said = said[:_MOST]
    if not _CLAUDE.search(said) or _NOT_A_USAGE_LIMIT.search(said):
        return None
    return Limit(_stamp(named_time(said, at)), said.strip())


def of_codex_error(error: object, at: datetime, limits: Mapping[str, Any] | None = None) -> Limit | None:
    """The limit that an error of a rollout tells; None for any other.

    limits  the rate limits that the rollout told last, which name a time where the message does not
    """
    if not isinstance(error, dict):
        return None
    kind = error.get("codex_error_info")
    if "usage_limit_exceeded" not in (kind if isinstance(kind, dict | list) else (kind,)):
        return None
    said = str(error.get("message") or "")[:_MOST]
    return Limit(_stamp(named_time(said, at)) or _resets(limits or {}, at), said.strip() or "usage limit exceeded")


def of_codex_errors(text: str, now: datetime) -> Limit | None:
    """The limit that the last line of a failed `codex exec`'s standard error tells; None for any other."""
    lines = [line for line in text.rstrip().splitlines() if line.strip()]
    found = _CODEX.fullmatch(lines[-1].strip()[:_MOST]) if lines else None
    return Limit(_stamp(named_time(found[1], now)), found[1].strip()) if found else None


def last_limit(path: Path | None) -> Limit | None:
    """The usage limit at which a session stopped, by the last record of its log in which somebody speaks; None where
    that is another.
    """
    for line in reversed(tail(path, _LAST).splitlines() if path is not None else ()):
        with suppress(ValueError, RecursionError, AttributeError):
            record = json.loads(line)
            payload = record.get("payload") or {}
            if record.get("type") in ("user", "assistant"):
                return of_claude_record(record)
            if payload.get("type") == "error":
                return of_codex_error(payload, time_of(record.get("timestamp")))
            if payload.get("type") == "message":
                return None
    return None


def _resets(limits: Mapping[str, Any], at: datetime) -> float:
    """When the last of the windows that are used up begins anew, 0 where none is, and for a time that none can be."""
    found, last = [0.0], (at + _FURTHEST).timestamp()
    for name in ("primary", "secondary"):
        window = limits.get(name)
        if isinstance(window, dict) and isinstance(resets := window.get("resets_at"), int | float):
            used = window.get("used_percent")
            if isinstance(used, int | float) and used >= _FULL and resets <= last:
                found.append(float(resets))
    return max(found)


# ---- the time that a message names ----


def named_time(text: str, at: datetime) -> datetime | None:
    """The time that a message names, told at another; None where it names none, or none that can be.

    `|1760000400`, `resets 9:50pm (Asia/Saigon)`, `resets Apr 23 at 4pm`, `try again at Sep 20th, 2026 4:00 PM`, `try
    again in 3 days 4 hours 5 minutes`. Without a zone it is the machine's.
    """
    text = text[:_MOST]
    if found := _EPOCH.search(text):
        return _near(datetime.fromtimestamp(int(found[1]), UTC), at)
    if found := _IN.search(text):
        seconds = sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(found["text"]))
        return _near(at + timedelta(seconds=seconds), at)
    if (found := _AT.search(text)) is None:
        return None
    try:
        return _near(_of_day(found, at), at)
    except (ValueError, OverflowError):
        return None


def _of_day(found: re.Match[str], at: datetime) -> datetime:
    here = at.astimezone(_zone(found["zone"] or ""))
    hour = int(found["hour"])
    if half := (found["half"] or "").lower():
        if not 1 <= hour <= 12:
            raise ValueError(hour)
        hour = hour % 12 + 12 * (half == "pm")
    time = here.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
    if found["month"] is None:
        return time if time >= here - _LATE else time + timedelta(days=1)
    month = _MONTHS.index(found["month"][:3].lower()) + 1
    if found["year"]:
        return time.replace(year=int(found["year"]), month=month, day=int(found["day"]))
    time = time.replace(month=month, day=int(found["day"]))
    return time if time >= here - timedelta(days=1) else time.replace(year=time.year + 1)


def _zone(name: str) -> tzinfo | None:
    """None for the machine's."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _near(time: datetime, at: datetime) -> datetime | None:
    """No limit lasts longer than a month: a message that says so is misread."""
    return time if time - at <= _FURTHEST else None


def _stamp(time: datetime | None) -> float:
    return time.timestamp() if time is not None else 0.0


def time_of(value: object) -> datetime:
    """The time of a record, of which one without a zone is UTC; now for none, and for one that is years away."""
    now = datetime.now(UTC)
    try:
        time = datetime.fromisoformat(str(value))
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        return time if abs(time - now) < _YEARS else now
    except (ValueError, OverflowError):
        return now


def _joined(content: object) -> str:
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))
