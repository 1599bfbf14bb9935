"""`ralf serialize` and `ralf refresh`: the order of the tasks, and what a fresh agent reads first."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ralf_cli.command import command
from ralf_cli.options import with_json, with_json_alone, with_plain, with_root
from ralf_cli.tasktext import REFRESH_TOKENS

if TYPE_CHECKING:
    from ralf.tasks.sequence import Plan


@command(short_help="Put the tasks in order, with checkpoints between them.")
@click.option("--every", type=click.IntRange(min=1), metavar="N", help="A checkpoint after every N tasks.")
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="A checkpoint where the tasks since the last one would fill so many tokens, as learnt from finished tasks.",
)
@click.option("--dry-run", is_flag=True, help="Show the plan that would be written; write nothing.")
@click.option("--draw", is_flag=True, help="Show the current plan, and change nothing.")
@click.option("--anew", is_flag=True, help="Ignore the current plan, including edits by hand.")
@with_root
@with_json
def serialize(
    every: int | None,
    budget: int | None,
    dry_run: bool,
    draw: bool,
    anew: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Put the open tasks in order: dependencies first, then priority and age, with checkpoints between them.

    At a checkpoint the agent hands over and exits, and a fresh one continues: after every task, if nothing else is
    said. Each role and each route has a chain of its own; a chain waits for another one where its tasks depend on it.
    The plan is one file, .autonomous/tasks/plan.yaml; task files do not change. Running it again changes nothing.

    \b
    Examples:
      ralf serialize --every 3 --dry-run
      ralf serialize --every 3
      ralf serialize --budget 80000
      ralf serialize --draw

    \b
    Exit status: 0, even if nothing changed · 1 unwritable, disk full · 2 a cycle (its tasks are named), a number
    below 1 · 4 damaged plan or task file · 5 busy
    """
    from ralf import project as projects
    from ralf.tasks import planfile as plans, serializing, store
    from ralf_cli.output import emit_json, fields_of, say

    if draw and (every is not None or budget is not None or anew or dry_run):
        raise click.UsageError("--draw stands alone, without --every, --budget, --anew and --dry-run")
    project = projects.find(root)
    listed = store.Tasks(project).list()  # once, for the plan and for its titles
    if draw:
        plan = plans.load(project)
    else:
        plan = serializing.serialize(
            every=every,
            budget=budget,
            anew=anew,
            dry_run=dry_run,
            states=listed.tasks,
            damaged=[path for path, _ in listed.damaged],
            root=root,
        )
    for note in plan.notes if plan is not None else ():
        say(f"note: {note}")
    if as_json:
        emit_json(fields_of(plan) if plan is not None else None)
    elif plan is None:
        say("no plan yet; make one: ralf serialize")
    elif not plan.chains:
        say('no open tasks to put in order; add one: ralf task add "TITLE"')
    else:
        tasks = (state.task for state in listed.tasks if not state.is_foreign)
        click.echo(plans.render(plan, tasks).decode())
        click.echo(_sum(plan))
        if not draw:
            click.echo("dry run: nothing was written" if dry_run else str(plans.path_of(project)))


def _sum(plan: Plan) -> str:
    """How many tasks, chains and checkpoints a plan has."""
    checkpoints = sum(len(chain.placed) for chain in plan.chains)
    counts = ((len([*plan]), "task"), (len(plan.chains), "chain"), (checkpoints, "checkpoint"))
    return ", ".join(f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts)


@command(short_help="Show what a fresh agent reads first.")
@click.option("--task", "id_", metavar="ID", help="The task. Default: RALF_LEASE, else the one you hold.")
@click.option(
    "--max-tokens",
    type=click.IntRange(min=0),
    default=REFRESH_TOKENS,
    show_default=True,
    metavar="N",
    help="Hard limit: at most N o200k_base tokens.",
)
@with_plain
@with_root
@with_json_alone
def refresh(id_: str | None, max_tokens: int, plain: bool, root: str | None, as_json: bool) -> None:
    """Show what a fresh agent needs to go on: who it is, its task with all attempts, the brief of its route,
    summaries of the tasks before it, what comes next and what to do.

    \b
    Examples:
      ralf refresh
      ralf refresh --task TASK-7k3q --max-tokens 5000
      ralf refresh --json

    \b
    Exit status: 0, even if you hold no task · 3 no such task · 4 damaged data · 5 the lease has run out
    """
    from ralf.tasks import refresh as refreshing
    from ralf_cli import markdown
    from ralf_cli.output import emit_json, say

    found = refreshing.refresh(task=id_, max_tokens=max_tokens, root=root)
    for warning in found.warnings:
        say(f"warning: {warning}")
    if as_json:
        emit_json(found.to_json())
        return
    text = found.render(fenced=not sys.stdout.isatty())
    markdown.show(text, plain=plain)
    if not text:
        say(f"{max_tokens} tokens are too few for a line of it: try --max-tokens {REFRESH_TOKENS}")
