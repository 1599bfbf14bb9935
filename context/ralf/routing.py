"""Which routes a project has, and which one is meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ralf import checkout, environment, names
from ralf.errors import RouteNotFound, UsageError
from ralf.files.opening import content_of
from ralf.project import Project

DEFAULT = "default"
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


def choose(project: Project, named: str | None = None) -> Choice:
    """The route that is meant: the one that is named, else by environment, session, git branch, else `default`.

    A branch name that is no route name becomes a slug; a name from anywhere else that is refused raises UsageError.
    """
    if named:
        return Choice(names.check(named), "named")
    value, variable = environment.route()
    if value:
        return Choice(names.check(value), f"${variable}")
    chosen = _chosen(project)
    if chosen:
        return Choice(chosen, "ralf route use")
    branch = checkout.branch(project.root)
    if branch and branch not in _MAIN_BRANCHES:
        return Choice(names.slug(branch), f"git branch {branch}")
    return Choice(DEFAULT, "default")


def use(project: Project, route: str) -> None:
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
    return project.cache / "chosen" / names.slug(environment.session() or "project")
