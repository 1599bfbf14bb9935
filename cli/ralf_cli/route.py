"""`ralf route`: show, choose, close and rename routes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from ralf_cli.options import complete_route, with_json, with_new, with_root, with_route

if TYPE_CHECKING:
    from ralf.maintenance.renaming import Moved


class _Route(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """`use`; for anything else the right command, and for a route's name `use` of it."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            from ralf_cli.verbs import wrong

            raise wrong(ctx, args[0], args[1:], f"ralf route use {shlex.quote(args[0])}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Route, invoke_without_command=True, short_help="Show or set the current route; rename.")
@with_root
@with_json
@click.pass_context
def route(ctx: click.Context, root: str | None, as_json: bool) -> None:
    """Show the current route (the default for commands that take a ROUTE) and the rule that chose it.

    \b
    First match: BB5_ROUTE, RALF_TASK_ID, BB5_TASK_ID in the environment; the task of the loop's current run
    (RALF_RUN_DIR, RALF_RUN_ID); `ralf route use`; the route that the session's first prompt has given it: the one
    that it names, else that of the git branch, unless it is the main one, else a new one named after it; `default`.
    `route_by` in config.yaml disables the branch, the new name, or both. On a terminal the session is the project's
    newest one. If the session already has checkpoints in a route, that route takes precedence over one that was not
    chosen explicitly. Commands use this route if ROUTE is omitted, and print its name; a person's commands use the
    only route there is, if none is current.

    \b
    Examples:
      ralf route
      ralf route use TASK-001
      ralf route rename TASK-001 api-refactoring

    \b
    Exit status: 0 · 2 invalid name
    """
    from ralf import environment, project as projects, routing
    from ralf.checkpointing.progress import meant
    from ralf_cli.output import emit_json, say

    if ctx.invoked_subcommand is not None:
        return
    project = projects.find(root)
    choice = meant(project)
    if as_json:
        emit_json({"route": choice.route, "rule": choice.rule})
    else:
        click.echo(f"{choice.route}  ({choice.rule})")
        names = () if environment.is_agent() or choice.rule != routing.DEFAULT else routing.names_of(project)
        if len(names) == 1 and names[0] != choice.route:
            only = names[0]
            say(f"commands that name no route use the only one: {only}; to make it current: ralf route use {only}")


@route.command(short_help="Set the route of this session.")
@click.argument("name", shell_complete=complete_route)
@with_new
@with_root
def use(name: str, is_new: bool, root: str | None) -> None:
    """Set the route of the session that runs this command; on a terminal, the route that this project's commands
    use.

    Running it in a terminal does not affect agent sessions, and an agent's session never changes a terminal's route; to
    choose one for a session, run it in the session (`! ralf route use NAME` in Claude Code), start the session with
    RALF_TASK_ID=NAME, or begin it with `--load-context NAME`. A name that is one or two letters away from an existing
    one is refused, unless --new says that it is meant.

    \b
    Examples:
      ralf route use TASK-001

    \b
    Exit status: 0 · 1 the folder cannot be written · 2 invalid name, or one that is nearly an existing one's
    """
    from ralf import environment, project as projects, routing
    from ralf.errors import UsageError
    from ralf_cli.output import handed_over, say
    from ralf_integrations.mcp import caller

    project = projects.find(root)
    name = routing.known(project, name) or routing.check_typed(project, name, is_new=is_new)
    session = caller.session(project) if environment.is_agent() else ""
    if environment.is_agent() and not session:
        what = "your client does not say which session this is, and the terminal's route is not yours to change"
        raise UsageError(name, what, f"name the route in each command, or start the client with RALF_TASK_ID={name}")
    routing.use(project, name, session=session or None)
    with handed_over():
        whose = "this session" if session else "this project's commands"
        click.echo(f"{name}: the route of {whose}")
    if session:
        return
    say(f"sessions keep theirs; for one of them: RALF_TASK_ID={name} claude, or ralf route use {name} within it")


@route.command(short_help="Close a route: it is unfinished no more.")
@with_route()
@with_root
def close(route: str, root: str | None) -> None:
    """Close ROUTE: no session is told any more that it is unfinished. Its next record opens it. A route whose task is
    done is closed, too, and one in which nothing was recorded for 30 days.

    \b
    Examples:
      ralf route close TASK-001

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name · 3 no such route · 4 damaged data · 5 busy
    """
    import ralf
    from ralf_cli.output import handed_over

    ralf.close_route(route, root=root)
    with handed_over():
        click.echo(f"{route}: closed; its next record opens it")


@route.command(short_help="Give a route another name.")
@click.argument("old", shell_complete=complete_route)
@click.argument("new")
@click.option("--because", metavar="WHY", default="", help="The reason; recorded.")
@with_root
@with_json
@click.pass_context
def rename(ctx: click.Context, old: str, new: str, because: str, root: str | None, as_json: bool) -> None:
    """Rename the route OLD to NEW. Its earlier name still finds it: sessions, tasks and git branches called OLD mean
    NEW from now on.

    The rename is a record of the route. One that is interrupted loses nothing: type it again, and it is completed.

    \b
    Examples:
      ralf route rename TASK-001 api-refactoring

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name or one that is taken, content not accepted ·
    3 no such route · 4 damaged data · 5 busy
    """
    from ralf.maintenance.renaming import rename_route

    _tell(ctx, rename_route(old, new, because=because, root=root), "renamed to", as_json=as_json)


def _tell(ctx: click.Context, done: Moved, what: str, *, as_json: bool) -> None:
    from ralf_cli.output import emit_json, fields_of, say
    from ralf_cli.terminal import complain

    for warning in done.warnings:
        say(f"warning: {warning}")
    if as_json:
        emit_json(fields_of(done))
    elif done.changed:
        click.echo(f"{done.old}: {what} {done.new}, revision {done.revision}")
    else:
        click.echo(f"{done.old}: is called {done.new} already, revision {done.revision}")
    if done.damage:
        complain(done.damage, "the journal has it; mend the file, and the next write shows it")
        ctx.exit(4)
