"""`ralf config`: show and change the settings of a project."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, ClassVar

import click

from ralf_cli.command import Command, command
from ralf_cli.main import LazyGroup
from ralf_cli.options import with_json, with_json_alone, with_root
from ralf_cli.pager import with_pager

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ralf.config.settings import Setting


class _Config(LazyGroup):
    lazy: ClassVar[dict[str, str]] = {
        "list": "ralf_cli.config:list_",
        "get": "ralf_cli.config:get",
        "set": "ralf_cli.config:set_",
        "path": "ralf_cli.config:path",
    }


@click.pass_context
def _help(ctx: click.Context) -> None:
    """Alone it is its help."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


config = _Config(
    name="config",
    short_help="Show and change the settings.",
    help="""Show and change the settings of this project.

    The settings are in config.yaml; what this machine may run is in config.local.yaml, which no repository can
    bring. docs/config.md describes each key.

    \b
    Examples:
      ralf config list
      ralf config get threshold
      ralf config set threshold 30000

    \b
    Exit status: that of the command
    """,
    invoke_without_command=True,
    callback=_help,
)


def _complete_key(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from ralf.config import settings

    known = settings.known(local=ctx.params.get("local") or None)
    return [CompletionItem(key) for key in known if key.startswith(incomplete)]


@command("list", short_help="List the settings and where each comes from.")
@click.option("--set", "only_set", is_flag=True, help="Only those that are not at their default.")
@with_root
@with_pager
@with_json
def list_(only_set: bool, root: str | None, as_json: bool) -> None:
    """List the settings with the value in force, where it comes from (default, config.yaml, config.local.yaml or an
    environment variable) and what it does. Of config.local.yaml only what is set. Secrets are not shown.

    \b
    Examples:
      ralf config list
      ralf config list --set
      ralf config list --json

    \b
    Exit status: 0 · 2 a key or value in a file makes no sense · 4 a file is no configuration
    """
    from ralf import project as projects
    from ralf.config.settings import DEFAULT, list_settings
    from ralf_cli.output import emit_json, fields_of, say, table

    project = projects.find(root)
    found = list_settings(project)
    main = project.config_file.name
    shown = [one for one in found if one.source != DEFAULT or one.note or (one.file == main and not only_set)]
    if as_json:
        emit_json([fields_of(one) for one in (shown if only_set else found)])
        return
    if shown:
        rows = [(one.key, _value(one), _source(one), one.does) for one in shown]
        table(("KEY", "VALUE", "SOURCE", "WHAT IT DOES"), rows)
    else:
        say("every setting is at its default: ralf config list")
    for one in shown:
        if one.note:
            say(f"note: {one.key}: {one.note}: ralf init")


def _value(setting: Setting) -> str:
    from ralf.config import SECRET
    from ralf.config.settings import DEFAULT

    if setting.key in SECRET:
        return "-" if setting.source == DEFAULT else "(set, not shown)"
    return _text(setting.value)


def _source(setting: Setting) -> str:
    """Where a value comes from, and the default where it is another."""
    from ralf.config import SECRET
    from ralf.config.settings import DEFAULT

    default = _text(setting.default)
    if setting.source == DEFAULT or setting.key in SECRET or default == _text(setting.value):
        return setting.source
    return f"{setting.source} (default: {'none' if default == '-' else default})"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "-"
    return str(value) or "-"


@command(short_help="Print the value of a setting.")
@click.argument("key", shell_complete=_complete_key)
@with_root
@with_json_alone
def get(key: str, root: str | None, as_json: bool) -> None:
    """Print the value of KEY that is in force. --json adds where it comes from, the default, and what it does; so does
    a terminal.

    \b
    Examples:
      ralf config get threshold
      ralf config get threshold --json

    \b
    Exit status: 0 · 2 unknown key, a key or value in a file makes no sense · 4 a file is no configuration
    """
    from ralf import project as projects
    from ralf.config.settings import get_setting as setting_of
    from ralf_cli.output import emit_json, fields_of, say

    found = setting_of(projects.find(root), key)
    if as_json:
        emit_json(fields_of(found))
        return
    click.echo(_value(found))
    if sys.stdout.isatty():
        say(f"{found.key}: {found.does}; from: {_source(found)}")
    if found.note:
        say(f"note: {found.key}: {found.note}: ralf init")


class _Set(Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments; a number below zero is a value, which is refused as one, and no option."""
        ours = {name for param in self.get_params(ctx) for name in param.opts}
        options = {one.partition("=")[0] for one in args if one.startswith("-")} - ours
        ctx.ignore_unknown_options = bool(options) and all(_BELOW_ZERO.fullmatch(one) for one in options)
        return super().parse_args(ctx, args)


_BELOW_ZERO = re.compile(r"-[0-9][0-9_,.]*%?")


@command("set", cls=_Set, short_help="Change a setting.")
@click.argument("key", shell_complete=_complete_key)
@click.argument("values", nargs=-1, metavar="VALUE")
@click.option("--local", is_flag=True, help="Change config.local.yaml, of this machine alone (mode 0600).")
@click.option("--default", "to_default", is_flag=True, help="Take the line out: back to the default.")
@with_root
@with_json
def set_(key: str, values: tuple[str, ...], local: bool, to_default: bool, root: str | None, as_json: bool) -> None:
    """Set KEY to VALUE in config.yaml, and check the result first; other lines and comments stay. A list takes several
    VALUEs.

    What this machine may run, such as a model or a command, is set with --local, by a person.

    \b
    Examples:
      ralf config set threshold 25%
      ralf config set redact_patterns 'ACME-[0-9]{8}' 'internal\\.example'
      ralf config set threshold --default
      ralf config set --local summarizer claude

    \b
    Exit status: 0, even if nothing changed · 1 unwritable, disk full · 2 unknown key, a value that makes no sense,
    not opted in · 4 the file is no configuration · 5 busy
    """
    from ralf import project as projects
    from ralf.config import settings
    from ralf_cli.output import emit_json, fields_of
    from ralf_cli.person import check_person

    if to_default == bool(values):
        raise click.UsageError("VALUE or --default: which of them?")
    project = projects.find(root)
    if local:
        what = "it says what this machine may run: nothing was changed"
        check_person(project.local_config_file, what, f"ralf config set --local {key}")
    changed = settings.change_setting(project, key, None if to_default else values, local=local)
    found = settings.get_setting(project, key, local=local)
    if as_json:
        emit_json(fields_of(found) | {"changed": changed})
        return
    where = project.local_config_file if local else project.config_file
    click.echo(f"{where}: {key} is {_value(found)}" + ("" if changed else ", as before"))


@command(short_help="Print where the settings are.")
@click.option("--local", is_flag=True, help="The path of config.local.yaml.")
@with_root
@with_json_alone
def path(local: bool, root: str | None, as_json: bool) -> None:
    """Print the path of config.yaml, whether it exists or not.

    \b
    Examples:
      ralf config path
      ralf config path --local

    \b
    Exit status: 0
    """
    from ralf import project as projects
    from ralf_cli.output import emit_json

    project = projects.find(root)
    if as_json:
        emit_json({"config": project.config_file, "local": project.local_config_file})
    else:
        click.echo(str(project.local_config_file if local else project.config_file))
