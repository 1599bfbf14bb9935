"""`ralf loop`: fresh agents on the tasks of a plan; its status, and how to stop and watch it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import click

from ralf_cli.command import command, taking
from ralf_cli.main import LazyGroup
from ralf_cli.options import with_json_alone, with_root
from ralf_cli.tables import aligned

if TYPE_CHECKING:
    from ralf.project import Project
    from ralf_integrations.loop.options import Event, Options, Result, View
    from ralf_integrations.loop.state import LoopState

_INTERRUPTED = 130
_MOST_SHOWN = 40  # tasks that are listed at the end
_PATIENCE = 30.0  # seconds that `stop` waits for agents to end
_LINES = 20  # of the log that `attach` begins with


class _Loop(LazyGroup):
    lazy: ClassVar[dict[str, str]] = {
        "status": "ralf_cli.loop:status",
        "stop": "ralf_cli.loop:stop",
        "handover": "ralf_cli.orchestrator:handover",
    }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a subcommand the loop itself runs."""
        ctx.allow_interspersed_args = False
        return super().parse_args(ctx, args)


@click.group(cls=_Loop, invoke_without_command=True, short_help="Run fresh agents on the tasks, one after another.")
@click.option(
    "--agent",
    "agents",
    metavar="[ROLE=][CLIENT:]CMD",
    multiple=True,
    help="The command of an agent: claude, codex or any other. With ROLE only for tasks of that role.",
)
@click.option(
    "--workers", metavar="N", type=click.IntRange(1, 256), default=1, show_default=True, help="Agents at the same time."
)
@click.option("--max-starts", metavar="N", default="200", show_default=True, help="Cap on agents started, or none.")
@click.option("--max-tokens", metavar="N", default="50M", show_default=True, help="Cap on tokens, or none.")
@click.option("--max-usd", metavar="USD", default="100", show_default=True, help="Cap on money, or none.")
@click.option("--max-time", metavar="TIME", default="1d", show_default=True, help="Cap on time, or none.")
@click.option("--timeout", metavar="TIME", default="2h", show_default=True, help="Time limit of one agent, or none.")
@click.option(
    "--retries",
    metavar="N",
    type=click.IntRange(0, 100),
    default=3,
    show_default=True,
    help="Retries of a failed task.",
)
@click.option("--backoff", metavar="TIME", default="1s", show_default=True, help="Wait before the first retry.")
@click.option(
    "--stall",
    metavar="N",
    type=click.IntRange(0, 1000),
    default=3,
    show_default=True,
    help="Rounds without a change; 0: no limit.",
)
@click.option(
    "--grace", metavar="TIME", default="5s", show_default=True, help="Time to exit before an agent is killed."
)
@click.option("--no-park", is_flag=True, help="Stop at a usage limit instead of waiting for its end.")
@click.option(
    "--end-orphans", is_flag=True, help="End the agents of a loop that was killed instead of waiting for them."
)
@click.option("--worktrees", metavar="DIR", type=click.Path(path_type=Path), help="A git worktree in DIR per worker.")
@taking("dry_run")
@click.option("--detach", is_flag=True, help="Run in the background, in a session of its own.")
@with_root
@with_json_alone
@click.pass_context
def loop(
    ctx: click.Context,
    agents: tuple[str, ...],
    workers: int,
    max_starts: str,
    max_tokens: str,
    max_usd: str,
    max_time: str,
    timeout: str,
    retries: int,
    backoff: str,
    stall: int,
    grace: str,
    no_park: bool,
    end_orphans: bool,
    worktrees: Path | None,
    dry_run: bool,
    detach: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Run fresh agents on the ready tasks until none is left or a limit is reached.

    Each agent gets one task and what it needs to know, on standard input or in place of {prompt}. It reports with
    `ralf task done` or `ralf task fail`. An agent that crashes, hangs or exits without a report is replaced by a fresh
    one. Permissions are the client's own: pass its flags yourself, as in the second example.

    \b
    Examples:
      ralf loop --agent claude --dry-run
      ralf loop --agent "claude --permission-mode acceptEdits" --workers 2
      ralf loop --agent claude --agent reviewer="codex --sandbox read-only" --detach
      ralf loop --agent "sh -c 'my-agent < /dev/stdin'" --timeout 30m

    \b
    Exit status: 0 every task is completed, and verified where it can be · 1 some are not (they are listed), or stopped
    · 2 wrong usage · 4 damaged data · 5 another loop runs here · 130 stopped from the keyboard
    """
    if ctx.invoked_subcommand is not None:
        return
    from ralf import project as projects
    from ralf.errors import UsageError
    from ralf_integrations.loop import caps, launch
    from ralf_integrations.loop.options import Options

    if not agents:
        raise UsageError("--agent", "which command works on the tasks?", "ralf loop --agent claude --dry-run")
    starts = caps.amount_of(max_starts, "--max-starts")
    tokens = caps.amount_of(max_tokens, "--max-tokens")
    options = Options(
        agents=tuple(launch.parse_all(agents)),
        workers=workers,
        caps=caps.Caps(
            int(starts) if starts is not None else None,
            int(tokens) if tokens is not None else None,
            caps.amount_of(max_usd, "--max-usd"),
            caps.seconds_of(max_time, "--max-time"),
        ),
        retries=retries,
        timeout=caps.seconds_of(timeout, "--timeout"),
        grace=caps.seconds_of(grace, "--grace", least=0.0) or 0.0,
        stall=stall,
        park=not no_park,
        adopt=not end_orphans,
        worktrees=worktrees,
        backoff=caps.seconds_of(backoff, "--backoff", least=0.0) or 0.0,
        detached=detach,
    )
    project = projects.find(root)
    if dry_run:
        _dry_run(project, options, as_json=as_json)
        return
    options = replace(options, agents=tuple(launch.located(options.agents, Path.cwd())))
    if detach:
        _detached(project, options, as_json=as_json)
    else:
        ctx.exit(_run(project, options, as_json=as_json))


def _dry_run(project: Project, options: Options, *, as_json: bool) -> None:
    from ralf_cli.output import emit_json, handed_over, say, table
    from ralf_integrations.loop import launch
    from ralf_integrations.loop.preview import dry_run

    def command(agent: launch.Agent) -> list[str]:
        return launch.command(agent, session="SESSION", last="LAST")

    found = dry_run(project, options, command)
    if as_json:
        emit_json([{"task": task, "title": title, "command": told} for task, title, told in found])
        return
    if found:
        with handed_over():
            table(("TASK", "TITLE", "COMMAND"), found)
    else:
        say("no task can be claimed now: ralf task list")
    say(f"dry run: nothing was started; {options.workers} at a time, each prompt on standard input or in {{prompt}}")


def _run(project: Project, options: Options, *, as_json: bool) -> int:
    """Run the loop here; its exit status."""
    from ralf_integrations.loop.run import Loop

    with _view(as_json=as_json) as view:
        running = Loop(project, options, view)
        result = running.run()
    with suppress(OSError):
        _emit(result, as_json=as_json)
        if options.worktrees is not None and result.spent.starts and not as_json:
            folder = os.path.abspath(options.worktrees)  # noqa: PTH100  # links are not followed
            from ralf_cli.output import say

            say(f"note: the agents' work is in the worktrees of {folder}, on branches ralf/w1, …; ralf merges none")
    return _INTERRUPTED if "SIGINT" in result.reason else result.status


# ---- in the background ----


def _detached(project: Project, options: Options, *, as_json: bool) -> None:
    """Start the loop in a process of its own, and say how to follow it."""
    from ralf.errors import RalfError
    from ralf_cli.output import emit_json
    from ralf_integrations.loop import state as states

    project.prepare()
    log = states.log_file(project)
    project.make_room(log)
    with states.alone(project):  # so that a second one is refused here, and not in a log
        pass
    read, write = os.pipe()
    sys.stdout.flush()
    process = os.fork()
    if not process:
        os.close(read)
        _become_background(project, options, log, write)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        complaint = told.read().decode("utf-8", "replace")
    if complaint:
        os.waitpid(process, 0)
        raise RalfError("ralf loop", complaint, "ralf loop status")
    deadline = time.monotonic() + _PATIENCE
    while states.load(project).process != process and time.monotonic() < deadline:
        if os.waitpid(process, os.WNOHANG) != (0, 0):
            raise RalfError("ralf loop", f"ended at once: look at {log}", "ralf loop status")
        time.sleep(0.02)
    if as_json:
        emit_json({"process": process, "log": str(log)})
    else:
        click.echo(f"process {process}; its log: {log}")
        click.echo("ralf loop status · ralf loop status --follow · ralf loop stop", err=True)


def _become_background(project: Project, options: Options, log: Path, write: int) -> NoReturn:
    status = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        told = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, descriptor in enumerate((nothing, nothing, told)):
            os.dup2(descriptor, number)
        os.close(write)
        from ralf_integrations.loop.run import Loop

        status = Loop(project, options, _Nobody()).run().status
    except Exception as error:  # noqa: BLE001  # there is nobody to raise it to
        with suppress(OSError):
            os.write(2, f"error: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(status)


# ---- what is shown while it runs ----


class _Nobody:
    def event(self, event: Event) -> None:
        """Nobody looks."""

    def draw(self, state: LoopState) -> None:
        """Nobody looks."""


class _Lines:
    """One line for each event."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def event(self, event: Event) -> None:
        """Print it, in a pipe without others' words: an agent may read them."""
        from ralf_cli.output import fields_of

        text = json.dumps(fields_of(event), ensure_ascii=False) if self._as_json else event.line
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def draw(self, state: LoopState) -> None:
        """Lines tell all of it."""


class _Table:
    """A table of the agents that run, drawn anew, below the lines of what happened."""

    def __init__(self, live: Any) -> None:
        self._live = live

    def event(self, event: Event) -> None:
        """Print it above the table."""
        from rich.text import Text

        self._live.console.print(Text(event.whole))

    def draw(self, state: LoopState) -> None:
        """Draw the table."""
        from rich.text import Text

        self._live.update(Text("\n".join(_state_lines(state))), refresh=True)


@contextmanager
def _view(*, as_json: bool) -> Iterator[View]:
    if as_json or not (sys.stdout.isatty() and sys.stderr.isatty()):
        yield _Lines(as_json=as_json)
        return
    with _live() as live:
        yield _Table(live)


def _live() -> Any:
    """What draws anew in place: on stderr, since only text and colours get through to stdout (`terminal.guard`)."""
    from rich.console import Console
    from rich.live import Live

    return Live(console=Console(stderr=True), auto_refresh=False, transient=True)


_HEADINGS = ("WORKER", "TASK", "AGENT", "PROCESS", "FOR", "TITLE")


def _state_lines(state: LoopState) -> list[str]:
    return [aligned(_HEADINGS, _rows(state)), _summary(state)]


def _rows(state: LoopState) -> list[tuple[object, ...]]:
    from ralf.text.cleaning import clean, one_line
    from ralf_integrations.loop.caps import duration_text

    return [
        (
            one.worker,
            one.task,
            one.label,
            str(one.process),
            duration_text(max(0, round(time.time() - one.began))),
            one_line(clean(one.title))[:60],
        )
        for one in state.running
    ]


def _summary(state: LoopState) -> str:
    from ralf_integrations.loop.caps import Spent, spent_text

    parts = [spent_text(Spent(state.starts, state.tokens, state.usd, state.unknown, state.unpriced))]
    for who, until in state.parked.items():
        parts.append(f"usage limit of {who}, waiting until {_at(until)}")
    parts += [f"waiting for {state.waits}"] if state.waits and not state.reason else []
    return "; ".join([*parts, *([state.reason] if state.reason else [])])


def _at(seconds: float) -> str:
    """A time since 1970, as the clock on the wall shows it."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _emit(result: Result, *, as_json: bool) -> None:
    """Print what the loop came to."""
    from ralf.text.cleaning import clean, one_line
    from ralf_cli.output import fields_of, handed_over, say

    if as_json:
        click.echo(json.dumps({"kind": "result", "status": result.status, **fields_of(result)}, ensure_ascii=False))
        return
    unfinished, unproven = len(result.unfinished), len(result.unproven)
    told = f"{result.completed} completed" + (f", {unproven} of them not verified" if unproven else "")
    told += f", {unfinished} not done" if unfinished else ""
    with handed_over():
        click.echo(f"{result.reason}: {told}")
        for name, found in (("not done", result.unfinished), ("not verified", result.unproven)):
            for one in found[:_MOST_SHOWN]:
                click.echo(f"  {name}: {one.task} {one_line(clean(one.title))[:80]}: {one_line(clean(one.why))[:200]}")
            if len(found) > _MOST_SHOWN:
                click.echo(f"  and {len(found) - _MOST_SHOWN} more that are {name}: ralf task list")
    if result.status:
        causes = [*(one for one in result.unfinished if one.why.startswith("failed")), *result.unproven]
        say(f"hint: ralf task show {causes[0].task}" if causes else "hint: ralf task list")


# ---- a loop that runs elsewhere ----


@command(short_help="Show the loop that runs here, or ran last.")
@click.option("-f", "--follow", is_flag=True, help="Print what it reports, until it ends; Ctrl-C stops only this.")
@with_root
@with_json_alone
@click.pass_context
def status(ctx: click.Context, follow: bool, root: str | None, as_json: bool) -> None:
    """Show the loop that runs in this project, or the one that ran last: its agents and what it has used.

    \b
    Examples:
      ralf loop status
      ralf loop status --follow

    \b
    Exit status: 0 it runs, or ended with 0 · 1 it ended with another status, or was killed · 3 none has run here, none
    runs (--follow) · 130 stopped from the keyboard
    """
    from ralf_cli.output import handed_over

    if follow:
        _follow(ctx, root)
        return
    with nullcontext() if as_json else handed_over():
        _show(ctx, root, as_json=as_json)


def _show(ctx: click.Context, root: str | None, *, as_json: bool) -> None:
    """Print the state of the loop; the exit status as `status` has it."""
    from ralf import project as projects
    from ralf.errors import NotFound
    from ralf_cli.output import emit_json, fields_of, table
    from ralf_integrations.loop import state as states

    project = projects.find(root)
    found = states.load(project)
    if not found.process:
        raise NotFound(project.root, "no loop has run here", "ralf loop --agent claude --dry-run")
    how = "running" if found.is_running else "ended" if found.ended else "killed"
    if as_json:
        emit_json({"state": how, **fields_of(found)})
    else:
        began = _at(found.began)
        when = {"running": f"since {began}", "ended": f"at {_at(found.ended)}", "killed": f"(begun {began})"}
        click.echo(f"{how} {when[how]}: process {found.process}, {_summary(found)}")
        if found.running:
            table(_HEADINGS, _rows(found))
        if how == "killed":
            click.echo("its agents are adopted by the next loop: ralf loop --agent CMD")
        click.echo(f"log: {found.log}")
    if how != "running":
        ctx.exit(1 if how == "killed" or found.status else 0)


@command(short_help="Stop the loop that runs here.")
@click.option("--after-agents", is_flag=True, help="Start nothing new, and let the running agents finish.")
@with_root
@click.pass_context
def stop(ctx: click.Context, after_agents: bool, root: str | None) -> None:
    """Stop the loop that runs in this project: it ends its agents, returns their tasks and exits.

    \b
    Examples:
      ralf loop stop
      ralf loop stop --after-agents

    \b
    Exit status: 0 stopped, or asked to stop after its agents · 1 it still runs after 30 s · 3 none runs here
    """
    from ralf import project as projects
    from ralf_integrations.loop import processes

    found = _running(projects.find(root))
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


def _follow(ctx: click.Context, root: str | None) -> None:
    """Print what the loop of a project reports, until it ends; the exit status is that of the loop."""
    from ralf import project as projects
    from ralf_integrations.loop import state as states

    project = projects.find(root)
    found = _running(project)
    log = Path(found.log)
    offset = max(found.log_offset, _last_lines(log, _LINES))
    with _attached() as show:
        while True:
            runs = found.is_running
            offset = _print_from(log, offset)
            show(states.load(project))
            if not runs:
                break
            time.sleep(0.25)
    ctx.exit(max(1, states.load(project).status) if states.load(project).status else 0)


@contextmanager
def _attached() -> Iterator[Callable[[LoopState], None]]:
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.text import Text

    with _live() as live:
        yield lambda found: live.update(Text("\n".join(_state_lines(found))), refresh=True)


def _running(project: Project) -> LoopState:
    from ralf.errors import NotFound
    from ralf_integrations.loop import state as states

    found = states.load(project)
    if not found.process or not found.is_running:
        raise NotFound(project.root, "no loop runs here", "ralf loop status")
    return found


def _last_lines(log: Path, count: int) -> int:
    """Where the last lines of a log begin."""
    with suppress(OSError):
        data = log.read_bytes()
        lines: Sequence[bytes] = data.splitlines(keepends=True)[-count:]
        return len(data) - sum(map(len, lines))
    return 0


def _print_from(log: Path, offset: int) -> int:
    """Print what a log holds behind a place; the new end. A log that was rotated is read from its beginning."""
    from ralf.text.cleaning import shown
    from ralf_cli.output import handed_over

    with suppress(OSError), log.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(offset if offset <= end else 0)
        data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if whole:
            with handed_over():
                click.echo(shown(whole.decode("utf-8", "replace")), nl=False)
            sys.stdout.flush()
        return file.tell() - len(data) + len(whole)
    return offset
