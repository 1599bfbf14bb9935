"""`ralf route`: show and choose the route of this session."""

from __future__ import annotations

import click

from ralf_cli.options import with_json, with_root


@click.group(invoke_without_command=True)
@with_root
@with_json
@click.pass_context
def route(ctx: click.Context, root: str | None, as_json: bool) -> None:
    """Show the route that is meant when none is given, and the rule that chose it.

    \b
    First match: BB5_ROUTE, RALF_TASK_ID, BB5_TASK_ID in the environment; `ralf route use`; the git branch, unless it is
    the main one; a name made of the session's first request, by its hook; `default`. `route_by` in config.yaml leaves
    out the branch, the request, or both.

    \b
    Examples:
      ralf route
      ralf route use TASK-001

    \b
    Exit status: 0 · 2 refused name
    """
    from ralf import project as projects, routing
    from ralf_cli.output import emit_json

    if ctx.invoked_subcommand is not None:
        return
    choice = routing.choose(projects.find(root))
    if as_json:
        emit_json({"route": choice.route, "rule": choice.rule})
    else:
        click.echo(f"{choice.route}  ({choice.rule})")


@route.command()
@click.argument("name")
@with_root
def use(name: str, root: str | None) -> None:
    """Choose the route of this session; of this project where the client names no session.

    \b
    Examples:
      ralf route use TASK-001

    \b
    Exit status: 0 · 1 the folder cannot be written · 2 refused name
    """
    from ralf import project as projects, routing

    project = projects.find(root)
    routing.use(project, routing.known(project, name) or name)
    click.echo(f"{name}: the route of this session")
