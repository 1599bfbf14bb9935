"""The heart: what a route's records come to. Pure functions of records; nothing here reads or writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ralf import byhand, merge, places, tombstones, unresolved
from ralf.cap import capped
from ralf.context import FORMAT_VERSION, RouteContext
from ralf.extraction import attempts
from ralf.extraction.combining import combine
from ralf.journal import VERSION, Record, digest_of, runs_of, understood
from ralf.labels import LINKS, all_labelled, distinct, labelled, said, with_decision
from ralf.model import ActiveWork, Checkpoint, Decision, Facts, Section, Spend, Todo, Tombstone
from ralf.past import reversion
from ralf.refining import refinement
from ralf.text import as_section, one_line
from ralf.tree import Tree, from_tree, shared, to_tree
from ralf.trim import trimmed

MAX_COMPLETED_TODOS, MAX_OPEN_TODOS, MAX_TODO_LENGTH = (
    30,
    60,
    400,
)  # the work never folds: so it must not grow without end
MOST_JOINED = 16  # other histories that a file tells it has taken in
_BOOKKEEPING = frozenset(
    {"version", "route", "revision", "lineage", "foreign_records", "joined", "later_records", "spend"}
)
"""What an edit of the header cannot change."""


def empty(route: str) -> RouteContext:
    """The context of a route without records."""
    context = RouteContext()
    return replace(context, context_checkpoint=replace(context.context_checkpoint, version=FORMAT_VERSION, route=route))


_BASE = 256  # records from one base to the next


def has_base(before: int, revision: int) -> bool:
    """Whether the file that shows a revision is kept, so that a fold may begin there; `before`: the one shown last."""
    return revision // _BASE > before // _BASE


def fold(records: Iterable[Record], start: RouteContext) -> RouteContext:
    """What `records`, oldest first, make of `start`; a fold may be broken off and taken up at any record."""
    context = start
    for record in records:
        context = apply(context, record)
    return context


def apply(context: RouteContext, record: Record) -> RouteContext:
    """What one more record makes of a context. One that is foreign, or of an unknown kind or later format, only
    advances the revision.

    DamagedJournal for one whose payload is not what its kind holds: no writer of ours has made it.
    """
    with understood(context.route, record):
        return capped(_changed(context, record))


def _changed(context: RouteContext, record: Record) -> RouteContext:
    change = _KINDS.get(record.kind)
    if change is not None and not record.foreign:
        changed = change(context, labelled(context, record.kind, record.payload))
        context = changed if record.kind == reversion.KIND else unresolved.settled(context, changed)
    later = record.version > VERSION
    before = context.context_checkpoint
    header = replace(
        before,
        revision=record.revision,
        lineage=lineage(before.lineage, record),
        foreign_records=before.foreign_records + record.foreign,
        later_records=before.later_records + later,
        decision_count=max(
            before.decision_count, record.payload["decision_count"] if later and not record.foreign else 0
        ),
        version=FORMAT_VERSION,
    )
    return replace(context, context_checkpoint=header)


def lineage(before: str, record: Record) -> str:
    """The name of a history: a hash of the one before and the record. It depends on nothing but the records.

    Of a payload only its digest counts, so that words can be taken out of it and the name stays. Records of version 1
    have none: there it is the payload itself, and one that was purged names its history.
    """
    if record.lineage:
        return record.lineage
    if record.version == 1:
        told = json.dumps(record.payload, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    else:
        told = record.digest or digest_of(record.payload)
    text = "\0".join((before, record.kind.partition("/")[0], told)).encode("utf-8", "surrogatepass")
    return f"r{record.revision}-{hashlib.sha256(text).hexdigest()[:12]}"


# ---- the kinds of records ----


def _checkpoint(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    header = context.context_checkpoint
    number = reversion.next_number(context)
    tokens = int(payload.get("tokens", 0))
    period = [one_line(str(time)) for time in payload.get("period", ("", ""))]
    for item in payload.get("decisions", ()):
        context = with_decision(context, from_tree(Decision, item))
    title = one_line(str(payload.get("title", ""))).removesuffix("(Current)").rstrip()
    entry = from_tree(Checkpoint, {key: payload[key] for key in _ENTRY if key in payload})
    source = payload.get("source", {})
    entry = replace(
        entry,
        checkpoint_id=f"cp-{number:03d}",
        timestamp=period[1],
        tokens=tokens,
        summary_ref=f"### Checkpoint {number}" + (f": {title}" if title else ""),
        session=str(source.get("session", "")),
        lines=f"{int(source.get('from_line', 0)) + 1}-{source.get('to_line', 0)}" if source else "",
    )
    dates = f"**Period:** {period[0]} → {period[1]}\n" if any(period) else ""
    head = f"{dates}**Tokens:** {tokens:,}\n"
    section = Section(
        number=number, title=title, text=f"{head}\n{as_section(str(payload.get('text', '')))}".rstrip("\n")
    )
    header = replace(
        context.context_checkpoint,
        agent_type=header.agent_type or str(payload.get("agent_type", "")),
        created=header.created or period[0],
        last_checkpoint=period[1] or header.last_checkpoint,
        checkpoint_count=number,
        tokens_at_checkpoint=tokens,
        total_tokens_consumed=header.total_tokens_consumed + tokens,
    )
    facts = from_tree(Facts, payload.get("facts", {}))
    work = _work(context.active_work, from_tree(ActiveWork, payload.get("active_work", {})))
    if payload.get("attempt"):
        work = attempts.with_run(work, payload["attempt"], context.checkpoint_history, context.facts, facts)
    elif "notes" in source:
        work = attempts.with_documents(work, context.checkpoint_history)
    else:
        work = attempts.counted(work, entry.session, context.checkpoint_history, context.facts, facts)
    return replace(
        context,
        context_checkpoint=header,
        goal=context.goal or str(payload.get("goal", "")),
        goal_origin=context.goal_origin if context.goal else str(payload.get("goal_origin", "")),
        active_work=work,
        facts=combine(context.facts, facts),
        checkpoint_history=(*context.checkpoint_history, entry),
        body=replace(context.body, sections=(section, *context.body.sections)),
    )


_ENTRY = ("origin", "key_events", "reason", "summarizer", "tokens_stored", "kept", "dropped", "recall", "refines")


def _work(before: ActiveWork, now: ActiveWork) -> ActiveWork:
    """The work after a segment: what it says, and what it cannot know (set by a person or a task) stays."""
    now = byhand.kept(before, now)
    done = [todo for todo in now.todos if todo.status == "completed"]
    still = [todo for todo in now.todos if todo.status != "completed"]
    forgotten = set(map(id, [*done[:-MAX_COMPLETED_TODOS], *still[MAX_OPEN_TODOS:]]))
    return replace(
        now,
        todos=tuple(_short(todo) for todo in now.todos if id(todo) not in forgotten),
        next_steps=now.next_steps[:MAX_OPEN_TODOS],
        current_task=now.current_task or before.current_task,
        task_title=now.task_title or before.task_title,
        attempts=now.attempts if now.attempts is not None else before.attempts,
        last_progress=now.last_progress if now.last_progress is not None else before.last_progress,
        outcome=now.outcome or before.outcome,
        last_runs=before.last_runs,
        extra={**before.extra, **now.extra},
    )


def _short(todo: Todo) -> Todo:
    return (
        replace(todo, content=trimmed(todo.content, MAX_TODO_LENGTH)) if len(todo.content) > MAX_TODO_LENGTH else todo
    )


def _attempt(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """Runs that wrote nothing, or of which more is known now."""
    work = context.active_work
    for run in runs_of(payload):
        work = attempts.with_run(work, run, context.checkpoint_history, context.facts, Facts())
    return replace(context, active_work=work)


def _decision(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    if not payload.get("decision"):
        return context  # said before
    decision = from_tree(Decision, payload["decision"])
    if not context.context_checkpoint.created:
        header = replace(context.context_checkpoint, created=decision.timestamp)
        context = replace(context, context_checkpoint=header)
    return with_decision(tombstones.raised(context, decision), decision)


def _drop(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    return tombstones.dropped(context, from_tree(Tombstone, payload.get("tombstone", {})))


def _forget(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    return tombstones.forgotten(context, [from_tree(Tombstone, tree) for tree in payload.get("tombstones", ())])


def _edit(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    edited = from_tree(RouteContext, merge.apply(shared(context), payload.get("changes", ())))
    by_person = payload.get("origin", "human-edit") == "human-edit"
    if by_person and edited.goal != context.goal and edited.goal_origin == context.goal_origin:
        edited = replace(edited, goal_origin="")  # it is the person's now
    if by_person and "lost" not in payload and edited.active_work is not context.active_work:
        edited = replace(edited, active_work=byhand.edited(context.active_work, edited.active_work))
    return _accepted(tombstones.as_edited(context, all_labelled(edited)), payload)


def _accepted(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context after a record; one that `accepts` holds what the user has accepted of the foreign ones before it."""
    if not payload.get("accepts"):
        return context
    header = context.context_checkpoint
    joined = dict.fromkeys([*header.joined, *map(str, payload.get("joins", ()))])
    header = replace(header, foreign_records=0, joined=tuple(joined)[-MOST_JOINED:])
    return replace(context, context_checkpoint=header)


