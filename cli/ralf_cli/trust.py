"""`ralf context trust`: what of a store this user's ralf did not write, and accepting it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ralf_cli.options import complete_route, with_json, with_root

if TYPE_CHECKING:
    from pathlib import Path

    from ralf.maintenance.ownership import Found
    from ralf.maintenance.trust import ForeignPart
    from ralf.project import Project
    from ralf.route.shared import Note

_CHANGED = "was changed since it was shown: not accepted"


@click.command(short_help="Show content from other machines, and accept it on a terminal.")
@click.argument("route", required=False, metavar="[ROUTE|PERSON]", shell_complete=complete_route)
@click.option("--diff", is_flag=True, help="Show the route files as a diff against your own records.")
@with_root
@with_json
def trust(route: str | None, diff: bool, root: str | None, as_json: bool) -> None:
    """Show the parts of the store that your ralf did not write, and accept them: routes of a cloned repository, a
    moved project, the store of an earlier version.

    With ROUTE, accepts that route; its items are marked as imported. With the name of a PERSON whose clone shares what
    it decides (`ralf init --share`), accepts what that clone has shared up to now. Without either, records that your
    own ralf wrote earlier (an older version, another path) can be accepted unchanged. Until then hooks never inject
    any of it. Only a person can accept it, on a terminal; never an agent.

    \b
    Examples:
      ralf context trust
      ralf context trust TASK-001 --diff

    \b
    Exit status: 0, even if there is nothing to accept · 2 not on a terminal, invalid name, your own route that a
    colleague renamed · 3 no such route · 5 busy
    """
    from ralf import project as projects, routing
    from ralf.maintenance import ownership
    from ralf.maintenance.trust import look_at_foreign
    from ralf_cli.output import emit_json, handed_over

    project = projects.find(root)
    if route is not None and (notes := _of_clone(project, route)):
        _accept_clone(project, route, notes, as_json=as_json)
        return
    names = [routing.existing(project, route)] if route else routing.names_of(project)
    found = ownership.find_unsealed(project) if route is None else None
    parts = {name: part for name in names if (part := look_at_foreign(project, name)) is not None}
    digest = ownership.digest_of_settings(project)
    settings = _settings(project) if route is None else []
    if as_json:
        emit_json(_plain(found, parts, settings))
        return
    if not parts and not settings and not (found and found.streams):
        click.echo(f"{route or project.folder}: nothing here came from elsewhere")
        return
    with handed_over():
        _show(project, found, parts, settings, diff=diff)
        _show_refused(project, parts)
    check_person(project.folder, "ralf context trust", [route] if route else [])
    _accept(project, found, parts, settings, digest)


def _of_clone(project: Project, name: str) -> list[Note]:
    """What is new of the clones of a person, or of the clone of an id."""
    from ralf.route import shared

    _, new = shared.others(project)
    return [note for note in new if name.casefold() in (note.by.casefold(), note.clone)]


def _accept_clone(project: Project, name: str, notes: list[Note], *, as_json: bool) -> None:
    """Show what a person has shared, every line of it, and accept that."""
    from ralf.route import shared
    from ralf_cli.output import emit_json, handed_over

    lines = {note.path: [f"{note.route}: {line}" for line in shared.lines_of(note)] for note in notes}
    if as_json:
        emit_json({"shared": lines})
        return
    with handed_over():
        click.echo(f"{name} has shared, and you have not accepted:")
        for line in (line for found in lines.values() for line in found):
            click.echo(f"  {line}")
    check_person(project.folder, "ralf context trust", [name])
    these = "this record" if len(notes) == 1 else f"these {len(notes):,} records"
    if click.confirm(f"Accept {these}? Agents read them under that name", default=False, err=True):
        shared.accept(project, notes)
        click.echo(f"{name}: {len(notes):,} accepted")


def _settings(project: Project) -> list[str]:
    """The lines of the settings that the user has not accepted."""
    from ralf import config
    from ralf.maintenance import ownership

    return [] if config.is_believed(project) else ownership.lines_that_set(project)


def _show(
    project: Project, found: Found | None, parts: dict[str, ForeignPart], settings: list[str], *, diff: bool
) -> None:
    """Show all that would be accepted; of a store that is the user's by its seals, how much there is."""
    from ralf.maintenance import ownership
    from ralf.text.cleaning import shown

    if found is not None and found.streams:
        count = sum(found.streams.values())
        click.echo(f"{count:,} records in {len(found.streams):,} streams that your ralf did not write here:")
        for stream, records in found.streams.items():
            click.echo(f"  {stream}: {records:,}")
            for record in ownership.unsealed(project, stream) if found.moved is None else ():
                click.echo(f"    {shown(record.decode('utf-8', 'replace'))}")
        if found.moved is not None:
            click.echo(f"They were written by your ralf at {found.moved.path}.")
    if settings:
        click.echo("config.yaml sets, and it is not in force:")
        for line in settings:
            click.echo(f"  {line}")
    for name, part in parts.items():
        if not part.lines and not diff:
            click.echo(
                f"{name}: what came with the repository changes no words of yours: only labels, numbers or marks"
            )
            continue
        click.echo(f"{name}: came with the repository; not written by your ralf:")
        lines = part.diff.splitlines() if diff else list(part.lines)
        for line in lines:
            click.echo(f"  {line}")


