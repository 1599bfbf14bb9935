"""A route's history: its earlier moments, what changed between two of them, and its records in words."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from heapq import merge as merged
from operator import attrgetter
from typing import Any

from ralf import routing
from ralf.brief.wording import place, value
from ralf.document import merge
from ralf.document.tree import Tree, to_tree
from ralf.errors import NotFound
from ralf.facts.progress import UNSAID
from ralf.model import BODY, Decision, RouteContext
from ralf.project import Project
from ralf.route import cap, fold, shared
from ralf.route.comparing import Told, in_words
from ralf.route.edits import by_label
from ralf.route.load import load_state
from ralf.storage import journal
from ralf.storage.journal import Record
from ralf.text.cleaning import one_line
from ralf.transcripts.events import read_evidence

# ---- a route at an earlier moment ----


def context_at(route: str, moment: str, *, root: str | os.PathLike[str] | None = None) -> RouteContext:
    """The context of a route right after a checkpoint (`cp-002`, `2`) or a revision (`r12`; `r0`: before the first).

    Raises RouteNotFound, NotFound (no such checkpoint or revision), UsageError (a refused name), DamagedJournal.
    """
    project, found = routing.find(route, root)
    name = label(moment)
    return contexts_at(project, found, [name])[name]


NOW = "now"
"""What a route comes to at present."""


def contexts_at(project: Project, route: str, moments: Collection[str]) -> dict[str, RouteContext]:
    """The contexts of a route at several moments, `cp-002`, `r12` or `NOW`, by one reading of its journal."""
    context, wanted = fold.empty(route), set(moments)
    found = {"r0": context, **({NOW: at_present(project, route)} if NOW in wanted else {})}
    for name, record in records(project, route):
        if wanted <= found.keys():
            break
        context = fold.apply(context, record)
        found |= dict.fromkeys(wanted.intersection(filter(None, (f"r{record.revision}", name))), context)
    for name in wanted - found.keys():
        what = "revision" if re.fullmatch("r[0-9]+", name) else "checkpoint"
        raise NotFound(route, f"has no {what} {name}", f"ralf log {route}")
    return found


def decision_of(project: Project, context: RouteContext, label: str) -> Decision | None:
    """The decision of this label in a route, also one that was folded out of its file, or that another clone shares
    and this user has accepted; None where none has it.

    May read the whole journal. Raises DamagedJournal.
    """
    found = by_label(context.decisions, label)
    if found is None or (cap.is_bare(found) and context.folded.rationale_count):
        ever = decisions_ever(record for _, record in journal.read(project.store, context.route))
        earlier = by_label([*ever.values()], label)
        found = earlier if found is None or earlier is None else _whole(found, earlier)
    return found or shared.decision_of(project, context.route, label)


def decided(records: Iterable[Record]) -> Iterator[tuple[Record, Sequence[Decision]]]:
    """Every record, with the decisions that there are after it, whole: none has left the file."""
    context = fold.empty("")
    for record in records:
        payload = {key: value for key, value in record.payload.items() if key not in _NO_DECISIONS}
        context = fold.apply(context, replace(record, payload=payload), is_capped=False)
        yield record, context.decisions


_NO_DECISIONS = ("facts", "retracted", "active_work", "attempt", "attempts", "text")
"""What a record says beside decisions, and what grows without the cap."""


def decisions_ever(records: Iterable[Record]) -> dict[str, Decision]:
    """Every decision that some records of a route bring, whole, as they leave it, by its label; one that was taken out
    has the status dropped.
    """
    ever, now = dict[str, Decision](), dict[str, Decision]()
    for _, decisions in decided(records):
        now = {item.id: item for item in decisions}
        ever |= now
    return {label: item if label in now else replace(item, status="dropped") for label, item in ever.items()}


def _whole(item: Decision, earlier: Decision) -> Decision:
    """A decision with the details that the cap took from it."""
    if not cap.is_bare(item) or item.decision != earlier.decision:
        return item
    return replace(earlier, status=item.status, supersedes=item.supersedes, superseded_by=item.superseded_by)


def label(text: str, kind: str = "cp") -> str:
    """A label as it is written, `cp-002`, `DEC-003`, `r12`, for what a person may type of it: `2`, `CP-2`, `dec-3`."""
    match = re.fullmatch(r"(?:([A-Za-z]+)-|([rR]))?0*([0-9]{1,9})", text.strip())
    prefix = (match[1] or match[2] or kind).lower() if match else ""
    if match is None or prefix not in ("cp", "dec", "r"):
        return text
    return f"r{match[3]}" if prefix == "r" else f"{prefix if prefix == 'cp' else 'DEC'}-{int(match[3]):03d}"


def records(project: Project, route: str) -> Iterator[tuple[str, Record]]:
    """Every record of a route, oldest first, with its label; see `with_labels`."""
    return with_labels(record for _, record in journal.read(project.store, route))


def with_labels(records: Iterable[Record]) -> Iterator[tuple[str, Record]]:
    """All records of a route, oldest first, each checkpoint with the label that the route file gives it; others, and
    foreign ones, with "".
    """
    count = 0
    for record in records:
        with suppress(*journal.MALFORMED):  # the fold says it
            count = max(count + (record.kind == "checkpoint"), *_numbers(record.payload))
        yield f"cp-{count:03d}" if record.kind == "checkpoint" else "", record


def _numbers(payload: Mapping[str, Any]) -> Iterator[int]:
    """The numbers of checkpoints that a record names: its own, and those of a file that was imported."""
    document = payload.get("document") or {}
    yield int(payload.get("number") or 0)
    yield int(document.get("context_checkpoint", {}).get("checkpoint_count", 0))
    yield from (int(section.get("number") or 0) for section in document.get(BODY, {}).get("sections", ()))


def checkpoints(project: Project, route: str) -> Iterator[tuple[str, Record]]:
    """Every checkpoint with its label, oldest first."""
    return ((label, record) for label, record in records(project, route) if label)


def texts_of(project: Project, route: str, session: str) -> Iterator[str]:
    """What the evidence of a route holds of a session, text by text; nothing of what was pruned."""
    for _, record in checkpoints(project, route):
        if record.payload.get("source", {}).get("session") == session:
            with suppress(NotFound):
                yield from (line.text for line in read_evidence(project.store, str(record.payload.get("evidence", ""))))


def undone(project: Project, route: str) -> frozenset[str]:
    """The labels of a route's checkpoints that a revert has taken back, and none has brought back since."""
    there: list[frozenset[str]] = [frozenset()]  # at each revision
    for name, record in records(project, route):
        is_back = record.kind == fold.REVERT
        there.append(there[int(record.payload.get("to_revision", 0))] if is_back else there[-1] | ({name} - {""}))
    return frozenset().union(*there) - there[-1]


