"""What stands behind a decision or a checkpoint: the words, their lines, the turn, and what was said next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ralf.text.cleaning import clean
from ralf_cli.times import shown

if TYPE_CHECKING:
    from ralf.route.why import Quote, Reason

_SHOWN = 1_200  # characters of one message that are printed


def tell(route: str, id_: str, root: str | None, *, as_json: bool) -> None:
    """Print what made an item of a route. It works without the transcript; exit status 3 where evidence was pruned."""
    import ralf
    from ralf_cli.output import emit_json, fields_of
    from ralf_cli.terminal import complain

    reason = ralf.why(route, id_, root=root)
    if as_json:
        emit_json(fields_of(reason))
    else:
        _emit(reason)
    if reason.evidence == "pruned":
        complain(f"{reason.route}: {reason.id}: the words behind it are not kept any more", "read them in the session")
        click.get_current_context().exit(3)


def _emit(reason: Reason) -> None:
    status = f" [{reason.status}]" if reason.status not in ("", "active") else ""
    click.secho(f"{reason.route} {reason.id}{status}", bold=True, nl=False)
    when = shown(reason.timestamp) if reason.timestamp else ""
    said = ", ".join(filter(None, [reason.kind, reason.origin and f"by {reason.origin}", when]))
    edited = ", edited by hand since" if reason.edited else ""
    click.echo(f"  {said}; {reason.recorded}{edited}".rstrip("; "))
    for text in (reason.claim, reason.rationale and f"Because: {reason.rationale}"):
        click.echo(_indented(text), nl=False)
    for option in reason.alternatives:
        click.echo(_indented(f"Rejected: {option}"), nl=False)
    click.echo()
    source = reason.source
    if source is None:
        revision = f", revision {reason.revision}" if reason.revision else ""
        click.echo(f"Recorded {reason.recorded}{revision}; no lines were given.")
        _emit_quotes("Recorded with", reason.quotes)
        _emit_turn(reason)
        return
    where = f"session {source.session}, {_lines(source.first_line, source.last_line)}, sha256 {source.sha256}"
    match = {True: "the words are unchanged", False: "THE WORDS ARE NOT THOSE THAT IT WAS TAKEN FROM"}
    gone = "some of the words were forgotten" if reason.evidence == "purged" else "pruned"
    click.echo(f"{where}: {gone if reason.matches is None else match[reason.matches]}")
    _emit_quotes("", reason.quotes)
    _emit_turn(reason)


def _emit_turn(reason: Reason) -> None:
    _emit_quotes("The turn it stands in", reason.turn)
    _emit_quotes("The next messages", reason.after)


def _emit_quotes(heading: str, quotes: Iterable[Quote]) -> None:
    for number, quote in enumerate(quotes):
        click.echo(f"\n{heading}:" if heading and not number else "")
        click.secho(f"{_lines(quote.line, quote.last)}, {quote.who}:", bold=True)
        click.echo(_indented(quote.text), nl=False)


def _lines(first: int, last: int) -> str:
    return f"line {first}" if last <= first else f"lines {first}-{last}"


def _indented(text: str) -> str:
    text = clean(text)
    cut = len(text) - _SHOWN
    if cut > 0:
        text = f"{text[:_SHOWN].rstrip()}\n… {cut:,} characters more: --json"
    return "".join(f"  {line}\n" for line in text.strip().split("\n")) if text else ""
