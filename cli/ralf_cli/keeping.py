"""`ralf context verify` and `archive`: whether all that is kept is whole, and where what is old of it lies."""

from __future__ import annotations

import click

from ralf_cli.options import with_json, with_root


@click.command()
@click.argument("route", required=False)
@click.option("--older-than", metavar="AGE", help="What ended so long ago: 90d, 12h, 4w. Default: as configured.")
@click.option("--dry-run", is_flag=True, help="Only say what would move.")
@with_root
@with_json
@click.pass_context
def archive(
    ctx: click.Context, route: str | None, older_than: str | None, dry_run: bool, root: str | None, as_json: bool
) -> None:
    """Move what is old to the archive: checkpoints and the transcript text behind them, compressed.

    A little of that moves by itself at each checkpoint; this moves all of it, of ROUTE or of all routes. Nothing is
    lost and nothing changes: every command reads the archive. The newest 20 records of a route stay. The age is as
    configured: archive_days, 90 by default, 0 for never.

    \b
    Examples:
      ralf context archive --dry-run
      ralf context archive TASK-001 --older-than 30d

    \b
    Exit status: 0, also when there was nothing to move · 1 unwritable, disk full · 2 refused name, no age ·
    3 no such route · 4 damaged data (the other routes are done) · 5 busy
    """
    from ralf import archive as archives
    from ralf_cli.main import complain
    from ralf_cli.output import emit_json, fields_of, table

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
        did = "moved" if report.moved or not report.routes else "would move"
        click.echo(f"{did} {records:,} records and the evidence of {blobs:,} checkpoints to the archive")
    for damage in report.damaged:
        complain(damage, "ralf context verify --repair")
    if report.damaged:
        ctx.exit(4)
