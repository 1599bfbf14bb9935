"""`ralf export` and `ralf web`: a route as a file or a prompt, and the project in a browser."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

import ralf
from ralf import environment
from ralf.errors import RalfError
from ralf_cli.command import command, handed_over, project, root
from ralf_cli.options import named_or_meant, route_argument
from ralf_cli.output import say, so_many, warn
from ralf_cli.person import is_person

_TOOLS = ("claude", "codex", "gemini", "opencode")

_FOR_PAGES = ("jinja2", "markdown_it", "starlette", "uvicorn")


@command("root", is_fenced=False)
@route_argument()
@click.option("--html", "form", flag_value="html", help="One self-contained HTML file. Requires the extra `web`.")
@click.option("--md", "form", flag_value="md", help="Markdown for a pull request.")
@click.option("--for", "tool", type=click.Choice(_TOOLS), help="A prompt for this tool, to paste or pipe.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Token limit for the --for prompt. [4000]")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE.")
@click.option("--memory", metavar="FILE", type=click.Path(path_type=Path), help="Write the memory into FILE.")
def export(
    route: str | None,
    form: str | None,
    tool: str | None,
    max_tokens: int | None,
    output: Path | None,
    memory: Path | None,
) -> None:
    """Export ROUTE as one file for a pull request (--html, --md), or as a prompt for another tool's agent (--for). With
    --memory, write the most valuable memory items into a section of FILE, at most as many as the client loads. ralf
    replaces only that section.

    ralf does not export content from other machines until you accept it (`ralf trust`).

    \b
    Examples:
      ralf export TASK-001 --md -o context.md
      ralf export TASK-001 --html -o context.html
      ralf export TASK-001 --for codex | codex exec -
      ralf export --memory CLAUDE.md
    """
    if memory is not None:
        if route is not None or form or tool:
            raise click.UsageError("--memory takes no ROUTE and no form")
        _export_memory(memory)
        return
    route = named_or_meant(route)
    if (form is None) == (tool is None):
        raise click.UsageError("name one form: --html, --md or --for TOOL")
    if max_tokens is not None and tool is None:
        raise click.UsageError("--max-tokens requires --for")
    if form == "html":
        _check_extra("ralf export --html")
    from ralf.brief import exporting
    from ralf.storage import durable

    context = ralf.get_context(route, root=root())
    warn(context.warnings)
    if tool is not None:
        text = exporting.prompt(context, tool, max_tokens or exporting.TOKENS)
    elif form == "md":
        text = exporting.markdown(context)
    else:
        from ralf_integrations.web.exporting import html

        text = html(context)
    content = text.encode("utf-8", "replace")
    if output is None:
        click.echo(content, nl=False)
        return
    try:
        durable.write(output, content, mode=0o644)
    except OSError as error:  # it names a temporary file
        what = error.strerror or str(error)
        raise RalfError(output, what, "name a file in an existing folder with free space: -o FILE") from None
    say(f"{output}: {so_many(len(content), 'byte')}")


def _export_memory(file: Path) -> None:
    from ralf.memory.exporting import export as export_to
    from ralf.memory.model import check_agent

    done = export_to(project(), check_agent(environment.memory_name()), file.absolute())
    left = f", {done.left_out:,} left out" if done.left_out else ""
    with handed_over():
        click.echo(f"{file}: {done.items:,} items{left}" + ("" if done.is_changed else "; unchanged"))


@command("root", is_fenced=False)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port. Default: a free port.")
def web(port: int) -> None:
    """Show this project's sessions, routes, tasks, memory, runs and pending items in a browser until Ctrl-C.

    The server listens on 127.0.0.1 only and prints a single-use URL. On the pages, you can record and drop decisions,
    accept, drop and add memory items, and send notices; ralf records these as yours. Requires the extra `web`.
    """
    _check_extra("ralf web")
    from ralf_integrations.web import server

    is_persons = is_person()

    def ready(address: str) -> None:
        click.echo(address)
        say("open it in a browser on this machine; it works once. Ctrl-C ends the server")
        if not is_persons:
            say("note: the pages have no forms: no person started this in a terminal")

    server.serve(root(), port=port, ready=ready, is_persons=is_persons)


def _check_extra(command: str) -> None:
    """RalfError unless the libraries of the pages are installed."""
    if missing := [name for name in _FOR_PAGES if find_spec(name) is None]:
        what = f"the extra `web` is not installed here: {', '.join(missing)}"
        raise RalfError(command, what, "in a clone of ralf: pip install '.[web]', or: pipx install --force '.[web]'")
