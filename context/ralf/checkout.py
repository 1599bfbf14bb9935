"""What git's own files say of a folder: its main worktree, its branch, what it tracks.

git itself is not run, but for an index that only git can read (`ralf.gitindex`)."""

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


def worktree(folder: Path) -> Path | None:
    """The top of the git worktree in which a folder lies, None where it lies in none. The folder may be gone."""
    place = _real(folder)
    return next((top for top in (place, *place.parents) if (top / ".git").exists()), None)


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
    """Whether git tracks a path below `root`, or what lies in it where it is a folder; also where nobody can tell.

    root  a repository's top, a linked worktree, a submodule, or a folder that lies in one
    """
    place = _real((root / path).parent) / path.name
    if not any((folder / ".git").exists() for folder in place.parents):
        return False
    from ralf import environment, gitblobs  # few files need to be looked at so closely
    from ralf.errors import UsageError
    from ralf.files import gitindex

    try:
        if gitblobs.blob_in_index(place.parent, Path(place.name)) is not None:
            return True
        return place.is_dir() and bool(gitindex.tracked_below(place, gitindex.around(place), environment.of_a_model()))
    except (gitblobs.Unreadable, UsageError):
        return True


def blob_in_index(root: Path, path: Path) -> str | None:
    """The id of the blob that git has checked out for a path below `root`; None for a path that it does not track.

    `gitblobs.Unreadable` where neither the index nor git says it.
    """
    from ralf import gitblobs  # few files need to be looked at so closely

    return gitblobs.blob_in_index(root, path)


def checked_out(root: Path, path: Path, content: bytes) -> bytes | None:
    """What git has brought for a path below `root` whose file holds `content`; see `gitblobs.checked_out`."""
    from ralf import gitblobs

    return gitblobs.checked_out(root, path, content)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # `resolve` raises where links go round in a circle, in some versions


def _said(path: Path) -> str:
    """What a file of git's says, "" where it cannot be read: anything may lie there."""
    try:
        return content_of(path, follow=True, most=_MOST).decode().replace("\0", "")
    except (OSError, ValueError):
        return ""
