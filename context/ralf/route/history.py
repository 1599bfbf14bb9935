"""A route's history: its earlier moments, what changed between two of them, and its records in words."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate
from operator import itemgetter
from typing import Any

from ralf import routing
from ralf.brief import wording
from ralf.brief.wording import place, value
from ralf.document import merge
from ralf.document.tree import Tree, from_tree, to_tree
from ralf.errors import NotFound
from ralf.facts.progress import UNSAID
from ralf.model import BODY, Carried, Decision, HandOver, RouteContext
from ralf.project import Project
from ralf.route import fold, shared
from ralf.route.cap import is_bare
from ralf.route.comparing import Told, in_words
from ralf.route.load import load_state
from ralf.storage import journal
from ralf.storage.journal import Record
from ralf.text.cleaning import one_line
from ralf.transcripts.events import read_evidence

# ---- a route at an earlier moment ----


WITH_LABEL = ("checkpoint", "revert")
"""The kinds of records that begin a checkpoint of their own."""


def context_at(route: str, moment: str, *, root: str | os.PathLike[str] | None = None) -> RouteContext:
    """The context of a route right after a checkpoint (`cp-002`, `2`) or a revision (`r12`; `r0`: before the first).

    Raises RouteNotFound, NotFound (no such checkpoint or revision), UsageError (a refused name), DamagedJournal.
    """
    project, found = routing.find(route, root)
    name = label(moment)
    return contexts_at(project, found, [name])[name]


def contexts_at(project: Project, route: str, moments: Collection[str]) -> dict[str, RouteContext]:
    """The contexts of a route at several moments, `cp-002` or `r12`, by one reading of its journal."""
    context = fold.empty(route)
    found = {"r0": context} if "r0" in moments else {}
    for _, record in journal.read(project.store, route):
        if len(found) == len(set(moments)):
            break
        context = fold.apply(context, record)
        names = [f"r{record.revision}"]
        if record.kind in WITH_LABEL and not record.foreign:
            names.append(context.checkpoint_history[-1].checkpoint_id)
        found.update((name, context) for name in names if name in moments)
    for name in moments:
        if name not in found:
            what = "revision" if re.fullmatch("r[0-9]+", name) else "checkpoint"
            raise NotFound(route, f"has no {what} {name}", f"ralf context log {route}")
    return found


def decision_of(project: Project, route: str, label: str) -> Decision | None:
    """The decision of a route that has this label, also when it was folded out of the file; None where none has it.

    Reads the whole journal. Raises DamagedJournal.
    """
    tree: Tree = {}
    for _, record in journal.read(project.store, route):
        tree = decision_after(tree, label, record)
    return from_tree(Decision, tree) if tree else None


def decision_after(tree: Tree, label: str, record: Record) -> Tree:
    """What a record makes of the decision of this label, as a tree; {} before there is one."""
    if record.foreign:
        return tree
    payload = record.payload
    lists = (payload.get("decisions", ()), payload.get("document", {}).get("decisions", ()))
    items = [payload["decision"]] if payload.get("decision") else [item for items in lists for item in items]
    for item in items:
        if str(item.get("id", "")).casefold() == label.casefold():
            tree = {**tree, **item}
        elif tree and item.get("supersedes") == tree["id"] and tree.get("status", "active") == "active":
            tree = {**tree, "status": "superseded", "superseded_by": item.get("id", "")}
    for change in payload.get("amended", ()):
        if tree and change.get("id") == tree["id"]:
            tree = {**tree, **change}
    stones = [payload["tombstone"]] if record.kind == "drop" else payload.get("tombstones", ())
    if tree and any(stone["id"] == tree["id"] for stone in stones):
        tree = {**tree, "status": "dropped"}
    if (
        tree
        and record.kind in (fold.REVERT, fold.UNDO)
        and {"at": ["dropped", tree["id"]], "removed": True} in payload.get("changes", ())
    ):
        tree = {**tree, "status": "active"}  # one that the file has folded, and that was dropped since
    changes = [change for change in payload.get("changes", ()) if change["at"][:1] == ["decisions"]]
    if not changes:
        return tree
    edited = merge.apply({"decisions": [tree] if tree else []}, changes).get("decisions", [])
    now = next((item for item in edited if str(item.get("id", "")).casefold() == label.casefold()), None)
    return now if now is not None else {**tree, "status": "dropped"} if tree else {}


def label(said: str, kind: str = "cp") -> str:
    """A label as it is written, `cp-002`, `DEC-003`, `r12`, for what a person may type of it: `2`, `CP-2`, `dec-3`."""
    if revision := re.fullmatch(r"[rR]0*([0-9]{1,9})", said.strip()):
        return f"r{revision[1]}"
    match = re.fullmatch(r"(?:([A-Za-z]+)-)?0*([0-9]{1,9})", said.strip())
    prefix = (match[1] or kind).lower() if match else ""
    if match is None or prefix not in ("cp", "dec"):
        return said
    return f"{prefix if prefix == 'cp' else 'DEC'}-{int(match[2]):03d}"


def records(project: Project, route: str) -> Iterator[tuple[str, Record]]:
    """Every record of a route, oldest first, with its label; see `with_labels`."""
    return with_labels(record for _, record in journal.read(project.store, route))


def with_labels(records: Iterable[Record]) -> Iterator[tuple[str, Record]]:
    """All records of a route, oldest first, each with the label that the route file gives it; "" for one that is not of
    the kinds `WITH_LABEL`, or foreign.
    """
    count = 0
    for record in records:
        count = counted(count, record)
        yield f"cp-{count:03d}" if record.kind in WITH_LABEL and not record.foreign else "", record


def counted(count: int, record: Record) -> int:
    """The number of a route's checkpoints with one more record."""
    return count + 1 if record.kind == "checkpoint" and not record.foreign else max([count, *numbers(record)])


