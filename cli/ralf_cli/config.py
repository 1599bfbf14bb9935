"""`ralf config`: show and change the settings of a project."""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from ralf_cli.command import Command, command
from ralf_cli.options import with_json_alone, with_root
from ralf_cli.pager import with_pager

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ralf.config.settings import Setting


def _complete_key(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from ralf.config import settings

    known = settings.known(local=ctx.params.get("local") or None)
    return [CompletionItem(key) for key in known if key.startswith(incomplete)]


def _list(root: str | None, *, changed: bool, as_json: bool) -> None:
    """Print the settings with the value in force, where it comes from and what it does; of config.local.yaml only what
    is set.
    """
    from ralf import project as projects
    from ralf.config.settings import DEFAULT, list_settings
    from ralf_cli.output import emit_json, fields_of, say, table

    project = projects.find(root)
    found = list_settings(project)
    main = project.config_file.name
    shown = [one for one in found if one.source != DEFAULT or one.note or (one.file == main and not changed)]
    if as_json:
        emit_json([fields_of(one) for one in (shown if changed else found)])
        return
    if shown:
        rows = [(one.key, _value(one), _source(one), one.does) for one in shown]
        table(("KEY", "VALUE", "SOURCE", "WHAT IT DOES"), rows)
    else:
        say("every setting is at its default: ralf config")
    say(f"in {project.config_file}; what this machine may run: {project.local_config_file}")
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


def _get(key: str, root: str | None, *, as_json: bool) -> None:
    """Print the value of a setting that is in force; as JSON and at a terminal with where it comes from."""
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


class _Config(Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments; a number below zero is a value, which is refused as one, and no option."""
        ours = {name for param in self.get_params(ctx) for name in param.opts}
        options = {one.partition("=")[0] for one in args if one.startswith("-")} - ours
        ctx.ignore_unknown_options = bool(options) and all(_BELOW_ZERO.fullmatch(one) for one in options)
        return super().parse_args(ctx, args)


_BELOW_ZERO = re.compile(r"-[0-9][0-9_,.]*%?")


@command(cls=_Config, short_help="Show and change the settings.")
@click.argument("key", required=False, shell_complete=_complete_key)
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option("--changed", is_flag=True, help="Without KEY: only settings that are not at their default.")
@click.option("--local", is_flag=True, help="Change config.local.yaml, of this machine alone (mode 0600).")
@click.option("--default", "to_default", is_flag=True, help="Take the line out: back to the default.")
@with_root
@with_pager
@with_json_alone
def config(
    key: str | None,
    values: tuple[str, ...],
    changed: bool,
    local: bool,
    to_default: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Show the settings of this project, each with its value, where that comes from (default, config.yaml,
    config.local.yaml or an environment variable) and what it does; of KEY the value alone; or set KEY to VALUE.

    A change is one line of config.yaml, and the result is checked first; other lines and comments stay. A list takes
    several VALUEs. What this machine may run, such as a model or a command, is set with --local, by a person. Secrets
    are not shown. docs/config.md describes each key.

    \b
    Examples:
      ralf config
      ralf config threshold
      ralf config threshold 25%
      ralf config redact_patterns 'ACME-[0-9]{8}' 'internal\\.example'
      ralf config threshold --default
      ralf config --local summarizer claude

    \b
    Exit status: 0, even if nothing changed · 1 unwritable, disk full · 2 unknown key, a value that makes no sense,
    not opted in · 4 the file is no configuration · 5 busy
    """
    from ralf_cli.output import handed_over

    if key is None and (local or to_default):
        raise click.UsageError("name the KEY")
    if key is not None and changed:
        raise click.UsageError("--changed is for the list: leave out KEY")
    if key is not None and local and not (values or to_default):
        raise click.UsageError("say what is changed: VALUE or --default")
    if key is not None and not (values or to_default):
        _get(key, root, as_json=as_json)  # the value alone, for scripts, too
        return
    with nullcontext() if as_json else handed_over():
        if key is None:
            _list(root, changed=changed, as_json=as_json)
        else:
            _set(key, values, root, local=local, to_default=to_default, as_json=as_json)


def _set(key: str, values: tuple[str, ...], root: str | None, *, local: bool, to_default: bool, as_json: bool) -> None:
    """Change a setting."""
    from ralf import project as projects
    from ralf.config import settings
    from ralf_cli.output import emit_json, fields_of
    from ralf_cli.person import check_person

    if to_default == bool(values):
        raise click.UsageError("VALUE or --default: which of them?")
    project = projects.find(root)
    if local:
        what = "it says what this machine may run: nothing was changed"
        check_person(project.local_config_file, what, f"ralf config --local {key} VALUE")
    changed = settings.change_setting(project, key, None if to_default else values, local=local)
    found = settings.get_setting(project, key, local=local)
    if as_json:
        emit_json(fields_of(found) | {"changed": changed})
        return
    where = project.local_config_file if local else project.config_file
    click.echo(f"{where}: {key} is {_value(found)}" + ("" if changed else ", as before"))
