"""`ralf run` and `ralf send`: runs of agents, their signals, and messages to sessions."""

from __future__ import annotations

import sys

import click

from ralf.agent import AgentRun, RunState, cancel_run, get_run, list_runs, retry_run, send_signal, tail
from ralf.agent.model import MAIN
from ralf.errors import NotFound, RunNotFound
from ralf_cli.command import command, given, handed_over, is_json, project, root, shared
from ralf_cli.main import LazyGroup
from ralf_cli.output import answer, complain, emit_json, fields_of, say, so_many, table
from ralf_cli.person import author, is_person
from ralf_integrations import agent_messages, inbox

_MOST = 50  # steps in a list

_STATUSES = ("running", "waiting", "paused", "lost", "completed", "failed", "dead", "cancelled")
_QUIET = ("completed", "cancelled")  # left out of a list without --all


run = LazyGroup(
    name="run",
    sections="run:show run:retry run:cancel",
    help="""List, follow and control the runs of agents.

    A run is the durable state of an agent that your program stores with `ralf.agent`: saved states, results of calls
    that must run only once, decisions, signals and output. These commands show metadata, never the content of states,
    answers and signals; only --output prints content.

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
            help="Only this step. Default: all steps; for show, the last step written.",
        )
    ],
)


@command("root", "json", "step", is_fenced=False)
@click.argument("run", required=False, metavar="[RUN]")
@click.option("--status", type=click.Choice(_STATUSES), help="Without RUN: only steps with this status.")
@click.option("--all", "all_", is_flag=True, help="Without RUN: all steps, without a limit.")
@click.option("--output", is_flag=True, help="Print the output of RUN from the beginning.")
@click.option("-f", "--follow", is_flag=True, help="Like --output, and follow new output until the step finishes.")
def show(run: str | None, status: str | None, all_: bool, output: bool, follow: bool) -> None:
    """List the steps of all runs that have not completed. With RUN, show its status, iteration, holder, saved states,
    calls, signals and last failure, or print its output.

    In a pipe, ralf prints the output byte for byte; on a terminal, ralf removes control sequences.
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
        say(f"not shown: {len(found.foreign):,} that your ralf did not write; to accept them: ralf trust")
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
    click.echo(f"{state.run}: {_status(state)}")
    fields = fields_of(state)
    fields["states"] = f"{len(saved):,} kept, the newest of {so_many(state.size, 'byte')}" if saved else ""
    for name, value in fields.items():
        if value and name not in ("run", "status", "waits_for", "term", "size"):
            click.echo(f"{name.replace('_', ' '):<13} {', '.join(value) if isinstance(value, tuple) else value}")
    name = state.run if state.step == "main" else f"{state.run} --step {state.step}"
    if state.status == "paused":
        say(f"to continue it: ralf send {state.run} --signal {state.waits_for}")
    elif state.status in ("failed", "dead", "cancelled"):
        say(f"to reopen it: ralf run retry {name}")
    elif state.status == "lost":
        say("to continue it: start its program again")


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
    """Reopen RUN: its iteration restarts at the first attempt, with its saved state and answers. A waiting or paused
    step continues immediately.

    ralf does not start the agent's program: start it yourself, unless it is still running.
    """
    _tell(retry_run(run, given("step"), root=root()))
    say("start its program, unless it is running: it continues there")


@command("root", "json", "step")
@click.argument("run", metavar="RUN")
@click.option("--reason", metavar="TEXT", default="", help="Reason to record.")
def cancel(run: str, reason: str) -> None:
    """Cancel RUN. The process of RUN stops when it next saves, asks or waits.

    ralf keeps the states; `ralf run retry` reopens RUN.
    """
    _tell(cancel_run(run, given("step"), reason=reason, root=root()))


def _tell(state: RunState) -> None:
    answer(state, f"{state.run}: {_status(state)}, iteration {state.iteration:,}")


# ---- messages ----


@command()
@click.argument("to", required=False)
@click.argument("text", required=False)
@click.option("--fact", "facts", multiple=True, metavar="TEXT", help="Fact for the agent (repeatable).")
@click.option("--artifact", "artifacts", multiple=True, metavar="PATH", help="File to read (repeatable).")
@click.option("--action", metavar="TEXT", default="", help="Action for the agent to take.")
@click.option("--from", "sender", metavar="NAME", default="", help="Sender's name. Default: this agent's name.")
@click.option("--wait", is_flag=True, help="Allow a receiver that does not exist yet.")
@click.option("--signal", metavar="NAME", help="Send this signal to the run that awaits it, with TEXT as data.")
@click.option("--id", "id_", metavar="ID", help="With --signal: id; ralf ignores a second signal with this id.")
def send(
    to: str | None,
    text: str | None,
    facts: tuple[str, ...],
    artifacts: tuple[str, ...],
    action: str,
    sender: str,
    wait: bool,
    signal: str | None,
    id_: str | None,
) -> None:
    """Send TEXT to TO: a session id (the first 4 characters suffice), a route with working sessions, the name of a
    loop's agent, or, with --signal, a run. Without arguments, print this agent's new messages.

    The receiver's next hook passes the message to its agent once, as data with the sender's name. An agent's message
    has one or two sentences, and names files instead of quoting them. A run receives each signal once, in order.

    \b
    Examples:
      ralf send 3f2a91 "The schema has changed: read db/schema.sql again"
      ralf send TASK-001 "The reader is done." --artifact src/reader.py --action "Review it."
      ralf send survey yes --signal approval
      ralf send
    """
    here = project()
    if to is None:
        found = agent_messages.receive(here, agent_messages.own_names())
        answer(found, *([inbox.listed(found)] if found else []))
        if not found:
            say("no new message")
        return
    try:
        if signal is not None:
            _signal(to, signal, text, by=sender, id_=id_, wait=wait)
            return
        if id_ is not None:
            raise click.UsageError("--id requires --signal NAME")
        if text is None:
            raise click.UsageError('the message has no text: ralf send TO "TEXT"')
        receivers = agent_messages.receivers_of(here, to, waits=wait)
    except NotFound as error:
        if not wait and error.where == to:
            error.hint = f"{error.hint}; to send it anyway: --wait".lstrip("; ")
        raise
    if is_person() and not (facts or artifacts or action):
        words, sender = text, sender or "ralf send"
    else:
        made = agent_messages.compose(here, text, facts=facts, artifacts=artifacts, action=action, sender=sender)
        words, sender = made.text, made.sender
    sent = [{"to": one, "id": inbox.send(here, one, words, sender=sender, by=author())} for one in receivers]
    answer(sent, *(f"{one}: delivered by its next hook, or when it reads its messages" for one in receivers))


def _signal(run: str, name: str, text: str | None, *, by: str, id_: str | None, wait: bool) -> None:
    """Send a signal to a run; `text` "-": standard input; `wait`: even if the run does not exist yet."""
    root = project().root
    note = ""
    try:
        state = get_run(run, root=root)
        note = f"note: {run} is {state.status}" if state.ended else ""
    except RunNotFound:
        if not wait:
            raise
    is_piped = text == "-" and sys.stdin is not None
    data = sys.stdin.buffer.read() if is_piped else (text or "").encode("utf-8", "surrogateescape")
    sent = send_signal(run, name, data, by=by, origin=author(), id=id_, root=root)
    fields = {field: getattr(sent, field) for field in ("id", "name", "sent", "by", "origin")}
    text = f"{run}: signal {sent.name} sent, {so_many(len(data), 'byte')}, id {sent.id}"
    answer(fields | {"size": len(data)}, text)
    if note:
        say(note)