def checkpoints(project: Project, route: str) -> Iterator[tuple[str, Record]]:
    """Every checkpoint of a segment with its label, oldest first."""
    return ((label, record) for label, record in records(project, route) if label and record.kind == "checkpoint")


def texts_of(project: Project, route: str, session: str) -> Iterator[str]:
    """What the evidence of a route holds of a session, text by text; nothing of what was pruned."""
    for _, record in checkpoints(project, route):
        if record.payload.get("source", {}).get("session") == session:
            with suppress(NotFound):
                yield from (line.text for line in read_evidence(project.store, str(record.payload.get("evidence", ""))))


def undone(project: Project, route: str) -> set[str]:
    """The labels of a route's checkpoints that a revert has taken back, and none has brought back since."""
    known: set[str] = set()
    standing: list[frozenset[str]] = [frozenset()]  # at each revision
    for name, record in records(project, route):
        now = standing[-1]
        if name and record.kind == "revert":
            to = int(record.payload.get("to_revision", 0))
            now = standing[to] if 0 <= to < len(standing) else now
        elif name:
            known.add(name)
            now |= {name}
        standing.append(now)
    return known - standing[-1]


def lines_of(payload: Mapping[str, Any]) -> str:
    """The lines of its session that a checkpoint's record covers, from 1: `12-300`."""
    source = payload.get("source", {})
    return f"{int(source.get('from_line', 0)) + 1}-{source.get('to_line', 0)}"


def numbers(record: Record) -> list[int]:
    """The checkpoint numbers that a record of another kind brings in: those of an imported file, or of an edit. None of
    one that is malformed, which the fold says, or foreign.
    """
    if record.foreign:
        return []
    try:
        return list(_numbers(record))
    except journal.MALFORMED:
        return []


def _numbers(record: Record) -> Iterator[int]:
    if record.kind == "revert":
        yield int(record.payload.get("number", 0))
    document = record.payload.get("document", {})
    yield int(document.get("context_checkpoint", {}).get("checkpoint_count", 0))
    sections = list(document.get(BODY, {}).get("sections", ()))
    for change in record.payload.get("changes", ()):
        if change["at"] == ["context_checkpoint", "checkpoint_count"]:
            yield int(change.get("value", 0))
        elif change["at"][:2] == [BODY, "sections"]:
            value = change.get("value")
            sections += value if isinstance(value, list) else [value]
    yield from (int(section.get("number") or 0) for section in sections if isinstance(section, Mapping))


# ---- what changed between two moments ----


