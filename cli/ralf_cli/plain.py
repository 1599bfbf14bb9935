"""What agents type most, answered in a pipe without loading click, which takes longer than the answer.

    ralf list · show ROUTE          ralf task list · show · claim · progress · done
    ralf memory show --for TEXT     ralf decide ROUTE TEXT
    ralf --help

`--root DIR` may precede them. The output is the same to the byte: `ralf_cli.main` handles everything unusual (a
terminal, another option, a warning, an error), before anything is printed. A command that may have written is never
run a second time: `ralf_cli.main` says what went wrong, and no more.
"""

from __future__ import annotations

import gc
import posix
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, NoReturn

from ralf import environment
from ralf.errors import RalfError
from ralf_cli import aliases, answers, tables
from ralf_integrations.hooks import instant

if TYPE_CHECKING:
    from ralf.tasks.model import TaskState

_Options = dict[str, str]


class _Failed(Exception):
    """A command that may have written has failed: `__cause__`."""


def run() -> NoReturn:
    """Run the command line and exit with its status."""
    instant.open_streams()
    raised: BaseException | None = None
    wrote: list[str] = []
    words = sys.argv[1:]
    try:
        with answers.Watch() if answers.may_be_kept(words) else nullcontext() as watch:
            if b"RALF_LEASE" in posix.environ:
                _show_life()
            text = _answer(words, wrote)
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
    except _Failed as error:
        raised = error.__cause__
    except (OSError, MemoryError) as error:  # said by what follows, which meets it, too
        raised = error if wrote else None
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


def _answer(arguments: Sequence[str], wrote: list[str]) -> str:
    """Return what the command prints; "" where it is none of these, or has more to say than that.

    wrote  gets the name of a command that may have written, before it does
    """
    out = sys.stdout
    root, rest = (arguments[1], arguments[2:]) if arguments[:1] == ["--root"] and arguments[1:] else (None, arguments)
    if out is None or out.encoding.lower() != "utf-8" or out.isatty():
        return ""
    if rest in (["--help"], ["-h"]):
        return _help()
    rest = aliases.resolved(rest)
    name = " ".join(rest[:2] if rest[:1] in _GROUPS else rest[:1])
    if name not in _COMMANDS:
        return ""
    does, least, most, allowed = _COMMANDS[name]
    options = _parsed(rest[name.count(" ") + 1 :], allowed)
    if options is None or (_FOR in allowed and _FOR not in options):
        return ""
    if not least <= ("" in options) + (_SECOND in options) <= most:
        return ""
    from ralf import extensions

    if _has_servers(root) or (name in _WRITES and _is_no_project(root)):
        return ""
    if name in _WRITES:
        wrote.append(name)
    try:
        text = does(options, root)
    except RalfError as error:
        if not wrote:
            return ""
        error.hint = _typed(error.hint, root)
        raise _Failed from error
    if not extensions.problems:
        return text
    if wrote:
        _say(f"warning: {problem}" for problem in extensions.problems)
    return text if wrote else ""


