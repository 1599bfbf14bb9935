"""`ralf web`: a page for a person, on this machine alone."""

from __future__ import annotations

from importlib.util import find_spec

import click

from ralf.errors import RalfError
from ralf_cli.command import command, root
from ralf_cli.output import say
from ralf_cli.person import is_person

_NEEDS = ("jinja2", "markdown_it", "starlette", "uvicorn")


@command("root", is_fenced=False)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: one that is free.")
def web(port: int) -> None:
    """Show what happened in this project and what waits for you in a browser, until Ctrl-C: sessions, routes, tasks,
    memory and runs.

    Prints an address that lets one browser in, once. Listens on 127.0.0.1 alone. With forms you record and drop
    decisions, accept, drop and add what is remembered, and send a notice, as yourself. The pages hold up no agent.
    Requires the extra `web`.
    """
    check_extra("ralf web")
    from ralf_integrations.web import server

    def ready(address: str) -> None:
        click.echo(address)
        say("open it in a browser on this machine: it works once. Ctrl-C ends the server")

    server.serve(root(), port=port, ready=ready, is_persons=is_person())


def check_extra(command: str) -> None:
    """RalfError where what the pages are made with is not installed."""
    if missing := [name for name in _NEEDS if find_spec(name) is None]:
        what = f"the extra `web` is not installed here: {', '.join(missing)}"
        raise RalfError(command, what, "in a clone of ralf: pip install '.[web]', or: pipx install --force '.[web]'")
