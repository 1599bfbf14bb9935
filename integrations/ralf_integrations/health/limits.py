"""Usage limits of clients: recognised in their own words for a failure, and the time at which they end.

A limit is never looked for in what an agent says or prints: a record of the client has to say it. That is a `mark` of
the form `stopped` in a transcript, the result of `claude --output-format json`, or the `ERROR:` line that ends the
standard error of `codex exec`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ralf.text.patterns import regex

UNNAMED = 900
"""Seconds for which the loop waits where a client names no time."""

LEAST = 60
"""Seconds for which it waits at least: the clocks of two machines differ, and a limit may be said again."""

_LATE = timedelta(minutes=10)  # by which a time of day may lie in the past before the next day's is meant
_TOO_MANY = 429
_MOST = 2_000  # characters of a message that are looked at
_FURTHEST = timedelta(days=35)  # no limit lasts longer: a message that says so is misread
_YEARS = 10 * 365 * 86_400  # seconds
_LIMIT = regex(r"\blimit reached\b|\bhit your (?!.{0,30}\bspend)[^.\n]{0,40}\blimit\b|\busage limit\b", re.IGNORECASE)
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
    """A usage limit that a client has reported."""

    until: float = 0.0  # when it ends, seconds since 1970; 0 where the client names no time
    said: str = ""  # the client's words

    def ends(self, now: float) -> float:
        """When to try again."""
        return max(self.until or now + UNNAMED, now + LEAST)


def of_words(said: str, when: float | None = None) -> Limit | None:
    """The limit that a client's own words for a failure tell; None for any other failure.

    when  they were said, seconds since 1970; None for now, and so is what is years away
    """
    said, at = said[:_MOST], datetime.now(UTC)
    if when is not None and abs(when - at.timestamp()) < _YEARS:
        at = datetime.fromtimestamp(when, UTC)
    if not _LIMIT.search(said) or _NOT_A_USAGE_LIMIT.search(said):
        return None
    found = named_time(said, at)
    return Limit(found.timestamp() if found is not None else 0.0, said.strip())


def of_claude_result(record: Mapping[str, Any]) -> Limit | None:
    """The limit that the result of `claude -p --output-format json` tells; None for any other."""
    said = record.get("result")
    if record.get("type") != "result" or record.get("is_error") is not True or not isinstance(said, str):
        return None
    return of_words(said) if record.get("api_error_status") in (None, _TOO_MANY) else None


def of_codex_errors(text: str) -> Limit | None:
    """The limit that the last line of a failed `codex exec`'s standard error tells; None for any other."""
    lines = [line for line in text.rstrip().splitlines() if line.strip()]
    found = _CODEX.fullmatch(lines[-1].strip()[:_MOST]) if lines else None
    return of_words(found[1]) if found else None


def resets(limits: Mapping[str, Any], at: datetime) -> float:
    """When, by the rate limits of a rollout, the last window that is used up begins anew; 0 where none is."""
    found, last = [0.0], (at + _FURTHEST).timestamp()
    for name in ("primary", "secondary"):
        window = limits.get(name)
        if isinstance(window, dict) and isinstance(resets := window.get("resets_at"), int | float):
            used = window.get("used_percent")
            if isinstance(used, int | float) and used >= 100 and resets <= last:
                found.append(float(resets))
    return max(found)


def named_time(text: str, at: datetime) -> datetime | None:
    """The time that a message names, said at another; None where it names none, or none that can be.

    `|1760000400`, `resets 9:50pm (Asia/Saigon)`, `resets Apr 23 at 4pm`, `try again at Sep 20th, 2026 4:00 PM`, `try
    again in 3 days 4 hours 5 minutes`. Without a zone it is the machine's.
    """
    text, time = text[:_MOST], None
    with suppress(ValueError, OverflowError):
        if found := _EPOCH.search(text):
            time = datetime.fromtimestamp(int(found[1]), UTC)
        elif found := _IN.search(text):
            time = at + timedelta(seconds=sum(int(n) * _UNITS[unit] for n, unit in _PART.findall(found["text"])))
        elif found := _AT.search(text):
            time = _of_day(found, at)
    return time if time is not None and time - at <= _FURTHEST else None


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
    time = time.replace(year=int(found["year"] or here.year), month=month, day=int(found["day"]))
    is_past = not found["year"] and time < here - timedelta(days=1)
    return time.replace(year=time.year + 1) if is_past else time


def _zone(name: str) -> tzinfo | None:
    """None for the machine's."""
    with suppress(ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo(name) if name else None
    return None
