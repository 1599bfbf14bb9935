"""`ralf loop`: run fresh agents on the tasks; show, stop and feed the loop."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ralf.errors import NotFound, UsageError
from ralf.text import cleaning
from ralf_cli.command import Command, F, command, given, handed_over, is_json, is_read_by_an_agent, project, root
from ralf_cli.main import LazyGroup
from ralf_cli.output import emit_json, fields_of, say, table
from ralf_integrations.loop import launch, processes, state as states
from ralf_integrations.loop.options import (
    Caps,
    Event,
    Options,
    Result,
    amount_of,
    duration_text,
    seconds_of,
    spent_text,
)
from ralf_integrations.loop.run import Loop
from ralf_integrations.loop.state import LoopState
from ralf_integrations.loop.work import Work
from ralf_integrations.orchestrator import MOST_BYTES, hand_over

_MOST_TASKS = 10_000  # in a dry run
_MOST_SHOWN = 40  # tasks in the final list
_PATIENCE = 30.0  # seconds that `stop` waits for agents to end


class _Loop(LazyGroup, Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a subcommand the loop itself runs."""
        ctx.allow_interspersed_args = False
        return super().parse_args(ctx, args)


def _limit(name: str, default: str, help_: str, metavar: str = "TIME", least: float = 0.001) -> Callable[[F], F]:
    """Add an option whose value is a time, or an amount where `metavar` says so; the command gets None for `none`."""

    def parsed(ctx: click.Context, param: click.Parameter, value: str) -> float | None:
        if metavar == "TIME":
            return seconds_of(value, name, least=least)
        found = amount_of(value, name)
        return int(found) if found is not None and metavar == "N" else found

    return click.option(name, metavar=metavar, default=default, help=f"{help_} [{default}]", callback=parsed)


@click.group(
    cls=_Loop,
    sections="loop:status loop:stop loop:handover",
    takes=("root", "json", "dry_run"),
    is_fenced=False,
)
@click.option(
    "--agent",
    "agents",
    metavar="[ROLE=][CLIENT:]CMD",
    multiple=True,
    help="Agent command: claude, codex or any other. With ROLE: only for tasks with that role.",
)
@click.option("--workers", metavar="N", type=click.IntRange(1, 256), default=1, help="Number of concurrent agents. [1]")
@_limit("--max-starts", "200", "Limit on agent starts, or none.", "N")
@_limit("--max-tokens", "50M", "Token limit, or none.", "N")
@_limit("--max-usd", "100", "Spending limit in USD, or none.", "USD")
@_limit("--max-time", "1d", "Time limit for the loop, or none.")
@_limit("--timeout", "2h", "Time limit per agent, or none.")
@click.option("--retries", metavar="N", type=click.IntRange(0, 100), default=3, help="Number of retries per task. [3]")
@_limit("--backoff", "1s", "Base of the randomized exponential backoff.", least=0.0)
@click.option(
    "--stall",
    metavar="N",
    type=click.IntRange(0, 1000),
    default=3,
    help="Fail a task after N attempts without change. [3]",
)
@_limit("--grace", "5s", "Time between SIGTERM and SIGKILL.", least=0.0)
@click.option("--no-park", "park", flag_value=False, default=True, help="Stop at a usage limit instead of waiting.")
@click.option(
    "--end-orphans",
    "adopt",
    flag_value=False,
    default=True,
    help="Terminate the agents of a killed loop.",
)
@click.option(
    "--worktrees", metavar="DIR", type=click.Path(path_type=Path), help="Use one git worktree in DIR per worker."
)
@click.pass_context
def loop(
    ctx: click.Context,
    /,
    agents: tuple[str, ...],
    max_starts: int | None,
    max_tokens: int | None,
    max_usd: float | None,
    max_time: float | None,
    **more: Any,
) -> None:
    """Run fresh agents on the ready tasks until no ready task remains or a limit is reached.

    Each agent receives one task with its context, on standard input or in place of {prompt}. The agent reports with
    `ralf task done` or `ralf task fail`. A fresh agent replaces an agent that crashes, hangs or exits without a report.
    ralf does not set a client's permissions: pass the client's flags yourself, as in the second example.

    \b
    Examples:
      ralf loop --agent claude --dry-run
      ralf loop --agent "claude --permission-mode acceptEdits" --workers 2
      ralf loop --agent claude --agent reviewer="codex --sandbox read-only"
      ralf loop --agent "sh -c 'my-agent < /dev/stdin'" --timeout 30m

    \b
    Exit status: 0 all tasks are completed, and verified if possible ·
    1 unfinished or unverified tasks remain (the loop lists them), or the loop was stopped ·
    5 another loop runs here · 130 interrupted (Ctrl-C)
    """
    if ctx.invoked_subcommand is not None:
        return
    if not agents:
        raise UsageError("--agent", "names no command to run on the tasks", "ralf loop --agent claude --dry-run")
    limits = Caps(max_starts, max_tokens, max_usd, max_time)
    options = Options(tuple(launch.parse_all(agents)), caps=limits, **more)
    if given("dry_run"):
        _dry_run(options)
        return
    options = replace(options, agents=tuple(launch.located(options.agents, Path.cwd())))
    ctx.exit(_run(options))


