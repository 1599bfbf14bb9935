"""`ralf trust`: what of a store this user's ralf did not write, and accepting it."""

from __future__ import annotations

from itertools import chain, groupby

import click

from ralf import routing
from ralf.maintenance import ownership, trust as trusting
from ralf.text.cleaning import revealed
from ralf_cli.command import command, is_json, project
from ralf_cli.options import route_argument
from ralf_cli.output import emit_json
from ralf_cli.person import check_person


@command()
@route_argument("name")
def trust(name: str | None) -> None:
    """Show what of the store your ralf did not write, all of it, and accept it: what came with a repository, an archive
    or a copy, what other clones share (`ralf init --share`), and a config.local.yaml that you have not allowed to run
    what it names.

    ROUTE may also be a task, an agent whose memory it is, or a person who shares. Until then no hook hands any of it
    over, and no task of it is claimed. Only a person can accept it, on a terminal; never an agent.
    """
    here = project()
    streams = {} if name else ownership.find_theirs(here)
    counts = {stream: len(digests) for stream, digests in streams.items()}
    found = trusting.everything(here, name or "")
    if name and not found:
        found = trusting.everything(here, routing.existing(here, name))
    if is_json():
        foreign = [{"kind": one.kind, "name": one.name, "text": one.text} for one in found]
        emit_json({"streams": counts, "foreign": foreign})
        return
    if not found and not streams:
        click.echo(f"{name or here.folder}: nothing here came from elsewhere")
        return
    displayed = _show_streams(counts)
    for one in found:
        click.echo(f"{one.kind} {one.name}: not written by your ralf:")
        _show(one.text)
    command = " ".join(filter(None, ["ralf trust", name]))
    check_person(here.folder, "nothing was accepted", command, answers=True)
    if streams and _says_yes("Did your own ralf write these records? Then they speak as you"):
        if displayed != streams:
            raise trusting.changed(here.folder)
        ownership.adopt(here, streams)
        click.echo(f"{here.folder}: taken as yours")
        known = {(one.kind, one.name, one.text) for one in found}
        found = [one for one in trusting.everything(here) if (one.kind, one.name, one.text) in known]
    for kind, group in groupby(found, key=lambda one: one.kind):
        these = list(group)
        names = f"{kind} {these[0].name}" if len(these) == 1 else f"these {len(these):,} ({kind})"
        if _says_yes(f"Did you read {names}, and {these[0].asks}?"):
            for one in these:
                for line in (f"{one.name}: accepted", *(one.accept() or ())):
                    click.echo(line)


def _says_yes(question: str) -> bool:
    return click.confirm(question, default=False, err=True)


def _show_streams(streams: dict[str, int]) -> ownership.Theirs:
    """Show all records of streams that are not this user's; the digests of what was shown."""
    digests = {}
    if streams:
        click.echo(f"{sum(streams.values()):,} records in {len(streams):,} streams that your ralf did not write here:")
    for stream, count in streams.items():
        click.echo(f"{stream}: {count:,}")
        records = [*ownership.records_of(project(), stream)]
        for text in chain.from_iterable(ownership.texts_of(project(), record) for record in records):
            _show(text)
        digests[stream] = tuple(map(ownership.digest, records))
    return digests


def _show(text: str) -> None:
    for line in text.splitlines():
        click.echo(f"  {revealed(line)}")
