"""The fold: what a route's records come to. Pure functions of records; nothing here reads or writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ralf.document import merge
from ralf.document.tree import from_tree, to_tree
from ralf.facts.progress import combine, count_attempt, with_documents, with_run
from ralf.model import (
    FORMAT_VERSION,
    LAYOUT,
    ActiveWork,
    Carried,
    Checkpoint,
    Decision,
    Facts,
    HandOver,
    Kept,
    Pin,
    RouteContext,
    Section,
    Spend,
    Tombstone,
)
from ralf.model.handover import KEPT, MOST_IN_FILE, Author, Ended, number_of
from ralf.model.items import EXTRACTED
from ralf.route import cap
from ralf.route.closing import CLOSED, KEEPS_CLOSED
from ralf.route.edits import all_labelled, labelled, with_decision, with_header
from ralf.route.entries import REVERT as REVERT
from ralf.route.sections import without
from ralf.storage.journal import VERSION, Record, runs_of, understood
from ralf.talk.answer import next_id
from ralf.text.cleaning import as_section, one_line, trimmed

MAX_COMPLETED_TODOS, MAX_OPEN_TODOS, MAX_TODO_LENGTH = 30, 60, 400  # what never folds must not grow without end


def empty(route: str) -> RouteContext:
    """The context of a route without records."""
    return with_header(RouteContext(), version=FORMAT_VERSION, route=route)


def fold(records: Iterable[Record], start: RouteContext) -> RouteContext:
    """What `records`, oldest first, make of `start`; a fold may be broken off and taken up at any record."""
    context = start
    for record in records:
        context = apply(context, record)
    return context


def apply(context: RouteContext, record: Record) -> RouteContext:
    """What one more record makes of a context. One of an unknown kind or later format only advances the
    revision.

    DamagedJournal for one whose payload is not what its kind holds: no writer of ours has made it.
    """
    with understood(context.route, record):
        return cap.within(context, _changed(context, record), record.payload)


def _changed(context: RouteContext, record: Record) -> RouteContext:
    change = _KINDS.get(record.kind)
    if change is not None:
        changed = change(context, labelled(context, record.kind, record.payload))
        was_closed = context.active_work.work_status == CLOSED and record.kind not in KEEPS_CLOSED
        context = changed
        if was_closed and context.active_work.work_status == CLOSED:
            context = replace(context, active_work=replace(context.active_work, work_status=""))
    later = record.version > VERSION
    before = context.context_checkpoint
    return with_header(
        context,
        revision=record.revision,
        mark=_stamp(before.mark, record),
        later_records=before.later_records + later,
        decision_count=max(before.decision_count, record.payload["decision_count"] if later else 0),
        version=FORMAT_VERSION,
    )


def _stamp(before: str, record: Record) -> str:
    """The stamp of the file that shows a record: its revision, the layout, and the route's own mark."""
    mark = before.rpartition(".")[2] or record.mark
    return f"{record.revision}.{LAYOUT}.{mark}" if mark else ""


