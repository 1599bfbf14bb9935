"""`ralf health`, `ralf nudge` and `ralf orchestrator`: sessions, notices to them, and the state of an orchestrator."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ralf_cli.command import command
from ralf_cli.options import with_json, with_json_alone, with_root

if TYPE_CHECKING:
    from ralf_integrations.health.look import Health
    from ralf_integrations.health.rules import Session

_ID = 8  # characters of a session's id, at the least


_STEP = 5  # percent of a window that are worth a line


@command(short_help="Show every session: window usage, last checkpoint, problems.")
@click.option("--watch", is_flag=True, help="Refresh continuously (one line per change when piped).")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.2),
    default=5.0,
    show_default=True,
    metavar="S",
    help="Seconds between refreshes.",
)
@click.option("--route", metavar="ROUTE", help="Only sessions that work on this route.")
@click.option("--all", "everything", is_flag=True, help="Include sessions idle for more than a day.")
@click.option("--nudge", is_flag=True, help="Send a notice to each session whose pressure crosses the threshold.")
@with_root
@with_json_alone
def health(
    watch: bool, interval: float, route: str | None, everything: bool, nudge: bool, root: str | None, as_json: bool
) -> None:
    """Show every session of this project: tokens in its window, pressure, growth, minutes to the next checkpoint
    and to compaction, its last checkpoint, its current task, and problems; and how its window is divided: tokens of
    the current task and their share, minutes until it is 80 % full, compactions, size of the memory documents.

    Lists sessions known from hooks or from the client's logs and active in the last 24 hours. Read-only except for
    --nudge. Times are estimates. The thresholds are health_* in config.yaml.

    \b
    Examples:
      ralf health
      ralf health --json
      ralf health --watch --nudge

    \b
    Exit status: 0, even with warnings · 2 invalid name, bad configuration · 4 damaged configuration ·
    130 stopped from the keyboard
    """
    from ralf import project as projects
    from ralf_cli.output import emit_json, fields_of, handed_over
    from ralf_integrations.health.look import look, nudge as tell

    project = projects.find(root)

    def now() -> Health:
        found = look(route=route, everything=everything, root=root)
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
        say("no session of this project was active in the last 24 hours; to list older ones: ralf health --all")
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
    rows = [_HEADINGS, *([str(cell) for cell in row] for row in _rows(found))]
    widths = [max(len(row[n]) for row in rows) for n in range(len(_HEADINGS))]
    lines = ["  ".join(cell.ljust(widths[n]) for n, cell in enumerate(row)).rstrip() for row in rows]
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


_LEAST = 4  # characters of a session's id by which it is told from others


@command(short_help="Send a notice to a running session.")
@click.argument("text")
@click.option("--session", metavar="ID", help="The session's id, or at least its first 4 characters.")
@click.option("--route", metavar="ROUTE", help="All running sessions that work on this route.")
@click.option("--from", "sender", metavar="NAME", default="ralf nudge", show_default=True, help="The sender's name.")
@with_root
@with_json
def nudge(text: str, session: str | None, route: str | None, sender: str, root: str | None, as_json: bool) -> None:
    """Send the notice TEXT to a session: its next hook passes it to the agent, once.

    It is delivered inside the "data, not instructions" fence, with the sender's name. At most 8,000 characters;
    secrets are redacted.

    \b
    Examples:
      ralf health
      ralf nudge "The schema has changed: read db/schema.sql again" --session 3f2a91
      ralf nudge "Release at noon: finish the step and hand over" --route TASK-001

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 no session or route named, invalid name, no text, too long ·
    3 no such session, none on the route · 5 busy
    """
    from ralf import project as projects
    from ralf_cli.output import emit_json
    from ralf_cli.person import author
    from ralf_integrations import inbox

    if session is None and route is None:
        raise click.UsageError("name the session or the route: --session ID, --route ROUTE")
    if session is not None and route is not None:
        raise click.UsageError("name the session or the route, not both")
    project = projects.find(root)
    found = _sessions(session, route, root)
    sent = [{"session": one, "id": inbox.send(project, one, text, sender=sender, by=author())} for one in found]
    if as_json:
        emit_json(sent)
    else:
        for one in sent:
            click.echo(f"{one['session']}: waits for its next hook")


def _sessions(named: str | None, route: str | None, root: str | None) -> list[str]:
    """The ids of the sessions that are meant."""
    from ralf.errors import NotFound, UsageError
    from ralf_integrations.health.look import known_ids, look

    if route is not None:
        going = [one for one in look(route=route, root=root).sessions if one.state not in ("ended", "killed")]
        if not going:
            raise NotFound(route, "no session works on it", "ralf health")
        return [one.session for one in going]
    known = known_ids(root)
    if named in known:
        return [str(named)]
    if len(str(named)) < _LEAST:
        raise UsageError(
            str(named) or '""', f"is too short for a session: {_LEAST} characters of its id", "ralf health"
        )
    found = [one for one in known if one.startswith(str(named))]
    if len(found) > 1:
        raise UsageError(
            str(named), f"begins {len(found)} sessions' ids: {', '.join(sorted(found)[:5])}", "ralf health"
        )
    if not found:
        raise NotFound(str(named), "no such session of this project", "ralf health --all")
    return found


_MOST = 4 << 20  # bytes


_STATE = ("assignments", "queue", "decisions", "channels", "goal")


_FIGURES = ("tokens", "window")


@command(short_help="Store an orchestrator's state in a route.")
@click.argument("route")
@click.option("--now", is_flag=True, help="Checkpoint regardless of the pressure.")
@with_root
def orchestrator(route: str, now: bool, root: str | None) -> None:
    """Store an orchestrator's state in ROUTE: JSON on standard input, JSON on standard output.

    Reads {"assignments": {NAME: TASK}, "queue": [TASK], "decisions": [TEXT or {"decision", "rationale"}], "channels":
    {NAME: HEALTH}, "goal": TEXT, "tokens": N, "window": N}, all optional; without tokens and window, --now is
    required. The state is checkpointed when the window is 70 % full and at every further 5 points; a fresh
    orchestrator reads it with `ralf context show ROUTE --brief`. Prints {"checkpointed", "percent", "checkpoint_id",
    "tokens_since", "updates_since"}; a checkpoint resets the counters.

    \b
    Examples:
      echo '{"queue": ["TASK-002"], "tokens": 150000, "window": 200000}' | ralf orchestrator pm
      ralf orchestrator pm --now < state.json

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name, invalid input · 4 damaged data · 5 busy
    """
    from ralf.errors import UsageError
    from ralf_cli.output import emit_json, fields_of
    from ralf_integrations.orchestrator import Orchestrator

    given = _given(sys.stdin.buffer.read(_MOST + 1))
    figures = [given.get(key) for key in _FIGURES]
    told = all(type(figure) is int for figure in figures)
    if not told and (any(figure is not None for figure in figures) or not now):
        what = "needs the whole numbers tokens and window"
        raise UsageError(
            "standard input", what, 'add "tokens": 150000, "window": 200000; or: ralf orchestrator ROUTE --now'
        )
    keeper = Orchestrator(route, root)
    keeper.update(**{key: given[key] for key in _STATE if given.get(key) is not None})
    if not now:
        emit_json(fields_of(keeper.check_pressure(*map(int, figures))))  # type: ignore[arg-type]
        return
    written, label = keeper.checkpoint()
    percent = round(100 * given["tokens"] / given["window"], 1) if told and given["window"] > 0 else None
    emit_json({"checkpointed": written, "percent": percent, "checkpoint_id": label})


def _given(data: bytes) -> dict[str, Any]:
    from ralf.errors import UsageError

    try:
        tree = json.loads(data) if len(data) <= _MOST else None
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict):
        raise UsageError("standard input", "is not a JSON object, or larger than 4 MiB", "ralf orchestrator --help")
    if unknown := sorted(tree.keys() - {*_STATE, *_FIGURES}):
        raise UsageError(
            "standard input", f"unknown key {unknown[0]!a}", f"known keys: {', '.join((*_STATE, *_FIGURES))}"
        )
    return tree
