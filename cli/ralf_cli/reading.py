"""`ralf list` and `ralf show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import ralf
from ralf import environment, routing
from ralf.text.cleaning import clean
from ralf.text.frozen import replace
from ralf_cli import tables
from ralf_cli.command import command, handed_over, is_json, is_read_by_an_agent, project, root
from ralf_cli.options import Misused, route_and_label, with_since, with_words
from ralf_cli.output import answer, complain, emit_json, say, with_root

if TYPE_CHECKING:
    from ralf.model import RouteContext
    from ralf.route.why import Reason

BRIEF_TOKENS = 2_500

_BUDGETS = (50, 100, 200, 400, 800, 1_600)  # tokens that are tried where what was given is too little

_SHOWN = 1_200  # characters of one message that are printed

SECTIONS = {
    "goal": ("goal", "goal_origin", "began_as"),
    "work": ("handover", "active_work", "since"),
    "decisions": ("decisions", "pinned"),
    "facts": ("facts",),
    "history": ("checkpoints", "history"),
}
"""The parts of a context, and their fields in JSON."""


@command(name="list")
@click.option("-n", "limit", type=click.IntRange(min=1), metavar="N", help="Only the first N.")
@with_since
@click.pass_context
def list_(ctx: click.Context, limit: int | None, since: str | None) -> None:
    """List the routes of this project, the newest checkpoint first. With --since, only routes in which anything was
    recorded since then. Routes without a record for `archive_days` are archived: they are not listed, read as before,
    and back with the next record.
    """
    routes = ralf.list_routes(since=since, root=root())[:limit]
    if is_json() or routes:
        answer(routes, tables.listed(routes))
    elif since:
        say(f"no route in which anything was recorded since {since}")
    else:
        say(project().nothing_here or "no routes yet; make one with: ralf checkpoint ROUTE --transcript FILE")
    if archived := routing.archived(project()):
        say(f"note: routes without a record for long, which are archived and not listed: {len(archived):,}")
    if strays := routing.strays(project()):
        count = len(strays)
        say(f"note: files in routes/ that no route can have, and nobody reads: {count}; see: ralf doctor --store")
    for route in routes:
        if route.damage:
            complain(route.damage, f"ralf show {route.route}")
    if any(route.damage for route in routes):
        ctx.exit(4)


@command(is_fenced=False)
@with_words("[ROUTE] [ID]")
@click.option("--max-tokens", type=click.IntRange(min=0), metavar="N", help="Hard limit: at most N o200k_base tokens.")
@click.option("--brief", is_flag=True, help=f"The short version for a fresh agent; at most {BRIEF_TOKENS:,} tokens.")
@click.option("--section", type=click.Choice([*SECTIONS]), help="Only this part.")
@click.option("--at", metavar="CP", help="The state right after this checkpoint, e.g. cp-002.")
@click.pass_context
def show(
    ctx: click.Context,
    words: tuple[str, ...],
    max_tokens: int | None,
    brief: bool,
    section: str | None,
    at: str | None,
) -> None:
    """Show the context of ROUTE: goal, current state, next steps, decisions, facts, history. With the ID of a decision
    or a checkpoint: what made it, the words with their lines, the turn, and what was said next.

    Reports work not yet checkpointed. --json gives the whole context, or one --section of it.

    \b
    Examples:
      ralf show
      ralf show TASK-001 --brief
      ralf show TASK-001 --max-tokens 2500
      ralf show TASK-001 --section decisions
      ralf show TASK-001 --at cp-002 --json
      ralf show TASK-001 DEC-003
    """
    route, id_ = route_and_label(words)
    if id_:
        _show_reason(route, id_)
        return
    if brief and section:
        raise click.UsageError("--brief and --section: which of them?")
    if is_json() and (brief or max_tokens is not None):
        what = "--json gives the whole context, which has no budget: leave out --brief and --max-tokens"
        raise Misused(what, f"ralf show {route} --json, or ralf show {route} --max-tokens {max_tokens or BRIEF_TOKENS}")
    context = _context(route, at)
    if is_json():
        tree = context_as_json(context)
        emit_json({key: tree[key] for key in ("route", "revision", *SECTIONS[section])} if section else tree)
    else:
        budget = BRIEF_TOKENS if brief and max_tokens is None else max_tokens
        _show_text(context, "brief" if brief else section, budget)
    if context.warnings:
        complain(context.warnings[0], context.warnings[1] if len(context.warnings) > 1 else "")
        ctx.exit(4)


def _context(route: str, at: str | None) -> RouteContext:
    if at is not None:
        from ralf.route.history import context_at

        return context_at(route, at, root=root())
    from ralf_integrations.hooks import prompt_intent
    from ralf_integrations.stores import choosing

    context = ralf.get_context(route, root=root())
    context = replace(context, command=with_root(context.command))
    choosing.place_file(root(), context.route)
    session = environment.session()
    # Who reads before work goes on with it.
    if session and prompt_intent.move_by_reading(project(), session, context.route):
        say(f"{context.route} is the route of this session now")
    return context


def _show_text(context: RouteContext, section: str | None, budget: int | None) -> None:
    def rendered(most: int | None) -> str:
        return context.render(most, section=section, fenced=is_read_by_an_agent())

    text = rendered(budget)
    click.echo(text, nl=False)
    if text or budget is None:
        return
    enough = next((most for most in _BUDGETS if most > budget and rendered(most)), None)
    if enough is None:
        say(f"{context.route}: nothing is kept for this part")
    else:
        say(f"{context.route}: {budget} tokens are too few for a line of it: try --max-tokens {enough}")


def context_as_json(context: RouteContext) -> dict[str, Any]:
    """A route's context under the names of the Python API."""
    from ralf.document.tree import to_tree

    plain = "route revision agent_type created last_checkpoint checkpoint_count total_tokens_consumed goal goal_origin"
    more = "since foreign foreign_notes warnings"
    return {
        **{name: getattr(context, name) for name in (*plain.split(), "began_as")},
        "handover": to_tree(context.handover) or None,
        "decisions": [to_tree(decision) for decision in context.decisions],
        "pinned": [to_tree(pin) for pin in context.pinned],
        "active_work": to_tree(context.active_work),
        "facts": to_tree(context.facts),
        "checkpoints": [to_tree(checkpoint) for checkpoint in context.checkpoints],
        "history": context.history,
        "folded": to_tree(context.folded),
        **{name: getattr(context, name) for name in more.split()},
    }


