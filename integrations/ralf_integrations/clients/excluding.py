"""The line in git's own `info/exclude` that keeps settings of this machine out of the repository."""

from __future__ import annotations

import re
from pathlib import Path

from ralf.project import Project
from ralf.storage import git_files
from ralf_integrations.client import Client
from ralf_integrations.clients.jsontext import Insertion

NAME = "exclude"
_MARK = "# ralf init: names a Python of this machine"


def place(root: Path) -> Path | None:
    """The file of the repository that a folder lies in, for all of its worktrees; None in no repository, and in one
    whose folder lies elsewhere (a submodule).
    """
    top = _top(root)
    if top is None:
        return None
    git = git_files.main_worktree(top) / ".git"
    return git / "info" / NAME if git.is_dir() else None


def line(project: Project, client: Client) -> str:
    """What excludes a client's local settings, anchored at the repository's top."""
    path = client.path(project.root, shared=False)
    return f"/{path.relative_to(_top(project.root) or project.root).as_posix()}"


def insertions(text: str, excluded: str) -> list[Insertion]:
    """What adds the line at the end of the file."""
    between = "" if not text or text.endswith("\n") else "\n"
    return [Insertion(len(text), f"{between}{_MARK}\n{excluded}\n")]


def holds(text: str, excluded: str) -> bool:
    """Whether the file excludes it, whoever wrote that."""
    return excluded in text.splitlines()


def stripped(text: str, excluded: str) -> str:
    """The file without our line."""
    return re.sub(rf"(?m)^{re.escape(_MARK)}\n{re.escape(excluded)}\n?", "", text)


def _top(root: Path) -> Path | None:
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
