"""`ralf init`: opt a project in or out."""

from __future__ import annotations

import sys

import click

from ralf_cli.options import with_json, with_root


@click.command()
@click.option("--share", is_flag=True, help="Let git see the route files, and nothing else of the folder.")
@click.option("--uninstall", is_flag=True, help="Opt the project out; routes and journals stay.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_root
@with_json
def init(share: bool, uninstall: bool, dry_run: bool, yes: bool, root: str | None, as_json: bool) -> None:
    """Opt this project in: hooks run, and routes are kept, only where this was done.

    Writes one folder, .autonomous/context/, hidden from git. Done twice it changes nothing. Routes can be read and
    checkpointed without it.

    \b
    Examples:
      ralf init
      ralf init --share --dry-run
      ralf init --uninstall

    \b
    Exit status: 0 · 1 the folder cannot be written · 2 no such directory
    """
    from ralf import optin, project as projects
    from ralf_cli.output import emit_json

    project = projects.find(root)
    steps = optin.plan_uninstall(project) if uninstall else optin.plan_init(project, share=share)
    if not as_json:
        for step in steps:
            click.echo(f"{step.path}: {step.what}")
    if steps and not dry_run:
        if not yes and not as_json and sys.stdin.isatty():
            click.confirm("Go on?", default=True, abort=True, err=True)
        steps = optin.uninstall(project) if uninstall else optin.init(project, share=share)
    if as_json:
        emit_json([{"path": str(step.path), "what": step.what, "done": not dry_run} for step in steps])
    elif not steps:
        click.echo(f"{project.folder}: nothing to do")
    elif dry_run:
        click.echo("dry run: nothing was changed")
