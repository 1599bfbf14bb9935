"""`ralf context why` and `prune`: what stands behind a claim, and how long that is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ralf.text.cleaning import clean
from ralf_cli.options import with_json, with_root, with_route

if TYPE_CHECKING:
    from ralf.history.provenance import Reason

_SHOWN = 1_200  # characters of one message that are printed


@click.command(short_help="Show the transcript lines behind a decision or checkpoint.")
@with_route("id")
@with_root
@with_json
@click.pass_context
def why(ctx: click.Context, route: str, id: str, root: str | None, as_json: bool) -> None:  # noqa: A002
    """Show the transcript lines behind a decision or a checkpoint of ROUTE.

    Works without the transcript. Long messages are truncated; use --json for full text.

    \b
    Examples:
      ralf context why TASK-001 DEC-003
      ralf context why TASK-001 cp-002
      ralf context why TASK-001 DEC-003 --json

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


@click.command(short_help="Remove old transcript text behind checkpoints.")
@click.option("--older-than", metavar="AGE", help="Evidence of segments older than this, e.g. 90d, 12h, 4w.")
@click.option(
    "--keep-under", metavar="SIZE", help="The oldest evidence, until the rest is smaller than this, e.g. 500MB, 2GB."
)
@click.option("--dry-run", is_flag=True, help="Only list what would be removed (the default without --yes).")
@click.option("--yes", is_flag=True, help="Remove the listed evidence.")
@with_root
@with_json
def prune(
    older_than: str | None, keep_under: str | None, dry_run: bool, yes: bool, root: str | None, as_json: bool
) -> None:
    """Remove old evidence: the transcript text behind checkpoints. Removes nothing without --yes.

    Decisions, facts, checkpoints and journals stay complete. The newest checkpoint of each route keeps its
    evidence. Missing options default to the configuration (evidence_days, evidence_size). Evidence that no
    checkpoint refers to is removed, too.

    \b
    Examples:
      ralf context prune --older-than 90d
      ralf context prune --older-than 90d --yes
      ralf context prune --keep-under 500MB --yes

    \b
    Exit status: 0, even if there was nothing to remove · 1 unwritable · 2 neither age nor size given ·
    4 damaged journal (nothing is removed)
    """
    from ralf.route import archive
    from ralf_cli.output import emit_json, fields_of, say, table

    report = archive.prune(older_than=older_than, keep_under=keep_under, remove=yes and not dry_run, root=root)
    if as_json:
        emit_json(fields_of(report) | {"freed": report.freed})
        return
    if report.pruned:
        rows = [
            (one.route or "-", ", ".join(one.checkpoints) or "-", one.time or "-", one.size, one.reason)
            for one in report.pruned
        ]
        table(("ROUTE", "CHECKPOINT", "TIME", "BYTES", "REASON"), rows, right=(3,))
    freed, left = f"{report.freed:,} bytes of evidence", f"{report.kept:,} stay"
    if yes and not dry_run:
        click.echo(f"removed {freed}; {left}")
    else:
        click.echo(f"would remove {freed}; {left}" + ("; run it again with --yes" if report.pruned else ""))
    if report.just_put:
        say(f"{report.just_put} more were put within the last ten minutes: later")


def _emit(reason: Reason) -> None:
    status = f" [{reason.status}]" if reason.status not in ("", "active") else ""
    click.secho(f"{reason.route} {reason.id}{status}", bold=True, nl=False)
    said = ", ".join(filter(None, [reason.kind, reason.origin and f"by {reason.origin}", reason.timestamp]))
    edited = ", edited by hand since" if reason.edited else ""
    click.echo(f"  {said}; {reason.recorded}{edited}".rstrip("; "))
    for text in (reason.claim, reason.rationale and f"Because: {reason.rationale}"):
        click.echo(_indented(text), nl=False)
    for option in reason.alternatives:
        click.echo(_indented(f"Rejected: {option}"), nl=False)
    click.echo()
    source = reason.source
    if source is None:
        click.echo(f"No transcript holds it: {reason.recorded}, revision {reason.revision}.")
        return
    where = f"session {source.session}, {_lines(source.first_line, source.last_line)}, sha256 {source.sha256}"
    match = {True: "the words are unchanged", False: "THE WORDS ARE NOT THOSE THAT IT WAS TAKEN FROM"}
    gone = "some of the words were forgotten" if reason.evidence == "purged" else "pruned"
    click.echo(f"{where}: {gone if reason.matches is None else match[reason.matches]}")
    for quote in reason.quotes:
        click.echo()
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
