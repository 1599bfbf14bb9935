"""`ralf doctor`: whether the installation is whole, and what to type where it is not."""

from __future__ import annotations

import click

from ralf_cli.options import with_json, with_root


@click.command(short_help="Check the installation and suggest fixes.")
@with_root
@with_json
@click.pass_context
def doctor(ctx: click.Context, root: str | None, as_json: bool) -> None:
    """Check the installation from end to end and suggest fixes.

    Checks whether the project is enabled, whether the clients' settings call ralf and the configured command works
    (tried in a temporary project), the versions, whether the client trusts the hooks, whether they were called,
    logged errors, and delivered their text, when the client deletes its transcripts, and the store's integrity.
    Changes nothing and never executes code from the repository.

    \b
    Examples:
      ralf doctor
      ralf doctor --json

    \b
    Exit status: 0, even with warnings · 1 there is a problem · 2 no such directory
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
