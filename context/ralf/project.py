"""Where a project is, and where its files lie."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ralf import checkout, command, environment, names
from ralf.errors import RalfError, UsageError
from ralf.ownership import registry
from ralf.ownership.owner import Owner
from ralf.storage.filestore import FileStore
from ralf.storage.sealed import SealedStore

if TYPE_CHECKING:
    from ralf.files.gitindex import Index
    from ralf.secrets.redact import Redactor

CONTEXT = Path(".autonomous", "context")
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
    def store(self) -> SealedStore:
        """Journals and blobs; records that this user's ralf did not write are told from its own."""
        files = FileStore(self.folder, check=self._check_unseen)
        return SealedStore(files, lambda: self.owner.seal_key, self.owner.vouches_for)

    @cached_property
    def owner(self) -> Owner:
        """This user, as the owner of the store."""
        return Owner(self)

    @cached_property
    def redactor(self) -> Redactor:
        """What takes secrets out of all that is kept, under the project's key."""
        from ralf.secrets import redaction  # only who writes pays for it

        return redaction.of(self)

    @property
    def command(self) -> str:
        """What is typed here in place of `ralf`, where that is another program."""
        return command.of(self.folder, self.owner.pinned)

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
        return self.folder / "cache" / self.owner.cache

    def name_of(self, path: Path) -> str:
        """How a file of the store is called in what is printed: from the store's folder on, the cache's by `cache/`."""
        if path.is_relative_to(self.cache):
            return f"cache/{path.relative_to(self.cache).as_posix()}"
        return path.relative_to(self.folder).as_posix()

    @property
    def local_config_file(self) -> Path:
        """The file that says what this machine may run."""
        return self.folder / "config.local.yaml"

    @property
    def config_file(self) -> Path:
        """The project's settings."""
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

    def check_owner(self) -> None:
        """OtherOwner where the store belongs to another user, whom nobody has named as safe."""
        from ralf.ownership import users

        users.check(self.folder)

    def prepare(self) -> None:
        """Make the folder, for this user only and hidden from git, and put right what is not so.

        UsageError where a link leads out of it, it belongs to another user, it lies on a file system that is refused,
        or git tracks what would have to be put right; OSError.
        """
        from ralf.files import filesystems, folders
        from ralf.ownership import gitview

        filesystems.check(self.folder)
        self.check_links()
        self.check_owner()
        folders.make(self.folder)
        folders.tighten(self.folder)
        self.owner.establish()
        folders.make(self.routes)
        gitview.hide(self)

    def _check_unseen(self, path: Path) -> None:
        """UsageError where git would see what is put into a file."""
        from ralf.ownership import gitview  # only who writes pays for it

        if not gitview.is_hidden(self):
            self.prepare()
        gitview.check_untracked(self, path)

    def make_room(self, path: Path, *, prepare: bool = False) -> None:
        """Make the folder of a file that can be made anew, which a reader may keep, too.

        prepare  whether a store that nobody has written to yet, or that was damaged, is prepared first

        OSError where it cannot be made, and where git would see it.
        """
        from ralf.files import folders
        from ralf.ownership import gitview

        if not gitview.is_hidden(self):
            refused = PermissionError(errno.EPERM, "git would see what is kept there", os.fspath(path))
            if not prepare:
                raise refused
            try:
                self.prepare()
            except RalfError:
                raise refused from None
        folders.make(path.parent)

    @cached_property
    def git_indexes(self) -> list[Index]:
        """The indexes of the repositories that the store lies in."""
        from ralf.files import gitindex

        return gitindex.around(self.folder)


def find(root: str | os.PathLike[str] | None = None, *, here: Path | None = None) -> Project:
    """The project at `root`; None: `RALF_PROJECT_DIR` (the project or its `.autonomous`), else the nearest parent
    that has opted in, else the nearest with `.autonomous/`, else the current directory. UsageError when `root` is no
    directory.

    here  where to look upwards from, an absolute path; None: the current directory
    """
    named = os.fspath(root) if root is not None else environment.project_directory()
    project = _named(named) if named else _within(_nearest(here or Path.cwd()))
    project.check_links()
    project.check_owner()
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
    A configuration that git has brought is the worktree's own only where this user has registered the worktree.
    """
    main = checkout.main_worktree(root)
    if main == root:
        return root
    own = root / CONTEXT / "config.yaml"
    if own.exists() and (not checkout.tracks(root, own.relative_to(root)) or registry.find(root) is not None):
        return root
    config = main / CONTEXT / "config.yaml"
    if config.exists():
        from ralf.config import load

        if load(config).worktrees == "isolated":
            return root
    return main
