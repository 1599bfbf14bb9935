"""YAML that people and agents have written by hand into a run's records: what of it can be read, where not all can."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from ralf.document import guarded_yaml
from ralf.document.guarded_yaml import BadYaml

_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
_BEHIND = re.compile(r"(?:---|\.\.\.)?\s*(?:#.*)?$")
_KEY = re.compile(r"(?P<mark>['\"]?)(?P<key>[^\s'\"#:\[\]{}-][^'\"#:]{0,127}?)(?P=mark)\s{0,9}+:(?=\s|$)")
_ITEM = re.compile(r"\s*-(?=\s|$)")


class Record(NamedTuple):
    """What could be read: the values, and what could not, first and last line, counted from 1, and why."""

    tree: dict[str, Any]
    broken: list[tuple[int, int, str]]


def load(text: str, *, level: int = 1) -> Record:
    """What can be read of a record: all of it, or those of its keys, at any depth, and items of its lists that are
    YAML. BadYaml where none is.
    """
    text = tidied(text)
    try:
        return Record(guarded_yaml.load(text), [])
    except BadYaml as error:
        made = Record({}, [])
        for key, first, last in _keys(text) if level < guarded_yaml.MAX_DEPTH else ():
            _add(made, key, (first, last), text, level)
        if not any(made.tree.values()):
            raise error from None
        return made


def _add(made: Record, key: str, place: tuple[int, int], text: str, level: int) -> None:
    """Add what can be read of a key to what could be, and to what could not the rest."""
    first, last = place
    if key in made.tree:
        made.broken.append((first, last, f"the key {key!r} twice"))
        return
    try:
        made.tree.update(guarded_yaml.load(_block(text, first, last)))
    except BadYaml as error:
        items, inner = items_at(text, key), None
        for begin, end in items:
            try:
                item = guarded_yaml.load(f"value:\n{_block(text, begin, end)}")["value"]
                made.tree.setdefault(key, []).extend(item)
            except BadYaml as wrong:
                made.broken.append((begin, end, wrong.what))
        with suppress(BadYaml):
            inner = load(textwrap.dedent(_block(text, first + 1, last)), level=level + 1) if last > first else None
        if inner is not None and not items:
            made.tree[key] = inner.tree
            made.broken.extend((first + begin, first + end, what) for begin, end, what in inner.broken)
        elif not items:
            made.broken.append((first, last, error.what))


def tidied(text: str) -> str:
    """A record without what says nothing and is no YAML: marks of documents behind it, blanks at the ends of lines,
    control characters. Its lines stay where they are.
    """
    lines = [line.rstrip() for line in without_control(text).split("\n")]
    for place in reversed(range(len(lines))):
        if not _BEHIND.match(lines[place]):
            break
        lines[place] = ""
    return "\n".join(lines)


def without_control(text: str) -> str:
    """A text with a blank for each control character, and for what only some programs take for the end of a line."""
    return _UNSEEN.sub(" ", text.removeprefix("\ufeff"))


def items_at(text: str, key: str) -> list[tuple[int, int]]:
    """The first and last line of each item of a list that stands below an outermost key."""
    lines = tidied(text).split("\n")
    for begin, end in ((begin, end) for name, begin, end in _keys(text) if name == key):
        items = [number for number in range(begin + 1, end + 1) if _ITEM.match(lines[number - 1])]
        depths = [len(lines[number - 1]) - len(lines[number - 1].lstrip()) for number in items]
        firsts = [number for number, depth in zip(items, depths, strict=True) if depth == depths[0]]
        return list(zip(firsts, [_filled(lines, one - 1) for one in firsts[1:]] + [end], strict=False))
    return []


def _keys(text: str) -> Iterator[tuple[str, int, int]]:
    """The outermost keys of a record, each with its first and last line."""
    lines = tidied(text).split("\n")
    found = [(number, key) for number, line in enumerate(lines, start=1) if (key := _KEY.match(line))]
    ends = [number - 1 for number, _ in found[1:]] + [len(lines)]
    for (first, key), end in zip(found, ends, strict=False):
        yield key["key"], first, _filled(lines, end)


def _filled(lines: list[str], last: int) -> int:
    """The last line up to this one that is neither empty nor a comment."""
    return next((one for one in range(last, 1, -1) if lines[one - 1].strip()[:1] not in ("", "#")), 1)


def _block(text: str, first: int, last: int) -> str:
    return "\n".join(text.split("\n")[first - 1 : last])
