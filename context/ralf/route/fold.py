"""The fold: what a route's records come to. Pure functions of records; nothing here reads or writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from ralf.document import merge
from ralf.document.tree import from_tree, to_tree
from ralf.model import (
    FORMAT_VERSION,
    LAYOUT,
    ActiveWork,
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
from ralf.model.handover import KEPT, MOST_IN_FILE, Author, Ended, next_id, number_of
from ralf.model.items import EXTRACTED, OF_A_PERSON
from ralf.route import cap
from ralf.route.closing import CLOSED, KEEPS_CLOSED
from ralf.route.edits import BY_AGENT, BY_HAND, all_labelled, labelled, with_decision, with_header
from ralf.route.entries import REVERT as REVERT
from ralf.route.sections import without
from ralf.storage.journal import VERSION, Record, runs_of, understood
from ralf.text.cleaning import as_section, one_line, trimmed
from ralf.text.frozen import replace

MAX_COMPLETED_TODOS, MAX_OPEN_TODOS, MAX_TODO_LENGTH = 30, 60, 400  # what never folds must not grow without end


def empty(route: str) -> RouteContext:
    """The context of a route without records."""
    return with_header(RouteContext(), version=FORMAT_VERSION, route=route)


def apply(context: RouteContext, record: Record, *, is_capped: bool = True) -> RouteContext:
    """What one more record makes of a context. One of an unknown kind or later format only advances the
    revision.

    is_capped  whether what does not fit into the file leaves the context

    DamagedJournal for one whose payload is not what its kind holds: no writer of ours has made it.
    """
    with understood(context.route, record):
        made = _changed(context, record)
        return cap.within(context, made, record.payload) if is_capped else made


def _changed(context: RouteContext, record: Record) -> RouteContext:
    before, later, was = context.context_checkpoint, record.version > VERSION, context.active_work.work_status
    mark = before.mark.rpartition(".")[2] or record.mark
    if record.kind in _KINDS:
        context = _KINDS[record.kind](context, labelled(context, record.kind, record.payload))
        if was == CLOSED == context.active_work.work_status and record.kind not in KEEPS_CLOSED:
            context = replace(context, active_work=replace(context.active_work, work_status=""))
    return with_header(
        context,
        revision=record.revision,
        mark=f"{record.revision}.{LAYOUT}.{mark}" if mark else "",
        decision_count=max(context.context_checkpoint.decision_count, record.payload["decision_count"] if later else 0),
        version=FORMAT_VERSION,
    )


def _checkpoint(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    from ralf.facts.progress import combine, count_attempt, with_documents, with_run  # a decision needs none of it

    context = _with_decisions(context, payload)
    header, source = context.context_checkpoint, payload.get("source", {})
    number, tokens = int(payload.get("number") or next_number(context)), int(payload.get("tokens", 0))
    begin, end = (one_line(str(time)) for time in payload.get("period", ("", "")))
    title = _title(payload)
    entry = replace(
        from_tree(Checkpoint, {key: payload[key] for key in _ENTRY if key in payload}),
        checkpoint_id=f"cp-{number:03d}",
        timestamp=end,
        tokens=tokens,
        summary_ref=f"### Checkpoint {number}" + (f": {title}" if title else ""),
        session=str(source.get("session", "")),
        lines=f"{int(source.get('from_line', 0)) + 1}-{source.get('to_line', 0)}" if source else "",
    )
    head = (f"**Period:** {begin} → {end}\n" if begin or end else "") + f"**Tokens:** {tokens:,}"
    section = Section(number=number, title=title, text=_text(head, payload))
    facts = from_tree(Facts, payload.get("facts", {}))
    work = _work(context.active_work, from_tree(ActiveWork, payload.get("active_work", {})))
    if payload.get("attempt"):
        work = with_run(work, payload["attempt"], context.checkpoint_history, context.facts, facts)
    elif "notes" in source:
        work = with_documents(work, context.checkpoint_history)
    else:
        work = count_attempt(work, entry.session, context.checkpoint_history, context.facts, facts)
    return replace(
        _with_goal(context, payload),
        context_checkpoint=replace(
            header,
            agent_type=header.agent_type or str(payload.get("agent_type", "")),
            created=header.created or begin,
            last_checkpoint=end or header.last_checkpoint,
            checkpoint_count=number,
            tokens_at_checkpoint=tokens,
            total_tokens_consumed=header.total_tokens_consumed + tokens,
        ),
        active_work=work,
        facts=combine(context.facts, facts, from_tree(Facts, payload.get("retracted", {}))),
        checkpoint_history=(*context.checkpoint_history, entry),
        body=replace(context.body, sections=(section, *without(context.body.sections, payload.get("taken_back", ())))),
    )


def _title(payload: Mapping[str, Any]) -> str:
    return one_line(str(payload.get("title", ""))).removesuffix("(Current)").rstrip()


def _text(head: str, payload: Mapping[str, Any]) -> str:
    """The text of a section: its first lines, and what a record says."""
    return f"{head}\n\n{as_section(str(payload.get('text', '')))}".rstrip("\n")


def _with_goal(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with what the work is about now; what it was about first stays known. A goal that a person has set
    gives way to a person's alone.
    """
    goal, origin = str(payload.get("goal", "")), str(payload.get("goal_origin", ""))
    context = replace(context, began_as=context.began_as or str(payload.get("began_as", "")))
    if not goal or goal == context.goal or (context.goal_origin in _BY_PERSON and origin not in _BY_PERSON):
        return context
    return replace(context, goal=goal, goal_origin=origin, began_as=context.began_as or context.goal)


