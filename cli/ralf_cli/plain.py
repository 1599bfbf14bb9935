"""`ralf list`, `show ROUTE`, `decide ROUTE TEXT` and `--help` in a pipe, without click, which takes longer to load.

`--root DIR` may precede them, `--max-tokens N` or `--because WHY` follow. The output is the same to the byte:
`ralf_cli.main` handles everything else (a terminal, another option, a warning, an error), before anything is printed.
"""

from __future__ import annotations

import gc
import posix
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import NoReturn

from ralf import environment
from ralf.errors import Busy, RalfError
from ralf_cli import answers
from ralf_integrations.hooks import instant

_WIDTH = 80  # columns of the widest page of help

_DIGITS = 9  # of a number of tokens, at most


def run() -> NoReturn:
    """Run the command line and exit with its status."""
    instant.open_streams()
    words, raised = sys.argv[1:], None
    try:
        with answers.Watch() if answers.may_be_kept(words) else nullcontext() as watch:
            if b"RALF_LEASE" in posix.environ:
                _show_life()
            text = _answer(words)
        if text:
            answers.say(text.encode())
            with suppress(Exception):  # who asks has the answer
                if watch is not None:
                    watch.keep(words, text)
            _end()
    except BrokenPipeError:  # nobody reads on
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except Busy as error:  # who has waited once waits no second time
        raised = error
    except (OSError, MemoryError):  # said by what follows, which meets it, too
        pass
    from ralf_cli.main import run as run_commands

    gc.enable()
    run_commands(raised)


def _end() -> NoReturn:
    """End the process at once: to free all that it holds first is a twentieth of a short command."""
    import atexit

    atexit._run_exitfuncs()
    sys.stdout.flush()  # what an extension printed
    posix._exit(0)


def _show_life() -> None:
    """Every command of an agent that holds a task is a sign of life. What is wrong is said by whatever needs it."""
    from ralf import project

    lease = posix.environ[b"RALF_LEASE"].replace(b":", b"-")
    with suppress(RalfError, OSError, ValueError):
        if b"/" not in lease:
            where = bytes(project.find(None).cache / "leases") + b"/" + lease  # `ralf.tasks.leases.file_of`
            try:
                posix.utime(where)
            except FileNotFoundError:
                posix.stat(where + b".due")  # only for a lease of a store's engine there is this file

                from ralf.tasks import keeping

                keeping.touch()


def _answer(arguments: Sequence[str]) -> str:
    """Return what the command prints; "" where it is none of these, or has more to say than that."""
    out = sys.stdout
    root, rest = (arguments[1], arguments[2:]) if arguments[:1] == ["--root"] and arguments[1:] else (None, arguments)
    if out is None or out.encoding.lower() != "utf-8" or out.isatty():
        return ""
    if rest in (["--help"], ["-h"]):
        return _help()
    rest = rest[1:] if rest[:1] == ["context"] else rest
    count, option = _COMMANDS.get(rest[0] if rest else "", (0, ""))
    given, more = rest[1 : count + 1], [*rest[count + 1 :], "", ""]
    if not rest or rest[0] not in _COMMANDS or len(given) < count or more[0] not in ("", option):
        return ""
    if len(rest) != 1 + count + 2 * bool(more[0]) or any(not one.strip() or one.startswith("-") for one in given):
        return ""
    from ralf import extensions, project
    from ralf_integrations.stores import choosing

    try:
        if choosing.names_servers(project.find(root)):
            return ""
        does: dict[str, Callable[..., str]] = {"list": _list, "show": _show, "decide": _decide}
        text = does[rest[0]](root, more[1], *given)
    except Busy:
        raise
    except RalfError:
        return ""
    return "" if extensions.problems else text


_COMMANDS = {"list": (0, ""), "show": (1, "--max-tokens"), "decide": (2, "--because")}
"""How many arguments a command takes, and which option behind them."""


def _help() -> str:
    """The page that `ralf_cli.main` makes for 80 columns and more, "" for fewer; how to make it: CONTRIBUTING.md."""
    columns = posix.environ.get(b"COLUMNS", b"")
    if columns and not (columns.isdigit() and int(columns) >= _WIDTH):
        return ""
    with open(f"{__file__.rpartition('/')[0]}/help.txt", encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


def _list(root: str | None, _: str) -> str:
    import ralf
    from ralf import project, routing
    from ralf_cli import tables

    routes = ralf.list_routes(root=root)
    if any(route.damage for route in routes) or not routes or routing.strays(project.find(root)):
        return ""
    return _for_reader(tables.listed(routes))


def _show(root: str | None, most: str, route: str) -> str:
    import ralf

    if most and not (most.isdecimal() and len(most) <= _DIGITS and int(most) > 0):
        return ""
    context = ralf.get_context(route, root=root)
    if context.warnings or root is not None:  # what it says to type names the project, too
        return ""
    return context.render(int(most) if most else None, fenced=environment.is_agent())


def _decide(root: str | None, because: str, route: str, text: str) -> str:
    """Record a decision. Where there is more to say, `ralf_cli.main` does it again, which records it no second time."""
    import ralf
    from ralf import project as projects, routing
    from ralf.route.load import load_state
    from ralf.text.cleaning import is_valid
    from ralf_cli.person import author
    from ralf_cli.tables import echoed

    project = projects.find(root)
    if (
        not project.owner.key
        or not is_valid(route)
        or routing.known(project, route) != route
        or because.startswith("-")
    ):
        return ""
    said: list[str] = []
    decision = ralf.record_decision(route, text, rationale=because, origin=author(), root=project, warn=said.append)
    if said:
        from ralf_cli.output import warn

        warn(said)
    state = load_state(project, route)
    if state is None or state.context.warnings:
        return ""
    return _for_reader(f"{route}: {decision.id}: {echoed(decision.decision)}\n")


def _for_reader(text: str) -> str:
    from ralf.text.cleaning import fenced, shown

    return fenced(shown(text)) if environment.is_agent() else text
