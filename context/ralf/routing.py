"""Which routes a project has, and which one is meant."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Container, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ralf import checkout, environment, names
from ralf.errors import RouteNotFound, UsageError
from ralf.files import folders
from ralf.files.opening import content_of, ours_alone
from ralf.project import Project

DEFAULT = "default"
CHOSEN, FIRST_REQUEST = "ralf route use", "first request"
"""The rules by which somebody has chosen a session's route, and by which it is named after its first request."""
RUN_FOLDER, RUN_METADATA, CLAIM = OF_RUN = "run folder", "metadata.yaml of the run", "claim in the queue"
"""The rules by which the run of a loop, of which we are part, has a route: the task that it works on."""
BRANCH = "git branch"
"""How the rule begins that took the route from a branch, whose name follows."""
_BY_BRANCH, _BY_REQUEST = ("task", "branch"), ("task", "goal")
_MARKER = re.compile(r"\[REDACTED:[^\[\]]*+\]")
_MAIN_BRANCHES = frozenset({"main", "master", "trunk", "HEAD"})


class Choice(NamedTuple):
    """A route and the rule that chose it."""

    route: str
    rule: str


def names_of(project: Project) -> list[str]:
    """The names of all routes that have a file or a journal, sorted."""
    found: set[str] = set()
    for folder, ending in ((project.routes, ".md"), (project.folder / "journal" / "routes", ".jsonl")):
        try:
            entries = os.listdir(folder)  # noqa: PTH208  # names alone, in one call
        except FileNotFoundError:
            continue
        found.update(name.removesuffix(ending) for name in entries if name.endswith(ending))
    return sorted(name for name in found if names.is_valid(name))


def strays(project: Project) -> list[Path]:
    """The files beside the route files that end like one and whose name is no route's, such as the conflicted copies
    that a program which syncs folders leaves: nobody reads them.
    """
    try:
        entries = os.listdir(project.routes)  # noqa: PTH208  # names alone, in one call
    except FileNotFoundError:
        return []
    found = (name for name in entries if name.endswith(".md") and not name.startswith("."))
    return [project.routes / name for name in sorted(found) if not names.is_valid(name.removesuffix(".md"))]


def known(project: Project, route: str) -> str | None:
    """The name under which a route exists: its own, or one that differs from it only in case; None for neither.
    UsageError for a refused name.
    """
    names.check(route)
    if project.route_file(route).exists() or (project.folder / "journal" / "routes" / f"{route}.jsonl").exists():
        return route
    wanted = route.casefold()
    return next((name for name in names_of(project) if name.casefold() == wanted), None)


def existing(project: Project, route: str) -> str:
    """The name under which a route exists; RouteNotFound where it does not, UsageError for a refused name."""
    found = known(project, route)
    if found is None:
        raise not_found(project, route)
    return found


def not_found(project: Project, route: str) -> RouteNotFound:
    """The error that there is no such route, with up to three names that resemble it, best first."""
    import difflib  # only a name that is not found pays for it

    by_folded = {name.casefold(): name for name in names_of(project)}
    found = difflib.get_close_matches(route.casefold(), by_folded, n=3, cutoff=0.5)
    return RouteNotFound(route, tuple(by_folded[name] for name in found))


def check_new(project: Project, route: str) -> str:
    """`route` itself, if it exists or may be made; UsageError for a refused name, and for one that differs only in case
    from one that exists.
    """
    found = known(project, route)
    if found not in (None, route):
        raise UsageError(route, f"differs only in case from the route {found}", f"ralf context show {found}")
    return route


def choose(project: Project, named: str | None = None, *, session: str | None = None) -> Choice:
    """The route that is meant: the one that is named, else by environment, run of a loop, session, git branch, the
    session's first request, else `default`; `route_by` of the configuration leaves out some of these.

    session  the client's id of the session; None: that of the client that runs us

    A branch name that is no route name becomes a slug; a name from anywhere else that is refused raises UsageError.
    """
    if named:
        return Choice(names.check(named), "named")
    value, variable = environment.route()
    if value:
        return Choice(names.check(value), f"${variable}")
    if any(environment.run()[:2]) and (found := _of_run(project)):
        return found
    chosen = _chosen(project, session)
    if chosen:
        return Choice(chosen, CHOSEN)
    by = _by(project)
    if by in _BY_BRANCH and (found := _of_branch(checkout.branch(project.root))):
        return found
    if by in _BY_REQUEST and (kept := _kept(_named_file(project, session))):
        return Choice(kept, FIRST_REQUEST)
    return Choice(DEFAULT, DEFAULT)


