"""`ralf schema`: the JSON schemas of the files that people edit."""

from __future__ import annotations

import click

_FILES = ("route-file", "config", "config.local")


@click.command(short_help="Print the JSON schema of a file.")
@click.argument("file", type=click.Choice(_FILES))
def schema(file: str) -> None:
    """Print the JSON schema of FILE: a route file's front matter, config.yaml or config.local.yaml.

    An editor that is given it completes keys and marks mistakes.

    \b
    Examples:
      ralf schema config > config.schema.json
      ralf schema route-file

    \b
    Exit status: 0 · 2 another file
    """
    from ralf.format import schema as schemas
    from ralf.maintenance import settings

    if file == "route-file":
        click.echo(schemas.text(), nl=False)
    else:
        click.echo(schemas.as_text(settings.schema(local=file == "config.local")), nl=False)