def _dry_run(options: Options) -> None:
    ready = [one.task for one in Work(project()).tasks.ready_for((), _MOST_TASKS, others=True, without=())]
    found = [(one.id, one.title, launch.shown(options.agent_for(one.role), one.role)) for one in ready]
    if is_json():
        emit_json([dict(zip(("task", "title", "command"), one, strict=True)) for one in found])
        return
    with handed_over():
        if found:
            table(("TASK", "TITLE", "COMMAND"), found)
        else:
            say("no task can be claimed now: ralf task list")
    say(f"dry run: nothing was started; {options.workers} at a time, each prompt on standard input or in {{prompt}}")


def _tell(event: Event) -> None:
    """Print an event as a line: in a pipe, and in an agent's shell, without foreign text."""
    text = event.whole if sys.stdout.isatty() and not is_read_by_an_agent() else event.line
    sys.stdout.write(f"{json.dumps(fields_of(event), ensure_ascii=False) if is_json() else text}\n")
    sys.stdout.flush()


def _run(options: Options) -> int:
    result = Loop(project(), options, _tell).run()
    with suppress(OSError):
        _emit(result)
        if options.worktrees is not None and result.spent.starts and not is_json():
            folder = os.path.abspath(options.worktrees)  # noqa: PTH100  # links are not followed
            say(f"note: the agents' work is in the worktrees in {folder}, on ralf/w1, …; ralf does not merge them")
    return 130 if "SIGINT" in result.reason else result.status


def _emit(result: Result) -> None:
    if is_json():
        fields = fields_of(result, kind="result", status=result.status)
        click.echo(json.dumps(fields, ensure_ascii=False))
        return
    unfinished, unproven = len(result.unfinished), len(result.unproven)
    summary = f"{result.completed} completed" + (f", {unproven} of them not verified" if unproven else "")
    summary += f", {unfinished} not done" if unfinished else ""
    with handed_over():
        click.echo(f"{result.reason}: {summary}")
        for name, found in (("not done", result.unfinished), ("not verified", result.unproven)):
            for one in found[:_MOST_SHOWN]:
                click.echo(f"  {name}: {one.task} {_short(one.title, 80)}: {_short(one.why, 200)}")
            if len(found) > _MOST_SHOWN:
                click.echo(f"  and {len(found) - _MOST_SHOWN} more that are {name}: ralf task list")
    if result.status:
        causes = [*(one for one in result.unfinished if one.why.startswith("failed")), *result.unproven]
        say(f"hint: ralf task show {causes[0].task}" if causes else "hint: ralf task list")


