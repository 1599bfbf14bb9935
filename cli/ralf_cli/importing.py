"""`ralf import`: take over what another tool, or a client, has kept of this project."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralf_cli.command import command, taking
from ralf_cli.options import with_json, with_root
from ralf_integrations.client import CLIENTS

if TYPE_CHECKING:
    from ralf_migrations.report import FileReport, MigrationReport

SOURCES = ("timeline-memory", "decision-registry", "decisions-md", "ralf-context", "run-folders", "pilot-checkpoint")
_WITH_SESSIONS = tuple(client.name for client in CLIENTS.values() if client.sessions is not None)
_MOST_ROWS = 40  # of files that came to nothing


@command("import", short_help="Import history or tasks of another tool, or a client's sessions.")
@click.argument("source", metavar="SOURCE")
@click.argument("path", required=False, type=click.Path())
@click.option("--since", metavar="WHEN", help="Only client sessions written to since then, e.g. 30d, 2026-02-01.")
@taking("dry_run")
@with_root
@with_json
@click.pass_context
def import_(
    ctx: click.Context, source: str, path: str | None, dry_run: bool, since: str | None, root: str | None, as_json: bool
) -> None:
    """Import SOURCE's history from the project or PATH as checkpoints, or the tasks in a file.

    \b
    timeline-memory    timeline-memory.md, an agent's long-term memory, in both formats
    decision-registry  decision_registry.yaml, a project's or a run's
    decisions-md       DECISIONS.md
    ralf-context       RALF-CONTEXT.md
    run-folders        run folders of the RALF loop
    pilot-checkpoint   checkpoint.json of Pilot and its history
    claude-code, codex, gemini, opencode: existing sessions of this project (PATH does not apply)
    a path             tasks: Aqua's database, `issues.jsonl` of beads, a folder of Claude Code's tasks
                       (~/.claude/tasks/LIST), `tasks.json` of Task Master, `prd.json`, `.ralph/agent/tasks.jsonl`

    Each record goes to the route of its task, else of its agent. Sources are only read, and imports are idempotent.
    The table reports what happened to each file; the account file and --json report each field.

    \b
    Examples:
      ralf import timeline-memory --dry-run
      ralf import decision-registry
      ralf import run-folders runs/executor
      ralf import claude-code --since 30d
      ralf import .beads/issues.jsonl --dry-run

    \b
    Exit status: 0 every file is accounted for, even if there was none · 1 unwritable, disk full · 2 usage ·
    3 no such PATH · 4 unreadable files were listed, all others imported · 5 busy
    """
    if source not in (*SOURCES, *_WITH_SESSIONS):
        _tasks(source, path, root, dry_run=dry_run, as_json=as_json)
        return
    if source in _WITH_SESSIONS:
        if path is not None:
            raise click.UsageError("a client's sessions are found where the client keeps them: no PATH")
        _sessions(ctx, source, root, since=_moment(since), dry_run=dry_run, as_json=as_json)
        return
    if since is not None:
        raise click.UsageError(f"--since is for a client's sessions: {', '.join(_WITH_SESSIONS)}")
    from ralf_cli.output import emit_json, fields_of
    from ralf_migrations.migrate import is_done, migrate as take_over

    with _progress() as progress:
        report = take_over(source, path, root=root, dry_run=dry_run, progress=progress)
    if as_json:
        totals = {"decisions": report.decisions, "written": report.written, "routes": report.routes}
        emit_json(fields_of(report) | totals)
    else:
        _emit(report)
    if not is_done(report):
        ctx.exit(4)


def _tasks(source: str, path: str | None, root: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Import a list of tasks, whose kind is recognized by its content."""
    from ralf.errors import NotFound, UsageError
    from ralf_cli.output import emit_json
    from ralf_migrations.task_import import import_tasks

    if path is None and not Path(source).exists() and {".", "/"} & {*source}:
        raise NotFound(source, "no such file", "ralf import --help")
    if path is not None or not Path(source).exists():
        known = ", ".join((*SOURCES, *_WITH_SESSIONS))
        raise UsageError(source, "is neither a source nor a file of tasks", f"sources: {known}")
    report = import_tasks(source, dry_run=dry_run, root=root)
    if as_json:
        emit_json(report.tree())
    else:
        click.echo("\n".join(report.lines()))


def _emit(report: MigrationReport) -> None:
    from ralf_cli.output import say, table

    quiet = [one for one in report.files if one.outcome == "nothing"]
    shown = [one for one in report.files if one.outcome != "nothing" or len(quiet) <= _MOST_ROWS]
    if shown:
        table(
            ("FILE", "ROUTE", "SHAPE", "DECISIONS", "CARRIED", "EVIDENCE", "LEFT", "WHAT BECAME OF IT"),
            [_row(one, dry_run=report.dry_run) for one in shown],
            right=(3, 4, 5, 6),
        )
    if len(quiet) > _MOST_ROWS:
        click.echo(f"and {len(quiet):,} in which nothing was written")
    for warning in report.warnings:
        say(f"warning: {warning}")
    click.echo(_sum(report))
    if report.path is not None:
        say(f"every field is accounted for in {report.path}")


