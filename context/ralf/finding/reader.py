"""Reads a route's context and the list of routes. Takes no lock, writes only caches."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ralf import project as projects, routing
from ralf.document.index import NAME, Index, with_index
from ralf.errors import Damaged, DamagedJournal, UnknownToken, UsageError
from ralf.model import GitNow, RouteContext
from ralf.project import Project
from ralf.route.closing import ended_tasks, why_closed
from ralf.storage.journal import Written
from ralf.text.frozen import dataclass, replace

if TYPE_CHECKING:
    from ralf.model import ActiveWork


_FEWEST_IDLE = 2  # attempts that changed nothing

_NEVER = Written(-1, -1)


@dataclass(frozen=True, slots=True)
class RouteSummary:
    """One line of the list of routes; `damage` says what is wrong with the route's file or journal, "" for nothing.
    `foreign`: the route has more than this user's ralf wrote; the fields tell what is theirs. Where nothing is, only
    the counts are told. `goal`: what the work is about now, "" where nobody recorded it; `began_as`: the first message;
    `last_request`: the last one; `work_status`: where the answer to it stands.
    `closed`: why it is, `closed`, `task done` or `30 days`; "" for one that is open.
    """

    route: str
    revision: int = 0
    last_checkpoint: str = ""
    checkpoint_count: int = 0
    current_task: str = ""
    work_status: str = ""
    total_tokens_consumed: int = 0
    damage: str = ""
    foreign: bool = False
    goal: str = ""
    began_as: str = ""
    closed: str = ""
    task_title: str = ""
    last_request: str = ""

    @property
    def title(self) -> str:
        """What a list calls it: its task's title, else what it is about, else its first message."""
        return self.task_title or self.goal or self.began_as


def get_context(
    route: str,
    *,
    root: str | os.PathLike[str] | None = None,
    max_tokens: int | None = None,
    query: str | None = None,
) -> RouteContext:
    """The context of a route, as its file holds it; a person's edits are served as they stand.

    route       a name; one that differs only in case finds the route, too
    root        the project directory; see `ralf.project.find`
    max_tokens  default budget of the returned context's `render`
    query       default query of the returned context's `render`

    What this user's ralf did not write stands apart: see `RouteContext.foreign`. Costs the same however long the
    route's history is. Raises RouteNotFound (with the closest names), UsageError (a refused name), DamagedRouteFile
    (when there is no journal to serve from). What is served in place of a damaged or
    outdated file says so in `warnings`.
    """
    from ralf.finding import since  # for start-up: a list needs neither
    from ralf.model import Header
    from ralf.route import shared
    from ralf.route.load import load_state

    project = projects.find(root)
    found = routing.known(project, route)
    state = load_state(project, found) if found is not None else None
    own = state.context if state is not None else RouteContext(context_checkpoint=Header(route=found or route))
    context = shared.with_others(project, own)
    if state is None and context is own:
        raise routing.not_found(project, route)
    work = context.active_work
    if work.last_runs or work.attempts is not None:
        context = replace(context, in_run=project.run, stuck=_stuck(project, work))
    context = replace(context, since=since.tokens_since(project, own), command=project.command)
    if context.checkpoint_count and not context.wholly_foreign:
        from ralf.route.entries import sessions_of

        with suppress(DamagedJournal, UnknownToken):  # what is served in its place says so
            context = replace(context, sessions=sessions_of(project, found or context.route))
            context = replace(context, now=_now(project, context))
    return context.with_defaults(max_tokens, query)


def _stuck(project: Project, work: ActiveWork) -> str:
    """Return the warning about attempts that changed nothing; reads the configuration only if there are any."""
    from ralf.facts.progress import idle_attempts, idle_warning

    if idle_attempts(work) < _FEWEST_IDLE:
        return ""
    from ralf import config

    try:
        most = config.of(project).health_repeats
    except (UsageError, Damaged):  # it is said elsewhere
        most = config.Config().health_repeats
    return idle_warning(work, most)


def _now(project: Project, context: RouteContext) -> GitNow | None:
    """What git says of the project at this moment, where the session that leads ran in its repository."""
    newest = max(context.sessions, key=lambda one: max(entry.at for entry in one.entries), default=None)
    if newest is None or not newest.in_project or context.foreign:
        return None
    from ralf import environment
    from ralf.brief import lines
    from ralf.redact import redactor_for  # loads what it needs for the first text
    from ralf.storage import git_files

    top = git_files.worktree(project.root)
    found = git_files.status(top, environment.of_a_model()) if top is not None else None
    if top is None or found is None:
        return None
    try:  # a commit's subject may hold a secret
        text = redactor_for(project).text(lines.now(found))
    except (UsageError, Damaged):  # the user's own patterns cannot be read, which is said elsewhere
        return None
    below = f"{os.path.relpath(os.path.realpath(project.root), top)}/".removeprefix("./")
    return GitNow(text, found.branch, found.head, tuple(one.removeprefix(below) for one in found.files))