_BY_PERSON = (BY_HAND, "user")


def _handover(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with what was handed over: the moment, new entries and decisions, and what is ended.

    What a model was asked for says which checkpoints it was shown, what it cost, and why nothing came of it.
    """
    context = _asked(_with_decisions(context, payload), payload)
    if not context.context_checkpoint.created:
        context = with_header(context, created=str(payload.get("timestamp", "")))
    amended = {str(item.get("id")): item for item in payload.get("amended", ())}
    before, over = context.handover, {str(item.get("id")) for item in payload.get("ended", ())}
    entries = [from_tree(Kept, tree) for tree in payload.get("kept", ())]
    over |= {entry.id for entry in entries}
    entries += [entry for entry in before.kept if entry.id not in over]
    newest = {kind: [one for one in entries if one.kind == kind][:most] for kind, most in MOST_IN_FILE.items()}
    offers = [from_tree(Kept, tree) for tree in payload.get("offers", ())]
    after = replace(
        before,
        last=from_tree(HandOver, payload["moment"]) if "moment" in payload else before.last,
        kept=tuple(entry for entry in entries if entry in newest.get(entry.kind, ())),
        offers=tuple([*offers, *before.offers][:MOST_OFFERS]),
        numbers=_numbers(before.numbers, entries),
    )
    decisions = tuple(_amended(item, amended.get(item.id)) for item in context.decisions)
    return replace(context, handover=after, decisions=decisions)


def _amended(decision: Decision, change: Mapping[str, Any] | None) -> Decision:
    """A decision that a hand-over has ended: another took its place, or it was taken back."""
    if change is None or decision.status != "active":
        return decision
    by, ended = str(change.get("superseded_by", "")), from_tree(Ended, change.get("ended", {}))
    status = "superseded" if by else "reversed"
    return replace(decision, status=status, superseded_by=by or decision.superseded_by, ended=ended)


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
    names, reason = payload.get("checkpoints", ()), one_line(str(payload.get("reason", "")))
    if not names:
        return context
    history = []
    for entry in context.checkpoint_history:
        if entry.checkpoint_id in names:
            entry = replace(
                entry,
                refines=entry.refines or ("" if reason else entry.summarizer),
                summarizer=entry.summarizer if reason else str(payload.get("summarizer", "")),
                unrefined=reason,
                settled=entry.settled or bool(payload.get("settled")),
            )
        if entry.checkpoint_id == names[-1]:
            costs = [one for one in (payload.get("cost_usd"), entry.cost_usd) if one is not None]
            tokens = _tokens(payload) + (entry.spent_tokens or 0)
            entry = replace(
                entry, spent_tokens=tokens or None, cost_usd=round(sum(map(float, costs)), _CENTS) if costs else None
            )
        history.append(entry)
    spend = spent(context.context_checkpoint.spend, payload)
    return with_header(replace(context, checkpoint_history=tuple(history)), spend=spend)


def _with_decisions(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with the decisions of a record. What rules of earlier versions read out of prose is nobody's, and
    changes nothing that somebody recorded.
    """
    by_rules = "entries" not in payload and payload.get("summarizer") == "extractive"
    for item in payload.get("decisions", ()):
        made = from_tree(Decision, item)
        if by_rules and made.origin in ("user", "agent"):
            made = replace(made, origin=EXTRACTED, supersedes="")
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
    from ralf.facts.progress import with_run

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


def _edit(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    changes = [one for one in payload.get("changes", ()) if one["at"][:1] != ["unresolved"]]  # of earlier versions
    edited = all_labelled(from_tree(RouteContext, merge.apply(to_tree(context), changes)))
    kept: list[Kept] = []
    for entry in reversed(edited.handover.kept):
        if not entry.id and entry.kind in KEPT:
            ids = [*edited.handover.numbers, *(one.id for one in (*edited.handover.kept, *kept))]
            entry = replace(entry, id=next_id(KEPT[entry.kind], ids))
        kept.insert(0, entry)
    numbers = _numbers(edited.handover.numbers, kept)
    edited = replace(edited, handover=replace(edited.handover, kept=tuple(kept), numbers=numbers))
    by = payload.get("origin", BY_HAND)
    if by in (BY_HAND, BY_AGENT) and "lost" not in payload:
        edited = _signed(context, edited, by, str(payload.get("timestamp", "")))
    edited = _persons_kept(context, edited) if by == BY_AGENT else edited
    return cap.as_edited(context, edited)


def _signed(before: RouteContext, after: RouteContext, by: str, at: str) -> RouteContext:
    """A context after an edit of the file: what was added or worded otherwise is of who edited it, and no model ends
    it. What an agent writes is the agent's, whatever origin it writes beside it.
    """
    author: Author = "agent" if by == BY_AGENT else "file"
    entries = [before.handover.last, *before.handover.kept, *before.handover.offers]
    items, handed = {item.id: item for item in before.decisions}, after.handover

    def signed(entry: Any) -> Any:
        return entry if entry in entries else replace(entry, author=author, model="", at=at or entry.at)

    def whose(item: Decision) -> Decision:
        was = items.get(item.id)
        if was is not None and _worded(was) == _worded(item):
            return replace(item, origin=was.origin) if by == BY_AGENT else item
        is_theirs = was.origin == item.origin in _AUTHORS if was is not None else item.origin == BY_HAND
        return replace(item, origin=by, model="") if is_theirs or by == BY_AGENT else item

    is_goal = after.goal != before.goal and after.goal_origin == before.goal_origin
    kept, offers = (tuple(map(signed, some)) for some in (handed.kept, handed.offers))
    return replace(
        after,
        goal_origin=by if is_goal else after.goal_origin,
        handover=replace(handed, last=signed(handed.last), kept=kept, offers=offers),
        decisions=tuple(map(whose, after.decisions)),
        active_work=cap.edited(before.active_work, after.active_work),
    )


def _persons_kept(before: RouteContext, after: RouteContext) -> RouteContext:
    """A context after an agent's edit of the file, with what a person decided as it was: an agent changes and drops
    none of it, and replaces none.
    """
    theirs = {item.id: item for item in before.decisions if item.origin in OF_A_PERSON}
    edited, known = {item.id: item for item in after.decisions}, {item.id for item in before.decisions}
    decisions = [found for item in before.decisions if (found := theirs.get(item.id) or edited.get(item.id))]
    new = (item for item in after.decisions if item.id not in known)
    decisions += [replace(item, supersedes="") if item.supersedes in theirs else item for item in new]
    own = {entry.id: entry for entry in before.handover.kept if entry.author in ("person", "file")}
    there = {entry.id: entry for entry in after.handover.kept}
    kept = [entry for id_ in {**there, **own} if (entry := own.get(id_) or there.get(id_)) is not None]
    is_persons_goal = before.goal_origin in OF_A_PERSON
    return replace(
        after,
        goal=before.goal if is_persons_goal else after.goal,
        goal_origin=before.goal_origin if is_persons_goal else after.goal_origin,
        decisions=tuple(decisions),
        handover=replace(after.handover, kept=tuple(kept)),
        pinned=(*(pin for pin in before.pinned if pin.origin == "user" and pin not in after.pinned), *after.pinned),
    )


_AUTHORS = ("user", "answer", "agent", "model")
"""Origins that say whose words a decision has."""


def _worded(item: Decision) -> tuple[object, ...]:
    return item.kind, item.decision, item.rationale, item.alternatives


def _import(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    imported = from_tree(RouteContext, payload.get("document", {}))
    header = imported.context_checkpoint
    # What was spent is told on; what steers whether a model is asked here is not somebody else's to say.
    spend = Spend(header.spend.calls, header.spend.tokens, header.spend.estimated_tokens, header.spend.cost_usd)
    return all_labelled(with_header(imported, route=context.route, spend=spend))


UNDO = "undo"


def next_number(context: RouteContext) -> int:
    """The number of a route's next checkpoint."""
    return max([context.checkpoint_count, *(section.number or 0 for section in context.body.sections)]) + 1


def _undo(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with some of its content put back; nothing that was purged comes back, and no number of a checkpoint
    is given twice, also where an earlier version gave one to a revert.
    """
    back = from_tree(RouteContext, merge.apply(to_tree(context), payload.get("changes", ())))
    count = max(context.checkpoint_count, back.checkpoint_count, int(payload.get("number", 0)))
    purged = {stone.id for stone in back.forgotten}
    decisions = tuple(item for item in back.decisions if item.id not in purged)
    return with_header(replace(back, decisions=decisions), checkpoint_count=count)


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
    is_asked = not newest or bool(newest[-1].unrefined)
    found = takewhile(lambda entry: entry.session and not entry.refines, () if is_asked else reversed(newest))
    return tuple(entry.checkpoint_id for entry in found if not entry.settled)[::-1]


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
    if not payload.get("text") or payload.get("above"):
        return context

    def refined(one: Section) -> Section:
        head = one.text.partition("\n\n")[0]
        is_it = f"cp-{one.number or 0:03d}" == payload.get("refines")
        return replace(one, title=_title(payload) or one.title, text=_text(head, payload)) if is_it else one

    return replace(context, body=replace(context.body, sections=tuple(map(refined, context.body.sections))))


_KINDS: dict[str, Callable[[RouteContext, Mapping[str, Any]], RouteContext]] = {
    "checkpoint": _checkpoint,
    "attempt": _attempt,
    "handover": _handover,
    "decision": _decision,
    "drop": lambda context, payload: cap.dropped(context, from_tree(Tombstone, payload.get("tombstone", {}))),
    "pin": lambda context, payload: context.with_pin(from_tree(Pin, payload.get("pin", {}))),
    "forget": lambda context, payload: cap.forgotten(
        context, [from_tree(Tombstone, tree) for tree in payload.get("tombstones", ())]
    ),
    "edit": _edit,
    "import": _import,
    "refinement": _refinement,
    "repair": _edit,
    REVERT: _undo,
    UNDO: _undo,
    "merge": _undo,  # of earlier versions, and so are a refinement and a repair
}
