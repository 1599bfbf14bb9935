"""`ralf export`: a route as one file for a pull request, or as a prompt for another tool."""

from __future__ import annotations

from pathlib import Path

import click

import ralf
from ralf import environment
from ralf.brief import exporting
from ralf.errors import RalfError
from ralf.memory.exporting import export as export_to
from ralf.memory.model import check_agent
from ralf.storage import durable
from ralf_cli.command import command, handed_over, project, root
from ralf_cli.options import named_or_meant, route_argument
from ralf_cli.output import say, warn
from ralf_cli.tables import so_many

_TOOLS = ("claude", "codex", "gemini", "opencode")


@command("root", is_fenced=False)
@route_argument()
@click.option("--html", "form", flag_value="html", help="One self-contained HTML file. Requires the extra `web`.")
@click.option("--md", "form", flag_value="md", help="Markdown for a pull request.")
@click.option("--for", "tool", type=click.Choice(_TOOLS), help="A prompt for this tool, to paste or to pipe.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Limit of the notes with --for. [4000]")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE.")
@click.option("--memory", metavar="FILE", type=click.Path(path_type=Path), help="Write the memory into CLAUDE.md …")
def export(
    route: str | None,
    form: str | None,
    tool: str | None,
    max_tokens: int | None,
    output: Path | None,
    memory: Path | None,
) -> None:
    """Export ROUTE: as one file for a pull request (--html, --md), or as a prompt for an agent of another tool (--for).
    With --memory: the most valuable items of the memory, as many as the file's client loads; the rest of the file stays
    as it is, and a second time the section is made anew.

    Nothing foreign is exported.

    \b
    Examples:
      ralf export TASK-001 --md -o context.md
      ralf export TASK-001 --html -o context.html
      ralf export TASK-001 --for codex | codex exec -
      ralf export --memory CLAUDE.md
    """
    if memory is not None:
        if route is not None or form or tool:
            raise click.UsageError("--memory stands alone")
        _export_memory(memory)
        return
    route = named_or_meant(route)
    if (form is None) == (tool is None):
        raise click.UsageError("name one form: --html, --md or --for TOOL")
    if max_tokens is not None and tool is None:
        raise click.UsageError("--max-tokens limits the prompt of --for")
    if form == "html":
        from ralf_cli.web import check_extra

        check_extra("ralf export --html")
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
    except OSError as error:  # it names the file that was to be put into its place
        what = error.strerror or str(error)
        raise RalfError(output, what, "name a file in a folder that is there and has room: -o FILE") from None
    say(f"{output}: {so_many(len(content), 'byte')}")


def _export_memory(file: Path) -> None:
    done = export_to(project(), check_agent(environment.memory_name()), file.absolute())
    left = f", {done.left_out:,} left out" if done.left_out else ""
    with handed_over():
        click.echo(f"{file}: {done.items:,} items{left}" + ("" if done.is_changed else "; unchanged"))
