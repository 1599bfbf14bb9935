"""`ralf status --all`: every session of a project, and its problems."""

from __future__ import annotations

from ralf_cli.command import handed_over, is_json, project, root
from ralf_cli.output import emit_json, say, table
from ralf_integrations.health.look import Health, look, nudge as tell
from ralf_integrations.health.rules import Session

_ID = 8  # characters of a session's id, at the least


def show(route: str | None, *, idle: bool, nudge: bool) -> None:
    """Print every session of a project, or of a route; with `nudge` after a notice to who crosses the threshold."""
    found = look(route=route, everything=idle, root=root())
    for session in tell(project(), found) if nudge else ():
        say(f"nudged {session}")
    if is_json():
        emit_json(found)
    else:
        with handed_over():
            _emit(found)


_HEADINGS = ("SESSION", "STATE", "ROUTE", "FULL", "TOKENS", "A MINUTE", "CHECKPOINT IN", "COMPACTS IN", "SAVED")


def _emit(found: Health) -> None:
    if not found.sessions:
        say("no session of this project was active in the last 24 hours; to list older ones: ralf status --all --idle")
        return
    ids, shown = {one.session for one in found.sessions}, _ID
    while len({id_[:shown] for id_ in ids}) < len(ids):  # `send` takes as much of an id as tells it from the others
        shown += 1
    table(_HEADINGS, [(one.session[:shown], *_cells(one)) for one in found.sessions], right=(3, 4, 5, 6, 7, 8))
    for one in found.sessions:
        for warned in one.warnings:
            say(f"warning: {one.session}: {warned.rule}: {warned.text}")
            say(f"hint: {warned.hint}")


def _cells(one: Session) -> tuple[object, ...]:
    return (
        one.state,
        one.route,
        "-" if one.percent is None else f"{one.percent:.0f} %",
        "-" if one.tokens is None else one.tokens,
        "-" if one.growth is None else round(one.growth),
        _minutes(one.minutes_to_checkpoint),
        _minutes(one.minutes_to_compaction),
        _ago(one.minutes_since_checkpoint),
    )


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
