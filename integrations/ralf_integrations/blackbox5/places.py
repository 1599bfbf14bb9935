"""Where BlackBox5 keeps things: its tree, its projects, the prompts of its loop. Looks only, changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ralf import project as projects
from ralf.files.opening import without_waiting
from ralf.project import Project
from ralf_integrations import environment

PROMPTS = ("ralf.md", "ralf-executor.md")
ENGINE, MEMORY = "2-engine", "5-project-memory"
LAUNCHER = Path("bin", "ralf")
"""The tree's own `ralf`, which takes a project's name and starts its loop."""

_DEEPEST = 6  # folders below an engine
_PASSED_BY = frozenset(
    "archive archived archives backup backups completed decisions docs history knowledge logs node_modules runs "
    "runs.migrated tasks tests versions workspaces __pycache__".split()
)
_SHELL = 64 << 10  # bytes of a launcher that are looked at
_MARKS = (b"ralf-loop", b"5-project-memory", b"RALF_PROJECT_DIR", b"BLACKBOX5")


def named(project: str | os.PathLike[str] | None = None) -> Project:
    """A project: by its folder, or by its name in the tree's memory; None: the one that is meant, and where we are in
    none, the one that `BB5_PROJECT` names, `blackbox5` by default.

    A name finds `MEMORY/NAME`, by `BB5_MEMORY_PATH`, `BLACKBOX5_HOME`, `BB5_HOME` or `~/.blackbox5`. UsageError for a
    folder that is none.
    """
    text = os.fspath(project) if project is not None else ""
    if "/" in text or (text and Path(text).is_dir()):
        return projects.find(text)
    here = projects.find()
    if not text and here.folder.parent.exists():
        return here
    found = _in_memory(text or environment.blackbox5_project())
    return projects.find(found) if found is not None else here


def _in_memory(name: str) -> Path | None:
    root = environment.blackbox5_root()
    memory = environment.blackbox5_memory() or (root / MEMORY if root is not None else None)
    return memory / name if memory is not None and (memory / name / ".autonomous").is_dir() else None


def tree_of(project: Project) -> Path:
    """The tree that a project lies in: the one that the environment names if it does, else the nearest folder above
    with an engine or a memory, else the project itself.
    """
    root = project.root
    said = environment.blackbox5_root()
    if said is not None and said.is_dir() and root.resolve().is_relative_to(said.resolve()):
        return said
    for folder in (root, *root.parents):
        if (folder / ENGINE).is_dir() or (folder / MEMORY).is_dir():
            return folder
    return root


def prompts(project: Project) -> list[Path]:
    """The loop's prompts that are in use: of the tree, its engine and the project; no old version, copy or link."""
    tree, root = tree_of(project), project.root
    folders = [tree, tree / "bin", tree / "prompts", root, root / "bin", root / "prompts"]
    found = [folder / name for folder in folders for name in PROMPTS]
    for folder in (tree / ENGINE, *environment.blackbox5_engines(), root / ".autonomous", root / ".templates"):
        found += _below(folder)
    real = {path.resolve(): path for path in reversed(found) if path.is_file() and not path.is_symlink()}
    return sorted(real.values())


def launcher(path: str | os.PathLike[str]) -> bool:
    """Whether a file is the tree's own `ralf`, and not this command."""
    try:
        with open(path, "rb", opener=without_waiting) as file:
            head = file.read(_SHELL)
    except OSError:
        return False
    return head.startswith(b"#!") and b"ralf_cli" not in head and any(mark in head for mark in _MARKS)


def _below(top: Path) -> Iterator[Path]:
    """The prompts below a folder, but for what is old or a run's."""
    depth = len(top.parts)
    for here, folders, files in os.walk(top):
        folders[:] = [
            name
            for name in folders
            if len(Path(here).parts) - depth < _DEEPEST
            and name.lower() not in _PASSED_BY
            and ".backup" not in name
            and not name.startswith((".git", ".archive", ".venv", "run-"))
        ]
        yield from (Path(here, name) for name in PROMPTS if name in files)
