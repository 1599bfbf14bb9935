"""Where a project is, where its files lie, and which route is meant; the only module that looks at the environment."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ralf import names
from ralf.errors import UsageError
from ralf.files.opening import content_of
from ralf.storage.filestore import FileStore
from ralf.store import Store

if TYPE_CHECKING:
    from ralf.secrets.redact import Redactor

CONTEXT = Path(".autonomous", "context")
_MAIN_BRANCHES = frozenset({"main", "master", "trunk", "HEAD"})
_ROUTE_VARIABLES = ("BB5_ROUTE", "RALF_TASK_ID", "BB5_TASK_ID")
_OURS = ("GIT_", "RALF_", "BB5_")
_OF_A_SESSION = frozenset(
    {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "CLAUDE_PROJECT_DIR"}
)
DEFAULT_ROUTE = "default"
_REMOVE = "remove the link"
_LEAVES = frozenset({"routes", "blobs", "workers", "chosen", "open", "renders", "sessions"})
"""Folders of the store that hold a file or a folder for each route, blob or session: what lies in them is looked at
when it is opened, so that a write does not cost more the more of them there are.
"""
_MOST_OF_GIT = 64 * 1024  # bytes of a file of git's that are read


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
        """What git is to see of the folder, where nothing says it any more."""
        from ralf.optin import IGNORE_ALL, IGNORE_ALL_BUT_ROUTES

        return (IGNORE_ALL_BUT_ROUTES if _is_shared(self.folder.parents[1]) else IGNORE_ALL).encode()


def _is_shared(root: Path) -> bool:
    """Whether git tracks the folder's `.gitignore`, as it does where route files are shared and nowhere else."""
    for folder in (root, *root.parents):
        try:
            return os.fsencode(CONTEXT / ".gitignore") in (folder / ".git" / "index").read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            break
    return False


def find(root: str | os.PathLike[str] | None = None) -> Project:
    """The project at `root`; None: `RALF_PROJECT_DIR` (the project or its `.autonomous`), else the nearest parent
    that has opted in, else the nearest with `.autonomous/`, else the current directory. UsageError when `root` is no
    directory.
    """
    named = os.fspath(root) if root is not None else os.environ.get("RALF_PROJECT_DIR", "")
    project = _named(named) if named else _within(_nearest())
    project.check_links()
    return project


def _named(named: str) -> Project:
    path = Path(named).absolute()
    if not path.is_dir():
        raise UsageError(path, "not a directory", "ralf --root DIR")
    return Project(path.parent if path.name == ".autonomous" else path)


def _within(project: Project) -> Project:
    """The project itself; UsageError where its store is a link that leads out of it, which nobody has named."""
    root = project.folder.parent.parent.resolve()
    for path in (project.folder.parent, project.folder):
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise UsageError(path, "is a symbolic link out of the project", "name the project: ralf --root DIR")
    return project


def _nearest() -> Project:
    here = Path.cwd()
    above = (here, *here.parents)
    for marker in (CONTEXT / "config.yaml", Path(".autonomous")):
        for folder in above:
            if (folder / marker).exists():
                return Project(folder)
            if (shared := _shared_root(folder)) != folder and (shared / marker).exists():
                return Project(folder)
    return Project(here)


def environment_of_a_model() -> dict[str, str]:
    """The environment for a command that is not part of this session: without what points at a repository, a route,
    or the client that runs us; with the user's login.
    """
    return {
        name: value for name, value in os.environ.items() if not name.startswith(_OURS) and name not in _OF_A_SESSION
    }


def editor() -> str:
    """The command line of the person's editor: `$VISUAL`, else `$EDITOR`, else `vi`."""
    return os.environ.get("VISUAL", "").strip() or os.environ.get("EDITOR", "").strip() or "vi"


def _shared_root(root: Path) -> Path:
    """The main worktree of a linked git worktree, else `root` itself.

    In a linked worktree `.git` is a file that names `MAIN/.git/worktrees/NAME`, where a file names it in turn. A
    worktree with a configuration of its own, or a main worktree that says `worktrees: isolated`, keeps to itself.
    """
    git = root / ".git"
    if not git.is_file() or (root / CONTEXT / "config.yaml").exists():
        return root
    folder = (root / _of_git(git).removeprefix("gitdir:").strip()).resolve()
    if folder.parent.name != "worktrees" or folder.parent.parent.name != ".git":
        return root
    if (folder / _of_git(folder / "gitdir").strip()).resolve() != git.resolve():
        return root  # that repository knows nothing of a worktree here: anybody can write a `.git` file
    main = folder.parent.parent.parent
    config = main / CONTEXT / "config.yaml"
    if config.exists():
        from ralf.config import load

        if load(config).worktrees == "isolated":
            return root
    return main


