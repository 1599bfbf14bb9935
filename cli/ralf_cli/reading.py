"""`ralf list` and `ralf show`."""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from ralf_cli import tables
from ralf_cli.options import with_json, with_json_alone, with_plain, with_root, with_route
from ralf_cli.pager import with_pager
from ralf_cli.times import shown, with_since

if TYPE_CHECKING:
    from ralf.model import RouteContext

BRIEF_TOKENS = 2_500


_BUDGETS = (50, 100, 200, 400, 800, 1_600)  # tokens that are tried where what was given is too little


_ENOUGH = 200


SECTIONS = ("goal", "work", "decisions", "facts", "history")


@click.command("list", short_help="List the routes, the newest checkpoint first.")
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
    recorded since then.

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
        say("no routes yet; make one with: ralf context checkpoint ROUTE --transcript FILE")
    if strays := routing.strays(projects.find(root)):
        count = len(strays)
        say(f"note: files in routes/ that no route can have, and nobody reads: {count}; see: ralf context verify")
    for route in routes:
        if route.damage:
            from ralf_cli.terminal import complain  # only what is wrong pays for it

            complain(route.damage, f"ralf context show {route.route}")
    if any(route.damage for route in routes):
        ctx.exit(4)


def _list_cost(routes: list[str], root: str | None, *, as_json: bool) -> None:
    from ralf import project as projects
    from ralf.refining import local_config
    from ralf_cli.output import emit_json, say, table

    project = projects.find(root)
    found = [(route, local_config.spend_of_route(project, route)) for route in routes]
    if as_json:
        emit_json([{"route": route, **local_config.as_fields(spent)} for route, spent in found])
    elif found:
        total = local_config.total((spent for _, spent in found), local_config.now()[:10])
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
        say("no routes yet; make one with: ralf context checkpoint ROUTE --transcript FILE")