# ---- what changed between two moments ----


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
    before, after = label(before or newest_but_one(project, found)), label(after or NOW)
    contexts = contexts_at(project, found, {before, after})
    return between((before, contexts[before]), (after, contexts[after]))


def newest_but_one(project: Project, route: str) -> str:
    """The moment from which a difference counts where nobody names one: the checkpoint before the newest."""
    gone = undone(project, route)
    return ["r0", "r0", *(name for name, _ in checkpoints(project, route) if name not in gone)][-2]


def between(before: tuple[str, RouteContext], after: tuple[str, RouteContext]) -> Difference:
    """What changed from one context to another, each with the name of its moment; in words nothing of what only the cap
    has moved out of one of them.
    """
    (one_name, one), (other_name, other) = before, after
    return Difference(
        route=one.route,
        before=one_name,
        after=other_name,
        from_revision=one.revision,
        to_revision=other.revision,
        words=in_words(_unfolded(one, other), _unfolded(other, one)),
        changes=tuple(merge.diff(to_tree(one), to_tree(other))),
    )


def at_present(project: Project, route: str) -> RouteContext:
    """What a route comes to, edits that wait in its file included, and nothing that is foreign."""
    state = load_state(project, route)
    return state.own if state is not None else fold.empty(route)


def _unfolded(context: RouteContext, other: RouteContext) -> RouteContext:
    """A context with the decisions and details of `other` that the cap has taken from it since."""
    theirs = {item.id: item for item in other.decisions}
    own = [_whole(item, theirs.get(item.id, item)) for item in context.decisions]
    there = {item.id for item in own} | {stone.id for stone in cap.of(context)}
    is_folded = context.folded.decision_count > other.folded.decision_count
    gone = [item for label, item in theirs.items() if is_folded and label not in there]
    return replace(context, decisions=(*gone, *own))


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
    """

    revision: int
    kind: str
    id: str
    time: str
    who: str
    text: str


def log(
    route: str, *, limit: int | None = None, since: str | None = None, root: str | os.PathLike[str] | None = None
) -> list[Event]:
    """What happened to a route, newest first.

    limit  the newest so many
    since  a time in ISO 8601, UTC: only what has a time and is not older

    Reads the whole journal. Raises RouteNotFound, UsageError (a refused name), DamagedJournal.
    """
    project, found = routing.find(route, root)
    with journal.understood(found):
        own = [event for event, _ in events(project, found)]
    ordered = list(merged(own, _shared(project, found), key=attrgetter("time")))  # each side in its order
    if since is not None:
        ordered = [event for event in ordered if is_since(event.time, since)]
    return ordered[::-1][:limit]


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


def _shared(project: Project, route: str) -> Iterator[Event]:
    """What other clones have shared of a route, and this user has accepted."""
    named = shared.named_in(project, route)
    for note in shared.others(project, route)[0]:
        label = next((item.id for item in note.decisions), next(iter(note.dropped), ""))
        yield Event(0, "shared", label, note.at, note.by, "; ".join(shared.lines_of(note, named)))


def events(project: Project, route: str) -> Iterator[tuple[Event, Record]]:
    """The records of a route in words, oldest first."""
    claims: dict[str, str] = {}  # of each decision so far, by its label
    for name, record in records(project, route):
        payload, kind = record.payload, record.kind
        document, made = payload.get("document") or {}, payload.get("decision") or {}
        about = made or payload.get("tombstone") or {"id": payload.get("refines", "")}
        runs = [run.get("run", "") for run in payload.get("attempts") or ()]
        labels = payload.get("ids") or payload.get("checkpoints") or runs or [about.get("id", "")]
        header = document.get("context_checkpoint", {})
        times = payload.get("called"), payload.get("timestamp"), made.get("timestamp"), header.get("last_checkpoint")
        model = payload.get("summarizer") if kind != "checkpoint" else ""
        who = made.get("origin") or payload.get("origin") or payload.get("author") or model
        texts = [claims.get(about.get("id", ""), "")] if kind == "drop" else []
        texts += [words(payload[key]) for key, words in _WORDS.items() if payload.get(key) and key != _HIDDEN.get(kind)]
        if kind == "edit" and who == "agent" and any(map(_touches_decision, payload.get("changes", ()))):
            texts.append("what a person decided stays")
        for item in (*payload.get("decisions", ()), *document.get("decisions", ()), made):
            claims[str(item.get("id", ""))] = str(item.get("decision", ""))
        event = Event(
            record.revision,
            kind,
            name or _few(labels),
            str(next(filter(None, (*times, *payload.get("period", ())[1:])), "")),
            "user" if who == "person" else str(who or _AUTHORS.get(kind, "agent")),
            value("; ".join(filter(None, texts))) if any(texts) else "",
        )
        yield event, record


_AUTHORS = {"edit": "human-edit", "import": "import", "drop": "user", "forget": "user", fold.REVERT: "user"}
"""Who makes a record of a kind that does not say it; the agent makes all others."""


def _touches_decision(change: merge.Change) -> bool:
    """Whether a change of a file drops a decision or words it otherwise."""
    return change["at"][0] == "decisions" and (len(change["at"]) > 2 or bool(change.get("removed")))


def _claim(item: Tree) -> str:
    return str(item.get("decision", "")) + (f" (replaces {item['supersedes']})" if item.get("supersedes") else "")


def _moment(tree: Tree) -> str:
    """The first thing that a hand-over says."""
    first = next(filter(None, (tree.get("now"), tree.get("why"), "; ".join(tree.get("next", ())))), "")
    return f"handed over: {one_line(str(first))}" if first else "handed over"


def _runs(runs: list[Tree]) -> str:
    ends = [str(run.get("outcome") or "") or ("" if run.get("said") else UNSAID) for run in runs]
    said = str(runs[0].get("said") or "") if len(runs) == 1 else ""
    return ": ".join(filter(None, [_few(ends), said]))


_LONGEST = 80  # characters of a value that an edit set


def _places(changes: Iterable[merge.Change]) -> str:
    """What changed, each item or field once, the first few by name."""
    places: dict[str, str] = {}
    for change in changes:
        at = [str(key) for key in change["at"]]
        if "order" not in change and change.get("removed") != "empty":
            said = f": {value(change['value'], _LONGEST)}" if isinstance(change.get("value"), str) else ""
            added = "added " if len(at) == 2 and at[0] == "decisions" else ""
            places.setdefault(f"{place(at)}{said}", "removed " if change.get("removed") else added)
    return _few([f"{done}{name}" for name, done in places.items()] or ["order of lists"], "; ")


def _named(done: str, items: Iterable[Tree] | int) -> str:
    """What became of items; "" for a number of them, as a forget has it."""
    return "" if isinstance(items, int) else f"{done} {_few([item.get('id', '') for item in items])}"


def _few(names: Collection[Any], by: str = ", ") -> str:
    shown = by.join(str(name) for name in [*names][:_MOST_NAMED])
    return shown + (f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else "")


_WORDS: Mapping[str, Callable[[Any], str]] = {
    "title": str,
    "undoes": lambda revisions: f"took back {_few([f'r{number}' for number in revisions])}",
    "to": lambda moment: f"back to {moment}",
    "from": lambda names: f"from {_few(names)}",
    "decision": _claim,
    "moment": _moment,
    "decisions": partial(_named, "decided"),
    "kept": partial(_named, "with"),
    "ended": partial(_named, "ended"),
    "amended": partial(_named, "ended"),
    "pin": lambda pin: f"pinned line {pin.get('line', 0)}: {pin.get('words', '')}",
    "attempts": _runs,
    "document": lambda tree: (
        f"{len(tree.get('decisions', ()))} decisions, "
        f"{tree.get('context_checkpoint', {}).get('checkpoint_count', 0)} checkpoints"
    ),
    "ids": lambda _: "its words were purged",
    "changes": _places,
    "conflicts": lambda both: f"instead of {_few([value(one['also'][0], _LONGEST) for one in both], '; ')}",
    "reason": lambda reason: f"no hand-over: {reason}",
    "because": str,
}
"""What the fields of a record say, in the order in which a log tells them."""

_HIDDEN = {"checkpoint": "reason", fold.UNDO: "changes", fold.REVERT: "changes"}
"""Why a checkpoint was due; and what came back, which `diff` says."""
