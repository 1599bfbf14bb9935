"""`ralf task` and `ralf plan`: tasks, their claims, and their order."""

from __future__ import annotations

from typing import Any

import click

from ralf import routing
from ralf.errors import UsageError
from ralf.tasks import claims, editing, refresh as refreshing, store
from ralf.tasks.evidence import why_not_run
from ralf.tasks.model import TaskState
from ralf.text.cleaning import clean
from ralf_cli import tasktext
from ralf_cli.command import F, command, given, handed_over, is_json, is_read_by_an_agent, project, root, shared
from ralf_cli.main import LazyGroup
from ralf_cli.output import answer, complain, emit_json, given_back, given_text, say, so_many, table, warn
from ralf_integrations.loop.options import seconds_of

task = LazyGroup(
    name="task",
    sections="task:add task:list_ task:show task:claim task:progress task:done task:fail task:release task:edit",
    help="""List, claim and finish tasks.

    A task is one Markdown file in .autonomous/tasks, which you can edit at any time. An agent claims a task, works on
    it and completes it. A claim lasts as long as its agent is active.

    \b
    Examples:
      ralf task add "Write the parser" --verify "pytest -q tests/test_parser.py"
      ralf task add "Document it" --after "Write the parser"
      ralf task claim
      ralf task done "The parser reads both formats"
    """,
    params=[
        shared("task", "--task", of="ralf task", metavar="ID", help="Default: the task of RALF_LEASE, else yours.")
    ],
)


# ---- what the list holds ----


def _with_fields(command: F) -> F:
    """Add the options for a task's fields."""
    after = 'A task to complete first: id or title. Repeatable; "" for none.'
    for option in (
        click.option("--route", metavar="ROUTE", help="The route that keeps its context. Default: its own."),
        click.option("--verify", metavar="CMD", help="A command that must exit with 0 when the task is done."),
        click.option("--after", metavar="TASK", multiple=True, help=after),
        click.option("--role", metavar="ROLE", help="The kind of agent that may claim it. Default: any."),
        click.option("-t", "--tag", "tags", metavar="TAG", multiple=True, help='Repeatable; "" for none.'),
        click.option("-p", "--priority", type=click.IntRange(1, 10), metavar="N", help="1 to 10, 10 first."),
        click.option("-d", "--text", metavar="TEXT", help="The work, as Markdown; - reads it from stdin."),
    ):
        command = option(command)
    return command


def _given(**fields: Any) -> dict[str, Any]:
    """The fields that were given; `-` is replaced by standard input, and "" by an empty list."""
    if fields["text"] is not None:
        fields["text"] = given_text(fields["text"])
    found = {name: value for name, value in fields.items() if value not in (None, ())}
    return found | {name: tuple(filter(None, found[name])) for name in ("tags", "after") if name in found}


@command(is_fenced=False)
@click.argument("title")
@_with_fields
@click.option("--checkpoint", is_flag=True, help="Start a fresh agent after this task.")
@click.option("--id", metavar="ID", help="Default: a short random id.")
def add(title: str, **fields: Any) -> None:
    """Add a task, a file in .autonomous/tasks/active, and print its id.

    --after takes ids and titles. If one matches no task or several, nothing is added and ralf lists the candidates.

    \b
    Examples:
      ralf task add "Write the parser" -p 8 --verify "pytest -q tests/test_parser.py"
      ralf task add "Document it" --after "Write the parser" --role writer
      ralf task add "Release" --text - --checkpoint < release.md
    """
    if not all(map(str.strip, fields["after"])):
        raise UsageError("--after", "names no task", "ralf task list")
    wanted = _given(**fields)
    with given_back(title, wanted.get("text", "")):
        state = editing.add(title, **wanted, root=root())
    answer(tasktext.as_json(state), state.task.id)
    warn(state.warnings)
    if state.task.route and (near := routing.near_to(project(), state.task.route)):
        say(f"note: there is no route {state.task.route} yet; if you mean {' or '.join(near)}:")
        say(f"ralf task edit {state.task.id} --route {near[0]}")
    if state.task.verify and (problem := why_not_run(project())):
        say(f"note: `verify:` does not run: {problem}")


