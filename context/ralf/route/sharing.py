"""The merge of a shared route file: two versions and the one that both come from make one. Pure.

What git merges by lines is merged here by what it is. Decisions, checkpoints, facts and tombstones are united, each
item once (`ralf.route.pairing`); labels that two clones gave to different items are told apart, and links follow.
Of a field that one side changed that side's value stands. Where both changed it, each to something else, one value
stands and the other is kept under `unresolved`, where `ralf context verify` shows it and `ralf context edit` settles
it. What is derived (the brief, the order of lists, counters, the layout) is made anew and never conflicts.

The two versions are put in an order that they have by themselves, so that which one is ours and which one theirs makes
no difference, to the byte. A merged file says which record of each clone it shows (`ralf.format.spread`), or, in the
ordinary layout, which histories it joins: it is no clone's own file, and foreign in each until it is accepted there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, NamedTuple

from ralf.brief.wording import place
from ralf.format import routefile, spread
from ralf.format.codec import to_tree
from ralf.model import (
    BODY,
    FORMAT_VERSION,
    ActiveWork,
    Body,
    Carried,
    Checkpoint,
    Decision,
    Header,
    RouteContext,
    Section,
    Tombstone,
    Unresolved,
)
from ralf.route import cap, edits, filed, fold, pairing, three_way
from ralf.route.pairing import Pair, digits
from ralf.route.three_way import NOTHING
from ralf.talk.answer import next_id


class Merged(NamedTuple):
    """A merged route file.

    content    its bytes
    conflicts  the fields that both sides changed, each to something else, in words: `DEC-003 rationale`
    """

    content: bytes
    conflicts: tuple[str, ...] = ()


def merge_files(base: bytes, ours: bytes, theirs: bytes, where: object, *, route: str = "") -> Merged:
    """The route file that two versions of one come to; the same bytes whichever is which.

    base   the version that both come from; b"" for none, and for one that cannot be read
    where  names the file in errors
    route  the route that the file will be of, where one of the two says so: it may have been renamed

    DamagedRouteFile where one of the two cannot be read, LaterRouteFile where a later version of ralf wrote it.
    """
    if ours == theirs or theirs == base:
        return Merged(ours)
    if ours == base:
        return Merged(theirs)
    sides = sorted((_read(ours, where), _read(theirs, where)), key=_age)
    before = _read(base, where) if base.strip() else None
    merge = _Merge(before, sides, route)
    context = merge.context()
    body = replace(context.body, brief="" if context.body.is_spread else filed.brief_of(context))
    content = routefile.render(replace(context, body=body)).encode()
    return Merged(content, tuple(place(entry.at) for entry in merge.marked))


def _read(content: bytes, where: object) -> RouteContext:
    return filed.with_own_lines(routefile.parse(content, where))


def _age(context: RouteContext) -> tuple[str, str, str]:
    """By what two versions are put in order, the older one first."""
    newest = max((item.timestamp for item in context.decisions), default="")
    return context.last_checkpoint, newest, json.dumps(to_tree(context), sort_keys=True, ensure_ascii=False)


class _Merge:
    """The merge of two versions, the older one first, and of what both come from.

    marked  the fields that both changed, with the value that does not stand
    """

    def __init__(self, base: RouteContext | None, sides: Sequence[RouteContext], route: str) -> None:
        self._base = base
        self._sides = sides
        self._route = route
        self._decisions = pairing.decisions(base, sides)
        self._checkpoints = pairing.checkpoints(base, sides)
        count = max(side.context_checkpoint.decision_count for side in sides)
        taken = pairing.buried_labels(base, sides)
        labels = pairing.label_all(self._decisions, taken, count, "DEC-{:03d}")
        of_base = {pair.base.id: pair.label for pair in self._decisions if pair.base is not None and pair.base.id}
        self._labels = [*labels, of_base]  # of the older, the newer and the base
        most = max(side.checkpoint_count for side in sides)
        numbers = pairing.label_all(self._checkpoints, set(), most, "cp-{:03d}")
        first = {pair.base.id: pair.label for pair in self._checkpoints if pair.base is not None}
        self._numbers = [*numbers, first]
        self.marked: list[Unresolved] = []

    def context(self) -> RouteContext:
        """What the two versions come to."""
        decisions = [made for pair in self._decisions if (made := self._decision(pair)) is not None]
        dropped = self._stones(decisions)
        goal, goal_origin, began_as = self._goal()
        extra = self._mapping("extra", mark=lambda key: (key,))
        context = RouteContext(
            context_checkpoint=self._header(),
            goal=goal,
            goal_origin=goal_origin,
            began_as=began_as,
            handover=self._handover(),
            active_work=self._work(),
            decisions=tuple(sorted(decisions, key=spread.order)),
            facts=three_way.facts(self._sides[0].facts, self._sides[1].facts),
            checkpoint_history=tuple(self._entries()),
            folded=replace(self._sides[1].folded, **self._most("folded")),
            dropped=dropped,
            forgotten=self._united_stones("forgotten"),
            body=self._body(),
            extra=extra,
        )
        context = replace(context, unresolved=self._unresolved(context))
        return cap.capped(self._with_history(context))

    # ---- fields: three ways ----

    def _three(self, of: Callable[[RouteContext], Any]) -> tuple[Any, bool]:
        """A field's value, and whether both changed it, each to something else: then it is the newer side's."""
        older, newer = (of(side) for side in self._sides)
        base = of(self._base) if self._base is not None else NOTHING
        return three_way.merged(base, older, newer)

    def _mark(self, at: Iterable[str], other: Any) -> None:
        self.marked.append(Unresolved(tuple(at), (other,)))

    def _field(self, of: Callable[[RouteContext], Any], at: Sequence[str]) -> Any:
        """A field's value; where both changed it the older side's is kept under `unresolved`."""
        value, both = self._three(of)
        if both:
            self._mark(at, three_way.plain(of(self._sides[0])))
        return value

    def _mapping(self, name: str, mark: Callable[[str], Sequence[str]]) -> dict[str, Any]:
        """Keys that this version does not know, each as a field."""
        made = {}
        for key in sorted({key for side in self._sides for key in getattr(side, name)}):
            value = self._field(lambda context: getattr(context, name).get(key, NOTHING), mark(key))  # noqa: B023
            if value is not NOTHING:
                made[key] = value
        return made

    def _most(self, name: str) -> dict[str, Any]:
        """The higher one of each count."""
        parts = [getattr(side, name) for side in self._sides]
        counts = [field.name for field in fields(parts[0]) if isinstance(getattr(parts[0], field.name), int)]
        return {key: max(getattr(part, key) for part in parts) for key in counts}

    def _sum(self, of: Callable[[RouteContext], Any]) -> Any:
        """A counter: what both have added to what it was."""
        older, newer = (of(side) for side in self._sides)
        return older + newer - of(self._base) if self._base is not None else max(older, newer)

    # ---- decisions ----

    def _decision(self, pair: Pair[Decision]) -> Decision | None:
        """A decision, under its label; None where both, or one by hand, took it out."""
        base = self._linked(pair.base, 2)
        sides = [self._linked(item, number) for number, item in enumerate(pair.sides)]
        if any(self._is_forgotten(pair, number) for number in (0, 1)):
            return None
        older, newer = (three_way.with_details(item, base) for item in sides)
        if older is None or newer is None:
            one = older if older is not None else newer
            if one is None:
                return None
            made = replace(one, id=pair.label, aliases=pair.aliases)
            number = 0 if older is None else 1
            if not self._is_dropped(pair, number):
                return made
            if base is None and one.status == "dropped":
                return made
            if base is not None and three_way.is_unchanged(one, base):
                return None
            self._mark(("decisions", pair.label, "status"), made.status)
            return replace(made, status="dropped")
        values: dict[str, Any] = {"id": pair.label, "aliases": pair.aliases}
        for name in ("kind", "pinned", "decision", "rationale", "alternatives", "supersedes"):
            values[name] = self._item_field(pair, name, base, older, newer)
        values |= three_way.sources(base, older, newer)
        values |= self._status(pair, base, older, newer)
        values["origin"] = three_way.origin(three_way.of(base, "origin"), older.origin, newer.origin)
        values |= _recorded(base, older, newer)
        values["extra"] = {**older.extra, **newer.extra}
        return replace(newer, **values)

    def _item_field(self, pair: Pair[Decision], name: str, base: Any, older: Decision, newer: Decision) -> Any:
        was, one, other = three_way.of(base, name), getattr(older, name), getattr(newer, name)
        if was is NOTHING and one != other and (not one or not other):
            return one or other  # neither is older: who says something knows more
        value, both = three_way.merged(was, one, other)
        if both:
            self._mark(("decisions", pair.label, name), three_way.plain(one if value == other else other))
        return value

    def _status(self, pair: Pair[Decision], base: Any, older: Decision, newer: Decision) -> dict[str, Any]:
        """Status and what replaced it, which belong together; of two that were given at once the stronger stands."""
        was, one, other = (
            (item.status, item.superseded_by) if item is not None else NOTHING for item in (base, older, newer)
        )
        value, both = three_way.merged(was, one, other)
        if both:
            value, rest = (one, other) if three_way.rank(one[0]) > three_way.rank(other[0]) else (other, one)
            name = "status" if value[0] != rest[0] else "superseded_by"
            self._mark(("decisions", pair.label, name), rest[0] if name == "status" else rest[1])
        return {"status": value[0], "superseded_by": value[1]}

    def _linked(self, item: Decision | None, side: int) -> Decision | None:
        """A decision of a side whose links name the labels of now; what a link names may stand in the base alone."""
        if item is None:
            return None
        labels = {**self._labels[2], **self._labels[side]}
        links: dict[str, Any] = {key: labels.get(link, link) for key in edits.LINKS if (link := getattr(item, key))}
        return replace(item, **links) if links else item

    def _is_dropped(self, pair: Pair[Decision], side: int) -> bool:
        """Whether a side has dropped a decision; where the base lacks that, the tombstone must be new: of one that the
        base has, and the other side took away, that side has brought the decision back.
        """
        stones = self._sides[side].dropped
        if pair.base is None:
            stones = tuple(stone for stone in stones if stone.said not in self._before("dropped"))
        return self._is_buried(pair, stones)

    def _is_forgotten(self, pair: Pair[Decision], side: int) -> bool:
        return self._is_buried(pair, self._sides[side].forgotten)

    @staticmethod
    def _is_buried(pair: Pair[Decision], stones: Sequence[Tombstone]) -> bool:
        """Whether a decision, as it is or was, lies under one of the tombstones that a side has."""
        if not stones:
            return False
        items = [item for item in (pair.base, *pair.sides) if item is not None]
        return cap.is_of(stones, items)

    def _stones(self, decisions: Sequence[Decision]) -> tuple[Tombstone, ...]:
        """The tombstones of what was dropped, but for those of the base over a decision that stands: a side brought it
        back. Without the base nobody knows that.
        """
        active = [cap.tombstone(item).said for item in decisions if item.status == "active"]
        gone = self._before("dropped").intersection(active)
        return tuple(stone for stone in self._united_stones("dropped") if stone.said not in gone)

    def _before(self, name: str) -> set[str]:
        """What the tombstones of the base say."""
        return {stone.said for stone in getattr(self._base, name)} if self._base is not None else set()

    def _united_stones(self, name: str) -> tuple[Tombstone, ...]:
        """The tombstones of both, each once, under the labels of now; without those that one has taken away."""
        known: dict[tuple[str, str], Tombstone] = {}
        counts: dict[tuple[str, str], int] = {}
        for number, side in enumerate(self._sides):
            labels = {**self._labels[2], **self._labels[number]}
            for stone in getattr(side, name):
                made = replace(stone, id=labels.get(stone.id, stone.id))
                known.setdefault((made.said, made.id), made)
                counts[made.said, made.id] = counts.get((made.said, made.id), 0) + 1
        before = self._before(name)
        is_gone = name == "dropped" and not any(side.folded.tombstone_count for side in self._sides)
        return tuple(
            stone for key, stone in known.items() if not (is_gone and counts[key] == 1 and stone.said in before)
        )

    # ---- checkpoints ----

    def _entries(self) -> list[Checkpoint]:
        """The entries of the history, oldest first, as their numbers say."""
        made = []
        for pair in self._checkpoints:
            entries = [None if one is None else one.entry for one in (pair.base, *pair.sides)]
            base, older, newer = entries
            if older is None and newer is None:
                continue
            entry = three_way.merged_item(base, older, newer)
            number = digits(pair.label)
            title = entry.summary_ref.partition(":")[2]
            named = f"### Checkpoint {number}" + (f":{title}" if title else "")
            moved = entry.checkpoint_id != pair.label
            entry = replace(entry, checkpoint_id=pair.label, aliases=pair.aliases)
            made.append(replace(entry, summary_ref=named) if moved else entry)
        return sorted(made, key=lambda entry: (digits(entry.checkpoint_id), entry.checkpoint_id))

    def _sections(self) -> tuple[Section, ...]:
        """The sections, newest first; those that a person wrote stand where they stood, as far as that is known."""
        numbered: list[Section] = []
        for pair in self._checkpoints:
            base, older, newer = (None if one is None else one.section for one in (pair.base, *pair.sides))
            section = three_way.merged_item(base, older, newer)
            if section is None:
                continue
            number = digits(pair.label)
            if older is not None and newer is not None:
                both = three_way.merged(three_way.of(base, "text"), older.text, newer.text)[1]
                if both:
                    self._mark((BODY, "sections", str(number), "text"), older.text)
            numbered.append(replace(section, number=number))
        numbered.sort(key=lambda section: section.number or 0, reverse=True)
        known: list[Section] = []
        for side in self._sides:
            known += [one for one in side.body.sections if one.number is None and one not in known]
        before = self._base.body.sections if self._base is not None else ()
        for one in before:  # one that a side has taken out, or written otherwise
            if one in known and any(one not in side.body.sections for side in self._sides):
                known.remove(one)
        return (*numbered, *known)

    def _with_history(self, context: RouteContext) -> RouteContext:
        """The context whose counters count at least what it shows."""
        header = context.context_checkpoint
        shown = [digits(entry.checkpoint_id) for entry in context.checkpoint_history]
        shown += [section.number or 0 for section in context.body.sections]
        labels = [digits(item.id) for item in context.decisions]
        return replace(
            context,
            context_checkpoint=replace(
                header,
                checkpoint_count=max([header.checkpoint_count, *shown]),
                decision_count=max([header.decision_count, *labels]),
            ),
        )

    # ---- the rest ----

    def _header(self) -> Header:
        headers = [side.context_checkpoint for side in self._sides]
        older, newer = headers
        route, _ = self._three(attrgetter("route"))
        routes = {header.route for header in headers}
        made: dict[str, Any] = {
            "version": FORMAT_VERSION,
            "route": self._route if self._route in routes else route,
            "agent_type": self._three(attrgetter("agent_type"))[0],
            "created": min(filter(None, (older.created, newer.created)), default=""),
            "last_checkpoint": max(older.last_checkpoint, newer.last_checkpoint),
            "checkpoint_count": self._sum(attrgetter("checkpoint_count")),
            "total_tokens_consumed": self._sum(attrgetter("total_tokens_consumed")),
            "decision_count": max(older.decision_count, newer.decision_count),
            "foreign_records": max(older.foreign_records, newer.foreign_records),
            "later_records": max(older.later_records, newer.later_records),
            "spend": self._spend(),
            "clones": spread.newest((*older.clones, *newer.clones)),
            "extra": {**older.extra, **newer.extra},
        }
        known = [one.context_checkpoint.lineage for one in self._sides if not one.body.is_spread]
        *others, lineage = sorted({"", *known}, key=_by_revision)
        made["lineage"], made["revision"] = lineage, max(older.revision, newer.revision)
        joined = {*older.joined, *newer.joined, *others, *([lineage] if self._is_spread else [])} - {""}
        made["joined"] = tuple(sorted(joined, key=_by_revision))[-fold.MOST_JOINED :]
        return replace(newer, **made)

    @property
    def _is_spread(self) -> bool:
        return any(side.body.is_spread for side in self._sides)

    def _spend(self) -> Any:
        older, newer = sorted((side.context_checkpoint.spend for side in self._sides), key=lambda one: one.day)
        counts = ("calls", "tokens", "estimated_tokens")
        sums = {name: self._sum(attrgetter(f"context_checkpoint.spend.{name}")) for name in counts}
        cost = self._sum(attrgetter("context_checkpoint.spend.cost_usd"))
        return newer if older == newer else replace(newer, **sums, cost_usd=round(cost, 6))

    def _goal(self) -> tuple[str, str, str]:
        """The goal, whose it is, and what the work began as."""
        goal = self._field(attrgetter("goal"), ("goal",))
        origins = [side.goal_origin for side in self._sides if side.goal == goal]
        origin = three_way.origin(NOTHING, origins[0], origins[-1]) if origins else ""
        return goal, origin, self._three(attrgetter("began_as"))[0]

    def _handover(self) -> Carried:
        """The newer moment, and the entries of both sides: what one has ended is over."""
        made, both = self._three(attrgetter("handover"))
        if not both:
            return made if isinstance(made, Carried) else Carried()
        base = self._base.handover if self._base is not None else Carried()
        ours, theirs = (side.handover for side in self._sides)
        lasts = [one.last for one in (ours, theirs) if one.last is not None]
        last = max(lasts, key=lambda one: (one.at, json.dumps(to_tree(one), sort_keys=True)), default=None)
        over = {entry.id for side in (ours, theirs) for entry in base.kept if entry not in side.kept}
        kept = [entry for entry in ours.kept if entry.id not in over]
        taken = [entry.id for entry in (*base.kept, *kept)]
        for entry in theirs.kept:
            if entry.id in over or entry in kept:
                continue
            if entry.id in taken:  # each side gave it to an entry of its own
                entry = replace(entry, id=next_id(entry.id.partition("-")[0], [*taken, *ours.numbers, *theirs.numbers]))
            taken.append(entry.id)
            kept.append(entry)
        offers = tuple({one.text: one for one in (*ours.offers, *theirs.offers)}.values())
        return Carried(
            last,
            tuple(sorted(kept, key=lambda entry: entry.at, reverse=True)),
            offers,
            tuple(sorted({*ours.numbers, *theirs.numbers})),
        )

    def _work(self) -> ActiveWork:
        """Where the work stands: lists are united, of the rest the newer side's stands."""
        base = self._base.active_work if self._base is not None else None
        made, both = three_way.work(base, self._sides[0].active_work, self._sides[1].active_work)
        for name, other in both.items():
            self._mark(("active_work", name), other)
        return made

    def _body(self) -> Body:
        bodies = [side.body for side in self._sides]
        texts: dict[str, Any] = {
            name: self._field(attrgetter(f"body.{name}"), (BODY, name))
            for name in ("before", "after", "preface", "below")
        }
        return Body(
            **texts,
            sections=self._sections(),
            comments=three_way.comments(bodies[0].comments, bodies[1].comments),
            crlf=self._three(attrgetter("body.crlf"))[0],
            bom=self._three(attrgetter("body.bom"))[0],
            is_spread=self._is_spread,
        )

    def _unresolved(self, context: RouteContext) -> tuple[Unresolved, ...]:
        """What both sides had not settled yet, and what they disagree about now."""
        known: dict[tuple[str, ...], tuple[Any, ...]] = {}
        counts: dict[tuple[str, ...], int] = {}
        for number, side in enumerate(self._sides):
            for entry in (self._moved(one, number) for one in side.unresolved):
                at = entry.at
                known[at] = (*known.get(at, ()), *(one for one in entry.also if one not in known.get(at, ())))
                counts[at] = counts.get(at, 0) + 1
        before = {self._moved(entry, 2).at for entry in self._base.unresolved} if self._base is not None else set()
        left = {at: also for at, also in known.items() if not (at in before and counts[at] == 1)}
        for entry in self.marked:
            also = left.get(entry.at, ())
            left[entry.at] = (*also, *(one for one in entry.also if one not in also))
        labels = {item.id for item in context.decisions}
        return tuple(
            Unresolved(at, also)
            for at, also in sorted(left.items())
            if at[:1] != ("decisions",) or len(at) < 2 or at[1] in labels
        )

    def _moved(self, entry: Unresolved, side: int) -> Unresolved:
        """An entry by the labels and numbers of now."""
        numbers = {digits(was): digits(now) for was, now in self._numbers[side].items()}
        return edits.moved_entry(entry, {**self._labels[2], **self._labels[side]}, numbers)


def _recorded(base: Decision | None, older: Decision, newer: Decision) -> dict[str, str]:
    """When a decision was recorded, and in which clone; of one that two have made in the same words, the first of both.
    One that nobody signed gives way to one that a clone has signed.
    """
    if base is not None:
        timestamp = three_way.merged(base.timestamp, older.timestamp, newer.timestamp)[0]
        return {"timestamp": timestamp, "clone": base.clone or older.clone or newer.clone}
    signed = [item for item in (older, newer) if item.clone and item.timestamp]
    first = min(signed or (older, newer), key=lambda item: (item.timestamp, item.clone))
    return {"timestamp": first.timestamp, "clone": first.clone}


def _by_revision(lineage: str) -> tuple[int, str]:
    number = lineage.partition("-")[0].removeprefix("r")
    return int(number) if number.isdecimal() else 0, lineage
