"""`ralf import`: import the history that other tools and clients have of this project."""

from __future__ import annotations

from datetime import datetime

import click

from ralf_cli.command import command, given, project
from ralf_cli.options import with_since
from ralf_cli.output import answer, progress_of
from ralf_migrations import importing


@command("dry_run", name="import")
@click.argument("words", nargs=-1, metavar="[WHAT] [PATH]...")
@with_since
@click.pass_context
def import_(ctx: click.Context, words: tuple[str, ...], since: str | None) -> None:
    """Import history and tasks from other tools and clients: everything that ralf finds in the project, only WHAT, or
    only PATH. For client sessions, --since selects sessions modified after WHEN.

    \b
    run-folders, decisions-md, decision-registry, timeline-memory, ralf-context: the RALF loop's history
    tasks: lists of Aqua, beads, Claude Code (name the folder), Task Master, prd.json, ralph-orchestrator
    claude-code, codex, gemini, opencode: existing sessions of this project

    ralf imports history into the route of its task or, if no task is known, of its agent. Sources remain unchanged, and
    repeated imports add only new content.

    \b
    Examples:
      ralf import --dry-run
      ralf import run-folders runs/executor
      ralf import .beads/issues.jsonl
      ralf import claude-code --since 30d
    """
    names = (*importing.SOURCES, importing.TASKS, *importing.client_names())
    what, paths = (words[0], words[1:]) if words and words[0] in names else ("", words)
    with progress_of("files") as progress:
        report = importing.import_all(
            project(),
            what,
            paths,
            dry_run=bool(given("dry_run")),
            since=datetime.fromisoformat(since) if since else None,
            progress=progress,
        )
    answer(report.tree(), *report.lines())
    if report.those("unreadable"):
        ctx.exit(4)