NOW = "now"
"""What a route comes to at present."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed from one moment of a route to another.

    before, after  the two, as they are named: `cp-002`, `r12`, `now`; `from_revision`, `to_revision`: theirs
    words          what a person reads
    changes        what makes the second tree of the first: `merge.apply(tree(before), changes) == tree(after)`
    """

    route: str
    before: str
    after: str
    from_revision: int
    to_revision: int
    words: tuple[Told, ...]
    changes: tuple[merge.Change, ...]


def diff(
    route: str, before: str | None = None, after: str | None = None, *, root: str | os.PathLike[str] | None = None
) -> Difference:
    """What changed in a route from one moment to another.

    before  a checkpoint or revision, as for `history.context_at`; None: the checkpoint before the newest
    after   the same, or `now`, which is None, too: what the route comes to, edits that wait in its file included

    Raises RouteNotFound, NotFound (no such checkpoint or revision), UsageError (a refused name), Damaged.
    """
    project, found = routing.find(route, root)
    before, after = (label(moment) if moment else moment for moment in (before, after))
    if before is None:
        labels = [entry.checkpoint_id for entry in at_present(project, found).checkpoint_history]
        before = labels[-2] if len(labels) > 1 else "r0"
    before, after = before or NOW, after or NOW
    contexts = contexts_at(project, found, {before, after} - {NOW})
    one, other = (at_present(project, found) if moment == NOW else contexts[moment] for moment in (before, after))
    return between(project, found, (before, one), (after, other))


def between(
    project: Project, route: str, before: tuple[str, RouteContext], after: tuple[str, RouteContext]
) -> Difference:
    """What changed from one context to another, each with the name of its moment.

    In words, a decision that the cap has moved out of one of them, or whose details it has, stands as in the journal.
    """
    (one_name, one), (other_name, other) = before, after
    told_one, told_other = one, other
    if one.folded != other.folded:
        told_one, told_other = _whole(project, route, one, other), _whole(project, route, other, one)
    return Difference(
        route=route,
        before=one_name,
        after=other_name,
        from_revision=one.revision,
        to_revision=other.revision,
        words=in_words(told_one, told_other),
        changes=tuple(merge.diff(to_tree(one), to_tree(other))),
    )


def at_present(project: Project, route: str) -> RouteContext:
    """What a route comes to, edits that wait in its file included, and nothing that is foreign."""
    state = load_state(project, route)
    if state is None:
        return fold.empty(route)
    return state.recorded if state.status == "foreign" or state.context.wholly_foreign else state.context


def _whole(project: Project, route: str, context: RouteContext, other: RouteContext) -> RouteContext:
    """A context with the decisions and details that the cap has taken from it and that `other` has."""
    theirs = {item.id for item in other.decisions if not is_bare(item)}
    mine = {item.id: item for item in context.decisions}
    trees: dict[str, Tree] = {name: {} for name in theirs if name not in mine or is_bare(mine[name])}
    for _, record in journal.read(project.store, route) if trees else ():
        if record.revision > context.revision:
            break
        trees = {name: decision_after(tree, name, record) for name, tree in trees.items()}
    told = {name: from_tree(Decision, tree) for name, tree in trees.items() if tree}
    kept = tuple(told.pop(item.id, item) for item in context.decisions)
    return replace(context, decisions=(*told.values(), *kept))


# ---- the log: the records in words ----


_MOST_NAMED = 4  # places of an edit, or decisions of a checkpoint, that are named


@dataclass(frozen=True, slots=True)
class Event:
    """One record of a route.

    kind   checkpoint, refinement, unrefined, decision, edit, drop, forget, revert, import …; shared: by another clone
    id     what it brought or is about: cp-002, DEC-003, "" for nothing that has a label
    time   ISO 8601, "" where the record has none
    who    user, agent, human-edit, import, the name of a model, or of the person whose clone it is
    text   what it brought, on one line
    revision  of the route, 0 where it is another clone's
    foreign  this user's ralf did not write the record: of what stands in it only that is told
    """

    revision: int
    kind: str
    id: str
    time: str
    who: str
    text: str
    foreign: bool = False


