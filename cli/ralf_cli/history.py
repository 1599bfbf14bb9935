"""`ralf log`: what happened to a route."""

from __future__ import annotations

from collections.abc import Iterable

import click

from ralf.route.comparing import Told
from ralf.route.history import diff as difference_of, log as events_of
from ralf_cli.command import command, is_json, root
from ralf_cli.options import Misused, route_and_label, with_since, with_words
from ralf_cli.output import emit_json, say, table


@command()
@with_words("[ROUTE] [A..B]")
@click.option("-n", "limit", type=click.IntRange(min=1), metavar="N", help="Only the newest N.")
@with_since
def log(words: tuple[str, ...], limit: int | None, since: str | None) -> None:
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
    """
    route, span = route_and_label(words, spans=True)
    if span:
        _tell_difference(route, span)
        return
    events = events_of(route, limit=limit, since=since, root=root())
    if is_json():
        emit_json(events)
    elif events:
        rows = [(f"r{e.revision}" if e.revision else "-", e.time, e.kind, e.id, _who(e.who), e.text) for e in events]
        table(("REVISION", "TIME", "KIND", "ID", "WHO", "WHAT"), [[cell or "-" for cell in row] for row in rows])
    else:
        say(f"{route}: nothing since {since}" if since else f"{route}: has no record yet; its file has no journal")


def _who(who: str) -> str:
    """Who wrote a record, in the word that the brief has for an edit of the file."""
    return "by hand" if who == "human-edit" else who


def _tell_difference(route: str, span: str) -> None:
    a, dots, b = span.partition("..")
    if not dots:
        raise Misused(f"{a!r} is no span such as cp-2..cp-5", f"ralf log {route} {a}..")
    found = difference_of(route, a or None, b or None, root=root())
    if is_json():
        emit_json(found)
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
            click.secho(heading.capitalize(), bold=True)
        name = f" {told.id}" if told.subject in ("decisions", "checkpoints") else ""
        click.echo(f"  {told.what}{name}: {told.text}")
