"""`ralf search`: what was said, done, decided and printed, by its words."""

from __future__ import annotations

import re

import click

import ralf
from ralf.errors import UsageError
from ralf.route.history import is_since
from ralf.text.matcher import words
from ralf_cli.command import command, is_json, project, root
from ralf_cli.options import complete_route, with_since
from ralf_cli.output import emit_json, say

_LOOKED_AT, _MOST_LOOKED_AT = 20, 200  # hits that are looked at for each one wanted, where only newer ones are; in all

_EXCERPT = 400  # characters


@command()
@click.argument("query")
@click.option("--route", metavar="ROUTE", shell_complete=complete_route, help="Search this route only.")
@click.option("-n", "-k", "limit", type=click.IntRange(min=1), default=5, metavar="N", help="At most N hits. [5]")
@with_since
def search(query: str, route: str | None, limit: int, since: str | None) -> None:
    """Find turns, texts, failed commands, decisions and evidence by their words, in all routes.

    Of what holds the same words a decision in force comes first, then what was said, then what was printed; the newer
    before the older. With --since, only decisions made and checkpoints that ended since then, and what belongs to
    these.

    \b
    Examples:
      ralf search "why not asyncio"
      ralf search cursor --route TASK-001 -n 10
      ralf search "failing test" --since yesterday
    """
    if not query.strip():
        where = click.get_current_context().command_path
        raise UsageError(where, "needs words: what is to be found", f'{where} "WORDS"')
    warnings: list[str] = []
    most = limit if since is None else max(limit, min(limit * _LOOKED_AT, _MOST_LOOKED_AT))
    hits = ralf.search(query, route=route, root=root(), limit=most, warnings=warnings)
    if since is not None:
        hits = [hit for hit in hits if is_since(hit.at, since)][:limit]
    for warning in warnings:
        say(warning)
    if is_json():
        emit_json(hits)
    elif not hits:
        say(project().nothing_here or "nothing found")
    for hit in () if is_json() else hits:
        status = f" [{hit.status}]" if hit.status not in ("", "active") else ""
        source = f"  {hit.source}" if hit.source else ""
        click.echo(click.style(f"{hit.route} {hit.kind} {hit.id}{status}", bold=True) + source)
        click.echo(_excerpt(hit.text, query) + "\n")


def _excerpt(text: str, query: str) -> str:
    """The part of a text in which most of the words stand, indented."""
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
