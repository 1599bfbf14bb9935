"""The target of a forget: the words of a decision, of a checkpoint's section, or a text that a person names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ralf.document.tree import to_tree
from ralf.errors import NotFound, UsageError
from ralf.maintenance.purge import LEAST, Wording, is_telling, weight
from ralf.model import BODY, Decision, Tombstone
from ralf.project import Project
from ralf.redact.marks import MARKER
from ralf.route import history
from ralf.route.cap import tombstone
from ralf.route.load import load_state
from ralf.storage.journal import Digest, understood
from ralf.text.cleaning import MARK, clean
from ralf.text.patterns import regex

LEAST_TEXT = 4
"""Characters that count, which a text has that is forgotten wherever it stands."""

_OF_A_DECISION = ("decision", "rationale", "alternatives")

_OF_A_SECTION = ("title", "text", "key_events", "entries", "taken_back")

_SAID = (*_OF_A_DECISION, *_OF_A_SECTION, "value", "also")

_LABEL = regex(r"^[-> ]*(?:\*\*[^*\n]{1,40}:\*\* *)?")


class Item(NamedTuple):
    """A decision or a checkpoint of a route: what is forgotten in its records however short its words are.

    label      DEC-003 or cp-002; "" for none
    revisions  of the records that are the checkpoint's own
    """

    label: str = ""
    revisions: frozenset[int] = frozenset()

    @property
    def number(self) -> int | None:
        """The number of a checkpoint's section; None for a decision."""
        digits = self.label.removeprefix("cp-")
        return int(digits) if digits != self.label and digits.isdecimal() else None

    def without(self, payload: Mapping[str, Any], revision: int) -> Any:
        """A record's payload without the item's own words, and with no decision in force that has no words."""
        return self._without(payload, is_own=self._is_of_record(payload, revision))

    def parts(self, payload: Mapping[str, Any], revision: int) -> Iterator[Mapping[str, Any]]:
        """The mappings of a record's payload that are about the item."""
        if self._is_of_record(payload, revision):
            yield payload
        yield from (part for part in _parts_of(payload) if isinstance(part, Mapping) and self._is_own(part))

    def _without(self, tree: Any, *, is_own: bool = False) -> Any:
        if isinstance(tree, list):
            return [self._without(inner) for inner in tree]
        if not isinstance(tree, Mapping):
            return tree
        made = {key: self._without(value) for key, value in tree.items()}
        if is_own or self._is_own(tree):
            for key in _SAID:
                if made.get(key):
                    made[key] = [MARK] if key == "also" else [] if isinstance(made[key], list) else MARK
        return made | {"status": "dropped"} if made.get("decision") == MARK else made

    def _is_of_record(self, payload: Mapping[str, Any], revision: int) -> bool:
        return bool(self.label) and (
            revision in self.revisions or self.label in (payload.get("refines"), *payload.get("checkpoints", ()))
        )

    def _is_own(self, tree: Mapping[str, Any]) -> bool:
        """Whether a mapping is the item, or a change of it by hand."""
        at = [str(key) for key in tree.get("at") or ()]
        if not self.label:
            return False
        if self.number is None:
            if at:
                return at[:2] == ["decisions", self.label] and at[2:3] > [""] and at[2] in _OF_A_DECISION
            named = str(tree.get("id", "")).casefold() == self.label.casefold()
            return named and any(key in tree for key in (*_OF_A_DECISION, "said"))
        if at:
            return at[:3] == [BODY, "sections", str(self.number)] and at[-1] in ("title", "text")
        return tree.get("number") == self.number and "text" in tree


class Target(NamedTuple):
    """What a forget removes.

    item      its place in its route's records
    wording   its words, wherever they stand
    stones    what keeps it from being extracted again
    evidence  blobs that go with it
    """

    item: Item
    wording: Wording
    stones: tuple[Tombstone, ...] = ()
    evidence: frozenset[Digest] = frozenset()


def of_text(route: str, text: str, redacted: Callable[[str], str]) -> Target:
    """A text, whatever it is part of, as it is and as it was stored; and each line of it that is long enough to be told
    apart: records keep lines of an output one by one. UsageError where it is so short that it stands everywhere.
    """
    if weight(text) < LEAST_TEXT:
        what = f"a text to be forgotten has at least {LEAST_TEXT} letters or digits: it goes wherever it stands"
        raise UsageError(route, what, "name more of it")
    stored = clean(text)
    parts = MARKER.sub("\n", made).split("\n") if (made := redacted(stored)) != stored else []
    lines = [line for line in (*text.splitlines(), *stored.splitlines(), *parts) if weight(line) >= LEAST]
    return Target(Item(), Wording([text, stored, *lines], within_words=True))


def of_item(project: Project, route: str, label: str) -> Target:
    """The words of a decision or a checkpoint's section, in all versions of it that there have been.

    NotFound where the route has none of this label. DamagedJournal.
    """
    records = list(history.records(project, route))
    own = [record for name, record in records if name == label]
    item = Item(label, frozenset(record.revision for record in own))
    state = load_state(project, route)
    now = [(to_tree(state.context), 0)] if state is not None else []
    with understood(route):
        trees = [(record.payload, record.revision) for _, record in records] + now
        parts = [part for payload, revision in trees for part in item.parts(payload, revision)]
        if not parts:
            raise NotFound(route, f"has no {label}", f"ralf show {route}")
        if item.number is not None:
            lines = [line for part in parts for text in _texts(part) for line in text.split("\n")]
            lines = [line for line in lines if is_telling(line) and not line.startswith("**")]
            evidence = frozenset(str(record.payload.get("evidence", "")) for record in own)
            words = [*lines, *(_LABEL.sub("", line) for line in lines)]  # without `- **Asked:** `, too
            return Target(item, Wording(words), evidence=evidence)
        named = [part for part in parts if part.get("decision") not in (None, "", MARK)]
        changed = [part for part in parts if str(part.get("at", ("",))[-1]) == "decision"]
        texts = [str(part["decision"]) for part in named] + [text for part in changed for text in _texts(part)]
        others = filter(is_telling, (text for part in parts for text in _texts(part)))
    stones = [tombstone(_of_tree(label, texts[-1], named))] if texts else []
    return Target(item, Wording([*texts, *others]), tuple(stones))


def _of_tree(label: str, text: str, parts: list[Mapping[str, Any]]) -> Decision:
    """The decision under which a tombstone lies."""
    tree: Mapping[str, Any] = next(iter(parts[-1:]), {})
    signed: Mapping[str, Any] = next((part for part in reversed(parts) if part.get("clone")), {})
    return Decision(
        str(tree.get("id", label)),
        str(tree.get("kind", "decision")),
        decision=text,
        timestamp=str(signed.get("timestamp", "")),
        clone=str(signed.get("clone", "")),
    )


def _texts(part: Mapping[str, Any]) -> list[str]:
    """The words of a mapping that is about an item."""
    said = (inner for key in _SAID for inner in _parts_of(part.get(key)))
    return [text for text in said if isinstance(text, str) and text != MARK]


def _parts_of(tree: Any) -> Iterator[Any]:
    """A tree, and all that is in it."""
    yield tree
    for inner in tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, (list, tuple)) else ():
        yield from _parts_of(inner)
