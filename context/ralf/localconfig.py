"""What this machine may run: `config.local.yaml`, which must be the user's own file, never one that came with a clone.
See docs/config.md.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ralf import config, environment
from ralf.errors import UsageError
from ralf.files import ownfile
from ralf.project import Project
from ralf.refining.spend import Cap
from ralf.summarizers.command import TIMEOUT, Command, named
from ralf.summarizers.registry import MODELS

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TELL_MONEY = ("claude",)  # of the models: docs/summarizers.md


@dataclass(frozen=True, slots=True)
class LocalConfig:
    """What can be set.

    summarizer  a model that improves each checkpoint: claude, codex, llm, or `command`; "" for none
    command     the command line, for `command`; see docs/summarizers.md
    arguments   more arguments for a preset
    model       the model that is asked for
    timeout     seconds that a call may take
    daily_cap   what may be spent in a day: `200000 tokens`, `2.50 USD`, or both
    project     the project's path: without it nothing is run, for the file may have come in an archive
    environment  variables with a key that the command needs: all others that say they hold one are left out
    redaction_key  64 hexadecimal digits, made at first need: `ralf.secrets.redaction`
    """

    summarizer: str = ""
    command: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    model: str = ""
    timeout: int = TIMEOUT
    daily_cap: str = ""
    project: str = ""
    environment: tuple[str, ...] = ()
    redaction_key: str = ""

    @property
    def cap(self) -> Cap:
        """What may be spent in a day."""
        return Cap.parse(self.daily_cap)

    def command_of(self, name: str) -> Command:
        """The command line behind a name. UsageError for one that is not known, or `command` without one."""
        if name != "command":
            arguments = self.arguments if name == self.summarizer else ()
            return named(name, model=self.model, arguments=arguments, timeout=self.timeout, keeps=self.environment)
        if not self.command:
            line = 'command: ["my-model", "--schema", "{schema}"]'
            raise UsageError("config.local.yaml", "names no command", f"write into the file: {line}")
        return Command("command", self.command, model=self.model, timeout=self.timeout, keeps=self.environment)


def load(path: Path) -> LocalConfig:
    """The local configuration in a file, the defaults where there is none.

    UsageError when somebody else could have written it, for an unknown key or a value that makes no sense; Damaged
    when it is no mapping.
    """
    text = ownfile.read(path)
    if text is None:
        return LocalConfig()
    tree = config.tree_of(path, text)
    values: dict[str, Any] = {}
    kinds = {field.name: str(field.type) for field in fields(LocalConfig)}
    for key, value in tree.items():
        config.check_known(path, key, kinds)
        values[key] = _value(path, key, value, kinds[key])
    found = LocalConfig(**values)
    for name in found.environment:
        if not _VARIABLE.fullmatch(name):
            raise UsageError(path, f"environment: {name!r} is no variable's name", 'environment: ["MY_KEY"]')
    if found.summarizer not in ("", *MODELS):
        raise UsageError(path, f"summarizer: expected {', '.join(MODELS)}, got {found.summarizer!r}")
    try:
        _check(found)
    except UsageError as error:
        raise UsageError(path, f"{error.where}: {error.what}".removeprefix("config.local.yaml: "), error.hint) from None
    return found


def _check(found: LocalConfig) -> None:
    cap = found.cap
    if found.summarizer:
        found.command_of(found.summarizer)
        if found.summarizer not in _TELL_MONEY and cap.usd is not None and cap.tokens is None:
            what = f"{found.summarizer} does not tell what it costs: a cap in money alone is never reached"
            raise UsageError("daily_cap", what, "daily_cap: 200000 tokens")


def of(project: Project) -> LocalConfig:
    """What this machine may run for a project. Errors: `load`, `ownfile.check_not_cloned`, `check_meant`."""
    found = load(project.local_config_file)
    ownfile.check_not_cloned(project.local_config_file, environment.of_a_model())
    check_meant(project, found)
    return found


def check_meant(project: Project, found: LocalConfig) -> None:
    """UsageError when the file names a command and not this project: one that came in an archive, with the right owner
    and mode, cannot know where it was unpacked; and for one that was there before the project was opted in.
    """
    if (found.summarizer or found.command) and project.owner.has_not_accepted(project.local_config_file):
        what = "was there before this project was opted in: nothing in it is run"
        raise UsageError(project.local_config_file, what, "ralf context trust")
    root = os.path.realpath(project.folder.parent.parent)
    if (found.summarizer or found.command) and (not found.project or os.path.realpath(found.project) != root):
        what = f"is for {found.project}" if found.project else "does not say for which project it is"
        where = project.local_config_file
        raise UsageError(where, f"{what}: nothing in it is run", f'if you wrote it, add the line: project: "{root}"')


def choose(project: Project, summarizer: str) -> bool:
    """Have a model improve each checkpoint of a project from now on; whether that changed the file. Only for who has
    said so. All else in the file stays as it is. Errors: as `of`; OSError, Busy.
    """
    import json

    from ralf.files import atomic, locks

    path = project.local_config_file
    project.prepare()
    with locks.held(project.folder / "locks" / "config.local.lock", str(path)):
        if of(project).summarizer == summarizer:
            return False
        text = ownfile.read(path) or ""
        before = config.tree_of(path, text)
        wanted = {"project": os.path.realpath(project.folder.parent.parent), "summarizer": summarizer}
        for key, value in wanted.items():
            line = f"{key}: {json.dumps(value, ensure_ascii=False)}"
            if key in before:
                text = re.sub(rf"(?m)^{key}[ \t]*:.*$", lambda _, line=line: line, text)  # type: ignore[misc]
            else:
                text += ("\n" if text and not text.endswith("\n") else "") + f"{line}\n"
        if config.tree_of(path, text) != {**before, **wanted}:
            raise UsageError(path, "cannot be changed by a line", f"write into the file: summarizer: {summarizer}")
        atomic.write(path, text.encode())
    return True


def _value(path: Path, key: str, value: Any, kind: str) -> Any:
    if kind == "int":
        return config.checked(path, key, value, kind)
    if kind == "str":
        return "" if value is None else str(value)
    if not isinstance(value, list) or not all(isinstance(word, str | int | float) for word in value) or not value:
        raise UsageError(path, f"{key}: expected a list of arguments, got {value!r}", f'{key}: ["one", "two"]')
    return tuple(map(str, value))
