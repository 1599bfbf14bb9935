"""Pumps of a regular expression: short texts, made from its own parse tree, whose repetition makes it backtrack."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterable, Iterator
from re import _constants as c, _parser as parser  # type: ignore[attr-defined]
from typing import Any

_MOST_BODIES = 80
_LONGEST = 60  # characters of a pump
_WORD = "aA0_-"
_COMMON = (
    *(" ", "\n", "\t", "a", "A", "0", "_", "-", ".", ",", ":", "=", '"', "'", "`", "*", "#", "(", "[", "<", "/", "\\"),
    *("|", "…", "é", "a ", "a.", "a\n", " \n", "\n\n", "A0", "aA", "a_", "a-", "a:", "- ", "**", "to ", "\\n"),
)
"""Pumps that are tried with every expression."""

_CATEGORIES = {
    c.CATEGORY_DIGIT: "07",
    c.CATEGORY_NOT_DIGIT: "a-",
    c.CATEGORY_SPACE: " \n\t",
    c.CATEGORY_NOT_SPACE: "a0-.",
    c.CATEGORY_WORD: "aA0_",
    c.CATEGORY_NOT_WORD: " .-,",
}
_REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)


def cases(pattern: str, flags: int) -> list[tuple[str, str]]:
    """Pumps of an expression, each behind a text that leads up to where it is repeated; the same at every call."""
    tree, dice = _parsed(pattern, flags), random.Random(repr(pattern))
    made: dict[tuple[str, str], None] = {}
    bodies = list(_bodies(tree, "", dice))
    for beginning, body in bodies[:_MOST_BODIES]:
        pumps = {_written(body, dice)[:_LONGEST] for _ in range(3)} | {beginning[-_LONGEST:], *_first(body)}
        made.update(dict.fromkeys((start, pump) for start in (beginning, "") for pump in sorted(pumps)))
    wholes = [_written(tree, dice) for _ in range(4)]
    words = [f"{word}{end}" for word in re.findall(r"[A-Za-z0-9_-]{2,40}", pattern)[:40] for end in ("", " ", "\n")]
    for beginning in ("", wholes[0][: len(wholes[0]) // 2], wholes[1]):
        for pump in (*_COMMON, *wholes, *words):
            made[beginning[:200], pump[:_LONGEST]] = None
    return [(beginning, pump) for beginning, pump in made if pump]


def _parsed(pattern: str, flags: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parser.parse(pattern, flags & ~re.TEMPLATE if hasattr(re, "TEMPLATE") else flags)


def _children(op: Any, value: Any) -> Iterator[Any]:
    if op in _REPEATS:
        yield value[2]
    elif op is c.SUBPATTERN:
        yield value[3]
    elif op is c.BRANCH:
        yield from value[1]
    elif op in (c.ASSERT, c.ASSERT_NOT):
        yield value[1]
    elif op is c.ATOMIC_GROUP:
        yield value
    elif op is c.GROUPREF_EXISTS:
        yield from filter(None, value[1:])


def _bodies(tree: Iterable[Any], before: str, dice: random.Random) -> Iterator[tuple[str, Any]]:
    """What is repeated anywhere in a tree, and each of its branches, with a text that leads up to it."""
    for op, value in tree:
        for child in _children(op, value):
            if op in _REPEATS or op is c.BRANCH:
                yield before[-200:], child
            yield from _bodies(child, before, dice)
        before += _one(op, value, dice, {})


def _first(body: Any) -> list[str]:
    """Some characters with which a body may begin."""
    for op, value in body:
        if op is c.IN:
            return _of_class(value)[:6]
        if op is c.SUBPATTERN:
            return _first(value[3])
        if op is c.ANY:
            return [" ", "a"]
        break
    return []


def _of_class(items: Any) -> list[str]:
    found: list[str] = []
    negated = False
    for op, value in items:
        if op is c.NEGATE:
            negated = True
        elif op is c.LITERAL:
            found.append(chr(value))
        elif op is c.RANGE:
            found += [chr(value[0]), chr(value[1])]
        elif op is c.CATEGORY:
            found += _CATEGORIES.get(value, "a")
    if negated:
        found = [character for character in f"{_WORD} .\n" if character not in found] or ["~"]
    return list(dict.fromkeys(found))


def _written(tree: Iterable[Any], dice: random.Random, groups: dict[int, str] | None = None) -> str:
    """A text that the tree is likely to match."""
    known = groups if groups is not None else {}
    return "".join(_one(op, value, dice, known) for op, value in tree)


def _one(op: Any, value: Any, dice: random.Random, groups: dict[int, str]) -> str:
    if op is c.LITERAL:
        return chr(value)
    if op is c.NOT_LITERAL:
        return dice.choice([character for character in "a0 -" if ord(character) != value])
    if op is c.ANY:
        return dice.choice("a0 ")
    if op is c.IN:
        return dice.choice(_of_class(value))
    if op in _REPEATS:
        least, most, body = value
        times = dice.randint(least, max(least, min(int(most), least + 3)))
        return "".join(_written(body, dice, groups) for _ in range(min(times, 200)))
    if op is c.SUBPATTERN:
        made = _written(value[3], dice, groups)
        if value[0] is not None:
            groups[value[0]] = made
        return made
    if op is c.BRANCH:
        return _written(dice.choice(value[1]), dice, groups)
    if op is c.ATOMIC_GROUP:
        return _written(value, dice, groups)
    if op is c.GROUPREF:
        return groups.get(value, "")
    return ""  # places and assertions