def _checkpoint(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    header = context.context_checkpoint
    number = next_number(context)
    tokens = int(payload.get("tokens", 0))
    period = [one_line(str(time)) for time in payload.get("period", ("", ""))]
    context = _with_decisions(context, payload)
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
        work = with_run(work, payload["attempt"], context.checkpoint_history, context.facts, facts)
    elif "notes" in source:
        work = with_documents(work, context.checkpoint_history)
    else:
        work = count_attempt(work, entry.session, context.checkpoint_history, context.facts, facts)
    began_as = context.began_as or str(payload.get("began_as", ""))
    context = with_goal(context, str(payload.get("goal", "")), str(payload.get("goal_origin", "")))
    context = replace(context, began_as=began_as) if began_as else context
    return replace(
        context,
        context_checkpoint=header,
        active_work=work,
        facts=combine(context.facts, facts, from_tree(Facts, payload.get("retracted", {}))),
        checkpoint_history=(*context.checkpoint_history, entry),
        body=replace(context.body, sections=(section, *without(context.body.sections, payload.get("taken_back", ())))),
    )


def with_goal(context: RouteContext, goal: str, origin: str) -> RouteContext:
    """The context with what the work is about now; what it was about first stays known. A goal that a person has set
    gives way to a person's alone.
    """
    is_theirs = context.goal_origin in _BY_HAND and origin not in _BY_HAND
    if not goal or goal == context.goal or is_theirs:
        return context
    return replace(context, goal=goal, goal_origin=origin, began_as=context.began_as or context.goal)


_BY_HAND = ("human-edit", "user")


def _handover(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with what was handed over: the moment, new entries and decisions, and what is ended.

    What a model was asked for says which checkpoints it was shown, what it cost, and why nothing came of it.
    """
    context = _with_decisions(context, payload)
    if not context.context_checkpoint.created:
        context = with_header(context, created=str(payload.get("timestamp", "")))
    amended = {str(item.get("id")): item for item in payload.get("amended", ())}
    context = _asked(
        replace(context, decisions=tuple(_amended(item, amended.get(item.id)) for item in context.decisions)), payload
    )
    before = context.handover
    over = {str(item.get("id")) for item in payload.get("ended", ())}
    entries = [*(from_tree(Kept, tree) for tree in payload.get("kept", ()))]
    entries += [entry for entry in before.kept if entry.id not in over and entry.id not in {one.id for one in entries}]
    newest = {kind: [one for one in entries if one.kind == kind][:most] for kind, most in MOST_IN_FILE.items()}
    offers = [from_tree(Kept, tree) for tree in payload.get("offers", ())]
    after = Carried(
        last=from_tree(HandOver, payload["moment"]) if "moment" in payload else before.last,
        kept=tuple(entry for entry in entries if entry in newest.get(entry.kind, ())),
        offers=tuple([*offers, *before.offers][:MOST_OFFERS]),
        numbers=_numbers(before.numbers, entries),
        extra=before.extra,
    )
    return replace(context, handover=after)


def _numbers(before: Sequence[str], entries: Iterable[Kept]) -> tuple[str, ...]:
    """The highest id of each kind that was ever given."""
    numbers: dict[str, str] = {}
    for id_ in filter(None, (*before, *(entry.id for entry in entries))):
        head = id_.partition("-")[0]
        numbers[head] = max(numbers.get(head, ""), id_, key=number_of)
    return tuple(sorted(numbers.values()))


MOST_OFFERS = 20
"""Offers to the memory that a route has, the newest; harvested they are the memory's."""


def _asked(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with what became of asking a model about some checkpoints, and what it cost."""
    names = [str(name) for name in payload.get("checkpoints", ())]
    reason = one_line(str(payload.get("reason", "")))
    for name in names:
        entry = entry_of(context, name)
        if entry is None:
            continue
        changed = replace(
            entry,
            refines=entry.refines or ("" if reason else entry.summarizer),
            summarizer=entry.summarizer if reason else str(payload.get("summarizer", "")),
            unrefined=reason,
            settled=entry.settled or bool(payload.get("settled")),
        )
        if name == names[-1]:
            cost = None if payload.get("cost_usd") is None else float(payload["cost_usd"]) + (entry.cost_usd or 0)
            tokens = (_tokens(payload) + (entry.spent_tokens or 0)) or None
            changed = replace(
                changed, spent_tokens=tokens, cost_usd=entry.cost_usd if cost is None else round(cost, _CENTS)
            )
        entries = tuple(changed if one is entry else one for one in context.checkpoint_history)
        context = replace(context, checkpoint_history=entries)
    return with_header(context, spend=spent(context.context_checkpoint.spend, payload)) if names else context


def _with_decisions(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with the decisions of a record. What rules of earlier versions read out of prose is nobody's, and
    changes nothing that somebody recorded.
    """
    by_rules = "entries" not in payload and payload.get("summarizer") == "extractive"
    for item in payload.get("decisions", ()):
        made = from_tree(Decision, item)
        if by_rules and made.origin in ("user", "agent"):
            recorded = {known.id for known in context.decisions if known.origin != EXTRACTED}
            if made.id in recorded:
                continue
            made = replace(made, origin=EXTRACTED, supersedes="" if made.supersedes in recorded else made.supersedes)
        context = with_decision(context, made)
    return context


_ENTRY = ("origin", "key_events", "reason", "summarizer", "tokens_stored", "refines")


def _work(before: ActiveWork, now: ActiveWork) -> ActiveWork:
    """The work after a segment: what it says, and what it cannot know (set by a person or a task) stays."""
    now = cap.kept(before, now)
    done = [todo for todo in now.todos if todo.status == "completed"]
    still = [todo for todo in now.todos if todo.status != "completed"]
    forgotten = set(map(id, [*done[:-MAX_COMPLETED_TODOS], *still[MAX_OPEN_TODOS:]]))
    return replace(
        now,
        todos=tuple(
            replace(todo, content=trimmed(todo.content, MAX_TODO_LENGTH))
            for todo in now.todos
            if id(todo) not in forgotten
        ),
        next_steps=now.next_steps[:MAX_OPEN_TODOS],
        current_task=now.current_task or before.current_task,
        task_title=now.task_title or before.task_title,
        attempts=now.attempts if now.attempts is not None else before.attempts,
        last_progress=now.last_progress if now.last_progress is not None else before.last_progress,
        outcome=now.outcome or before.outcome,
        last_runs=before.last_runs,
        extra={**before.extra, **now.extra},
    )


def _attempt(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """Runs that wrote nothing, or of which more is known now."""
    work = context.active_work
    for run in runs_of(payload):
        work = with_run(work, run, context.checkpoint_history, context.facts, Facts())
    return replace(context, active_work=work)


def _decision(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    if not payload.get("decision"):
        return context  # said before
    decision = from_tree(Decision, payload["decision"])
    if not context.context_checkpoint.created:
        context = with_header(context, created=decision.timestamp)
    return with_decision(cap.raised(context, decision), decision)


def _drop(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    return cap.dropped(context, from_tree(Tombstone, payload.get("tombstone", {})))


def _forget(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    return cap.forgotten(context, [from_tree(Tombstone, tree) for tree in payload.get("tombstones", ())])


def _edit(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    changes = [one for one in payload.get("changes", ()) if one["at"][:1] != ["unresolved"]]  # of earlier versions
    edited = from_tree(RouteContext, merge.apply(to_tree(context), changes))
    by = str(payload.get("origin", "human-edit"))
    is_here = by in ("human-edit", "agent")
    if is_here and edited.goal != context.goal and edited.goal_origin == context.goal_origin:
        edited = replace(edited, goal_origin=by)  # it is theirs now
    if edited.handover != context.handover:
        at = str(payload.get("timestamp", "")) if is_here else None
        author: Author = "agent" if by == "agent" else "file"
        edited = replace(edited, handover=_written_by_hand(context.handover, edited.handover, at, author))
    if is_here and edited.decisions != context.decisions:
        edited = replace(edited, decisions=_worded_by_hand(context.decisions, edited.decisions, by))
    if is_here and "lost" not in payload and edited.active_work is not context.active_work:
        edited = replace(edited, active_work=cap.edited(context.active_work, edited.active_work))
    return cap.as_edited(context, all_labelled(edited))


def _written_by_hand(before: Carried, after: Carried, at: str | None, author: Author) -> Carried:
    """What is handed over after an edit of the file: an entry that it added has an id.

    at  when the edit was made here: what it changed or added is the author's; None where somebody else made it
    """
    known = {entry.id: entry for entry in before.kept}
    kept = list[Kept]()
    for entry in reversed(after.kept):
        if not entry.id and entry.kind in KEPT:
            ids = [*after.numbers, *(one.id for one in (*after.kept, *kept))]
            entry = replace(entry, id=next_id(KEPT[entry.kind], ids))
        is_same = at is None or known.get(entry.id) == entry
        kept.append(entry if is_same else replace(entry, author=author, model="", at=at or entry.at))
    last = after.last
    if at is not None and last is not None and last != before.last:
        last = replace(last, author=author, model="", at=at or last.at)
    return replace(after, last=last, kept=tuple(reversed(kept)), numbers=_numbers(after.numbers, kept))


def _worded_by_hand(before: Sequence[Decision], after: Sequence[Decision], by: str) -> tuple[Decision, ...]:
    """Decisions after an edit of the file: one that it words otherwise is of who edited it, and no model ends it."""
    known = {item.id: item for item in before}
    made = list[Decision]()
    for item in after:
        was = known.get(item.id)
        is_other = was is not None and was.origin == item.origin in _AUTHORS and _worded(was) != _worded(item)
        made.append(replace(item, origin=by, model="") if is_other else item)
    return tuple(made)


_AUTHORS = ("user", "answer", "agent", "model")
"""Origins that say whose words a decision has."""


def _worded(item: Decision) -> tuple[object, ...]:
    return item.kind, item.decision, item.rationale, item.alternatives


def _import(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    imported = from_tree(RouteContext, payload.get("document", {}))
    header = imported.context_checkpoint
    # What was spent is told on; what steers whether a model is asked here is not somebody else's to say.
    spend = Spend(header.spend.calls, header.spend.tokens, header.spend.estimated_tokens, header.spend.cost_usd)
    later = context.context_checkpoint.later_records
    return all_labelled(with_header(imported, route=context.route, spend=spend, later_records=later))


UNDO, MERGE = "undo", "merge"


def next_number(context: RouteContext) -> int:
    """The number of a route's next checkpoint."""
    return max([context.checkpoint_count, *(section.number or 0 for section in context.body.sections)]) + 1


def _undo(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with some of its content put back; nothing that was purged comes back."""
    tree = merge.apply(to_tree(context), payload.get("changes", ()))
    purged = {stone.get("id") for stone in tree.get("forgotten", ())}
    back = from_tree(RouteContext, tree)
    return replace(back, decisions=tuple(item for item in back.decisions if item.id not in purged))


def _revert(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with its content put back; no number of a checkpoint is given twice, also where an earlier version
    gave one to the revert.
    """
    count = max(context.checkpoint_count, int(payload.get("number", 0)))
    return with_header(_undo(context, payload), checkpoint_count=count)


IN_A_ROW = 3
"""So many failures in a row switch a model off."""


NEWEST = 3
"""So many of a route's newest checkpoints can be owed a model's work: a model that was switched on late, or again,
does not go through the whole history.
"""


_CENTS = 4  # decimals of a US dollar that are kept


def owed(context: RouteContext) -> tuple[str, ...]:
    """The newest checkpoints that no model has handed over, oldest first; () where a model was asked about the newest.

    One whose evidence is settled is passed over: it is asked about no more.
    """
    newest = context.checkpoint_history[-NEWEST:]
    if not newest or newest[-1].unrefined:
        return ()
    found: list[str] = []
    for entry in reversed(newest):
        is_known = entry is entry_of(context, entry.checkpoint_id)  # by hand, an id can be twice
        if entry.refines or not entry.session or not is_known:  # without a session it came with an old file
            break
        if not entry.settled:
            found.insert(0, entry.checkpoint_id)
    return tuple(found)


def spent(before: Spend, payload: Mapping[str, Any]) -> Spend:
    """What has been spent after one more call, or one more refusal to make it (`called` is then empty)."""
    when = str(payload.get("called", ""))
    if not when:
        return before
    reason = one_line(str(payload.get("reason", "")))
    tokens, cost = _tokens(payload), float(payload.get("cost_usd") or 0)
    estimated = tokens if payload.get("estimated") else 0
    day = max(when[:10], before.day)  # a clock that was put back gives nothing back
    same = day == before.day
    who = str(payload.get("summarizer", ""))
    failed = before.failed if who == before.summarizer else ()
    return replace(
        before,
        calls=before.calls + 1,
        tokens=before.tokens + tokens - estimated,
        estimated_tokens=before.estimated_tokens + estimated,
        cost_usd=round(before.cost_usd + cost, _CENTS),
        day=day,
        day_tokens=tokens + (before.day_tokens if same else 0),
        day_cost_usd=round(cost + (before.day_cost_usd if same else 0), _CENTS),
        summarizer=who,
        succeeded=before.succeeded if reason else when,
        failed=(*failed, when)[-IN_A_ROW:] if reason else (),
        failure=reason,
    )


def _tokens(payload: Mapping[str, Any]) -> int:
    return sum(int(payload.get(key) or 0) for key in ("input_tokens", "output_tokens"))


def _refinement(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with what a model of an earlier version made of a checkpoint: its decisions, and its section."""
    model = str(payload.get("model") or payload.get("summarizer") or "")
    decisions = [{**item, "origin": "model", "model": model} for item in payload.get("decisions", ())]
    context = _with_decisions(context, {"decisions": decisions})
    entry, text = entry_of(context, str(payload.get("refines", ""))), as_section(str(payload.get("text", "")))
    section = section_of(context, entry) if entry is not None else None
    if entry is None or section is None or not text or payload.get("above"):
        return context
    title = one_line(str(payload.get("title", ""))).removesuffix("(Current)").rstrip()
    head = section.text.partition("\n\n")[0]
    made = replace(section, title=title or section.title, text=f"{head}\n\n{text}".rstrip("\n"))
    named = replace(entry, summary_ref=f"### Checkpoint {section.number}" + (f": {made.title}" if made.title else ""))
    history = tuple(named if one is entry else one for one in context.checkpoint_history)
    sections = tuple(made if one is section else one for one in context.body.sections)
    return replace(context, checkpoint_history=history, body=replace(context.body, sections=sections))


def section_of(context: RouteContext, entry: Checkpoint) -> Section | None:
    """The section of a checkpoint, None where it is folded away or was renamed by hand."""
    return next((one for one in context.body.sections if entry.checkpoint_id == f"cp-{one.number or 0:03d}"), None)


def entry_of(context: RouteContext, checkpoint_id: str) -> Checkpoint | None:
    """A checkpoint's entry, None where the cap has folded it away."""
    return next((entry for entry in context.checkpoint_history if entry.checkpoint_id == checkpoint_id), None)


def _amended(decision: Decision, change: Mapping[str, Any] | None) -> Decision:
    """A decision that a hand-over has ended: another took its place, or it was taken back."""
    if change is None or decision.status != "active":
        return decision
    by = str(change.get("superseded_by", ""))
    ended = from_tree(Ended, change.get("ended", {}))
    return replace(
        decision, status="superseded" if by else "reversed", superseded_by=by or decision.superseded_by, ended=ended
    )


_KINDS: dict[str, Callable[[RouteContext, Mapping[str, Any]], RouteContext]] = {
    "checkpoint": _checkpoint,
    "attempt": _attempt,
    "handover": _handover,
    "decision": _decision,
    "drop": _drop,
    "pin": lambda context, payload: context.with_pin(from_tree(Pin, payload.get("pin", {}))),
    "forget": _forget,
    "edit": _edit,
    "import": _import,
    "refinement": _refinement,
    "repair": _edit,
    REVERT: _revert,
    UNDO: _undo,
    MERGE: _undo,
}
