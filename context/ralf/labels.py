"""The labels of a route's decisions, and what one decision does to another. Pure, like the fold that uses it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ralf.context import RouteContext
from ralf.model import MOST_SOURCES, Decision, Tombstone
from ralf.remembered import Remembered
from ralf.text import one_line
from ralf.tree import from_tree

_LABEL = re.compile(r"DEC-[0-9]{1,9}\Z")
LINKS = ("supersedes", "superseded_by")


def labelled(context: RouteContext, kind: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """The payload of a record that is about to be appended to `context`, its new decisions with their labels.

    One that is active already in the same words is no new one: it goes by the label that it has, and is left out where
    it tells nothing that is not known. One that was dropped is left out; only a record of a decision, which a person
    makes, brings it back. `#n`, the nth decision of the list, becomes that one's label in `supersedes` and
    `superseded_by`. The labels stand in the record, so that whoever reads it, and however much has been folded away,
    calls them the same.
    """
    if kind not in ("checkpoint", "refinement", "decision"):
        return payload
    items = [payload.get("decision", {})] if kind == "decision" else payload.get("decisions", ())
    active: dict[str, list[Decision]] = {}
    taken: set[str] = set()
    if not all(item.get("id") for item in items):  # else they have been labelled, and nothing need be looked up
        for decision in context.decisions:
            if decision.status == "active":
                active.setdefault(said(decision), []).append(decision)
        taken = {known.id for known in context.decisions}
    count = context.context_checkpoint.decision_count
    made = []
    labels: dict[str, str] = {}  # `#n` to label
    stones = context.dropped + context.forgotten if kind != "decision" else ()
    for number, item in enumerate(items, start=1):
        if stones and _is_buried(stones, item):
            labels[f"#{number}"] = ""
            continue
        if not item.get("id"):
            decision = from_tree(Decision, item)
            alike = active.get(said(decision), [])
            known = next((one for one in reversed(alike) if _is_one(one, decision)), None)
            if known is None or decision.supersedes == known.id or decision.status != "active":
                count += 1
                while f"DEC-{count:03d}" in taken:  # an imported file may have used it
                    count += 1
                item = {**item, "id": f"DEC-{count:03d}"}
                if decision.status == "active":
                    active.setdefault(said(decision), []).append(replace(decision, id=item["id"]))
            else:
                item = {**item, "id": known.id}
                news = _told_again(known, from_tree(Decision, item))
                if news == known:
                    labels[f"#{number}"] = known.id
                    continue
                alike[alike.index(known)] = news
        labels[f"#{number}"] = item["id"]
        made.append(item)
    made = [_linked(item, labels) for item in made]
    return {**payload, "decision": made[0] if made else {}} if kind == "decision" else {**payload, "decisions": made}


def _is_one(known: Decision, new: Decision) -> bool:
    """Whether two decisions of the same words are one: where documents number them otherwise and give other reasons
    ("Scope", in every run), they are two.
    """
    labels = known.extra.get("label"), new.extra.get("label")
    return None in labels or labels[0] == labels[1] or known.rationale == new.rationale


def _is_buried(stones: tuple[Tombstone, ...], item: Mapping[str, Any]) -> bool:
    """Whether a decision that a summariser brings was dropped: by its label, or, where it is new, by its words."""
    from ralf.tombstones import cover, is_buried  # only a route with tombstones pays for it

    if item.get("id"):
        return is_buried(stones, str(item["id"]))
    return cover(stones, from_tree(Decision, item))


def _linked(item: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """A decision with labels for `#n`; what is replaced by one that is left out is not replaced."""
    made = {**item, **{key: labels.get(item[key], item[key]) for key in LINKS if item.get(key)}}
    return {**made, "status": "active"} if item.get("superseded_by") and not made["superseded_by"] else made


def said(decision: Decision) -> str:
    """What a decision says, white space and case aside."""
    return _words[decision.decision]


_words: Remembered[str] = Remembered(lambda text: one_line(text).casefold())  # each write asks it of every decision


def with_decision(context: RouteContext, decision: Decision) -> RouteContext:
    """The context with one more decision, and what it replaces marked; one that it has is told what is new of it."""
    known = {item.id for item in context.decisions}
    decisions = []
    for item in context.decisions:
        if item.id == decision.id:
            item = _told_again(item, decision)
        elif item.id == decision.supersedes and not item.superseded_by:
            status = "superseded" if item.status == "active" else item.status
            item = replace(item, status=status, superseded_by=decision.id)
        decisions.append(item)
    if decision.id not in known:
        decisions.append(decision)
    header = context.context_checkpoint
    number = int(decision.id[4:]) if _LABEL.match(decision.id) else 0
    header = replace(header, decision_count=max(header.decision_count, number))
    return replace(context, context_checkpoint=header, decisions=tuple(decisions))


def _told_again(known: Decision, again: Decision) -> Decision:
    """A decision with what its being said again adds: where, what it replaces, and whether it was taken back."""
    places = [known.source, *known.further_sources]
    further = [place for place in (again.source, *again.further_sources) if place is not None and place not in places]
    status = again.status if known.status == "active" else known.status
    return replace(
        known,
        status=status,
        supersedes=known.supersedes or again.supersedes,
        superseded_by=known.superseded_by or (again.superseded_by if status != "active" else ""),
        further_sources=(*known.further_sources, *further)[: MOST_SOURCES - 1],
    )


def labelled_alike(before: RouteContext, after: RouteContext) -> tuple[RouteContext, RouteContext]:
    """Two versions of a file, the first with a label for every decision, and the second with the same for those that
    say the same: whoever wrote them without one, they are no new ones.
    """
    made = all_labelled(before)
    given: dict[str, list[str]] = {}
    for old, new in zip(before.decisions, made.decisions, strict=True):
        if not old.id:
            given.setdefault(said(new), []).append(new.id)
    decisions = []
    for item in after.decisions:
        alike = given.get(said(item), []) if not item.id else []
        decisions.append(replace(item, id=alike.pop(0), origin=item.origin or "human-edit") if alike else item)
    return made, replace(after, decisions=tuple(decisions))


def distinct(decisions: Sequence[Decision], known: Mapping[str, Decision]) -> list[Decision]:
    """The decisions, of those that share a label one with it and the others without: whoever copied a decision and
    changed the copy made a new one. A copy that is the same in everything is left out.

    known  decisions as they were, by their labels: who says what that one said keeps the label, else the first
    """
    keeping: dict[str, int] = {}  # which one keeps a label, by its place: two that are the same may be one object
    for place, item in enumerate(decisions):
        was = known.get(item.id)
        if item.id not in keeping or (was and said(item) == said(was) != said(decisions[keeping[item.id]])):
            keeping[item.id] = place
    made: list[Decision] = []
    for place, item in enumerate(decisions):
        if not item.id or place == keeping[item.id]:
            made.append(item)
        elif item != decisions[keeping[item.id]]:
            made.append(replace(item, id="", origin="human-edit", source=None, further_sources=()))
    return made


def all_labelled(context: RouteContext) -> RouteContext:
    """The context with a label for every decision, also for those that a person wrote without one."""
    numbers = [int(item.id[4:]) for item in context.decisions if _LABEL.match(item.id)]
    count = max([context.context_checkpoint.decision_count, *numbers])
    decisions = []
    for item in distinct(context.decisions, {}):
        if not item.id:
            count += 1
            item = replace(item, id=f"DEC-{count:03d}", origin=item.origin or "human-edit")
        decisions.append(item)
    header = replace(context.context_checkpoint, decision_count=count)
    return replace(context, context_checkpoint=header, decisions=tuple(decisions))
