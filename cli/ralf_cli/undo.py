"""`ralf undo`: take back the last write of a route, another one, a decision, or all since a moment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from ralf_cli.command import command, taking
from ralf_cli.options import Misused, complete_label, route_and_labels, with_json, with_root, with_route_and_labels

if TYPE_CHECKING:
    from ralf.route.taking_back import TakenBack


@command(short_help="Take back a decision, an edit, a hand-over, or all since a checkpoint.")
@with_route_and_labels("[ROUTE] [rN|ID]")
@click.option(
    "--to",
    metavar="CP|rN",
    shell_complete=complete_label,
    help="Go back to the content right after a checkpoint or revision.",
)
@click.option("--because", metavar="WHY", default="", help="The reason; recorded.")
@taking("dry_run")
@with_root
@with_json
@click.pass_context
def undo(
    ctx: click.Context,
    given: tuple[str, ...],
    to: str | None,
    because: str,
    dry_run: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Take back the last write to ROUTE that your ralf made: a decision, a drop, an edit or a hand-over; or the write
    of revision rN, as `ralf log` shows it; or the decision ID, for good: it is never recorded again. With --to: all
    since then, whoever wrote it.

    The undo is a record of its own, and what was recorded since stays. Undoing again goes further back; an undo is
    taken back by its own revision. Only a person takes back what an agent did not write, and goes back --to a moment.
    Nothing brings back what `ralf forget` has erased.

    \b
    Examples:
      ralf undo
      ralf undo TASK-001 r12 --dry-run
      ralf undo TASK-001 DEC-003 --because "measured: too slow"
      ralf undo TASK-001 --to cp-002 --because "cp-003 recorded a web page"

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name · 3 no such route or item, nothing to take back ·
    4 damaged data · 5 busy; a later write changed the same
    """
    from ralf.route import taking_back
    from ralf_cli.person import check_person, is_person

    route, labels = route_and_labels(ctx, given, 1)
    if to is not None and labels:
        raise click.UsageError(f"{labels[0]} and --to: which of them?")
    if to is not None:
        if not dry_run:
            check_person(route, "nothing was reverted", f"ralf undo {route} --to {to}")
        done = taking_back.revert(route, to, because=because, dry_run=dry_run, root=root)
    elif labels and re.fullmatch(r"(?i)cp-?[0-9]{1,9}|now", labels[0]):
        raise Misused(
            ctx, f"{labels[0]} is a moment: a checkpoint is taken back by --to", f"ralf undo {route} --to {labels[0]}"
        )
    elif labels and not re.fullmatch(r"[rR][0-9]{1,9}", labels[0]):
        _drop(ctx, route, labels[0], because, root, dry_run=dry_run, as_json=as_json)
        return
    else:
        who = None if dry_run or is_person() else "agent"
        revision = int(labels[0][1:]) if labels else None
        done = taking_back.undo(route, revision, who=who, because=because, dry_run=dry_run, root=root)
    _tell(ctx, done, to, as_json=as_json)


def _tell(ctx: click.Context, done: TakenBack, to: str | None, *, as_json: bool) -> None:
    """Print what was taken back; exit status 4 where the file does not show it."""
    from ralf_cli.history import emit_words
    from ralf_cli.output import emit_json, fields_of, say, warn
    from ralf_cli.terminal import complain

    warn(done.warnings)
    did, would, again = ("reverted to", "would be as after", f"--to r{done.revision - 1}")
    if to is None:
        did, would, again = ("took back", "would take back", f"r{done.revision}")
    if as_json:
        emit_json(fields_of(done))
    elif to is not None and not done.difference.changes:
        click.echo(f"{done.route}: is as after {done.what} already")
    else:
        emit_words(done.difference.words)
        if done.revision:
            click.echo(f"{done.route}: {did} {done.what}")
            say(f"to have it again: ralf undo {done.route} {again}")
        else:
            click.echo(f"{done.route}: {would} {done.what}; nothing was changed")
    if done.damage:
        complain(done.damage, "it is in the journal; mend the file, and the next write shows it")
        ctx.exit(4)


def _drop(
    ctx: click.Context, route: str, id_: str, because: str, root: str | None, *, dry_run: bool, as_json: bool
) -> None:
    """Drop a decision for good: nothing records it again but `ralf decide` with its words."""
    from ralf.document.tree import to_tree
    from ralf.route import corrections
    from ralf.text.cleaning import one_line
    from ralf_cli.output import emit_json
    from ralf_cli.person import author
    from ralf_cli.tables import echoed

    if dry_run:
        raise Misused(ctx, "--dry-run is for a revision or --to", f"ralf show {route} {id_}")
    dropped = corrections.drop(route, id_, because=because, origin=author(), root=root)
    if as_json:
        emit_json({"route": dropped.route, "changed": dropped.changed, "decision": to_tree(dropped.decision)})
        return
    said = "dropped" if dropped.changed else "was dropped before"
    click.echo(f"{dropped.route}: {dropped.decision.id} {said}: {echoed(one_line(dropped.decision.decision))}")
