"""`ralf list`, `ralf show` and `ralf search`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

import ralf
from ralf import environment, routing
from ralf.errors import UsageError
from ralf.text.cleaning import clean
from ralf.text.frozen import replace
from ralf_cli.command import command, handed_over, is_json, is_read_by_an_agent, project, root
from ralf_cli.options import Misused, complete_route, route_and_label, with_since, with_words
from ralf_cli.output import complain, emit_json, in_brief, say, table, with_root

if TYPE_CHECKING:
    from ralf.finding.reader import RouteSummary
    from ralf.model import RouteContext
    from ralf.route.why import Reason

BRIEF_TOKENS = 2_500

_SHOWN = 1_200  # characters of one message that are printed

_LOOKED_AT, _MOST_LOOKED_AT = 20, 200  # hits read for each wanted one with --since; in all

_EXCERPT = 400  # characters

SECTIONS = {
    "goal": ("goal", "goal_origin", "began_as"),
    "work": ("handover", "active_work", "since"),
    "decisions": ("decisions", "pinned"),
    "facts": ("facts",),
    "history": ("checkpoints", "history"),
}
"""The sections of a context, and their fields in JSON."""

_FIELDS = (
    "route revision agent_type created last_checkpoint checkpoint_count total_tokens_consumed goal goal_origin began_as"
    " handover decisions pinned active_work facts checkpoints history folded since foreign foreign_notes warnings"
).split()


@command(name="list")
@click.option("-n", "limit", type=click.IntRange(min=1), metavar="N", help="List at most N routes.")
@with_since
@click.pass_context
def list_(ctx: click.Context, limit: int | None, since: str | None) -> None:
    """List the routes of this project, newest checkpoint first. With --since, list only routes with a record after
    WHEN. After `archive_days` without a record, ralf archives a route and no longer lists it. You can still read an
    archived route; its next record restores it.
    """
    routes = ralf.list_routes(since=since, root=root())[:limit]
    if is_json():
        emit_json(routes)
    elif routes:
        headings = ("ROUTE", "CHECKPOINTS", "LAST CHECKPOINT", "TOKENS", "STATUS", "ABOUT", "ASKED LAST")
        table(headings, map(_cells, routes), (1, 3))
    elif since:
        say(f"no route has a record since {since}")
    else:
        say(project().nothing_here or "no routes yet; make one with: ralf checkpoint ROUTE --transcript FILE")
    if archived := routing.archived(project()):
        say(f"note: archived routes, not listed because they have no recent record: {len(archived):,}")
    if strays := routing.strays(project()):
        say(f"note: files in routes/ whose names no route can have, ignored: {len(strays)}: ralf doctor --store")
    for route in routes:
        if route.damage:
            complain(route.damage, f"ralf show {route.route}")
    if any(route.damage for route in routes):
        ctx.exit(4)


def _cells(route: RouteSummary) -> tuple[object, ...]:
    return (
        f"{route.route} (foreign)" if route.foreign else route.route,
        route.checkpoint_count,
        route.last_checkpoint or "-",
        route.total_tokens_consumed,
        f"closed: {route.closed}".removesuffix(": closed") if route.closed else in_brief(route.work_status),
        in_brief(": ".join(filter(None, (route.current_task, route.title)))),
        in_brief(route.last_request),
    )


@command(is_fenced=False)
@with_words("[ROUTE] [ID]")
@click.option("--max-tokens", type=click.IntRange(min=0), metavar="N", help="Hard limit in o200k_base tokens.")
@click.option("--brief", is_flag=True, help=f"Short version for a fresh agent; at most {BRIEF_TOKENS:,} tokens.")
@click.option("--section", type=click.Choice([*SECTIONS]), help="Show only this section.")
@click.option("--at", metavar="CP", help="Show the state right after this checkpoint, e.g. cp-002.")
@click.pass_context
def show(
    ctx: click.Context, words: tuple[str, ...], max_tokens: int | None, brief: bool, section: str | None, at: str | None
) -> None:
    """Show the context of ROUTE: goal, current state, next steps, decisions, facts, history. With the ID of a decision
    or checkpoint, show its source: the transcript lines, the turn that contains them, and the messages that follow.

    The command also reports tokens that are in no checkpoint yet. --json prints the whole context, or one --section.

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
        raise click.UsageError("--brief and --section exclude each other")
    if is_json() and (brief or max_tokens is not None):
        what = "--json prints the whole context, without a budget: leave out --brief and --max-tokens"
        raise Misused(what, f"ralf show {route} --json, or ralf show {route} --max-tokens {max_tokens or BRIEF_TOKENS}")
    context = _context(route, at)
    if is_json():
        names = ("route", "revision", *SECTIONS[section]) if section else _FIELDS
        emit_json({name: getattr(context, name) for name in names})
    else:
        _show_text(context, "brief" if brief else section, BRIEF_TOKENS if brief and max_tokens is None else max_tokens)
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
    if session and prompt_intent.move_by_reading(project(), session, context.route):
        say(f"{context.route} is the route of this session now")
    return context


