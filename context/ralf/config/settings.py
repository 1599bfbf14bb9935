"""The settings of a project one by one: what is in force and why, their schema, and a change of one line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralf import config, environment
from ralf.config import CHOICES, SECRET, Config, local_config
from ralf.config.local_config import LocalConfig
from ralf.errors import UsageError
from ralf.storage import durable, files, locks

if TYPE_CHECKING:
    from ralf.config import Configured

DEFAULT = "default"
"""Where the value of a setting comes from that nobody has set."""

_FROM_ENVIRONMENT = {
    "nats_user": "RALF_NATS_USER",
    "nats_password": "RALF_NATS_PASSWORD",
    "nats_creds": "RALF_NATS_CREDS",
}

_MOST = 1 << 20  # bytes of the file


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    value   that is in force; None for a secret, which is not told
    source  where it comes from: `default`, a file (`config.yaml`, `config.local.yaml`), or an environment variable
    file    where it is set: `config.yaml` or `config.local.yaml`
    note    why the file's own value is not in force, "" where it is
    does    what the setting does, in a line
    """

    key: str
    value: Any
    default: Any
    source: str
    file: str
    note: str = ""
    does: str = ""


def list_settings(project: Configured) -> list[Setting]:
    """All settings of a project, those of `config.yaml` first, each group in the order of the documentation.

    Errors: `config.load`, `local_config.load_local_config`.
    """
    local = local_config.load_local_config(project.local_config_file)
    found = _settings(project.config_file, config.load(project.config_file), config.of(project))
    login = dict(zip(_FROM_ENVIRONMENT, environment.nats_login() or (), strict=False))
    for one in _settings(project.local_config_file, local, local):
        if one.key in login:
            source = f"${_FROM_ENVIRONMENT[one.key]}" if login[one.key] else DEFAULT
            one = replace(one, value=login[one.key], source=source, note="")
        found.append(replace(one, value=None, default=None, note="") if one.key in SECRET else one)
    return found


def _settings(path: Path, loaded: Any, in_force: Any) -> list[Setting]:
    """The settings of a file, which says what is loaded; of a file that is not accepted, the defaults are in force."""
    try:
        said: Mapping[str, Any] = config.tree_of(path, config.decoded(path, files.content_of(path, most=_MOST)))
    except FileNotFoundError:
        said = {}
    found, does = [], meanings(local=isinstance(loaded, LocalConfig))
    for field in fields(loaded):
        key, value, is_said = field.name, getattr(in_force, field.name), field.name in said
        is_refused = is_said and value != getattr(loaded, key)
        note = f"{path.name} says {getattr(loaded, key)}, and is not accepted" if is_refused else ""
        source = path.name if is_said and not is_refused else DEFAULT
        found.append(Setting(key, value, field.default, source, path.name, note, does[key]))
    return found


def get_setting(project: Configured, key: str, *, local: bool | None = None) -> Setting:
    """The setting of this name; for one that both files may have, the one of the file that sets it, else that of
    `config.yaml`. UsageError for an unknown key; other errors as for `list_settings`.

    local  the one of `config.local.yaml`, or of `config.yaml`; None: of either
    """
    file = project.local_config_file if local else project.config_file
    found = [one for one in list_settings(project) if one.key == key and (local is None or one.file == file.name)]
    if not found:
        config.check_known(project.config_file, key, known())
    return next((one for one in reversed(found) if one.source != DEFAULT), found[0])


def known(*, local: bool | None = None) -> list[str]:
    """The names of all settings; `local`: only those of `config.local.yaml`, or of `config.yaml`."""
    classes = (Config, LocalConfig) if local is None else (LocalConfig,) if local else (Config,)
    return list(dict.fromkeys(field.name for cls in classes for field in fields(cls)))


_DETAILS = re.compile(r"[;:] ")


def meanings(*, local: bool = False) -> dict[str, str]:
    """By key what each setting of a file does, in a line; `local`: those of `config.local.yaml`."""
    told = _descriptions(LocalConfig if local else Config)
    return {key: _DETAILS.split(text, maxsplit=1)[0] for key, text in told.items()}


# ---- a change of one setting ----


