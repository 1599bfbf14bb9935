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
from ralf_cli.person import is_person
from ralf_integrations.loop.options import seconds_of

task = LazyGroup(
    name="task",
    sections="task:add task:list_ task:show task:claim task:progress task:done task:fail task:release task:edit",
    help="""List, claim and finish tasks.

    A task is a Markdown file in .autonomous/tasks; you can edit the file at any time. An agent claims a task, works on
    the task and completes it. A claim remains valid while its agent is active.

    \b
    Examples:
      ralf task add "Write the parser" --verify "pytest -q tests/test_parser.py"
      ralf task add "Document it" --after "Write the parser"
      ralf task claim
      ralf task done "The parser reads both formats"
    """,
    params=[
        shared(
            "task",
            "--task",
            of="ralf task",
            metavar="ID",
            help="The task. Default: that of RALF_LEASE, otherwise yours.",
        )
    ],
)


# ---- what the list holds ----


def _with_fields(command: F) -> F:
    """Add the options for a task's fields."""
    after = 'Task to complete first: id or title. Repeatable; "" for none.'
    for option in (
        click.option("--route", metavar="ROUTE", help="Route for the task's context. Default: a separate route."),
        click.option("--verify", metavar="CMD", help="Command that must exit with 0 when the task is done."),
        click.option("--after", metavar="TASK", multiple=True, help=after),
        click.option("--role", metavar="ROLE", help="Kind of agent that may claim the task. Default: any."),
        click.option("-t", "--tag", "tags", metavar="TAG", multiple=True, help='Tag. Repeatable; "" for none.'),
        click.option("-p", "--priority", type=click.IntRange(1, 10), metavar="N", help="1 to 10; 10 is the highest."),
        click.option("-d", "--text", metavar="TEXT", help="Description in Markdown; - reads standard input."),
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
@click.option("--id", metavar="ID", help="Task id. Default: a short random id.")
def add(title: str, **fields: Any) -> None:
    """Create a task file in .autonomous/tasks/active and print the task's id.

    --after accepts ids and titles. If a value matches no task or several tasks, ralf adds nothing and lists the
    candidates.

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
        state = editing.add(title, **wanted, by_person=is_person(), root=root())
    answer(tasktext.as_json(state), state.task.id)
    warn(state.warnings)
    if state.task.route and (near := routing.near_to(project(), state.task.route)):
        say(f"note: there is no route {state.task.route} yet; if you mean {' or '.join(near)}:")
        say(f"ralf task edit {state.task.id} --route {near[0]}")
    if state.task.verify and (problem := why_not_run(project())):
        say(f"note: `verify:` does not run: {problem}")


@command()
@click.argument("id_", metavar="ID")
@click.option("--title", metavar="TEXT", help="New title.")
@_with_fields
@click.option("--checkpoint/--no-checkpoint", default=None, help="Whether a fresh agent starts after this task.")
@click.option("--status", type=click.Choice(("pending", "cancelled")), help="Cancel or reopen the task.")
@click.option("--into", "titles", multiple=True, metavar="TITLE", help="Replace the task with this part. Repeatable.")
def edit(id_: str, titles: tuple[str, ...], **fields: Any) -> None:
    """Change the task with this ID. You can also edit the task file at any time, in any editor.

    --into cancels the task and replaces it with parts. The parts inherit its role, priority and dependencies; tasks
    that depended on it then depend on the last part.
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
    state = editing.edit(id_, **wanted, by_person=is_person(), root=root())
    _tell(state, tasktext.full(state))


@command(name="list")
@click.option("--ready", is_flag=True, help="Only tasks that can be claimed now.")
@click.option(
    "--status", type=click.Choice(("pending", "completed", "failed", "cancelled")), help="Only tasks with this status."
)
@click.option("--role", metavar="ROLE", help="Only tasks for this role.")
@click.option("-t", "--tag", metavar="TAG", help="Only tasks with this tag.")
@click.option("--all", "every", is_flag=True, help="All tasks, including finished tasks, without a limit.")
def list_(**how: Any) -> None:
    """List at most 50 unfinished tasks, highest priority first.

    ralf labels tasks that came with the repository "foreign". Agents cannot claim a foreign task until you accept it
    (`ralf trust`).
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
@click.option("--fresh", is_flag=True, help="Show the context for a fresh agent on task ID.")
@click.option(
    "--max-tokens",
    type=click.IntRange(0),
    default=2_500,
    metavar="N",
    help="Hard token limit for that context. [2500]",
)
def show(id_: str | None, fresh: bool, max_tokens: int) -> None:
    """Show the task with this ID or title: text, dependencies, holder, attempts and evidence. Without ID, or with
    --fresh, show the context for a fresh agent: its name, its task with all attempts, the brief of the route, summaries
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
@click.option("--lease", default="15m", metavar="TIME", help="Inactivity after which the claim expires. [15m]")
def claim(id_: str | None, role: str | None, lease: str) -> None:
    """Claim the ready task with the highest priority, or the task with this ID. Print the task with its lease.

    Hooks, and every `ralf` command that runs with RALF_LEASE, renew the claim. When a claim expires, the task can be
    claimed again. If you already hold a task, ralf prints that task.
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
    """Record the progress of your task. If you do not finish, the next agent reads the last report."""
    state = _closed("progress", text, "its progress")
    _tell(state, f"{tasktext.named(state)}: noted")


@command("root", "json", "task")
@click.argument("summary", required=False, metavar="SUMMARY", default="")
def done(summary: str) -> None:
    """Complete your task. SUMMARY is the result, with information for later agents; - reads standard input.

    If the task's `verify` command may run (verify_commands in config.local.yaml), the command must pass; if it fails,
    you keep the task. If no such command may run, ralf records the last test run after the last edit as evidence. If
    the lease has expired and another agent holds the task, ralf records nothing.

    \b
    Exit status: 1 `verify` failed · 3 you hold no task, or the task does not exist ·
    5 the lease has expired, and another agent holds the task
    """
    state = _closed("done", summary, "its result, and what later agents must know", for_person=is_person())
    ends = tasktext.is_at_checkpoint(state, root())
    _tell(state, tasktext.ended(state, project().command, checkpoint=ends))


@command("root", "json", "task")
@click.argument("reason", required=False, metavar="REASON", default="")
def fail(reason: str) -> None:
    """Mark your task as failed and record the reason. Dependent tasks remain blocked until the task is retried."""
    state = _closed("fail", reason, "why it cannot be done")
    _tell(state, tasktext.ended(state, project().command))


@command()
@click.argument("id_", required=False, metavar="[ID]")
@click.option("--note", metavar="TEXT", default="", help="Note for the next agent.")
def release(id_: str | None, note: str) -> None:
    """Release your task, or the task with this ID, so that another agent can claim it. No failure is recorded."""
    state = claims.release(id_, note=note, root=root())
    _tell(state, tasktext.ended(state))


def _closed(what: str, text: str, wanted: str, **how: bool) -> TaskState:
    """Call the function `what` of claims; UsageError without words."""
    words = given_text(text)
    if not clean(words).strip():
        raise UsageError(f"ralf task {what}", f"needs a text: {wanted}", f'ralf task {what} "TEXT"')
    with given_back(words):
        state: TaskState = getattr(claims, what)(words, task=given("task"), **how, root=root())
    return state


def _tell(state: TaskState, text: str) -> None:
    answer(tasktext.as_json(state), text)
    warn(state.warnings)


# ---- the plan ----


@command("dry_run")
@click.option("--every", type=click.IntRange(min=1), metavar="N", help="Place a checkpoint after every N tasks.")
@click.option(
    "--budget", type=click.IntRange(1), metavar="TOKENS", help="Place a checkpoint about every TOKENS tokens."
)
@click.option("--draw", is_flag=True, help="Show the current plan; change nothing.")
@click.option("--anew", is_flag=True, help="Ignore the current plan and its edits.")
def plan(every: int | None, budget: int | None, draw: bool, anew: bool) -> None:
    """Order the open tasks by dependency, then by priority and age, with checkpoints between them.

    At a checkpoint, the agent hands over and exits, and a fresh agent continues. By default, a checkpoint follows every
    task. Each role and each route has its own chain. ralf stores the plan in .autonomous/tasks/plan.yaml.
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
