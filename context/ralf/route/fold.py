"""The fold: what a route's records come to. Pure functions of records; nothing here reads or writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ralf.brief.changes import settled
from ralf.facts.progress import combine, count_attempt, with_documents, with_run
from ralf.format import merge, spread
from ralf.format.codec import from_tree, shared
from ralf.model import (
    FORMAT_VERSION,
    ActiveWork,
    Checkpoint,
    Decision,
    Facts,
    HandOver,
    RouteContext,
    Section,
    Spend,
    Todo,
    Tombstone,
)
from ralf.route import cap
from ralf.route.cap import capped
from ralf.route.edits import all_labelled, labelled, with_decision, with_header
from ralf.storage.journal import VERSION, Record, digest_of, runs_of, understood
from ralf.text.cleaning import as_section, one_line, trimmed

MAX_COMPLETED_TODOS, MAX_OPEN_TODOS, MAX_TODO_LENGTH = (
    30,
    60,
    400,
)  # the work never folds: so it must not grow without end


MOST_JOINED = 16  # other histories that a file tells it has taken in


def empty(route: str) -> RouteContext:
    """The context of a route without records."""
    return with_header(RouteContext(), version=FORMAT_VERSION, route=route)


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
        context = changed if record.kind == REVERT else settled(context, changed)
    later = record.version > VERSION
    before = context.context_checkpoint
    return with_header(
        context,
        revision=record.revision,
        lineage=lineage(before.lineage, record),
        foreign_records=before.foreign_records + record.foreign,
        later_records=before.later_records + later,
        decision_count=max(
            before.decision_count, record.payload["decision_count"] if later and not record.foreign else 0
        ),
        version=FORMAT_VERSION,
    )


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
    context = _handed_over_within(context, payload)
    began_as = context.began_as or str(payload.get("began_as", ""))
    context = with_goal(context, str(payload.get("goal", "")), str(payload.get("goal_origin", "")))
    context = replace(context, began_as=began_as) if began_as else context
    return replace(
        context,
        context_checkpoint=header,
        active_work=work,
        facts=combine(context.facts, facts),
        checkpoint_history=(*context.checkpoint_history, entry),
        body=replace(context.body, sections=(section, *context.body.sections)),
    )


def _handed_over_within(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context, before a segment counts, with the hand-over that was made in it, unless it has a newer one; of that
    one with the tokens of the segment that it came after.
    """
    before, known = context.context_checkpoint.total_tokens_consumed, context.handover
    made = from_tree(HandOver, payload.get("handover") or {})
    made = replace(made, tokens=before + made.tokens)
    if made and (known is None or not _is_newer(known, made)):
        return replace(context, handover=made)
    covered = int(payload.get("before_handover", 0))
    return replace(context, handover=replace(known, tokens=known.tokens + covered)) if known and covered else context


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
    """The context with what was handed over, and with the decisions that it named."""
    context = _with_decisions(context, payload)
    if not context.context_checkpoint.created:
        context = with_header(context, created=str(payload.get("timestamp", "")))
    handover = from_tree(HandOver, payload.get("handover", {}))
    if not handover:
        return context
    context = with_goal(context, handover.goal, handover.author if handover.author in _BY_HAND else "agent")
    return replace(context, handover=replace(handover, tokens=context.total_tokens_consumed))


