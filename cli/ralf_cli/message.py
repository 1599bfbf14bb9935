"""`ralf message`: a message to another agent, or those that wait for this one."""

from __future__ import annotations

import click

from ralf_cli.command import command
from ralf_cli.options import with_json, with_root


@command(short_help="Send a message to another agent, or read yours.")
@click.argument("agent", required=False)
@click.argument("summary", required=False)
@click.option("--fact", "facts", multiple=True, metavar="TEXT", help="A fact that the agent has to know (repeatable).")
@click.option("--artifact", "artifacts", multiple=True, metavar="PATH", help="A file that belongs to it (repeatable).")
@click.option("--action", metavar="TEXT", default="", help="What the agent is asked to do.")
@click.option("--from", "sender", metavar="NAME", default="", help="The sender's name. Default: this agent's.")
@with_root
@with_json
def message(
    agent: str | None,
    summary: str | None,
    facts: tuple[str, ...],
    artifacts: tuple[str, ...],
    action: str,
    sender: str,
    root: str | None,
    as_json: bool,
) -> None:
    """Send AGENT a message: SUMMARY is one or two sentences. AGENT is a session's id (its first 4 characters will do),
    a route on which one session works, or the name that a loop gave an agent.

    Its next hook passes the message to the agent, once. A message has at most 500 tokens, a fact at most 10 lines and
    400 characters. A message with more than that of one of the project's files is refused: name the file instead.
    Secrets are redacted. Without AGENT, the messages that wait for this agent are printed, once.

    \b
    Examples:
      ralf message 3f2a91 "The reader is done." --artifact src/reader.py --action "Review it."
      ralf message TASK-001 "The schema changed." --fact "tide_level is NOT NULL now" --artifact db/schema.sql
      ralf message

    \b
    Exit status: 0, even if nothing waits · 1 unwritable, disk full · 2 refused (the reason is given), several agents
    are meant · 4 damaged data · 5 busy
    """
    from ralf import project as projects
    from ralf_cli.output import emit_json, fields_of, say
    from ralf_cli.person import author
    from ralf_integrations import agent_messages

    project = projects.find(root)
    if agent is None:
        found = agent_messages.receive(project, agent_messages.own_names())
        if as_json:
            emit_json([fields_of(one) for one in found])
        elif found:
            for one in found:
                click.echo(f"from {one.origin}, {one.sent}:\n{one.text}")
        else:
            say("no message waits")
        return
    if summary is None:
        raise click.UsageError('say what it is about: ralf message AGENT "SUMMARY"')
    made = agent_messages.compose(project, summary, facts=facts, artifacts=artifacts, action=action, sender=sender)
    receiver, id_ = agent_messages.send(project, agent, made, by=author())
    if as_json:
        emit_json({"to": receiver, "id": id_, **fields_of(made)})
    else:
        click.echo(f"{receiver}: waits for its next hook, or until it reads its messages")
