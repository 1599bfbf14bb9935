"""The tree of commands, loaded when named, and the exit status of each error."""

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
from click.shell_completion import CompletionItem

from ralf import __version__, environment, extensions, project
from ralf.errors import RalfError
from ralf_cli import answers
from ralf_cli.command import GLOBAL, handed_over
from ralf_cli.names import meant, of_another_tool, resolved
from ralf_cli.output import complain, say, typed
from ralf_integrations.hooks import instant

_OF_A_FULL_ONE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is named.

    sections  by heading of the help, the commands as `module:attribute` with their help, "" for their own; or only the
              commands, separated by blanks. A command is typed as its attribute is called
    alone     the command that the group runs without a subcommand; "": it prints its help
    """

    def __init__(
        self, *arguments: Any, sections: str | dict[str, dict[str, str]], alone: str = "", **more: Any
    ) -> None:
        super().__init__(*arguments, **{"invoke_without_command": True, **more})
        if isinstance(sections, str):
            sections = {"Commands": dict.fromkeys(sections.split(), "")}
        self.sections = {
            heading: {place.partition(":")[2].strip("_"): said for place, said in commands.items()}
            for heading, commands in sections.items()
        }
        places = [place for commands in sections.values() for place in commands]
        self.lazy = {place.partition(":")[2].strip("_"): f"ralf_cli.{place}" for place in places}
        self.commands = dict.fromkeys(self.lazy, click.Command(None))  # click suggests these for a wrong name
        self._alone = alone
        if self.callback is None:
            self.callback = self._run_alone

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """An option that the group does not have belongs to the command that it runs alone."""
        own = {name for param in self.get_params(ctx) for name in param.opts}
        is_of_command = self._alone and args and args[0].startswith("-") and args[0].partition("=")[0] not in own
        return super().parse_args(ctx, [self._alone, *args] if is_of_command else args)

    def _run_alone(self) -> None:
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is None:
            command = self.get_command(ctx, self._alone)
            click.echo(ctx.get_help()) if command is None else ctx.invoke(command)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in the order of the help."""
        return list(self.lazy)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The matching commands, without loading any, and the options."""
        commands = [CompletionItem(name) for name in self.lazy if name.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name not in self.lazy:
            return None
        module, _, attribute = self.lazy[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def shown_sections(self, ctx: click.Context) -> dict[str, dict[str, str]]:
        """The commands in the help, by heading."""
        return self.sections

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under the headings of their sections, in columns of one width."""
        sections = self.shown_sections(ctx)
        width = max(len(name) for names in sections.values() for name in names)
        for heading, names in sections.items():
            with formatter.section(heading):
                rows = ((name.ljust(width), said or self._short(ctx, name)) for name, said in names.items())
                formatter.write_dl([*rows])

    def _short(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(90) if command is not None else ""


class _Main(LazyGroup):
    """All commands."""

    everyday: ClassVar[tuple[str, ...]] = ("Everyday commands", "Agents and their tasks", "Setup")
    lists_all = False

    def shown_sections(self, ctx: click.Context) -> dict[str, dict[str, str]]:
        """The commands in the help, by heading: sixteen, or all."""
        return {name: own for name, own in self.sections.items() if name in self.everyday or self.lists_all}

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say how to see the rest."""
        if not self.lists_all:
            formatter.write_paragraph()
            formatter.write_text("All commands: ralf help all")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of a name or a second name. `help COMMAND` is its help, `help all` lists all commands."""
        if args[:1] == ["help"] and not ctx.resilient_parsing:
            if args[1:] in ([], ["all"]):
                self.lists_all = bool(args[1:])
                click.echo(ctx.get_help())
                ctx.exit()
            args = [*args[1:], "--help"]
        try:
            return super().resolve_command(ctx, resolved(args))
        except click.UsageError as error:
            vars(error)["hint"] = of_another_tool(args)
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. The hint of an error names commands as they are typed in its project."""
        try:
            return super().invoke(ctx)
        except RalfError as error:
            error.hint = typed(error.hint)
            raise


@click.group(
    cls=_Main,
    context_settings={"help_option_names": ["-h", "--help"]},
    sections={
        "Everyday commands": {
            "status:status": "Show the current route, its checkpoints and tokens.",
            "reading:list_": "List the routes, newest checkpoint first.",
            "reading:show": "Show a route, or the source of a decision or checkpoint.",
            "reading:search": "Search messages, decisions, commands and output.",
            "history:log": "List a route's history, or the changes between two points.",
            "writing:decide": "Record a decision with its reason and rejected options.",
            "history:undo": "Undo a write, or all writes since a checkpoint.",
            "writing:edit": "Edit a route file in $EDITOR.",
        },
        "Agents and their tasks": {
            "task:task": "List, claim and finish tasks.",
            "loop:loop": "Run a fresh agent for each task.",
            "memory:memory": "Show and correct an agent's memory.",
            "writing:handover": "Record a hand-over for the next agent on a route.",
        },
        "Setup": {
            "init:init": "Enable ralf in this project; install or remove client hooks.",
            "config:config": "Show and change the settings.",
            "maintenance:doctor": "Check the installation and the store; repair the store.",
            "export:web": "Show sessions, routes, tasks, memory and runs in a browser.",
        },
        "Other commands": {
            "checkpoint:checkpoint": "Checkpoint new transcript content.",
            "route:route": "Show or choose the current route; rename or close a route.",
            "run:run": "List, follow and control the runs of agents.",
            "run:send": "Send a message to a session, route, agent or run.",
            "task:plan": "Order the tasks, with checkpoints between them.",
            "maintenance:trust": "Show content from other machines, and accept it.",
            "maintenance:forget": "Erase text from the entire store.",
            "maintenance:gc": "Delete old transcript text, or low-value memory items.",
            "importing:import_": "Import history and tasks from other tools.",
            "export:export": "Export a route (HTML, Markdown, prompt) or the memory.",
        },
        "Called by programs": {
            "machines:hook": "Handle a client hook (called by the client, not by you).",
            "machines:mcp": "Run an MCP server for this project's routes.",
            "machines:completion": "Print a shell's completion script.",
            "machines:schema": "Print the JSON schema of a settings file.",
        },
    },
)
@click.option("--load-context", metavar="ROUTE", help="Same as `ralf show ROUTE`.")
@click.version_option(__version__, prog_name="ralf", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context, load_context: str | None) -> None:
    """Long-term memory for coding agents.

    ralf maintains one Markdown file per route (a unit of work, usually a task): its decisions with reasons, its active
    work and its compressed history. Commands that take a ROUTE default to the current route (`ralf route`). Without a
    command, ralf prints the status and suggests the next commands.

    \b
    Examples:
      ralf init --client claude-code
      ralf list
      ralf show TASK-001 --max-tokens 2500
      ralf search "why not asyncio"
      ralf decide "Use SQLite" --because "one file, many readers"

    \b
    Exit status: 0 success, even if there was nothing to do · 1 failure (unwritable, disk full) ·
    2 usage error or invalid name · 3 not found (route, transcript, id) · 4 damaged data · 5 busy or conflict ·
    130 interrupted (Ctrl-C)
    """
    if environment.is_without_colour():
        ctx.color = False
    if load_context is not None:
        if ctx.invoked_subcommand is not None:
            raise click.UsageError(f"--load-context takes no command: {ctx.invoked_subcommand}")
        from ralf_cli.reading import show

        ctx.invoke(show, words=(load_context,))
    elif ctx.invoked_subcommand is None:
        from ralf_cli.status import status, suggest

        with handed_over():
            suggest(ctx.invoke(status))


main.params += GLOBAL


def _run() -> object:
    status = main.main(standalone_mode=False, prog_name="ralf")
    for problem in extensions.problems:
        say(f"warning: {problem}")
    return status


def run() -> NoReturn:
    """Run the command line and exit with its status."""
    instant.open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # of characters that it cannot encode
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # as long as we run
    elif sys.stdout.isatty():
        from ralf_cli.terminal import guard

        guard()
    project.made.clear()
    try:
        if environment.lease() and sys.argv[1:2] != ["hook"]:  # which renews the lease itself
            from ralf.tasks import keeping

            keeping.touch()
        status = answers.watched(sys.argv[1:], _run)
        for folder in project.made:
            say(f"note: created the project {folder}; to enable ralf in it: ralf init")
        sys.stdout.flush()
    except RalfError as error:
        _complain(str(error), error.hint)
        status = error.exit_status
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "ralf"
        hint = getattr(error, "hint", "") or meant(error)
        _complain(f"{where}: {error.format_message()}", hint or f"{where} --help")
        status = 1 if where == "ralf hook" else 2  # to a client 2 means: block the action
    except click.exceptions.Exit as error:
        status = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        status = 130
    except (BrokenPipeError, SystemExit):  # click turns the one into the other
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone: no complaint at exit
        status = 0
    except MemoryError:
        _complain("ralf: not enough memory; acknowledged records are kept", "free some, or raise the limit: ulimit -v")
        status = 1
    except OSError as error:
        if error.filename is None and error.errno in _OF_A_FULL_ONE and _is_full(sys.stdout):
            what = f"standard output: {error.strerror or error}"
            _complain(what, "the command may have been recorded: check before you repeat it: ralf list")
        else:
            where = error.filename or "ralf"
            _complain(f"{os.fsdecode(where)}: {error.strerror or error}", _os_hint(error))
        status = 1
    gc.freeze()  # the collector's last pass would take a tenth of a short command
    sys.exit(status if isinstance(status, int) else 0)


def _is_full(stream: IO[str]) -> bool:
    """Whether a stream is full; then it is closed, to avoid a complaint at exit."""
    try:
        os.write(stream.fileno(), b"\n")
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return True
    return False


def _complain(message: str, hint: str) -> None:
    try:
        complain(message, hint)
    except OSError:  # the reader has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _os_hint(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free disk space, then repeat the command"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "make it readable and its folder writable, or name another project with --root DIR"
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return "a file is in the place of a folder: move it away, then repeat the command"
    return ""
