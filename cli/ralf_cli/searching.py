"""`ralf search`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ralf_cli.command import command
from ralf_cli.options import complete_route, with_json, with_root
from ralf_cli.pager import with_pager
from ralf_cli.times import with_since

if TYPE_CHECKING:
    from ralf.finding.search import SearchHit
    from ralf.text.matcher import Word


_LOOKED_AT = 20  # hits that are looked at for each one wanted, where only newer ones are

_MOST_LOOKED_AT = 200


@command(short_help="Find what was said, done, decided and printed.")
@click.argument("query")
@click.option("--route", metavar="ROUTE", shell_complete=complete_route, help="Search this route only.")
@click.option(
    "-n", "-k", "limit", type=click.IntRange(min=1), default=5, show_default=True, metavar="N", help="At most N hits."
)
@with_since
@with_root
@with_pager
@with_json
def search(query: str, route: str | None, limit: int, since: str | None, root: str | None, as_json: bool) -> None:
    """Find turns, texts, failed commands, decisions and evidence by their words, in all routes.

    Of what holds the same words a decision in force comes first, then what was said, then what was printed; the newer
    before the older. With --since, only decisions made and checkpoints that ended since then, and what belongs to
    these.

    \b
    Examples:
      ralf search "why not asyncio"
      ralf search cursor --route TASK-001 -n 10
      ralf search "failing test" --since yesterday

    \b
    Exit status: 0, even if nothing is found · 2 invalid name, no words · 3 no such route
    """
    import ralf
    from ralf import project as projects
    from ralf.errors import UsageError
    from ralf_cli.output import emit_json, fields_of, say

    if not query.strip():
        where = click.get_current_context().command_path
        raise UsageError(where, "needs words: what is to be found", f'{where} "WORDS"')
    warnings: list[str] = []
    most = limit if since is None else max(limit, min(limit * _LOOKED_AT, _MOST_LOOKED_AT))
    hits = ralf.search(query, route=route, root=root, limit=most, warnings=warnings)
    if since is not None:
        from ralf.route.history import is_since

        hits = [hit for hit in hits if is_since(hit.at, since)][:limit]
    for warning in warnings:
        say(warning)
    if as_json:
        emit_json([fields_of(hit) for hit in hits])
        return
    if not hits:
        say(projects.find(root).nothing_here or "nothing found")
        return
    _emit_hits(hits, query)


def _emit_hits(hits: Sequence[SearchHit], query: str) -> None:
    from ralf.text.matcher import words

    asked = words(query)
    for hit in hits:
        status = f" [{hit.status}]" if hit.status not in ("", "active") else ""
        source = f"  {hit.source}" if hit.source else ""
        click.echo(click.style(f"{hit.route} {hit.kind} {hit.id}{status}", bold=True) + source)
        click.echo(_excerpt(hit.text, asked))
        click.echo()


def _excerpt(text: str, words: Sequence[Word], most: int = 400) -> str:
    """The part of a text in which most of the words stand, indented, with the words made bold on a terminal."""
    forms = [rf"{re.escape(word.start or word.text)}\w*" for word in words]
    pattern = re.compile(rf"(?<![a-z])(?:{'|'.join(forms) or '(?!)'})", re.IGNORECASE)
    places = [match.start() for match in pattern.finditer(text)]
    if len(text) > most and places:
        best = max(places, key=lambda place: (sum(place <= other < place + most * 2 // 3 for other in places), -place))
        start = text.rfind("\n", 0, best) + 1 if best - text.rfind("\n", 0, best) < most // 3 else best - most // 4
    else:
        start = 0
    part = ("…" if start else "") + text[start : start + most].strip() + ("…" if start + most < len(text) else "")
    if sys.stdout.isatty():
        part = pattern.sub(lambda match: click.style(match[0], bold=True, fg="red"), part)
    return "\n".join(f"  {line}" if line else "" for line in part.splitlines())
