"""What this user's ralf did not write, of routes, tasks, memories, clones and settings: all of it, and accepting it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ralf import config, routing
from ralf.brief.wording import ORIGIN
from ralf.config import local_config
from ralf.document import merge
from ralf.document.judging import NEW
from ralf.document.state import digest_of
from ralf.document.tree import to_tree
from ralf.errors import Busy, Damaged, DamagedRouteFile, NotFound, UsageError
from ralf.maintenance import ownership
from ralf.model import Decision, RouteContext
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import edits, filed, fold, load, shared
from ralf.route.family import redacted
from ralf.route.load import State, load_state
from ralf.route.routefile import parse
from ralf.route.write import open_route, utc_now
from ralf.storage import registry
from ralf.storage.files import content_of
from ralf.storage.journal import Record, stream_of

_MOST = 64 << 20  # bytes of a file


class Foreign(NamedTuple):
    """Something in the store that this user's ralf did not write.

    kind    route, task, memory, clone, settings or local settings
    text    all of it: somebody else's words
    accept  takes just that as this user's, and returns what is to be said of it. Busy where it has changed meanwhile;
            only for who has the user's own word for it
    asks    what the person is asked
    """

    kind: str
    name: str
    text: str
    accept: Callable[[], Sequence[str] | None]
    asks: str = "may agents be handed it"


def everything(project: Project, name: str = "") -> list[Foreign]:
    """What is foreign, or what of it has a name: of a route, a task, an agent, or a person whose clone shares.

    Errors: those of reading the routes and tasks.
    """
    parts = (
        *_routes(project, name),
        *_tasks(project, name),
        *_memories(project),
        *_clones(project),
        *_settings(project),
        *_commands(project),
    )
    return [one for one in parts if not name or name.casefold() == one.name.casefold()]


def shares(project: Project, name: str) -> bool:
    """Whether something that a person of this name shared has been accepted."""
    return any(note.by.casefold() == name.casefold() for note in shared.others(project).accepted)


def is_known(project: Project, name: str) -> bool:
    """Whether a task, an agent with a memory or a person who shares has this name, whatever of theirs is foreign."""
    from ralf.memory import writing
    from ralf.tasks import store

    names = writing.agents(project)
    with suppress(NotFound, UsageError):  # a title that several tasks have
        names.append(store.Tasks(project).get(name).task.id)
    return shares(project, name) or name.casefold() in (one.casefold() for one in names)


def _routes(project: Project, name: str) -> Iterator[Foreign]:
    known = routing.names_of(project)
    for route in [one for one in known if one == name] if name else known:
        if (found := foreign_route(project, route)) is not None:
            yield found


def _tasks(project: Project, name: str) -> Iterator[Foreign]:
    """The tasks of a name, or all of them as one: a tree of tasks is accepted once, whole."""
    from ralf.tasks import trust

    found = trust.files_of(project)
    if name:
        found = {id_: files for id_, files in found.items() if id_.casefold() == name.casefold()}
    texts = [f"{path}:\n{_text(path)}" for files in found.values() for path in files]
    if found:
        yield Foreign("task", name or f"({len(found):,})", "\n".join(texts), partial(_accept_tasks, project, found))


def _accept_tasks(project: Project, seen: Mapping[str, Mapping[Path, str]]) -> None:
    from ralf.tasks import records, trust

    _make_room(project, records.STREAM)
    trust.accept(project, seen)


def _memories(project: Project) -> Iterator[Foreign]:
    from ralf.memory import writing

    for agent in writing.agents(project):
        if writing.look_of(project, agent, lambda look: look.file.status) == NEW:
            text = _text(writing.path_of(project, agent))
            yield Foreign("memory", agent, text, partial(_accept_memory, project, agent, text))


def _accept_memory(project: Project, agent: str, seen: str) -> Sequence[str]:
    from ralf.memory import family, writing

    if _text(writing.path_of(project, agent)) != seen:
        raise changed(agent)
    _make_room(project, family.stream_of(agent))
    return writing.write(project, agent, lambda _: (), accept=True).warnings


def _clones(project: Project) -> Iterator[Foreign]:
    _, new = shared.others(project)
    named = {route: shared.named_in(project, route) for route in {note.route for note in new}}
    for by in sorted({note.by for note in new}):
        notes = [note for note in new if note.by == by]
        lines = [f"{note.route}: {line}" for note in notes for line in shared.lines_of(note, named[note.route])]
        yield Foreign("clone", by, "\n".join(lines), partial(shared.accept, project, notes))


def _settings(project: Project) -> Iterator[Foreign]:
    path = project.config_file
    if not config.is_believed(project) and ownership.lines_that_set(project):
        seen = ownership.digest_of_settings(project)
        yield Foreign("settings", path.name, _text(path), partial(_accept_settings, project, seen))


def _accept_settings(project: Project, seen: str) -> Sequence[str]:
    if not ownership.accept_settings(project, seen=seen):
        raise changed(project.config_file)
    return () if project.owner.has_opted_in else ("hooks do nothing here yet: ralf init",)


def _commands(project: Project) -> Iterator[Foreign]:
    path = project.local_config_file
    with suppress(UsageError, Damaged):  # `doctor` names a file that cannot be used
        if content := local_config.not_allowed(project):
            text, accept = registry.text_of(path, content), partial(_allow, project, content)
            yield Foreign("local settings", path.name, text, accept, "may what it names be run as you")


def _allow(project: Project, seen: bytes) -> None:
    path = project.local_config_file
    if registry.content_of(path) != seen:
        raise changed(path)
    local_config.allow(project, seen)


def _make_room(project: Project, stream: str) -> None:
    """Drop a journal of somebody else's: what it comes to is recorded in its place."""
    if project.store.is_foreign(stream):
        project.store.drop(stream)


