"""Opting a project in and out: its configuration file and what git sees of the folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ralf import config
from ralf.errors import Damaged, UsageError
from ralf.files import atomic
from ralf.files.opening import content_of
from ralf.project import IGNORE_ALL, IGNORE_ALL_BUT_ROUTES, Project

CONFIG_TEXT = """\
# ralf: this file's presence means that the project has opted in. All keys: docs/config.md
#threshold: 50000         # tokens since the last checkpoint; or a share of the window (25%), or adaptive
#window: 200000           # the client's window in tokens, where the client does not tell
#pressure: 60             # percent of the window at which a checkpoint falls due
"""


class Step(NamedTuple):
    """One thing that would be or was done to a path."""

    path: Path
    what: str


def plan_init(project: Project, *, share: bool) -> list[Step]:
    """What `init` would do; [] when everything is in place."""
    steps = []
    if not project.config_file.exists():
        steps.append(Step(project.config_file, "create: opts the project in"))
    ignore = project.folder / ".gitignore"
    wanted = IGNORE_ALL_BUT_ROUTES if share else IGNORE_ALL
    if not ignore.exists():
        steps.append(
            Step(ignore, "create: " + ("git sees the route files alone" if share else "git sees nothing of it"))
        )
    elif share and content_of(ignore, follow=True) != wanted.encode():
        steps.append(Step(ignore, "change: git sees the route files"))
    return steps


def init(project: Project, *, share: bool) -> list[Step]:
    """Opt a project in; done twice it changes nothing. Returns what was done."""
    steps = plan_init(project, share=share)
    project.prepare()
    for step in steps:
        if step.path == project.config_file:
            atomic.write(step.path, CONFIG_TEXT.encode())
        else:
            atomic.write(step.path, (IGNORE_ALL_BUT_ROUTES if share else IGNORE_ALL).encode())
    return steps


def plan_uninstall(project: Project) -> list[Step]:
    """What `uninstall` would do; [] for a project that has not opted in."""
    return [Step(project.config_file, "remove: opts the project out")] if project.config_file.exists() else []


def uninstall(project: Project) -> list[Step]:
    """Opt a project out. Routes, journals and blobs stay. Returns what was done."""
    steps = plan_uninstall(project)
    for step in steps:
        step.path.unlink()
    return steps


_HOOKS = re.compile(r"^hooks[ \t]*:[^\n#]*?(?=[ \t]*(?:#|\r?$))", re.M)


def switch(project: Project, *, on: bool) -> bool:
    """Switch the clients' hooks in this project; whether that changed anything. The rest of the file stays as it is.

    UsageError where the project has not opted in, and where the file has no room for the line; Damaged for a file that
    is no configuration.
    """
    path = project.config_file
    if not path.exists():
        raise UsageError(path.parent, "this project has not opted in", "ralf init")
    wanted = "on" if on else "off"
    if config.load(path).hooks == wanted:
        return False
    text = config.decoded(path, content_of(path, follow=True))
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
    atomic.write(path, changed.encode())
    return True
