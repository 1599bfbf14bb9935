"""The entry point: the tree of commands, loaded when named, and the one switch from error to exit status."""

from __future__ import annotations

import errno
import gc
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, ClassVar, NoReturn

import click

from ralf import __version__, environment, extensions, project
from ralf.errors import RalfError
from ralf_cli.command import GLOBAL, TakesShared
from ralf_integrations.hooks import instant

_ALL = f"{__name__}.all"

_OF_A_FULL_ONE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class LazyGroup(TakesShared, click.Group):
    """A group that imports a command's module when the command is named.

    lazy      name → "module:attribute"; all of `sections` where a class has these
    sections  heading in the help → commands, as in `lazy`
    """

    lazy: ClassVar[dict[str, str]] = {}
    sections: ClassVar[dict[str, dict[str, str]]] = {}

    def __init_subclass__(cls) -> None:
        if cls.sections:
            cls.lazy = {name: place for commands in cls.sections.values() for name, place in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in the order in which they were given."""
        return list(self.lazy)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under the headings of their sections, in columns of one width."""
        sections = self.shown_sections(ctx)
        width = max(len(name) for names in sections.values() for name in names)
        for heading, names in sections.items():
            commands = ((name, self.get_command(ctx, name)) for name in names)
            limit = formatter.width - 6 - width
            rows = [(name.ljust(width), found.get_short_help_str(limit)) for name, found in commands if found]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def shown_sections(self, ctx: click.Context) -> dict[str, dict[str, str]]:
        """What the help lists, under headings."""
        return self.sections or {"Commands": self.lazy}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name not in self.lazy:
            return None
        module, _, attribute = self.lazy[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named first; Misused, which names the right one, for one that is none."""
        if args and not args[0].startswith("-") and args[0] not in self.lazy:
            from ralf_cli.verbs import wrong

            raise wrong(ctx, args[0], args[1:])
        return super().resolve_command(ctx, args)


def group(name: str, commands: str, *, alone: str = "", **more: Any) -> LazyGroup:
    """A group of commands. Typed alone it is its help, or one of its commands.

    commands  `module:function` of each, with blanks between them; it is typed as its function is called
    alone     the command that it is when it is typed alone
    """

    class Made(LazyGroup):
        lazy: ClassVar[dict[str, str]] = {
            place.partition(":")[2].strip("_"): f"ralf_cli.{place}" for place in commands.split()
        }

        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            """An option that is not the group's is one of the command that it is alone."""
            own = {name for param in self.get_params(ctx) for name in (*param.opts, *param.secondary_opts)}
            is_of_command = alone and args and args[0].startswith("-") and args[0].partition("=")[0] not in own
            return super().parse_args(ctx, [alone, *args] if is_of_command else args)

    @click.pass_context
    def on_its_own(ctx: click.Context) -> None:
        if ctx.invoked_subcommand is None and not alone:
            click.echo(ctx.get_help())
        elif ctx.invoked_subcommand is None and (command := made.get_command(ctx, alone)):
            ctx.invoke(command)

    made = Made(name=name, invoke_without_command=True, callback=on_its_own, **more)
    return made


class _Main(LazyGroup):
    """All commands. Where one fails, the hint names commands as they are typed in the project that is meant."""

    sections: ClassVar[dict[str, dict[str, str]]] = {
        "Everyday commands": {
            "status": "ralf_cli.status:status",
            "list": "ralf_cli.reading:list_",
            "show": "ralf_cli.reading:show",
            "search": "ralf_cli.searching:search",
            "log": "ralf_cli.history:log",
            "decide": "ralf_cli.writing:decide",
            "undo": "ralf_cli.undo:undo",
            "edit": "ralf_cli.writing:edit",
        },
        "Agents and their tasks": {
            "task": "ralf_cli.task:task",
            "loop": "ralf_cli.loop:loop",
            "memory": "ralf_cli.memory:memory",
            "handover": "ralf_cli.handover:handover",
        },
        "Setup": {
            "init": "ralf_cli.init:init",
            "config": "ralf_cli.config:config",
            "doctor": "ralf_cli.status:doctor",
            "web": "ralf_cli.web:web",
        },
        "Less often": {
            "checkpoint": "ralf_cli.writing:checkpoint",
            "route": "ralf_cli.route:route",
            "run": "ralf_cli.run:run",
            "send": "ralf_cli.send:send",
            "plan": "ralf_cli.plan:plan",
            "trust": "ralf_cli.trust:trust",
            "forget": "ralf_cli.maintenance:forget",
            "gc": "ralf_cli.maintenance:gc",
            "import": "ralf_cli.importing:import_",
            "export": "ralf_cli.export:export",
        },
        "For machines": {
            "hook": "ralf_cli.hook:hook",
            "mcp": "ralf_cli.mcp:mcp",
            "completion": "ralf_cli.completion:completion",
            "schema": "ralf_cli.schema:schema",
        },
    }
    everyday = ("Everyday commands", "Agents and their tasks", "Setup")

    def shown_sections(self, ctx: click.Context) -> dict[str, dict[str, str]]:
        """What the help lists: sixteen commands, or all."""
        return {name: own for name, own in self.sections.items() if name in self.everyday or ctx.meta.get(_ALL)}

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say how to see the rest."""
        if not ctx.meta.get(_ALL):
            formatter.write_paragraph()
            formatter.write_text("All commands: ralf help all")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named, also by a name that other tools have for it. `help` before one asks for its help,
        `help all` for that of all.
        """
        from ralf_cli.aliases import resolved

        if args[:1] == ["help"] and not ctx.resilient_parsing:
            if args[1:] in ([], ["all"]):
                ctx.meta[_ALL] = bool(args[1:])
                click.echo(ctx.get_help())
                ctx.exit()
            args = [*args[1:], "--help"]
        return super().resolve_command(ctx, resolved(args))

    def invoke(self, ctx: click.Context) -> Any:
        """Run what was named."""
        try:
            return super().invoke(ctx)
        except RalfError as error:
            from ralf_cli.terminal import typed

            error.hint = typed(error.hint)
            raise


@click.group(cls=_Main, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--load-context", metavar="ROUTE", help="Print what `ralf show ROUTE` prints.")
@click.version_option(__version__, prog_name="ralf", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context, load_context: str | None) -> None:
    """Long-term memory for coding agents.

    ralf keeps, per route (a unit of work, usually a task), one Markdown file with its decisions and their reasons,
    its active work and its compressed history. Commands that take a ROUTE use the current one if none is named
    (`ralf route`). Without a command, ralf prints the status, and what to do next.

    \b
    Examples:
      ralf init --client claude-code
      ralf list
      ralf show TASK-001 --max-tokens 2500
      ralf search "why not asyncio"
      ralf decide "Use SQLite" --because "one file, many readers"

    \b
    Exit status: 0 success (including nothing to do) · 1 failed (unwritable, disk full) ·
    2 usage error or invalid name · 3 not found (route, transcript, id) · 4 damaged data · 5 busy or conflict
    """
    if environment.is_without_colour():
        ctx.color = False
    if load_context is not None:
        if ctx.invoked_subcommand is not None:
            raise click.UsageError(f"--load-context prints a route, and takes no command: {ctx.invoked_subcommand}")
        from ralf_cli.reading import show

        ctx.invoke(show, given=(load_context,))
        return
    if ctx.invoked_subcommand is None:
        from ralf_cli.status import status, suggest

        if (found := ctx.invoke(status)) is not None:
            suggest(found)


main.params += GLOBAL


def run(raised: BaseException | None = None) -> NoReturn:
    """Run the command line, but for what `ralf_cli.plain` answers, and exit with its status.

    raised  what went wrong in a command that `plain` ran and that may have written: it is said, and nothing is run
    """
    instant.open_streams()
    _escape()
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # as long as we run
    elif sys.stdout.isatty():
        from ralf_cli.terminal import guard

        guard()
    project.made.clear()
    try:
        if raised is not None:
            _pass_on(raised)
        status = main.main(standalone_mode=False, prog_name="ralf")
        if extensions.problems or project.made:
            from ralf_cli.output import say

            for problem in extensions.problems:
                say(f"warning: {problem}")
            for folder in project.made:
                say(f"note: there was no project here: made {folder}; to enable ralf in it: ralf init")
        sys.stdout.flush()
    except RalfError as error:
        _complain(str(error), error.hint)
        status = error.exit_status
    except click.UsageError as error:
        from ralf_cli import verbs

        where = error.ctx.command_path if error.ctx else "ralf"
        hint = getattr(error, "hint", "") or verbs.right_option(error)
        _complain(f"{where}: {error.format_message()}", hint or f"{where} --help")
        status = 1 if where == "ralf hook" else 2  # to a client 2 means: block what the person or the agent does
    except click.exceptions.Exit as error:
        status = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        status = 130
    except (BrokenPipeError, SystemExit):  # click makes the one the other, and raises no other SystemExit here
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on: no complaint at exit
        status = 0
    except MemoryError:
        _complain("ralf: not enough memory; what was acknowledged is kept", "free some, or raise the limit: ulimit -v")
        status = 1
    except OSError as error:
        if error.filename is None and error.errno in _OF_A_FULL_ONE and _is_full(sys.stdout):
            what = f"standard output: {error.strerror or error}"
            _complain(what, "what was recorded is kept: look before you run it again: ralf list")
        else:
            where = error.filename or "ralf"
            _complain(f"{os.fsdecode(where)}: {error.strerror or error}", _os_hint(error))
        status = 1
    gc.freeze()  # the process ends: nothing is worth the collector's look at everything, a tenth of a short command
    sys.exit(status if isinstance(status, int) else 0)


def _pass_on(raised: BaseException) -> NoReturn:
    raise raised


def _escape() -> None:
    """Have what the streams cannot encode escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _is_full(stream: IO[str]) -> bool:
    """Whether a stream takes no more; then it is given up, so that nobody complains at exit."""
    try:
        os.write(stream.fileno(), b"\n")
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return True
    return False


def _complain(message: str, hint: str) -> None:
    from ralf_cli.terminal import complain

    try:
        complain(message, hint)
    except OSError:  # nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _os_hint(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room on the disk, then run the same command again"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        kind = _unreadable(error.filename) if error.errno == errno.EACCES else ""
        doing = f"{kind} readable" if kind else "folder writable"
        return f"make the {doing}, or name another project with --root DIR"
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return "a file stands where a folder belongs: move it away, then run the same command again"
    return ""


def _unreadable(name: str | bytes | None) -> str:
    """What of a path may not be read, "folder" or "file"; "" for neither."""
    if not name:
        return ""
    path = Path(os.fsdecode(name)).absolute()
    effective = os.access in os.supports_effective_ids
    for folder in reversed(path.parents):
        if folder.is_dir() and not os.access(folder, os.X_OK, effective_ids=effective):
            return "folder"
    if os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0), effective_ids=effective):
        return ""
    return "folder" if path.is_dir() else "file" if path.exists() else ""
