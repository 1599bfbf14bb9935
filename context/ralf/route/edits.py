"""Labels of decisions, and what an edited or newer route file says otherwise, as changes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ralf.document.record import now
from ralf.format import merge
from ralf.format.codec import ById, Tree, from_tree, shared, to_tree
from ralf.model import EXTRACTED, MOST_SOURCES, Decision, RouteContext, Section, Tombstone
from ralf.route import cap
from ralf.route.unresolved import of_edit
from ralf.text.cleaning import one_line
from ralf.text.patterns import regex


def with_header(context: RouteContext, **fields: Any) -> RouteContext:
    """The context with other values of some fields of its header."""
    return replace(context, context_checkpoint=replace(context.context_checkpoint, **fields))


def said(decision: Decision) -> str:
    """What a decision says, white space and case aside."""
    return one_line(decision.decision).casefold()


# ---- labels ----

_LABEL = regex(r"DEC-([0-9]{1,9})(?:-[0-9a-f]{6})?\Z")


LINKS = ("supersedes", "superseded_by")


def labelled(context: RouteContext, kind: str, payload: Mapping[str, Any], clone: str = "") -> Mapping[str, Any]:
    """The payload of a record that is about to be appended to `context`, its new decisions with their labels. See
    `labels_given`.
    """
    return labels_given(context, kind, payload, clone=clone)[0]


def labels_given(
    context: RouteContext, kind: str, payload: Mapping[str, Any], apart: Container[str] = (), *, clone: str = ""
) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """The payload of a record that is about to be appended to `context`, its new decisions with their labels; and by
    `#n` the label of the nth decision of the list, "" for one that is left out as it was dropped.

    One that is active already in the same words is no new one: it goes by the label that it has, and is left out where
    it tells nothing that is not known. One that was dropped is left out; only a record of a decision, which a person
    makes, or a person's hand-over brings it back. `#n`, the nth decision of the list, becomes that one's label in
    `supersedes` and `superseded_by`. The labels stand in the record, so that whoever reads it, and however much has
    been folded away, calls them the same.

    apart  which of them, as `#n`, get a label of their own, also where one in the same words is active
    clone  the tag behind the number of a label, where this clone shares what it decides; "": none
    """
    if kind not in ("checkpoint", "refinement", "decision", "handover"):
        return payload, {}
    if kind == "decision" and not payload.get("decision"):
        return payload, {}  # said before
    items = [payload.get("decision", {})] if kind == "decision" else payload.get("decisions", ())
    active: dict[str, list[Decision]] = {}
    taken: set[str] = set()
    if not all(item.get("id") for item in items):  # else they have been labelled, and nothing need be looked up
        for decision, words in zip(context.decisions, _said.of(context.decisions), strict=True):
            if decision.status == "active":
                active.setdefault(words, []).append(decision)
        taken = {known.id for known in context.decisions}
    count = context.context_checkpoint.decision_count
    made = []
    labels: dict[str, str] = {}  # `#n` to label
    stones = context.dropped + context.forgotten if kind != "decision" else ()
    for number, item in enumerate(items, start=1):
        is_persons = kind == "handover" and item.get("origin") == "user"
        if stones and not is_persons and _is_buried(stones, item):
            labels[f"#{number}"] = ""
            continue
        if not item.get("id"):
            decision = from_tree(Decision, item)
            alike = active.get(said(decision), [])
            known = next((one for one in reversed(alike) if _is_one(one, decision)), None)
            known = None if f"#{number}" in apart else known
            if known is None or decision.supersedes == known.id or decision.status != "active":
                count += 1
                while f"DEC-{count:03d}" in taken:  # an imported file may have used it
                    count += 1
                item = {**item, "id": "-".join(filter(None, (f"DEC-{count:03d}", clone)))}
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
    if kind == "decision":
        return {**payload, "decision": made[0] if made else {}}, labels
    if payload.get("amended"):
        linked = ({**item, **_links(item, labels)} for item in payload["amended"])
        payload = {**payload, "amended": [item for item in linked if item.get("superseded_by") != ""]}
    return {**payload, "decisions": made}, labels


def by_label(decisions: Sequence[Decision], label: str) -> Decision | None:
    """The decision of a label, else the one that bears it in another clone of a shared route; None for none. The case
    of letters does not matter.
    """
    name = label.casefold()
    found = next((item for item in decisions if item.id.casefold() == name), None)
    if found is not None:
        return found
    return next((item for item in decisions if name in (one.casefold() for one in item.aliases)), None)


def _is_one(known: Decision, new: Decision) -> bool:
    """Whether two decisions of the same words are one: where documents number them otherwise and give other reasons
    ("Scope", in every run), they are two.
    """
    labels = known.extra.get("label"), new.extra.get("label")
    return None in labels or labels[0] == labels[1] or known.rationale == new.rationale


def _is_buried(stones: tuple[Tombstone, ...], item: Mapping[str, Any]) -> bool:
    """Whether a decision that a summariser brings was dropped: by its label, or, where it is new, by its words."""
    return cap.is_buried(stones, str(item["id"])) if item.get("id") else cap.cover(stones, from_tree(Decision, item))


def _linked(item: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """A decision with labels for `#n`; what is replaced by one that is left out is not replaced."""
    made = {**item, **_links(item, labels)}
    return {**made, "status": "active"} if item.get("superseded_by") and not made["superseded_by"] else made


def _links(item: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, str]:
    return {key: labels.get(item[key], item[key]) for key in LINKS if item.get(key)}


_said = ById(said)  # each write asks it of every decision


def all_said(decisions: Sequence[Decision]) -> list[str]:
    """`said` of each."""
    return _said.of(decisions)


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
    number = int(found[1]) if (found := _LABEL.match(decision.id)) else 0
    count = max(context.context_checkpoint.decision_count, number)
    return replace(with_header(context, decision_count=count), decisions=tuple(decisions))


def _told_again(known: Decision, again: Decision) -> Decision:
    """A decision with what its being said again adds: where, what it replaces, and whether it was taken back. What was
    only extracted becomes what somebody records in the same words.
    """
    if known.origin == EXTRACTED != again.origin:
        known = replace(again, source=again.source or known.source)
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
            new: dict[str, Any] = {"id": "", "origin": "human-edit", "clone": "", "timestamp": ""}
            made.append(replace(item, **new, source=None, further_sources=()))
    return made


def all_labelled(context: RouteContext) -> RouteContext:
    """The context with a label for every decision, also for those that a person wrote without one."""
    numbers = [int(found[1]) for item in context.decisions if (found := _LABEL.match(item.id))]
    count = max([context.context_checkpoint.decision_count, *numbers])
    decisions = []
    for item in distinct(context.decisions, {}):
        if not item.id:
            count += 1
            item = replace(item, id=f"DEC-{count:03d}", origin=item.origin or "human-edit")
            item = replace(item, aliases=tuple(one for one in item.aliases if one != item.id))
        decisions.append(item)
    return replace(with_header(context, decision_count=count), decisions=tuple(decisions))


# ---- what a file says otherwise ----

_BOOKKEEPING = frozenset({"version", "route", "revision", "mark", "foreign_records", "later_records", "spend"})
"""What an edit of the header cannot change."""


def body_of(changes: Sequence[merge.Change]) -> dict[str, Any]:
    """The record that absorbs what somebody changed in a route's file."""
    return {"kind": "edit", "payload": {"timestamp": now(), "changes": list(changes)}}


