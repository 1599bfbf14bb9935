"""`ralf task`: the list of tasks, and claiming, completing and releasing one of them."""

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
from ralf_cli.output import answer, complain, emit_json, given_back, given_text, say, table, warn
from ralf_integrations.loop.options import seconds_of

task = LazyGroup(
    name="task",
    sections="task:add task:list_ task:show task:claim task:progress task:done task:fail task:release task:edit",
    help="""List, claim and finish tasks.

    A task is one Markdown file in .autonomous/tasks, which you can edit at any time. An agent claims a task, works on
    it and completes it. A claim lasts as long as the agent shows signs of life.

    \b
    Examples:
      ralf task add "Write the parser" --verify "pytest -q tests/test_parser.py"
      ralf task add "Document it" --after "Write the parser"
      ralf task claim
      ralf task done "The parser reads both formats"
    """,
    params=[shared("task", "--task", of="ralf task", metavar="ID", help="Default: RALF_LEASE, else the one you hold.")],
)


# ---- what the list holds ----


def _with_fields(command: F) -> F:
    """Add what a task has beside its title; the command gets what is given of it."""
    after = 'What must be completed first: ids or titles. May be repeated; "" for none.'
    for option in (
        click.option("--route", metavar="ROUTE", help="Where its context is kept. Default: a route of its own."),
        click.option("--verify", metavar="CMD", help="A command whose exit status says whether the task is done."),
        click.option("--after", metavar="TASK", multiple=True, help=after),
        click.option("--role", metavar="ROLE", help="Which kind of agent does it. Default: any."),
        click.option("-t", "--tag", "tags", metavar="TAG", multiple=True, help='May be repeated; "" for none.'),
        click.option("-p", "--priority", type=click.IntRange(1, 10), metavar="N", help="1 to 10, 10 comes first."),
        click.option("-d", "--text", metavar="TEXT", help="What is to be done, as Markdown; - reads it from stdin."),
    ):
        command = option(command)
    return command


def _given(**fields: Any) -> dict[str, Any]:
    """The fields that were given: a text for `-`, and no empty ones among several."""
    if fields["text"] is not None:
        fields["text"] = given_text(fields["text"])
    found = {name: value for name, value in fields.items() if value not in (None, ())}
    return found | {name: tuple(filter(None, found[name])) for name in ("tags", "after") if name in found}


@command(is_fenced=False)
@click.argument("title")
@_with_fields
@click.option("--checkpoint", is_flag=True, help="Whoever completes it hands over and ends: a fresh agent goes on.")
@click.option("--id", metavar="ID", help="Its id. Default: a short random one.")
def add(title: str, **fields: Any) -> None:
    """Add a task and print its id. It becomes a file in .autonomous/tasks/active, which you can edit.

    --after takes ids and titles. If one fits no task or several, nothing is added and the candidates are named.

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
@click.option("--title", metavar="TEXT", help="Another title.")
@_with_fields
@click.option("--checkpoint/--no-checkpoint", default=None, help="Whether whoever completes it hands over and ends.")
@click.option("--status", type=click.Choice(("pending", "cancelled")), help="Take it off the list, or put it back.")
@click.option("--into", "titles", multiple=True, metavar="TITLE", help="Split it into parts in this order. Repeatable.")
def edit(id_: str, titles: tuple[str, ...], **fields: Any) -> None:
    """Change the task ID. You can also edit its file at any time, in any editor.

    With --into it is cancelled, and its parts take its place: they keep its role, priority and dependencies, and what
    waited for it waits for the last one.
    """
    wanted = _given(**fields)
    if titles and wanted:
        raise click.UsageError("--into stands alone")
    if titles:
        parts = editing.split(id_, titles, root=root())
        answer([tasktext.as_json(part) for part in parts], *map(tasktext.named, parts))
        return
    if not wanted:
        raise UsageError(id_, "say what is changed, or edit its file", f"ralf task show {id_}")
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
    """List the unfinished tasks, the most urgent first; at most 50 of them.

    A task that came with the repository is labelled "foreign"; no one can claim it until you accept it
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
@click.option("--fresh", is_flag=True, help="Of ID what a fresh agent reads first, as without ID.")
@click.option(
    "--max-tokens", type=click.IntRange(0), default=2_500, metavar="N", help="Hard limit of what it reads. [2500]"
)
def show(id_: str | None, fresh: bool, max_tokens: int) -> None:
    """Show the task ID (or its title): text, dependencies, holder, attempts and evidence. Without ID, or with --fresh:
    what a fresh agent needs to go on: who it is, its task with all attempts, the brief of its route, summaries of the
    tasks before it, what comes next and what to do.
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
@click.option("--role", metavar="ROLE", help="Prefer tasks for this role; then tasks for any role.")
@click.option("--lease", default="15m", metavar="TIME", help="How long it lasts without a sign of life. [15m]")
def claim(id_: str | None, role: str | None, lease: str) -> None:
    """Claim the task ID, or the most urgent one that is ready, and print it with its lease.

    The claim lasts as long as you work: hooks and every `ralf` command that runs with RALF_LEASE are signs of life.
    A task whose holder is gone can be claimed again. If you already hold a task, it is printed again.
    """
    seconds = seconds_of(lease, "--lease", least=1.0)
    if seconds is None:
        raise UsageError("--lease", "lasts for some time", "ralf task claim --lease 1h")
    tasktext.check_may_claim(root())
    state = claims.claim(id_, role=role, seconds=int(seconds), root=root())
    _tell(state, tasktext.claimed(state, project().command))


@command("root", "json", "task")
@click.argument("text", required=False, metavar="TEXT", default="")
def progress(text: str) -> None:
    """Record how far your task is. The next agent reads the last report if you do not finish."""
    state = _closed("progress", text, "how far it is")
    _tell(state, f"{tasktext.named(state)}: noted")


@command("root", "json", "task")
@click.argument("summary", required=False, metavar="SUMMARY", default="")
def done(summary: str) -> None:
    """Complete your task. SUMMARY says what came of it, and what later agents must know; - reads it
    from standard input. A summary of a few words is completed with what the task's checkpoint says.

    The task's `verify` command must pass first, if it may run (verify_commands in config.local.yaml); if it does not,
    the task stays yours. Without it, the last test run after the last edit is recorded as the evidence. If the lease
    has run out and someone else holds the task, nothing is recorded.

    \b
    Exit status: 1 `verify` did not pass · 3 you hold no task, no such task ·
    5 the lease has run out, and someone else holds the task
    """
    state = _closed("done", summary, "what came of the task, and what the agents of later tasks must know")
    ends = tasktext.is_at_checkpoint(state, root())
    _tell(state, tasktext.ended(state, project().command, checkpoint=ends))


@command("root", "json", "task")
@click.argument("reason", required=False, metavar="REASON", default="")
def fail(reason: str) -> None:
    """Report that your task cannot be done, and why. Tasks that wait for it stay blocked until it is retried."""
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
    """Say something of a task, by the function of that name; UsageError where that is nothing."""
    words = given_text(text)
    if not clean(words).strip():
        raise UsageError(f"ralf task {what}", f"needs words: {wanted}", f'ralf task {what} "TEXT"')
    with given_back(words):
        state: TaskState = getattr(claims, what)(words, task=given("task"), root=root())
    return state


def _tell(state: TaskState, text: str) -> None:
    answer(tasktext.as_json(state), text)
    warn(state.warnings)
