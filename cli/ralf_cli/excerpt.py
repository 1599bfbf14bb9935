"""What `--section`, `--brief` and `--max-tokens` leave of a context's JSON, as they do of its text."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

_ALWAYS = ("route", "revision")
_OF_SECTION = {
    "goal": ("goal",),
    "work": ("active_work", "unresolved", "since"),
    "decisions": ("decisions",),
    "facts": ("facts",),
    "history": ("checkpoints", "history"),
}
_NOT_BRIEF = ("checkpoints", "history", "facts", "folded")
_HEADING = "\n### "

_Unit = tuple[tuple[str, ...], int]
"""An item that can go: the keys that lead to its list, or to a section of the history, and its number there."""


def of(tree: Mapping[str, Any], *, section: str | None, brief: bool, max_tokens: int | None) -> dict[str, Any]:
    """The keys of a context's tree (`output.context_as_json`) that are asked for, in at most so many tokens.

    section     the keys that this part of the text is made of, beside route and revision
    brief       without history and facts
    max_tokens  o200k_base tokens of what is printed. What matters least goes first, as in the text: history, facts,
                retired decisions, then active ones, work, rules, at last the goal. `left_out` says how many of each

    {} where not even route and revision have room.
    """
    kept = dict(tree)
    if section is not None:
        kept = {key: tree[key] for key in (*_ALWAYS, *_OF_SECTION[section])}
    elif brief:
        kept = {key: value for key, value in tree.items() if key not in _NOT_BRIEF}
    return kept if max_tokens is None else _within(kept, max_tokens)


def printed(tree: Mapping[str, Any]) -> str:
    """A tree as it is printed."""
    return json.dumps(tree, ensure_ascii=False, indent=2, default=str)


def _within(tree: dict[str, Any], most: int) -> dict[str, Any]:
    from ralf.text import tokens

    def fits(made: Mapping[str, Any]) -> bool:
        return tokens.count(printed(made)) <= most

    if fits(tree):
        return tree
    units = list(_units(tree))
    least, all_ = 1, len(units)
    while least < all_:
        middle = (least + all_) // 2
        if fits(_without(tree, units[:middle])):
            all_ = middle
        else:
            least = middle + 1
    made = _without(tree, units[:least])
    if fits(made):
        return made
    bare = {key: tree[key] for key in _ALWAYS} | {"left_out": {"items": len(units)}}
    return bare if fits(bare) else {}


def _units(tree: Mapping[str, Any]) -> Iterator[_Unit]:
    """What can go, in the order in which it goes; of each list the oldest item first."""
    yield from ((("history",), number) for number in range(_sections(tree.get("history", "")), 0, -1))
    facts = tree.get("facts", {})
    for key in sorted(facts, key=lambda key: key == "requests"):
        if isinstance(facts[key], list):
            yield from ((("facts", key), number) for number in range(len(facts[key])))
    for key in ("checkpoints", "foreign_notes"):
        yield from (((key,), number) for number in range(len(tree.get(key, ()))))
    ranks = [_rank(item) for item in tree.get("decisions", ())]
    for rank in (0, 1):
        yield from ((("decisions",), number) for number, found in enumerate(ranks) if found == rank)
    work = tree.get("active_work", {})
    for key, value in work.items():
        if isinstance(value, list):
            yield from ((("active_work", key), number) for number in range(len(value)))
    yield from ((("decisions",), number) for number, found in enumerate(ranks) if found > 1)
    yield from (((key,), -1) for key in ("since", "folded", "unresolved", "active_work", "goal") if tree.get(key))


def _rank(decision: Mapping[str, Any]) -> int:
    """How long a decision stays: retired 0, active 1, a rule 2."""
    if decision.get("status", "active") != "active":
        return 0
    return 2 if decision.get("pinned") or decision.get("kind") == "rule" else 1


def _without(tree: Mapping[str, Any], units: list[_Unit]) -> dict[str, Any]:
    """The tree without units, and how many of each key they were."""
    gone: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    for keys, number in units:
        gone[keys].add(number)
    made = dict(tree)
    for keys, numbers in gone.items():
        value = tree[keys[0]]
        if keys == ("history",):
            made["history"] = _HEADING.join(value.split(_HEADING)[: _sections(value) - len(numbers)])
        elif -1 in numbers:
            made[keys[0]] = type(value)()
        elif len(keys) == 1:
            made[keys[0]] = [item for number, item in enumerate(value) if number not in numbers]
        elif not isinstance(made[keys[0]], dict) or made[keys[0]]:
            items = value[keys[1]]
            made[keys[0]] = made[keys[0]] | {keys[1]: [one for n, one in enumerate(items) if n not in numbers]}
    left = Counter(keys[0] for keys, _ in units)
    return made | {"left_out": dict(sorted(left.items()))}


def _sections(history: str) -> int:
    return len(history.split(_HEADING)) if history else 0
