"""The heart: what a route's records come to. Pure functions of records; nothing here reads or writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ralf import merge
from ralf.cap import capped
from ralf.context import FORMAT_VERSION, RouteContext
from ralf.facts import combine
from ralf.journal import Record
from ralf.model import ActiveWork, Checkpoint, Decision, Facts, Section
from ralf.text import one_line
from ralf.tree import Tree, from_tree, to_tree

MAX_COMPLETED_TODOS = 30
_LABEL = re.compile(r"DEC-[0-9]{1,9}\Z")
_BOOKKEEPING = frozenset({"version", "route", "revision"})  # what an edit of the header cannot change


def empty(route: str) -> RouteContext:
    """The context of a route without records."""
    context = RouteContext()
    return replace(context, context_checkpoint=replace(context.context_checkpoint, version=FORMAT_VERSION, route=route))


def fold(records: Iterable[Record], start: RouteContext, *, cap: bool = True) -> RouteContext:
    """What `records`, oldest first, make of `start`; a fold may be broken off and taken up at any record.

    cap  False: nothing is folded away, whatever the size
    """
    context = start
    for record in records:
        context = apply(context, record, cap=cap)
    return context


def apply(context: RouteContext, record: Record, *, cap: bool = True) -> RouteContext:
    """What one more record makes of a context. A record of an unknown kind advances the revision, no more."""
    change = _KINDS.get(record.kind)
    if change is not None:
        context = change(context, labelled(context, record.kind, record.payload))
    header = replace(context.context_checkpoint, revision=record.revision, version=FORMAT_VERSION)
    context = replace(context, context_checkpoint=header)
    return capped(context) if cap else context


# ---- the kinds of records ----


def _checkpoint(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    header = context.context_checkpoint
    number = max([header.checkpoint_count, *(section.number or 0 for section in context.body.sections)]) + 1
    tokens = int(payload.get("tokens", 0))
    period = [str(time) for time in payload.get("period", ("", ""))]
    for item in payload.get("decisions", ()):
        context = _with_decision(context, from_tree(Decision, item))
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
    head = f"**Period:** {period[0]} → {period[1]}\n**Tokens:** {tokens:,}\n"
    section = Section(number=number, title=title, text=f"{head}\n{payload.get('text', '')}".rstrip("\n"))
    header = replace(
        context.context_checkpoint,
        agent_type=header.agent_type or str(payload.get("agent_type", "")),
        created=header.created or period[0],
        last_checkpoint=period[1] or header.last_checkpoint,
        checkpoint_count=number,
        tokens_at_checkpoint=tokens,
        total_tokens_consumed=header.total_tokens_consumed + tokens,
    )
    return replace(
        context,
        context_checkpoint=header,
        goal=context.goal or str(payload.get("goal", "")),
        active_work=_work(context.active_work, from_tree(ActiveWork, payload.get("active_work", {}))),
        facts=combine(context.facts, from_tree(Facts, payload.get("facts", {}))),
        checkpoint_history=(*context.checkpoint_history, entry),
        body=replace(context.body, sections=(section, *context.body.sections)),
    )


_ENTRY = ("key_events", "reason", "summarizer", "tokens_stored", "kept", "dropped", "recall", "refines")


def _work(before: ActiveWork, now: ActiveWork) -> ActiveWork:
    """The work after a segment: what it says, and what it cannot know (set by a person or a task) stays."""
    done = [todo for todo in now.todos if todo.status == "completed"]
    forgotten = set(map(id, done[:-MAX_COMPLETED_TODOS]))
    return replace(
        now,
        todos=tuple(todo for todo in now.todos if id(todo) not in forgotten),
        current_task=now.current_task or before.current_task,
        task_title=now.task_title or before.task_title,
        attempts=now.attempts if now.attempts is not None else before.attempts,
        outcome=now.outcome or before.outcome,
        extra={**before.extra, **now.extra},
    )


def _decision(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    if not payload.get("decision"):
        return context  # said before
    decision = from_tree(Decision, payload["decision"])
    if not context.context_checkpoint.created:
        header = replace(context.context_checkpoint, created=decision.timestamp)
        context = replace(context, context_checkpoint=header)
    return _with_decision(context, decision)


def _edit(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    tree = merge.apply(to_tree(context), payload.get("changes", ()))
    return _labelled(from_tree(RouteContext, tree))


def _import(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    imported = from_tree(RouteContext, payload.get("document", {}))
    header = replace(imported.context_checkpoint, route=context.route)
    return _labelled(replace(imported, context_checkpoint=header))


_KINDS: dict[str, Callable[[RouteContext, Mapping[str, Any]], RouteContext]] = {
    "checkpoint": _checkpoint,
    "decision": _decision,
    "edit": _edit,
    "import": _import,
}


# ---- decisions ----


def labelled(context: RouteContext, kind: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """The payload of a record that is about to be appended to `context`, its new decisions with their labels.

    One that is already active in the same words is left out, unless it replaces another. The labels stand in the record, so
    that whoever reads it, and however much has been folded away, calls them the same.
    """
    if kind not in ("checkpoint", "decision"):
        return payload
    items = [payload.get("decision", {})] if kind == "decision" else payload.get("decisions", ())
    active = {_said(known) for known in context.decisions if known.status == "active"}
    count = context.context_checkpoint.decision_count
    taken = {known.id for known in context.decisions}
    made = []
    for item in items:
        if item.get("id"):
            made.append(item)
            continue
        decision = from_tree(Decision, item)
        if _said(decision) in active and not decision.supersedes:
            continue
        count += 1
        while f"DEC-{count:03d}" in taken:  # an imported file may have used it
            count += 1
        active.add(_said(decision))
        made.append({**item, "id": f"DEC-{count:03d}"})
    return {**payload, "decision": made[0] if made else {}} if kind == "decision" else {**payload, "decisions": made}


def _said(decision: Decision) -> str:
    return one_line(decision.decision).casefold()


def _with_decision(context: RouteContext, decision: Decision) -> RouteContext:
    """The context with one more decision, and what it replaces or says again marked as superseded."""
    said = _said(decision)

    def now(known: Decision) -> Decision:
        replaced = known.status == "active" and (known.id == decision.supersedes or _said(known) == said)
        return replace(known, status="superseded", superseded_by=decision.id) if replaced else known

    header = context.context_checkpoint
    number = int(decision.id[4:]) if _LABEL.match(decision.id) else 0
    header = replace(header, decision_count=max(header.decision_count, number))
    return replace(context, context_checkpoint=header, decisions=(*map(now, context.decisions), decision))


def _labelled(context: RouteContext) -> RouteContext:
    """The context with a label for every decision, also for those that a person wrote without one."""
    numbers = [int(item.id[4:]) for item in context.decisions if _LABEL.match(item.id)]
    count = max([context.context_checkpoint.decision_count, *numbers])
    decisions = []
    for item in context.decisions:
        if not item.id:
            count += 1
            item = replace(item, id=f"DEC-{count:03d}", origin=item.origin or "human-edit")
        decisions.append(item)
    header = replace(context.context_checkpoint, decision_count=count)
    return replace(context, context_checkpoint=header, decisions=tuple(decisions))


# ---- hand edits ----


def changes_of_edit(base: RouteContext, theirs: RouteContext, newest: RouteContext | None = None) -> list[merge.Change]:
    """What a person changed in a route file that was rendered from `base`; the bookkeeping of the header is ours.

    newest  what the route has come to since; a decision that they added gets a label that it uses for no other
    """
    edited: Tree = to_tree(_labelled(_unclashing(base, theirs, newest or base)))
    original = to_tree(base)
    for key in (*_BOOKKEEPING, "decision_count"):
        for tree in (edited, original):
            tree.get("context_checkpoint", {}).pop(key, None)
    return merge.diff(original, edited)


def _unclashing(base: RouteContext, theirs: RouteContext, newest: RouteContext) -> RouteContext:
    """`theirs`, with the labels of added decisions taken off where they stand for another, and kept where it is the
    same one that was taken in before.
    """
    before = {item.id for item in base.decisions}
    since = {item.id: item for item in newest.decisions if item.id not in before}
    same = {one_line(item.decision).casefold(): item for item in since.values()}
    decisions = []
    for item in theirs.decisions:
        if not item.id or item.id in since:
            known = same.get(one_line(item.decision).casefold())
            item = replace(item, id=known.id, origin=item.origin or known.origin) if known else replace(item, id="")
        decisions.append(item)
    count = max(theirs.context_checkpoint.decision_count, newest.context_checkpoint.decision_count)
    header = replace(theirs.context_checkpoint, decision_count=count)
    return replace(theirs, context_checkpoint=header, decisions=tuple(decisions))
