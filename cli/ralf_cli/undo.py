"""`ralf undo`: take back the last write of a route, another one, a decision, or all since a moment."""

from __future__ import annotations

import re

import click

from ralf.document.tree import to_tree
from ralf.route import corrections, taking_back
from ralf.route.taking_back import TakenBack
from ralf.text.cleaning import one_line
from ralf_cli.command import command, given, is_json, root
from ralf_cli.history import emit_words
from ralf_cli.options import Misused, route_and_label, with_words
from ralf_cli.output import answer, check_shown, emit_json, say, warn
from ralf_cli.person import author, check_person, is_person
from ralf_cli.tables import echoed


@command("dry_run")
@with_words("[ROUTE] [rN|ID]")
@click.option("--to", metavar="CP|rN", help="Go back to the content right after a checkpoint or revision.")
@click.option("--because", metavar="WHY", default="", help="The reason; recorded.")
def undo(words: tuple[str, ...], to: str | None, because: str) -> None:
    """Take back the last write to ROUTE that your ralf made: a decision, a drop, an edit or a hand-over; or the write
    of revision rN, as `ralf log` shows it; or the decision ID, for good: it is never recorded again. With --to: all
    since then, whoever wrote it.

    The undo is a record of its own, and what was recorded since stays. Undoing again goes further back. Only a person
    takes back what an agent did not write, and goes back --to a moment.

    \b
    Examples:
      ralf undo
      ralf undo TASK-001 r12 --dry-run
      ralf undo TASK-001 DEC-003 --because "measured: too slow"
      ralf undo TASK-001 --to cp-002 --because "cp-003 recorded a web page"
    """
    route, label = route_and_label(words)
    dry_run = bool(given("dry_run"))
    if to is not None and label:
        raise click.UsageError(f"{label} and --to: which of them?")
    if to is not None:
        if not dry_run:
            check_person(route, "nothing was reverted", f"ralf undo {route} --to {to}")
        done = taking_back.revert(route, to, because=because, dry_run=dry_run, root=root())
    elif re.fullmatch(r"(?i)cp-?[0-9]{1,9}|now", label):
        what = f"{label} is a moment: a checkpoint is taken back by --to"
        raise Misused(what, f"ralf undo {route} --to {label}")
    elif label and not re.fullmatch(r"[rR][0-9]{1,9}", label):
        _drop(route, label, because, dry_run=dry_run)
        return
    else:
        who = None if dry_run or is_person() else "agent"
        revision = int(label[1:]) if label else None
        done = taking_back.undo(route, revision, who=who, because=because, dry_run=dry_run, root=root())
    _tell(done, to)


def _tell(done: TakenBack, to: str | None) -> None:
    warn(done.warnings)
    did, would, again = ("reverted to", "would be as after", f"--to r{done.revision - 1}")
    if to is None:
        did, would, again = ("took back", "would take back", f"r{done.revision}")
    if is_json():
        emit_json(done)
    elif to is not None and not done.difference.changes:
        click.echo(f"{done.route}: is as after {done.what} already")
    else:
        emit_words(done.difference.words)
        if done.revision:
            click.echo(f"{done.route}: {did} {done.what}")
            say(f"to have it again: ralf undo {done.route} {again}")
        else:
            click.echo(f"{done.route}: {would} {done.what}; nothing was changed")
    check_shown(done.damage)


def _drop(route: str, id_: str, because: str, *, dry_run: bool) -> None:
    """Drop a decision for good: nothing records it again but `ralf decide` with its words."""
    if dry_run:
        raise Misused("--dry-run is for a revision or --to", f"ralf show {route} {id_}")
    done = corrections.drop(route, id_, because=because, origin=author(), root=root())
    said = "dropped" if done.changed else "was dropped before"
    answer(
        {"route": done.route, "changed": done.changed, "decision": to_tree(done.decision)},
        f"{done.route}: {done.decision.id} {said}: {echoed(one_line(done.decision.decision))}",
    )
