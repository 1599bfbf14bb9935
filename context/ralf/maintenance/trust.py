"""Foreign parts of a route: shows them, and accepts them on the user's word."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from ralf.brief import wording
from ralf.brief.wording import MANY, ORIGIN
from ralf.document import merge
from ralf.document.tree import Tree, from_tree, to_tree
from ralf.errors import Busy, DamagedRouteFile
from ralf.model import BODY, Carried, Decision, RouteContext
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import edits, filed, fold, foreign, state as states
from ralf.route.load import load_state
from ralf.route.state import State
from ralf.route.write import open_route, utc_now
from ralf.storage import journal
from ralf.text.cleaning import shown

_MOST_COMPARED = 3_000  # lines of each side: to compare more may take time by their square

_WITH_ORIGIN = frozenset("decisions checkpoint_history paths commands errors commits tests requests".split())
"""The lists whose items say where they came from."""

_HANDED = ("last", "kept", "offers")

_WORDLESS = ("status", "supersedes", "superseded_by")  # fields whose change leaves an item whose it was


@dataclass(frozen=True, slots=True)
class ForeignPart:
    """What this user's ralf did not write in a route.

    whole    whether nothing of the route is theirs
    lines    what it says that accepting would change, a line each: somebody else's words; () for nothing but labels,
             numbers and whose items are
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
    """What has become this user's; `lines` as in `ForeignPart`.

    warnings  what the caller should know of: a file that was changed meanwhile is left as it is
    """

    route: str
    revision: int
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def look_at_foreign(project: Project, route: str) -> ForeignPart | None:
    """What is foreign in a route, None for nothing, and for a route that there is not. Changes nothing.

    DamagedRouteFile, DamagedJournal as `load.load_state`; Busy, OSError.
    """
    state = load_state(project, route)
    if state is None or not state.context.foreign:
        return None
    theirs = foreign.foreign_part(project, route, state)
    context = state.context
    return ForeignPart(
        route=route,
        whole=context.wholly_foreign,
        lines=_lines(project, route, state, theirs),
        records=state.recorded.context_checkpoint.foreign_records,
        file=state.status == "foreign",
        diff=_diff(state, theirs),
        damage=state.damage,
        digest=_digest(state, theirs),
    )


def refuse_route(project: Project, route: str, *, seen: ForeignPart) -> None:
    """Note that the user has looked at what is foreign in a route and does not want it. Nothing of the route changes;
    it stays foreign, and `is_refused` says so until something else comes.

    Busy where what is foreign has changed since it was shown, OSError; else as `look_at_foreign`.
    """
    now = look_at_foreign(project, route)
    if now is None or now.digest != seen.digest:
        raise Busy(route, "was changed since it was shown: not refused", f"ralf context trust {route}")
    found = project.owner.registration
    kept = dict(found.unaccepted) if found is not None else {}
    project.owner.update(unaccepted=kept | {_refused_as(route): now.digest})


def is_refused(project: Project, part: ForeignPart) -> bool:
    """Whether the user has refused just this (`refuse_route`)."""
    found = project.owner.registration
    return found is not None and found.unaccepted.get(_refused_as(part.route)) == part.digest


def _refused_as(route: str) -> str:
    return f"routes/{route}"


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
        theirs = foreign.foreign_part(project, route, state) if state is not None else None
        if state is None or theirs is None or not any(theirs.contexts):
            return Accepted(route, writer.context.revision)
        if seen is not None and seen.digest != _digest(state, theirs):
            raise Busy(route, "was changed since it was shown: not accepted", f"ralf context trust {route}")
        if state.content and state.status in ("foreign", "damaged"):
            states.parse_file(project, route, state.content)
        told = _lines(project, route, state, theirs)
        kind, payload = _payload(project, route, state, theirs)
        digest = states.digest_of(state.content)
        context = writer.accept(kind, payload, id=f"accept-{writer.context.revision}-{digest}", content=state.content)
        return Accepted(route, context.revision, told, tuple(writer.warnings))


