"""What is foreign in a route: to look at it, and to accept it as the user's own, by their own word."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from ralf import merge, route as heart, state as states
from ralf.briefing.fence import shown
from ralf.context import BODY, RouteContext
from ralf.document import render
from ralf.errors import Busy
from ralf.journal import Record
from ralf.ownership import foreignlines, foreignpart
from ralf.ownership.foreignlines import ORIGIN
from ralf.ownership.foreignpart import Theirs
from ralf.tree import Tree, from_tree, to_tree
from ralf.writer import writing

if TYPE_CHECKING:
    from ralf.project import Project
    from ralf.state import State

_MOST_COMPARED = 3_000  # lines of each side: to compare more may take time by their square
_LINEAGE = re.compile(r"r[0-9]{1,9}-[0-9a-f]{12}")
_WITH_ORIGIN = frozenset(
    ("decisions", "checkpoint_history", "paths", "commands", "errors", "commits", "tests", "requests")
)
"""The lists whose items say where they came from."""


@dataclass(frozen=True, slots=True)
class ForeignPart:
    """What this user's ralf did not write in a route.

    whole    whether nothing of the route is theirs
    lines    what it says, a line each (`foreignlines`): somebody else's words
    records  how many records of the journal are foreign; `file`: whether the route file is
    diff     what it says beside ours, as a unified diff of route files: somebody else's words, with nothing unseen
    damage   why the file cannot be read, "" for nothing: then it cannot be accepted
    digest   of all that is foreign, also of what the lines leave out
    """

    route: str
    whole: bool
    lines: tuple[str, ...]
    records: int
    file: bool
    diff: str
    damage: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What has become this user's; `lines` as in `ForeignPart`, () where nothing was foreign.

    warnings  what the caller should know of: a file that was changed meanwhile is left as it is
    """

    route: str
    revision: int
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def look(project: Project, route: str) -> ForeignPart | None:
    """What is foreign in a route, None for nothing, and for a route that there is not. Changes nothing.

    DamagedRouteFile, DamagedJournal as `state.load`; Busy, OSError.
    """
    state = states.load(project, route)
    if state is None or not state.context.foreign:
        return None
    theirs = foreignpart.of(project, route, state)
    context = state.context
    told = foreignlines.told(context) if context.wholly_foreign else ()
    return ForeignPart(
        route=route,
        whole=context.wholly_foreign,
        lines=(*context.foreign_notes, *told),
        records=state.recorded.context_checkpoint.foreign_records,
        file=state.status == "foreign",
        diff=_diff(state, theirs),
        damage=state.damage,
        digest=_digest(state, theirs),
    )


def accept_route(project: Project, route: str, *, seen: ForeignPart | None = None) -> Accepted:
    """Take what is foreign in a route as this user's own, under its lock: every item has the origin `import`, and file
    and journal are one again. Durable when this returns. Only for who has the user's own word for it.

    seen  what the user was shown: what is foreign must be that still

    DamagedRouteFile where the file cannot be read, DamagedJournal, Busy (also where what is foreign has changed since),
    OSError: then nothing was accepted.
    """
    with writing(project, route, leave=False) as writer:
        state = states.of(project, route, states.read_file(project, route))
        theirs = foreignpart.of(project, route, state) if state is not None else Theirs(None, None, whole=False)
        if state is None or not any(theirs.contexts):
            return Accepted(route, writer.context.revision)
        if seen is not None and seen.digest != _digest(state, theirs):
            raise Busy(route, "was changed since it was shown: not accepted", f"ralf context trust {route}")
        if state.content and state.status in ("foreign", "damaged"):
            states.parsed(project, route, state.content)
        told = foreignpart.notes(state.recorded, theirs)
        kind, payload = _payload(project, route, state, theirs)
        digest = states.digest_of(state.content or b"")
        context = writer.accept(kind, payload, id=f"accept-{writer.context.revision}-{digest}", content=state.content)
        return Accepted(route, context.revision, told, tuple(writer.warnings))


