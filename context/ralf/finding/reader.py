"""Reads a route's context and the list of routes. Takes no lock, writes only caches."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from ralf import project as projects, routing
from ralf.errors import Busy, Damaged, DamagedJournal, UnknownToken, UsageError
from ralf.model import RouteContext
from ralf.project import Project
from ralf.storage.files import open_regular
from ralf.storage.journal import Written, written
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from re import Match
    from typing import BinaryIO

    from ralf.model import ActiveWork


_HEAD_BYTES = 16 * 1024

_FIRST_BYTES = 4 * 1024  # these do for most files

_WORK_BYTES = 1_536  # what a list shows of the work comes first in the files that we wrote

_FEWEST_IDLE = 2  # attempts that changed nothing

_DIGITS = 18  # of a number; one with more is none

_HEADER = b"context_checkpoint:"

_WORK = b"\nactive_work:"

_END = regex(rb"\n(?![ \r])")  # a line that is not indented ends a block

_NEVER = Written(-1, -1)

_LARGEST = 1 << 20  # bytes of a file that is read whole for a list

_SHOWN = (
    rb"revision|foreign_records|last_checkpoint|checkpoint_count|total_tokens_consumed|current_task|work_status|task_title"
    rb"|last_request"
)

_TEXT = rb": (?:(\"(?:[^\"\\\n]|\\[^\n])*\")|\|-((?:\n  [^\n]*|\n)+)|'((?:[^'\n]|'')*)')\r?(?=\n[^ \n])"
"""A text in double quotes, as a block, or in single quotes."""

_GOAL, _BEGAN_AS = regex(rb"\ngoal" + _TEXT), regex(rb"\nbegan_as" + _TEXT)

_FIELD = regex(rb"\n  (" + _SHOWN + rb"): (?:(\"(?:[^\"\\\n]|\\[^\n])*\")|'([^'\n]*)'|([^\"'|>\n\[{][^\n]*?))(?=\r?\n)")


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
    context = replace(context, since=since.look(project, own), command=project.command)
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


def _now(project: Project, context: RouteContext) -> str:
    """What git says of the project at this moment, where the session that leads ran in its repository."""
    newest = max(context.sessions, key=lambda one: max(entry.at for entry in one.entries), default=None)
    if newest is None or not newest.in_project or context.foreign:
        return ""
    from ralf import environment
    from ralf.brief import lines
    from ralf.storage import git_files

    top = git_files.worktree(project.root)
    found = git_files.status(top, environment.of_a_model()) if top is not None else None
    return lines.now(found) if found is not None else ""


def list_routes(*, since: str | None = None, root: str | os.PathLike[str] | None = None) -> list[RouteSummary]:
    """The routes of a project that are not archived, the one with the newest checkpoint first.

    since  a time in ISO 8601, UTC: only routes whose journal was written to, or whose last checkpoint ended, since then

    Reads only the head of each file. A route whose file cannot be read is listed from its journal, and named with
    what is wrong in `damage`.
    """
    project = projects.find(root)
    journals = written(project.store, "routes")
    places = _Places(str(project.routes), f"{project.cache}/routes", journals)
    names = [name for name in routing.names_of(project) if name not in routing.archived(project)]
    found = [_summary(project, name, _head_fields(project, name, places)) for name in names]
    found = [replace(one, closed=_closed(project, one, journals.get(one.route))) for one in found]
    found.sort(key=lambda summary: summary.route)
    found.sort(key=lambda summary: summary.last_checkpoint, reverse=True)
    return found if since is None else [one for one in found if _is_since(one, journals.get(one.route, _NEVER), since)]


def _closed(project: Project, one: RouteSummary, last: Written | None) -> str:
    from ralf.route.closing import why_closed

    return why_closed(project, one.route, one.work_status, one.current_task, last or _NEVER)


def _is_since(summary: RouteSummary, journal: Written, since: str) -> bool:
    """Whether anything of a route is not older than a time."""
    from datetime import datetime  # only for who asks

    from ralf.route.history import is_since

    limit = datetime.fromisoformat(since).timestamp() * 1e9
    return journal.changed >= limit or is_since(summary.last_checkpoint, since)


def _summary(project: Project, route: str, fields: dict[str, str] | None) -> RouteSummary:
    if fields is not None and "revision" in fields:  # a file that several clones write does not tell it there
        return RouteSummary(
            route=route,
            revision=_number(fields.get("revision")),
            last_checkpoint=fields.get("last_checkpoint", ""),
            checkpoint_count=_number(fields.get("checkpoint_count")),
            current_task=fields.get("current_task", ""),
            work_status=fields.get("work_status", ""),
            total_tokens_consumed=_number(fields.get("total_tokens_consumed")),
            foreign=_number(fields.get("foreign_records")) > 0,
            goal=fields.get("goal", ""),
            began_as=fields.get("began_as", ""),
            task_title=fields.get("task_title", ""),
            last_request=fields.get("last_request", ""),
        )
    from ralf.route.load import load_state

    try:
        state = load_state(project, route)
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


class _Places(NamedTuple):
    """The folders of route files and snapshots, and when journals were written: a path object for each file would
    double a list's time.
    """

    files: str
    snapshots: str
    journals: Mapping[str, Written]


def _head_fields(project: Project, route: str, places: _Places) -> dict[str, str] | None:
    """The fields of a file's header and active work that a list shows, read from its head; None where that cannot be
    done safely: there is something wrong with it, or it or its journal was touched since we wrote it.
    """
    try:
        with open_regular(f"{places.files}/{route}.md", buffering=0) as file:  # often a list
            found = os.fstat(file.fileno())
            # The second time is nobody's to choose: it tells a file that was put there with an old date. A journal as
            # young as the snapshot may have a record that a writer did not live to show.
            known = _time_of(f"{places.snapshots}/{route}.json")
            if known < max(found.st_mtime_ns, found.st_ctime_ns) or known <= places.journals.get(route, _NEVER).changed:
                if not _is_newest(project, route, found.st_size, file):
                    return None
                file.seek(0)
            head = file.read(_FIRST_BYTES)
            if len(head) == _FIRST_BYTES and _WORK not in head:
                head += file.read(_HEAD_BYTES - _FIRST_BYTES)
    except OSError:
        return None
    if b"\0" in head or b"<<<<<<<" in head:
        return None
    opening = head[:64].removeprefix(b"\xef\xbb\xbf").split(b"\n", 2)
    if len(opening) != 3 or opening[0].rstrip() != b"---" or opening[1].rstrip() != _HEADER:
        return None
    fields = _fields_of(head, head.index(_HEADER))
    fields["goal"], fields["began_as"] = _goals_of(head)
    work = head.find(_WORK)
    if work >= 0:
        fields = _fields_of(head[: work + _WORK_BYTES], work + 1) | fields
    elif len(head) == _HEAD_BYTES:
        return None  # further down than we read
    return fields


def _fields_of(head: bytes, start: int) -> dict[str, str]:
    """The plain fields of the block whose key stands at `start`."""
    end = _END.search(head, start)
    fields = {}
    for name, double, single, plain in _FIELD.findall(head, start, end.end() if end else len(head)):
        fields[name.decode()] = _text_in(double) if double else (single or plain).decode(errors="replace")
    return fields


def _goals_of(head: bytes) -> tuple[str, str]:
    """The route's goal and what it began as, as the files that we wrote have them; "" where one is written in another
    way, or runs on beyond what was read.
    """
    end = head.find(b"\n---", 4)
    end = len(head) if end < 0 else end + 1
    return _text_of(_GOAL.search(head, 0, end)), _text_of(_BEGAN_AS.search(head, 0, end))


def _text_of(found: Match[bytes] | None) -> str:
    if found is None:
        return ""
    quoted, block = found[1], found[2]
    if quoted is not None:
        return _text_in(quoted)
    text = found[3].replace(b"''", b"'") if block is None else block.replace(b"\n  ", b"\n").lstrip(b"\n")
    return text.decode(errors="replace")


def _text_in(quoted: bytes) -> str:
    """The text in double quotes, "" for none that is written as we write it."""
    try:
        return str(json.loads(quoted))
    except ValueError:
        return ""


def _time_of(path: str) -> int:
    """When a file was written, in nanoseconds, as its writer says; -1 where there is none."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116  # a thousand times a list
    except OSError:
        return -1


def _is_newest(project: Project, route: str, size: int, file: BinaryIO) -> bool:
    """Whether a route file is, byte for byte, what the journal's newest record of ours says it should be."""
    from ralf.storage import journal

    if size > _LARGEST:
        return False
    try:
        head = project.store.head(journal.stream_of(route))
        newest = journal.at(project.store, route, head) if head is not None else None
    except (Busy, Damaged, OSError, UnknownToken):  # or rewritten meanwhile
        return False
    if newest is None or newest.foreign or newest.outdated:
        return False
    return newest.render == hashlib.sha256(file.read(size)).hexdigest()


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) <= _DIGITS else 0
