"""What this user's ralf did not write, of routes, tasks, memories, clones and settings: all of it, and accepting it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ralf import config, routing
from ralf.brief.wording import ORIGIN
from ralf.document import merge
from ralf.document.judging import NEW
from ralf.document.tree import Tree, from_tree, to_tree
from ralf.errors import Busy, DamagedRouteFile
from ralf.maintenance import ownership
from ralf.model import BODY, Carried, RouteContext
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import edits, filed, foreign, shared, state as states
from ralf.route.load import load_state
from ralf.route.state import State
from ralf.route.write import open_route, utc_now
from ralf.storage.files import content_of
from ralf.storage.journal import stream_of

_MOST = 64 << 20  # bytes of a file

_MOST_COMPARED = 3_000  # lines of each side: to compare more may take time by their square

_WITH_ORIGIN = frozenset("decisions checkpoint_history paths commands errors commits tests requests".split())
"""The lists whose items say where they came from."""

_HANDED = ("last", "kept", "offers")

_WORDLESS = ("status", "supersedes", "superseded_by")  # fields whose change leaves an item whose it was


class Foreign(NamedTuple):
    """Something in the store that this user's ralf did not write.

    kind    route, task, memory, clone or settings
    text    all of it: somebody else's words
    accept  takes just that as this user's, and returns what is to be said of it. Busy where it has changed meanwhile;
            only for who has the user's own word for it
    """

    kind: str
    name: str
    text: str
    accept: Callable[[], Sequence[str]]


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
    )
    return [one for one in parts if not name or name.casefold() == one.name.casefold()]


def _routes(project: Project, name: str) -> Iterator[Foreign]:
    for route in [name] if name in routing.names_of(project) else routing.names_of(project) if not name else []:
        if (part := look_at_foreign(project, route)) is not None:
            yield Foreign("route", route, part.text, partial(_accept_route, project, part))


def _accept_route(project: Project, part: ForeignPart) -> Sequence[str]:
    return accept_route(project, part.route, seen=part).warnings


def _tasks(project: Project, name: str) -> Iterator[Foreign]:
    """The tasks of a name, or all of them as one: a tree of tasks is accepted once, whole."""
    from ralf.tasks import trust

    found = trust.files_of(project)
    if name:
        found = {id_: files for id_, files in found.items() if id_.casefold() == name.casefold()}
    texts = [f"{path}:\n{_text(path)}" for files in found.values() for path in files]
    if found:
        yield Foreign("task", name or f"({len(found):,})", "\n".join(texts), partial(_accept_tasks, project, found))


def _accept_tasks(project: Project, seen: Mapping[str, Mapping[Path, str]]) -> Sequence[str]:
    from ralf.tasks import records, trust

    _make_room(project, records.STREAM)
    trust.accept(project, seen)
    return ()


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
    for by in sorted({note.by for note in new}):
        notes = [note for note in new if note.by == by]
        lines = [f"{note.route}: {line}" for note in notes for line in shared.lines_of(note)]
        yield Foreign("clone", by, "\n".join(lines), partial(_accept_notes, project, notes))


def _accept_notes(project: Project, notes: Sequence[shared.Note]) -> Sequence[str]:
    shared.accept(project, notes)
    return ()


def _settings(project: Project) -> Iterator[Foreign]:
    path = project.config_file
    if not config.is_believed(project) and ownership.lines_that_set(project):
        seen = ownership.digest_of_settings(project)
        yield Foreign("settings", path.name, _text(path), partial(_accept_settings, project, seen))


def _accept_settings(project: Project, seen: str) -> Sequence[str]:
    if not ownership.accept_settings(project, seen=seen):
        raise changed(project.config_file)
    return () if project.owner.has_opted_in else ("hooks do nothing here yet: ralf init",)


def _make_room(project: Project, stream: str) -> None:
    """Drop a journal of somebody else's: what it comes to is recorded in its place."""
    if project.store.is_foreign(stream):
        project.store.drop(stream)


def _text(path: Path) -> str:
    return content_of(path, most=_MOST).decode("utf-8", "replace")


def changed(where: Path | str) -> Busy:
    """The error that something is not what the user was shown."""
    return Busy(where, "was changed since it was shown: not accepted", "ralf context trust")


# ---- a route ----


