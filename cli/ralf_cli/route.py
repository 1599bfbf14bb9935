"""`ralf route`: show or choose the current route; rename or close one."""

from __future__ import annotations

import click

import ralf
from ralf import environment, routing
from ralf.checkpointing.progress import meant
from ralf.errors import UsageError
from ralf.maintenance.renaming import rename_route
from ralf_cli.command import command, is_json, project, root
from ralf_cli.options import called_now, route_argument, with_new
from ralf_cli.output import answer, check_shown, say, warn
from ralf_cli.person import author


@command()
@route_argument("name")
@click.option("--rename", "new", metavar="NEW", help="Rename ROUTE; its old name still works.")
@click.option("--close", is_flag=True, help="Close ROUTE; sessions no longer treat it as unfinished.")
@click.option("--because", metavar="WHY", default="", help="With --rename: reason to record.")
@with_new
def route(name: str | None, new: str | None, close: bool, because: str, is_new: bool) -> None:
    """Show the current route (the default for commands that take a ROUTE) and the rule that selected it. With ROUTE,
    make ROUTE current for this session or, at a terminal, for this project's commands.

    \b
    The first match selects the route:
      1. BB5_ROUTE, RALF_TASK_ID, BB5_TASK_ID in the environment; the task of RALF_RUN_DIR or RALF_RUN_ID
      2. `ralf route NAME`
      3. the route that the session's first prompt names
      4. the route of the git branch, except the main branch
      5. a new route, named after the prompt
      6. `default`

    `route_by` in config.yaml disables rule 4, rule 5, or both. If the session already has checkpoints in a route, that
    route takes precedence over a route that was not chosen explicitly.

    A choice at a terminal does not affect agents' sessions, and vice versa. Choose within the session
    (`! ralf route NAME` in Claude Code), or start the session with RALF_TASK_ID=NAME.
    """
    if name is None:
        if new is not None or close:
            raise click.UsageError("name the ROUTE")
        _show()
    elif new is not None:
        _rename(name, new, because)
    elif close:
        ralf.close_route(name, root=root())
        found = called_now(name)
        answer({"route": found, "closed": True}, f"{found}: closed; its next record reopens it")
    else:
        _use(name, is_new=is_new)


def _show() -> None:
    choice = meant(project())
    answer({"route": choice.route, "rule": choice.rule}, f"{choice.route}  ({choice.rule})")
    is_persons = not environment.is_agent() and choice.rule == routing.DEFAULT
    names = routing.names_of(project()) if is_persons and not is_json() else ()
    if len(names) == 1 and names[0] != choice.route:
        only = names[0]
        say(f"commands without ROUTE use the only one, {only}; to make it current: ralf route {only}")


def _use(name: str, *, is_new: bool) -> None:
    from ralf_integrations.mcp import caller

    here = project()
    found = routing.known(here, name)
    name = found or routing.check_typed(here, name, is_new=is_new)
    session = caller.session(here) if environment.is_agent() else ""
    if environment.is_agent() and not session:
        what = "your client does not name its session, and an agent cannot change the terminal's route"
        raise UsageError(name, what, f"name the route in each command, or start the client with RALF_TASK_ID={name}")
    routing.use(here, name, session=session or None)
    how = "" if found else "; its first record creates it"
    whose = "this session" if session else "this project's commands"
    answer({"route": name, "session": session}, f"{name}: the route of {whose}{how}")
    if not session:
        say(f"sessions keep their routes; for one session: RALF_TASK_ID={name} claude, or ralf route {name} within it")


def _rename(old: str, new: str, because: str) -> None:
    done = rename_route(old, new, because=because, by=author(), root=root())
    warn(done.warnings)
    what = f"renamed to {done.new}" if done.changed else f"is called {done.new} already"
    answer(done, f"{done.old}: {what}, revision {done.revision}")
    check_shown(done.damage)