def _with_decisions(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    for item in payload.get("decisions", ()):
        context = with_decision(context, from_tree(Decision, item))
    return context


_ENTRY = ("origin", "key_events", "reason", "summarizer", "tokens_stored", "kept", "dropped", "recall", "refines")


def _work(before: ActiveWork, now: ActiveWork) -> ActiveWork:
    """The work after a segment: what it says, and what it cannot know (set by a person or a task) stays."""
    now = cap.kept(before, now)
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
    edited = from_tree(RouteContext, merge.apply(shared(context), payload.get("changes", ())))
    by_person = payload.get("origin", "human-edit") == "human-edit"
    if by_person and edited.goal != context.goal and edited.goal_origin == context.goal_origin:
        edited = replace(edited, goal_origin="human-edit")  # it is the person's now
    if by_person and edited.handover is not None and edited.handover != context.handover:
        edited = replace(edited, handover=_written_by_hand(context, edited.handover, str(payload.get("timestamp", ""))))
    if by_person and "lost" not in payload and edited.active_work is not context.active_work:
        edited = replace(edited, active_work=cap.edited(context.active_work, edited.active_work))
    return _accepted(cap.as_edited(context, all_labelled(_of_no_future(edited))), payload)


def _written_by_hand(before: RouteContext, made: HandOver, time: str) -> HandOver:
    """A hand-over that a person wrote or changed: it is theirs, and of now."""
    author = before.handover.author if before.handover is not None else ""
    tokens = before.total_tokens_consumed
    return replace(made, author="user", timestamp=time, tokens=tokens) if made.author == author else made


def _accepted(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context after a record; one that `accepts` holds what the user has accepted of the foreign ones before it."""
    if not payload.get("accepts"):
        return context
    header = context.context_checkpoint
    joined = dict.fromkeys([*header.joined, *map(str, payload.get("joins", ()))])
    clones = spread.newest([*header.clones, *map(str, payload.get("clones", ()))])
    if clones:  # in the file the labels say the order
        context = replace(context, decisions=tuple(sorted(context.decisions, key=spread.order)))
    return with_header(context, foreign_records=0, joined=tuple(joined)[-MOST_JOINED:], clones=clones)


def _import(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    imported = from_tree(RouteContext, payload.get("document", {}))
    header = imported.context_checkpoint
    # What was spent is told on; what steers whether a model is asked here is not somebody else's to say.
    spend = Spend(header.spend.calls, header.spend.tokens, header.spend.estimated_tokens, header.spend.cost_usd)
    ours = context.context_checkpoint
    counts = {"foreign_records": ours.foreign_records, "later_records": ours.later_records}
    imported = _of_no_future(imported)
    return _accepted(all_labelled(with_header(imported, route=context.route, spend=spend, **counts)), payload)


def _of_no_future(context: RouteContext) -> RouteContext:
    """The context with a hand-over that came after no more work than there is: else it would lead for ever."""
    handover, most = context.handover, context.total_tokens_consumed
    if handover is None or 0 <= handover.tokens <= most:
        return context
    return replace(context, handover=replace(handover, tokens=min(max(0, handover.tokens), most)))


REVERT, UNDO, MERGE = "revert", "undo", "merge"


def next_number(context: RouteContext) -> int:
    """The number of a route's next checkpoint."""
    return max([context.checkpoint_count, *(section.number or 0 for section in context.body.sections)]) + 1


def _undo(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with some of its content put back; nothing that was purged comes back."""
    tree = merge.apply(shared(context), payload.get("changes", ()))
    purged = {stone.get("id") for stone in tree.get("forgotten", ())}
    back = from_tree(RouteContext, tree)
    return replace(back, decisions=tuple(item for item in back.decisions if item.id not in purged))


def _revert(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with its content put back, and a checkpoint of its own that says so."""
    header = context.context_checkpoint
    back = _undo(context, payload)
    number = int(payload.get("number", 0)) or next_number(context)
    title = one_line(str(payload.get("title", "")))
    time = str(payload.get("timestamp", ""))
    entry = Checkpoint(
        checkpoint_id=f"cp-{number:03d}",
        timestamp=time,
        summary_ref=f"### Checkpoint {number}: {title}",
        reason=REVERT,
    )
    head = f"**Time:** {time}\n" if time else ""
    text = as_section(str(payload.get("text", "")))
    section = Section(number=number, title=title, text=f"{head}**Tokens:** 0\n\n{text}".rstrip("\n"))
    return replace(
        back,
        context_checkpoint=replace(header, checkpoint_count=max(header.checkpoint_count, number)),
        checkpoint_history=(*back.checkpoint_history, entry),
        body=replace(back.body, sections=(section, *back.body.sections)),
    )


IN_A_ROW = 3
"""So many failures in a row switch a model off."""


NEWEST = 3
"""So many of a route's newest checkpoints can be owed a model's work: a model that was switched on late, or again,
does not go through the whole history.
"""


WORK = ("next_steps", "blockers", "findings")
"""What of the active work a model may say; the rest of it is taken mechanically."""


_CENTS = 4  # decimals of a US dollar that are kept


def owed(context: RouteContext) -> tuple[str, ...]:
    """The checkpoints that no model has been asked about, newest first."""
    newest = context.checkpoint_history[-NEWEST:]
    open_ = (entry for entry in reversed(newest) if not entry.refines and not entry.unrefined)
    open_ = (entry for entry in open_ if entry is entry_of(context, entry.checkpoint_id))  # by hand, an id can be twice
    return tuple(entry.checkpoint_id for entry in open_ if entry.session)  # without one it came with an old file


def _refinement(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with a checkpoint improved: its title and section, the decisions, the active work, the hand-over.

    What the record does not have stays as it is. `text` takes the place of the section; with `above`, it is what the
    hand-over tells as done, and goes above the section when another hand-over takes that one's place.
    """
    context = _with_decisions(context, payload)
    entry = entry_of(context, str(payload.get("refines", "")))
    if entry is not None:
        title = one_line(str(payload.get("title", ""))).removesuffix("(Current)").rstrip()
        above, text = bool(payload.get("above")), str(payload.get("text", ""))
        number = entry.summary_ref.partition(":")[0]
        changed = replace(
            entry,
            summary_ref=f"{number}: {title}" if title and (text or above) else entry.summary_ref,
            refines=entry.refines or entry.summarizer,
            summarizer=str(payload.get("summarizer", "")),
            unrefined="",
            tokens_stored=payload.get("tokens_stored", entry.tokens_stored),
            recall=payload.get("recall", entry.recall),
            spent_tokens=_tokens(payload) + (entry.spent_tokens or 0),
            cost_usd=_cost(payload, entry),
        )
        context = _with_entry(context, entry, changed)
        if text or (title and above):
            context = _with_section(context, entry, title, "" if above else text, above=above)
        context = _handed_over(context, changed, payload)
    amended: dict[str, dict[str, Any]] = {}
    for item in payload.get("amended", ()):  # one may be reworded, and take another's place
        amended.setdefault(str(item.get("id")), {}).update(item)
    work: dict[str, Any] = {
        key: tuple(map(str, value)) for key, value in payload.get("active_work", {}).items() if key in WORK
    }
    work |= {
        key: tuple(item for item in getattr(context.active_work, key) if item not in closed)
        for key, closed in payload.get("closed", {}).items()
        if key in WORK
    }
    return replace(
        with_header(context, spend=spent(context.context_checkpoint.spend, payload)),
        decisions=tuple(_amended(item, amended.get(item.id)) for item in context.decisions),
        active_work=cap.kept(context.active_work, replace(context.active_work, **work)),
        facts=_fixed(context.facts, payload.get("fixed", ())),
    )


def _handed_over(context: RouteContext, entry: Checkpoint, payload: Mapping[str, Any]) -> RouteContext:
    """The context with the hand-over that a model wrote at a checkpoint, unless it has a newer one."""
    made = from_tree(HandOver, payload.get("handover", {}))
    if not made:
        return context
    later = context.checkpoint_history[context.checkpoint_history.index(entry) + 1 :]
    made = replace(made, tokens=context.total_tokens_consumed - sum(one.tokens for one in later))
    known = context.handover
    if known is not None and (_is_newer(known, made) or _is_still_theirs(known, made)):
        return context
    context = _with_done(context, known, made) if known is not None else context
    return replace(with_goal(context, made.goal, made.author), handover=made)


def _with_done(context: RouteContext, known: HandOver, made: HandOver) -> RouteContext:
    """The context with what a model told as done, and the next hand-over does not, in the section of its checkpoint."""
    of_it = (entry for entry in context.checkpoint_history if entry.refines and entry.timestamp == known.timestamp)
    entry, done = next(of_it, None), [f"- {line}" for line in known.done if line not in made.done]
    if entry is None or entry.summarizer != known.author or not done:
        return context
    return _with_section(context, entry, "", "\n".join(done), above=True)


def _is_still_theirs(known: HandOver, made: HandOver) -> bool:
    """Whether an agent or a person wrote it, who knew the work, and next to nothing came after it."""
    return known.author in ("agent", *_BY_HAND) and made.tokens - known.tokens <= _NEXT_TO_NOTHING


_NEXT_TO_NOTHING = 5_000  # tokens: the last words of a session, a commit


def _is_newer(known: HandOver, made: HandOver) -> bool:
    if known.author in ("agent", *_BY_HAND) and known.timestamp and made.timestamp:
        return known.timestamp > made.timestamp
    return known.tokens > made.tokens


def _fixed(facts: Facts, fixed: Iterable[Mapping[str, Any]]) -> Facts:
    """The facts with errors of which a model said that they are fixed, or none."""
    by = {(str(item.get("error")), str(item.get("command", ""))): str(item.get("fixed_by", "")) for item in fixed}
    if not by:
        return facts
    errors = tuple(
        replace(error, fixed_by=error.fixed_by or by.get((error.error, error.command), "")) for error in facts.errors
    )
    return replace(facts, errors=errors)


def _failure(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with the reason why a checkpoint was not improved, and what the attempt cost."""
    entry = entry_of(context, str(payload.get("refines", "")))
    if entry is not None:
        reason = one_line(str(payload.get("reason", "")))
        tokens = _tokens(payload) + (entry.spent_tokens or 0)
        context = _with_entry(
            context,
            entry,
            replace(entry, unrefined=reason, spent_tokens=tokens or None, cost_usd=_cost(payload, entry)),
        )
    return with_header(context, spend=spent(context.context_checkpoint.spend, payload))


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
    return int(payload.get("input_tokens") or 0) + int(payload.get("output_tokens") or 0)


def _cost(payload: Mapping[str, Any], entry: Checkpoint) -> float | None:
    if payload.get("cost_usd") is None:
        return entry.cost_usd
    return round(float(payload["cost_usd"]) + (entry.cost_usd or 0), _CENTS)


def entry_of(context: RouteContext, checkpoint_id: str) -> Checkpoint | None:
    """A checkpoint's entry, None where the cap has folded it away."""
    return next((entry for entry in context.checkpoint_history if entry.checkpoint_id == checkpoint_id), None)


def _with_entry(context: RouteContext, old: Checkpoint, new: Checkpoint) -> RouteContext:
    return replace(
        context, checkpoint_history=tuple(new if entry is old else entry for entry in context.checkpoint_history)
    )


def section_of(context: RouteContext, checkpoint: Checkpoint) -> Section | None:
    """A checkpoint's section, None where the cap has folded it away."""
    number = checkpoint.checkpoint_id.removeprefix("cp-")
    found = (section for section in context.body.sections if number.isdecimal() and section.number == int(number))
    return next(found, None)


def body_of(section: Section) -> tuple[str, str]:
    """A section's first lines, which say its period and size, and what follows."""
    head, gap, text = section.text.partition("\n\n")
    return (head, text) if gap and head.startswith("**") else ("", section.text)


def _with_section(
    context: RouteContext, entry: Checkpoint, title: str, text: str, *, above: bool = False
) -> RouteContext:
    old = section_of(context, entry)
    if old is None:
        return context
    head, body = body_of(old)
    if above:
        text = f"{text}\n{body}".strip("\n")
    new = replace(old, title=title or old.title, text=f"{head}\n\n{as_section(text)}".strip("\n"))
    sections = tuple(new if section is old else section for section in context.body.sections)
    return replace(context, body=replace(context.body, sections=sections))


def _amended(decision: Decision, change: Mapping[str, Any] | None) -> Decision:
    if change is None:
        return decision
    return replace(
        decision,
        decision=str(change.get("decision", decision.decision)),
        status=str(change.get("status", decision.status)),
        rationale=str(change.get("rationale", decision.rationale)),
        alternatives=tuple(map(str, change.get("alternatives", decision.alternatives))),
        supersedes=str(change.get("supersedes", decision.supersedes)),
        superseded_by=str(change.get("superseded_by", decision.superseded_by)),
    )


_KINDS: dict[str, Callable[[RouteContext, Mapping[str, Any]], RouteContext]] = {
    "checkpoint": _checkpoint,
    "refinement": _refinement,
    "unrefined": _failure,
    "attempt": _attempt,
    "handover": _handover,
    "decision": _decision,
    "drop": _drop,
    "forget": _forget,
    "edit": _edit,
    "import": _import,
    "repair": _edit,
    REVERT: _revert,
    UNDO: _undo,
    MERGE: _undo,
}