def list_routes(*, since: str | None = None, root: str | os.PathLike[str] | None = None) -> list[RouteSummary]:
    """The routes of a project that are not archived, the one with the newest checkpoint first.

    since  a time in ISO 8601, UTC: only routes whose journal was written to, or whose last checkpoint ended, since then

    A route whose file cannot be read is listed from its journal, and named with
    what is wrong in `damage`.
    """
    project = projects.find(root)
    journals = project.store.written("routes")
    archived = routing.archived(project)
    names = [name for name in routing.names_of(project) if name not in archived]
    found = with_index(project.room_for(NAME), lambda index: _summaries(project, names, journals, index))
    ended = ended_tasks(project)
    closed = (
        why_closed(project, one.route, one.work_status, one.current_task, journals.get(one.route, _NEVER), ended)
        for one in found
    )
    found = [replace(one, closed=why) for one, why in zip(found, closed, strict=True)]
    found.sort(key=lambda summary: summary.route)
    found.sort(key=lambda summary: summary.last_checkpoint, reverse=True)
    return found if since is None else [one for one in found if _is_since(one, journals.get(one.route, _NEVER), since)]


_LISTED = "list"  # what the index has of summaries, as if it were a document: each with the marks of its files

_SETTLED = 50_000_000  # nanoseconds after which a file that is written once more has another time


def _summaries(
    project: Project, names: Sequence[str], journals: Mapping[str, Written], index: Index | None
) -> list[RouteSummary]:
    """The summaries of routes: from the index where neither journal nor file has changed since."""
    kept = index.state(_LISTED) if index is not None else None
    known = dict(kept[1].under("")) if kept is not None else {}
    routes, latest = f"{project.routes}/", time.time_ns() - _SETTLED
    found, changed = list[RouteSummary](), dict[str, Any]()
    for name in names:
        marks = _marks(f"{routes}{name}.md", journals.get(name))
        listed, fields = known.get(name, (None, ()))
        if marks and listed == marks:
            found.append(RouteSummary(*fields))
            continue
        summary = _summary(project, name, index)
        found.append(summary)
        if marks and max(marks[:4]) < latest and not summary.damage and not summary.foreign:
            changed[name] = [marks, [getattr(summary, field) for field in RouteSummary.__slots__]]
    if index is not None and changed:
        index.keep(_LISTED, kept[0] if kept is not None else None, _LISTED, changed)
    return found


def _marks(file: str, journal: Written | None) -> list[int]:
    """When a route's journal and its file were written, and which file it is; [] where one of them is not there."""
    try:
        found = os.stat(file, follow_symlinks=False)  # noqa: PTH116  # a path for each file would double a list's time
    except OSError:
        return []
    if journal is None:
        return []
    return [journal.written, journal.changed, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino]


def _is_since(summary: RouteSummary, journal: Written, since: str) -> bool:
    """Whether anything of a route is not older than a time."""
    from datetime import datetime  # only for who asks

    from ralf.route.history import is_since

    limit = datetime.fromisoformat(since).timestamp() * 1e9
    return journal.changed >= limit or is_since(summary.last_checkpoint, since)


def _summary(project: Project, route: str, index: Index | None) -> RouteSummary:
    from ralf.route.load import load_state

    try:
        state = load_state(project, route, index)
    except Damaged as error:
        return RouteSummary(route, damage=str(error))
    except OSError as error:
        return RouteSummary(route, damage=f"{error.filename or route}: {error.strerror or error}")
    if state is None:
        return RouteSummary(route)
    context = state.context
    if context.wholly_foreign:  # its words stand under a label, which a list has no place for
        count, tokens = context.checkpoint_count, context.total_tokens_consumed
        return RouteSummary(
            route, checkpoint_count=count, total_tokens_consumed=tokens, damage=state.damage, foreign=True
        )
    return RouteSummary(
        route=route,
        revision=context.revision,
        last_checkpoint=context.last_checkpoint,
        checkpoint_count=context.checkpoint_count,
        current_task=context.active_work.current_task,
        work_status=context.active_work.work_status,
        total_tokens_consumed=context.total_tokens_consumed,
        damage=state.damage,
        foreign=context.foreign,
        goal=context.goal,
        began_as=context.began_as,
        task_title=context.active_work.task_title,
        last_request=context.active_work.last_request,
    )
