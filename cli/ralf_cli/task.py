"""`ralf task`: the list of tasks, and claiming, completing and releasing one of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ralf_cli.command import command, shared, taking
from ralf_cli.main import group
from ralf_cli.options import as_seconds, with_json, with_json_alone, with_root
from ralf_cli.tasktext import LEASE, REFRESH_TOKENS

if TYPE_CHECKING:
    from ralf.tasks.model import TaskState

_MOST = 200_000  # bytes that are read from standard input

_STATUSES = ("pending", "completed", "failed", "cancelled")


task = group(
    "task",
    "tasklist:add task:list_ task:show task:claim task:progress task:done task:fail task:release tasklist:edit",
    help="""List, claim and finish tasks.

    A task is one Markdown file in .autonomous/tasks, which you can edit at any time. An agent claims a task, works on
    it and completes it. A claim lasts as long as the agent shows signs of life.

    \b
    Examples:
      ralf task add "Write the parser" --verify "pytest -q tests/test_parser.py"
      ralf task add "Document it" --after "Write the parser"
      ralf task claim
      ralf task done "The parser reads both formats"

    \b
    Exit status: that of the command
    """,
    short_help="List, claim and finish tasks.",
    params=[shared("held", "--task", of="ralf task", metavar="ID", help="Default: RALF_LEASE, else the one you hold.")],
)


@command("list", short_help="List the tasks, the most urgent first.")
@click.option("--ready", is_flag=True, help="Only tasks that can be claimed now.")
@click.option("--status", type=click.Choice(_STATUSES), help="Only tasks with this status.")
@click.option("--role", metavar="ROLE", help="Only tasks for this role.")
@click.option("-t", "--tag", metavar="TAG", help="Only tasks with this tag.")
@click.option("--all", "all_", is_flag=True, help="Every task, finished ones included, without a limit.")
@with_root
@with_json
def list_(
    ready: bool, status: str | None, role: str | None, tag: str | None, all_: bool, root: str | None, as_json: bool
) -> None:
    """List the unfinished tasks, the most urgent first; at most 50 of them.

    A task that came with the repository is labelled "foreign"; no one can claim it until you accept it
    (`ralf trust`).

    \b
    Examples:
      ralf task list
      ralf task list --ready --role reviewer
      ralf task list --status failed --json

    \b
    Exit status: 0, even without any task · 4 a task file is damaged (the others are listed)
    """
    from ralf_cli.output import emit_json, say, table, warn
    from ralf_cli.tasktext import HEADINGS, RIGHT, as_json as tree, cells, more, nothing, tasks_of, warnings_of
    from ralf_cli.terminal import complain

    found = tasks_of(ready=ready, status=status, role=role, tag=tag, every=all_, root=root)
    if as_json:
        emit_json([tree(state) for state in found.tasks])
    elif found.tasks:
        table(HEADINGS, map(cells, found.tasks), RIGHT)
    else:
        say(nothing(root))
    if left := more(found):
        say(left)
    warn(warnings_of(found))
    for path, problem in found.damaged:
        complain(problem, f"mend the file: {path}")
    if found.damaged:
        click.get_current_context().exit(4)


@command(short_help="Show a task, or without ID what you need to go on with yours.")
@click.argument("id_", required=False, metavar="[ID]")
@click.option("--fresh", is_flag=True, help="Of ID what a fresh agent reads first, as without ID.")
@click.option(
    "--max-tokens",
    type=click.IntRange(min=0),
    default=REFRESH_TOKENS,
    metavar="N",
    help=f"Hard limit of what a fresh agent reads, in o200k_base tokens. [{REFRESH_TOKENS}]",
)
@taking("plain")
@with_root
@with_json_alone
def show(id_: str | None, fresh: bool, max_tokens: int, plain: bool, root: str | None, as_json: bool) -> None:
    """Show the task ID (or its title): text, dependencies, holder, attempts and evidence. Without ID, or with --fresh:
    what a fresh agent needs to go on: who it is, its task with all attempts, the brief of its route, summaries of the
    tasks before it, what comes next and what to do.

    \b
    Examples:
      ralf task show TASK-7k3q
      ralf task show "Write the parser" --json
      ralf task show

    \b
    Exit status: 0, even if you hold no task · 2 the title fits several tasks · 3 no such task (the closest are named) ·
    4 damaged task file · 5 the lease has run out
    """
    from ralf.tasks import store
    from ralf_cli.output import emit_json, handed_over
    from ralf_cli.tasktext import as_json as tree, full

    if id_ is None or fresh:
        _show_fresh(id_, max_tokens, root, plain=plain, as_json=as_json)
        return
    state = store.get(id_, root=root)
    if as_json:
        emit_json(tree(state))
    else:
        with handed_over():
            click.echo(full(state, root), nl=False)
    _warn(state)


def _show_fresh(id_: str | None, max_tokens: int, root: str | None, *, plain: bool, as_json: bool) -> None:
    """Show what a fresh agent reads first; `id_` None: of the task that it holds."""
    from ralf.tasks import refresh as refreshing
    from ralf_cli import markdown
    from ralf_cli.output import emit_json, is_read_by_an_agent, say, warn

    found = refreshing.refresh(task=id_, max_tokens=max_tokens, root=root)
    warn(found.warnings)
    if as_json:
        emit_json(found.to_json())
        return
    text = found.render(fenced=is_read_by_an_agent())
    markdown.show(text, plain=plain)
    if not text:
        say(f"{max_tokens} tokens are too few for a line of it: try --max-tokens {REFRESH_TOKENS}")


@command(short_help="Claim a task: the next one that is ready, or ID.")
@click.argument("id_", required=False, metavar="[ID]")
@click.option("--role", metavar="ROLE", help="Prefer tasks for this role; then tasks for any role.")
@click.option(
    "--lease",
    "seconds",
    default=f"{LEASE // 60}m",
    show_default=True,
    metavar="TIME",
    callback=as_seconds,
    help="How long the claim lasts without a sign of life: 45s, 30m, 2h; a bare number is seconds.",
)
@with_root
@with_json
def claim(id_: str | None, role: str | None, seconds: int, root: str | None, as_json: bool) -> None:
    """Claim the task ID, or the most urgent one that is ready, and print it with its lease.

    The claim lasts as long as you work: hooks and every `ralf` command that runs with RALF_LEASE are signs of life.
    A task whose holder is gone can be claimed again. If you already hold a task, it is printed again.

    \b
    Examples:
      ralf task claim
      ralf task claim TASK-7k3q
      ralf task claim --role reviewer --lease 1h

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 the task came with the repository, and no one has accepted it ·
    3 nothing is ready (what blocks it is named), no such task · 4 damaged data · 5 someone else holds it
    """
    from ralf.tasks import claims
    from ralf_cli.tasktext import check_may_claim, claimed

    check_may_claim(root)
    state = claims.claim(id_, role=role, seconds=seconds, root=root)
    tell(state, claimed(state, command_of(root)), as_json=as_json)


@command(short_help="Report progress on your task.")
@click.argument("text", required=False, metavar="TEXT", default="")
@taking("held")
@with_root
@with_json
def progress(text: str, held: str | None, root: str | None, as_json: bool) -> None:
    """Record how far your task is. The next agent reads the last report if you do not finish.

    \b
    Examples:
      ralf task progress "The tokenizer works; strings are next"
      ralf task progress - --task TASK-7k3q < notes.md

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 no text · 3 you hold no task, no such task · 5 the lease has run out
    """
    from ralf.tasks import claims
    from ralf_cli.output import given_back
    from ralf_cli.tasktext import noted

    words = _words(text, "progress")
    with given_back(root, words):
        state = claims.progress(words, task=held, root=root)
    tell(state, noted(state), as_json=as_json)


@command(short_help="Complete your task.")
@click.argument("summary", required=False, metavar="SUMMARY")
@taking("held")
@with_root
@with_json
def done(summary: str | None, held: str | None, root: str | None, as_json: bool) -> None:
    """Complete your task. SUMMARY says what came of it, and what later agents must know; - reads it
    from standard input. A summary of a few words is completed with what the task's checkpoint says.

    The task's `verify` command must pass first, if it may run (verify_commands in config.local.yaml); if it does not,
    the task stays yours. Without it, the last test run after the last edit is recorded as the evidence. If the lease
    has run out and someone else holds the task, nothing is recorded.

    \b
    Examples:
      ralf task done "The parser reads both formats; the old reader is gone"
      ralf task done --task TASK-7k3q - < summary.md

    \b
    Exit status: 0 · 1 `verify` did not pass, unwritable, disk full · 2 no summary · 3 you hold no task, no such task ·
    4 damaged data · 5 the lease has run out, and someone else holds the task
    """
    from ralf.tasks import claims
    from ralf_cli.output import given_back
    from ralf_cli.tasktext import ended, ends_session

    words = _words(summary or "", "done")
    with given_back(root, words):
        state = claims.done(words, task=held, root=root)
    tell(state, ended(state, command_of(root), checkpoint=ends_session(state, root)), as_json=as_json)


@command(short_help="Report that your task failed.")
@click.argument("reason", required=False, metavar="REASON", default="")
@taking("held")
@with_root
@with_json
def fail(reason: str, held: str | None, root: str | None, as_json: bool) -> None:
    """Report that your task cannot be done, and why. Tasks that wait for it stay blocked until it is retried.

    \b
    Examples:
      ralf task fail "The vendor's API has no such call"

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 no reason · 3 you hold no task, no such task ·
    5 the lease has run out, and someone else holds the task
    """
    from ralf.tasks import claims
    from ralf_cli.output import given_back
    from ralf_cli.tasktext import ended

    words = _words(reason, "fail")
    with given_back(root, words):
        state = claims.fail(words, task=held, root=root)
    tell(state, ended(state, command_of(root)), as_json=as_json)


@command(short_help="Release a task unfinished.")
@click.argument("id_", required=False, metavar="[ID]")
@click.option("--note", metavar="TEXT", default="", help="What the next agent should know.")
@with_root
@with_json
def release(id_: str | None, note: str, root: str | None, as_json: bool) -> None:
    """Release the task ID, or the one you hold, so that someone else can claim it. No failure is counted.

    \b
    Examples:
      ralf task release
      ralf task release TASK-7k3q --note "Needs a database that I cannot reach"

    \b
    Exit status: 0 · 1 unwritable, disk full · 3 you hold no task, no such task · 5 someone else holds it
    """
    from ralf.tasks import claims
    from ralf_cli.tasktext import ended

    state = claims.release(id_, note=note, root=root)
    tell(state, ended(state), as_json=as_json)


def said(text: str) -> str:
    """The text itself, or for `-` what stands on standard input."""
    from ralf.errors import UsageError

    if text != "-" or sys.stdin is None:
        return text
    given = sys.stdin.buffer.read(_MOST + 1)
    if len(given) > _MOST:
        raise UsageError("standard input", f"has more than {_MOST:,} bytes: nothing was recorded", "shorten it")
    return given.decode("utf-8", "replace")


def _words(text: str, command: str) -> str:
    """What is said of a task; UsageError where that is nothing."""
    from ralf.errors import UsageError
    from ralf.text.cleaning import clean

    words = said(text)
    if not clean(words).strip():
        raise UsageError(f"ralf task {command}", f"needs words: {_WANTED[command]}", f'ralf task {command} "TEXT"')
    return words


_WANTED = {
    "done": "what came of the task, and what the agents of later tasks must know",
    "fail": "why it cannot be done",
    "progress": "how far it is",
}


def command_of(root: str | None) -> str:
    """What is typed in place of `ralf` in the project."""
    from ralf import project

    return project.find(root).command


def tell(state: TaskState, text: str, *, as_json: bool) -> None:
    """Print what became of a task."""
    from ralf_cli.output import emit_json
    from ralf_cli.tasktext import as_json as tree

    if as_json:
        emit_json(tree(state))
    else:
        click.echo(text, nl=False)
    _warn(state)


def _warn(state: TaskState) -> None:

    from ralf_cli.output import warn

    warn(state.warnings)
