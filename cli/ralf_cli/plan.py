"""`ralf plan`: the order of the tasks, with checkpoints between them."""

from __future__ import annotations

import click

from ralf.tasks import planfile as plans, serializing, store
from ralf_cli.command import command, given, is_json, project, root
from ralf_cli.output import emit_json, say
from ralf_cli.tables import so_many


@command("dry_run")
@click.option("--every", type=click.IntRange(min=1), metavar="N", help="A checkpoint after every N tasks.")
@click.option("--budget", type=click.IntRange(1), metavar="TOKENS", help="A checkpoint where tasks fill that much.")
@click.option("--draw", is_flag=True, help="Show the current plan, and change nothing.")
@click.option("--anew", is_flag=True, help="Ignore the current plan, including edits by hand.")
def plan(every: int | None, budget: int | None, draw: bool, anew: bool) -> None:
    """Put the open tasks in order: dependencies first, then priority and age, with checkpoints between them.

    At a checkpoint the agent hands over and exits, and a fresh one continues: after every task, if nothing else is
    said. Each role and each route has a chain of its own. The plan is one file, .autonomous/tasks/plan.yaml.
    """
    dry_run = bool(given("dry_run"))
    if draw and (every is not None or budget is not None or anew or dry_run):
        raise click.UsageError("--draw stands alone, without --every, --budget, --anew and --dry-run")
    listed = store.Tasks(project()).list()  # once, for the plan and for its titles
    if draw:
        made = plans.load(project())
    else:
        made = serializing.serialize(
            every=every,
            budget=budget,
            anew=anew,
            dry_run=dry_run,
            states=listed.tasks,
            damaged=[path for path, _ in listed.damaged],
            root=root(),
        )
    for note in made.notes if made is not None else ():
        say(f"note: {note}")
    if is_json():
        emit_json(made)
    elif made is None:
        say("no plan yet; make one: ralf plan")
    elif not made.chains:
        say('no open tasks to put in order; add one: ralf task add "TITLE"')
    else:
        click.echo(plans.render(made, (state.task for state in listed.tasks if not state.is_foreign)).decode())
        checkpoints = sum(len(chain.placed) for chain in made.chains)
        counts = ((len([*made]), "task"), (len(made.chains), "chain"), (checkpoints, "checkpoint"))
        click.echo(", ".join(so_many(count, noun) for count, noun in counts))
        if not draw:
            click.echo("dry run: nothing was written" if dry_run else str(plans.path_of(project())))
