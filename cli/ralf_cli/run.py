"""`ralf run`: runs of agents looked at, followed, tried again, ended."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, BinaryIO

import click

from ralf_cli.command import command, shared, taking
from ralf_cli.main import group
from ralf_cli.options import with_json, with_json_alone, with_root

if TYPE_CHECKING:
    from ralf.agent import RunState, SavedState

_MOST = 50  # steps that a list shows where nothing else is asked for

_STATUSES = ("running", "waiting", "paused", "lost", "completed", "failed", "dead", "cancelled")
_QUIET = ("completed", "cancelled")  # what a list leaves out where nothing else is asked for


run = group(
    "run",
    "run:show run:retry run:cancel",
    help="""List, follow and steer the runs of agents.

    A run is the durable state of an agent that a program of yours keeps with `ralf.agent`: saved states, calls made
    once, decisions, signals and output. These commands show what is known of a run, never what its states, answers and
    signals contain; only --output prints content.

    \b
    Examples:
      ralf run show
      ralf run show survey --follow

    \b
    Exit status: that of the command
    """,
    short_help="List, follow and steer the runs of agents.",
    params=[
        shared(
            "step",
            "--step",
            of="ralf run",
            metavar="STEP",
            help="Only this step. Default: every one; to be shown, the one written last.",
        )
    ],
)


def _list(status: str | None, root: str | None, *, all_: bool, as_json: bool) -> None:
    """List the steps of all runs, by name."""
    from ralf.agent import list_runs
    from ralf_cli.output import emit_json, fields_of, say, table
    from ralf_cli.terminal import complain

    found = list_runs(status=status, root=root)
    shown = [state for state in found.runs if all_ or status is not None or state.status not in _QUIET]
    most = len(shown) if all_ else _MOST
    if as_json:
        emit_json([fields_of(state) for state in shown[:most]])
    elif shown:
        table(_HEADINGS, map(_cells, shown[:most]), right=(3, 4, 5, 6))
    if more := len(shown) - len(shown[:most]):
        say(f"{more:,} more: ralf run show --all")
    if quiet := len(found.runs) - len(shown):
        say(f"not shown: {quiet:,} completed or cancelled: ralf run show --all")
    elif not shown:
        say(f"no run is {status}" if status else "no run yet")
    if found.foreign:
        say(f"not shown: {len(found.foreign):,} that your ralf did not write; if they are yours: ralf trust")
    for name, problem in found.damaged:
        complain(f"{name}: {problem}", "ralf doctor --repair")
    if found.damaged:
        click.get_current_context().exit(4)


_HEADINGS = ("RUN", "STEP", "STATUS", "ITERATION", "ATTEMPT", "STATE", "SIGNALS", "LAST RECORD")


def _cells(state: RunState) -> tuple[object, ...]:
    waiting = state.signals - state.heard
    return (
        state.run,
        state.step,
        _status(state),
        state.iteration,
        state.attempt,
        _size(state.size) if state.states else "-",
        waiting,
        state.at or "-",
    )


def _status(state: RunState) -> str:
    """The status, with what it waits for."""
    if state.waits_for:
        return f"{state.status} for {state.waits_for}"
    return state.status


def _size(size: int) -> str:
    """A number of bytes, short."""
    if size < 10_000:
        return f"{size:,} B"
    return f"{size / 1e3:,.0f} KB" if size < 10_000_000 else f"{size / 1e6:,.0f} MB"


@command(short_help="List the runs, show one, or print its output.")
@click.argument("run", required=False, metavar="[RUN]")
@taking("step")
@click.option("--status", type=click.Choice(_STATUSES), help="Without RUN: only steps with this status.")
@click.option("--all", "all_", is_flag=True, help="Without RUN: every step, without a limit.")
@click.option("--output", is_flag=True, help="Print the output of RUN from its beginning.")
@click.option("-f", "--follow", is_flag=True, help="As --output, and wait for more until the step has ended.")
@click.option(
    "--timeout", type=click.FloatRange(min=0.0), metavar="S", help="With --follow: stop after S silent seconds."
)
@with_root
@with_json_alone
def show(
    run: str | None,
    step: str | None,
    status: str | None,
    all_: bool,
    output: bool,
    follow: bool,
    timeout: float | None,
    root: str | None,
    as_json: bool,
) -> None:
    """List the steps of all runs that have not completed; of RUN show status, iteration, holder, saved states, calls,
    signals and the last failure, never what states, answers and signals contain; or print its output.

    In a pipe the bytes of the output are printed as they were written; on a terminal, control sequences are removed.

    \b
    Examples:
      ralf run show
      ralf run show survey
      ralf run show survey --follow
      ralf run show survey --output > survey.log

    \b
    Exit status: 0, even without any run · 2 invalid name · 3 no such run (the closest are named; with --follow it is
    waited for) · 4 damaged records · 130 stopped from the keyboard
    """
    from ralf_cli.output import handed_over

    if timeout is not None and not follow:
        raise click.UsageError("--timeout is for --follow")
    if run is None:
        if step is not None or output or follow:
            raise click.UsageError("name the RUN")
        with nullcontext() if as_json else handed_over():
            _list(status, root, all_=all_, as_json=as_json)
    elif output or follow:
        _stream(run, step, root, follow=follow, timeout=timeout)
    else:
        with nullcontext() if as_json else handed_over():
            _show(run, step, root, as_json=as_json)


def _show(run: str, step: str | None, root: str | None, *, as_json: bool) -> None:
    """Show what is known of a run."""
    from ralf.agent import AgentRun, get_run
    from ralf_cli.output import emit_json, fields_of, say

    state = get_run(run, step, root=root)
    saved = AgentRun(state.run, state.step, root=root).states()
    if as_json:
        emit_json(fields_of(state) | {"saved": [fields_of(one) for one in saved]})
        return
    click.echo(_text(state, saved))
    if hint := _next(state):
        say(hint)


def _text(state: RunState, saved: list[SavedState]) -> str:
    """All that is known of a step."""
    from ralf_cli.tables import in_bytes

    lost = f"; its process died {_times(state.losses)}" if state.losses else ""
    repeats = f", {state.repeats:,} repeated for want of an answer" if state.repeats else ""
    until = state.not_before and f"until {state.not_before}"
    who = ", ".join(filter(None, (state.by, f"process {state.process}" if state.process else "")))
    kept = sum(one.kept for one in saved)
    fields = (
        ("step", state.step if len(state.steps) < 2 else f"{state.step} of {', '.join(state.steps)}"),
        ("iteration", f"{state.iteration:,}, attempt {state.attempt:,}{lost}"),
        ("waits", " ".join(filter(None, (state.waits_for and f"for signal {state.waits_for}", until)))),
        ("holder", f"{who}, claim {state.term:,}" if state.status == "running" else ""),
        (
            "states",
            f"{state.states:,} saved, the newest of {in_bytes(state.size)}; {kept:,} kept" if saved else "none",
        ),
        ("calls", f"{state.calls:,} in this iteration{repeats}"),
        ("signals", f"{state.signals:,} sent, {state.heard:,} received"),
        ("began", state.began),
        ("last record", state.at),
        ("reason", state.reason),
    )
    lines = [f"{state.run}: {_status(state)}", *(f"{name:<13} {value}" for name, value in fields if value)]
    return "\n".join(lines)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _next(state: RunState) -> str:
    """What to type next, "" for nothing."""
    name = state.run if state.step == "main" else f"{state.run} --step {state.step}"
    if state.status == "paused":
        return f"to continue it: ralf send {state.run} --signal {state.waits_for}"
    if state.status in ("failed", "dead", "cancelled"):
        return f"to open it again: ralf run retry {name}"
    return "start its program again: it continues here" if state.status == "lost" else ""


def _stream(run: str, step: str | None, root: str | None, *, follow: bool, timeout: float | None) -> None:
    """Print the output of a run from its beginning, however late one comes."""
    from ralf.agent import get_run, tail
    from ralf.agent.model import MAIN
    from ralf.errors import RunNotFound

    if step is None:
        try:
            step = get_run(run, root=root).step
        except RunNotFound:
            if not follow:
                raise
            step = MAIN
    pieces = tail(run, step, follow=follow, timeout=timeout, root=root)
    if sys.stdout.isatty():
        from codecs import getincrementaldecoder

        decoder = getincrementaldecoder("utf-8")("replace")
        for piece in pieces:
            click.echo(decoder.decode(piece), nl=False)  # sys.stdout is guarded: see `ralf_cli.terminal`
        click.echo(decoder.decode(b"", True), nl=False)
        return
    out: BinaryIO = sys.stdout.buffer
    for piece in pieces:
        out.write(piece)
        out.flush()


@command(short_help="Open a run again that failed, is dead or was cancelled.")
@click.argument("run", metavar="RUN")
@taking("step")
@with_root
@with_json
def retry(run: str, step: str | None, root: str | None, as_json: bool) -> None:
    """Open RUN again: its iteration begins its first attempt, with its saved state and its answers. A step that waits
    or is paused continues at once.

    The agent itself is started by its own program, or continues there if that is waiting.

    \b
    Examples:
      ralf run retry survey
      ralf run retry survey --step draft

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 it has completed, invalid name · 3 no such run · 4 damaged records ·
    5 a live process holds it
    """
    from ralf.agent import retry_run
    from ralf_cli.output import say

    _tell(retry_run(run, step, root=root), as_json=as_json)
    say("its program continues it; start that, unless it is running")


@command(short_help="End a run as cancelled.")
@click.argument("run", metavar="RUN")
@taking("step")
@click.option("--reason", metavar="TEXT", default="", help="Why; it is recorded.")
@with_root
@with_json
def cancel(run: str, step: str | None, reason: str, root: str | None, as_json: bool) -> None:
    """End RUN as cancelled. A process that works at it learns this when it next saves, asks or waits.

    Its states are kept: `ralf run retry` opens it again.

    \b
    Examples:
      ralf run cancel survey --reason "The question is answered"

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 nothing of it is open, invalid name · 3 no such run ·
    4 damaged records · 5 busy
    """
    from ralf.agent import cancel_run

    _tell(cancel_run(run, step, reason=reason, root=root), as_json=as_json)


def _tell(state: RunState, *, as_json: bool) -> None:
    """Print what became of a step."""
    from ralf_cli.output import emit_json, fields_of

    if as_json:
        emit_json(fields_of(state))
    else:
        click.echo(f"{state.run}: {_status(state)}, iteration {state.iteration:,}")