def _show_refused(project: Project, parts: dict[str, ForeignPart]) -> None:
    """Say which of them the user has refused in the browser."""
    from ralf.maintenance.trust import is_refused

    for name, part in parts.items():
        if is_refused(project, part):
            click.echo(f"{name}: you refused it before; it has not changed since")


def check_person(where: Path, command: str, names: Sequence[str] = (), *, done: str = "accepted") -> None:
    """UsageError unless a person sits at a terminal.

    where    the folder whose content is to be accepted
    command  what the person types, with `names` behind it
    done     what is done with it
    """
    from ralf import environment
    from ralf.errors import UsageError

    hint = f"type it yourself, in a terminal of your own: {' '.join((command, *names))}"
    if agent := environment.agent():
        raise UsageError(where, f"nothing was {done}: an agent runs this (${agent} is set)", hint)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(where, f"nothing was {done}: no person is at a terminal here", hint)


def _accept(
    project: Project, found: Found | None, parts: dict[str, ForeignPart], settings: list[str], digest: str
) -> None:
    """Ask, and take what was shown, and nothing that has come in its place since."""
    from ralf.errors import Busy
    from ralf.maintenance import ownership
    from ralf.maintenance.trust import accept_route, look_at_foreign

    if found is not None and found.streams:
        asked = "Did your own ralf write these records? Then they speak as you and your agent from now on"
        if click.confirm(asked, default=bool(found.moved), err=True):
            if ownership.find_unsealed(project) != found or not _still(project, parts):
                raise Busy(str(project.folder), _CHANGED, "ralf context trust")
            ownership.adopt(project)
            click.echo(f"{project.folder}: taken as yours" + ("; hooks act here" if project.owner.has_opted_in else ""))
            parts = {name: part for name in parts if (part := look_at_foreign(project, name)) is not None}
            settings = _settings(project)
        else:
            project.owner.update(pending="")
    if settings and click.confirm("Are these settings to be in force?", default=False, err=True):
        from ralf.maintenance import ownership

        if not ownership.accept_settings(project, seen=digest):
            raise Busy(str(project.config_file), _CHANGED, "ralf context trust")
        click.echo(f"{project.config_file}: in force" + ("" if project.owner.has_opted_in else "; then: ralf init"))
    for name, part in parts.items():
        if click.confirm(f"Import what is foreign in {name}?", default=False, err=True):
            accept_route(project, name, seen=part)
            click.echo(f"{name}: imported")


def _still(project: Project, parts: dict[str, ForeignPart]) -> bool:
    """Whether what is foreign in the routes is what was shown."""
    from ralf.maintenance.trust import look_at_foreign

    now = {name: found.digest for name in parts if (found := look_at_foreign(project, name)) is not None}
    return now == {name: part.digest for name, part in parts.items()}


def _plain(found: Found | None, parts: dict[str, ForeignPart], settings: list[str]) -> dict[str, object]:
    return {
        "streams": found.streams if found is not None else {},
        "moved": found.moved.path if found is not None and found.moved is not None else "",
        "settings": settings,
        "routes": {name: list(part.lines) for name, part in parts.items()},
    }
