"""YAML that people and agents have written by hand into a run's records: what of it can be read, where not all can."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
_UNDER = "value"
_MOST_PARTS = 5_000


@dataclass(slots=True)
class Record:
    """What could be read.

    tree    the values; a line of "key: value" whose value is no YAML is text
    broken  what could not: first and last line, counted from 1, and why
    parts   how many of it were read by themselves
    places  the first and last line of each item of a list that was read item by item, by the list's name
    """

    tree: Mapping[str, Any]
    broken: list[tuple[int, int, str]] = field(default_factory=list)
    places: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    parts: int = 0

    def load(self, text: str) -> dict[str, Any]:
        """A part that is read by itself; BadYaml after as many of them as nobody writes by hand."""
        self.parts += 1
        if self.parts > _MOST_PARTS:
            raise BadYaml(f"more than {_MOST_PARTS:,} parts, and damaged")
        return guarded_yaml.load(text)


def load(text: str) -> dict[str, Any]:
    """The mapping that a record holds; BadYaml as `guarded_yaml.load`, but not for what a hand slips on: marks of
    documents around it, tabs at the ends of lines, control characters.
    """
    return guarded_yaml.load(tidied(text))


def tidied(text: str) -> str:
    """A record without what says nothing and is no YAML; its lines stay where they are."""
    text = without_control(text.removeprefix("\ufeff"))
    lines = [_without_tabs_at_end(line) for line in text.split("\n")]
    bounds = [place for place, line in enumerate(lines) if _BOUND.match(line)]
    parts = [lines[first + 1 : last] for first, last in zip([-1, *bounds], [*bounds, len(lines)], strict=True)]
    if bounds and sum(any(line.strip() and not line.lstrip().startswith("#") for line in part) for part in parts) < 2:
        for place in bounds:
            lines[place] = ""
    return "\n".join(lines)


def _without_tabs_at_end(line: str) -> str:
    bare = line.rstrip(" \t")
    return bare if "\t" in line[len(bare) :] else line


def without_control(text: str) -> str:
    """A text with a blank for each control character, and for what only some programs take for the end of a line."""
    return _UNSEEN.sub(" ", text)


def words_at(text: str, broken: Sequence[tuple[int, int, str]]) -> list[tuple[int, str]]:
    """The lines of a text that could not be read, each part with the number of its first one."""
    lines = text.split("\n") if broken else []
    return [(first, "\n".join(lines[first - 1 : last])) for first, last, _ in broken]


def salvage(text: str) -> Record:
    """What can be read of a record: all of it, or those of its keys and items that are YAML. BadYaml where none is."""
    text = tidied(text)
    try:
        return Record(guarded_yaml.load(text))
    except BadYaml:
        made = Record({})
        made.tree = _mapping(made, [(number, line) for number, line in enumerate(text.split("\n"), start=1)])
        if not any(value not in (None, "", [], {}) for value in made.tree.values()):
            raise
        return made


_Lines = Sequence[tuple[int, str]]


def _value(made: Record, lines: _Lines, name: str = "", level: int = 1) -> Any:
    """The value that indented lines are; None, and noted, where they are nothing that can be read."""
    filled = [(number, line) for number, line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not filled:
        return None
    try:
        return made.load("\n".join((f"{_UNDER}:", *(line for _, line in lines))))[_UNDER]
    except (BadYaml, KeyError) as error:
        if level < guarded_yaml.MAX_DEPTH and _ITEM.match(filled[0][1]):
            return _list(made, lines, name, level)
        if level < guarded_yaml.MAX_DEPTH and _KEY.match(filled[0][1]) and len(lines) > 1:
            return _mapping(made, lines, level)
        if len(filled) == 1 and (said := _plain(filled[0][1])):
            return said
        made.broken.append((filled[0][0], filled[-1][0], getattr(error, "what", "no value")))
        return None


def _plain(text: str) -> str:
    """A line that was meant as text, "" for one that was not."""
    text = text.strip()
    named = _KEY.match(text)
    if any(part[:1] in ("[", "{", "&", "*", "!", "|", ">") for part in (text, named["rest"].strip() if named else "")):
        return ""
    return text[1:-1] if len(text) > 1 and text[0] in "'\"" and text[0] == text[-1] else text


def _list(made: Record, lines: _Lines, name: str, level: int) -> list[Any]:
    items, places = [], []
    for item in _split(lines, _ITEM):
        count = len(made.broken)
        value = _value(made, [(item[0][0], item[0][1].replace("-", " ", 1)), *item[1:]], level=level + 1)
        if value is not None or len(made.broken) == count:
            items.append(value)
            places.append(_place(item))
    if name:
        made.places[name] = places
    return items


def _mapping(made: Record, lines: _Lines, level: int = 0) -> dict[str, Any]:
    top = not level
    tree: dict[str, Any] = {}
    for part in _split(lines, _KEY, 0 if top else -1):
        found = _KEY.match(part[0][1])
        if found is None:
            continue
        if found["key"] in tree:
            made.broken.append((part[0][0], part[-1][0], f"the key {found['key']!r} twice"))
            continue
        try:
            tree[found["key"]] = value = next(iter(made.load(_outdented(part)).values()))
            if top and isinstance(value, list) and len(items := _split(part[1:], _ITEM)) == len(value):
                made.places[found["key"]] = [_place(item) for item in items]
        except (BadYaml, StopIteration) as error:
            rest = found["rest"].strip()
            if not rest or rest[0] in "|>":
                tree[found["key"]] = _value(made, part[1:], found["key"] if top else "", level + 1)
            elif (said := _plain(rest)) and not any(line.strip() for _, line in part[1:]):
                tree[found["key"]] = said
            else:
                made.broken.append((part[0][0], part[-1][0], getattr(error, "what", "no value")))
    return tree


def _place(lines: _Lines) -> tuple[int, int]:
    """The first line, and the last one that says something."""
    return lines[0][0], next(number for number, line in reversed(lines) if line.strip() and not line.startswith("#"))


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


def _outdented(part: _Lines) -> str:
    depth = len(part[0][1]) - len(part[0][1].lstrip())
    return "\n".join(line[depth:] for _, line in part)