def change_setting(project: Configured, key: str, values: Sequence[str] | None, *, local: bool = False) -> bool:
    """Set one setting in its file, whose other lines and comments stay; whether that changed anything.

    values  as a person types them, several for a list; None: back to the default
    local   in `config.local.yaml` instead of `config.yaml`

    UsageError for an unknown key, a value that makes no sense, a key of the other file, a project in which ralf is not
    enabled, a file that came with the repository and is not accepted, and one with no room for the line; Damaged for a
    file that is no configuration; Busy, OSError.
    """
    path = project.local_config_file if local else project.config_file
    of_this_machine = not local and key in known(local=True)
    if of_this_machine and (key not in known(local=False) or (values and values[0] not in CHOICES[key])):
        what = f"{key}: {' '.join(values or ())}".rstrip(": ")
        what = f"{what} is for {project.local_config_file.name} to say: no repository may choose what this machine runs"
        raise UsageError(path, what, f"ralf config --local {key} {' '.join(values or ('--default',))}")
    config.check_known(path, key, known(local=True) if local else known())
    if key in SECRET:
        raise UsageError(path, f"{key} may hold a secret, which a shell would keep", f"write it into the file: {path}")
    if not project.owner.has_opted_in:
        raise UsageError(project.folder.parents[1], "ralf is not enabled in this project", "ralf init")
    cls: Any = LocalConfig if local else Config
    value = None if values is None else _value(path, key, values, {field.name: field for field in fields(cls)}[key])
    if local:
        return local_config.set_local(project, key, value)
    with locks.locked(project.folder / "locks" / "config.lock", str(path)):
        content = files.content_of(path, most=_MOST) if path.exists() else b""
        if not config.is_believed(project, content):  # asked of the bytes that are changed: git takes no lock of ours
            what = "came with the repository, and you have not accepted it: a change would accept all of it"
            raise UsageError(path, what, "ralf init shows it and asks")
        text = config.decoded(path, content)
        changed = config.with_setting(path, text, key, value)
        config.parse(path, changed)
        if changed != text:
            durable.write(path, changed.encode())
    return changed != text


_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def _value(path: Path, key: str, values: Sequence[str], field: Field[Any]) -> Any:
    """What a person typed as the value of a setting; UsageError where it is none."""
    kind = str(field.type)
    if kind.startswith("tuple"):
        return list(values)
    if len(values) != 1:
        raise UsageError(path, f"{key}: expected one value, got {len(values)}", f"ralf config {key} VALUE")
    value: Any = values[0]
    digits = value.replace("_", "").replace(",", "") if kind == "int" else value
    if kind == "bool":
        value = _BOOLEANS.get(value.lower(), value)
    elif re.fullmatch(r"[1-9][0-9]{0,11}|0", digits):
        value = int(digits)  # a text of digits is read as text all the same
    if kind != "str" or (key in CHOICES and key != "summarizer"):
        try:
            config.checked(path, key, value, kind, CHOICES)
        except UsageError as error:
            local = "--local " * (path.name == "config.local.yaml")
            default = str(field.default).lower() if kind == "bool" else field.default
            raise UsageError(path, error.what, f"ralf config {local}{key} {default}") from None
    return value


# ---- the schema ----


_KINDS: dict[str, dict[str, Any]] = {
    "tuple": {"type": "array", "items": {"type": "string"}},
    "int": {"type": "integer", "minimum": 0},
    "bool": {"type": "boolean"},
    "str": {"type": ["string", "integer", "null"]},
}


def schema(*, local: bool = False) -> dict[str, Any]:
    """The JSON schema of `config.yaml`, or of `config.local.yaml`, for editors: no other key is allowed."""
    cls: Any = LocalConfig if local else Config
    told = _descriptions(cls)
    properties: dict[str, Any] = {}
    for field in fields(cls):
        made = _KINDS["tuple" if str(field.type).startswith("tuple") else str(field.type)]
        if not local and field.name in CHOICES:  # and what YAML 1.1, which many editors speak, makes of `on` and `off`
            words = CHOICES[field.name]
            made = {"enum": [*words, *(word == "on" for word in words if word in ("on", "off"))]}
        default = list(field.default) if isinstance(field.default, tuple) else field.default
        properties[field.name] = {**made, "default": default, "description": told.get(field.name, "")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{'config.local.yaml' if local else 'config.yaml'} of ralf",
        "type": ["object", "null"],
        "properties": properties,
        "additionalProperties": False,
    }


def _descriptions(cls: type) -> dict[str, str]:
    """What the docstring of a configuration says of each of its fields."""
    told: dict[str, str] = {}
    names: list[str] = []
    for line in inspect.cleandoc(cls.__doc__ or "").split("\n"):
        if found := re.match(r"([a-z_]+(?:, [a-z_]+)*)  +(\S.*)", line):
            names = found[1].split(", ")
            told |= dict.fromkeys(names, found[2])
        elif names and line.startswith(" "):
            told |= {name: f"{told[name]} {line.strip()}" for name in names}
        else:
            names = []
    return told
