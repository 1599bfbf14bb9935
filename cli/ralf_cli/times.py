"""Points in time: as a person types them, and how long ago they were, on a terminal, in local time."""

from __future__ import annotations

import re
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from ralf_cli.options import F

_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}

_NAMED = {"today": 0, "yesterday": 1}

_MINUTE, _HOUR, _DAY, _WEEK = 60, 3_600, 86_400, 604_800


def with_since(command: F) -> F:
    """Add `--since WHEN`; the command gets `since`: a time in UTC as records have it, None where it is not given."""
    text = "Only what is newer: an age (30m, 12h, 2d, 3w) or a local date (2026-11-20, yesterday)."
    return click.option("--since", metavar="WHEN", callback=_since, help=text)(command)


def _since(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None or ctx.resilient_parsing:
        return None
    found = parse(value, datetime.now().astimezone())
    if found is None:
        what = f"{value!r} is neither an age such as 2d or 12h nor a date such as 2026-11-20."
        raise click.BadParameter(what, ctx, param)
    return found


def parse(text: str, now: datetime) -> str | None:
    """The time, in UTC as `2026-11-20T14:03:05Z`, that a person means; None where the text names none.

    text  an age before `now` (`30m`, `12h`, `2d`, `3w`), `today`, `yesterday`, or a date, with or without a time, in
          the zone of `now` unless it names another
    """
    said = text.strip().lower()
    if age := re.fullmatch(r"([0-9]{1,5}) ?([mhdw])(?: ago)?", said):
        when = now - int(age[1]) * _UNITS[age[2]]
    elif said in _NAMED:
        when = (now - timedelta(days=_NAMED[said])).replace(hour=0, minute=0, second=0, microsecond=0)
    else:
        try:
            when = datetime.fromisoformat(said.upper())
        except ValueError:
            return None
        when = when if when.tzinfo is not None else when.astimezone()
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def shown(moment: str, now: float | None = None, *, terminal: bool | None = None) -> str:
    """A time as it is printed: on a terminal how long ago it was, in a pipe as it is, `-` for none.

    now  seconds since 1970; None: the clock's. `terminal`: None: whether stdout is one
    """
    seconds = _seconds(moment)
    if seconds is None or not (sys.stdout.isatty() if terminal is None else terminal):
        return moment or "-"
    ago = (time.time() if now is None else now) - seconds
    if 0 <= ago < _MINUTE:
        return "just now"
    for size, word in ((_HOUR, "min"), (_DAY, "h"), (_WEEK, "d")):
        if 0 <= ago < size:
            unit = {"min": _MINUTE, "h": _HOUR, "d": _DAY}[word]
            return f"{int(ago // unit)} {word} ago"
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


def _seconds(moment: Any) -> float | None:
    try:
        found = datetime.fromisoformat(str(moment))
    except ValueError:
        return None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