def _import(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    imported = from_tree(RouteContext, payload.get("document", {}))
    header = imported.context_checkpoint
    # What was spent is told on; what steers whether a model is asked here is not somebody else's to say.
    spend = Spend(header.spend.calls, header.spend.tokens, header.spend.estimated_tokens, header.spend.cost_usd)
    ours = context.context_checkpoint
    header = replace(header, route=context.route, spend=spend)
    header = replace(header, foreign_records=ours.foreign_records, later_records=ours.later_records)
    return _accepted(all_labelled(replace(imported, context_checkpoint=header)), payload)


def _refinement(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    for item in payload.get("decisions", ()):
        context = with_decision(context, from_tree(Decision, item))
    return refinement.apply(context, payload)


_KINDS: dict[str, Callable[[RouteContext, Mapping[str, Any]], RouteContext]] = {
    "checkpoint": _checkpoint,
    "refinement": _refinement,
    "unrefined": refinement.apply_failure,
    "attempt": _attempt,
    "decision": _decision,
    "drop": _drop,
    "forget": _forget,
    "edit": _edit,
    "import": _import,
    "repair": _edit,
    "revert": reversion.apply,
}


# ---- hand edits ----


def changes_of_edit(
    base: RouteContext,
    theirs: RouteContext,
    newest: RouteContext | None = None,
    is_known: Callable[[merge.Change], bool] = lambda _: False,
) -> list[merge.Change]:
    """What a person changed in a route file that was rendered from `base`; the bookkeeping of the header is ours.

    newest    what the route has come to since; a decision that they added gets a label that it uses for no other, and
              what it says already (a writer took it in, and died before the file showed that) is no change. What both
              changed is told under `unresolved`, too
    is_known  whether a change was taken in before: then it is none, whatever became of it
    """
    edited: Tree = shared(_unclashing(base, theirs, newest or base))
    original = shared(base)
    for key in (*_BOOKKEEPING, "decision_count"):
        for tree in (edited, original):
            tree.get("context_checkpoint", {}).pop(key, None)
    changes = merge.diff(original, edited)
    if newest is None:
        return changes
    now = shared(newest)
    changes = [change for change in merge.open_changes(changes, now) if not is_known(change)]
    return changes + unresolved.of_edit(original, now, changes)


def _unclashing(base: RouteContext, theirs: RouteContext, newest: RouteContext) -> RouteContext:
    """`theirs`, all labelled: added decisions get another label where theirs stands for another, and keep it where it
    is the same one that was taken in before. What they linked to a label is linked to what it has become.
    """
    before = {item.id: item for item in base.decisions}
    since = {item.id: item for item in newest.decisions if item.id not in before}
    same = {said(item): item for item in since.values()}
    theirs = replace(theirs, decisions=tuple(distinct(theirs.decisions, before)))
    decisions = []
    for item in theirs.decisions:
        if not item.id or item.id in since:
            known = same.get(said(item))
            item = replace(item, id=known.id, origin=item.origin or known.origin) if known else replace(item, id="")
        decisions.append(item)
    count = max(theirs.context_checkpoint.decision_count, newest.context_checkpoint.decision_count)
    header = replace(theirs.context_checkpoint, decision_count=count)
    made = all_labelled(replace(theirs, context_checkpoint=header, decisions=tuple(decisions)))
    pairs = zip(theirs.decisions, made.decisions, strict=True)
    labels = {old.id: new.id for old, new in pairs if old.id and old.id != new.id}
    return replace(made, decisions=tuple(_relinked(item, labels, before.get(item.id)) for item in made.decisions))


def _relinked(item: Decision, labels: Mapping[str, str], was: Decision | None) -> Decision:
    links: dict[str, Any] = {
        key: labels[link] for key in LINKS if (link := getattr(item, key)) in labels and link != getattr(was, key, "")
    }
    return replace(item, **links) if links else item


def changes_of_foreign(ours: RouteContext, theirs: RouteContext, *, same: bool = False) -> list[merge.Change]:
    """What a route file of another history adds to `ours`: what it lacks or says otherwise changes nothing.

    Decisions that we do not have get labels of our own, and a section whose number we use for another loses it.

    same  whether it is the same history, of which we have lost a part: then labels that are free stay what they were
    """
    known = {said(item) for item in ours.decisions}
    taken = {item.id for item in ours.decisions}
    decisions = tuple(
        item if same and item.id not in taken else replace(item, id="")
        for item in theirs.decisions
        if said(item) not in known and not tombstones.cover(tombstones.of(ours), item)
    )
    numbers = {section.number: section.text for section in ours.body.sections}
    sections = []
    for section in theirs.body.sections:
        if section.number in numbers and numbers[section.number] != section.text:
            title = f"Checkpoint {section.number} of another history: {section.title}".rstrip(": ")
            section = replace(section, number=None, title=title)
        sections.append(section)
    header = ours.context_checkpoint
    kept = {key: getattr(header, key) for key in _BOOKKEEPING}
    count = max(header.decision_count, theirs.context_checkpoint.decision_count)
    added = replace(
        theirs,
        context_checkpoint=replace(theirs.context_checkpoint, **kept, decision_count=count),
        decisions=decisions,
        folded=replace(theirs.folded, tombstone_count=ours.folded.tombstone_count),
        body=replace(theirs.body, sections=tuple(sections)),
    )
    tree = to_tree(ours)
    changes = merge.diff(tree, to_tree(all_labelled(added)))
    return [change for change in changes if "value" in change and not places.holds(tree, change["at"])]