def _row(one: FileReport, *, dry_run: bool) -> tuple[object, ...]:
    counts = (one.count("carried"), one.count("evidence"), one.count("left"))
    return (
        one.path,
        ", ".join(one.routes) or "-",
        one.shape or "-",
        one.decisions,
        *counts,
        _became(one, dry_run=dry_run),
    )


def _became(one: FileReport, *, dry_run: bool) -> str:
    if one.outcome == "imported":
        if dry_run:
            return f"would be taken, by {one.rule}"
        return f"{_so_many(one.written or 0, 'checkpoint')}" if one.written else "nothing new"
    words = {"nothing": "nothing", "left": "left out", "unreadable": "UNREADABLE"}
    return f"{words.get(one.outcome, one.outcome)}: {one.why}"


def _sum(report: MigrationReport) -> str:
    taken, unreadable = report.those("imported"), report.those("unreadable")
    parts = [
        f"{_so_many(len(report.files), 'file')}: {len(taken):,} {'would be ' * report.dry_run}taken",
        f"{len(report.those('nothing')):,} with nothing written",
        f"{len(report.those('left')):,} left out",
        f"{len(unreadable):,} unreadable",
        f"{_so_many(len(report.backups), 'backup')} passed over",
    ]
    fates = [sum(one.count(fate) for one in report.files) for fate in ("carried", "evidence", "left")]
    fields = "{:,} fields carried, {:,} kept as evidence, {:,} left out".format(*fates)
    made = "" if report.dry_run else f"; {_so_many(report.written, 'checkpoint')} written"
    return f"{', '.join(parts)}\n{_so_many(report.decisions, 'decision')}; {fields}{made}"


def _so_many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


@contextmanager
def _progress() -> Iterator[Callable[[int, int, str], None] | None]:
    """A bar over the files, on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("files", total=None)

        def told(done: int, count: int, name: str) -> None:
            bar.update(task, completed=done, total=count, description=name[-40:] or "done")

        yield told


# ---- clients' sessions ----


def _sessions(
    ctx: click.Context, client: str, root: str | None, *, since: datetime | None, dry_run: bool, as_json: bool
) -> None:
    from ralf import project as projects
    from ralf_cli.output import emit_json, say, table
    from ralf_integrations import existing

    project = projects.find(root)
    found = [one for one in existing.found(project, client) if _is_since(one.path, since)]
    made = [_planned(one) for one in found] if dry_run else _taken(project, found)
    if as_json:
        emit_json({"source": client, "dry_run": dry_run, "files": made})
    else:
        if made:
            rows = [(one["path"], one["route"], one["left"], one["what"]) for one in made]
            table(("SESSION", "ROUTE", "BYTES", "WHAT BECAME OF IT"), rows, right=(2,))
        problems = sum(one["outcome"] == "unreadable" for one in made)
        count = _so_many(len(made) - problems, "session")
        click.echo(
            f"{count} {'would be taken' if dry_run else 'taken'}{f', {problems} unreadable' if problems else ''}"
        )
        if not made:
            say("no session of this project that is not taken already")
    if any(one["outcome"] == "unreadable" for one in made):
        ctx.exit(4)


def _planned(one: Any) -> dict[str, Any]:
    return {
        "path": str(one.path),
        "session": one.session,
        "route": one.route,
        "rule": one.rule,
        "size": one.size,
        "left": one.left,
        "outcome": "imported",
        "what": f"would be taken, by {one.rule}",
    }


def _taken(project: Any, found: Sequence[Any]) -> list[dict[str, Any]]:
    from ralf_cli.init import progress_of
    from ralf_integrations import existing

    made = []
    with progress_of(found) as progress:
        for taken in existing.take(project, found, progress=progress):
            entry = _planned(taken.session)
            if taken.report is None:
                made.append(entry | {"outcome": "unreadable", "what": taken.problem})
                continue
            count = len(taken.report.checkpoints)
            none = "no message and no call" if taken.report.blank else "nothing new"
            what = _so_many(count, "checkpoint") if count else none
            made.append(entry | {"checkpoints": count, "skipped": dict(taken.report.skipped), "what": what})
    return made


def _is_since(path: Any, since: datetime | None) -> bool:
    return since is None or path.stat().st_mtime >= since.timestamp()


def _moment(since: str | None) -> datetime | None:
    """`30d`, `12h`, `4w`, or an ISO 8601 date or time, of UTC where it does not say."""
    if since is None:
        return None
    if found := re.fullmatch(r"(\d{1,5})([hdw])", since):
        hours = int(found[1]) * {"h": 1, "d": 24, "w": 168}[found[2]]
        return datetime.now(UTC) - timedelta(hours=hours)
    try:
        when = datetime.fromisoformat(since)
    except ValueError:
        raise click.BadParameter(
            f"{since!r}: 30d, 12h, 4w, or a date such as 2026-02-01", param_hint="--since"
        ) from None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)
