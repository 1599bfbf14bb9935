"""Has git merge shared route files by what they hold: an attribute that a repository brings, and a driver in the
clone's own configuration, which no repository can bring.

    .autonomous/context/routes/.gitattributes     *.md merge=ralf
    .git/config                                   [merge "ralf"] driver = … merge-driver -- %O %A %B %P

A clone without the driver merges route files as text, which their layout is made for (`ralf.format.spread`).

The configuration is the one that git itself reads for the project: of a linked worktree its repository's, of a
submodule its own, and where only GIT_DIR and GIT_WORK_TREE, or `core.worktree`, lead to the repository, that one's.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ralf import environment
from ralf.errors import RalfError, UsageError
from ralf.maintenance.ownership import Step
from ralf.project import Project
from ralf.route.write import open_route
from ralf.storage import durable, files, git_files

NAME = "ralf"

_ATTRIBUTES = ".gitattributes"

_LINE = f"*.md merge={NAME}"

_KEYS = {"name": "route files of ralf", "driver": ""}


class Setup(NamedTuple):
    """What git does with the route files of a clone.

    line          the command that merges them, as git is told it; "" for none
    attribute     the driver that attributes name for them, "" for none
    is_committed  whether the attribute is in the last commit, where `.gitattributes` beside the files names it
    """

    line: str
    attribute: str
    is_committed: bool


def own_command() -> str:
    """What runs this ralf, as a shell takes it."""
    return f"{shlex.quote(sys.executable)} -P -m ralf_cli"


def setup_of(project: Project) -> Setup | None:
    """What git does with the route files of this clone, None outside a repository and without git."""
    if _config(project) is None:
        return None
    place = project.routes.relative_to(_root(project)).as_posix()
    told = _asked(project, "check-attr", "-z", "merge", "--", f"{place}/route.md")
    if told is None:
        return None
    value = told.split("\0")[2] if told.count("\0") > 2 else ""
    here = _LINE in _text(project.routes / _ATTRIBUTES).splitlines()
    committed = _asked(project, "cat-file", "blob", f"HEAD:./{place}/{_ATTRIBUTES}") or ""
    attribute = "" if value in ("unspecified", "unset", "set") else value
    return Setup(_driver(project), attribute, not here or _LINE in committed.splitlines())


def is_missing(project: Project) -> bool:
    """Whether this user shares route files in a repository, and this clone has no driver for them."""
    return project.git.shares() and _environment(project) is not None and not _driver(project)


def is_asked_for(project: Project) -> bool:
    """Whether the route files came with what their sharers commit beside them, and this user shares none."""
    if project.git.shares():
        return False
    with suppress(RalfError, OSError):
        return _LINE in _text(project.routes / _ATTRIBUTES).splitlines()
    return False


def is_unmerged(project: Project, path: Path) -> bool:
    """Whether git has a conflict of this file in its index, so that `git checkout --merge` merges it again."""
    return bool(_asked(project, "ls-files", "-u", "--", str(path)))


def plan_install(project: Project, command: str) -> list[Step]:
    """What `install` would do; [] where all is in place, and where the project lies in no repository.

    command  what runs ralf, as a shell takes it
    """
    config = _config(project)
    if config is None:
        return []
    steps = []
    attributes = project.routes / _ATTRIBUTES
    found = _text(attributes)
    if _LINE not in found.splitlines():
        how = "change" if found else "create"
        steps.append(Step(attributes, f"{how}: clones that have the driver merge route files by it"))
    if _driver(project, "--local") != driver_line(command):
        steps.append(Step(config, "change: git merges route files with `ralf merge-driver`"))
    return steps


def install(project: Project, command: str) -> list[Step]:
    """Name the driver to git in this clone, and the attribute to all clones, and lay this user's route files out for
    git's own merge; done twice it changes nothing. Returns what was done.

    UsageError where git does not take it; OSError.
    """
    steps = plan_install(project, command)
    for step in steps:
        if step.path.name == _ATTRIBUTES:
            files.make(project.routes)
            before = _text(step.path)
            between = "" if not before or before.endswith("\n") else "\n"
            durable.write_file(step.path, f"{before}{between}{_LINE}\n".encode())
        else:
            for key, value in {**_KEYS, "driver": driver_line(command)}.items():
                _git(project, step.path, "config", "--local", f"merge.{NAME}.{key}", value)
    if steps and project.git.clone:
        for stream in sorted(project.store.streams("routes/")):
            with suppress(RalfError, OSError), open_route(project, stream.removeprefix("routes/")) as writer:
                writer.absorb_edits()
                writer.render_file()  # where that cannot be, the next write does it
    return steps


def plan_removal(project: Project) -> list[Step]:
    """What `remove` would do; [] where git knows no driver of ours."""
    config = _config(project)
    if config is None or not _driver(project, "--local"):
        return []
    return [Step(config, "change: git merges route files as text again")]


def remove(project: Project) -> list[Step]:
    """Take the driver out of this clone's configuration; the attribute is the repository's. Returns what was done."""
    steps = plan_removal(project)
    for step in steps:
        _git(project, step.path, "config", "--local", "--remove-section", f"merge.{NAME}")
    return steps


def driver_line(command: str) -> str:
    """The driver, as git is told it, that a command is."""
    return f"{command} merge-driver -- %O %A %B %P"


def _config(project: Project) -> Path | None:
    """The clone's configuration, None outside a repository."""
    if _environment(project) is None:
        return None
    if told := _asked(project, "rev-parse", "--git-common-dir"):
        return _root(project) / told.rstrip("\n") / "config"
    top = git_files.worktree(_root(project))
    return git_files.main_worktree(top) / ".git" / "config" if top is not None else None  # what asks git says why not


