"""`ralf run`: runs of agents looked at, followed, tried again, ended."""

from __future__ import annotations

import sys

import click

from ralf.agent import AgentRun, RunState, SavedState, cancel_run, get_run, list_runs, retry_run, tail
from ralf.agent.model import MAIN
from ralf.errors import RunNotFound
from ralf_cli.command import command, given, handed_over, is_json, root, shared
from ralf_cli.main import LazyGroup
from ralf_cli.output import answer, complain, emit_json, fields_of, say, table
from ralf_cli.tables import so_many

_MOST = 50  # steps that a list shows where nothing else is asked for

_STATUSES = ("running", "waiting", "paused", "lost", "completed", "failed", "dead", "cancelled")
_QUIET = ("completed", "cancelled")  # what a list leaves out where nothing else is asked for


run = LazyGroup(
    name="run",
    sections="run:show run:retry run:cancel",
    help="""List, follow and steer the runs of agents.

    A run is the durable state of an agent that a program of yours keeps with `ralf.agent`: saved states, calls made
    once, decisions, signals and output. These commands show what is known of a run, never what its states, answers and
    signals contain; only --output prints content.

    \b
    Examples:
      ralf run show
      ralf run show survey --follow
    """,
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


@command("root", "json", "step", is_fenced=False)
@click.argument("run", required=False, metavar="[RUN]")
@click.option("--status", type=click.Choice(_STATUSES), help="Without RUN: only steps with this status.")
@click.option("--all", "all_", is_flag=True, help="Without RUN: every step, without a limit.")
@click.option("--output", is_flag=True, help="Print the output of RUN from its beginning.")
@click.option("-f", "--follow", is_flag=True, help="As --output, and wait for more until the step has ended.")
def show(run: str | None, status: str | None, all_: bool, output: bool, follow: bool) -> None:
    """List the steps of all runs that have not completed; of RUN show status, iteration, holder, saved states, calls,
    signals and the last failure, never what states, answers and signals contain; or print its output.

    In a pipe the bytes of the output are printed as they were written; on a terminal, control sequences are removed.
    """
    if run is None and (given("step") is not None or output or follow):
        raise click.UsageError("name the RUN")
    if run is not None and (output or follow):
        _stream(run, given("step"), follow=follow)
        return
    with handed_over():
        if run is None:
            _list(status, all_=all_)
        else:
            _show(run)


def _list(status: str | None, *, all_: bool) -> None:
    found = list_runs(status=status, root=root())
    wanted = [state for state in found.runs if all_ or status is not None or state.status not in _QUIET]
    listed = wanted if all_ else wanted[:_MOST]
    if is_json():
        emit_json(listed)
    elif listed:
        headings = ("RUN", "STEP", "STATUS", "ITERATION", "ATTEMPT", "STATE", "SIGNALS", "LAST RECORD")
        table(headings, map(_cells, listed), right=(3, 4, 5, 6))
    if more := len(wanted) - len(listed):
        say(f"{more:,} more: ralf run show --all")
    if quiet := len(found.runs) - len(wanted):
        say(f"not shown: {quiet:,} completed or cancelled: ralf run show --all")
    elif not wanted:
        say(f"no run is {status}" if status else "no run yet")
    if found.foreign:
        say(f"not shown: {len(found.foreign):,} that your ralf did not write; if they are yours: ralf trust")
    for name, problem in found.damaged:
        complain(f"{name}: {problem}", "ralf doctor --repair")
    if found.damaged:
        click.get_current_context().exit(4)


def _cells(state: RunState) -> tuple[object, ...]:
    size = f"{state.size:,} B" if state.states else "-"
    waiting = state.signals - state.heard
    return state.run, state.step, _status(state), state.iteration, state.attempt, size, waiting, state.at or "-"


def _status(state: RunState) -> str:
    return f"{state.status} for {state.waits_for}" if state.waits_for else state.status


def _show(run: str) -> None:
    state = get_run(run, given("step"), root=root())
    saved = AgentRun(state.run, state.step, root=root()).states()
    if is_json():
        emit_json(fields_of(state, saved=saved))
        return
    click.echo(_text(state, saved))
    name = state.run if state.step == "main" else f"{state.run} --step {state.step}"
    if state.status == "paused":
        say(f"to continue it: ralf send {state.run} --signal {state.waits_for}")
    elif state.status in ("failed", "dead", "cancelled"):
        say(f"to open it again: ralf run retry {name}")
    elif state.status == "lost":
        say("start its program again: it continues here")


def _text(state: RunState, saved: list[SavedState]) -> str:
    lost = f"; its process died {so_many(state.losses, 'time')}" if state.losses else ""
    repeats = f", {state.repeats:,} repeated for want of an answer" if state.repeats else ""
    waits = (state.waits_for and f"for signal {state.waits_for}", state.not_before and f"until {state.not_before}")
    who = ", ".join(filter(None, (state.by, f"process {state.process}" if state.process else "")))
    kept = sum(one.kept for one in saved)
    newest = f"{state.states:,} saved, the newest of {so_many(state.size, 'byte')}; {kept:,} kept"
    fields = {
        "step": state.step if len(state.steps) < 2 else f"{state.step} of {', '.join(state.steps)}",
        "iteration": f"{state.iteration:,}, attempt {state.attempt:,}{lost}",
        "waits": " ".join(filter(None, waits)),
        "holder": f"{who}, claim {state.term:,}" if state.status == "running" else "",
        "states": newest if saved else "none",
        "calls": f"{state.calls:,} in this iteration{repeats}",
        "signals": f"{state.signals:,} sent, {state.heard:,} received",
        "began": state.began,
        "last record": state.at,
        "reason": state.reason,
    }
    return "\n".join(
        [f"{state.run}: {_status(state)}", *(f"{name:<13} {text}" for name, text in fields.items() if text)]
    )


def _stream(run: str, step: str | None, *, follow: bool) -> None:
    from codecs import getincrementaldecoder

    if step is None:
        try:
            step = get_run(run, root=root()).step
        except RunNotFound:
            if not follow:
                raise
            step = MAIN
    decoder = getincrementaldecoder("utf-8")("replace")
    for piece in tail(run, step, follow=follow, root=root()):
        if sys.stdout.isatty():
            click.echo(decoder.decode(piece), nl=False)  # sys.stdout is guarded: see `ralf_cli.terminal`
        else:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


@command("root", "json", "step")
@click.argument("run", metavar="RUN")
def retry(run: str) -> None:
    """Open RUN again: its iteration begins its first attempt, with its saved state and its answers. A step that waits
    or is paused continues at once.

    The agent itself is started by its own program, or continues there if that is waiting.
    """
    _tell(retry_run(run, given("step"), root=root()))
    say("its program continues it; start that, unless it is running")


@command("root", "json", "step")
@click.argument("run", metavar="RUN")
@click.option("--reason", metavar="TEXT", default="", help="Why; it is recorded.")
def cancel(run: str, reason: str) -> None:
    """End RUN as cancelled. A process that works at it learns this when it next saves, asks or waits.

    Its states are kept: `ralf run retry` opens it again.
    """
    _tell(cancel_run(run, given("step"), reason=reason, root=root()))


def _tell(state: RunState) -> None:
    answer(state, f"{state.run}: {_status(state)}, iteration {state.iteration:,}")
