"""What a model's work on a checkpoint makes of a route: pure functions of the records `refinement` and
`unrefined`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ralf import byhand
from ralf.context import RouteContext
from ralf.model import Checkpoint, Decision, Section, Spend
from ralf.text import as_section, one_line

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


def apply(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with a checkpoint improved: its section, decisions that it says otherwise, the active work.

    What the record does not have stays as it is; its new decisions are not looked at here.
    """
    entry = entry_of(context, str(payload.get("refines", "")))
    if entry is not None:
        title = one_line(str(payload.get("title", ""))).removesuffix("(Current)").rstrip()
        number = entry.summary_ref.partition(":")[0]
        changed = replace(
            entry,
            summary_ref=f"{number}: {title}" if title and payload.get("text") else entry.summary_ref,
            refines=entry.refines or entry.summarizer,
            summarizer=str(payload.get("summarizer", "")),
            unrefined="",
            tokens_stored=payload.get("tokens_stored", entry.tokens_stored),
            recall=payload.get("recall", entry.recall),
            spent_tokens=_tokens(payload) + (entry.spent_tokens or 0),
            cost_usd=_cost(payload, entry),
        )
        context = _with_entry(context, entry, changed)
        if payload.get("text"):
            context = _with_section(context, entry, title, str(payload["text"]))
    amended = {str(item.get("id")): item for item in payload.get("amended", ())}
    work: dict[str, Any] = {
        key: tuple(map(str, value)) for key, value in payload.get("active_work", {}).items() if key in WORK
    }
    header = replace(context.context_checkpoint, spend=spent(context.context_checkpoint.spend, payload))
    return replace(
        context,
        context_checkpoint=header,
        decisions=tuple(_amended(item, amended.get(item.id)) for item in context.decisions),
        active_work=byhand.kept(context.active_work, replace(context.active_work, **work)),
    )


def apply_failure(context: RouteContext, payload: Mapping[str, Any]) -> RouteContext:
    """The context with the reason why a checkpoint was not improved, and what the attempt cost."""
    entry = entry_of(context, str(payload.get("refines", "")))
    if entry is not None:
        reason = one_line(str(payload.get("reason", "")))
        cost = _cost(payload, entry)
        tokens = _tokens(payload) + (entry.spent_tokens or 0)
        context = _with_entry(
            context, entry, replace(entry, unrefined=reason, spent_tokens=tokens or None, cost_usd=cost)
        )
    header = replace(context.context_checkpoint, spend=spent(context.context_checkpoint.spend, payload))
    return replace(context, context_checkpoint=header)


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


def _with_section(context: RouteContext, entry: Checkpoint, title: str, text: str) -> RouteContext:
    old = section_of(context, entry)
    if old is None:
        return context
    head, _ = body_of(old)
    new = replace(old, title=title or old.title, text=f"{head}\n\n{as_section(text)}".strip("\n"))
    sections = tuple(new if section is old else section for section in context.body.sections)
    return replace(context, body=replace(context.body, sections=sections))


def _amended(decision: Decision, change: Mapping[str, Any] | None) -> Decision:
    if change is None:
        return decision
    return replace(
        decision,
        status=str(change.get("status", decision.status)),
        rationale=str(change.get("rationale", decision.rationale)),
        alternatives=tuple(map(str, change.get("alternatives", decision.alternatives))),
        supersedes=str(change.get("supersedes", decision.supersedes)),
        superseded_by=str(change.get("superseded_by", decision.superseded_by)),
    )