@click.command(short_help="Show the context of a route.")
@with_route()
@click.option("--max-tokens", type=click.IntRange(min=0), metavar="N", help="Hard limit: at most N o200k_base tokens.")
@click.option("--brief", is_flag=True, help=f"The short version for a fresh agent; at most {BRIEF_TOKENS:,} tokens.")
@click.option("--section", type=click.Choice(SECTIONS), help="Only this part.")
@click.option("--at", metavar="CP", help="The state right after this checkpoint, e.g. cp-002.")
@click.option("--loss", is_flag=True, help="What each checkpoint kept, merged or dropped, and where to find it.")
@click.option("--query", metavar="WORDS", help="Prefer content relevant to these words when space is short.")
@with_plain
@with_root
@with_pager
@with_json_alone
def show(
    route: str,
    max_tokens: int | None,
    brief: bool,
    section: str | None,
    at: str | None,
    loss: bool,
    query: str | None,
    plain: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Show the context of ROUTE: goal, current state, next steps, decisions, facts, history.

    Marks open files changed or deleted since the last checkpoint, and reports work not yet checkpointed. --json
    respects --section, --brief and --max-tokens; `left_out` counts the omitted items.

    \b
    Examples:
      ralf show
      ralf show TASK-001 --brief
      ralf show TASK-001 --max-tokens 2500
      ralf show TASK-001 --section decisions
      ralf show TASK-001 --at cp-002 --json
      ralf show TASK-001 --loss

    \b
    Exit status: 0 · 2 invalid name · 3 no such route or checkpoint · 4 damaged data (the readable part is printed)
    """
    import ralf

    if loss:
        from ralf.proof.loss import loss_reports
        from ralf_cli.output import emit_json, emit_losses, handed_over, loss_as_json

        reports = loss_reports(route, at=at, root=root)
        if as_json:
            emit_json([loss_as_json(report) for report in reports])
        else:
            with handed_over():
                emit_losses(reports)
        return
    if brief and section:
        raise click.UsageError("--brief and --section: which of them?")
    if at is None:
        from ralf_integrations.stores import beside

        context = ralf.get_context(route, root=root, query=query)
        beside.place_file(root, context.route)
    else:
        from ralf.route.history import context_at

        context = context_at(route, at, root=root)
    budget = max_tokens if max_tokens is not None else BRIEF_TOKENS if brief else None
    if as_json:
        _emit_as_json(context, section, budget, brief=brief)
    else:
        _emit_text(context, "brief" if brief else section, budget, query, plain=plain)
    if context.warnings:
        from ralf_cli.terminal import complain  # only what is wrong pays for it

        complain(context.warnings[0], context.warnings[1] if len(context.warnings) > 1 else "")
        click.get_current_context().exit(4)


def _emit_as_json(context: RouteContext, section: str | None, budget: int | None, *, brief: bool) -> None:
    from ralf_cli.output import context_as_json, say

    tree = _narrowed(context_as_json(context), section=section, brief=brief, max_tokens=budget)
    if not tree:
        say(f"{context.route}: {budget} tokens are too few for JSON of it: try --max-tokens {_ENOUGH}")
    click.echo(_printed(tree))


def _emit_text(
    context: RouteContext, section: str | None, budget: int | None, query: str | None, *, plain: bool
) -> None:
    """Print a context; nothing, and why on stderr, where nothing of it has room."""
    from ralf_cli import markdown
    from ralf_cli.output import say

    fenced = not sys.stdout.isatty()  # in a pipe: an agent
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


_ALWAYS = ("route", "revision")


_OF_SECTION = {
    "goal": ("goal", "goal_origin", "began_as"),
    "work": ("handover", "active_work", "unresolved", "since"),
    "decisions": ("decisions",),
    "facts": ("facts",),
    "history": ("checkpoints", "history"),
}


_NOT_BRIEF = ("checkpoints", "history", "facts", "folded")


_HEADING = "\n### "


_Unit = tuple[tuple[str, ...], int]
"""An item that can go: the keys that lead to its list, or to a section of the history, and its number there."""


def _narrowed(tree: Mapping[str, Any], *, section: str | None, brief: bool, max_tokens: int | None) -> dict[str, Any]:
    """The keys of a context's tree (`output.context_as_json`) that are asked for, in at most so many tokens.

    section     the keys that this part of the text is made of, beside route and revision
    brief       without history and facts
    max_tokens  o200k_base tokens of what is printed. What matters least goes first, as in the text: history, facts,
                retired decisions, then active ones, work, rules, at last the goal. `left_out` says how many of each

    {} where not even route and revision have room.
    """
    kept = dict(tree)
    if section is not None:
        kept = {key: tree[key] for key in (*_ALWAYS, *_OF_SECTION[section])}
    elif brief:
        kept = {key: value for key, value in tree.items() if key not in _NOT_BRIEF}
    return kept if max_tokens is None else _within(kept, max_tokens)


def _printed(tree: Mapping[str, Any]) -> str:
    """A tree as it is printed."""
    return json.dumps(tree, ensure_ascii=False, indent=2, default=str)


def _within(tree: dict[str, Any], most: int) -> dict[str, Any]:
    from ralf.text import tokens

    def fits(made: Mapping[str, Any]) -> bool:
        return tokens.count(_printed(made)) <= most

    if fits(tree):
        return tree
    units = list(_units(tree))
    least, all_ = 1, len(units)
    while least < all_:
        middle = (least + all_) // 2
        if fits(_without(tree, units[:middle])):
            all_ = middle
        else:
            least = middle + 1
    made = _without(tree, units[:least])
    if fits(made):
        return made
    bare = {key: tree[key] for key in _ALWAYS} | {"left_out": {"items": len(units)}}
    return bare if fits(bare) else {}


_LAST = ("since", "folded", "unresolved", "began_as", "active_work", "handover", "goal_origin", "goal")
"""What is taken out as a whole, the goal last."""


def _units(tree: Mapping[str, Any]) -> Iterator[_Unit]:
    """What can go, in the order in which it goes; of each list the oldest item first."""
    yield from ((("history",), number) for number in range(_sections(tree.get("history", "")), 0, -1))
    facts = tree.get("facts", {})
    for key in sorted(facts, key=lambda key: key == "requests"):
        if isinstance(facts[key], list):
            yield from ((("facts", key), number) for number in range(len(facts[key])))
    for key in ("checkpoints", "foreign_notes"):
        yield from (((key,), number) for number in range(len(tree.get(key, ()))))
    ranks = [_rank(item) for item in tree.get("decisions", ())]
    for rank in (0, 1):
        yield from ((("decisions",), number) for number, found in enumerate(ranks) if found == rank)
    work = tree.get("active_work", {})
    for key, value in work.items():
        if isinstance(value, list):
            yield from ((("active_work", key), number) for number in range(len(value)))
    handover = tree.get("handover") or {}
    for key in ("inferred", "done", "names", "questions", "next"):
        yield from ((("handover", key), number) for number in reversed(range(len(handover.get(key, ())))))
    yield from ((("decisions",), number) for number, found in enumerate(ranks) if found > 1)
    yield from (((key,), -1) for key in _LAST if tree.get(key))


def _rank(decision: Mapping[str, Any]) -> int:
    """How long a decision stays: retired 0, active 1, a rule 2."""
    if decision.get("status", "active") != "active":
        return 0
    return 2 if decision.get("pinned") or decision.get("kind") == "rule" else 1


def _without(tree: Mapping[str, Any], units: list[_Unit]) -> dict[str, Any]:
    """The tree without units, and how many of each key they were."""
    gone: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    for keys, number in units:
        gone[keys].add(number)
    made = dict(tree)
    for keys, numbers in gone.items():
        value = tree[keys[0]]
        if keys == ("history",):
            made["history"] = _HEADING.join(value.split(_HEADING)[: _sections(value) - len(numbers)])
        elif -1 in numbers:
            made[keys[0]] = type(value)()
        elif len(keys) == 1:
            made[keys[0]] = [item for number, item in enumerate(value) if number not in numbers]
        elif not isinstance(made[keys[0]], dict) or made[keys[0]]:
            items = value[keys[1]]
            made[keys[0]] = made[keys[0]] | {keys[1]: [one for n, one in enumerate(items) if n not in numbers]}
    left = Counter(keys[0] for keys, _ in units)
    return made | {"left_out": dict(sorted(left.items()))}


def _sections(history: str) -> int:
    return len(history.split(_HEADING)) if history else 0
