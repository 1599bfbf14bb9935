"""Opts a project in and out: its registration in the user's folder, its settings, and what git sees."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ralf import config
from ralf.errors import Damaged, UsageError
from ralf.project import Project
from ralf.storage import durable, registry
from ralf.storage.files import content_of

CONFIG_TEXT = """\
# ralf: the settings of this project. All keys: docs/config.md
#threshold: 50000         # tokens since the last checkpoint; or a share of the window (25%), or adaptive
#window: 200000           # context window size in tokens, if the client does not report it
#pressure: 60             # percent of the window at which a checkpoint falls due
"""

_NO_HOME = "this user has no folder for settings that can be written"


class Step(NamedTuple):
    """One thing that would be or was done to a path."""

    path: Path
    what: str


def plan_init(project: Project, *, share: bool) -> list[Step]:
    """What `init` would do; [] when everything is in place."""
    steps = []
    if not project.owner.has_opted_in:
        where = registry.folder()
        steps.append(Step(where or project.root, "change: hooks act in this project" if where else _NO_HOME))
    if not project.config_file.exists():
        steps.append(Step(project.config_file, "create: settings"))
    ignore = project.folder / ".gitignore"
    if not ignore.exists():
        steps.append(
            Step(ignore, "create: " + ("git sees the route files alone" if share else "git sees nothing of it"))
        )
    elif share and not (project.git.shares() and project.git.is_shared()):
        steps.append(Step(ignore, "change: git sees the route files"))
    return steps


def lines_that_set(project: Project) -> list[str]:
    """The lines of the configuration that set something, as they stand there; [] for none, or none that can be read."""
    try:
        text = config.decoded(project.config_file, content_of(project.config_file))
    except (OSError, Damaged):
        return []
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def accept_settings(project: Project, *, seen: str = "") -> bool:
    """Take the configuration for the user's own; whether it was still what the user was shown. Errors as for
    `registry.update`.

    seen  `digest_of_settings` from before it was shown; "": as it is now
    """
    digest = digest_of_settings(project)
    if seen and digest != seen:
        return False
    found = project.owner.registration
    accepted = dict(found.accepted) if found is not None else {}
    project.owner.update(accepted=accepted | ({project.config_file.name: digest} if digest else {}))
    return True


def digest_of_settings(project: Project) -> str:
    """The sha256 of the configuration as it is now, "" for none."""
    return _digests(project).get(project.config_file.name, "")


def init(project: Project, *, share: bool, accept: bool = False) -> list[Step]:
    """Opt a project in; done twice it changes nothing. Returns what was done.

    accept  whether the person has seen, on a terminal, the settings that were there before, and takes them as theirs;
            nothing else that was there before is accepted

    UsageError for a user without a folder for settings that can be written.
    """
    steps = plan_init(project, share=share)
    before = {} if project.owner.has_opted_in else _digests(project)
    project.prepare()
    changes: dict[str, Any] = {}
    if not project.owner.has_opted_in:
        name = project.config_file.name
        taken = {name: before[name]} if accept and name in before else {}
        refused = {each: digest for each, digest in before.items() if each not in taken}
        changes |= {"hooks": True, "since": time.time(), "unaccepted": refused, "accepted": taken}
    if changes and not project.owner.vouches:
        try:
            project.owner.update(**changes)
        except OSError as error:
            hint = f"RALF_TRUST={shlex.quote(os.path.realpath(project.folder.parent.parent))}"
            raise UsageError(
                registry.folder() or project.root, f"{_NO_HOME}: {error.strerror or error}", hint
            ) from None
    for step in steps:
        if step.path == project.config_file:
            durable.write_file(step.path, CONFIG_TEXT.encode())
        elif step.path.name == ".gitignore" and share:
            project.git.share()
    return steps


def _digests(project: Project) -> dict[str, str]:
    """The sha256 of the files of a store that steer what is done, as they are now."""
    found = {}
    for path in (project.config_file, project.local_config_file):
        with suppress(OSError):
            found[path.name] = hashlib.sha256(content_of(path)).hexdigest()
    return found


def plan_uninstall(project: Project) -> list[Step]:
    """What `uninstall` would do; [] for a project that has not opted in."""
    steps = []
    found = project.owner.registration
    if found is not None and found.hooks:
        where = registry.folder() or project.root
        steps.append(Step(where, "change: hooks do nothing in this project"))
    if project.config_file.exists():
        steps.append(Step(project.config_file, "remove: settings"))
    return steps


def uninstall(project: Project) -> list[Step]:
    """Opt a project out. Routes, journals, blobs and the keys stay. Returns what was done."""
    steps = plan_uninstall(project)
    for step in steps:
        if step.path == project.config_file:
            step.path.unlink()
        else:
            project.owner.update(hooks=False, since=0.0)
    return steps


_HOOKS = re.compile(r"^hooks[ \t]*+:(?:[ \t]*+[^\s#]++)*+", re.M)


def switch(project: Project, *, on: bool) -> bool:
    """Switch the clients' hooks in this project; whether that changed anything. The rest of the file stays as it is.

    UsageError where the project has not opted in, and where the file has no room for the line; Damaged for a file that
    is no configuration.
    """
    path = project.config_file
    if not project.owner.has_opted_in:
        raise UsageError(path.parent, "this project has not opted in", "ralf init")
    wanted = "on" if on else "off"
    if config.load(path).hooks == wanted:
        return False
    text = config.decoded(path, content_of(path)) if path.exists() else CONFIG_TEXT
    line = f"hooks: {wanted}"
    changed, found = _HOOKS.subn(line, text)
    if not found:
        changed = f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n"
    meant = {**config.tree_of(path, text), "hooks": wanted}
    try:
        is_so = config.tree_of(path, changed) == meant
    except Damaged:
        is_so = False
    if not is_so:
        raise UsageError(path, "cannot be changed by a line", f"write into the file: {line}")
    durable.write(path, changed.encode())
    return True
