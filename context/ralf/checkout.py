"""What git's own files say of a folder: its main worktree, its branch, what it tracks. git itself is not run."""

from __future__ import annotations

import os
from pathlib import Path

from ralf.files.opening import content_of

_MOST = 64 * 1024  # bytes of a small file of git's that are read


def main_worktree(root: Path) -> Path:
    """The main worktree of a linked one, else `root` itself.

    In a linked worktree `.git` is a file that names `MAIN/.git/worktrees/NAME`, where a file names it in turn.
    """
    git = root / ".git"
    if not git.is_file():
        return root
    folder = _real(root / _said(git).removeprefix("gitdir:").strip())
    if folder.parent.name != "worktrees" or folder.parent.parent.name != ".git":
        return root
    if _real(folder / _said(folder / "gitdir").strip()) != _real(git):
        return root  # that repository knows nothing of a worktree here: anybody can write a `.git` file
    return folder.parent.parent.parent


def branch(root: Path) -> str:
    """The branch that is checked out, "" for none."""
    for folder in (root, *root.parents):
        git = folder / ".git"
        if git.exists():
            if git.is_file():
                git = folder / _said(git).removeprefix("gitdir:").strip()
            head = _said(git / "HEAD").strip()
            return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""
    return ""


def tracks(root: Path, path: Path) -> bool:
    """Whether git knows a path below `root`, which is a repository's top or lies in one."""
    for folder in (root, *root.parents):
        try:
            return os.fsencode((root / path).relative_to(folder)) + b"\0" in content_of(
                folder / ".git" / "index", follow=True
            )
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            break
    return False


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # `resolve` raises where links go round in a circle, in some versions


def _said(path: Path) -> str:
    """What a file of git's says, "" where it cannot be read: anything may lie there."""
    try:
        return content_of(path, follow=True, most=_MOST).decode().replace("\0", "")
    except (OSError, ValueError):
        return ""
