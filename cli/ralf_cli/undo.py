"""`ralf undo`: take back the last write of a route, or another one."""

from __future__ import annotations

import re

import click

from ralf_cli.command import command
from ralf_cli.options import Misused, route_and_labels, with_json, with_root, with_route_and_labels


@command(short_help="Take back the last decision, drop, edit or hand-over.")
@with_route_and_labels("[ROUTE] [rN]")
@click.option("--because", metavar="WHY", default="", help="The reason; recorded.")
@click.option("--dry-run", is_flag=True, help="Only show the changes.")
@with_root
@with_json
@click.pass_context
def undo(
    ctx: click.Context,
    given: tuple[str, ...],
    because: str,
    dry_run: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Take back the last write to ROUTE that your ralf made: a decision, a drop, an edit or a hand-over; or the write
    of revision rN, as `ralf log` shows it.

    The undo is a record of its own, and what was recorded since stays. Undoing again goes further back; an undo is
    taken back by its own revision. Only a person takes back what an agent did not write. A checkpoint is
    taken back by `ralf context revert`, and nothing brings back what `ralf context forget` has erased.

    \b
    Examples:
      ralf undo
      ralf undo TASK-001 r12 --dry-run

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name · 3 no such route, nothing to take back ·
    4 damaged data · 5 busy; a later write changed the same
    """
    from ralf.route import taking_back
    from ralf_cli.history import emit_words
    from ralf_cli.output import emit_json, fields_of, say
    from ralf_cli.person import is_person
    from ralf_cli.terminal import complain

    route, moments = route_and_labels(ctx, given, 1)
    who = None if dry_run or is_person() else "agent"
    revision = _revision(ctx, route, moments[0]) if moments else None
    done = taking_back.undo(route, revision, who=who, because=because, dry_run=dry_run, root=root)
    for warning in done.warnings:
        say(f"warning: {warning}")
    if as_json:
        emit_json(fields_of(done))
    else:
        emit_words(done.difference.words)
        if done.revision:
            click.echo(f"{done.route}: took back {done.what}")
            say(f"to have it again: ralf undo {done.route} r{done.revision}")
        else:
            click.echo(f"{done.route}: would take back {done.what}; nothing was changed")
    if done.damage:
        complain(done.damage, "the undo is in the journal; mend the file, and the next write shows it")
        ctx.exit(4)


def _revision(ctx: click.Context, route: str, moment: str) -> int:
    """The revision that `r12` names; Misused for any other label."""
    if found := re.fullmatch(r"[rR]0*([0-9]{1,9})", moment):
        return int(found[1])
    hint = f"ralf log {route}; to go back to an earlier checkpoint: ralf context revert {route} CP"
    raise Misused(ctx, f"{moment!r} is no revision such as r12", hint)
