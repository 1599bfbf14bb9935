"""`ralf export`: a route as one file for a pull request, or as a prompt for another tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralf_cli.command import command
from ralf_cli.options import complete_route, named_or_meant, with_root

if TYPE_CHECKING:
    from ralf.errors import RalfError

_TOOLS = ("claude", "codex", "gemini", "opencode")


@command(short_help="Export a route as HTML, Markdown or a prompt; or the memory.")
@click.argument("route", required=False, metavar="[ROUTE]", shell_complete=complete_route)
@click.option("--html", "form", flag_value="html", help="One self-contained HTML file. Requires the extra `web`.")
@click.option("--md", "form", flag_value="md", help="Markdown for a pull request.")
@click.option("--for", "tool", type=click.Choice(_TOOLS), help="A prompt for this tool, to paste or to pipe.")
@click.option(
    "--max-tokens", type=click.IntRange(min=1), metavar="N", help="Limit of the notes with --for. Default: 4000."
)
@click.option("-o", "--output", metavar="FILE", help="Write to FILE instead of standard output.")
@click.option(
    "--memory",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the memory into CLAUDE.md, AGENTS.md or MEMORY.md, between two markers.",
)
@with_root
@click.pass_context
def export(
    ctx: click.Context,
    route: str | None,
    form: str | None,
    tool: str | None,
    max_tokens: int | None,
    output: str | None,
    memory: Path | None,
    root: str | None,
) -> None:
    """Export ROUTE: as one file for a pull request (--html, --md), or as a prompt for an agent of another tool (--for).
    With --memory: the most valuable items of the memory, as many as the file's client loads; the rest of the file stays
    as it is, and a second time the section is made anew.

    The file has the goal, the state, decisions with their reasons, rules, failed approaches, files and checkpoints.
    The prompt has what the next agent would be handed. Nothing foreign is exported.

    \b
    Examples:
      ralf export TASK-001 --md -o context.md
      ralf export TASK-001 --html -o context.html
      ralf export TASK-001 --for codex | codex exec -
      ralf export --memory CLAUDE.md

    \b
    Exit status: 0 · 1 unwritable, the extra is not installed · 2 invalid name, nothing or too much asked for, a foreign
    route · 3 no such route · 4 damaged data
    """
    import ralf
    from ralf.brief import exporting
    from ralf.storage import durable
    from ralf_cli.output import say, warn
    from ralf_cli.tables import in_bytes

    if memory is not None:
        if route is not None or form or tool:
            raise click.UsageError("--memory stands alone")
        _export_memory(memory, root)
        return
    route = named_or_meant(ctx, route)
    if (form is None) == (tool is None):
        raise click.UsageError("name one form: --html, --md or --for TOOL")
    if max_tokens is not None and tool is None:
        raise click.UsageError("--max-tokens limits the prompt of --for")
    if form == "html":
        from ralf_cli.web import check_extra

        check_extra("ralf export --html")
    context = ralf.get_context(route, root=root)
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
    else:
        try:
            durable.write(Path(output), content, mode=0o644)
        except OSError as error:  # it names the file that was to be put into its place
            raise _unwritten(output, error) from None
        say(f"{output}: {in_bytes(len(content))}")


def _export_memory(file: Path, root: str | None) -> None:
    """Write the most valuable items of this agent's memory into a file."""
    from ralf import environment, project as projects
    from ralf.memory.exporting import export as export_to
    from ralf.memory.model import check_agent
    from ralf_cli.output import handed_over

    done = export_to(projects.find(root), check_agent(environment.memory_name()), file.absolute())
    left = f", {done.left_out:,} left out" if done.left_out else ""
    with handed_over():
        click.echo(f"{file}: {done.items:,} items{left}" + ("" if done.is_changed else "; unchanged"))


def _unwritten(output: str, error: OSError) -> RalfError:
    """What is said of a file that cannot be written."""
    import errno
    import shlex

    from ralf.errors import RalfError

    what = error.strerror or str(error)
    if error.errno == errno.ENOENT:
        return RalfError(output, "its folder is not there", f"mkdir -p {shlex.quote(str(Path(output).parent))}")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RalfError(output, what, "make room on the disk, then run the same command again")
    return RalfError(output, what, "name a file in a folder that can be written: -o FILE")