def _help() -> str:
    """The page that `ralf_cli.main` makes for 80 columns and more, "" for fewer; how to make it: CONTRIBUTING.md."""
    columns = posix.environ.get(b"COLUMNS", b"")
    if columns and not (columns.isdigit() and int(columns) >= _WIDTH):
        return ""
    with open(f"{__file__.rpartition('/')[0]}/help.txt", encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


def _has_servers(root: str | None) -> bool:
    """Whether the journal may lie on servers: then the command has more to do (`reading.show`, `output.given_back`)."""
    from ralf import project
    from ralf_integrations.stores import choosing

    try:
        return choosing.names_servers(project.find(root))
    except (RalfError, OSError):  # the command meets it, too
        return False


def _is_no_project(root: str | None) -> bool:
    """Whether a write would make the store, which is then said (`ralf_cli.main`)."""
    from ralf import project

    try:
        return not project.find(root).owner.key
    except RalfError:  # the command meets it, too
        return True


def _parsed(arguments: Sequence[str], allowed: Sequence[str]) -> _Options | None:
    """Options by their names, one argument by "", another by `_SECOND`; None for anything else, such as `-`, standard
    input.
    """
    found: _Options = {}
    left = iter(arguments)
    for argument in left:
        name = argument if argument in allowed else _SECOND if "" in found else ""
        value = "yes" if name in (_JSON, _FRESH) else next(left, "-") if name in allowed else argument
        if (
            name in found
            or value.startswith("-")
            or not value.strip()
            or (name in _NUMBERS and not _is_positive(value))
        ):
            return None
        found[name] = value
    return found


def _is_positive(value: str) -> bool:
    return value.isdecimal() and len(value) < _DIGITS and int(value) > 0


def _typed(text: str, root: str | None) -> str:
    """A hint with the commands in it as they are typed in the project that is meant."""
    import shlex

    from ralf import config, project
    from ralf_integrations.blackbox5 import installing

    if "--root" in text:
        return text
    with suppress(RalfError, OSError):
        command = installing.command(project.find(root))
        return config.typed(text, command if root is None else f"{command} --root {shlex.quote(root)}")
    return text


def _say(lines: Iterable[str]) -> None:
    """Print what is not data; whoever reads no more of it gets the answer all the same."""
    for line in lines:
        with suppress(OSError):
            posix.write(2, f"{tables.bounded(line)}\n".encode("utf-8", "backslashreplace"))


def _list(options: _Options, root: str | None) -> str:
    import ralf
    from ralf import project, routing

    routes = ralf.list_routes(root=root)
    if any(route.damage for route in routes) or not routes or routing.strays(project.find(root)):
        return ""
    return _for_reader(tables.aligned(tables.HEADINGS, map(tables.cells, routes), tables.RIGHT) + "\n")


def _show(options: _Options, root: str | None) -> str:
    import ralf

    context = ralf.get_context(options[""], root=root)
    most = options.get("--max-tokens")
    if context.warnings or root is not None:  # what it says to type names the project, too
        return ""
    return context.render(None if most is None else int(most), fenced=environment.is_agent())


def _decide(options: _Options, root: str | None) -> str:
    import ralf
    from ralf import project as projects, routing
    from ralf.route.load import load_state
    from ralf.text import cleaning
    from ralf_cli.person import author

    route, project = options[""], projects.find(root)
    if not cleaning.is_valid(route) or routing.known(project, route) != route:
        return ""
    decision = ralf.record_decision(
        route,
        options[_SECOND],
        rationale=options.get("--because", ""),
        alternatives=[value for name, value in options.items() if name == "--instead-of"],
        supersedes=options.get("--supersedes"),
        origin=author(),
        root=project,
        warn=lambda warning: _say([_typed(f"warning: {warning}", root)]),
    )
    text = _for_reader(f"{route}: {decision.id}: {tables.echoed(decision.decision)}\n")
    state = load_state(project, route)
    if state is None or not state.context.warnings:
        return text
    from ralf_cli.writing import complained

    instant.say(text)
    complained(state.context.warnings[0])
    sys.exit(4)


def _memory_for(options: _Options, root: str | None) -> str:
    from ralf.memory.selection import get_memory

    if not environment.is_agent():  # without the fence, which `ralf_cli.memory` takes away
        return ""
    return get_memory(options[_FOR], agent=environment.memory_name(), root=root).text


def _show_fresh(options: _Options, root: str | None) -> str:
    from ralf.tasks import refresh
    from ralf_cli.tasktext import REFRESH_TOKENS

    most = int(options.get("--max-tokens", REFRESH_TOKENS))
    found = refresh.refresh(task=options.get(""), max_tokens=most, root=root)
    if found.warnings:
        return ""
    return _json(found.to_json()) if _JSON in options else found.render(fenced=environment.is_agent())


def _list_tasks(options: _Options, root: str | None) -> str:
    from ralf_cli.tasktext import as_json, listed, more, tasks_of, warnings_of

    found = tasks_of(role=options.get("--role"), root=root)
    if found.damaged or warnings_of(found) or not found.tasks:
        return ""
    if found.left:
        _say([more(found, _ralf(root))])
    if _JSON in options:
        return _json([as_json(state) for state in found.tasks])
    return _for_reader(listed(found.tasks))


def _show_task(options: _Options, root: str | None) -> str:
    if "" not in options or _FRESH in options:
        return _show_fresh(options, root)
    from ralf.tasks import store
    from ralf_cli.tasktext import as_json, full

    state = store.get(options[""], root=root)
    if state.warnings:
        return ""
    return _json(as_json(state)) if _JSON in options else _for_reader(full(state, root))


def _claim(options: _Options, root: str | None) -> str:
    from ralf.tasks import claims
    from ralf_cli.tasktext import LEASE, check_may_claim, claimed

    check_may_claim(root)
    seconds = int(options.get("--lease", LEASE))
    state = claims.claim(options.get(""), role=options.get("--role"), seconds=seconds, root=root)
    return _told(options, state, claimed(state, _ralf(root)))


def _progress(options: _Options, root: str | None) -> str:
    from ralf.tasks import claims
    from ralf_cli.tasktext import noted

    state = claims.progress(options[""], task=options.get("--task"), root=root)
    return _told(options, state, noted(state))


def _done(options: _Options, root: str | None) -> str:
    from ralf.tasks import claims
    from ralf_cli.tasktext import ended, ends_session

    state = claims.done(options[""], task=options.get("--task"), root=root)
    return _told(options, state, ended(state, _ralf(root), checkpoint=ends_session(state, root)))


def _told(options: _Options, state: TaskState, text: str) -> str:
    """What is printed of a task after a write; its warnings are said."""
    from ralf_cli.tasktext import as_json

    _say(f"warning: {warning}" for warning in state.warnings)
    return _json(as_json(state)) if _JSON in options else _for_reader(text)


def _for_reader(text: str) -> str:
    """A text as an agent reads it, in the fence; as it is for a script."""
    from ralf.text.cleaning import fenced, shown

    return fenced(shown(text)) if environment.is_agent() else text


def _json(value: object) -> str:
    """JSON of a value; a character that no stream can encode as an escape sequence of JSON."""
    return f"{tables.as_json(value)}\n".encode("utf-8", "backslashreplace").decode()


def _ralf(root: str | None) -> str:
    from ralf import project

    return project.find(root).command


_JSON, _FOR, _FRESH = "--json", "--for", "--fresh"

_SECOND = " "

_OF_DECIDE = ("--because", "--instead-of", "--supersedes")

_COMMANDS: dict[str, tuple[Callable[[_Options, str | None], str], int, int, tuple[str, ...]]] = {
    "list": (_list, 0, 0, ()),
    "show": (_show, 1, 1, ("--max-tokens",)),
    "decide": (_decide, 2, 2, _OF_DECIDE),
    "memory show": (_memory_for, 0, 0, (_FOR,)),
    "task list": (_list_tasks, 0, 0, ("--role", _JSON)),
    "task show": (_show_task, 0, 1, ("--max-tokens", _FRESH, _JSON)),
    "task claim": (_claim, 0, 1, ("--role", "--lease", _JSON)),
    "task progress": (_progress, 1, 1, ("--task", _JSON)),
    "task done": (_done, 1, 1, ("--task", _JSON)),
}
"""What does a command, how many arguments it takes, and which options."""

_GROUPS = (["memory"], ["task"])

_WRITES = frozenset(("decide", "task claim", "task progress", "task done"))

_NUMBERS = frozenset(("--max-tokens", "--lease"))

_DIGITS = 10

_WIDTH = 80  # columns of the widest page of help