@command()
@click.argument("id_", metavar="ID")
@click.option("--title", metavar="TEXT", help="A new title.")
@_with_fields
@click.option("--checkpoint/--no-checkpoint", default=None, help="Whether a fresh agent starts after this task.")
@click.option("--status", type=click.Choice(("pending", "cancelled")), help="Cancel it, or reopen it.")
@click.option("--into", "titles", multiple=True, metavar="TITLE", help="Split it into these parts. Repeatable.")
def edit(id_: str, titles: tuple[str, ...], **fields: Any) -> None:
    """Change the task ID. You can also edit its file at any time, in any editor.

    --into cancels the task and replaces it by its parts. They keep its role, priority and dependencies; tasks that
    waited for it wait for the last part.
    """
    wanted = _given(**fields)
    if titles and wanted:
        raise click.UsageError("--into takes no other option")
    if titles:
        parts = editing.split(id_, titles, root=root())
        answer([tasktext.as_json(part) for part in parts], *map(tasktext.named, parts))
        return
    if not wanted:
        raise UsageError(id_, "no change was named", f"ralf task show {id_}")
    state = editing.edit(id_, **wanted, root=root())
    _tell(state, tasktext.full(state))


@command(name="list")
@click.option("--ready", is_flag=True, help="Only tasks that can be claimed now.")
@click.option(
    "--status", type=click.Choice(("pending", "completed", "failed", "cancelled")), help="Only tasks with this status."
)
@click.option("--role", metavar="ROLE", help="Only tasks for this role.")
@click.option("-t", "--tag", metavar="TAG", help="Only tasks with this tag.")
@click.option("--all", "every", is_flag=True, help="Every task, finished ones included, without a limit.")
def list_(**how: Any) -> None:
    """List the unfinished tasks, the most urgent first; at most 50.

    A task that came with the repository is labelled "foreign". It cannot be claimed until you accept it (`ralf trust`).
    """
    found = tasktext.tasks_of(**how, root=root())
    if is_json():
        emit_json([tasktext.as_json(state) for state in found.tasks])
    elif found.tasks:
        table(("TASK", "PRIORITY", "ROLE", "TITLE", "STATE"), map(tasktext.cells, found.tasks), (1,))
    else:
        say(tasktext.nothing(root()))
    if found.left:
        say(f"{found.left:,} more of {found.left + len(found.tasks):,}: ralf task list --all")
    warn([*found.warnings, *(warning for state in found.tasks for warning in state.warnings)])
    for path, problem in found.damaged:
        complain(problem, f"mend the file: {path}")
    if found.damaged:
        click.get_current_context().exit(4)


@command(is_fenced=False)
@click.argument("id_", required=False, metavar="[ID]")
@click.option("--fresh", is_flag=True, help="Show what a fresh agent on ID reads first.")
@click.option(
    "--max-tokens",
    type=click.IntRange(0),
    default=2_500,
    metavar="N",
    help="Hard limit of that text. [2500]",
)
def show(id_: str | None, fresh: bool, max_tokens: int) -> None:
    """Show the task ID (or its title): text, dependencies, holder, attempts and evidence. Without ID, or with --fresh,
    show what a fresh agent needs to continue: its name, its task with all attempts, the brief of its route, summaries
    of earlier tasks, the next tasks and the next command.
    """
    if id_ is not None and not fresh:
        state = store.get(id_, root=root())
        with handed_over():
            _tell(state, tasktext.full(state))
        return
    found = refreshing.refresh(task=id_, max_tokens=max_tokens, root=root())
    warn(found.warnings)
    text = found.render(fenced=is_read_by_an_agent())
    answer(found.to_json(), *([text] if text else []))
    if not text and not is_json():
        say(f"{max_tokens} tokens are too few for a line of it: try --max-tokens 2500")


# ---- claims ----