def log(
    route: str, *, limit: int | None = None, since: str | None = None, root: str | os.PathLike[str] | None = None
) -> list[Event]:
    """What happened to a route, newest first.

    limit  the newest so many
    since  a time in ISO 8601, UTC: only what has a time and is not older

    Reads the whole journal. Raises RouteNotFound, UsageError (a refused name), DamagedJournal.
    """
    project, found = routing.find(route, root)
    words: dict[str, str] = {}
    with journal.understood(found):
        events = [_event(label, record, words) for label, record in records(project, found)]
    times = accumulate((event.time for event in events), max)  # those of a route's own records stay in their order
    ordered = [*zip(times, events, strict=True), *((event.time, event) for event in _shared(project, found))]
    events = [event for _, event in sorted(ordered, key=itemgetter(0))]
    if since is not None:
        events = [event for event in events if is_since(event.time, since)]
    return events[::-1][:limit]


def is_since(moment: str, since: str) -> bool:
    """Whether a time of a record is not before another, both in ISO 8601; one that is missing or malformed is.
    ValueError where `since` is no time.
    """
    limit = _utc(since)
    with suppress(ValueError):
        return _utc(moment) >= limit
    return False


def _utc(moment: str) -> datetime:
    found = datetime.fromisoformat(moment)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def times_of_items(project: Project, route: str) -> dict[str, str]:
    """When each checkpoint of a route ended, and each decision was made, by their labels; "" where no record says it.

    Reads the whole journal. Raises DamagedJournal.
    """
    found: dict[str, str] = {}
    for name, record in records(project, route):
        if record.foreign:
            continue
        _, time, _, _ = _brought(record.kind, record.payload, name)
        document = record.payload.get("document") or {}
        items = (*record.payload.get("decisions", ()), *document.get("decisions", ()), record.payload.get("decision"))
        for item in filter(None, items):
            found.setdefault(str(item.get("id", "")), str(item.get("timestamp") or time))
        if name:
            found[name] = time
    return found


def _shared(project: Project, route: str) -> Iterator[Event]:
    """What other clones have shared of a route, and this user has accepted."""
    for note in shared.others(project, route)[0]:
        label = next((item.id for item in note.decisions), next(iter(note.dropped), ""))
        yield Event(0, "shared", note.at, label, note.by, "; ".join(shared.lines_of(note)))


def _event(label: str, record: Record, words: dict[str, str]) -> Event:
    """What a record brought; `words`: of each decision so far, by its label, added to."""
    if record.foreign:
        return Event(record.revision, "foreign", "", "", wording.ORIGIN, wording.LABEL, foreign=True)
    id_, time, who, text = _brought(record.kind, record.payload, label)
    if record.kind == "drop":
        text = _joined(words.get(id_, ""), text, by=": ")
    words.update(_decisions(record.payload))
    return Event(record.revision, record.kind, id_, time, who, value(text) if text else "")


