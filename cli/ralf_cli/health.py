"""`ralf status --all`: every session of a project, and its problems."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ralf_cli.tables import aligned

if TYPE_CHECKING:
    from ralf_integrations.health.look import Health
    from ralf_integrations.health.rules import Session

_ID = 8  # characters of a session's id, at the least


_STEP = 5  # percent of a window that are worth a line


def show(
    route: str | None,
    root: str | None,
    *,
    watch: bool,
    interval: float,
    idle: bool,
    nudge: bool,
    as_json: bool,
) -> None:
    """Print every session of a project, or of a route; with `watch` again and again, with `nudge` after a notice to
    each that crosses the threshold.
    """
    from ralf import project as projects
    from ralf_cli.output import emit_json, fields_of, handed_over
    from ralf_integrations.health.look import look, nudge as tell

    project = projects.find(root)

    def now() -> Health:
        found = look(route=route, everything=idle, root=root)
        for session in tell(project, found) if nudge else ():
            click.echo(f"nudged {session}", err=True)
        return found

    if not watch:
        found = now()
        if as_json:
            emit_json(fields_of(found))
        else:
            with handed_over():
                _emit(found)
        return
    with _shown(as_json=as_json) as show:
        while True:
            show(now())
            time.sleep(interval)


@contextmanager
def _shown(*, as_json: bool) -> Iterator[Callable[[Health], None]]:
    """What shows one look after the other: a table that is drawn anew on a terminal, else the lines that changed."""
    if as_json or not sys.stdout.isatty():
        yield _Changes(as_json=as_json).show
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(), auto_refresh=False, transient=False) as live:
        yield lambda found: live.update(Text("\n".join(_lines(found))), refresh=True)


class _Changes:
    """Prints a session when its state, its warnings or each further five percent change."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._before: dict[str, tuple[object, ...]] = {}

    def show(self, found: Health) -> None:
        from ralf_cli.output import fields_of, handed_over

        for one in found.sessions:
            step = None if one.percent is None else one.percent // _STEP
            now = (one.state, step, tuple(warned.rule for warned in one.warnings))
            if self._before.get(one.session) != now:
                self._before[one.session] = now
                if self._as_json:
                    click.echo(json.dumps({"looked": found.looked, **fields_of(one)}, ensure_ascii=False))
                else:
                    told = "; ".join(f"{warned.rule}: {warned.text}" for warned in one.warnings)
                    with handed_over():
                        click.echo(" ".join(filter(None, (found.looked, *map(str, _row(one)[:4]), told))))
        sys.stdout.flush()


def _emit(found: Health) -> None:
    from ralf_cli.output import say, table

    if not found.sessions:
        say("no session of this project was active in the last 24 hours; to list older ones: ralf status --all --idle")
        return
    table(_HEADINGS, _rows(found), right=(3, 4, 5, 6, 7, 8))
    if live := [one for one in found.sessions if one.tokens is not None and one.state not in ("ended", "killed")]:
        table(_BUDGET, map(_budget, live), right=(1, 2, 3, 4, 5, 6))
        say(f"shares of a window of {live[0].window:,}: {_shares(live[0])}")
    for one in found.sessions:
        for warned in one.warnings:
            say(f"warning: {one.session}: {warned.rule}: {warned.text}")
            say(f"hint: {warned.hint}")


_HEADINGS = ("SESSION", "STATE", "ROUTE", "FULL", "TOKENS", "A MINUTE", "CHECKPOINT IN", "COMPACTS IN", "SAVED")


_BUDGET = ("SESSION", "WINDOW", "TASK", "ITS SHARE", "80 % IN", "COMPACTED", "LAST", "MEMORY")


def _budget(one: Session) -> tuple[object, ...]:
    """What a session's window is spent on, and how often it was compacted."""
    return (
        _plain(one.session[:_ID]),
        f"{one.window:,}",
        f"{one.active_task_tokens:,}",
        f"{one.allocation.active_task:,}" if one.allocation is not None else "-",
        _minutes(one.minutes_to_threshold),
        f"{one.compactions} times",
        _ago(one.minutes_since_compaction),
        f"{-(-one.memory_size // 1024)} KB",
    )


def _shares(one: Session) -> str:
    parts = one.allocation.parts().items() if one.allocation is not None else ()
    return ", ".join(f"{name.replace('_', ' ')} {size:,}" for name, size in parts)


def _rows(found: Health) -> list[tuple[object, ...]]:
    """The rows of the table, with as much of each session's id as tells it from the others: `nudge` takes it."""
    ids = {one.session for one in found.sessions}
    shown = _ID
    while len({id_[:shown] for id_ in ids}) < len(ids):
        shown += 1
    return [(_plain(one.session[:shown]), *_row(one)[1:]) for one in found.sessions]


def _row(one: Session) -> tuple[object, ...]:
    return (
        _plain(one.session),
        one.state,
        one.route,
        "-" if one.percent is None else f"{one.percent:.0f} %",
        "-" if one.tokens is None else one.tokens,
        "-" if one.growth is None else round(one.growth),
        _minutes(one.minutes_to_checkpoint),
        _minutes(one.minutes_to_compaction),
        _ago(one.minutes_since_checkpoint),
    )


def _lines(found: Health) -> list[str]:
    """The table as lines, and the warnings below it."""
    lines = [aligned(_HEADINGS, _rows(found))]
    lines += [
        f"warning: {_plain(one.session)}: {warned.rule}: {_plain(warned.text)}"
        for one in found.sessions
        for warned in one.warnings
    ]
    return [*lines, f"{found.looked}; stop with Ctrl-C"]


def _minutes(minutes: float | None) -> str:
    if minutes is None:
        return "-"
    if minutes < 120:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h" if minutes < 48 * 60 else f"{minutes / 1440:.0f} d"


def _ago(minutes: float | None) -> str:
    if minutes is None:
        return "never"
    return "just now" if minutes < 1 else f"{_minutes(minutes)} ago"


def _plain(text: str) -> str:
    from ralf.text.cleaning import clean, one_line

    return one_line(clean(text))
