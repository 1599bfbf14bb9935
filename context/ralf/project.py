"""Where a project is, and where its files lie."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ralf import checkout, command, environment, names
from ralf.errors import UsageError
from ralf.storage.filestore import FileStore
from ralf.store import Store

if TYPE_CHECKING:
    from ralf.secrets.redact import Redactor

CONTEXT = Path(".autonomous", "context")
IGNORE_ALL = "*\n"
IGNORE_ALL_BUT_ROUTES = "*\n!.gitignore\n!routes/\n!routes/*.md\n"
_REMOVE = "remove the link"
_LEAVES = frozenset({"routes", "blobs", "workers", "chosen", "open", "renders", "sessions", "hooks", "inbox"})
"""Folders of the store that hold a file or a folder for each route, blob or session: what lies in them is looked at
when it is opened, so that a write does not cost more the more of them there are.
"""


@dataclass(frozen=True)
class Project:
    """A project directory and the places of its context files. Nothing is made before something is written."""

    root: Path

    @cached_property
    def folder(self) -> Path:
        """`.autonomous/context` of the project, or of its main worktree when the project is a linked one."""
        return _shared_root(self.root) / CONTEXT

    @cached_property
    def store(self) -> Store:
        """Journals and blobs."""
        return FileStore(self.folder)

    @cached_property
    def redactor(self) -> Redactor:
        """What takes secrets out of all that is kept, under the project's key."""
        from ralf.secrets import redaction  # only who writes pays for it

        return redaction.of(self)

    @property
    def command(self) -> str:
        """What is typed here in place of `ralf`, where that is another program."""
        return command.of(self.folder)

    @property
    def run(self) -> str:
        """The run of a loop that we are part of, called as its folder's session is; "" for none."""
        if not any(environment.run()[:2]):
            return ""
        from ralf.runs import current  # only within a loop

        return current.name(self.root)

    @cached_property
    def routes(self) -> Path:
        """The folder of the route files."""
        return self.folder / "routes"

    @property
    def cache(self) -> Path:
        """The folder of what can be made anew."""
        return self.folder / "cache"

    @property
    def local_config_file(self) -> Path:
        """The file that says what this machine may run."""
        return self.folder / "config.local.yaml"

    @property
    def config_file(self) -> Path:
        """The file whose presence says that the project has opted in."""
        return self.folder / "config.yaml"

    def route_file(self, route: str) -> Path:
        """The route file of a checked route name."""
        return self.routes / f"{names.check(route)}.md"

    def route_lock(self, route: str) -> Path:
        """The lock that every writer of a route holds."""
        return self.folder / "locks" / "routes" / f"{names.check(route)}.lock"

    def worker_lock(self, route: str) -> Path:
        """The lock of whoever has a model improve a route's checkpoints."""
        return self.folder / "locks" / "workers" / f"{names.check(route)}.lock"

    def check_links(self) -> None:
        """UsageError where a folder of the store is a link: nothing is read, written or removed through one."""
        folders = [os.fspath(self.folder)]
        while folders:
            try:
                with os.scandir(folders.pop()) as entries:
                    for entry in entries:
                        if entry.is_symlink():
                            if entry.is_dir():
                                raise UsageError(entry.path, "is a symbolic link: not followed", _REMOVE)
                        elif entry.name not in _LEAVES and entry.is_dir():
                            folders.append(entry.path)
            except OSError:  # not there, or not to be read: whoever needs it says so
                continue

    def prepare(self) -> None:
        """Make the folder, hidden from git, when it is not there yet. UsageError where a link leads out of it, or it
        lies on a file system that is refused.
        """
        from ralf.files import filesystems

        filesystems.check(self.folder)
        self.check_links()
        if self._is_seen_by_git():
            from ralf.files import atomic  # only the first writer pays for what it imports

            self.routes.mkdir(parents=True, exist_ok=True)
            # So short that it needs no temporary file; and it may well stand there twice.
            atomic.add(self.folder / ".gitignore", self._ignored())
        self.routes.mkdir(exist_ok=True)

    def _is_seen_by_git(self) -> bool:
        """Whether nothing says what git is to see: no file, or an empty one, whose maker died right there."""
        try:
            found = (self.folder / ".gitignore").lstat()
        except FileNotFoundError:
            return True
        return stat.S_ISREG(found.st_mode) and not found.st_size and found.st_nlink == 1

    def _ignored(self) -> bytes:
        """What git is to see of the folder, where nothing says it any more: it tracks the file where route files are
        shared, and nowhere else.
        """
        shared = checkout.tracks(self.folder.parents[1], CONTEXT / ".gitignore")
        return (IGNORE_ALL_BUT_ROUTES if shared else IGNORE_ALL).encode()


def find(root: str | os.PathLike[str] | None = None, *, here: Path | None = None) -> Project:
    """The project at `root`; None: `RALF_PROJECT_DIR` (the project or its `.autonomous`), else the nearest parent
    that has opted in, else the nearest with `.autonomous/`, else the current directory. UsageError when `root` is no
    directory.

    here  where to look upwards from, an absolute path; None: the current directory
    """
    named = os.fspath(root) if root is not None else environment.project_directory()
    project = _named(named) if named else _within(_nearest(here or Path.cwd()))
    project.check_links()
    return project


def _named(named: str) -> Project:
    path = Path(named).absolute()
    if not path.is_dir():
        raise UsageError(path, "not a directory", "ralf --root DIR")
    return Project(path.parent if path.name == ".autonomous" else path)


def _within(project: Project) -> Project:
    """The project itself; UsageError where its store is a link that leads out of it, which nobody has named."""
    root = os.path.realpath(project.folder.parent.parent)
    for path in (project.folder.parent, project.folder):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
            raise UsageError(path, "is a symbolic link out of the project", "name the project: ralf --root DIR")
    return project


def _nearest(here: Path) -> Project:
    above = (here, *here.parents)
    for marker in (CONTEXT / "config.yaml", Path(".autonomous")):
        for folder in above:
            if (folder / marker).exists():
                return Project(folder)
            if (shared := _shared_root(folder)) != folder and (shared / marker).exists():
                return Project(folder)
    return Project(here)


def _shared_root(root: Path) -> Path:
    """Where a folder's store lies: in the main worktree of a linked one, else in itself.

    A worktree with a configuration of its own, or a main worktree that says `worktrees: isolated`, keeps to itself.
    """
    main = checkout.main_worktree(root)
    if main == root or (root / CONTEXT / "config.yaml").exists():
        return root
    config = main / CONTEXT / "config.yaml"
    if config.exists():
        from ralf.config import load

        if load(config).worktrees == "isolated":
            return root
    return main