def _text(path: Path) -> str:
    return content_of(path, most=_MOST).decode("utf-8", "replace")


def changed(where: Path | str) -> Busy:
    """The error that something is not what the user was shown."""
    return Busy(where, "was changed since it was shown: not accepted", "ralf trust")


# ---- a route ----

_MOST_COMPARED = 3_000  # lines of each side: to compare more may take time by their square


def foreign_route(project: Project, route: str) -> Foreign | None:
    """What is foreign in a route, None for nothing, and for a route that there is not: what its file says beside ours
    as a unified diff, else all of it. Changes nothing.

    DamagedRouteFile, DamagedJournal as `load.load_state`; Busy, OSError.
    """
    state = load_state(project, route)
    if state is None or not state.context.foreign:
        return None
    content = _content(project, route, state)
    ours, theirs = filed.content_of(state.recorded).decode().split("\n"), content.decode("utf-8", "replace").split("\n")
    if state.token is not None and max(len(ours), len(theirs)) <= _MOST_COMPARED:
        theirs = [*difflib.unified_diff(ours, theirs, f"{route}.md (yours)", f"{route}.md (foreign)", lineterm="")]
    return Foreign("route", route, "\n".join(theirs), partial(accept_route, project, route, seen=digest_of(content)))


def accept_route(project: Project, route: str, *, seen: str = "") -> Sequence[str]:
    """Take what is foreign in a route as this user's own, under its lock: every item has the origin `import`, and file
    and journal are one again; what is to be said of it. Durable when this returns. Only for who has the user's own word
    for it.

    seen  the sha256 of what the user was shown: what is foreign must be that still

    DamagedRouteFile where the file cannot be read, DamagedJournal, Busy (also where what is foreign has changed since),
    OSError: then nothing was accepted.
    """
    with open_route(project, route) as writer:
        state = load_state(project, route)
        if state is None or not state.context.foreign:
            return ()
        content = _content(project, route, state)
        if seen and seen != digest_of(content):
            raise changed(route)
        if state.content:
            parse(state.content, project.route_file(route))
        theirs = load.theirs_of(project, route, state)
        if theirs is None:
            raise DamagedRouteFile(project.route_file(route), "cannot be read", f"ralf show {route}")
        _make_room(project, stream_of(route))
        kind, payload = _record_of(project, route, state, theirs)
        writer.accept(kind, payload, id=f"accept-{writer.context.revision}-{digest_of(content)}", content=state.content)
        return writer.warnings


def _content(project: Project, route: str, state: State) -> bytes:
    """The bytes that are foreign: of the file, or of the one that would show a journal that is not this user's."""
    theirs = load.theirs_of(project, route, state) if not state.content else None
    return filed.content_of(theirs) if theirs is not None else state.content


def _record_of(project: Project, route: str, state: State, theirs: RouteContext) -> tuple[str, dict[str, Any]]:
    """The record that makes what is foreign this user's: its kind and its payload."""
    if state.token is None:
        made = imported(
            fold.empty(route), edits.with_header(theirs, mark="", revision=0)
        )  # it is another one's no more
        return "import", {"document": redactor_for(project).tree(to_tree(made)), "accepts": True}
    changes = load.changes_of(project, route, state, theirs)
    made = fold.apply(state.recorded, Record(state.recorded.revision, "edit", {"changes": changes, "origin": ORIGIN}))
    found = merge.diff(to_tree(state.recorded), to_tree(imported(state.recorded, made)))
    kept = {"timestamp": utc_now(), "origin": ORIGIN, "changes": [redacted(project, one) for one in found]}
    return "edit", kept | {"accepts": True}


_FACTS = ("paths", "commands", "errors", "commits", "tests", "requests")


def imported(before: RouteContext, after: RouteContext) -> RouteContext:
    """A context, of which all that another one does not say has the origin `import`, whatever it says itself. An item
    whose status alone has changed stays whose it was.
    """

    def items(was: Sequence[Any], now: Sequence[Any], field: str = "origin") -> tuple[Any, ...]:
        known = {_said(item) for item in was}
        return tuple(item if _said(item) in known else _tagged(item, field) for item in now)

    work, handed, last = after.active_work, after.handover, after.handover.last
    if last is not None and last != before.handover.last:
        last = replace(last, author="import")
    kept = items(before.handover.kept, handed.kept, "author")
    offers = items(before.handover.offers, handed.offers, "author")
    facts: dict[str, Any] = {name: items(getattr(before.facts, name), getattr(after.facts, name)) for name in _FACTS}
    return replace(
        after,
        goal_origin=ORIGIN if after.goal and after.goal != before.goal else after.goal_origin,
        active_work=work if work == before.active_work else replace(work, origin=ORIGIN),
        decisions=items(before.decisions, after.decisions),
        pinned=items(before.pinned, after.pinned),
        checkpoint_history=items(before.checkpoint_history, after.checkpoint_history),
        facts=replace(after.facts, **facts),
        handover=replace(handed, last=last, kept=kept, offers=offers),
    )


def _tagged(item: Any, field: str) -> Any:
    if hasattr(item, field):
        return replace(item, **{field: ORIGIN})
    return replace(item, extra={**item.extra, field: ORIGIN})  # a fact


def _said(item: Any) -> str:
    """What an item says, but for its status and links."""
    return repr(replace(item, status="", supersedes="", superseded_by="") if isinstance(item, Decision) else item)
