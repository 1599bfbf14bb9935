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
from ralf_cli.command import Command, F, command, given, handed_over, is_json, project, root
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
    help="The command of an agent: claude, codex or any other. With ROLE: only for tasks of that role.",
)
@click.option("--workers", metavar="N", type=click.IntRange(1, 256), default=1, help="Agents at the same time. [1]")
@_limit("--max-starts", "200", "Cap on agents started, or none.", "N")
@_limit("--max-tokens", "50M", "Cap on tokens, or none.", "N")
@_limit("--max-usd", "100", "Cap on money, or none.", "USD")
@_limit("--max-time", "1d", "Cap on time, or none.")
@_limit("--timeout", "2h", "Time limit of one agent, or none.")
@click.option("--retries", metavar="N", type=click.IntRange(0, 100), default=3, help="Retries of a failed task. [3]")
@_limit("--backoff", "1s", "Wait before the first retry.", least=0.0)
@click.option(
    "--stall",
    metavar="N",
    type=click.IntRange(0, 1000),
    default=3,
    help="Give up after N idle rounds. [3]",
)
@_limit("--grace", "5s", "Time to exit before an agent is killed.", least=0.0)
@click.option("--no-park", "park", flag_value=False, default=True, help="Stop at a usage limit, do not wait.")
@click.option(
    "--end-orphans",
    "adopt",
    flag_value=False,
    default=True,
    help="End a killed loop's agents.",
)
@click.option("--worktrees", metavar="DIR", type=click.Path(path_type=Path), help="A git worktree in DIR per worker.")
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
    """Run fresh agents on the ready tasks until none is left or a limit is reached.

    Each agent receives one task with its context, on standard input or in place of {prompt}. It reports with
    `ralf task done` or `ralf task fail`. A fresh agent replaces one that crashes, hangs or exits without a report.
    Permissions are the client's own: pass its flags yourself, as in the second example.

    \b
    Examples:
      ralf loop --agent claude --dry-run
      ralf loop --agent "claude --permission-mode acceptEdits" --workers 2
      ralf loop --agent claude --agent reviewer="codex --sandbox read-only"
      ralf loop --agent "sh -c 'my-agent < /dev/stdin'" --timeout 30m

    \b
    Exit status: 0 all tasks are completed, and verified if they can be · 1 some are not (they are listed), or stopped
    · 5 another loop runs here · 130 stopped from the keyboard
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
    ready = [one.task for one in Work(project()).ready_for((), _MOST_TASKS, others=True, without=())]
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
    """Print an event as a line: in a pipe, which an agent may read, without foreign text."""
    text = event.whole if sys.stdout.isatty() else event.line
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
    """Show the loop that runs in this project, or the last one: its agents and what it has used.

    \b
    Exit status: 0 it runs, or ended with 0 · 1 it ended with another status, or was killed · 3 no loop has run here
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
@click.option("--after-agents", is_flag=True, help="Start no new agent, and let the running ones finish.")
@click.pass_context
def stop(ctx: click.Context, after_agents: bool) -> None:
    """Stop the loop that runs in this project. It ends its agents, releases their tasks and exits."""
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
    """Store an orchestrator's state in ROUTE: reads JSON from standard input, writes JSON to standard output.

    Reads {"assignments": {NAME: TASK}, "queue": [TASK], "decisions": [TEXT or {"decision", "rationale"}], "channels":
    {NAME: HEALTH}, "goal": TEXT, "tokens": N, "window": N}. All keys are optional; a missing key leaves its value
    unchanged. New content is stored at once; a fresh orchestrator reads it with `ralf show ROUTE --brief`.

    Writes {"recorded", "checkpoint_id", "tokens", "window", "percent", "ends"}: how full the orchestrator's own window
    is, and whether it should be replaced by a fresh one. Without "tokens" and "window", ralf reads the session's log.

    \b
    Examples:
      echo '{"queue": ["TASK-002"]}' | ralf loop handover pm
      ralf loop handover pm < state.json
    """
    emit_json(hand_over(route, sys.stdin.buffer.read(MOST_BYTES + 1), root=root()))
