"""Where a project is and where its files lie."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from ralf import config, environment, extensions
from ralf.errors import Damaged, RalfError, UsageError
from ralf.storage import git_files, registry
from ralf.storage.files import content_of
from ralf.storage.filestore import FileStore
from ralf.storage.git_view import GitView
from ralf.storage.journal import Store
from ralf.storage.own import OwnStore
from ralf.storage.registry import Registration
from ralf.text import cleaning
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

T = TypeVar("T")

NO_FOLDER = "you have no folder for settings that can be written, so that no store is made"

OUTSIDE = "run `ralf init` outside the sandbox, or set XDG_CONFIG_HOME"

_NO_CACHE = f"none-{os.urandom(8).hex()}"

CONTEXT = Path(".autonomous", "context")

_MOMENT = 0.05  # seconds for which a look at the folders of a project holds

open_store: Callable[..., Store] = FileStore
"""Opens the store of a context folder; `check` is called with the path of a file before anything is put into it."""

made: list[Path] = []
"""The folders of the stores that this process has made where nobody had typed `ralf init`."""

_REMOVE = "remove the link"

_FOLDERS = frozenset(("routes", "journal"))
"""Folders at the top of every store without which nothing can be read: without any other, what is there is shown."""

_NAMES_A_STORE = regex(rb"""(?m)^[^#\n]{0,999}?(?<![^\s{,"'?])store["']?\s{0,9}:""")

_LEAVES = frozenset(
    {
        *("routes", "blobs", "workers", "chosen", "open", "hooks", "inbox"),
        *("runs", "signals", "output", "graphs", "agents", "memory", "tasks"),
    }
)
"""Folders of the store that hold a file or a folder for each route, run, blob or session: what lies in them is looked
at when it is opened, so that a write does not cost more the more of them there are.
"""


class RunEnvironment(Protocol):
    """The runs of a loop that starts clients, each with a folder: an entry point of the group `ralf.runs`, which may be
    a module. Every process may ask it, within a run or outside of one.

    variable_prefixes  the beginnings of the names of the loop's own environment variables: a process that is not part
                       of the session, such as a summariser's command, gets none of them
    """

    variable_prefixes: tuple[str, ...]

    def current_run(self, root: Path) -> str:
        """The name of the run that we are part of, equal to the session of its transcript; "" for none.

        root  the project's directory
        """
        ...

    def current_folder(self, root: Path) -> Path | None:
        """The folder of the run that we are part of; None for none, and for one that came with a repository. A session
        that starts records by it that the run began.
        """
        ...

    def earlier_folders(self, project: Project, route: str) -> Sequence[Path]:
        """The folders of earlier runs of a route, the oldest first, that may hold what the route does not have. A
        session that starts checkpoints them: a run that was killed could not do so.
        """
        ...


StoreOpener = Callable[["Project"], Store | None]
"""Opens the store that a project's `config.local.yaml` names, None where that is files: an entry point of the group
`ralf.stores`. A file that is not the user's own names none; UsageError where it names a store that cannot be opened.
"""


@dataclass(frozen=True)
class Project:
    """A project directory and the places of its context files. Nothing is made before something is written."""

    root: Path

    def __fspath__(self) -> str:
        """The directory: what takes a root takes a project, too, and uses it as it is (`find`)."""
        return os.fspath(self.root)

    @cached_property
    def folder(self) -> Path:
        """`.autonomous/context` of the project, or of its main worktree when the project is a linked one."""
        return _shared_root(self.root) / CONTEXT

    @property
    def nothing_here(self) -> str:
        """That there is no project here, and what makes one; "" where there is one."""
        return "" if self.folder.is_dir() else f"{self.root}: no project here, nor above; to make one: ralf init"

    @cached_property
    def store(self) -> OwnStore:
        """Journals and blobs; what this user's ralf did not write is not among them."""
        return OwnStore(self._elsewhere() or open_store(self.folder, check=self._check_unseen), self._id)

    def _id(self) -> str:
        """The id of the store, "" where it is not this user's. Another process may have made it meanwhile."""
        if not self.owner.key:
            self.owner.refresh()
        return self.owner.id

    def open_files(self, kind: type[FileStore] = FileStore) -> FileStore:
        """The embedded store in the project's folder, for a store that stands before it."""
        return kind(self.folder, check=self._check_unseen)

    def _elsewhere(self) -> Store | None:
        """The store that `config.local.yaml` names, None for files. Errors: `StoreOpener`."""
        try:
            content = content_of(self.local_config_file, most=1 << 20)
        except OSError:
            return None
        if not _NAMES_A_STORE.search(content):
            return None  # nothing else is imported to find that out
        open_named: Callable[[StoreOpener], Store | None] = lambda opener: opener(self)  # noqa: E731
        return next(filter(None, extensions.ask(extensions.STORES, open_named)), None)

    @cached_property
    def owner(self) -> Registration:
        """What this user has said of the store. UsageError, Damaged as `registry.find`."""
        return registry.of(self.folder.parent.parent)

    def once(self, make: Callable[[Project], T]) -> T:
        """Return `make(self)`, made at the first call and kept with this object: for what higher floors derive."""
        made: dict[object, Any] = self.__dict__.setdefault("_made", {})
        if make not in made:
            made[make] = make(self)
        return cast(T, made[make])

    @cached_property
    def git(self) -> GitView:
        """What git sees of the store."""
        return GitView(self.folder, self.owner, self.cache)

    @property
    def command(self) -> str:
        """What is typed here in place of `ralf`, where that is another program."""
        return config.command_of(self.folder, self.owner.installed)

    @property
    def run(self) -> str:
        """The run of a loop that we are part of, called as its folder's session is; "" for none."""
        return next(filter(None, extensions.ask(extensions.RUNS, lambda runs: runs.current_run(self.root))), "")

    @cached_property
    def routes(self) -> Path:
        """The folder of the route files."""
        return self.folder / "routes"

    @property
    def cache(self) -> Path:
        """The folder of what can be made anew. No one who made a repository or an archive can have known its name; a
        store that is not the user's has another one in each process.
        """
        return self.folder / "cache" / (self.owner.cache or _NO_CACHE)

    @property
    def indexes(self) -> Path:
        """The folder of the indexes that readers bring up to date, too: whoever must not wait for a reader, and whoever
        only looks, has it elsewhere.
        """
        return self.cache

    def room_for(self, index: str) -> Path | None:
        """Where an index lies; None where it can lie nowhere."""
        if not self.owner.key:
            return None
        from ralf.storage import files

        try:
            files.check(self.folder)
            return self.indexes / index if self.git.is_hidden() else None
        except (OSError, RalfError):
            return None

    def name_of(self, path: Path) -> str:
        """How a file is called in what is printed: one of the store from its folder on, the cache's by `cache/`; any
        other from the project's folder on.
        """
        if path.is_relative_to(self.cache):
            return f"cache/{path.relative_to(self.cache).as_posix()}"
        top = self.folder if path.is_relative_to(self.folder) else self.folder.parents[1]
        return path.relative_to(top).as_posix()

    @property
    def local_config_file(self) -> Path:
        """The file that says what this machine may run."""
        return self.folder / "config.local.yaml"

    @property
    def config_file(self) -> Path:
        """The project's settings."""
        return self.folder / "config.yaml"

    def route_file(self, route: str) -> Path:
        """The route file of a checked route name, wherever it lies."""
        live = self.live_file(route)
        if not os.path.lexists(live) and os.path.lexists(archived := self.archived_file(route)):
            return archived
        return live

    def live_file(self, route: str) -> Path:
        """The route file of a route that is not archived."""
        return self.routes / f"{cleaning.check(route)}.md"

    def archived_file(self, route: str) -> Path:
        """The route file of one that is."""
        return self.routes / "archive" / f"{cleaning.check(route)}.md"

    def route_lock(self, route: str) -> Path:
        """The lock that every writer of a route holds."""
        return self.folder / "locks" / "routes" / f"{cleaning.check(route)}.lock"

    def worker_lock(self, route: str) -> Path:
        """The lock of whoever has a model improve a route's checkpoints."""
        return self.folder / "locks" / "workers" / f"{cleaning.check(route)}.lock"

    def check(self) -> None:
        """Fail where nothing of the store may be read or written: errors of `check_links` and `check_owner`."""
        if time.monotonic() - self.__dict__.get("_checked", -_MOMENT) >= _MOMENT:
            self.check_links()
            self.check_owner()
            self.__dict__["_checked"] = time.monotonic()

    def check_links(self) -> None:
        """UsageError where a folder of the store is a link: nothing is read, written or removed through one. Damaged
        where a file stands in the place of one without which nothing can be read.
        """
        top = os.fspath(self.folder)
        folders = [top]
        if os.path.islink(archive := f"{top}/routes/archive"):  # noqa: PTH114  # one call
            raise UsageError(archive, "is a symbolic link: not followed", _REMOVE)
        while folders:
            folder = folders.pop()
            stamp, before = registry.settled_stamp(folder), _looked_through.get(folder)
            if before is not None and before[0] == stamp:
                folders += before[1]
                continue
            try:
                inner = list(_folders_in(folder, is_top=folder == top))
            except NotADirectoryError:
                if folder == top:
                    raise _is_a_file(folder if os.path.lexists(folder) else os.fspath(self.folder.parent)) from None
            except OSError:  # not there, or not to be read: whoever needs it says so
                continue
            else:
                folders += inner
                if stamp:
                    _looked_through[folder] = stamp, inner

    def check_owner(self) -> None:
        """OtherOwner where the store belongs to another user, whom nobody has named as safe."""

        registry.check(self.folder)

    def establish(self) -> None:
        """Register the store as this user's where that is not done yet. UsageError for one that holds records already,
        and for a user without a folder of their own; Busy while another process registers projects.
        """
        if self.owner.key:
            return
        store = self.store.inner
        is_empty = not any(
            store.head(stream) for stream in store.streams("")
        )  # before the registration: who fills a store has one first
        if self._id():
            return
        if not is_empty:
            what = "holds records that are not known to be yours (a clone, or a moved project): nothing is added to it"
            raise UsageError(self.folder, what, "ralf init")
        try:
            self.owner.update()
        except OSError as error:
            raise UsageError(
                registry.folder() or self.folder, f"{NO_FOLDER}: {error.strerror or error}", OUTSIDE
            ) from None
        made.append(self.folder)

    def prepare(self) -> None:
        """Make the folder, for this user only and hidden from git, and put right what is not so.

        UsageError where a link leads out of it, it belongs to another user, it lies on a file system that is refused,
        or git tracks what would have to be put right; OSError.
        """
        from ralf.storage import files

        files.check(self.folder)
        self.check()
        try:
            files.tighten(self.folder)
        except FileNotFoundError:
            self.establish()  # before anything is made: it may be refused
            try:
                files.make(self.folder)
            except OSError:
                if self.folder in made:  # registered by this process, and nothing is there
                    made.remove(self.folder)
                    registry.remove(Path(self.owner.path))
                raise
        self.establish()
        files.make(self.routes)
        self.git.hide()

    def _check_unseen(self, path: Path) -> None:
        """UsageError where git would see what is put into a file."""
        if not self.git.is_hidden():
            self.prepare()
        self.git.check_untracked(path)

    def make_room(self, path: Path, *, prepare: bool = False) -> None:
        """Make the folder of a file that can be made anew, which a reader may keep, too.

        prepare  whether a store that nobody has written to yet, or that was damaged, is prepared first

        OSError where it cannot be made, and where git would see it.
        """
        from ralf.storage import files

        if not self.git.is_hidden():
            refused = PermissionError(errno.EPERM, "git would see what is kept there", os.fspath(path))
            if not prepare:
                raise refused
            try:
                self.prepare()
            except RalfError:
                raise refused from None
        files.make(path.parent)


_looked_through: dict[str, tuple[tuple[int, ...], list[str]]] = {}  # by folder: its stamp, and the folders in it


def _folders_in(folder: str, *, is_top: bool) -> Iterator[str]:
    """The folders in a folder of the store that are to be looked through. Errors: `Project.check_links`."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                if entry.is_dir():
                    raise UsageError(entry.path, "is a symbolic link: not followed", _REMOVE)
            elif entry.name not in _LEAVES and entry.is_dir():
                yield entry.path
            elif entry.name in _FOLDERS and is_top and entry.is_file():
                raise _is_a_file(entry.path)


def _is_a_file(path: str) -> Damaged:
    import shlex

    return Damaged(path, "is a file, where ralf keeps a folder", f"mv {shlex.quote(path)} {shlex.quote(path)}.old")


def find(root: str | os.PathLike[str] | None = None, *, here: Path | None = None) -> Project:
    """The project at `root`, or that `root` is; None: `RALF_PROJECT_DIR` (the project or its `.autonomous`), else the
    nearest parent that has opted in, else the nearest with `.autonomous/`, else the current directory. UsageError when
    `root` is no directory; other errors as for `Project.check_links`.

    here  where to look upwards from, an absolute path; None: the current directory
    """
    if isinstance(root, Project):
        project = root
    else:
        named = os.fspath(root) if root is not None else environment.project_directory()
        project = _named(named) if named else _within(_nearest(here or Path.cwd()))
    project.check()
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
    main = git_files.main_worktree(root)
    if main == root:
        return root
    own = root / CONTEXT / "config.yaml"
    if own.exists() and (not git_files.tracks(root, own.relative_to(root)) or registry.find(root) is not None):
        return root
    settings = main / CONTEXT / "config.yaml"
    return root if settings.exists() and config.load(settings).worktrees == "isolated" else main
