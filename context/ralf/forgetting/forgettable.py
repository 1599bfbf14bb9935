"""What is to be forgotten: the words of a decision, of a checkpoint's section, or a text that a person names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ralf import state as states
from ralf.context import BODY
from ralf.errors import NotFound, UsageError
from ralf.forgetting.purge import Item
from ralf.forgetting.wording import MARK, Wording, is_telling, weight
from ralf.journal import Record, understood
from ralf.model import Decision, Tombstone
from ralf.past import history
from ralf.project import Project
from ralf.store import Digest
from ralf.tombstones import tombstone
from ralf.tree import to_tree

LEAST_TEXT = 4
"""Characters that count, which a text has that is forgotten wherever it stands."""

_LABEL = re.compile(r"^[-> ]*(?:\*\*[^*\n]{1,40}:\*\* *)?")


class Target(NamedTuple):
    """What is to be forgotten.

    item      its place in its route's records
    wording   its words, wherever they stand
    stones    what keeps it from being extracted again
    evidence  blobs that go with it
    """

    item: Item
    wording: Wording
    stones: tuple[Tombstone, ...] = ()
    evidence: frozenset[Digest] = frozenset()


def of_text(route: str, text: str) -> Target:
    """A text, whatever it is part of; UsageError where it is so short that it stands everywhere."""
    if weight(text) < LEAST_TEXT:
        what = f"a text to be forgotten has at least {LEAST_TEXT} letters or digits: it goes wherever it stands"
        raise UsageError(route, what, "name more of it")
    return Target(Item(), Wording([text], within_words=True))


def of_item(project: Project, route: str, label: str) -> Target:
    """The words of a decision or a checkpoint's section, in all versions of it that there have been.

    NotFound where the route has none of this label. DamagedJournal.
    """
    records = list(history.records(project, route))
    records = [each for each in records if not each[1].foreign] or records  # a label is one of ours, where any are
    state = states.load(project, route)
    present = to_tree(state.context) if state is not None else {}
    with understood(route):
        found = _section(label, records, present) if label.startswith("cp-") else _decision(label, records, present)
    if found is None:
        raise NotFound(route, f"has no {label}", f"ralf context show {route}")
    return found


def _decision(label: str, records: Iterable[tuple[str, Record]], present: Mapping[str, Any]) -> Target | None:
    trees = [tree for payload in (*(record.payload for _, record in records), present) for tree in _dicts(payload)]
    known = False
    said: dict[str, Decision] = {}
    others: set[str] = set()
    for tree in trees:
        if str(tree.get("id", "")).casefold() == label.casefold():
            known = known or "decision" in tree or "said" in tree
            text = str(tree.get("decision", ""))
            if text and text != MARK:
                said.setdefault(text, Decision(str(tree["id"]), str(tree.get("kind", "decision")), decision=text))
            others |= {str(tree.get("rationale", "")), *map(str, tree.get("alternatives", ()))}
        at = [str(key) for key in tree.get("at", ())]
        if at == ["decisions", label, "decision"]:
            for text in filter(None, _values(tree)):
                said.setdefault(text, Decision(label, decision=text))
        elif at[:2] == ["decisions", label] and len(at) > 2:
            others |= set(_values(tree))
    if not known:
        return None
    words = [*said, *filter(is_telling, others - {MARK})]
    newest = list(said.values())[-1:]
    return Target(Item(label), Wording(words), tuple(map(tombstone, newest)))


def _section(label: str, records: Iterable[tuple[str, Record]], present: Mapping[str, Any]) -> Target | None:
    number = Item(label).number
    revisions, digests = set(), set()
    texts: list[str] = []
    for name, record in records:
        payload = record.payload
        if name == label:
            revisions.add(record.revision)
            digests.add(str(payload.get("evidence", "")))
        if name == label or payload.get("refines") == label:
            texts += [str(payload.get("title", "")), str(payload.get("text", ""))]
        texts += [text for tree in _dicts(payload) if _is_of_section(tree, number) for text in _values(tree)]
    trees = [tree for payload in (*(record.payload for _, record in records), present) for tree in _dicts(payload)]
    sections = [tree for tree in trees if number is not None and tree.get("number") == number and "text" in tree]
    if not revisions and not sections:
        return None
    texts += [str(tree.get(key, "")) for tree in sections for key in ("title", "text")]
    texts = [text for text in texts if text != MARK]
    lines = [line for text in texts for line in text.split("\n") if is_telling(line) and not line.startswith("**")]
    return Target(
        Item(label, frozenset(revisions)), Wording([*lines, *map(_unlabelled, lines)]), (), frozenset(digests)
    )


def _dicts(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Every mapping in a tree."""
    if isinstance(tree, Mapping):
        yield tree
        for inner in tree.values():
            yield from _dicts(inner)
    elif isinstance(tree, (list, tuple)):
        for inner in tree:
            yield from _dicts(inner)


def _is_of_section(change: Mapping[str, Any], number: int | None) -> bool:
    """Whether a change by hand is one of a section's words."""
    at = [str(key) for key in change.get("at", ())]
    return at[:2] == [BODY, "sections"] and at[2:3] == [str(number)] and at[-1:] in (["title"], ["text"])


def _values(change: Mapping[str, Any]) -> list[str]:
    """What a change by hand puts in a place, or what else was said of it (`unresolved`)."""
    value = change.get("value", change.get("also", ()))
    values = value if isinstance(value, (list, tuple)) else [value]
    return [inner for inner in values if isinstance(inner, str)]


def _unlabelled(line: str) -> str:
    """A line of a section without what stands before its words: `- **Asked:** `."""
    return _LABEL.sub("", line)
