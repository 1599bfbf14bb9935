"""`ralf log` and `ralf undo`: the records of a route, and how to take them back."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

from ralf.route import corrections, taking_back
from ralf.route.comparing import Told
from ralf.route.history import diff as difference_of, log as events_of
from ralf.text.cleaning import one_line
from ralf_cli.command import command, given, is_json, root
from ralf_cli.options import Misused, route_and_label, with_since, with_words
from ralf_cli.output import answer, check_shown, echoed, emit_json, say, table, warn
from ralf_cli.person import author, check_person, is_person


@command()
@with_words("[ROUTE] [A..B]")
@click.option("-n", "limit", type=click.IntRange(min=1), metavar="N", help="List only the newest N records.")
@with_since
def log(words: tuple[str, ...], limit: int | None, since: str | None) -> None:
    """List the history of ROUTE, newest first: checkpoints, decisions, edits, reverts and all other records. With a
    span A..B, show the changes from A to B.

    The first column is the revision, e.g. r12, which `ralf undo` accepts. A and B are checkpoints (cp-003, 3),
    revisions (r12) or now. A defaults to the checkpoint before the newest, B to now.

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
        _print_difference(route, span)
        return
    events = events_of(route, limit=limit, since=since, root=root())
    if is_json():
        emit_json(events)
    elif events:
        who = {"human-edit": "by hand"}  # as in the brief
        rows = [
            (f"r{e.revision}" * bool(e.revision), e.time, e.kind, e.id, who.get(e.who, e.who), e.text) for e in events
        ]
        table(("REVISION", "TIME", "KIND", "ID", "WHO", "WHAT"), [[cell or "-" for cell in row] for row in rows])
    else:
        say(f"{route}: no record since {since}" if since else f"{route}: no record yet; its file has no journal")


def _print_difference(route: str, span: str) -> None:
    a, dots, b = span.partition("..")
    if not dots:
        raise Misused(f"{a!r} is not a span such as cp-2..cp-5", f"ralf log {route} {a}..")
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
    for change in words:
        if change.subject != heading:
            heading = change.subject
            click.secho(heading.capitalize(), bold=True)
        name = f" {change.id}" if change.subject in ("decisions", "checkpoints") else ""
        click.echo(f"  {change.what}{name}: {change.text}")


@command("dry_run")
@with_words("[ROUTE] [rN|ID]")
@click.option("--to", metavar="CP|rN", help="Restore the content as it was right after this checkpoint or revision.")
@click.option("--because", metavar="WHY", default="", help="Reason to record.")
def undo(words: tuple[str, ...], to: str | None, because: str) -> None:
    """Undo the last write to ROUTE in this clone: a decision, a pin, a drop, an edit or a hand-over. With rN, undo the
    write of revision N (see `ralf log`). With the ID of a decision, drop the decision permanently: no checkpoint
    records it again. With --to, undo all writes by any author after that checkpoint or revision.

    An undo is a new record; later records remain. Repeat the command to undo earlier writes. Agents can
    undo only writes by agents and cannot use --to.

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
        raise click.UsageError(f"{label} and --to exclude each other")
    if to is not None:
        if not dry_run:
            check_person(route, "nothing was reverted", f"ralf undo {route} --to {to}")
        done = taking_back.revert(route, to, because=because, dry_run=dry_run, root=root())
        did, would, again = "reverted to", "would be as after", f"--to r{done.revision - 1}"
    elif re.fullmatch(r"(?i)cp-?[0-9]{1,9}|now", label):
        raise Misused(f"{label} is a checkpoint: use --to", f"ralf undo {route} --to {label}")
    elif label and not re.fullmatch(r"[rR][0-9]{1,9}", label):
        _drop(route, label, because, dry_run=dry_run)
        return
    else:
        who = None if dry_run or is_person() else "agent"
        revision = int(label[1:]) if label else None
        done = taking_back.undo(route, revision, who=who, because=because, dry_run=dry_run, root=root())
        did, would, again = "took back", "would take back", f"r{done.revision}"
    warn(done.warnings)
    if is_json():
        emit_json(done)
    elif to is not None and not done.difference.changes:
        click.echo(f"{done.route}: is as after {done.what} already")
    else:
        emit_words(done.difference.words)
        if done.revision:
            click.echo(f"{done.route}: {did} {done.what}")
            say(f"to restore it: ralf undo {done.route} {again}")
        else:
            click.echo(f"{done.route}: {would} {done.what}; nothing was changed")
    check_shown(done.damage)


def _drop(route: str, id_: str, because: str, *, dry_run: bool) -> None:
    """Drop a decision for good: only `ralf decide` with its words records it again."""
    if dry_run:
        raise Misused("--dry-run is for a revision or --to", f"ralf show {route} {id_}")
    done = corrections.drop(route, id_, because=because, origin=author(), root=root())
    said = "dropped" if done.changed else "was dropped before"
    answer(
        {"route": done.route, "changed": done.changed, "decision": done.decision},
        f"{done.route}: {done.decision.id} {said}: {echoed(one_line(done.decision.decision))}",
    )