def _brought(kind: str, payload: Mapping[str, Any], label: str) -> tuple[str, str, str, str]:
    """The id, time, author and text of an event."""
    time, title, because = (str(payload.get(key, "")) for key in ("timestamp", "title", "because"))
    of_model = (str(payload.get(key, "")) for key in ("refines", "called", "summarizer"))
    match kind:
        case "checkpoint":
            ended = str((*payload.get("period", ()), "", "")[1])
            return label, ended, "agent", _joined(title, _named("decided", payload.get("decisions", ())))
        case "refinement":
            changed = _named("changed", payload.get("amended", ()))
            text = _joined(title, _named("decided", payload.get("decisions", ())), changed)
            return *of_model, f"improved: {text}"  # type: ignore[return-value]
        case "unrefined":
            return *of_model, f"not improved: {payload.get('reason', '')}"  # type: ignore[return-value]
        case "attempt":
            runs = payload.get("attempts") or [{}]
            told = [str(run.get("outcome") or "") or ("" if run.get("said") else UNSAID) for run in runs]
            said = str(runs[0].get("said") or "") if len(runs) == 1 else ""
            return _few([str(run.get("run", "")) for run in runs]), time, "agent", _joined(_few(told), said, by=": ")
        case "decision":
            item = payload.get("decision") or {"decision": "a decision that was there already", "timestamp": time}
            replaces = f" (replaces {item['supersedes']})" if item.get("supersedes") else ""
            label, time, who, text = (str(item.get(key, "")) for key in ("id", "timestamp", "origin", "decision"))
            return label, time, who, text + replaces
        case "handover":
            return _handed_over(payload, time)
        case "edit":
            lost = "what the file still showed of lost records: " if payload.get("lost") else ""
            changed = "; ".join(_places(payload.get("changes", ())))
            return "", time, str(payload.get("origin") or "human-edit"), lost + changed
        case "import":
            document = payload.get("document", {})
            header = document.get("context_checkpoint", {})
            text = f"{len(document.get('decisions', ()))} decisions, {header.get('checkpoint_count', 0)} checkpoints"
            return "", str(header.get("last_checkpoint", "")), "import", text
        case "revert":
            return label, time, "user", title + (f": {because}" if because else "")
        case fold.UNDO:
            which = ", ".join(f"r{number}" for number in payload.get("undoes", ()))
            said = _joined(f"took back {which}", because, by=": ")
            return "", time, str(payload.get("origin", "")), said
        case "rename" | "merge":
            said = f"{kind}d from" if kind == "rename" else "took in"
            names = _few([str(name) for name in payload.get("from", ())])
            return "", time, str(payload.get("origin", "")), _joined(f"{said} {names}", because, by=": ")
        case "pin":
            made = payload.get("pin") or {}
            return (
                "",
                time,
                str(payload.get("origin", "")),
                f"pinned line {made.get('line', 0)}: {made.get('words', '')}",
            )
        case "drop":
            return str(payload.get("tombstone", {}).get("id", "")), time, "user", because
        case "forget":
            ids = _few([str(one) for one in payload.get("ids", ())])
            return ids, time, "user", "its words were purged" if ids else "a text was purged"
        case _:  # there are no words for this kind: what its payload says of itself
            named = payload.get("id") or payload.get("ids") or ""
            ids = _few([str(one) for one in named]) if isinstance(named, list) else str(named)
            return ids, time, str(payload.get("origin", "")), because


def _joined(*parts: str, by: str = "; ") -> str:
    return by.join(filter(None, parts))


def _handed_over(payload: Mapping[str, Any], time: str) -> tuple[str, str, str, str]:
    """The id, time, author and text of a hand-over, or of why a model wrote none."""
    of = _few([str(name) for name in payload.get("checkpoints", ())])
    who = str(payload.get("author") or payload.get("summarizer") or "agent")
    if payload.get("reason"):
        return of, str(payload.get("called") or time), who, f"not handed over: {payload['reason']}"
    if "handover" in payload:
        last = from_tree(Carried, payload["handover"]).last
    else:
        last = from_tree(HandOver, payload.get("moment") or {})
    stands = next(filter(None, (last.now, last.why, "; ".join(last.next))), "") if last is not None else ""
    ended = [*payload.get("ended", ()), *payload.get("amended", ())]
    text = _joined(
        one_line(stands),
        _named("decided", payload.get("decisions", ())),
        _named("with", payload.get("kept", ())),
        _named("ended", ended),
    )
    by = last.author if last is not None and "handover" in payload else who
    return of, time, {"person": "user"}.get(by, by), _joined("handed over", text, by=": ")


_LONGEST = 80  # characters of a value that an edit set


def _places(changes: Any) -> Iterator[str]:
    """What an edit changed, each item or field once, the first few by name."""
    places: dict[str, str] = {}
    for change in changes:
        at = [str(key) for key in change["at"]]
        if "order" not in change and change.get("removed") != "empty":
            done = "added " if len(at) == 2 and at[0] == "decisions" else ""
            said = f": {value(change['value'], _LONGEST)}" if isinstance(change.get("value"), str) else ""
            places.setdefault(f"{place(at)}{said}", "removed " if change.get("removed") else done)
    told = [f"{done}{name}" for name, done in places.items()] or ["order of lists"]
    yield from told[:_MOST_NAMED]
    if len(told) > _MOST_NAMED:
        yield f"and {len(told) - _MOST_NAMED} more"


def _decisions(payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The decisions that a record brings: label and words."""
    document = payload.get("document") or {}
    for item in (*payload.get("decisions", ()), *document.get("decisions", ()), payload.get("decision") or {}):
        if item:
            yield str(item.get("id", "")), str(item.get("decision", ""))


def _named(done: str, items: Iterable[Mapping[str, Any]]) -> str:
    labels = [str(item.get("id", "")) for item in items]
    return f"{done} {_few(labels)}" if labels else ""


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