@dataclass(frozen=True, slots=True)
class ForeignPart:
    """What this user's ralf did not write in a route.

    whole   whether nothing of the route is theirs
    text    all of it, somebody else's words: what its file says beside ours as a unified diff, else the file
    notes   a line for each item that ours does not have
    damage  why the file cannot be read, "" for nothing: then it cannot be accepted
    digest  of all that is foreign
    """

    route: str
    whole: bool
    text: str
    notes: tuple[str, ...]
    damage: str
    digest: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of a route; `warnings`: a file that was changed meanwhile is left as it is."""

    route: str
    revision: int
    warnings: tuple[str, ...] = ()


def look_at_foreign(project: Project, route: str) -> ForeignPart | None:
    """What is foreign in a route, None for nothing, and for a route that there is not. Changes nothing.

    DamagedRouteFile, DamagedJournal as `load.load_state`; Busy, OSError.
    """
    state = load_state(project, route)
    if state is None or not state.context.foreign:
        return None
    content = _content(project, route, state)
    return ForeignPart(
        route=route,
        whole=state.context.wholly_foreign,
        text=_beside_ours(state, content.decode("utf-8", "replace")),
        notes=state.context.foreign_notes,
        damage=state.damage,
        digest=states.digest_of(content),
    )


def accept_route(project: Project, route: str, *, seen: ForeignPart | None = None) -> Accepted:
    """Take what is foreign in a route as this user's own, under its lock: every item has the origin `import`, and file
    and journal are one again. Durable when this returns. Only for who has the user's own word for it.

    seen  what the user was shown: what is foreign must be that still

    DamagedRouteFile where the file cannot be read, DamagedJournal, Busy (also where what is foreign has changed since),
    OSError: then nothing was accepted.
    """
    with open_route(project, route) as writer:
        writer.absorb_edits()
        state = load_state(project, route)
        if state is None or not state.context.foreign:
            return Accepted(route, writer.context.revision)
        if seen is not None and seen.digest != states.digest_of(_content(project, route, state)):
            raise changed(route)
        if state.content:
            states.parse_file(project, route, state.content)
        kind, payload = _payload(project, route, state)
        _make_room(project, stream_of(route))
        id_ = f"accept-{writer.context.revision}-{states.digest_of(state.content)}"
        context = writer.accept(kind, payload, id=id_, content=state.content)
        return Accepted(route, context.revision, tuple(writer.warnings))


def _content(project: Project, route: str, state: State) -> bytes:
    """The bytes that are foreign: of the file, or of the one that would show a journal that is not this user's."""
    if state.content:
        return state.content
    theirs = foreign.theirs_of(project, route, state)
    return filed.content_of(theirs) if theirs is not None else b""


def _beside_ours(state: State, theirs: str) -> str:
    """What is foreign beside ours; all of it where ours is nothing, or they are too long to be compared."""
    ours = filed.content_of(state.recorded).decode().split("\n")
    lines = theirs.split("\n")
    if state.token is None or max(len(ours), len(lines)) > _MOST_COMPARED:
        return theirs
    names = f"{state.context.route}.md (yours)", f"{state.context.route}.md (foreign)"
    return "".join(f"{line}\n" for line in difflib.unified_diff(ours, lines, *names, lineterm=""))


def _payload(project: Project, route: str, state: State) -> tuple[str, dict[str, Any]]:
    """The record that makes what is foreign this user's: its kind and its payload."""
    theirs = foreign.theirs_of(project, route, state)
    if theirs is None:
        raise DamagedRouteFile(project.route_file(route), "cannot be read", f"ralf context show {route}")
    if state.token is None:
        document = _imported(to_tree(edits.with_header(theirs, mark="", revision=0)))  # it is another one's no more
        return "import", {"document": redactor_for(project).tree(document), "accepts": True}
    changes = _marked(foreign.changes_of(project, route, state, theirs))
    return "edit", {
        "timestamp": utc_now(),
        "origin": ORIGIN,
        "changes": [states.redacted(project, one) for one in changes],
        "accepts": True,
    }


# ---- origins: what was accepted says that it was imported, whatever it says itself ----


def _imported(document: Tree) -> Tree:
    """A whole context's tree whose items say so."""
    made: Tree = {key: _value([key], value) for key, value in document.items()}
    if made.get("goal"):
        made["goal_origin"] = ORIGIN
    from_tree(RouteContext, made)
    return made


def _value(at: Sequence[str], value: Any) -> Any:
    """What is put in a place, with items that say so."""
    parent = at[-2] if len(at) > 1 else ""
    if at[0] == "handover":
        return _handed(at, value)
    if isinstance(value, dict) and (parent in _WITH_ORIGIN or at == ["active_work"]):
        return {**value, "origin": ORIGIN}
    if isinstance(value, list) and at[-1] in _WITH_ORIGIN:
        return [_value([*at, ""], one) for one in value]
    if isinstance(value, dict) and at == ["facts"]:
        return {name: _value([*at, name], items) for name, items in value.items()}
    return value


def _handed(at: Sequence[str], value: Any) -> Any:
    """A hand-over, or a part of one, each text of which says so."""
    if isinstance(value, list):
        return [_handed([*at, ""], one) for one in value]
    if len(at) == 1 and isinstance(value, dict):
        made = Carried.of_earlier(value)
        return {key: _handed([*at, key], one) if key in _HANDED else one for key, one in made.items()}
    return {**value, "author": ORIGIN} if isinstance(value, dict) and len(at) <= len(_text_of([*at, "", ""])) else value


def _text_of(at: Sequence[str]) -> Sequence[str]:
    """The place of the text of a hand-over in which a place lies: the moment, or an entry."""
    return at[:2] if at[1] == "last" else at[:3]


def _marked(changes: Sequence[merge.Change]) -> list[merge.Change]:
    """Changes that say of what they bring, or change, that it was imported."""
    made: list[merge.Change] = []
    for change in changes:
        at = [str(key) for key in change["at"]]
        if "value" not in change or at[0] == BODY:
            made.append(change)
            continue
        made.append({**change, "value": _value(at, change["value"])})
        whose: list[Any] = []
        if at[0] in ("goal", "goal_origin"):
            whose = ["goal_origin"]
        elif at[0] == "active_work" and len(at) > 1:
            whose = ["active_work", "origin"]
        elif at[0] == "handover" and (at[1:2] == ["last"] or (at[1:2] in (["kept"], ["offers"]) and len(at) > 2)):
            whose = [*_text_of(at), "author"]
        elif at[0] in ("decisions", "checkpoint_history") and len(at) > 2 and at[2] not in _WORDLESS:
            whose = [*at[:2], "origin"]
        elif at[:2] == ["facts", "requests"] and len(at) > 3:
            whose = [*at[:3], "origin"]
        made += [{"at": whose, "value": ORIGIN}] if whose else []
    return made
