"""Where a project is, where its files lie, and which route is meant; the only module that looks at the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ralf import names
from ralf._opening import content_of
from ralf.errors import UsageError
from ralf.filestore import FileStore
from ralf.store import Store

CONTEXT = Path(".autonomous", "context")
_MAIN_BRANCHES = frozenset({"main", "master", "trunk", "HEAD"})
_ROUTE_VARIABLES = ("BB5_ROUTE", "RALF_TASK_ID", "BB5_TASK_ID")
_OURS = ("GIT_", "RALF_", "BB5_")
_OF_A_SESSION = frozenset(
    {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "CLAUDE_PROJECT_DIR"}
)
DEFAULT_ROUTE = "default"
_CACHES = ("chosen", "ids", "ids/routes", "open", "renders", "routes", "sessions")
_FOLDERS = (
    *("archive", "archive/blobs", "archive/journal", "archive/journal/routes", "damaged"),
    *("", "routes", "journal", "journal/routes", "blobs", "locks", "locks/routes", "locks/workers"),
    *("cache", *(f"cache/{name}" for name in _CACHES)),
)


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
        """UsageError where a link leads out of the folder: nothing is written or removed through one."""
        for part in _FOLDERS:
            if (self.folder / part).is_symlink():
                raise UsageError(self.folder / part, "is a symbolic link: not written through", "remove the link")

    def prepare(self) -> None:
        """Make the folder, hidden from git, when it is not there yet. UsageError where a link leads out of it, or it
        lies on a file system that is refused.
        """
        from ralf import filesystems

        filesystems.check(self.folder)
        self.check_links()
        if not (self.folder / ".gitignore").exists():
            self.routes.mkdir(parents=True, exist_ok=True)
            ignore = self.folder / ".gitignore"
            if not ignore.exists():
                from ralf import _atomic  # only the first writer pays for what it imports

                _atomic.write(ignore, self._ignored())
        self.routes.mkdir(exist_ok=True)

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
    if named:
        path = Path(named).absolute()
        if not path.is_dir():
            raise UsageError(path, "not a directory", "ralf --root DIR")
        return Project(path.parent if path.name == ".autonomous" else path)
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

    In a linked worktree `.git` is a file that names `MAIN/.git/worktrees/NAME`. A worktree with a configuration of
    its own, or a main worktree that says `worktrees: isolated`, keeps to itself.
    """
    git = root / ".git"
    if not git.is_file() or (root / CONTEXT / "config.yaml").exists():
        return root
    try:
        folder = Path(git.read_text(encoding="utf-8").removeprefix("gitdir:").strip())
    except (OSError, UnicodeDecodeError):
        return root
    folder = (root / folder).resolve()
    if folder.parent.name != "worktrees" or folder.parent.parent.name != ".git":
        return root
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
    from ralf import _atomic

    path = _choice_file(project)
    project.prepare()
    path.parent.mkdir(parents=True, exist_ok=True)
    _atomic.write(path, names.check(route).encode() + b"\n")


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
            try:
                if git.is_file():
                    git = folder / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
                head = (git / "HEAD").read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError):
                return ""
            return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""
    return ""


def session_transcripts(project: Project) -> list[Path]:
    """This project's Claude Code transcripts, newest first; [] where the client keeps none."""
    home = os.environ.get("CLAUDE_CONFIG_DIR", "") or str(Path.home() / ".claude")
    folder = Path(home, "projects", "".join(c if c.isascii() and c.isalnum() else "-" for c in str(project.root)))
    if not folder.is_dir():
        return []
    found = [(path.stat().st_mtime, path) for path in folder.glob("*.jsonl")]
    return [path for _, path in sorted(found, reverse=True)]
