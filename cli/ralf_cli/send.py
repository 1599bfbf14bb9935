"""`ralf send`: words to a session, a route's sessions, an agent of a loop, or a run; and those for this one."""

from __future__ import annotations

import sys

import click

from ralf.agent import get_run, send_signal
from ralf.errors import NotFound, RunNotFound
from ralf_cli.command import command, project
from ralf_cli.output import answer, say
from ralf_cli.person import author, is_person
from ralf_cli.tables import so_many
from ralf_integrations import agent_messages, inbox


@command()
@click.argument("to", required=False)
@click.argument("text", required=False)
@click.option("--fact", "facts", multiple=True, metavar="TEXT", help="A fact that the agent has to know (repeatable).")
@click.option("--artifact", "artifacts", multiple=True, metavar="PATH", help="A file that belongs to it (repeatable).")
@click.option("--action", metavar="TEXT", default="", help="What the agent is asked to do.")
@click.option("--from", "sender", metavar="NAME", default="", help="The sender's name. Default: this agent's.")
@click.option("--wait", is_flag=True, help="Send to a name that nobody has yet.")
@click.option("--signal", metavar="NAME", help="To a run: the signal that it waits for; TEXT is its data.")
@click.option("--id", "id_", metavar="ID", help="With --signal: sent twice with the same id, it counts once.")
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
    """Send TEXT to TO: a session's id (its first 4 characters will do), a route on which sessions work, the name that a
    loop gave an agent, or with --signal a run. Without arguments, print what waits for this agent, once.

    Its next hook passes it to the agent, once, as data and with the sender's name. An agent's message has one or two
    sentences, and names files instead of quoting them. A run receives each signal once, in order.

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
            say("no message waits")
        return
    try:
        if signal is not None:
            _signal(to, signal, text, by=sender, id_=id_, wait=wait)
            return
        if id_ is not None:
            raise click.UsageError("--id is for --signal NAME")
        if text is None:
            raise click.UsageError('say what it is about: ralf send TO "TEXT"')
        receivers = agent_messages.receivers_of(here, to, waits=wait)
    except NotFound as error:
        if not wait and error.where == to:
            error.hint = f"{error.hint}; to send all the same: --wait".lstrip("; ")
        raise
    if is_person() and not (facts or artifacts or action):
        words, sender = text, sender or "ralf send"
    else:
        made = agent_messages.compose(here, text, facts=facts, artifacts=artifacts, action=action, sender=sender)
        words, sender = made.render(), made.sender
    sent = [{"to": one, "id": inbox.send(here, one, words, sender=sender, by=author())} for one in receivers]
    answer(sent, *(f"{one}: waits for its next hook, or until it reads its messages" for one in receivers))


def _signal(run: str, name: str, text: str | None, *, by: str, id_: str | None, wait: bool) -> None:
    """Send a signal to a run; `text` "-": standard input. RunNotFound for a run that is not there yet, unless it is
    meant to wait.
    """
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
    told = f"{run}: signal {sent.name} sent, {so_many(len(data), 'byte')}, id {sent.id}"
    answer(fields | {"size": len(data)}, told)
    if note:
        say(note)
