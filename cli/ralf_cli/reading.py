"""`ralf list` and `ralf show`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from ralf_cli import tables
from ralf_cli.command import command, taking, with_root_named
from ralf_cli.options import (
    Misused,
    complete_label,
    route_and_labels,
    with_json,
    with_json_alone,
    with_root,
    with_route_and_labels,
)
from ralf_cli.pager import with_pager
from ralf_cli.times import shown, with_since

if TYPE_CHECKING:
    from ralf.model import RouteContext

BRIEF_TOKENS = 2_500


_BUDGETS = (50, 100, 200, 400, 800, 1_600)  # tokens that are tried where what was given is too little


SECTIONS = {
    "goal": ("goal", "goal_origin", "began_as"),
    "work": ("handover", "active_work", "since"),
    "decisions": ("decisions", "pinned"),
    "facts": ("facts",),
    "history": ("checkpoints", "history"),
}
"""The parts of a context, and their fields in JSON."""


@command("list", short_help="List the routes, the newest checkpoint first.")
@click.option("-n", "limit", type=click.IntRange(min=1), metavar="N", help="Only the first N.")
@with_since
@click.option("--cost", is_flag=True, help="Model cost per route, as reported by the provider or estimated (~).")
@with_root
@with_pager
@with_json
@click.pass_context
def list_(
    ctx: click.Context, limit: int | None, since: str | None, cost: bool, root: str | None, as_json: bool
) -> None:
    """List the routes of this project, the newest checkpoint first. With --since, only routes in which anything was
    recorded since then. Routes without a record for `archive_days` are archived: they are not listed, read as before,
    and back with the next record.

    \b
    Examples:
      ralf list
      ralf list --since 2d
      ralf list --cost
      ralf list --json

    \b
    Exit status: 0, even without any route · 4 a route file is damaged (the others are listed)
    """
    import ralf
    from ralf import project as projects, routing
    from ralf_cli.output import emit_json, fields_of, say, table

    project = projects.find(root)
    routes = ralf.list_routes(since=since, root=root)[:limit]
    if cost:
        _list_cost([route.route for route in routes], root, as_json=as_json)
    elif as_json:
        emit_json([fields_of(route) for route in routes])
    elif routes:
        table(tables.HEADINGS, (tables.cells(route, shown(route.last_checkpoint)) for route in routes), tables.RIGHT)
    elif since:
        say(f"no route in which anything was recorded since {since}")
    else:
        say(project.nothing_here or "no routes yet; make one with: ralf checkpoint ROUTE --transcript FILE")
    if archived := routing.archived(project):
        say(f"note: routes without a record for long, which are archived and not listed: {len(archived):,}")
    if strays := routing.strays(project):
        count = len(strays)
        say(f"note: files in routes/ that no route can have, and nobody reads: {count}; see: ralf doctor --store")
    for route in routes:
        if route.damage:
            from ralf_cli.terminal import complain  # only what is wrong pays for it

            complain(route.damage, f"ralf show {route.route}")
    if any(route.damage for route in routes):
        ctx.exit(4)


def _list_cost(routes: list[str], root: str | None, *, as_json: bool) -> None:
    from ralf import project as projects
    from ralf.refining import spending
    from ralf_cli.output import emit_json, say, table

    project = projects.find(root)
    found = [(route, spending.spend_of_route(project, route)) for route in routes]
    if as_json:
        emit_json([{"route": route, **spending.as_fields(spent)} for route, spent in found])
    elif found:
        total = spending.total(spent for _, spent in found)
        table(
            ("ROUTE", "CALLS", "TOKENS", "COST", "LAST"),
            [
                (
                    route,
                    spent.calls,
                    f"{'~' if spent.estimated_tokens else ''}{spent.tokens + spent.estimated_tokens:,}",
                    f"${spent.cost_usd:.4f}" if spent.cost_usd else "-",
                    spent.failure or spent.succeeded or "-",
                )
                for route, spent in [*found, ("(all)", total)]
            ],
            right=(1, 2, 3),
        )
    else:
        say("no routes yet; make one with: ralf checkpoint ROUTE --transcript FILE")


@command(short_help="Show a route, or what stands behind one of its items.")
@with_route_and_labels("[ROUTE] [ID]")
@click.option("--max-tokens", type=click.IntRange(min=0), metavar="N", help="Hard limit: at most N o200k_base tokens.")
@click.option("--brief", is_flag=True, help=f"The short version for a fresh agent; at most {BRIEF_TOKENS:,} tokens.")
@click.option("--section", type=click.Choice([*SECTIONS]), help="Only this part.")
@click.option(
    "--at", metavar="CP", shell_complete=complete_label, help="The state right after this checkpoint, e.g. cp-002."
)
@click.option("--query", metavar="WORDS", help="Prefer content relevant to these words when space is short.")
@taking("plain")
@with_root
@with_pager
@with_json_alone
@click.pass_context
def show(
    ctx: click.Context,
    given: tuple[str, ...],
    max_tokens: int | None,
    brief: bool,
    section: str | None,
    at: str | None,
    query: str | None,
    plain: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Show the context of ROUTE: goal, current state, next steps, decisions, facts, history. With the ID of a decision
    or a checkpoint: what made it, the words with their lines, the turn, and what was said next.

    Marks open files changed or deleted since the last checkpoint, and reports work not yet checkpointed. --json gives
    the whole context, or one --section of it.

    \b
    Examples:
      ralf show
      ralf show TASK-001 --brief
      ralf show TASK-001 --max-tokens 2500
      ralf show TASK-001 --section decisions
      ralf show TASK-001 --at cp-002 --json
      ralf show TASK-001 DEC-003

    \b
    Exit status: 0 · 2 invalid name · 3 no such route, checkpoint or ID, or its evidence was pruned · 4 damaged data
    (the readable part is printed)
    """
    import ralf
    from ralf.text.frozen import replace

    route, ids = route_and_labels(ctx, given, 1)
    if ids:
        from ralf_cli import reasons
        from ralf_cli.output import handed_over

        with nullcontext() if as_json else handed_over():
            reasons.tell(route, ids[0], root, as_json=as_json)
        return
    if brief and section:
        raise click.UsageError("--brief and --section: which of them?")
    if as_json and (brief or max_tokens is not None):
        what = "--json gives the whole context, which has no budget: leave out --brief and --max-tokens"
        raise Misused(
            ctx, what, f"ralf show {route} --json, or ralf show {route} --max-tokens {max_tokens or BRIEF_TOKENS}"
        )
    if at is None:
        from ralf_integrations.stores import choosing

        context = ralf.get_context(route, root=root, query=query)
        context = replace(context, command=with_root_named(context.command, root))
        choosing.place_file(root, context.route)
        _tell_session(root, context.route)
    else:
        from ralf.route.history import context_at

        context = context_at(route, at, root=root)
    budget = max_tokens if max_tokens is not None else BRIEF_TOKENS if brief else None
    if as_json:
        from ralf_cli.output import context_as_json, emit_json

        tree = context_as_json(context)
        emit_json({key: tree[key] for key in ("route", "revision", *SECTIONS[section])} if section else tree)
    else:
        _emit_text(context, "brief" if brief else section, budget, query, plain=plain)
    if context.warnings:
        from ralf_cli.terminal import complain  # only what is wrong pays for it

        complain(context.warnings[0], context.warnings[1] if len(context.warnings) > 1 else "")
        ctx.exit(4)


def _tell_session(root: str | None, route: str) -> None:
    """Let the session whose agent reads a route before it works go on with it."""
    from ralf import environment, project as projects

    if session := environment.session():
        from ralf_cli.output import say
        from ralf_integrations.hooks import reading

        if reading.move_by_reading(projects.find(root), session, route):
            say(f"{route} is the route of this session now")


def _emit_text(
    context: RouteContext, section: str | None, budget: int | None, query: str | None, *, plain: bool
) -> None:
    """Print a context; nothing, and why on stderr, where nothing of it has room."""
    from ralf_cli import markdown
    from ralf_cli.output import is_read_by_an_agent, say

    fenced = is_read_by_an_agent()
    text = context.render(budget, query=query, section=section, fenced=fenced)
    markdown.show(text, plain=plain)
    if text or budget is None:
        return
    larger = (most for most in _BUDGETS if most > budget)
    enough = next((most for most in larger if context.render(most, query=query, section=section, fenced=fenced)), None)
    if enough is None:
        say(f"{context.route}: nothing is kept for this part")
    else:
        say(f"{context.route}: {budget} tokens are too few for a line of it: try --max-tokens {enough}")
