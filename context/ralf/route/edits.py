"""Labels of decisions, and what an edited or newer route file says otherwise, as changes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ralf.document import merge
from ralf.document.record import now
from ralf.document.tree import Tree, from_tree, to_tree
from ralf.model import BODY, MOST_SOURCES, Decision, RouteContext
from ralf.model.items import EXTRACTED
from ralf.route import cap
from ralf.text.cleaning import one_line
from ralf.text.frozen import replace
from ralf.text.patterns import regex


def with_header(context: RouteContext, **fields: Any) -> RouteContext:
    """The context with other values of some fields of its header."""
    return replace(context, context_checkpoint=replace(context.context_checkpoint, **fields))


def said(decision: Decision) -> str:
    """What a decision says, white space and case aside."""
    return _said(decision.decision)


@lru_cache(maxsize=4096)
def _said(text: str) -> str:
    return one_line(text).casefold()


# ---- labels ----

_LABEL = regex(r"DEC-([0-9]{1,9})(?:-[0-9a-f]{6})?\Z")


def labelled(context: RouteContext, kind: str, payload: Mapping[str, Any], clone: str = "") -> Mapping[str, Any]:
    """The payload of a record that is about to be appended to `context`, its new decisions with their labels.

    One that is active already in the same words is no new one: it goes by the label that it has, and is left out where
    it tells nothing new. One that was dropped is left out of a checkpoint; a record of its own brings it back. The
    labels stand in the record, so that every reader calls them the same.

    clone  the tag behind the number of a label, where this clone shares what it decides; "": none
    """
    is_one = kind == "decision"
    items: Sequence[Mapping[str, Any]] = payload.get("decisions", ()) if kind == "checkpoint" else ()
    if is_one and payload.get("decision"):
        items = [payload["decision"]]
    if all(item.get("id") for item in items):
        return payload
    stones, new = () if is_one else cap.of(context), []
    for item in items:
        made = from_tree(Decision, item)
        if not made.id and cap.cover(stones, made):
            continue
        if not made.id:
            words = said(made)
            known = (one for one in reversed(context.decisions) if one.status == "active" and said(one) == words)
            same = next((one for one in known if _is_one(one, made)), None)
            if same is None or made.supersedes == same.id or made.status != "active":
                number = context.context_checkpoint.decision_count + 1
                item = {**item, "id": "-".join(filter(None, (f"DEC-{number:03d}", clone)))}
            elif _again(same, made) == same:
                continue
            else:
                item = {**item, "id": same.id}
        if len(items) > 1:  # the next one may say the same
            context = with_decision(context, replace(made, id=item["id"]))
        new.append(item)
    return {**payload, "decision": new[0] if new else {}} if is_one else {**payload, "decisions": new}


def by_label(decisions: Sequence[Decision], label: str) -> Decision | None:
    """The decision of a label, in letters of any case, or the only one whose label is that and the tag of a clone; None
    for none, and for several.
    """
    name = label.casefold()
    if found := next((item for item in decisions if item.id.casefold() == name), None):
        return found
    tagged = [item for item in decisions if item.id.casefold().startswith(f"{name}-")]
    return tagged[0] if len(tagged) == 1 else None


def _is_one(known: Decision, new: Decision) -> bool:
    """Whether two decisions in the same words are one: where documents number them otherwise and give other reasons
    ("Scope", in every run), they are two.
    """
    labels = known.extra.get("label"), new.extra.get("label")
    is_numbered = None not in labels and labels[0] != labels[1]
    return not is_numbered or known.rationale == new.rationale


def with_decision(context: RouteContext, decision: Decision) -> RouteContext:
    """The context with one more decision, and what it replaces marked; of one that it has, with what is new of it."""
    decisions = []
    for item in context.decisions:
        if item.id == decision.id:
            item = _again(item, decision)
        elif item.id == decision.supersedes and not item.superseded_by:
            status = "superseded" if item.status == "active" else item.status
            item = replace(item, status=status, superseded_by=decision.id)
        decisions.append(item)
    if decision.id not in {item.id for item in decisions}:
        decisions.append(decision)
    header = context.context_checkpoint
    header = replace(header, decision_count=max(header.decision_count, _number(decision)))
    return replace(context, context_checkpoint=header, decisions=tuple(decisions))


def _number(decision: Decision) -> int:
    found = _LABEL.match(decision.id)
    return int(found[1]) if found else 0


def _again(known: Decision, again: Decision) -> Decision:
    """A decision with what its being said again adds: where, what it replaces, and whether it was taken back. What
    rules of earlier versions found again adds nothing.
    """
    if again.origin == EXTRACTED != known.origin:
        return known
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


def all_labelled(context: RouteContext) -> RouteContext:
    """The context with a label for every decision, also for those that a person wrote without one."""
    count = max([context.context_checkpoint.decision_count, *map(_number, context.decisions)])
    decisions = []
    for item in _distinct(context.decisions, {}):
        if not item.id:
            count += 1
            item = replace(item, id=f"DEC-{count:03d}", origin=item.origin or BY_HAND)
        decisions.append(item)
    return replace(with_header(context, decision_count=count), decisions=tuple(decisions))


def _distinct(decisions: Sequence[Decision], before: Mapping[str, Decision]) -> list[Decision]:
    """The decisions, of those that share a label one with it and the others without: a copy that somebody changed is
    a new one, and one that is the same in everything is left out.

    before  decisions by their labels: the copy that says what that one said keeps the label, else the first
    """
    owners = {item.id: item for item in reversed(decisions)}
    owners |= {item.id: item for item in reversed(decisions) if said(item) == said(before.get(item.id, Decision()))}
    found: list[Decision] = []
    for item in decisions:
        if not item.id or item is owners[item.id]:
            found.append(item)
        elif item != owners[item.id]:
            copy: dict[str, Any] = {"id": "", "origin": BY_HAND, "clone": "", "timestamp": ""}
            found.append(replace(item, **copy, source=None, further_sources=()))
    return found


# ---- what a file says otherwise ----

_BOOKKEEPING = frozenset({"version", "route", "revision", "mark", "later_records", "spend"})
"""What an edit of the header cannot change. Files of earlier versions have `later_records`."""

_COUNTED = frozenset({"context_checkpoint", "facts", "checkpoint_history", "folded", "dropped", "forgotten"})
"""Fields that are counted and extracted: nobody is asked about two values of one of them."""


def body_of(changes: Sequence[merge.Change], conflicts: Sequence[merge.Conflict] = ()) -> dict[str, Any]:
    """The record that absorbs what somebody changed in a route's file.

    conflicts  fields that the journal has changed, too: the edit's value counts, and the record says the other
    """
    both = [{"at": list(one.at), "also": [one.other]} for one in conflicts]
    payload = {"timestamp": now(), "changes": list(changes), **({"conflicts": both} if both else {})}
    return {"kind": "edit", "payload": payload}


BY_HAND, BY_AGENT = "human-edit", "agent"
"""Who made an edit of the file: nobody knows, and a person is most likely; the agent, by the record of its client."""


def changes_of_edit(
    base: RouteContext,
    theirs: RouteContext,
    newest: RouteContext,
    cleaned: Callable[[merge.Change], merge.Change] = lambda change: change,
    *,
    is_whole: bool = True,
    is_again: bool = False,
) -> list[merge.Change]:
    """What a person changed in a route file that was rendered from `base`; the bookkeeping of the header is ours.

    newest    what the route has come to since; a decision that they added gets a label that it uses for no other, and
              what it says already is no change
    cleaned   a change without secrets
    is_whole  whether what is missing was taken out
    is_again  whether `base` is itself a save of an editor that shows an older file: whoever saves the next one need not
              have seen it, and takes no line of its texts out
    """
    current = to_tree(newest)
    original, edited = (_plain(_labelled_as(one, base, newest)) for one in (base, theirs))
    changes = [cleaned(change) for change in merge.diff(original, edited) if is_whole or _adds(change, original)]
    changes = [_by_lines(change, original, current, is_again=is_again) for change in changes]
    return merge.open_changes(changes, current)


def _by_lines(change: merge.Change, original: Tree, current: Tree, *, is_again: bool) -> merge.Change:
    """A change of a text of the body that has also changed otherwise, with the lines of both."""
    theirs = change.get("value", "" if change.get("removed") is True else None)
    was, now = (merge.find(tree, change["at"], "") for tree in (original, current))
    if change["at"][0] != BODY or {type(one) for one in (theirs, was, now)} != {str} or (was == now and not is_again):
        return change
    text = merge.merged(was, now, str(theirs), keep=is_again)
    return {"at": change["at"], "value": text} if text else change


def conflicts(base: RouteContext, newest: RouteContext, changes: Sequence[merge.Change]) -> list[merge.Conflict]:
    """The fields that an edit of `base` and the journal changed, each to something else."""
    return [
        one
        for one in merge.conflicts(to_tree(base), to_tree(newest), changes)
        if one.at[0] not in _COUNTED
        and "source" not in one.at[-1]
        and not (one.at[0] == BODY and isinstance(one.other, str))  # which has the lines of both
    ]


def _plain(context: RouteContext) -> Tree:
    tree: Tree = to_tree(context)
    for key in (*_BOOKKEEPING, "decision_count"):
        tree.get("context_checkpoint", {}).pop(key, None)
    return tree


def _labelled_as(context: RouteContext, base: RouteContext, newest: RouteContext) -> RouteContext:
    """A save with a label for each decision: of a new one that which it was recorded with since, where it was; one that
    was recorded and is there no more was dropped. A label that the journal has given to another decision is taken off.
    """
    before = {item.id: item for item in base.decisions}
    since = {said(item): item for item in newest.decisions if item.id not in before}
    given = {"", *(item.id for item in since.values())}
    absorbed = {said(item) for item in base.decisions if not item.id}
    decisions = []
    for item in _distinct(context.decisions, before):
        found = since.get(said(item)) if item.id in given else item
        if found is not None:
            fields = {key: getattr(item, key) or getattr(found, key) for key in ("origin", "timestamp", "clone")}
            decisions.append(replace(item, id=found.id, **fields))
        elif said(item) not in absorbed:
            decisions.append(replace(item, id=""))
    count = max(one.context_checkpoint.decision_count for one in (context, newest))
    return all_labelled(with_header(replace(context, decisions=tuple(decisions)), decision_count=count))


def _adds(change: merge.Change, original: Tree) -> bool:
    """Whether a change adds something, so that it counts in a file that was cut off, too."""
    if "value" not in change:
        return False
    was, value = merge.find(original, change["at"]), change["value"]
    return not (isinstance(was, str) and isinstance(value, str) and was.startswith(value.rstrip()))


def changes_of_foreign(ours: RouteContext, theirs: RouteContext) -> list[merge.Change]:
    """What a route file of another history adds to `ours`: what it lacks or says otherwise changes nothing.

    Decisions that we do not have get labels of our own, and a section whose number we use for another loses it.
    """
    known = {said(item) for item in ours.decisions}
    decisions = tuple(
        replace(item, id="")
        for item in theirs.decisions
        if said(item) not in known and not cap.cover(cap.of(ours), item)
    )
    numbers = {section.number: section.text for section in ours.body.sections}
    sections = []
    for section in theirs.body.sections:
        if numbers.get(section.number, section.text) != section.text:
            title = f"Checkpoint {section.number} of another history: {section.title}".rstrip(": ")
            section = replace(section, number=None, title=title)
        sections.append(section)
    count = max(context.context_checkpoint.decision_count for context in (ours, theirs))
    added = replace(
        with_header(theirs, decision_count=count),
        decisions=decisions,
        handover=ours.handover if ours.handover.last else theirs.handover,  # one of ours is no half of theirs
        body=replace(theirs.body, sections=tuple(sections)),
    )
    tree = _plain(ours)
    changes = merge.diff(tree, _plain(all_labelled(added)))
    return [change for change in changes if "value" in change and merge.find(tree, change["at"]) is None]
