"""What a forget makes of records: words taken out, digests of blobs replaced, names of histories kept. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ralf import journal, route as heart
from ralf.context import BODY
from ralf.forgetting.wording import MARK, Wording
from ralf.store import Digest, Entry

_OF_A_DECISION = ("decision", "rationale", "alternatives")


@dataclass(frozen=True, slots=True)
class Item:
    """What is to be forgotten in the records of its route, however short its words are.

    label      DEC-003 or cp-002; "" where a text is forgotten wherever it stands
    revisions  of the records that are the checkpoint's own
    """

    label: str = ""
    revisions: frozenset[int] = frozenset()

    @property
    def number(self) -> int | None:
        """The number of a checkpoint's section."""
        digits = self.label.removeprefix("cp-")
        return int(digits) if digits.isdecimal() and digits != self.label else None

    def without(self, payload: Mapping[str, Any], revision: int) -> dict[str, Any]:
        """A payload without the item's own words."""
        made: dict[str, Any] = dict(payload)
        if not self.label:
            return made
        if revision in self.revisions or payload.get("refines") == self.label:
            made |= {key: MARK for key in ("title", "text") if payload.get(key)}
            made |= {"key_events": []} if payload.get("key_events") else {}
        if "changes" in payload:
            made["changes"] = [self._change(change) for change in payload["changes"]]
        return {key: self._inner(inner) for key, inner in made.items()}

    def _inner(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self._inner(inner) for inner in tree]
        if not isinstance(tree, dict):
            return tree
        tree = {key: self._inner(inner) for key, inner in tree.items()}
        if self._is_decision(tree):
            gone = {key: [] if isinstance(tree[key], list) else MARK for key in _OF_A_DECISION if tree.get(key)}
            return {**tree, **gone, "status": "dropped"}
        if "also" in tree and self._is_place([str(key) for key in tree.get("at", ())]):
            return {**tree, "also": [MARK]}
        if self.number is not None and tree.get("number") == self.number and "text" in tree:
            return {**tree, "title": MARK, "text": MARK}
        return tree

    def _is_decision(self, tree: Mapping[str, Any]) -> bool:
        return str(tree.get("id", "")).casefold() == self.label.casefold() and any(
            key in tree for key in _OF_A_DECISION
        )

    def _change(self, change: Mapping[str, Any]) -> dict[str, Any]:
        """A change by hand, of a field of the item."""
        if self._is_place([str(key) for key in change.get("at", ())]) and change.get("value"):
            return {**change, "value": [] if isinstance(change["value"], list) else MARK}
        return dict(change)

    def _is_place(self, at: Sequence[str]) -> bool:
        """Whether a field of the item stands at these keys."""
        decided = at[:2] == ["decisions", self.label] and at[2:3] and at[2] in _OF_A_DECISION
        written = at[:2] == [BODY, "sections"] and at[2:3] == [str(self.number)] and at[-1] in ("title", "text")
        return bool(decided or written)


@dataclass(slots=True)
class Purge:
    """Purges the records of one stream, oldest first: what `Store.rewrite` is told to do. `changed` counts them."""

    stream: str
    wording: Wording
    item: Item = field(default_factory=Item)
    digests: Mapping[Digest, Digest] = field(default_factory=dict)
    changed: int = 0
    _lineage: str = ""

    def __call__(self, entry: Entry) -> bytes:
        """The bytes that are to stand in a record's place: its own, where nothing of it is to be forgotten."""
        if not self.stream.startswith(journal.stream_of("")):
            return self._other(entry)
        record = journal.parsed(self.stream, entry)
        self._lineage = heart.lineage(self._lineage, record)
        line = json.loads(entry.record)
        with journal.understood(self.stream.removeprefix(journal.stream_of("")), record):
            is_known = record.version <= journal.VERSION
            payload = self._purged(self.item.without(line["payload"], record.revision) if is_known else line["payload"])
        if record.render and not record.outdated:
            line["outdated"] = True
        if payload != line["payload"]:
            self.changed += 1
            line |= {"payload": payload, "purged": True}
            if record.version == 1:
                line["lineage"] = self._lineage
        elif record.outdated or not record.render:
            return entry.record
        return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    def _other(self, entry: Entry) -> bytes:
        """A record of a stream that is no route's."""
        tree = json.loads(entry.record)
        made = self.purged(tree)
        if made == tree:
            return entry.record
        self.changed += 1
        return json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    def purged(self, tree: Mapping[str, Any], revision: int = 0) -> Any:
        """A payload, or a whole context as a tree, without what is to be forgotten."""
        return self._purged(self.item.without(tree, revision))

    def _purged(self, tree: Mapping[str, Any]) -> Any:
        return self._settled(self.wording.taken_out(tree))

    def _settled(self, tree: Any) -> Any:
        """A tree in which blobs go by the digests that they have now, and no decision without words is in force."""
        if isinstance(tree, str):
            return self.digests.get(tree, tree)
        if isinstance(tree, list):
            return [self._settled(inner) for inner in tree]
        if not isinstance(tree, dict):
            return tree
        tree = {key: self._settled(inner) for key, inner in tree.items()}
        return {**tree, "status": "dropped"} if tree.get("decision") == MARK else tree


def purged_evidence(content: bytes, wording: Wording) -> bytes:
    """A blob without the words: each of its lines is JSON, or else text."""
    return b"".join(_line(line, wording.taken_out) for line in content.splitlines(keepends=True))


def _line(line: bytes, taken_out: Callable[[Any], Any]) -> bytes:
    try:
        tree = json.loads(line)
    except ValueError:
        text = line.decode("utf-8", "surrogateescape")
        return str(taken_out(text)).encode("utf-8", "surrogateescape")
    made = taken_out(tree)
    if made is tree:
        return line
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
