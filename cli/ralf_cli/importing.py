"""`ralf import`: take over what other tools and clients have kept of this project."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import click

from ralf_cli.command import command, taking
from ralf_cli.options import with_json, with_root


@command("import", short_help="Import history and tasks from other tools.")
@click.argument("words", nargs=-1, metavar="[WHAT] [PATH]...")
@click.option("--since", metavar="WHEN", help="Only client sessions written to since then, e.g. 30d, 2026-02-01.")
@taking("dry_run")
@with_root
@with_json
@click.pass_context
def import_(
    ctx: click.Context, words: tuple[str, ...], dry_run: bool, since: str | None, root: str | None, as_json: bool
) -> None:
    """Import what other tools and clients have kept: everything in the project, only WHAT, or what is in PATH.

    \b
    run-folders, decisions-md, decision-registry, timeline-memory, ralf-context: the RALF loop's history
    tasks: lists of Aqua, beads, Claude Code (name the folder), Task Master, prd.json, ralph-orchestrator
    claude-code, codex, gemini, opencode: existing sessions of this project

    History goes to the route of its task, else of its agent. Sources are only read, and imports are idempotent.

    \b
    Examples:
      ralf import --dry-run
      ralf import run-folders runs/executor
      ralf import .beads/issues.jsonl
      ralf import claude-code --since 30d

    \b
    Exit status: 0, even if nothing was found · 1 unwritable, disk full · 2 usage · 3 no such PATH ·
    4 unreadable files were listed, all others imported; a damaged task list · 5 busy
    """
    from ralf import project as projects
    from ralf_cli.output import emit_json
    from ralf_migrations import importing

    names = (*importing.SOURCES, importing.TASKS, *importing.client_names())
    what, paths = (words[0], words[1:]) if words and words[0] in names else ("", words)
    with _progress() as progress:
        report = importing.import_all(
            projects.find(root), what, paths, dry_run=dry_run, since=_moment(since), progress=progress
        )
    if as_json:
        emit_json(report.tree())
    else:
        click.echo("\n".join(report.lines()))
    if not report.is_whole:
        ctx.exit(4)


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
        yield lambda done, count, name: bar.update(task, completed=done, total=count, description=name[-40:] or "done")


def _moment(since: str | None) -> datetime | None:
    """`30d`, `12h`, `4w`, or an ISO 8601 date or time, of UTC where it does not say."""
    if since is None:
        return None
    if found := re.fullmatch(r"(\d{1,5})([hdw])", since):
        return datetime.now(UTC) - timedelta(hours=int(found[1]) * {"h": 1, "d": 24, "w": 168}[found[2]])
    try:
        when = datetime.fromisoformat(since)
    except ValueError:
        what = f"{since!r}: 30d, 12h, 4w, or a date such as 2026-02-01"
        raise click.BadParameter(what, param_hint="--since") from None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)
