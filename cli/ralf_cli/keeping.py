"""`ralf context verify` and `archive`: whether all that is kept is whole, and where what is old of it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ralf_cli.options import with_json, with_root

if TYPE_CHECKING:
    from ralf.maintenance.verify import VerifyReport

_NOTES = 20  # that are printed: old evidence that was pruned is a note a checkpoint


@click.command(short_help="Verify the store's integrity; optionally repair it.")
@click.argument("route", required=False)
@click.option("--repair", is_flag=True, help="Repair the damage and report each repair.")
@with_root
@with_json
@click.pass_context
def verify(ctx: click.Context, route: str | None, repair: bool, root: str | None, as_json: bool) -> None:
    """Verify the integrity of ROUTE or of the whole project: records, route files, caches, evidence, archives.

    Leftovers of a crash (unacknowledged journal tail, stale route file, temporary files) are not damage. A repair
    works from the journal. It never removes the only copy of anything: unreadable files move to the store's folder
    damaged/, and the journal records the loss.

    \b
    Examples:
      ralf context verify
      ralf context verify TASK-001 --repair

    \b
    Exit status: 0 no damage (left) · 1 unwritable, disk full · 2 invalid name · 3 no such route ·
    4 damaged data · 5 busy
    """
    from ralf.maintenance import repair as repairs, verify as verifying
    from ralf_cli.output import emit_json, fields_of

    if repair:
        mended = repairs.repair(route, root=root)
        report = mended.after
        if as_json:
            emit_json(fields_of(mended) | {"damaged": report.damaged})
        else:
            for done in mended.done:
                click.echo(f"{done.path}: {done.what}")
            _emit(report)
    else:
        report = verifying.verify(route, root=root)
        if as_json:
            emit_json(fields_of(report) | {"damaged": report.damaged})
        else:
            _emit(report)
    if report.damaged:
        ctx.exit(4)


def _emit(report: VerifyReport) -> None:
    from ralf_cli.output import say
    from ralf_cli.terminal import complain

    notes = [finding for finding in report.findings if not finding.damage]
    for finding in report.findings:
        if finding.damage:
            hint = f"ralf context verify --repair would {finding.repair}" if finding.repair else "mend it by hand"
            complain(f"{finding.path}: {finding.what}", hint)
    for finding in notes[:_NOTES]:
        say(f"note: {finding.path}: {finding.what}")
    if len(notes) > _NOTES:
        say(f"{len(notes) - _NOTES:,} more notes: --json")
    damaged = sum(finding.damage for finding in report.findings)
    looked = ", ".join(
        _so_many(count, noun)
        for count, noun in (
            (len(report.routes), "route"),
            (report.records, "record"),
            (report.blobs, "blob"),
            (report.archives, "archive"),
        )
    )
    click.echo(f"{looked}: {f'{damaged:,} damaged' if damaged else 'all whole'}")


def _so_many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


@click.command(short_help="Archive old records.")
@click.argument("route", required=False)
@click.option("--older-than", metavar="AGE", help="Older than this, e.g. 90d, 12h, 4w. Default: as configured.")
@click.option("--dry-run", is_flag=True, help="Only show what would be archived.")
@with_root
@with_json
@click.pass_context
def archive(
    ctx: click.Context, route: str | None, older_than: str | None, dry_run: bool, root: str | None, as_json: bool
) -> None:
    """Archive old checkpoints and the transcript text behind them in compressed form.

    Each checkpoint archives a little automatically; this command archives everything that is old enough, in ROUTE
    or in all routes. Nothing is lost; every command reads archived data transparently. The newest 20 records of a
    route stay. The default age is archive_days in the configuration, 90 days unless set, 0 for never.

    \b
    Examples:
      ralf context archive --dry-run
      ralf context archive TASK-001 --older-than 30d

    \b
    Exit status: 0, even if there was nothing to move · 1 unwritable, disk full · 2 invalid name, no age ·
    3 no such route · 4 damaged data (all other routes are archived) · 5 busy
    """
    from ralf.route import archive as archives
    from ralf_cli.output import emit_json, fields_of, table
    from ralf_cli.terminal import complain

    report = archives.archive(route, older_than=older_than, dry_run=dry_run, root=root)
    if as_json:
        emit_json(fields_of(report))
    else:
        if report.routes:
            rows = [
                (one.route, one.records, one.size, f"{one.first} → {one.until}" if one.until else "-", one.blobs)
                for one in report.routes
            ]
            table(("ROUTE", "RECORDS", "BYTES", "ENDED", "EVIDENCE"), rows, right=(1, 2, 4))
        records, blobs = (sum(getattr(one, name) for one in report.routes) for name in ("records", "blobs"))
        did = "would move" if dry_run else "moved"
        what = f"{_so_many(records, 'record')} and the evidence of {_so_many(blobs, 'checkpoint')}"
        click.echo(f"{did} {what} to the archive")
    for damage in report.damaged:
        complain(damage, "ralf context verify --repair")
    if report.damaged:
        ctx.exit(4)
