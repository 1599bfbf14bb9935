"""Labels of decisions, and what an edited or newer route file says otherwise, as changes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ralf.format import merge
from ralf.format.codec import ById, Tree, from_tree, shared, to_tree
from ralf.model import BODY, EXTRACTED, MOST_SOURCES, Checkpoint, Decision, RouteContext, Section, Tombstone, Unresolved
from ralf.route import cap
from ralf.route.matching import SAME, is_said, match, recorded_first, said
from ralf.route.unresolved import of_edit
from ralf.text.patterns import regex


def with_header(context: RouteContext, **fields: Any) -> RouteContext:
    """The context with other values of some fields of its header."""
    return replace(context, context_checkpoint=replace(context.context_checkpoint, **fields))


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

_BOOKKEEPING = frozenset({"version", "route", "revision", "lineage", "foreign_records", "later_records", "spend"})
"""What an edit of the header cannot change."""


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
    return changes + of_edit(original, now, changes)


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


# ---- what a file has that is newer than the journal's head, or of another history ----
#
# That it lacks an item says nothing: the cap may have folded it. A tombstone says that it is gone.

_COUNTED = ("checkpoint_count", "total_tokens_consumed", "decision_count")
"""Counters of the header, which never go back."""


def retired(ours: RouteContext, theirs: RouteContext) -> list[merge.Change]:
    """The decisions of ours that a file of another history, which is not known to go on from it, says are dropped,
    superseded or reversed: it cannot have that from nowhere.
    """
    known = {item.id: item for item in theirs.decisions}
    changes: list[merge.Change] = []
    for item in ours.decisions:
        other = known.get(item.id)
        stones = [stone for stone in cap.of(theirs) if stone.id == item.id]
        status = other.status if other is not None and said(other) == said(item) else "active"
        if status == "active" and cap.cover(stones, item):
            status = "dropped"
        if item.status == "active" != status:
            changes.append({"at": ["decisions", item.id, "status"], "value": status})
    return changes


def likeliest_render(renders: Sequence[RouteContext], found: RouteContext) -> RouteContext | None:
    """Which of our renders, newest first, a file without a lineage is an edit of: the one whose items it has, but for
    the fewest; None where it has less than half of them. Nobody else knows their times.
    """
    theirs = set(_timed(found))
    items = {one.revision: set(_timed(one)) for one in renders}
    near = [
        one
        for one in renders
        if items[one.revision] and 2 * len(items[one.revision] & theirs) >= len(items[one.revision])
    ]
    return min(near, key=lambda one: len(items[one.revision] ^ theirs), default=None)


def _timed(context: RouteContext) -> Iterator[tuple[str, str]]:
    yield from ((item.id, item.timestamp) for item in context.decisions if item.timestamp)
    yield from ((entry.checkpoint_id, entry.timestamp) for entry in context.checkpoint_history if entry.timestamp)


def changes_since(base: RouteContext, found: RouteContext, recorded: RouteContext) -> list[merge.Change]:
    """What a file that is newer than its journal, or of another history, says otherwise than `base`.

    base      our revision that the file had taken in; `recorded`, where it shows records that the journal has lost
    recorded  what ours has come to since; its own items stay, and those of the file that go by the same label or number
              get another one

    Where both changed a field, the file's value stands and ours is kept under `unresolved`.
    """
    count = max(one.context_checkpoint.decision_count for one in (found, recorded))
    found = _apart(base, with_header(found, decision_count=count))
    return list(_kept(changes_of_edit(base, found, recorded), recorded, found))


def _kept(changes: list[merge.Change], recorded: RouteContext, found: RouteContext) -> Iterator[merge.Change]:
    """The changes but for those that only say what the file lacks, and counters that would go back."""
    buried = {stone.id for stone in cap.of(found)}
    ours = recorded_first(recorded.decisions, found.decisions)
    for change in changes:
        at = change["at"]
        is_gone = at[0] == "active_work" or (at[0] == "decisions" and len(at) == 2 and at[1] in buried)
        is_ours = _is_of_record(at, ours) or (at == ["goal_origin"] and found.goal == recorded.goal)
        if at[0] == "folded" or is_ours or (change.get("removed") and not is_gone):
            continue
        if at[0] != "context_checkpoint" or at[1] not in _COUNTED:
            yield change
    for name in _COUNTED:
        ours, theirs = (getattr(one.context_checkpoint, name) for one in (recorded, found))
        if theirs > ours:
            yield {"at": ["context_checkpoint", name], "value": theirs}


def _is_of_record(at: Sequence[str], ours: Container[str]) -> bool:
    """Whether a field says whose an item is that ours has, or who recorded a decision, and when.

    ours  the labels of decisions that keep our record
    """
    if at[0] not in ("decisions", "checkpoint_history", "facts") or len(at) < 3:
        return False
    return at[-1] == "origin" or (at[0] == "decisions" and at[2] in ("clone", "timestamp") and at[1] in ours)


def _apart(ours: RouteContext, theirs: RouteContext) -> RouteContext:
    """`theirs`, in which no other decision goes by a label of ours, and no other checkpoint by a number of ours."""
    known = {item.id: item for item in ours.decisions}
    theirs = replace(theirs, decisions=tuple(distinct(theirs.decisions, known)))
    count = max(one.context_checkpoint.decision_count for one in (ours, theirs))
    places = match(ours.decisions, theirs.decisions, SAME._replace(tests=(*SAME.tests, is_said)))
    same = ["" if place is None else ours.decisions[place].id for place in places]
    labels: dict[str, str] = {}
    for item, our in zip(theirs.decisions, same, strict=True):
        if our and our != item.id:
            labels[item.id] = our
        elif item.id in known and not our:
            alike = next((one.id for one in ours.decisions if one.id not in same and said(one) == said(item)), "")
            count += not alike
            labels[item.id] = alike or f"DEC-{count:03d}"
    entries = {entry.checkpoint_id: entry for entry in ours.checkpoint_history}
    clashing = {
        entry.checkpoint_id
        for entry in theirs.checkpoint_history
        if (known_entry := entries.get(entry.checkpoint_id)) is not None and known_entry.timestamp != entry.timestamp
    }
    sections = tuple(
        _unnumbered(one) if one.number is not None and f"cp-{one.number:03d}" in clashing else one
        for one in theirs.body.sections
    )
    return replace(
        with_header(theirs, decision_count=count),
        decisions=tuple(
            _relinked(_renamed(item, labels[item.id], known) if item.id in labels else item, labels)
            for item in theirs.decisions
        ),
        checkpoint_history=tuple(one for one in theirs.checkpoint_history if one.checkpoint_id not in clashing),
        unresolved=tuple(moved_entry(entry, labels, {}) for entry in theirs.unresolved),
        body=replace(theirs.body, sections=sections),
    )


def moved_entry(entry: Unresolved, labels: Mapping[str, str], numbers: Mapping[Any, int]) -> Unresolved:
    """What is told of a field that two have changed, where its decision or section goes by another label or number; so
    do the decisions that the values name.
    """
    at, also = list(entry.at), entry.also
    if len(at) > 1 and at[0] == "decisions":
        at[1] = labels.get(at[1], at[1])
        also = tuple(labels.get(one, one) for one in also) if at[-1] in LINKS else also
    elif len(at) > 2 and at[:2] == [BODY, "sections"] and at[2].isdecimal():
        at[2] = str(numbers.get(int(at[2]), int(at[2])))
    return replace(entry, at=tuple(at), also=also)


def _aliases(label: str, *known: Any) -> tuple[str, ...]:
    """The other labels of an item, those that ours bears first."""
    *lists, ours = known
    found = dict.fromkeys([*(ours.aliases if ours is not None else ()), *(one for each in lists for one in each)])
    return tuple(one for one in found if one != label)


def moved(contexts: Sequence[RouteContext], recorded: RouteContext) -> list[RouteContext]:
    """A render and a person's edit of it, by the labels and numbers that `recorded` has for what the render shows: its
    records were put behind those of another machine since, which has given the old ones to others.
    """
    base = contexts[0]
    ours = {item.id: item for item in recorded.decisions}
    labels: dict[str, str] = {}
    for item in base.decisions:
        if item.id not in ours or said(ours[item.id]) != said(item):
            alike = (one for one in recorded.decisions if said(one) == said(item))
            labels[item.id] = next((one.id for one in alike if one.timestamp == item.timestamp), item.id)
    places = {(one.timestamp, one.session, one.lines): one for one in recorded.checkpoint_history}
    numbers: dict[int | None, int] = {}
    for entry in base.checkpoint_history:
        now = places.get((entry.timestamp, entry.session, entry.lines))
        if now is not None and now.checkpoint_id != entry.checkpoint_id:
            numbers[_number_of(entry)] = _number_of(now)
    return [_moved(context, labels, numbers) for context in contexts]


def _moved(context: RouteContext, labels: Mapping[str, str], numbers: Mapping[int | None, int]) -> RouteContext:
    decisions = (replace(item, id=labels.get(item.id, item.id)) for item in context.decisions)
    entries = []
    for entry in context.checkpoint_history:
        number = numbers.get(_number_of(entry))
        if number is not None:
            title = entry.summary_ref.partition(":")[2]
            named = f"### Checkpoint {number}" + (f":{title}" if title else "")
            entry = replace(entry, checkpoint_id=f"cp-{number:03d}", summary_ref=named)
        entries.append(entry)
    sections = (replace(one, number=numbers.get(one.number, one.number)) for one in context.body.sections)
    return replace(
        context,
        decisions=tuple(_relinked(item, labels) for item in decisions),
        checkpoint_history=tuple(entries),
        unresolved=tuple(moved_entry(entry, labels, numbers) for entry in context.unresolved),
        body=replace(context.body, sections=tuple(sections)),
    )


def _number_of(entry: Checkpoint) -> int:
    number = entry.checkpoint_id.removeprefix("cp-")
    return int(number) if number.isdecimal() else 0


def _renamed(item: Decision, label: str, ours: Mapping[str, Decision]) -> Decision:
    """A decision under another label, with the old one, and those that ours has, as aliases."""
    return replace(item, id=label, aliases=_aliases(label, item.aliases, [item.id], ours.get(label)))


def _unlabelled(item: Decision) -> Decision:
    """A decision that gets another label; the old one still finds it."""
    aliases = dict.fromkeys([*item.aliases, *filter(None, [item.id])])
    return replace(item, id="", aliases=tuple(aliases))


def _unnumbered(section: Section) -> Section:
    """A section of a file whose number is that of another section of ours."""
    title = f"Checkpoint {section.number} of another history: {section.title}".rstrip(": ")
    return replace(section, number=None, title=title)
