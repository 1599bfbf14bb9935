"""Has git merge shared route files by what they hold: an attribute that a repository brings, and a driver in the
clone's own configuration, which no repository can bring.

    .autonomous/context/routes/.gitattributes     *.md merge=ralf
    .git/config                                   [merge "ralf"] driver = … merge-driver -- %O %A %B %P

A clone without the driver merges route files as text, which their layout is made for (`ralf.format.spread`).
"""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

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
    if _driver(project) != _driver_line(command):
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
            for key, value in {**_KEYS, "driver": _driver_line(command)}.items():
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
    if config is None or not _driver(project):
        return []
    return [Step(config, "change: git merges route files as text again")]


def remove(project: Project) -> list[Step]:
    """Take the driver out of this clone's configuration; the attribute is the repository's. Returns what was done."""
    steps = plan_removal(project)
    for step in steps:
        _git(project, step.path, "config", "--local", "--remove-section", f"merge.{NAME}")
    return steps


def _driver_line(command: str) -> str:
    return f"{command} merge-driver -- %O %A %B %P"


def _config(project: Project) -> Path | None:
    """The clone's configuration, None outside a repository, and in one whose folder lies elsewhere."""
    top = git_files.worktree(_root(project))
    if top is None:
        return None
    git = git_files.main_worktree(top) / ".git"
    return git / "config" if git.is_dir() else None


def _root(project: Project) -> Path:
    return project.folder.parents[1]


def _driver(project: Project) -> str:
    """The driver that the clone has under our name, "" for none."""
    try:
        done = git_files.ask(
            _root(project), ["config", "--local", "--get", f"merge.{NAME}.driver"], environment.of_a_model()
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.decode("utf-8", "replace").strip() if done is not None and not done.returncode else ""


def _git(project: Project, path: Path, *words: str) -> None:
    hint = f"git -C {_root(project)} {' '.join(words[:2])} --list"
    try:
        done = git_files.ask(_root(project), words, environment.of_a_model())
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
