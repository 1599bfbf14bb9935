"""`ralf schema`: the JSON schemas of the files that people edit."""

from __future__ import annotations

import json

import click

from ralf_cli.command import command

_FILES = ("config", "config.local")


@command(short_help="Print the JSON schema of a file.")
@click.argument("file", type=click.Choice(_FILES))
def schema(file: str) -> None:
    """Print the JSON schema of FILE: config.yaml or config.local.yaml.

    An editor that is given it completes keys and marks mistakes.

    \b
    Examples:
      ralf schema config > config.schema.json

    \b
    Exit status: 0 · 2 another file
    """
    from ralf.config import settings

    click.echo(json.dumps(settings.schema(local=file == "config.local"), indent=1, ensure_ascii=False))
