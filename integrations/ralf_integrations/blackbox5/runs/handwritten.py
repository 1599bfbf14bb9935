"""YAML that people and agents have written by hand into a run's records: what of it can be read, where not all can."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ralf.document import guarded_yaml
from ralf.document.guarded_yaml import BadYaml

_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
_BEHIND = re.compile(r"(?:---|\.\.\.)?\s*(?:#.*)?$")
_PART = re.compile(
    r"(?P<indent>\s*+)(?:-|(?P<mark>['\"]?)(?P<key>[^\s'\"#:\[\]{}-][^'\"#:]{0,127}?)(?P=mark)\s{0,128}+:)(?=\s|$)"
)
_FLOW = ("[", "{", "&", "*", "!", "|", ">")

_Lines = Sequence[tuple[int, str]]


@dataclass(slots=True)
class Record:
    """What could be read.

    tree    the values; a line of "key: value" whose value is no YAML is text
    broken  what could not: first and last line, counted from 1, and why
    """

    tree: Mapping[str, Any]
    broken: list[tuple[int, int, str]] = field(default_factory=list)


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
    for part in _parts(_filled(enumerate(tidied(text).split("\n"), start=1))):
        found = _PART.match(part[0][1])
        if found and found["key"] == key:
            return [(item[0][0], item[-1][0]) for item in _parts(part[1:])]
    return []


def _value(made: Record, lines: _Lines, level: int) -> Any:
    """What lines hold: as YAML, else each of their items or keys by itself, else the text of the only one."""
    if not (filled := _filled(lines)):
        return None
    try:
        return guarded_yaml.load("\n".join(("value:", *(f" {line}" for _, line in lines))))["value"]
    except BadYaml as error:
        what = error.what
    found = _PART.match(filled[0][1])
    if found and level < guarded_yaml.MAX_DEPTH and (not found["key"] or len(filled) > 1 or not level):
        return _listed(made, _parts(filled), level)
    return _text(made, filled, what)


def _listed(made: Record, parts: Sequence[_Lines], level: int) -> Any:
    items: list[Any] = []
    tree: dict[str, Any] = {}
    for (number, line), *rest in parts:
        found = _PART.match(line)
        key, inline = found["key"] if found else None, line[found.end() :] if found else line
        inner = [(number, inline if key else f"{' ' * (len(line) - len(inline))}{inline}"), *rest]
        noted = len(made.broken)
        is_text = key is not None and _PART.match(inline.strip()) is not None
        value = _text(made, _filled(inner), "no value") if is_text else _value(made, inner, level + 1)
        if key in tree:
            made.broken.append((number, inner[-1][0], f"the key {key!r} twice"))
        elif key is not None and (value is not None or len(made.broken) == noted):
            tree[key] = value
        elif value is not None:
            items.append(value)
    return tree or items


def _text(made: Record, lines: _Lines, what: str) -> str | None:
    """A line that was meant as text; None, and noted, for what was not."""
    text = lines[0][1].strip()
    named = _PART.match(text)
    if len(lines) > 1 or text.startswith(_FLOW) or (named and text[named.end() :].strip().startswith(_FLOW)):
        made.broken.append((lines[0][0], lines[-1][0], what))
        return None
    return text[1:-1] if len(text) > 1 and text[0] in "'\"" and text[0] == text[-1] else text


def _filled(lines: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    return [(number, line) for number, line in lines if line.strip() and not line.lstrip().startswith("#")]


def _parts(lines: _Lines) -> list[list[tuple[int, str]]]:
    """Lines in parts, each from a key or an item, whatever the first one is, down to the next one as deep."""
    parts: list[list[tuple[int, str]]] = []
    first = next(filter(None, (_PART.match(line) for _, line in lines)), None)
    for number, line in lines:
        found = _PART.match(line)
        if found and first and found["indent"] == first["indent"] and (found["key"] is None) == (first["key"] is None):
            parts.append([])
        if parts:
            parts[-1].append((number, line))
    return parts
