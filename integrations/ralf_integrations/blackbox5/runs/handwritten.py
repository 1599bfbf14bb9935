"""YAML that people and agents have written by hand into a run's records: what of it can be read, where not all can."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ralf.document import guarded_yaml
from ralf.document.guarded_yaml import BadYaml

_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
_BOUND = re.compile(r"(?:---|\.\.\.)(?:\s+#.*|\s*)$")
_KEY = re.compile(
    r"\A(?P<indent>\s*+)(?P<mark>['\"]?)(?P<key>[^\s'\"#:\[\]{}-][^'\"#:]{0,127}?)(?P=mark)\s{0,128}+:(?P<rest>\s.*|)$"
)
_ITEM = re.compile(r"\A(?P<indent>\s*+)-(?P<rest>\s.*|)$")
_FLOW = ("[", "{", "&", "*", "!", "|", ">")
_UNDER = "value"
_MOST_PARTS = 5_000

_Lines = Sequence[tuple[int, str]]


@dataclass(slots=True)
class Record:
    """What could be read.

    tree    the values; a line of "key: value" whose value is no YAML is text
    broken  what could not: first and last line, counted from 1, and why
    """

    tree: Mapping[str, Any]
    broken: list[tuple[int, int, str]] = field(default_factory=list)
    parts: int = 0

    def load(self, text: str) -> dict[str, Any]:
        """A part that is read by itself; BadYaml after as many of them as nobody writes by hand."""
        self.parts += 1
        if self.parts > _MOST_PARTS:
            raise BadYaml(f"more than {_MOST_PARTS:,} parts, and damaged")
        return guarded_yaml.load(text)


def load(text: str) -> Record:
    """What can be read of a record: all of it, or those of its keys and items that are YAML. BadYaml where none is."""
    text = tidied(text)
    try:
        return Record(guarded_yaml.load(text))
    except BadYaml:
        made = Record({})
        tree = _value(made, list(enumerate(text.split("\n"), start=1)), 0)
        if not isinstance(tree, dict) or not any(value not in (None, "", [], {}) for value in tree.values()):
            raise
        made.tree = tree
        return made


def tidied(text: str) -> str:
    """A record without what says nothing and is no YAML: marks of documents around it, tabs at the ends of lines,
    control characters. Its lines stay where they are.
    """
    lines = [line.rstrip() if line.endswith(("\t", " ")) else line for line in without_control(text).split("\n")]
    bounds = [place for place, line in enumerate(lines) if _BOUND.match(line)]
    parts = [lines[first + 1 : last] for first, last in zip([-1, *bounds], [*bounds, len(lines)], strict=True)]
    if bounds and sum(bool(_filled(list(enumerate(part)))) for part in parts) < 2:
        for place in bounds:
            lines[place] = ""
    return "\n".join(lines)


def without_control(text: str) -> str:
    """A text with a blank for each control character, and for what only some programs take for the end of a line."""
    return _UNSEEN.sub(" ", text.removeprefix("\ufeff"))


def items_at(text: str, key: str) -> list[tuple[int, int]]:
    """The first and last line of each item of a list that stands below an outermost key."""
    lines = list(enumerate(tidied(text).split("\n"), start=1))
    for part in _split(lines, _KEY, 0):
        found = _KEY.match(part[0][1])
        if found and found["key"] == key:
            filled = (_filled(item) for item in _split(part[1:], _ITEM))
            return [(item[0][0], item[-1][0]) for item in filled]
    return []


def _filled(lines: _Lines) -> list[tuple[int, str]]:
    return [(number, line) for number, line in lines if line.strip() and not line.lstrip().startswith("#")]


def _value(made: Record, lines: _Lines, level: int) -> Any:
    """What lines hold: as YAML, else each of their items or keys by itself, else the text of the only one."""
    filled = _filled(lines)
    if not filled:
        return None
    what = "no value"
    try:
        return made.load("\n".join((f"{_UNDER}:", *(f" {line}" for _, line in lines))))[_UNDER]
    except BadYaml as error:
        what = error.what
    if level < guarded_yaml.MAX_DEPTH and _ITEM.match(filled[0][1]):
        return list(_items(made, lines, level))
    if level < guarded_yaml.MAX_DEPTH and _KEY.match(filled[0][1]) and len(lines) > 1:
        return _mapping(made, lines, level)
    said = _plain(filled[0][1]) if len(filled) == 1 else ""
    if not said:
        made.broken.append((filled[0][0], filled[-1][0], what))
    return said or None


def _items(made: Record, lines: _Lines, level: int) -> Iterator[Any]:
    for (number, first), *rest in _split(lines, _ITEM):
        noted = len(made.broken)
        value = _value(made, [(number, first.replace("-", " ", 1)), *rest], level + 1)
        if value is not None or len(made.broken) == noted:
            yield value


def _mapping(made: Record, lines: _Lines, level: int) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for part in _split(lines, _KEY):
        found = _KEY.match(part[0][1])
        if found is None:
            continue
        key, rest, depth = found["key"], found["rest"].strip(), len(found["indent"])
        what = "no value"
        value: Any = None
        try:
            value = next(iter(made.load("\n".join(line[depth:] for _, line in part)).values()))
        except (BadYaml, StopIteration) as error:
            what = getattr(error, "what", what)
            if not rest or rest[0] in "|>":
                value = _value(made, part[1:], level + 1)
            elif _filled(part[1:]) or not (value := _plain(rest)):
                made.broken.append((part[0][0], part[-1][0], what))
                continue
        if key in tree:
            made.broken.append((part[0][0], part[-1][0], f"the key {key!r} twice"))
        else:
            tree[key] = value
    return tree


def _plain(text: str) -> str:
    """A line that was meant as text, "" for one that was not."""
    text = text.strip()
    named = _KEY.match(text)
    if text.startswith(_FLOW) or (named and named["rest"].strip().startswith(_FLOW)):
        return ""
    return text[1:-1] if len(text) > 1 and text[0] in "'\"" and text[0] == text[-1] else text


def _split(lines: _Lines, begins: re.Pattern[str], depth: int = -1) -> list[list[tuple[int, str]]]:
    """Lines in parts, each from one that begins so, at a depth, -1 for that of the first one, down to the next."""
    parts: list[list[tuple[int, str]]] = []
    for number, line in lines:
        found = None if line.lstrip().startswith("#") else begins.match(line)
        if found is not None and depth < 0:
            depth = len(found["indent"])
        if found is not None and len(found["indent"]) == depth:
            parts.append([])
        if parts:
            parts[-1].append((number, line))
    return parts