def _payload(project: Project, route: str, state: State, theirs: Theirs) -> tuple[str, dict[str, Any]]:
    """The record that makes what is foreign this user's: its kind and its payload."""
    context = theirs.file if theirs.whole and theirs.file is not None else state.recorded
    changes: list[merge.Change] = []
    if theirs.file is not None and not theirs.whole:
        found = states.named(states.parsed(project, route, state.content or b""), route)
        changes += states.changes_of(project, route, state, found)
        context = heart.apply(context, Record(context.revision, "edit", {"changes": changes}))
    if theirs.records is not None:
        added = heart.changes_of_foreign(context, theirs.records)
        context = heart.apply(context, Record(context.revision, "edit", {"changes": added}))
        changes += added
    if theirs.whole:
        document = _imported(to_tree(context))
        return "import", {"document": project.redactor.tree(document), "accepts": True, "joins": _joined(theirs)}
    changes = [states.redacted(project, one) for one in _with_origins(changes)]
    taken = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kept = {"timestamp": taken, "origin": ORIGIN, "changes": changes, "accepts": True, "joins": _joined(theirs)}
    return "edit", kept


def _joined(theirs: Theirs) -> list[str]:
    """The histories that become a part of ours with what is accepted."""
    headers = [context.context_checkpoint for context in theirs.contexts]
    named = (one for header in headers for one in (*header.joined, header.lineage))
    return list(dict.fromkeys(one for one in named if _LINEAGE.fullmatch(one)))[-heart.MOST_JOINED :]


def _digest(state: State, theirs: Theirs) -> str:
    """The sha256 of the foreign file's bytes and of what the foreign records come to."""
    file = state.content or b"" if state.status == "foreign" else b""
    records = render(theirs.records).encode() if theirs.records is not None else b""
    return states.digest_of(b"%d:%s%s" % (len(file), file, records))


# ---- origins ----


def _imported(document: Tree) -> Tree:
    """A whole context's tree whose items say that they were imported."""
    made: Tree = {key: _inner(key, value) for key, value in document.items()}
    if made.get("goal"):
        made["goal_origin"] = ORIGIN
    if made.get("active_work"):
        made["active_work"] = {**made["active_work"], "origin": ORIGIN}
    from_tree(RouteContext, made)
    return made


def _inner(key: str, value: Any) -> Any:
    """A value whose items say so, as far as they can."""
    if key in _WITH_ORIGIN and isinstance(value, list):
        return [_item(one) for one in value]
    if key == "facts" and isinstance(value, dict):
        return {name: _inner(name, items) for name, items in value.items()}
    return value


def _item(value: Any) -> Any:
    return {**value, "origin": ORIGIN} if isinstance(value, dict) else value


def _with_origins(changes: list[merge.Change]) -> list[merge.Change]:
    """Changes that say of what they bring, or change, that it was imported."""
    made: list[merge.Change] = []
    for change in changes:
        at = [str(key) for key in change["at"]]
        if "value" not in change or at[0] == BODY:
            made.append(change)
            continue
        parent = at[-2] if len(at) > 1 else ""
        value = _item(change["value"]) if parent in _WITH_ORIGIN else _inner(at[-1], change["value"])
        made.append({**change, "value": value})
        if at == ["goal"]:
            made.append({"at": ["goal_origin"], "value": ORIGIN})
        elif at == ["active_work"]:
            made[-1] = {**change, "value": _item(change["value"])}
        elif at[0] == "active_work":
            made.append({"at": ["active_work", "origin"], "value": ORIGIN})
        elif at[0] == "decisions" and len(at) > 2:
            made.append({"at": [*at[:2], "origin"], "value": ORIGIN})
    return made


# ---- telling ----


def _diff(state: State, theirs: Theirs) -> str:
    """What is foreign beside ours, as far as it can be compared."""
    ours = "" if theirs.whole else render(state.recorded)
    file = state.content.decode("utf-8", "replace") if state.status == "foreign" and state.content else ""
    other = file or "".join(render(found) for found in islice(theirs.contexts, 1))
    before, after = (shown(text).split("\n") for text in (ours, other))
    names = f"{state.context.route}.md (yours)", f"{state.context.route}.md (foreign)"
    lines = list(difflib.unified_diff(before[:_MOST_COMPARED], after[:_MOST_COMPARED], *names, lineterm=""))
    if max(len(before), len(after)) > _MOST_COMPARED:
        lines.append(f"\\ only the first {_MOST_COMPARED:,} lines of each are compared")
    return "".join(f"{line}\n" for line in lines)
