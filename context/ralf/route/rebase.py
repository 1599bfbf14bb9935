"""Puts a route's records on another history: those that were recorded here while another machine's came first. Pure.

A record stays what it is, under its id. What it says by place is put right: its revision and those that it names, and
labels of decisions and checkpoints that the other history has given to others. A decision that both made in the same
words is one, unless it would lose its reason or its rejected options. Where an edit and the other history changed the
same field, the edit stands and the other value is kept under `unresolved`, as where a person edits an older file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ralf.format import merge
from ralf.format.codec import Tree, from_tree, shared, to_tree
from ralf.model import BODY, Checkpoint, Decision, RouteContext
from ralf.route import cap, edits, fold, matching
from ralf.route.unresolved import KEY, of_edit
from ralf.storage import journal
from ralf.storage.journal import Entry
from ralf.text.patterns import regex

_DECISION = regex(r"DEC-([0-9]{1,9})\Z")

_CHECKPOINT = regex(r"cp-([0-9]{1,9})\Z")

_COUNTERS = ("checkpoint_count", "total_tokens_consumed", "decision_count")
"""Of the header: they never go back."""


def rebased(
    route: str,
    entries: Iterable[Entry],
    *,
    before: RouteContext,
    onto: RouteContext,
    known: Mapping[str, Entry] = MappingProxyType({}),
) -> Iterator[Entry]:
    """The records of a route as they are after another history; entries without seals, and the tokens mean nothing.

    entries  oldest first, as they came after `before`
    onto     what the history comes to after which they are to come
    known    by their ids, records of that history: those of `entries` that are among them are not made anew

    DamagedJournal for a record that is none of a route.
    """
    return _entries_of(_Moved(route, before, onto), entries, known)


def joined(
    route: str, entries: Sequence[Entry], *, onto: RouteContext, known: Mapping[str, Entry] = MappingProxyType({})
) -> tuple[list[Entry], dict[str, str], RouteContext]:
    """All records of another route as they are after this one's, as `rebased`; the labels of its decisions and
    checkpoints as they were: as they are here, "" for one that was left out; and what all comes to.

    A decision that came to be dropped, replaced or reversed there stays apart from one in the same words here.
    """
    whole = fold.fold((journal.parsed(route, entry) for entry in entries), fold.empty(route))
    settled = frozenset(item.id for item in whole.decisions if item.status != "active")
    moved = _Moved(route, fold.empty(route), onto, settled | {stone.id for stone in cap.of(whole)})
    made = list(_entries_of(moved, entries, known))
    return made, moved.labels, moved.context


def _entries_of(moved: _Moved, entries: Iterable[Entry], known: Mapping[str, Entry]) -> Iterator[Entry]:
    for entry in entries:
        if entry.id in known:
            moved.pass_over(entry, known[entry.id])
        else:
            yield moved.put(entry)


class _Moved:
    """The records so far, as they were and as they are now.

    labels       of decisions that the records brought, as they were: as they are, "" for one that was left out
    checkpoints  the same of checkpoints
    revisions    the same of records
    apart        labels of the old history whose decisions are no others in the same words
    """

    def __init__(
        self, route: str, before: RouteContext, onto: RouteContext, apart: frozenset[str] = frozenset()
    ) -> None:
        self._route = route
        self._apart = apart
        self._old = before
        self._new = onto
        self._labels: dict[str, str] = {}
        self._checkpoints: dict[str, str] = {}
        self._revisions: dict[int, int] = {}

    @property
    def context(self) -> RouteContext:
        """What both histories come to."""
        return self._new

    @property
    def labels(self) -> dict[str, str]:
        """Of decisions and checkpoints."""
        return self._labels | self._checkpoints

    def put(self, entry: Entry) -> Entry:
        """The next record."""
        record = journal.parsed(self._route, entry)
        line = json.loads(entry.record)
        line["revision"] = self._new.revision + 1
        if "parent" in line:
            line["parent"] = self._new.revision
        self._revisions[record.revision] = line["revision"]
        brought: dict[str, str] = {}
        if not record.foreign and record.version <= journal.VERSION:
            with journal.understood(self._route, record):
                line["kind"], payload, brought = self._payload(record.kind, line["payload"])
            if payload != line["payload"]:
                line["payload"] = payload
                if line.get("digest") and not record.purged:
                    line["digest"] = journal.digest_of(payload)
        if line.get("render"):  # it shows the revision of the history that it was made in
            line["outdated"] = True
        content = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        made = Entry("", entry.id, content, entry.foreign)
        self._old, before = fold.apply(self._old, record), self._old
        self._new = fold.apply(self._new, journal.parsed(self._route, made))
        self._note(before, brought)
        return made

    def pass_over(self, entry: Entry, now: Entry) -> None:
        """The next record, which the other history has, `now`."""
        record, found = journal.parsed(self._route, entry), journal.parsed(self._route, now)
        self._revisions[record.revision] = found.revision
        self._old, before = fold.apply(self._old, record), self._old
        known = {item.id for item in before.decisions}
        labels = {matching.said(item): item.id for item in self._new.decisions}
        olds, news = _ids_of(record), _ids_of(found)
        paired = dict(zip(olds, news, strict=True)) if len(olds) == len(news) else {}
        self._labels |= {
            item.id: paired.get(item.id) or labels.get(matching.said(item), "")
            for item in self._old.decisions
            if item.id not in known and item.id not in self._labels
        }
        entries = self._old.checkpoint_history[-1:]
        if entries and entries != before.checkpoint_history[-1:]:
            told = _segment_of(entries[0])
            found_as = (one.checkpoint_id for one in self._new.checkpoint_history if _segment_of(one) == told)
            self._checkpoints[entries[0].checkpoint_id] = next(found_as, entries[0].checkpoint_id)

    def _note(self, before: RouteContext, brought: Mapping[str, str]) -> None:
        """Know the labels that a record has given."""
        self._labels |= brought
        olds, news = (context.checkpoint_history[-1:] for context in (self._old, self._new))
        if olds and news and olds != before.checkpoint_history[-1:]:
            self._checkpoints.setdefault(olds[0].checkpoint_id, news[0].checkpoint_id)

    # ---- what a record says ----

    def _payload(self, kind: str, payload: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], dict[str, str]]:
        """Kind and payload of the record now, and the labels of the decisions that it brings."""
        payload = {**payload}
        if payload.get("refines"):
            payload["refines"] = self._checkpoint(str(payload["refines"]))
        if payload.get("checkpoints"):
            payload["checkpoints"] = [self._checkpoint(str(name)) for name in payload["checkpoints"]]
        if kind in ("checkpoint", "refinement", "decision", "handover"):
            return kind, *self._with_decisions(kind, payload)
        if kind == "import":
            return self._imported(payload)
        if kind == "drop" and "tombstone" in payload:
            payload["tombstone"] = self._stone(payload["tombstone"])
        if kind == "forget":
            payload["ids"] = [self._either(str(label)) for label in payload.get("ids", ())]
            payload["tombstones"] = [self._stone(stone) for stone in payload.get("tombstones", ())]
        for name in ("base", "to_revision"):
            if isinstance(payload.get(name), int):
                payload[name] = self._revisions.get(payload[name], payload[name])
        if payload.get("undoes"):
            payload["undoes"] = [self._revisions.get(revision, revision) for revision in payload["undoes"]]
        if kind == fold.REVERT:
            payload["number"] = fold.next_number(self._new)
        if kind in ("edit", "repair", fold.REVERT, fold.UNDO, fold.MERGE):
            payload["changes"], brought = self._changes(payload.get("changes", ()))
            return kind, payload, brought
        return kind, payload, {}

    def _with_decisions(self, kind: str, payload: dict[str, Any]) -> tuple[Mapping[str, Any], dict[str, str]]:
        is_one = kind == "decision"
        items = [payload["decision"]] if is_one and payload.get("decision") else list(payload.get("decisions", ()))
        labels = [str(item.get("id", "")) for item in items]
        places = {label: f"#{number}" for number, label in enumerate(labels, start=1) if self._is_new(label)}
        known = {**self._labels, **places}
        made = [self._item(item, known, is_new=label in places) for item, label in zip(items, labels, strict=True)]
        if is_one and made:
            payload["decision"] = made[0]
        elif made:
            payload["decisions"] = made
        if payload.get("amended"):
            changed = ({**self._linked(item, known), "id": self._label(str(item["id"]))} for item in payload["amended"])
            payload["amended"] = [item for item in changed if item["id"]]
        places_apart = frozenset(place for label, place in places.items() if self._is_apart(label, items))
        labelled, given = edits.labels_given(self._new, kind, payload, places_apart)
        return labelled, {label: given.get(place, "") for label, place in places.items()}

    def _is_apart(self, label: str, items: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a new decision is another one than those in the same words: of these it would be a copy that says
        less.
        """
        item = next(from_tree(Decision, item) for item in items if item.get("id") == label)
        alike = [
            one for one in self._new.decisions if one.status == "active" and matching.said(one) == matching.said(item)
        ]
        return label in self._apart or not all(_holds(one, item) for one in alike)

    def _item(self, item: Mapping[str, Any], known: Mapping[str, str], *, is_new: bool) -> dict[str, Any]:
        """A decision as it is to be labelled: without a label where it is new."""
        made = self._linked(item, known)
        if is_new:
            del made["id"]
        elif "id" in made:
            made["id"] = self._label(str(made["id"]))
        return made

    def _imported(self, payload: dict[str, Any]) -> tuple[str, Mapping[str, Any], dict[str, str]]:
        """A whole file that was taken in adds what the other history lacks; it began a route that has begun already."""
        if not self._new.revision:
            return "import", payload, {}
        theirs = from_tree(RouteContext, payload.get("document", {}))
        changes = edits.changes_of_foreign(self._new, theirs)
        apart = self._told_otherwise(theirs, changes)
        changes += apart.values()
        made = {key: value for key, value in payload.items() if key != "document"} | {"changes": changes}
        after = from_tree(RouteContext, merge.apply(shared(self._new), changes))
        labels = {matching.said(item): item.id for item in after.decisions}
        brought = {item.id: labels.get(matching.said(item), "") for item in theirs.decisions if item.id}
        brought |= {label: str(change["at"][1]) for label, change in apart.items()}
        return "edit", {"origin": "import", **made}, brought

    def _told_otherwise(self, theirs: RouteContext, changes: Sequence[merge.Change]) -> dict[str, merge.Change]:
        """By label, what adds those decisions of a file of which others in the same words do not tell all."""
        after = from_tree(RouteContext, merge.apply(shared(self._new), list(changes)))
        alike = {matching.said(item): item for item in self._new.decisions}
        apart = [item for item in theirs.decisions if (one := alike.get(matching.said(item))) and not _holds(one, item)]
        taken = {item.id for item in after.decisions} | {stone.id for stone in cap.of(after)}
        made: dict[str, merge.Change] = {}
        count = after.context_checkpoint.decision_count
        for item in apart:
            count += 1
            while f"DEC-{count:03d}" in taken:
                count += 1
            label = f"DEC-{count:03d}"
            made[item.id] = {"at": ["decisions", label], "value": to_tree(replace(item, id=label))}
        return made

    def _stone(self, stone: Mapping[str, Any]) -> dict[str, Any]:
        return {**stone, "id": self._label(str(stone.get("id", "")))}

    # ---- labels ----

    def _label(self, label: str) -> str:
        return self._labels.get(label, label)

    def _checkpoint(self, label: str) -> str:
        return self._checkpoints.get(label, label)

    def _either(self, label: str) -> str:
        return self._checkpoint(label) if _CHECKPOINT.match(label) else self._label(label)

    def _is_new(self, label: object) -> bool:
        """Whether a record gives a label that its history had not given."""
        if not isinstance(label, str) or label in self._labels:
            return False
        number = _DECISION.match(label)
        if number is not None and int(number[1]) <= self._old.context_checkpoint.decision_count:
            return False  # also where the cap has folded it away
        return label != "" and all(item.id != label for item in self._old.decisions)

    @staticmethod
    def _linked(item: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
        return {**item, **{key: known.get(item[key], item[key]) for key in edits.LINKS if item.get(key)}}

    # ---- edits ----

    def _changes(self, changes: Sequence[merge.Change]) -> tuple[list[merge.Change], dict[str, str]]:
        """The changes of an edit as they are now, and the labels of the decisions that it adds."""
        brought = self._added(changes)
        known = {**self._labels, **brought}
        now, base = shared(self._new), self._old_tree(known)
        moved = [found for change in changes if (found := self._change(change, known, now)) is not None]
        moved = merge.open_changes(moved, now)
        return moved + of_edit(base, now, [one for one in moved if one["at"][0] != KEY]), brought

    def _added(self, changes: Sequence[merge.Change]) -> dict[str, str]:
        """The labels of the decisions that changes add: as a label of the other history that says the same, as they are
        where that is free, else the next ones.
        """
        ours = {item.id for item in self._old.decisions}
        same = {matching.said(item): item for item in self._new.decisions if item.id not in ours}
        taken = {item.id for item in self._new.decisions} | {stone.id for stone in cap.of(self._new)}
        count = self._new.context_checkpoint.decision_count
        brought: dict[str, str] = {}
        for change in changes:
            at, value = change["at"], change.get("value")
            if len(at) != 2 or at[0] != "decisions" or not isinstance(value, dict) or not self._is_new(str(at[1])):
                continue
            old, number = str(at[1]), _DECISION.match(str(at[1]))
            item = from_tree(Decision, value)
            known = same.get(matching.said(item))
            if known is not None and old not in self._apart and _holds(known, item):
                brought[old] = known.id
                continue
            new = old
            if old in taken or (number is not None and int(number[1]) <= count):
                count += 1
                while f"DEC-{count:03d}" in taken:
                    count += 1
                new = f"DEC-{count:03d}"
            elif number is not None:
                count = int(number[1])
            taken.add(new)
            brought[old] = new
        return brought

    def _change(self, change: merge.Change, known: Mapping[str, str], now: Tree) -> merge.Change | None:
        """One change, at the place that it means now; None where that is no more."""
        at, made = [str(key) for key in change["at"]], dict(change)
        if at[:1] == ["context_checkpoint"] and at[1:2] and at[1] in _COUNTERS and isinstance(change.get("value"), int):
            return {**change, "value": max(change["value"], now.get("context_checkpoint", {}).get(at[1], 0))}
        if at[:1] == [KEY]:
            inner = change.get("value")
            if isinstance(inner, dict) and isinstance(inner.get("at"), list):
                place = self._place([str(key) for key in inner["at"]], known)
                return {**change, "at": [KEY, "/".join(place)], "value": {**inner, "at": place}}
            return {**change, "at": [KEY, *("/".join(self._place(one.split("/"), known)) for one in at[1:2]), *at[2:]]}
        made["at"] = place = self._place(at, known)
        if "" in place[1:2]:
            return None  # a decision that was left out
        if "order" in change:
            made["order"] = [self._place([*at, str(name)], known)[-1] for name in change["order"]]
        elif "value" in change:
            made["value"] = self._value(at, change["value"], known)
        if len(at) == 2 and at[0] == "checkpoint_history" and at[1] not in self._checkpoints and merge.holds(now, at):
            return None if self._is_of_other(at, now) else made
        if at[:2] == [BODY, "sections"] and len(at) == 3 and isinstance(made.get("value"), dict):
            return self._section(made, at, now)
        return made

    def _is_of_other(self, at: Sequence[str], now: Tree) -> bool:
        """Whether the other history has an item at a place where the old one has none."""
        return merge.holds(now, at) and not merge.holds(shared(self._old), at)

    def _section(self, change: merge.Change, at: Sequence[str], now: Tree) -> merge.Change:
        """A section that an edit adds, without its number where that is another's."""
        number = change["value"].get("number")
        if number is None or f"cp-{int(number):03d}" in self._checkpoints.values() or not self._is_of_other(at, now):
            return change
        title = f"Checkpoint {number} of another history: {change['value'].get('title', '')}".rstrip(": ")
        value = {key: inner for key, inner in change["value"].items() if key != "number"} | {"title": title}
        return {**change, "at": [*at[:2], f"### {title}"], "value": value}

    def _place(self, at: Sequence[str], known: Mapping[str, str]) -> list[str]:
        made = list(at)
        if len(at) > 1 and at[0] in ("decisions", "dropped", "forgotten"):
            made[1] = known.get(at[1], at[1])
        elif len(at) > 1 and at[0] == "checkpoint_history":
            made[1] = self._checkpoint(at[1])
        elif len(at) > 2 and list(at[:2]) == [BODY, "sections"] and at[2].isdecimal():
            made[2] = str(self._number(int(at[2])))
        return made

    def _number(self, number: int) -> int:
        found = _CHECKPOINT.match(self._checkpoint(f"cp-{number:03d}"))
        return int(found[1]) if found else number

    def _value(self, at: Sequence[str], value: Any, known: Mapping[str, str]) -> Any:
        if list(at[:1]) == ["decisions"] and len(at) == 3 and at[2] in edits.LINKS:
            return known.get(value, value)
        if isinstance(value, list) and len(at) == 1 and at[0] in ("decisions", "dropped", "forgotten"):
            return [self._value([*at, str(item.get("id", ""))], item, known) for item in value]
        if not isinstance(value, dict) or len(at) < 2:
            return value
        if at[0] in ("decisions", "dropped", "forgotten"):
            return {**self._linked(value, known), "id": known.get(value.get("id", ""), value.get("id", ""))}
        if at[0] == "checkpoint_history" and value.get("checkpoint_id"):
            return {**value, "checkpoint_id": self._checkpoint(value["checkpoint_id"])}
        if list(at[:2]) == [BODY, "sections"] and isinstance(value.get("number"), int):
            return {**value, "number": self._number(value["number"])}
        return value

    def _old_tree(self, known: Mapping[str, str]) -> Tree:
        """What the old history has come to, by the labels of now."""
        tree = dict(shared(self._old))
        for name in ("decisions", "dropped", "forgotten", "checkpoint_history"):
            if name in tree:
                at = [name, ""]
                tree[name] = [self._value(at, item, known) for item in tree[name]]
        if sections := tree.get(BODY, {}).get("sections"):
            moved = [self._value([BODY, "sections"], section, known) for section in sections]
            tree[BODY] = {**tree[BODY], "sections": moved}
        return tree


def _ids_of(record: journal.Record) -> list[str]:
    """The labels of the decisions that a record brings."""
    payload = record.payload
    items = [payload["decision"]] if payload.get("decision") else payload.get("decisions", ())
    return [str(item.get("id", "")) for item in items]


def _segment_of(entry: Checkpoint) -> tuple[str, ...]:
    return matching.segment_of(entry)[:3]


def _holds(known: Decision, item: Decision) -> bool:
    """Whether a decision in the same words has all that another one tells."""
    told = item.rationale in ("", known.rationale) and item.alternatives in ((), known.alternatives)
    return told and item.kind == known.kind