# ---- which route ----


def existing_route(project: Project, route: str) -> str | None:
    """The name under which a route exists: its own, or one that differs from it only in case; None for neither."""
    if project.route_file(route).exists() or (project.folder / "journal" / "routes" / f"{route}.jsonl").exists():
        return route
    wanted = route.casefold()
    return next((name for name in route_names(project) if name.casefold() == wanted), None)


def check_new(project: Project, route: str) -> str:
    """`route` itself, if it exists or may be made; UsageError when it differs only in case from one that exists."""
    known = existing_route(project, route)
    if known not in (None, route):
        raise UsageError(route, f"differs only in case from the route {known}", f"ralf context show {known}")
    return route


def route_names(project: Project) -> list[str]:
    """The names of all routes that have a file or a journal, sorted."""
    found: set[str] = set()
    for folder, ending in ((project.routes, ".md"), (project.folder / "journal" / "routes", ".jsonl")):
        try:
            entries = os.listdir(folder)  # noqa: PTH208  # names alone, in one call
        except FileNotFoundError:
            continue
        found.update(name.removesuffix(ending) for name in entries if name.endswith(ending))
    return sorted(name for name in found if names.is_valid(name))


class Choice(NamedTuple):
    """A route and the rule that chose it."""

    route: str
    rule: str


def choose_route(project: Project, named: str | None = None) -> Choice:
    """The route that is meant: the one that is named, else by environment, session, git branch, else `default`.

    A branch name that is no route name becomes a slug; a name from anywhere else that is refused raises UsageError.
    """
    if named:
        return Choice(names.check(named), "named")
    for variable in _ROUTE_VARIABLES:
        value = os.environ.get(variable, "").strip()
        if value:
            return Choice(names.check(value), f"${variable}")
    chosen = _chosen(project)
    if chosen:
        return Choice(chosen, "ralf route use")
    branch = _branch(project.root)
    if branch and branch not in _MAIN_BRANCHES:
        return Choice(names.slug(branch), f"git branch {branch}")
    return Choice(DEFAULT_ROUTE, "default")


def use_route(project: Project, route: str) -> None:
    """Choose the route of this session (of this project, where the client names no session)."""
    from ralf.files import atomic

    path = _choice_file(project)
    project.prepare()
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, names.check(route).encode() + b"\n")


def _chosen(project: Project) -> str:
    try:
        name = content_of(_choice_file(project)).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return name if names.is_valid(name) else ""


def _choice_file(project: Project) -> Path:
    session = os.environ.get("CLAUDE_CODE_SESSION_ID", "") or "project"
    return project.cache / "chosen" / names.slug(session)


def _branch(root: Path) -> str:
    """The branch that is checked out in the project, "" for none."""
    for folder in (root, *root.parents):
        git = folder / ".git"
        if git.exists():
            if git.is_file():
                git = folder / _of_git(git).removeprefix("gitdir:").strip()
            head = _of_git(git / "HEAD").strip()
            return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""
    return ""


def _of_git(path: Path) -> str:
    """What a file of git's says, "" where it cannot be read: anything may lie there."""
    try:
        return content_of(path, follow=True, most=_MOST_OF_GIT).decode().replace("\0", "")
    except (OSError, ValueError):
        return ""


def session_transcripts(project: Project) -> list[Path]:
    """This project's Claude Code transcripts, newest first; [] where the client keeps none, or nobody may look."""
    try:
        home = os.environ.get("CLAUDE_CONFIG_DIR", "") or str(Path.home() / ".claude")
    except RuntimeError:  # a user whom the machine does not know, as in many a container
        return []
    folder = Path(home, "projects", "".join(c if c.isascii() and c.isalnum() else "-" for c in str(project.root)))
    found = []
    with suppress(OSError):
        for path in folder.glob("*.jsonl"):
            with suppress(FileNotFoundError):  # the client has removed it meanwhile
                found.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(found, reverse=True)]