def of_past(
    project: Project, *, session: str, branch: str, requests: Iterable[str], given: Container[str] = frozenset()
) -> Choice:
    """The route of a session that is over, by the rules of `choose` and `name`; writes nothing. What the environment
    and the checkout say now is not asked.

    branch    the git branch on which it worked, "" for none
    requests  what it was asked for first, redacted, in order
    given     names that other sessions get, which have no file yet
    """
    if chosen := _chosen(project, session):
        return Choice(chosen, CHOSEN)
    by = _by(project)
    if by in _BY_BRANCH and (found := _of_branch(branch)):
        return found
    if by in _BY_REQUEST:
        if kept := _kept(_named_file(project, session)):
            return Choice(kept, FIRST_REQUEST)
        for made in chain.from_iterable(_names(project, request, session) for request in requests):
            if made not in given and not _is_anothers(project, made, session):
                return Choice(made, FIRST_REQUEST)
    return Choice(DEFAULT, DEFAULT)


def use(project: Project, route: str, *, session: str | None = None) -> None:
    """Choose the route of a session; None: of the client's that runs us (of this project, where it names none)."""
    from ralf.files import atomic

    project.prepare()
    path = _choice_file(project, session)
    folders.make(path.parent)
    atomic.write(path, names.check(route).encode() + b"\n")


def name(project: Project, request: str, *, session: str) -> str:
    """Name a session's route by its first request, which is redacted first; no other session has or gets that name.

    "" where the request makes no name, or `route_by` asks for none. A session that has such a name keeps it.
    """
    from ralf.files import atomic

    if _by(project) not in _BY_REQUEST:
        return ""
    if found := _kept(_named_file(project, session)):
        return found
    for made in _names(project, project.redactor.text(request), session):
        if _claimed(project, made, session):
            path = _named_file(project, session)
            folders.make(path.parent)
            atomic.write(path, made.encode() + b"\n")
            return made
    return ""


def number(project: Project, *, session: str) -> str:
    """Name the route of a session none of whose requests makes a name: `work-1a2b3c4d`. A session that has a name keeps
    it; "" where `route_by` asks for none.
    """
    return name(project, f"work {_digest(session)}", session=session)


def names_sessions(project: Project) -> bool:
    """Whether a session that has no route gets one of its own: else `default` is the route of them all."""
    return _by(project) in _BY_REQUEST


def _of_run(project: Project) -> Choice | None:
    """The route of the run that we are part of: the task in its folder's name, in its metadata, or that it claimed."""
    from ralf.runs import current  # only within a loop

    for rule, find in ((RUN_FOLDER, current.named_task), (RUN_METADATA, current.noted_task), (CLAIM, current.claimed)):
        if task := find(project.root):
            return Choice(task, rule)
    return None


def _of_branch(branch: str) -> Choice | None:
    """The route that a git branch names, None for the main one and for none."""
    if not branch or branch in _MAIN_BRANCHES:
        return None
    return Choice(names.slug(branch), f"{BRANCH} {branch}")


def _names(project: Project, request: str, session: str) -> Iterator[str]:
    """The names of no route yet that a redacted request makes for a session, the one that reads best first."""
    readable = names.readable(_MARKER.sub(" ", request))
    for made in (readable, f"{readable[:31].rstrip('-')}-{_digest(session)}") if readable else ():
        if made != DEFAULT and known(project, made) is None:
            yield made


def _digest(session: str) -> str:
    return hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _claimed(project: Project, route: str, session: str) -> bool:
    """Whether a name is this session's: the first one to make its file has it."""
    project.prepare()
    path = _claim_file(project, route)
    folders.make(path.parent)
    try:
        with open(path, "x", opener=ours_alone, encoding="utf-8") as file:
            file.write(names.slug(session))
    except FileExistsError:
        return not _is_anothers(project, route, session)
    return True


def _is_anothers(project: Project, route: str, session: str) -> bool:
    """Whether another session has claimed a name."""
    try:
        return content_of(_claim_file(project, route)) != names.slug(session).encode()
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _by(project: Project) -> str:
    """The configured `route_by`; the configuration is parsed only where it says one."""
    try:
        if b"route_by" not in content_of(project.config_file):
            return _BY_REQUEST[0]
    except OSError:
        return _BY_REQUEST[0]
    from ralf import config

    return config.of(project).route_by


def _chosen(project: Project, session: str | None) -> str:
    return _kept(_choice_file(project, session))


def _kept(path: Path) -> str:
    """The route that a file of the cache names, "" for none."""
    try:
        name = content_of(path).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return name if names.is_valid(name) else ""


def _claim_file(project: Project, route: str) -> Path:
    return project.cache / "named" / "routes" / route


def _choice_file(project: Project, session: str | None) -> Path:
    name = environment.session() if session is None else session
    return project.cache / "chosen" / names.slug(name or "project")


def _named_file(project: Project, session: str | None) -> Path:
    name = environment.session() if session is None else session
    return project.cache / "named" / "sessions" / names.slug(name or "project")
