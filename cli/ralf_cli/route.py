"""`ralf route`: show, choose, close and rename routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ralf_cli.command import command
from ralf_cli.options import called_now, complete_route, with_json, with_new, with_root

if TYPE_CHECKING:
    from ralf.project import Project


@command(short_help="Show or choose the current route; rename or close one.")
@click.argument("name", required=False, metavar="[ROUTE]", shell_complete=complete_route)
@click.option("--rename", "new", metavar="NEW", help="Give ROUTE another name; its earlier one still finds it.")
@click.option("--close", is_flag=True, help="Close ROUTE: no session is told any more that it is unfinished.")
@click.option("--because", metavar="WHY", default="", help="With --rename: the reason; recorded.")
@with_new
@with_root
@with_json
@click.pass_context
def route(
    ctx: click.Context,
    name: str | None,
    new: str | None,
    close: bool,
    because: str,
    is_new: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Show the current route (the default for commands that take a ROUTE) and the rule that chose it. With ROUTE: make
    it the route of the session that runs this command, on a terminal that of this project's commands.

    \b
    First match: BB5_ROUTE, RALF_TASK_ID, BB5_TASK_ID in the environment; the task of the loop's current run
    (RALF_RUN_DIR, RALF_RUN_ID); `ralf route NAME`; the route that the session's first prompt has given it: the one
    that it names, else that of the git branch, unless it is the main one, else a new one named after it; `default`.
    `route_by` in config.yaml disables the branch, the new name, or both. If the session already has checkpoints in a
    route, that route takes precedence over one that was not chosen explicitly. Commands use this route if ROUTE is
    omitted, and print its name; a person's commands use the only route there is, if none is current.

    A choice in a terminal does not affect agent sessions, nor theirs a terminal: choose within the session
    (`! ralf route NAME` in Claude Code), start it with RALF_TASK_ID=NAME, or begin it with `--load-context NAME`. A
    route that is closed, whose task is done, or in which nothing was recorded for 30 days is not called unfinished;
    the next record opens it. A rename that is interrupted loses nothing: type it again.

    \b
    Examples:
      ralf route
      ralf route TASK-001
      ralf route TASK-001 --rename api-refactoring
      ralf route TASK-001 --close

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 invalid name, one that is taken, nearly an existing one's (--new) or
    unknown · 3 no such route · 4 damaged data · 5 busy
    """
    from ralf import project as projects

    project = projects.find(root)
    if name is None:
        if new is not None or close:
            raise click.UsageError("name the ROUTE")
        _show(project, as_json=as_json)
    elif new is not None:
        _rename(ctx, name, new, because, root, as_json=as_json)
    elif close:
        import ralf

        ralf.close_route(name, root=root)
        click.echo(f"{called_now(root, name)}: closed; its next record opens it")
    else:
        _use(project, name, is_new=is_new)


def _show(project: Project, *, as_json: bool) -> None:
    from ralf import environment, routing
    from ralf.checkpointing.progress import meant
    from ralf_cli.output import emit_json, say

    choice = meant(project)
    if as_json:
        emit_json({"route": choice.route, "rule": choice.rule})
        return
    click.echo(f"{choice.route}  ({choice.rule})")
    names = () if environment.is_agent() or choice.rule != routing.DEFAULT else routing.names_of(project)
    if len(names) == 1 and names[0] != choice.route:
        only = names[0]
        say(f"commands that name no route use the only one: {only}; to make it current: ralf route {only}")


def _use(project: Project, name: str, *, is_new: bool) -> None:
    from ralf import environment, routing
    from ralf.errors import UsageError
    from ralf_cli.output import say
    from ralf_integrations.mcp import caller

    found = routing.known(project, name)
    name = found or routing.check_typed(project, name, is_new=is_new)
    session = caller.session(project) if environment.is_agent() else ""
    if environment.is_agent() and not session:
        what = "your client does not say which session this is, and the terminal's route is not yours to change"
        raise UsageError(name, what, f"name the route in each command, or start the client with RALF_TASK_ID={name}")
    routing.use(project, name, session=session or None)
    whose = "this session" if session else "this project's commands"
    click.echo(f"{name}: the route of {whose}{'' if found else ', a new one: its first record makes it'}")
    if not session:
        say(f"sessions keep theirs; for one of them: RALF_TASK_ID={name} claude, or ralf route {name} within it")


def _rename(ctx: click.Context, old: str, new: str, because: str, root: str | None, *, as_json: bool) -> None:
    from ralf.maintenance.renaming import rename_route
    from ralf_cli.output import emit_json, fields_of, warn
    from ralf_cli.person import author
    from ralf_cli.terminal import complain

    done = rename_route(old, new, because=because, by=author(), root=root)
    warn(done.warnings)
    if as_json:
        emit_json(fields_of(done))
    else:
        what = "renamed to" if done.changed else "is called"
        click.echo(f"{done.old}: {what} {done.new}{'' if done.changed else ' already'}, revision {done.revision}")
    if done.damage:
        complain(done.damage, "the journal has it; mend the file, and the next write shows it")
        ctx.exit(4)
