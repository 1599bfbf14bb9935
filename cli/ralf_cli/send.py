"""`ralf send`: words to a session, a route's sessions, an agent of a loop, or a run; and those for this one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralf_cli.command import command
from ralf_cli.options import with_json, with_root

if TYPE_CHECKING:
    from ralf.project import Project


@command(short_help="Send words to a session, route, agent or run; or read yours.")
@click.argument("to", required=False)
@click.argument("text", required=False)
@click.option("--fact", "facts", multiple=True, metavar="TEXT", help="A fact that the agent has to know (repeatable).")
@click.option("--artifact", "artifacts", multiple=True, metavar="PATH", help="A file that belongs to it (repeatable).")
@click.option("--action", metavar="TEXT", default="", help="What the agent is asked to do.")
@click.option("--from", "sender", metavar="NAME", default="", help="The sender's name. Default: this agent's.")
@click.option("--wait", is_flag=True, help="Send to a name that nobody has yet.")
@click.option("--signal", metavar="NAME", help="To a run: the signal that it waits for; TEXT is its data.")
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), help="With --signal: the bytes of this file.")
@click.option("--id", "id_", metavar="ID", help="With --signal: sent twice with the same id, it counts once.")
@with_root
@with_json
def send(
    to: str | None,
    text: str | None,
    facts: tuple[str, ...],
    artifacts: tuple[str, ...],
    action: str,
    sender: str,
    wait: bool,
    signal: str | None,
    file: Path | None,
    id_: str | None,
    root: str | None,
    as_json: bool,
) -> None:
    """Send TEXT to TO: a session's id (its first 4 characters will do), a route on which sessions work, the name that a
    loop gave an agent, or with --signal a run. Without arguments, print what waits for this agent, once.

    Its next hook passes it to the agent, once, as data and with the sender's name. An agent's message has one or two
    sentences and at most 500 tokens, a fact at most 10 lines and 400 characters; one with more than that of one of the
    project's files is refused: name the file instead. A person's has at most 8,000 characters. Secrets are redacted. A
    run receives each signal once, in order, when it next waits for this name.

    \b
    Examples:
      ralf send 3f2a91 "The schema has changed: read db/schema.sql again"
      ralf send TASK-001 "The reader is done." --artifact src/reader.py --action "Review it."
      ralf send survey yes --signal approval
      ralf send

    \b
    Exit status: 0, even if nothing waits · 1 unwritable, disk full · 2 refused (the reason is given), several sessions
    are meant · 3 no such name (--wait sends all the same), no such file · 4 damaged data · 5 busy
    """
    from ralf import project as projects
    from ralf_cli.output import emit_json

    project = projects.find(root)
    if to is None:
        _receive(project, as_json=as_json)
        return
    if signal is not None:
        _signal(project, to, signal, text, file, sender, id_, wait=wait, as_json=as_json)
        return
    if file is not None or id_ is not None:
        raise click.UsageError("--file and --id are for --signal NAME")
    if text is None:
        raise click.UsageError('say what it is about: ralf send TO "TEXT"')
    sent = _sent(project, to, text, facts, artifacts, action, sender, wait=wait)
    if as_json:
        emit_json([{"to": receiver, "id": notice} for receiver, notice in sent])
    else:
        for receiver, _ in sent:
            click.echo(f"{receiver}: waits for its next hook, or until it reads its messages")


def _sent(
    project: Project,
    to: str,
    text: str,
    facts: tuple[str, ...],
    artifacts: tuple[str, ...],
    action: str,
    sender: str,
    *,
    wait: bool,
) -> list[tuple[str, str]]:
    """Leave a message to all who are meant; whose inbox each is, and its id."""
    from ralf.errors import NotFound
    from ralf_cli.person import author, is_person
    from ralf_integrations import agent_messages, inbox

    try:
        receivers = agent_messages.receivers_of(project, to, waits=wait)
    except NotFound as error:
        error.hint = f"{error.hint}; to send all the same: --wait"
        raise
    if is_person() and not (facts or artifacts or action):
        return [(one, inbox.send(project, one, text, sender=sender or "ralf send", by="user")) for one in receivers]
    made = agent_messages.compose(project, text, facts=facts, artifacts=artifacts, action=action, sender=sender)
    words, by = made.render(), author()
    return [(one, inbox.send(project, one, words, sender=made.sender, by=by)) for one in receivers]


def _receive(project: Project, *, as_json: bool) -> None:
    """Print what waits for this agent; it waits no more."""
    from ralf_cli.output import emit_json, fields_of, say
    from ralf_integrations import agent_messages, inbox

    found = agent_messages.receive(project, agent_messages.own_names())
    if as_json:
        emit_json([fields_of(one) for one in found])
    elif found:
        click.echo(inbox.listed(found), nl=False)
    else:
        say("no message waits")


# ---- signals ----


def _signal(
    project: Project,
    run: str,
    name: str,
    data: str | None,
    file: Path | None,
    by: str,
    id_: str | None,
    *,
    wait: bool,
    as_json: bool,
) -> None:
    """Send a signal to a run; `data` "-": standard input. RunNotFound for a run that is not there yet, unless it is
    meant to wait."""
    from ralf.agent import get_run, send_signal
    from ralf.errors import RunNotFound
    from ralf_cli.output import emit_json, say
    from ralf_cli.person import author
    from ralf_cli.tables import in_bytes

    if data is not None and file is not None:
        raise click.UsageError("TEXT and --file: which of them?")
    note = ""
    try:
        state = get_run(run, root=project.root)
        note = f"{run} is {state.status}" if state.ended else ""
    except RunNotFound as error:
        if not wait:
            error.hint = f"{error.hint}; to send all the same: --wait".lstrip("; ")
            raise
    sent = send_signal(run, name, _bytes(data, file), by=by, origin=author(), id=id_, root=project.root)
    if as_json:
        made: dict[str, Any] = {"id": sent.id, "name": sent.name, "size": len(sent.data), "sent": sent.sent}
        emit_json(made | {"by": sent.by, "origin": sent.origin})
    else:
        click.echo(f"{run}: signal {sent.name} sent, {in_bytes(len(sent.data))}, id {sent.id}")
    if note:
        say(f"note: {note}")


def _bytes(data: str | None, file: Path | None) -> bytes:
    """What is sent."""
    if file is not None:
        from ralf.errors import NotFound
        from ralf.storage.files import open_regular

        try:
            with open_regular(file, follow=True) as opened:
                return opened.read()
        except FileNotFoundError:
            raise NotFound(file, "no such file") from None
    if data == "-":
        return sys.stdin.buffer.read() if sys.stdin is not None else b""
    return (data or "").encode("utf-8", "surrogateescape")
