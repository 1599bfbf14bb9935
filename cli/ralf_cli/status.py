"""`ralf status`: the route, which rule chose it, and how far the next checkpoint is."""

from __future__ import annotations

import click

from ralf_cli.options import with_json, with_root


@click.command()
@click.option("--route", metavar="ROUTE", help="Look at this route. Default: the route of this session.")
@with_root
@with_json
def status(route: str | None, root: str | None, as_json: bool) -> None:
    """Show the route, which rule chose it, the last checkpoint and the tokens to the next.

    \b
    Examples:
      ralf
      ralf status --json

    \b
    Exit status: 0 · 2 refused name, bad configuration · 4 damaged data
    """
    from ralf import project as projects
    from ralf.status import status as look
    from ralf_cli.output import emit_json, fields_of

    found = look(projects.find(root), route)
    if as_json:
        emit_json(fields_of(found))
        return
    click.echo(f"project          {found.root}" + ("" if found.opted_in else "  (not opted in: ralf init)"))
    click.echo(f"route            {found.route}  ({found.rule})")
    if found.revision or found.checkpoint_count:
        last = f", last {found.last_checkpoint}" if found.last_checkpoint else ""
        click.echo(f"checkpoints      {found.checkpoint_count}{last}, revision {found.revision}")
        click.echo(f"tokens so far    {found.total_tokens_consumed:,}")
    else:
        click.echo("checkpoints      none yet")
    if found.transcript is None:
        click.echo("session          none found for this project")
    else:
        click.echo(f"session          {found.transcript}")
    if found.problem:
        click.echo(f"problem          {found.problem}")
    if found.tokens_since is not None:
        click.echo(
            f"since then       about {found.tokens_since:,} tokens; next checkpoint in about {found.tokens_to_next:,}"
        )
    if found.damage:
        from ralf_cli.main import complain

        complain(found.damage, f"ralf context show {found.route}")
        click.get_current_context().exit(4)