def _payload(project: Project, route: str, state: State, theirs: foreign.Theirs) -> tuple[str, dict[str, Any]]:
    """The record that makes what is foreign this user's: its kind and its payload."""
    changes, context = _changes(project, route, state, theirs)
    if theirs.whole:
        document = _imported(to_tree(context))
        return "import", {"document": redactor_for(project).tree(document), "accepts": True}
    changes = [states.redacted(project, one) for one in changes]
    kept = {"timestamp": utc_now(), "origin": ORIGIN, "changes": changes, "accepts": True}
    return "edit", kept


def _changes(
    project: Project, route: str, state: State, theirs: foreign.Theirs
) -> tuple[list[merge.Change], RouteContext]:
    """What accepting changes in what is recorded, and what it comes to."""
    context = theirs.file if theirs.whole and theirs.file is not None else state.recorded
    changes: list[merge.Change] = []
    if theirs.file is not None and not theirs.whole:
        found = states.parse_file(project, route, state.content)
        found = states.with_route(filed.with_own_lines(found), route)
        changes = _marked(foreign.changes_of(project, route, state, found))
        context = _with(context, changes)
    if theirs.records is not None:
        added = edits.changes_of_foreign(context, theirs.records)
        added = added if theirs.whole else _marked(added)
        context = _with(context, added)
        changes += added
    return changes, context


def _with(context: RouteContext, changes: list[merge.Change]) -> RouteContext:
    return fold.apply(context, journal.Record(context.revision, "edit", {"changes": changes}))


def _lines(project: Project, route: str, state: State, theirs: foreign.Theirs) -> tuple[str, ...]:
    """What accepting would change, a line each; where the file cannot be read, what is foreign."""
    if state.context.wholly_foreign:
        return (*state.context.foreign_notes, *wording.told(state.context))
    if theirs.whole:
        return foreign.foreign_notes(state.recorded, theirs)
    try:
        _, after = _changes(project, route, state, theirs)
    except DamagedRouteFile:
        return state.context.foreign_notes
    ours = state.recorded
    known, words = set(wording.told(ours, MANY)), {_claim(item) for item in ours.decisions}
    news = replace(after, decisions=tuple(item for item in after.decisions if _claim(item) not in words))
    lines = (line for line in wording.told(news, MANY) if line not in known or line.startswith(_OF_DECISIONS))
    left = set(wording.told(after, MANY))
    gone = (f"gone: {line}" for line in known - left if line.startswith(_OF_WORK))
    return wording.bounded([*foreign.dropped_lines(ours, after), *lines, *sorted(gone)])


_OF_DECISIONS = tuple(f"{name} " for name in wording.SECTIONS["decisions"])
_OF_WORK = ("next step: ", "blocked: ", "found: ")


def _claim(item: Decision) -> str:
    """What tells a decision from what it was, but for its labels, its links and whose it is."""
    return repr(replace(item, id="", supersedes="", superseded_by="", origin=""))


def _digest(state: State, theirs: foreign.Theirs) -> str:
    """The sha256 of the foreign file's bytes and of what the foreign records come to."""
    file = state.content if state.status == "foreign" else b""
    records = filed.content_of(theirs.records) if theirs.records is not None else b""
    return states.digest_of(b"%d:%s%s" % (len(file), file, records))


def _diff(state: State, theirs: foreign.Theirs) -> str:
    """What is foreign beside ours, as far as it can be compared."""
    ours = "" if theirs.whole else filed.content_of(state.recorded).decode()
    file = state.content.decode("utf-8", "replace") if state.status == "foreign" and state.content else ""
    other = file or "".join(filed.content_of(found).decode() for found in islice(theirs.contexts, 1))
    before, after = (shown(text).split("\n") for text in (ours, other))
    names = f"{state.context.route}.md (yours)", f"{state.context.route}.md (foreign)"
    lines = list(difflib.unified_diff(before[:_MOST_COMPARED], after[:_MOST_COMPARED], *names, lineterm=""))
    if max(len(before), len(after)) > _MOST_COMPARED:
        lines.append(f"\\ only the first {_MOST_COMPARED:,} lines of each are compared")
    return "".join(f"{line}\n" for line in lines)


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
