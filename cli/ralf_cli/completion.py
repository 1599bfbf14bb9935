"""`ralf completion`: what a shell completes, and the script that has it ask."""

from __future__ import annotations

from contextlib import suppress

import click
from click.shell_completion import CompletionItem, get_completion_class

from ralf_cli.command import command

_SHELLS = ("bash", "zsh", "fish")

_VARIABLE = "_RALF_COMPLETE"

_HELP = 60  # characters of what a label stands for

_INSTALL = {
    "bash": 'eval "$(ralf completion bash)"',
    "zsh": 'eval "$(ralf completion zsh)"',
    "fish": "ralf completion fish | source",
}


@command(short_help="Print a shell's completion script.")
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, routes, decisions and checkpoints.

    Write into ~/.bashrc: eval "$(ralf completion bash)"; into ~/.zshrc: eval "$(ralf completion zsh)"; into
    ~/.config/fish/config.fish: ralf completion fish | source.

    \b
    Examples:
      eval "$(ralf completion bash)"
      ralf completion fish | source

    \b
    Exit status: 0 · 2 another shell
    """
    import sys

    from ralf_cli.output import say

    found = get_completion_class(shell)
    if found is not None:
        root = click.get_current_context().find_root().command
        click.echo(found(root, {}, "ralf", _VARIABLE).source())
    if sys.stdout.isatty():
        say(f"to switch it on: {_INSTALL[shell]}")


def routes(root: str | None, incomplete: str) -> list[CompletionItem]:
    """The routes of a project whose names begin so; none where they cannot be read."""
    from ralf import project, routing
    from ralf.errors import RalfError

    with suppress(RalfError, OSError):
        begin = incomplete.casefold()
        names = routing.names_of(project.find(root))
        return [CompletionItem(name) for name in names if name.casefold().startswith(begin)]
    return []


def labels(root: str | None, route: str | None, incomplete: str) -> list[CompletionItem]:
    """The decisions in force and the checkpoints of a route whose labels begin so, newest first, with what they are;
    none where they cannot be read.

    route  None: the current one. Under the name of one that was merged into another, labels that mean other items there
           are left out
    """
    begin = incomplete.casefold()
    if not any(one.startswith(begin[: len(one)]) for one in ("cp-", "dec-")):
        return []  # before anything is loaded
    import ralf
    from ralf import project
    from ralf.checkpointing.progress import meant
    from ralf.errors import RalfError
    from ralf.text.cleaning import one_line, trimmed

    with suppress(RalfError, OSError):
        name = route if route is not None else meant(project.find(root)).route
        context = ralf.get_context(name, root=root)
        items = [(item.id, item.decision) for item in context.decisions if item.status == "active"]
        items += [(entry.checkpoint_id, entry.summary_ref.partition(": ")[2]) for entry in context.checkpoints]
        return [
            CompletionItem(label, help=trimmed(one_line(text), _HELP))
            for label, text in reversed(items)
            if label.casefold().startswith(begin)
        ]
    return []
