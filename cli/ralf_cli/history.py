"""`ralf log`, `diff`, `why` and `ralf context revert`: what happened to a route, and what is behind it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ralf.text.cleaning import clean
from ralf_cli.command import command
from ralf_cli.options import route_and_labels, with_json, with_root, with_route, with_route_and_labels
from ralf_cli.pager import with_pager
from ralf_cli.times import shown, with_since

if TYPE_CHECKING:
    from ralf.route.comparing import Told
    from ralf.route.why import Quote, Reason

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


@command(short_help="List a route's history, newest first.")
@with_route()
@click.option("-n", "limit", type=click.IntRange(min=1), metavar="N", help="Only the newest N.")
@with_since
@with_root
@with_pager
@with_json
def log(route: str, limit: int | None, since: str | None, root: str | None, as_json: bool) -> None:
    """List the history of ROUTE, newest first: checkpoints, decisions, edits, reverts and all other records.

    The first column is the revision; pass it to diff, revert and undo as `r12`.

    \b
    Examples:
      ralf log
      ralf log TASK-001 -n 10
      ralf log TASK-001 --since 2d
      ralf log TASK-001 --json

    \b
    Exit status: 0 · 2 invalid name · 3 no such route · 4 damaged journal
    """
    from ralf.route.history import log as events_of
    from ralf_cli.output import emit_json, fields_of, say, table

    events = events_of(route, limit=limit, since=since, root=root)
    if as_json:
        emit_json([fields_of(event) for event in events])
    elif events:
        rows = [
            (f"r{e.revision}" if e.revision else "-", shown(e.time), e.kind, e.id or "-", e.who or "-", e.text or "-")
            for e in events
        ]
        table(("REVISION", "TIME", "KIND", "ID", "WHO", "WHAT"), rows)
    elif since:
        say(f"{route}: nothing since {since}")
    else:
        say(f"{route}: has no record yet; its file came without a journal")


@command(short_help="Show what changed between two checkpoints.")
@with_route_and_labels("[ROUTE] [A] [B]")
@with_root
@with_pager
@with_json
@click.pass_context
def diff(ctx: click.Context, given: tuple[str, ...], root: str | None, as_json: bool) -> None:
    """Show what changed in ROUTE from A to B: decisions, work, facts, sections.

    A and B are checkpoints (cp-003, 3), revisions (r12) or now. Without A: the checkpoint before the newest; without
    B: now. Content evicted only because of the size limit does not count as a change. --json adds the changes as
    data.

    \b
    Examples:
      ralf diff
      ralf diff TASK-001 cp-002 cp-005
      ralf diff TASK-001 r12 --json

    \b
    Exit status: 0, even if nothing changed · 2 invalid name · 3 no such route, checkpoint or revision ·
    4 damaged data
    """
    from ralf.route.history import diff as difference_of
    from ralf_cli.output import emit_json, fields_of, say

    route, moments = route_and_labels(ctx, given, 2)
    a, b = (*moments, None, None)[:2]
    found = difference_of(route, a, b, root=root)
    if as_json:
        emit_json(fields_of(found))
        return
    revisions = f"revision {found.from_revision} → {found.to_revision}"
    click.secho(f"{found.route}: {found.before} → {found.after} ({revisions})", bold=True)
    emit_words(found.words)
    if not found.words:
        say("nothing changed")


@command(short_help="Restore a route to an earlier checkpoint.")
@with_route("to", "CP|rN")
@click.option("--because", metavar="WHY", default="", help="The reason; recorded.")
@click.option("--dry-run", is_flag=True, help="Only show the changes.")
@with_root
@with_json
@click.pass_context
def revert(
    ctx: click.Context, route: str, to: str, because: str, dry_run: bool, root: str | None, as_json: bool
) -> None:
    """Restore ROUTE to its content right after a checkpoint (cp-002, 2) or revision (r12).

    Restores decisions, work, goal, facts, sections and notes; later records stay in the journal. The revert can
    itself be reverted. Transcripts are not read again, but a decision that an agent states
    again is recorded again; use `drop` to prevent that. Only a person reverts.

    \b
    Examples:
      ralf context revert TASK-001 cp-002 --dry-run
      ralf context revert TASK-001 cp-002 --because "cp-003 recorded a web page"
      ralf context revert TASK-001 r12

    \b
    Exit status: 0, even if there was nothing to do · 1 unwritable, disk full · 2 invalid name ·
    3 no such route, checkpoint or revision · 4 damaged data · 5 busy
    """
    from ralf.route.taking_back import revert as revert_to
    from ralf_cli.output import emit_json, fields_of, say
    from ralf_cli.person import check_person
    from ralf_cli.terminal import complain

    if not dry_run:
        check_person(route, "nothing was reverted", f"ralf context revert {route} {to}")
    done = revert_to(route, to, because=because, dry_run=dry_run, root=root)
    for warning in done.warnings:
        say(f"warning: {warning}")
    if as_json:
        emit_json(fields_of(done))
    elif not done.difference.changes:
        click.echo(f"{done.route}: is as after {done.what} already")
    else:
        emit_words(done.difference.words)
        if done.revision:
            click.echo(f"{done.route}: reverted to {done.what}")
            say(f"to have it again: ralf context revert {done.route} r{done.revision - 1}")
        else:
            click.echo("dry run: nothing was changed")
    if done.damage:
        complain(done.damage, "the revert is in the journal; mend the file, and the next write shows it")
        ctx.exit(4)


def emit_words(words: Iterable[Told]) -> None:
    """Print what changed, under a heading for each subject."""
    heading = ""
    for told in words:
        if told.subject != heading:
            heading = told.subject
            click.secho(_HEADINGS.get(heading, heading), bold=True)
        name = f" {told.id}" if told.subject in ("decisions", "checkpoints") else ""
        click.echo(f"  {told.what}{name}: {told.text}")


_SHOWN = 1_200  # characters of one message that are printed


@command(short_help="Show what stands behind a decision or checkpoint.")
@with_route("id")
@with_root
@with_pager
@with_json
@click.pass_context
def why(ctx: click.Context, route: str, id: str, root: str | None, as_json: bool) -> None:  # noqa: A002
    """Show what made a decision or a checkpoint of ROUTE: the words with their lines, the turn, and what was said next.

    Works without the transcript. Long messages are truncated; use --json for full text.

    \b
    Examples:
      ralf why DEC-003
      ralf why TASK-001 cp-002
      ralf why TASK-001 DEC-003 --json

    \b
    Exit status: 0, even for a claim without a transcript, such as a decision recorded by hand · 2 invalid name ·
    3 no such route or ID, or its evidence was pruned (session, lines and hash are printed) · 4 damaged data
    """
    import ralf
    from ralf_cli.output import emit_json, fields_of
    from ralf_cli.terminal import complain

    reason = ralf.why(route, id, root=root)
    if as_json:
        emit_json(fields_of(reason))
    else:
        _emit(reason)
    if reason.evidence == "pruned":
        complain(f"{reason.route}: {reason.id}: the words behind it are not kept any more", "read them in the session")
        ctx.exit(3)


def _emit(reason: Reason) -> None:
    status = f" [{reason.status}]" if reason.status not in ("", "active") else ""
    click.secho(f"{reason.route} {reason.id}{status}", bold=True, nl=False)
    when = shown(reason.timestamp) if reason.timestamp else ""
    said = ", ".join(filter(None, [reason.kind, reason.origin and f"by {reason.origin}", when]))
    edited = ", edited by hand since" if reason.edited else ""
    click.echo(f"  {said}; {reason.recorded}{edited}".rstrip("; "))
    for text in (reason.claim, reason.rationale and f"Because: {reason.rationale}"):
        click.echo(_indented(text), nl=False)
    for option in reason.alternatives:
        click.echo(_indented(f"Rejected: {option}"), nl=False)
    click.echo()
    source = reason.source
    if source is None:
        revision = f", revision {reason.revision}" if reason.revision else ""
        click.echo(f"Recorded {reason.recorded}{revision}; no lines were given.")
        _emit_quotes("Recorded with", reason.quotes)
        _emit_turn(reason)
        return
    where = f"session {source.session}, {_lines(source.first_line, source.last_line)}, sha256 {source.sha256}"
    match = {True: "the words are unchanged", False: "THE WORDS ARE NOT THOSE THAT IT WAS TAKEN FROM"}
    gone = "some of the words were forgotten" if reason.evidence == "purged" else "pruned"
    click.echo(f"{where}: {gone if reason.matches is None else match[reason.matches]}")
    _emit_quotes("", reason.quotes)
    _emit_turn(reason)


def _emit_turn(reason: Reason) -> None:
    _emit_quotes("The turn it stands in", reason.turn)
    _emit_quotes("The next messages", reason.after)


def _emit_quotes(heading: str, quotes: Iterable[Quote]) -> None:
    for number, quote in enumerate(quotes):
        click.echo(f"\n{heading}:" if heading and not number else "")
        click.secho(f"{_lines(quote.line, quote.last)}, {quote.who}:", bold=True)
        click.echo(_indented(quote.text), nl=False)


def _lines(first: int, last: int) -> str:
    return f"line {first}" if last <= first else f"lines {first}-{last}"


def _indented(text: str) -> str:
    text = clean(text)
    cut = len(text) - _SHOWN
    if cut > 0:
        text = f"{text[:_SHOWN].rstrip()}\n… {cut:,} characters more: --json"
    return "".join(f"  {line}\n" for line in text.strip().split("\n")) if text else ""