def _environment(project: Project) -> Mapping[str, str] | None:
    """What git has to be asked with to find the repository of the project, None where there is none.

    What points at a repository counts only where none is around the project, and where it says what its worktree is:
    git's own hooks run with the GIT_DIR of any repository.
    """
    plain = environment.of_a_model()
    if git_files.worktree(_root(project)) is not None:
        return plain
    given = environment.git_repository()
    if "GIT_DIR" not in given:
        return None
    found = {**plain, **given}
    if "GIT_WORK_TREE" not in given and not _told(project, found, "config", "--get", "core.worktree"):
        return None
    top = _told(project, found, "rev-parse", "--show-toplevel")
    root = os.path.realpath(_root(project))
    return found if top and Path(root).is_relative_to(os.path.realpath(top.rstrip("\n"))) else None


def _root(project: Project) -> Path:
    return project.folder.parents[1]


def _driver(project: Project, *where: str) -> str:
    """The driver that the clone has under our name, "" for none.

    where  as `git config` takes it; none: wherever git itself finds it
    """
    return (_asked(project, "config", *where, "--get", f"merge.{NAME}.driver") or "").strip()


def _asked(project: Project, *words: str) -> str | None:
    """What git answers in the project, None where it has none to give."""
    found = _environment(project)
    return _told(project, found, *words) if found is not None else None


def _told(project: Project, with_these: Mapping[str, str], *words: str) -> str | None:
    try:
        done = git_files.ask(_root(project), words, with_these)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done is not None and not done.returncode else None


def _git(project: Project, path: Path, *words: str) -> None:
    hint = f"git -C {_root(project)} {' '.join(words[:2])} --list"
    try:
        done = git_files.ask(_root(project), words, _environment(project) or {})
    except subprocess.TimeoutExpired:
        raise UsageError(path, "git does not answer", hint) from None
    if done is None or done.returncode:
        what = git_files.first_complaint(done) if done is not None else "there is no git"
        raise UsageError(path, f"git does not take the setting: {what}", hint)


def _text(path: Path) -> str:
    try:
        return files.content_of(path, most=1 << 20).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""