def _show_text(context: RouteContext, section: str | None, budget: int | None) -> None:
    text = context.render(budget, section=section, fenced=is_read_by_an_agent())
    click.echo(text, nl=False)
    if not text and budget is not None and context.render(section=section):
        say(f"{context.route}: {budget} tokens are too few for a line of it: try --max-tokens {BRIEF_TOKENS}")
    elif not text:
        say(f"{context.route}: this section is empty")


# ---- the source of an item ----


def _show_reason(route: str, id_: str) -> None:
    """Print the source of an item. It works without the transcript; exit status 3 if the evidence was pruned."""
    reason = ralf.why(route, id_, root=root())
    if is_json():
        emit_json(reason)
    else:
        with handed_over():
            _emit_reason(reason)
    if reason.evidence == "pruned":
        complain(f"{reason.route}: {reason.id}: its transcript text was dropped", "read it in the session's log")
        click.get_current_context().exit(3)


def _emit_reason(reason: Reason) -> None:
    by = f" by {ended}" if (ended := reason.dropped_by or reason.superseded_by) else ""
    status = f" [{reason.status}{by}]" if reason.status not in ("", "active") else ""
    said = ", ".join(filter(None, [reason.kind, reason.origin and f"by {reason.origin}", reason.timestamp]))
    edited = ", edited by hand since" if reason.edited else ""
    click.secho(f"{reason.route} {reason.id}{status}", bold=True, nl=False)
    click.echo(f"  {said}; {reason.recorded}{edited}".rstrip("; "))
    rejected = (f"Rejected: {option}" for option in reason.alternatives)
    why = (reason.rationale and f"Because: {reason.rationale}", reason.because and f"Dropped: {reason.because}")
    for text in (reason.claim, *why, *rejected):
        click.echo(_indented(text), nl=False)
    source = reason.source
    if source is None:
        revision = f", revision {reason.revision}" if reason.revision else ""
        where = f"Recorded {reason.recorded}{revision}, without transcript lines."
    else:
        match = {True: "the text is unchanged", False: "THE TEXT DIFFERS FROM WHAT WAS RECORDED"}
        gone = "part of the text was forgotten" if reason.evidence == "purged" else "pruned"
        found = gone if reason.matches is None else match[reason.matches]
        lines = _lines(source.first_line, source.last_line)
        where = f"session {source.session}, {lines}, sha256 {source.sha256}: {found}"
    click.echo(f"\n{where}")
    parts = {"": reason.quotes, "Its turn:": reason.turn, "The next messages:": reason.after}
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


# ---- search ----


@command()
@click.argument("query")
@click.option("--route", metavar="ROUTE", shell_complete=complete_route, help="Search only this route.")
@click.option("-n", "-k", "limit", type=click.IntRange(min=1), default=5, metavar="N", help="Show at most N hits. [5]")
@with_since
def search(query: str, route: str | None, limit: int, since: str | None) -> None:
    """Search the messages, texts, failed commands, decisions and evidence of all routes for the words in QUERY.

    Among equal matches, active decisions rank first, then messages, then output; newer items rank before older items.
    With --since, search only decisions and checkpoints newer than WHEN, and their text.

    \b
    Examples:
      ralf search "why not asyncio"
      ralf search cursor --route TASK-001 -n 10
      ralf search "failing test" --since yesterday
    """
    if not query.strip():
        raise UsageError("ralf search", "QUERY is empty", 'ralf search "WORDS"')
    from ralf.route.history import is_since

    warnings: list[str] = []
    most = limit if since is None else max(limit, min(limit * _LOOKED_AT, _MOST_LOOKED_AT))
    hits = ralf.search(query, route=route, root=root(), limit=most, warnings=warnings)
    if since is not None:
        hits = [hit for hit in hits if is_since(hit.at, since)][:limit]
    for warning in warnings:
        say(warning)
    if is_json():
        emit_json(hits)
        return
    if not hits:
        say(project().nothing_here or "nothing found")
    for hit in hits:
        status = f" [{hit.status}]" if hit.status not in ("", "active") else ""
        source = f"  {hit.source}" if hit.source else ""
        click.echo(click.style(f"{hit.route} {hit.kind} {hit.id}{status}", bold=True) + source)
        click.echo(_excerpt(hit.text, query) + "\n")


def _excerpt(text: str, query: str) -> str:
    """The part of a text with the most words of the query, indented."""
    from ralf.text.matcher import words

    forms = [rf"{re.escape(word.start or word.text)}\w*" for word in words(query)]
    pattern = re.compile(rf"(?<![a-z])(?:{'|'.join(forms) or '(?!)'})", re.IGNORECASE)
    places = [match.start() for match in pattern.finditer(text)]
    start, most = 0, _EXCERPT
    if len(text) > most and places:
        best = max(places, key=lambda place: (sum(place <= other < place + most * 2 // 3 for other in places), -place))
        line = text.rfind("\n", 0, best) + 1
        start = line if best - line < most // 3 else best - most // 4
    part = ("…" if start else "") + text[start : start + most].strip() + ("…" if start + most < len(text) else "")
    return "\n".join(f"  {line}" if line else "" for line in part.splitlines())
