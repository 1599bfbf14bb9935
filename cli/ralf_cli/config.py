"""`ralf config`: show and change the settings of a project."""

from __future__ import annotations

import click

from ralf import redact
from ralf.config import SECRET, settings
from ralf.config.settings import DEFAULT, Setting, list_settings
from ralf_cli.command import command, handed_over, is_json, project
from ralf_cli.output import answer, emit_json, fields_of, say, table
from ralf_cli.person import check_person


@command(is_fenced=False)
@click.argument("key", required=False)
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option("--local", is_flag=True, help="Change config.local.yaml, for this machine only (mode 0600).")
@click.option("--default", "to_default", is_flag=True, help="Remove the setting.")
def config(key: str | None, values: tuple[str, ...], local: bool, to_default: bool) -> None:
    """Show the settings of this project: value, source (default, config.yaml, config.local.yaml or an environment
    variable) and meaning. With KEY, print only the value of KEY; with VALUE, set KEY.

    ralf validates each change and rewrites one line of config.yaml. A list takes several VALUEs. Settings that allow
    this machine to run something, such as a model or a command, require --local, and only a person can change them.
    docs/config.md describes each key.

    \b
    Examples:
      ralf config threshold 25%
      ralf config redact_patterns 'ACME-[0-9]{8}' 'internal\\.example'
      ralf config threshold --default
      ralf config --local summarizer claude
    """
    if key is None:
        if local or to_default:
            raise click.UsageError("name the KEY")
        _list()
    elif values or to_default:
        _set(key, values, local=local, to_default=to_default)
    elif local:
        raise click.UsageError("--local requires VALUE or --default")
    else:
        _get(key)


def _list() -> None:
    """Print the effective settings; those of config.local.yaml only if set."""
    here = project()
    found = list_settings(here)
    if is_json():
        emit_json(found)
        return
    main = here.config_file.name
    shown = [one for one in found if one.source != DEFAULT or one.note or one.file == main]
    in_force = {one.key: one for one in shown if one.source != DEFAULT}  # of a key of both files the last one
    shown = [one for one in shown if one.note or in_force.get(one.key, one) is one]
    with handed_over():
        rows = [(one.key, _value(one), one.source, one.does) for one in shown]
        table(("KEY", "VALUE", "SOURCE", "WHAT IT DOES"), rows)
    say(f"in {here.config_file}; for this machine only: {here.local_config_file}")
    for one in shown:
        if one.note:
            say(f"note: {one.key}: {one.note}: ralf init")


def _get(key: str) -> None:
    """Print the effective value of a setting, unfenced for scripts."""
    found = settings.get_setting(project(), key)
    answer(found, _value(found))
    if found.note:
        say(f"note: {found.key}: {found.note}: ralf init")


def _set(key: str, values: tuple[str, ...], *, local: bool, to_default: bool) -> None:
    if to_default and values:
        raise click.UsageError("VALUE and --default exclude each other")
    here = project()
    where = here.local_config_file if local else here.config_file
    if local:
        check_person(where, "nothing was changed", f"ralf config --local {key} VALUE")
    if key == "redact_patterns" and not to_default:
        redact.compiled(where, values)  # one that cannot run would stop every write
    changed = settings.change_setting(here, key, None if to_default else values, local=local)
    found = settings.get_setting(here, key, local=local)
    text = f"{where}: {key} is {_value(found)}" + ("" if changed else ", as before")
    answer(fields_of(found, changed=changed), text)


def _value(setting: Setting) -> str:
    value = setting.value
    if setting.key in SECRET:
        return "-" if setting.source == DEFAULT else "(set, not shown)"
    if isinstance(value, bool):
        return str(value).lower()
    return (", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)) or "-"
