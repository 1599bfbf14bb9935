"""`ralf trust`: what of a store this user's ralf did not write, and accepting it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

from ralf_cli.command import command
from ralf_cli.options import complete_route, with_json, with_root

if TYPE_CHECKING:
    from ralf.maintenance import ownership
    from ralf.project import Project


@command(short_help="Show content from other machines, and accept it on a terminal.")
@click.argument("name", required=False, metavar="[NAME]", shell_complete=complete_route)
@with_root
@with_json
def trust(name: str | None, root: str | None, as_json: bool) -> None:
    """Show what of the store your ralf did not write, all of it, and accept it: what came with a repository, an archive
    or a copy, what other clones share (`ralf init --share`), and a config.local.yaml that you have not allowed to run
    what it names.

    NAME is that of a route, a task, an agent whose memory it is, or a person who shares. Without it everything is
    shown, also records that your own ralf wrote elsewhere. What is accepted says that it was imported. Until then no
    hook hands any of it over, and no task of it is claimed. Only a person can accept it, on a terminal; never an agent.

    \b
    Examples:
      ralf trust
      ralf trust TASK-001

    \b
    Exit status: 0, even if there is nothing to accept · 2 not on a terminal, invalid name, your own route that a
    colleague renamed · 3 no such route · 5 busy
    """
    from ralf import project as projects, routing
    from ralf.maintenance import ownership, trust as trusting
    from ralf_cli.output import emit_json, handed_over
    from ralf_cli.person import check_person

    project = projects.find(root)
    streams = {} if name else ownership.find_theirs(project)
    counts = {stream: len(digests) for stream, digests in streams.items()}
    found = trusting.everything(project, name or "")
    if name and not found and not (routes := trusting.everything(project, routing.existing(project, name))):
        click.echo(f"{name}: nothing here came from elsewhere")
        return
    if name and not found:
        found = routes
    if as_json:
        emit_json(
            {"streams": counts, "foreign": [{"kind": one.kind, "name": one.name, "text": one.text} for one in found]}
        )
        return
    if not found and not streams:
        click.echo(f"{project.folder}: nothing here came from elsewhere")
        return
    with handed_over():
        shown = _show_streams(project, counts)
        for one in found:
            click.echo(f"{one.kind} {one.name}: not written by your ralf:")
            _show(one.text)
    command = " ".join(filter(None, ["ralf trust", name]))
    check_person(project.folder, "nothing was accepted", command, answers=True)
    if streams and click.confirm(
        "Did your own ralf write these records? Then they speak as you", default=False, err=True
    ):
        if shown != streams:
            raise trusting.changed(project.folder)
        ownership.adopt(project, streams)
        click.echo(f"{project.folder}: taken as yours")
        known = {(one.kind, one.name, one.text) for one in found}
        found = [one for one in trusting.everything(project) if (one.kind, one.name, one.text) in known]
    for kind, group in groupby(found, key=lambda one: one.kind):
        these = list(group)
        names = f"{kind} {these[0].name}" if len(these) == 1 else f"these {len(these):,} ({kind})"
        if click.confirm(f"Did you read {names}, and {these[0].asks}?", default=False, err=True):
            for one in these:
                for line in (f"{one.name}: accepted", *(one.accept() or ())):
                    click.echo(line)


def _show_streams(project: Project, streams: dict[str, int]) -> ownership.Theirs:
    """Show all records of streams that are not this user's; the digests of what was shown."""
    from ralf.maintenance import ownership

    shown = {}
    if streams:
        click.echo(f"{sum(streams.values()):,} records in {len(streams):,} streams that your ralf did not write here:")
    for stream, count in streams.items():
        click.echo(f"{stream}: {count:,}")
        digests = []
        for record in ownership.records_of(project, stream):
            _show(record.decode("utf-8", "replace"))
            digests.append(ownership.digest(record))
        shown[stream] = tuple(digests)
    return shown


def _show(text: str) -> None:
    from ralf.text.cleaning import shown

    for line in text.splitlines():
        click.echo(f"  {shown(line)}")