BY_HAND, BY_AGENT = "human-edit", "agent"
"""Who made an edit of the file: nobody knows, and a person is most likely; the agent, by the record of its client."""


def by_agent(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same record as the agent's, with what it adds."""
    payload = body["payload"]
    return {**body, "payload": {**payload, "origin": BY_AGENT, "changes": _of_agent(payload["changes"])}}


def _of_agent(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_of_agent(inner) for inner in tree]
    if not isinstance(tree, Mapping):
        return tree
    said = (("origin", BY_HAND), ("author", "file"))
    return {key: BY_AGENT if (key, inner) in said else _of_agent(inner) for key, inner in tree.items()}


def changes_of_edit(
    base: RouteContext,
    theirs: RouteContext,
    newest: RouteContext | None = None,
    cleaned: Callable[[merge.Change], merge.Change] = lambda change: change,
    *,
    is_whole: bool = True,
) -> list[merge.Change]:
    """What a person changed in a route file that was rendered from `base`; the bookkeeping of the header is ours.

    newest    what the route has come to since; a decision that they added gets a label that it uses for no other, and
              what it says already is no change. What both changed is told under `unresolved`, too
    cleaned   a change without secrets
    is_whole  whether what is missing was taken out
    """
    if newest is not None:
        base, theirs = _labelled_alike(base, theirs, newest)
    edited: Tree = shared(_unclashing(base, theirs, newest or base))
    original = shared(base)
    for key in (*_BOOKKEEPING, "decision_count"):
        for tree in (edited, original):
            tree.get("context_checkpoint", {}).pop(key, None)
    changes = [cleaned(change) for change in merge.diff(original, edited) if is_whole or _adds(change, original)]
    if newest is None:
        return changes
    current = shared(newest)
    changes = merge.open_changes(changes, current)
    return changes + of_edit(original, current, changes)


def _labelled_alike(
    base: RouteContext, theirs: RouteContext, newest: RouteContext
) -> tuple[RouteContext, RouteContext]:
    """An earlier save and a later one, in which decisions that were written without a label have that which they were
    recorded with. One that is there no more is in neither: it was dropped since.
    """
    taken = {item.id for item in base.decisions}
    recorded = {said(item): item.id for item in newest.decisions if item.id not in taken}
    given = {said(item): recorded.get(said(item), "") for item in base.decisions if not item.id}
    if not given:
        return base, theirs

    def labelled(context: RouteContext) -> RouteContext:
        left = dict(given)
        decisions = []
        for item in context.decisions:
            label = left.pop(said(item), None) if not item.id else None
            if label != "":
                decisions.append(replace(item, id=label or item.id))
        return replace(context, decisions=tuple(decisions))

    return labelled(base), labelled(theirs)


def _adds(change: merge.Change, original: Tree) -> bool:
    """Whether a change adds something, so that it counts in a file that was cut off, too."""
    if "value" not in change:
        return False
    was, value = merge.find(original, change["at"]), change["value"]
    return not (isinstance(was, str) and isinstance(value, str) and was.startswith(value.rstrip()))


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
            item = _taken_in(item, known) if known is not None else _unlabelled(item)
        decisions.append(item)
    count = max(theirs.context_checkpoint.decision_count, newest.context_checkpoint.decision_count)
    made = all_labelled(replace(with_header(theirs, decision_count=count), decisions=tuple(decisions)))
    pairs = zip(theirs.decisions, made.decisions, strict=True)
    labels = {old.id: new.id for old, new in pairs if old.id and old.id != new.id}
    return replace(made, decisions=tuple(_relinked(item, labels, before.get(item.id)) for item in made.decisions))


def _taken_in(item: Decision, known: Decision) -> Decision:
    """What a person added, as it was recorded since: the file does not show that yet."""
    fields = {name: getattr(item, name) or getattr(known, name) for name in ("origin", "timestamp", "clone")}
    return replace(item, id=known.id, **fields)


def _relinked(item: Decision, labels: Mapping[str, str], was: Decision | None = None) -> Decision:
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
        item if same and item.id not in taken else _unlabelled(item)
        for item in theirs.decisions
        if said(item) not in known and not cap.cover(cap.of(ours), item)
    )
    numbers = {section.number: section.text for section in ours.body.sections}
    sections = tuple(
        _unnumbered(one) if numbers.get(one.number, one.text) != one.text else one for one in theirs.body.sections
    )
    header = ours.context_checkpoint
    kept = {key: getattr(header, key) for key in _BOOKKEEPING}
    count = max(header.decision_count, theirs.context_checkpoint.decision_count)
    added = replace(
        theirs,
        context_checkpoint=replace(theirs.context_checkpoint, **kept, decision_count=count),
        decisions=decisions,
        handover=ours.handover if ours.handover.last else theirs.handover,  # one of ours is no half of theirs
        folded=replace(theirs.folded, tombstone_count=ours.folded.tombstone_count),
        body=replace(theirs.body, sections=sections),
    )
    tree = to_tree(ours)
    changes = merge.diff(tree, to_tree(all_labelled(added)))
    return [change for change in changes if "value" in change and not merge.holds(tree, change["at"])]


def _unlabelled(item: Decision) -> Decision:
    """A decision that gets another label; the old one still finds it."""
    aliases = dict.fromkeys([*item.aliases, *filter(None, [item.id])])
    return replace(item, id="", aliases=tuple(aliases))


def _unnumbered(section: Section) -> Section:
    """A section of a file whose number is that of another section of ours."""
    title = f"Checkpoint {section.number} of another history: {section.title}".rstrip(": ")
    return replace(section, number=None, title=title)
