"""`ralf route`: show and choose the route of this session."""

from __future__ import annotations

import shlex

import click

from ralf_cli.options import with_json, with_root


class _Route(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """`use`; for anything else the right command, and for a route's name `use` of it."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            from ralf_cli.verbs import wrong

            raise wrong(ctx, args[0], args[1:], f"ralf route use {shlex.quote(args[0])}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Route, invoke_without_command=True, short_help="Show the route that is meant; `use` chooses one.")
@with_root
@with_json
@click.pass_context
def route(ctx: click.Context, root: str | None, as_json: bool) -> None:
    """Show the route that is meant when none is given, and the rule that chose it.

    \b
    First match: BB5_ROUTE, RALF_TASK_ID, BB5_TASK_ID in the environment; the task of the loop's run that this is part
    of (RALF_RUN_DIR, RALF_RUN_ID); `ralf route use`; the git branch, unless it is the main one; a name made of the
    session's first request, by its hook; `default`. `route_by` in config.yaml leaves out the branch, the request, or
    both. On a terminal the session is the newest one of the project. A route that nobody has chosen, and that has
    nothing of the session, gives way to the one that has. Commands of `ralf context` take this route where ROUTE is
    left out, and say so.

    \b
    Examples:
      ralf route
      ralf route use TASK-001

    \b
    Exit status: 0 · 2 refused name
    """
    from ralf import project as projects
    from ralf.checkpointing.progress import meant
    from ralf_cli.output import emit_json

    if ctx.invoked_subcommand is not None:
        return
    choice = meant(projects.find(root))
    if as_json:
        emit_json({"route": choice.route, "rule": choice.rule})
    else:
        click.echo(f"{choice.route}  ({choice.rule})")


@route.command(short_help="Choose the route of this session.")
@click.argument("name")
@with_root
def use(name: str, root: str | None) -> None:
    """Choose the route of the session in which a client runs this; on a terminal, that of this project's commands.

    On a terminal it changes no session: run it in one (`! ralf route use NAME` in Claude Code), start one with
    RALF_TASK_ID=NAME, or say `--load-context NAME` in a prompt.

    \b
    Examples:
      ralf route use TASK-001

    \b
    Exit status: 0 · 1 the folder cannot be written · 2 refused name
    """
    from ralf import environment, project as projects, routing
    from ralf_cli.output import handed_over, say

    project = projects.find(root)
    name = routing.known(project, name) or name
    routing.use(project, name)
    with handed_over():
        whose = "this session" if environment.session() else "this project's commands"
        click.echo(f"{name}: the route of {whose}")
    if environment.session():
        return
    say(f"sessions keep theirs; for one of them: RALF_TASK_ID={name} claude, or ralf route use {name} within it")
