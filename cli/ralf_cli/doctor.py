"""`ralf doctor`: whether the installation is whole, and what to type where it is not."""

from __future__ import annotations

import click

from ralf_cli.options import with_json, with_root


@click.command(short_help="Look at the installation, and say what to do.")
@with_root
@with_json
@click.pass_context
def doctor(ctx: click.Context, root: str | None, as_json: bool) -> None:
    """Look at the installation from end to end, and say what to do.

    Is this project opted in; do the clients' settings call ralf, and does the command that they name answer (it is
    tried in a project of its own); which versions are there; does the client trust the hooks; have they called,
    complained, and has what they handed over arrived; when does the client delete its transcripts; is the store whole.
    Nothing is changed, and nothing is run that the repository could have brought.

    \b
    Examples:
      ralf doctor
      ralf doctor --json

    \b
    Exit status: 0, also with warnings · 1 there is a problem · 2 no such directory
    """
    from ralf import project
    from ralf.text.cleaning import clean
    from ralf_cli.output import emit_json
    from ralf_cli.terminal import typed
    from ralf_integrations.doctor import examine

    colours = {"ok": "green", "warning": "yellow", "problem": "red"}
    found = []
    for check in examine(project.find(root)):
        found.append(check)
        if not as_json:
            click.secho(f"{check.state:<8} ", fg=colours[check.state], nl=False)
            click.echo(clean(f"{check.name:<12} {check.what}"))
            if check.hint:
                click.echo(clean(f"{'':<22}→ {typed(check.hint)}"))
    if as_json:
        emit_json([check._asdict() for check in found])
    if any(check.state == "problem" for check in found):
        ctx.exit(1)
