"""Foreign parts of a route: shows them, and accepts them on the user's word."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from ralf.brief import wording
from ralf.brief.wording import MANY, ORIGIN, told_unresolved
from ralf.errors import Busy, DamagedRouteFile
from ralf.format import merge
from ralf.format.codec import Tree, from_tree, to_tree
from ralf.model import BODY, Carried, Decision, RouteContext
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import edits, filed, fold, foreign, state as states
from ralf.route.load import load_state, read_state
from ralf.route.state import State
from ralf.route.write import open_route, utc_now
from ralf.storage import journal
from ralf.text.cleaning import shown
from ralf.text.patterns import regex

_MOST_COMPARED = 3_000  # lines of each side: to compare more may take time by their square
_LINEAGE = regex(r"r[0-9]{1,9}-[0-9a-f]{12}")

_WITH_ORIGIN = frozenset("decisions checkpoint_history paths commands errors commits tests requests".split())
"""The lists whose items say where they came from."""

_LABEL = regex(r"(?:DEC|cp)-[0-9]{1,9}")
_SHAPES = {"clone": regex(r"[0-9a-f]{6}"), "timestamp": regex(r"[0-9T:.Z+-]{1,40}")}
_NONE: Mapping[str, str] = {}
_STATUSES = frozenset(("active", "superseded", "reversed", "done", "proposed", "dropped"))


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
    with open_route(project, route, leave=False) as writer:
        writer.absorb_edits()
        state = read_state(project, route, states.read_file(project, route))
        theirs = foreign.foreign_part(project, route, state) if state is not None else None
        if state is None or theirs is None or not any(theirs.contexts):
            return Accepted(route, writer.context.revision)
        if seen is not None and seen.digest != _digest(state, theirs):
            raise Busy(route, "was changed since it was shown: not accepted", f"ralf context trust {route}")
        if state.content and state.status in ("foreign", "damaged"):
            states.parse_file(project, route, state.content)
        told = _lines(project, route, state, theirs)
        kind, payload = _payload(project, route, state, theirs)
        digest = states.digest_of(state.content or b"")
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
        found = states.parse_file(project, route, state.content or b"")
        found = states.with_route(filed.with_own_lines(found), route)
        changes = _marked(foreign.changes_of(project, route, state, found), context)
        context = _with(context, changes)
    if theirs.records is not None:
        added = edits.changes_of_foreign(context, theirs.records)
        added = added if theirs.whole else _marked(added, context)
        context = _with(context, added)
        changes += added
    return changes, context


def _with(context: RouteContext, changes: list[merge.Change]) -> RouteContext:
    return fold.apply(context, journal.Record(context.revision, "edit", {"changes": changes}))


def _marked(changes: list[merge.Change], ours: RouteContext) -> list[merge.Change]:
    """Changes that say what they bring was imported; what is ours stays so, whatever the file says of whose it is."""
    tree = to_tree(ours)
    return _with_origins(_with_words(changes, tree), _origins(tree))


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
    marks = [entry for entry in after.unresolved if entry not in ours.unresolved]
    news = replace(after, decisions=tuple(item for item in after.decisions if _claim(item) not in words))
    lines = (line for line in wording.told(news, MANY) if line not in known or line.startswith(_OF_DECISIONS))
    left = set(wording.told(after, MANY))
    gone = (f"gone: {line}" for line in known - left if line.startswith(_OF_WORK))
    unresolved = (f"unresolved: {line}" for line in told_unresolved(replace(after, unresolved=tuple(marks))))
    return wording.bounded([*unresolved, *foreign.dropped_lines(ours, after), *lines, *sorted(gone)])


_OF_DECISIONS = tuple(f"{name} " for name in wording.SECTIONS["decisions"])
_OF_WORK = ("next step: ", "blocked: ", "found: ")


def _claim(item: Decision) -> str:
    """What tells a decision from what it was, but for its labels, its links and whose it is."""
    return repr(replace(item, id="", aliases=(), supersedes="", superseded_by="", origin=""))


def _digest(state: State, theirs: foreign.Theirs) -> str:
    """The sha256 of the foreign file's bytes and of what the foreign records come to."""
    file = state.content or b"" if state.status == "foreign" else b""
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


# ---- origins ----


def _imported(document: Tree) -> Tree:
    """A whole context's tree whose items say that they were imported."""
    made: Tree = {key: _inner(key, value) for key, value in document.items()}
    if made.get("goal"):
        made["goal_origin"] = ORIGIN
    if made.get("handover"):
        made["handover"] = _handover(made["handover"])
    if made.get("active_work"):
        made["active_work"] = {**made["active_work"], "origin": ORIGIN}
    from_tree(RouteContext, made)
    return made


def _handover(tree: Tree) -> Tree:
    """What is handed over in a tree of somebody else, each text theirs."""
    made = Carried.of_earlier(tree)
    return {key: _authored(value) if key in ("last", "kept", "offers") else value for key, value in made.items()}


def _authored(value: Any) -> Any:
    """A text of a hand-over, or several, of somebody else."""
    if isinstance(value, list):
        return [*map(_authored, value)]
    return {**value, "author": ORIGIN} if isinstance(value, dict) else value


