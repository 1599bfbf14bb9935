"""`ralf nudge`: leave a notice to a session, which its next hook hands over."""

from __future__ import annotations

import click

from ralf_cli.options import with_json, with_root

_LEAST = 4  # characters of a session's id by which it is told from others


@click.command(short_help="Send a notice to a running session.")
@click.argument("text")
@click.option("--session", metavar="ID", help="The session's id, or at least its first 4 characters.")
@click.option("--route", metavar="ROUTE", help="All running sessions that work on this route.")
@click.option("--from", "sender", metavar="NAME", default="ralf nudge", show_default=True, help="The sender's name.")
@with_root
@with_json
def nudge(text: str, session: str | None, route: str | None, sender: str, root: str | None, as_json: bool) -> None:
    """Send the notice TEXT to a session: its next hook passes it to the agent, once.

    It is delivered inside the "data, not instructions" fence, with the sender's name. At most 8,000 characters;
    secrets are redacted.

    \b
    Examples:
      ralf health
      ralf nudge "The schema has changed: read db/schema.sql again" --session 3f2a91
      ralf nudge "Release at noon: finish the step and hand over" --route TASK-001

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 no session or route named, invalid name, no text, too long ·
    3 no such session, none on the route · 5 busy
    """
    from ralf import project as projects
    from ralf_cli.output import emit_json
    from ralf_integrations import inbox

    if session is None and route is None:
        raise click.UsageError("name the session or the route: --session ID, --route ROUTE")
    if session is not None and route is not None:
        raise click.UsageError("name the session or the route, not both")
    project = projects.find(root)
    found = _sessions(session, route, root)
    sent = [{"session": one, "id": inbox.send(project, one, text, sender=sender)} for one in found]
    if as_json:
        emit_json(sent)
    else:
        for one in sent:
            click.echo(f"{one['session']}: waits for its next hook")


def _sessions(named: str | None, route: str | None, root: str | None) -> list[str]:
    """The ids of the sessions that are meant."""
    from ralf.errors import NotFound, UsageError
    from ralf_integrations.health.look import known_ids, look

    if route is not None:
        going = [one for one in look(route=route, root=root).sessions if one.state not in ("ended", "killed")]
        if not going:
            raise NotFound(route, "no session works on it", "ralf health")
        return [one.session for one in going]
    known = known_ids(root)
    if named in known:
        return [str(named)]
    if len(str(named)) < _LEAST:
        raise UsageError(
            str(named) or '""', f"is too short for a session: {_LEAST} characters of its id", "ralf health"
        )
    found = [one for one in known if one.startswith(str(named))]
    if len(found) > 1:
        raise UsageError(
            str(named), f"begins {len(found)} sessions' ids: {', '.join(sorted(found)[:5])}", "ralf health"
        )
    if not found:
        raise NotFound(str(named), "no such session of this project", "ralf health --all")
    return found
