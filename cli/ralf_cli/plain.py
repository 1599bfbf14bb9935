"""`ralf context list` and `ralf context show ROUTE` in a pipe, answered without loading click.

Agents type these two commands, and click takes longer to load than a route to read. `--root DIR` may precede them. The
output is the same to the byte: `ralf_cli.main` handles everything unusual (a terminal, another option, a warning, an
error), before anything is printed.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import NoReturn

from ralf_cli.tables import HEADINGS, RIGHT, aligned, cells
from ralf_integrations.hooks import instant


def run() -> NoReturn:
    """Run the command line and exit with its status: the entry point of `ralf`."""
    gc.disable()  # what is loaded stays: to look through it again and again is a tenth of a short command
    instant.open_streams()
    try:
        if text := _answer(sys.argv[1:]):
            instant.say(text)
            gc.freeze()  # the process ends: nothing is worth the collector's look at everything
            sys.exit(0)
    except BrokenPipeError:  # nobody reads on
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except (OSError, MemoryError):  # said by what follows, which meets it, too
        pass
    from ralf_cli.main import run as run_commands

    gc.enable()
    run_commands()


def _answer(arguments: Sequence[str]) -> str:
    """Return what the command prints; "" where it is not one of the two, or has more to say than that."""
    out = sys.stdout
    root, rest = (arguments[1], arguments[2:]) if arguments[:1] == ["--root"] and arguments[1:] else (None, arguments)
    if rest[:1] != ["context"] or out is None or out.encoding.lower() != "utf-8" or out.isatty():
        return ""
    from ralf import extensions
    from ralf.errors import RalfError

    try:
        match list(rest[1:]):
            case ["list"]:
                text = _list(root)
            case ["show", route] if not route.startswith("-"):
                text = _show(route, None, root)
            case ["show", route, "--max-tokens", most] if not route.startswith("-") and most.isdecimal():
                text = _show(route, int(most), root)
            case _:
                text = ""
    except RalfError:
        return ""
    return "" if extensions.problems else text


def _list(root: str | None) -> str:
    import ralf
    from ralf import project, routing
    from ralf.text.cleaning import fenced, shown

    routes = ralf.list_routes(root=root)
    if any(route.damage for route in routes) or not routes or routing.strays(project.find(root)):
        return ""
    return fenced(shown(aligned(HEADINGS, map(cells, routes), RIGHT) + "\n"))


def _show(route: str, max_tokens: int | None, root: str | None) -> str:
    import ralf

    context = ralf.get_context(route, root=root)
    return "" if context.warnings else context.render(max_tokens, fenced=True)
