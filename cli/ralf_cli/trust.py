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

_MOST_LINES = 200  # of one route that are shown
_CHANGED = "was changed since it was shown: not accepted"


@click.command(short_help="Show content from other machines, and accept it on a terminal.")
@click.argument("route", required=False, metavar="[ROUTE]", shell_complete=complete_route)
@click.option("--diff", is_flag=True, help="Show the route files as a diff against your own records.")
@with_root
@with_json
def trust(route: str | None, diff: bool, root: str | None, as_json: bool) -> None:
    """Show the parts of the store that your ralf did not write, and accept them: routes of a cloned repository, a
    pulled change to a shared route file, a moved project, the store of an earlier version.

    With ROUTE, accepts that route; its items are marked as imported. Without ROUTE, records that your own ralf
    wrote earlier (an older version, another path) can be accepted unchanged. Until then hooks never inject any of
    it. Only a person can accept it, on a terminal; never an agent.

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
    names = [routing.existing(project, route)] if route else routing.names_of(project)
    found = ownership.find_unsealed(project) if route is None else None
    parts = {name: part for name in names if (part := look_at_foreign(project, name)) is not None}
    digest = ownership.digest_of_settings(project)
    settings = _settings(project) if route is None else []
    if as_json:
        emit_json(_plain(found, parts, settings))
        return
    renamed = _renamed(project, parts)
    if not parts and not settings and not (found and found.streams):
        _show_strays(project)
        click.echo(f"{route or project.folder}: nothing here came from elsewhere")
        return
    with handed_over():
        _show(found, parts, settings, diff=diff)
        _show_strays(project)
        _show_refused(project, parts)
    parts = _but_renamed(route, parts, renamed)
    if renamed and not parts and not settings and not (found and found.streams):
        return
    check_person(project.folder, "ralf context trust", [route] if route else [])
    _accept(project, found, parts, settings, digest)


def _settings(project: Project) -> list[str]:
    """The lines of the settings that the user has not accepted."""
    from ralf import config
    from ralf.maintenance import ownership

    return [] if config.is_believed(project) else ownership.lines_that_set(project)


def _show(found: Found | None, parts: dict[str, ForeignPart], settings: list[str], *, diff: bool) -> None:
    if found is not None and found.streams:
        count = sum(found.streams.values())
        click.echo(f"{count:,} records in {len(found.streams):,} streams that your ralf did not write here:")
        for stream, records in found.streams.items():
            click.echo(f"  {stream}: {records:,}")
        if found.moved is not None:
            click.echo(f"They were written by your ralf at {found.moved.path}.")
        elif found.proven:
            click.echo(f"The log of one of their sessions is in your client's own folder: {found.proven}")
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
        for line in lines[:_MOST_LINES]:
            click.echo(f"  {line}")
        if len(lines) > _MOST_LINES:
            click.echo(f"  … and {len(lines) - _MOST_LINES:,} more lines: ralf context show {name}")


def _renamed(project: Project, parts: dict[str, ForeignPart]) -> dict[str, str]:
    """Which of them are routes of the user that another clone has renamed, and their names here."""
    from ralf.maintenance.renaming import renamed_elsewhere

    found = ((name, renamed_elsewhere(project, name)) for name, part in parts.items() if part.whole)
    return {name: old for name, old in found if old}


def _but_renamed(route: str | None, parts: dict[str, ForeignPart], renamed: dict[str, str]) -> dict[str, ForeignPart]:
    """The parts that can be accepted; what has to be done about the others is told. UsageError where the one that the
    user has named is such.
    """
    from ralf.errors import UsageError

    for name, old in renamed.items():
        hint = f"ralf route rename {old} {name}"
        if route is not None:
            raise UsageError(name, f"is your route {old} under another name: not imported", hint)
        click.echo(f"{name}: is your route {old} under another name, and is not imported; first: {hint}")
    return {name: part for name, part in parts.items() if name not in renamed}


def _show_strays(project: Project) -> None:
    """Tell of what was pulled under a name that a route had before."""
    from ralf.maintenance.renaming import stray_files

    for path, old, now in stray_files(project):
        click.echo(f"{path}: is of {now}, which was called {old}; first: ralf route merge {old} {now}")


def _show_refused(project: Project, parts: dict[str, ForeignPart]) -> None:
    """Say which of them the user has refused in the browser."""
    from ralf.maintenance.trust import is_refused

    for name, part in parts.items():
        if is_refused(project, part):
            click.echo(f"{name}: you refused it before; it has not changed since")


def check_person(where: Path, command: str, names: Sequence[str] = ()) -> None:
    """UsageError unless a person sits at a terminal.

    where    the folder whose content is to be accepted
    command  what the person types, with `names` behind it
    """
    from ralf import environment
    from ralf.errors import UsageError

    hint = f"type it yourself, in a terminal of your own: {' '.join((command, *names))}"
    if agent := environment.agent():
        raise UsageError(where, f"nothing was accepted: an agent runs this (${agent} is set)", hint)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(where, "nothing was accepted: no person is at a terminal here", hint)


def _accept(
    project: Project, found: Found | None, parts: dict[str, ForeignPart], settings: list[str], digest: str
) -> None:
    """Ask, and take what was shown, and nothing that has come in its place since."""
    from ralf.errors import Busy
    from ralf.maintenance import ownership
    from ralf.maintenance.trust import accept_route, look_at_foreign

    if found is not None and found.streams:
        asked = "Did your own ralf write these records? Then they speak as you and your agent from now on"
        if click.confirm(asked, default=bool(found.moved or found.proven), err=True):
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
        "proven": found.proven if found is not None else "",
        "moved": found.moved.path if found is not None and found.moved is not None else "",
        "settings": settings,
        "routes": {name: list(part.lines) for name, part in parts.items()},
    }
