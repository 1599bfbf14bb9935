"""`ralf log`: what happened to a route."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ralf_cli.command import command
from ralf_cli.options import Misused, route_and_labels, with_json, with_root, with_route_and_labels
from ralf_cli.pager import with_pager
from ralf_cli.times import shown, with_since

if TYPE_CHECKING:
    from ralf.route.comparing import Told

_HEADINGS = {
    "goal": "Goal",
    "handover": "Hand-over",
    "decisions": "Decisions",
    "work": "Work",
    "checkpoints": "Checkpoints",
    "facts": "Facts",
    "notes": "Notes around the history",
    "other": "Other keys",
}


@command(short_help="List a route's history, or what changed in a span of it.")
@with_route_and_labels("[ROUTE] [A..B]")
@click.option("-n", "limit", type=click.IntRange(min=1), metavar="N", help="Only the newest N.")
@with_since
@with_root
@with_pager
@with_json
@click.pass_context
def log(
    ctx: click.Context, given: tuple[str, ...], limit: int | None, since: str | None, root: str | None, as_json: bool
) -> None:
    """List the history of ROUTE, newest first: checkpoints, decisions, edits, reverts and all other records. With a
    span A..B: what changed from A to B.

    The first column is the revision; `ralf undo` takes it as `r12`. A and B are checkpoints (cp-003, 3), revisions
    (r12) or now; without A the checkpoint before the newest, without B now.

    \b
    Examples:
      ralf log
      ralf log TASK-001 -n 10
      ralf log TASK-001 --since 2d
      ralf log TASK-001 cp-002..cp-005
      ralf log ..

    \b
    Exit status: 0 · 2 invalid name · 3 no such route, checkpoint or revision · 4 damaged journal
    """
    from ralf.route.history import log as events_of
    from ralf_cli.output import emit_json, fields_of, say, table

    route, moments = route_and_labels(ctx, given, 1, spans=True)
    if moments:
        a, is_span, b = moments[0].partition("..")
        if not is_span:
            raise Misused(ctx, f"{a!r} is no span such as cp-2..cp-5", f"ralf log {route} {a}..")
        _tell_difference(route, a or None, b or None, root, as_json=as_json)
        return
    events = events_of(route, limit=limit, since=since, root=root)
    if as_json:
        emit_json([fields_of(event) for event in events])
    elif events:
        rows = [
            (f"r{e.revision}" if e.revision else "-", shown(e.time), e.kind, e.id or "-", _who(e.who), e.text or "-")
            for e in events
        ]
        table(("REVISION", "TIME", "KIND", "ID", "WHO", "WHAT"), rows)
    elif since:
        say(f"{route}: nothing since {since}")
    else:
        say(f"{route}: has no record yet; its file came without a journal")


def _who(who: str) -> str:
    """Who wrote a record, in the word that the brief has for an edit of the file."""
    return "by hand" if who == "human-edit" else who or "-"


def _tell_difference(route: str, a: str | None, b: str | None, root: str | None, *, as_json: bool) -> None:
    """Print what changed in a route from one moment to another: decisions, work, facts, sections."""
    from ralf.route.history import diff as difference_of
    from ralf_cli.output import emit_json, fields_of, say

    found = difference_of(route, a, b, root=root)
    if as_json:
        emit_json(fields_of(found))
        return
    revisions = f"revision {found.from_revision} → {found.to_revision}"
    click.secho(f"{found.route}: {found.before} → {found.after} ({revisions})", bold=True)
    emit_words(found.words)
    if not found.words:
        say("nothing changed")


def emit_words(words: Iterable[Told]) -> None:
    """Print what changed, under a heading for each subject."""
    heading = ""
    for told in words:
        if told.subject != heading:
            heading = told.subject
            click.secho(_HEADINGS.get(heading, heading), bold=True)
        name = f" {told.id}" if told.subject in ("decisions", "checkpoints") else ""
        click.echo(f"  {told.what}{name}: {told.text}")
