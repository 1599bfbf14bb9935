"""Git repositories for tests: copies of one template, and git as somebody whom no settings of this machine reach."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

_NAME, _ADDRESS = "A Test", "test@example.org"
_ALONE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": _NAME,
    "GIT_AUTHOR_EMAIL": _ADDRESS,
    "GIT_COMMITTER_NAME": _NAME,
    "GIT_COMMITTER_EMAIL": _ADDRESS,
}


def git(root: Path, *words: object, env: Mapping[str, str] | None = None) -> str:
    """What git prints in a folder; fails with what it complains of."""
    done = tried(root, *words, env=env)
    assert done.returncode == 0, f"{' '.join(done.args)}: {done.stderr}"
    return done.stdout


def tried(root: Path, *words: object, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """What comes of git in a folder, which may refuse."""
    command = ["git", *map(str, words)]
    known = os.environ | _ALONE | dict(env or {})
    return subprocess.run(command, cwd=root, env=known, capture_output=True, text=True, errors="replace", check=False)


def repository(root: Path) -> Path:
    """Make a folder an empty repository on the branch `main`, as `git init` does and without a process; the folder."""
    shutil.copytree(_template() / ".git", root / ".git")
    return root


def commit(root: Path, *paths: object, message: str = "work") -> None:
    """Commit these paths, or everything, ignored files too where they are named."""
    git(root, "add", *(["--force", *paths] if paths else ["--all"]))
    git(root, "commit", "--quiet", "--allow-empty", "--message", message)


@functools.cache
def _template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="ralf-git-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    return folder