@command()
@click.argument("id_", required=False, metavar="[ID]")
@click.option("--role", metavar="ROLE", help="Prefer tasks for this role, then tasks for any role.")
@click.option("--lease", default="15m", metavar="TIME", help="The claim expires after this much inactivity. [15m]")
def claim(id_: str | None, role: str | None, lease: str) -> None:
    """Claim the task ID, or the most urgent one that is ready, and print it with its lease.

    The claim lasts as long as you work: hooks, and every `ralf` command that runs with RALF_LEASE, renew it. An expired
    claim frees the task. If you already hold a task, it is printed again.
    """
    seconds = seconds_of(lease, "--lease", least=1.0)
    if seconds is None:
        raise UsageError("--lease", "has to expire", "ralf task claim --lease 1h")
    tasktext.check_may_claim(root())
    state = claims.claim(id_, role=role, seconds=int(seconds), root=root())
    _tell(state, tasktext.claimed(state, project().command))


@command("root", "json", "task")
@click.argument("text", required=False, metavar="TEXT", default="")
def progress(text: str) -> None:
    """Record the progress of your task. The next agent reads the last report if you do not finish."""
    state = _closed("progress", text, "its progress")
    _tell(state, f"{tasktext.named(state)}: noted")


@command("root", "json", "task")
@click.argument("summary", required=False, metavar="SUMMARY", default="")
def done(summary: str) -> None:
    """Complete your task. SUMMARY is the result, with what later agents must know; - reads it from standard input. ralf
    adds the task's checkpoint to a summary of a few words.

    The task's `verify` command must pass first, if it may run (verify_commands in config.local.yaml); if it fails, you
    keep the task. Without it, the last test run after the last edit is recorded as the evidence. If the lease has
    expired and someone else holds the task, nothing is recorded.

    \b
    Exit status: 1 `verify` failed · 3 you hold no task, no such task ·
    5 the lease has expired, and someone else holds the task
    """
    state = _closed("done", summary, "its result, and what later agents must know")
    ends = tasktext.is_at_checkpoint(state, root())
    _tell(state, tasktext.ended(state, project().command, checkpoint=ends))


@command("root", "json", "task")
@click.argument("reason", required=False, metavar="REASON", default="")
def fail(reason: str) -> None:
    """Report that your task cannot be done, and why. Tasks that depend on it stay blocked until it is retried."""
    state = _closed("fail", reason, "why it cannot be done")
    _tell(state, tasktext.ended(state, project().command))


@command()
@click.argument("id_", required=False, metavar="[ID]")
@click.option("--note", metavar="TEXT", default="", help="What the next agent should know.")
def release(id_: str | None, note: str) -> None:
    """Release the task ID, or the one you hold, so that someone else can claim it. No failure is counted."""
    state = claims.release(id_, note=note, root=root())
    _tell(state, tasktext.ended(state))


def _closed(what: str, text: str, wanted: str) -> TaskState:
    """Call the function `what` of claims; UsageError without words."""
    words = given_text(text)
    if not clean(words).strip():
        raise UsageError(f"ralf task {what}", f"needs a text: {wanted}", f'ralf task {what} "TEXT"')
    with given_back(words):
        state: TaskState = getattr(claims, what)(words, task=given("task"), root=root())
    return state


def _tell(state: TaskState, text: str) -> None:
    answer(tasktext.as_json(state), text)
    warn(state.warnings)


# ---- the plan ----


@command("dry_run")
@click.option("--every", type=click.IntRange(min=1), metavar="N", help="A checkpoint after every N tasks.")
@click.option("--budget", type=click.IntRange(1), metavar="TOKENS", help="A checkpoint per TOKENS of work.")
@click.option("--draw", is_flag=True, help="Show the current plan; change nothing.")
@click.option("--anew", is_flag=True, help="Ignore the current plan and its edits.")
def plan(every: int | None, budget: int | None, draw: bool, anew: bool) -> None:
    """Put the open tasks in order: dependencies first, then priority and age, with checkpoints between them.

    At a checkpoint the agent hands over and exits, and a fresh agent continues. By default there is a checkpoint after
    every task. Each role and each route has its own chain. The plan is one file, .autonomous/tasks/plan.yaml.
    """
    from ralf.tasks import planfile as plans, serializing

    dry_run = bool(given("dry_run"))
    if draw and (every or budget or anew or dry_run):
        raise click.UsageError("--draw takes none of --every, --budget, --anew, --dry-run")
    listed = store.Tasks(project()).list()
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
