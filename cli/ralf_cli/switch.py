"""`ralf on` and `ralf off`: whether clients' hooks do anything in this project."""

from __future__ import annotations

import click

from ralf_cli.options import with_root


@click.command(short_help="Enable the hooks in this project again.")
@with_root
def on(root: str | None) -> None:
    """Enable the hooks in this project after `ralf off`.

    \b
    Examples:
      ralf on

    \b
    Exit status: 0 · 1 the folder cannot be written · 2 not opted in · 4 damaged configuration
    """
    _switch(root, on=True)


@click.command(short_help="Disable the hooks in this project.")
@with_root
def off(root: str | None) -> None:
    """Disable the hooks in this project; clients still call them, but they do nothing.

    Changes one line of config.yaml; everything else works as before.

    \b
    Examples:
      ralf off

    \b
    Exit status: 0 · 1 the folder cannot be written · 2 not opted in · 4 damaged configuration
    """
    _switch(root, on=False)


def _switch(root: str | None, *, on: bool) -> None:
    from ralf import project as projects
    from ralf.maintenance import optin
    from ralf_cli.output import handed_over

    project = projects.find(root)
    changed = optin.switch(project, on=on)
    state = "on" if on else "off"
    with handed_over():
        click.echo(f"{project.config_file}: hooks are {state}" + ("" if changed else ", as before"))