# ---- what stands behind an item ----


def _show_reason(route: str, id_: str) -> None:
    """Print what made an item of a route. It works without the transcript; exit status 3 where evidence was pruned."""
    reason = ralf.why(route, id_, root=root())
    if is_json():
        emit_json(reason)
    else:
        with handed_over():
            _emit_reason(reason)
    if reason.evidence == "pruned":
        complain(f"{reason.route}: {reason.id}: the words behind it are not kept any more", "read them in the session")
        click.get_current_context().exit(3)


def _emit_reason(reason: Reason) -> None:
    by = f" by {reason.dropped_by}" if reason.dropped_by else ""
    status = f" [{reason.status}{by}]" if reason.status not in ("", "active") else ""
    said = ", ".join(filter(None, [reason.kind, reason.origin and f"by {reason.origin}", reason.timestamp]))
    edited = ", edited by hand since" if reason.edited else ""
    click.secho(f"{reason.route} {reason.id}{status}", bold=True, nl=False)
    click.echo(f"  {said}; {reason.recorded}{edited}".rstrip("; "))
    rejected = (f"Rejected: {option}" for option in reason.alternatives)
    for text in (reason.claim, reason.rationale and f"Because: {reason.rationale}", *rejected):
        click.echo(_indented(text), nl=False)
    source = reason.source
    if source is None:
        revision = f", revision {reason.revision}" if reason.revision else ""
        where = f"Recorded {reason.recorded}{revision}; no lines were given."
    else:
        match = {True: "the words are unchanged", False: "THE WORDS ARE NOT THOSE THAT IT WAS TAKEN FROM"}
        gone = "some of the words were forgotten" if reason.evidence == "purged" else "pruned"
        found = gone if reason.matches is None else match[reason.matches]
        lines = _lines(source.first_line, source.last_line)
        where = f"session {source.session}, {lines}, sha256 {source.sha256}: {found}"
    click.echo(f"\n{where}")
    parts = {"": reason.quotes, "The turn it stands in:": reason.turn, "The next messages:": reason.after}
    for heading, quotes in parts.items():
        for number, quote in enumerate(quotes):
            click.echo(f"\n{heading}" if heading and not number else "")
            click.secho(f"{_lines(quote.line, quote.last)}, {quote.who}:", bold=True)
            click.echo(_indented(quote.text), nl=False)


def _lines(first: int, last: int) -> str:
    return f"line {first}" if last <= first else f"lines {first}-{last}"


def _indented(text: str) -> str:
    text = clean(text)
    if (cut := len(text) - _SHOWN) > 0:
        text = f"{text[:_SHOWN].rstrip()}\n… {cut:,} characters more: --json"
    return "".join(f"  {line}\n" for line in text.strip().split("\n")) if text else ""
