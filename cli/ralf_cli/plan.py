"""`ralf plan`: the order of the tasks, with checkpoints between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ralf_cli.command import command, taking
from ralf_cli.options import with_json, with_root
from ralf_cli.tables import so_many

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
@taking("dry_run")
@click.option("--draw", is_flag=True, help="Show the current plan, and change nothing.")
@click.option("--anew", is_flag=True, help="Ignore the current plan, including edits by hand.")
@with_root
@with_json
def plan(
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
      ralf plan --every 3 --dry-run
      ralf plan --every 3
      ralf plan --budget 80000
      ralf plan --draw

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
        made = plans.load(project)
    else:
        made = serializing.serialize(
            every=every,
            budget=budget,
            anew=anew,
            dry_run=dry_run,
            states=listed.tasks,
            damaged=[path for path, _ in listed.damaged],
            root=root,
        )
    for note in made.notes if made is not None else ():
        say(f"note: {note}")
    if as_json:
        emit_json(fields_of(made) if made is not None else None)
    elif made is None:
        say("no plan yet; make one: ralf plan")
    elif not made.chains:
        say('no open tasks to put in order; add one: ralf task add "TITLE"')
    else:
        tasks = (state.task for state in listed.tasks if not state.is_foreign)
        click.echo(plans.render(made, tasks).decode())
        click.echo(_sum(made))
        if not draw:
            click.echo("dry run: nothing was written" if dry_run else str(plans.path_of(project)))


def _sum(plan: Plan) -> str:
    """How many tasks, chains and checkpoints a plan has."""
    checkpoints = sum(len(chain.placed) for chain in plan.chains)
    counts = ((len([*plan]), "task"), (len(plan.chains), "chain"), (checkpoints, "checkpoint"))
    return ", ".join(so_many(count, noun) for count, noun in counts)