def _written(at: Sequence[str]) -> Sequence[str]:
    """The place of the text of a hand-over in which a place lies: the moment, or an entry."""
    return at[:2] if at[1] == "last" else at[:3]


def _inner(key: str, value: Any, known: Mapping[str, str] = _NONE) -> Any:
    """A value whose items say so, as far as they can."""
    if key in _WITH_ORIGIN and isinstance(value, list):
        return [_item(one, known) for one in value]
    if key == "facts" and isinstance(value, dict):
        return {name: _inner(name, items, known) for name, items in value.items()}
    return value


def _item(value: Any, known: Mapping[str, str] = _NONE) -> Any:
    """An item that says so; one that ours has in the same words keeps the origin that it has there."""
    if not isinstance(value, dict):
        return value
    origin = known.get(_words(value), ORIGIN)
    return {**value, "origin": origin} if origin else {key: inner for key, inner in value.items() if key != "origin"}


_NO_WORDS = frozenset(("origin", "id", "checkpoint_id", "summary_ref", "aliases", "supersedes", "superseded_by"))


def _words(item: Tree) -> str:
    """What an item says, without its labels, its links and whose it is: decisions have their clone and time in it."""
    left_out = _NO_WORDS | {"status"} if "decision" in item else _NO_WORDS
    kept = {key: inner for key, inner in item.items() if key not in left_out}
    return json.dumps(kept, sort_keys=True, ensure_ascii=False, default=str)


def _origins(tree: Tree) -> dict[str, str]:
    """The origins of the items of a context's tree, by what they say."""
    lists = [inner for key, inner in {**tree, **tree.get("facts", {})}.items() if key in _WITH_ORIGIN]
    return {_words(item): str(item.get("origin", "")) for one in lists for item in one if isinstance(item, dict)}


def _with_words(changes: list[merge.Change], ours: Tree) -> list[merge.Change]:
    """The changes without those that say nothing else of what ours has than whose it is: each clone takes what the
    others wrote for an import, and its own work comes back so.
    """
    ats = [tuple(map(str, change["at"])) for change in changes]
    about = [_about(at) for at in ats]
    telling = [at for at, of, one in zip(ats, about, changes, strict=True) if not of and not _has_no_words(at, one)]
    changed = {at[:length] for at in telling for length in range(len(at) + 1)}
    return [
        change
        for change, of in zip(changes, about, strict=True)
        if not of or of in changed or not merge.holds(ours, of)
    ]


def _has_no_words(at: Sequence[str], change: merge.Change) -> bool:
    """Whether a change of a field of an item tells no words."""
    item = _item_of(at)
    return bool(item) and "value" in change and _is_wordless(at[len(item)], change["value"])


def _about(at: tuple[str, ...]) -> tuple[str, ...]:
    """The place of what a change tells the origin of; () for another change."""
    if at == ("goal_origin",):
        return ("goal",)
    is_author = at[0] == "handover" and len(at) > 2 and at[-1] == "author"
    is_origin = is_author or (at[-1] == "origin" and (len(at) > 2 or at[0] == "active_work"))
    return at[:-1] if is_origin else ()


def _with_origins(changes: list[merge.Change], known: Mapping[str, str]) -> list[merge.Change]:
    """Changes that say of what they bring, or change, that it was imported."""
    made: list[merge.Change] = []
    for change in changes:
        at = [str(key) for key in change["at"]]
        if "value" not in change or at[0] == BODY:
            made.append(change)
            continue
        parent = at[-2] if len(at) > 1 else ""
        is_item = parent in _WITH_ORIGIN or at == ["active_work"]
        value = _item(change["value"], known) if is_item else _inner(at[-1], change["value"], known)
        if at[0] == "handover" and len(at) <= len(_written([*at, "", ""])):
            value = _handover(value) if len(at) == 1 and isinstance(value, dict) else _authored(value)
        made.append({**change, "value": value})
        if at in (["goal"], ["goal_origin"]):
            made.append({"at": ["goal_origin"], "value": ORIGIN})
        elif at[0] == "handover" and (at[1:2] == ["last"] or (at[1:2] in (["kept"], ["offers"]) and len(at) > 2)):
            made.append({"at": [*_written(at), "author"], "value": ORIGIN})
        elif at[0] == "active_work" and len(at) > 1:
            made.append({"at": ["active_work", "origin"], "value": ORIGIN})
        elif (item := _item_of(at)) and not _has_no_words(at, change):
            made.append({"at": [*item, "origin"], "value": ORIGIN})
    return made


def _item_of(at: Sequence[str]) -> Sequence[str]:
    """The keys to the item that tells its origin, of a field of it; () of anything else."""
    keys = 3 if (*at[:2],) == ("facts", "requests") else 2 if at[0] in ("decisions", "checkpoint_history") else len(at)
    return at[:keys] if keys < len(at) else ()


def _is_wordless(field: str, value: Any) -> bool:
    """Whether a field of an item has a number, a known status, a time, or labels and nothing else: then its words stay
    whose they were, although another clone has changed it.
    """
    if field == "status":
        return value in _STATUSES
    if field in _SHAPES:
        return _SHAPES[field].fullmatch(str(value)) is not None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return True
    labels = value if isinstance(value, list) else [value]
    return field in ("aliases", "superseded_by", "supersedes") and all(_LABEL.fullmatch(str(one)) for one in labels)