def _short(text: str, most: int) -> str:
    return cleaning.one_line(cleaning.clean(text))[:most]


# ---- a loop that runs elsewhere ----


@command()
@click.pass_context
def status(ctx: click.Context) -> None:
    """Show this project's running or last loop: its agents and resource usage.

    \b
    Exit status: 0 the loop is running or exited with 0 · 1 it exited with another status or was killed ·
    3 no loop has run here
    """
    found = states.load(project())
    if not found.process:
        raise NotFound(project().root, "no loop has run here", "ralf loop --agent claude --dry-run")
    how = "running" if found.is_running else "ended" if found.ended else "killed"
    if is_json():
        emit_json(fields_of(found, state=how))
    else:
        _show(found, how)
    if how != "running":
        ctx.exit(1 if how == "killed" or found.status else 0)


def _show(found: LoopState, how: str) -> None:
    began = _at(found.began)
    when = {"running": f"since {began}", "ended": f"at {_at(found.ended)}", "killed": f"(begun {began})"}
    spent = spent_text(found.spent)
    parts = [
        f"process {found.process}, {spent}",
        *(f"usage limit of {who}, waiting until {_at(until)}" for who, until in found.parked.items()),
        f"waiting for {found.waits}" if found.waits and not found.reason else "",
        found.reason,
    ]
    click.echo(f"{how} {when[how]}: {'; '.join(filter(None, parts))}")
    for one in found.running:
        lasts = duration_text(max(0, round(time.time() - one.began)))
        click.echo(f"{one.worker} {one.task} {one.label} (process {one.process}) for {lasts}: {_short(one.title, 60)}")
    if how == "killed":
        click.echo("the next loop adopts its agents: ralf loop --agent CMD")
    click.echo(f"log: {found.log}")


def _at(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


@command("root")
@click.option("--after-agents", is_flag=True, help="Start no new agents; let the running agents finish.")
@click.pass_context
def stop(ctx: click.Context, after_agents: bool) -> None:
    """Stop this project's loop. The loop terminates its agents, releases their tasks and exits."""
    found = _running()
    sent = processes.send(found.process, found.born, signal.SIGUSR1 if after_agents else signal.SIGTERM)
    if after_agents and sent:
        click.echo(f"process {found.process} stops after {len(found.running)} running agents")
        return
    deadline = time.monotonic() + _PATIENCE
    while processes.is_running(found.process, found.born):
        if time.monotonic() >= deadline:
            click.echo(f"process {found.process} still runs: ralf loop status")
            ctx.exit(1)
        time.sleep(0.05)
    click.echo(f"process {found.process} has stopped")


def _running() -> LoopState:
    found = states.load(project())
    if not found.process or not found.is_running:
        raise NotFound(project().root, "no loop runs here", "ralf loop status")
    return found


@command(is_fenced=False)
@click.argument("route")
def handover(route: str) -> None:
    """Store an orchestrator's state, read as JSON from standard input, in ROUTE. Print the result as JSON.

    The input is {"assignments": {NAME: TASK}, "queue": [TASK], "decisions": [TEXT or {"decision", "rationale"}],
    "channels": {NAME: HEALTH}, "goal": TEXT, "tokens": N, "window": N}. All keys are optional; a missing key leaves its
    value unchanged. ralf stores new content immediately; a fresh orchestrator reads it with `ralf show ROUTE --brief`.

    The output is {"recorded", "checkpoint_id", "tokens", "window", "percent", "ends"}. "percent" is the fill level of
    the orchestrator's window; "ends" is true if a fresh orchestrator should continue. Without "tokens" and "window",
    ralf reads the session's log.

    \b
    Examples:
      echo '{"queue": ["TASK-002"]}' | ralf loop handover pm
      ralf loop handover pm < state.json
    """
    emit_json(hand_over(route, sys.stdin.buffer.read(MOST_BYTES + 1), root=root()))
