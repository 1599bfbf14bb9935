"""The front matter of a task file, changed key by key: every line that is about something else stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ralf.document import comments, yaml_text
from ralf.document.tree import Tree
from ralf.text.patterns import regex

GROUPS = (
    ("id", "task_id", "title", "status"),
    ("priority", "tags", "role"),
    ("after", "checkpoint", "verify", "route"),
    ("created", "created_by"),
)
"""The keys in their order; a blank line stands between groups, so that git merges changes of different groups.

Unknown keys follow as a group of their own.
"""

_PLACES = {key: (number, place) for number, group in enumerate(GROUPS) for place, key in enumerate(group)}

_LAST = (len(GROUPS), 0)

_MOST = 50  # changes made line by line, each of which reads all lines

_PLAIN = regex(r"(?!(?:[yn]|yes|no|on|off|true|false|null)\Z)[A-Za-z][A-Za-z0-9_.-]*\Z")

# ---- written anew ----


def lines_of(tree: Tree, before: str = "") -> list[str]:
    """The front matter that holds a tree, without its fences.

    before  front matter whose comments are kept, each above its key
    """
    noted = comments.found(before)
    groups: dict[int, list[str]] = {}
    for key in sorted(tree, key=_place):
        lines = [*comments.lines_of(noted, key), *_key_lines(key, tree[key])]
        groups.setdefault(_place(key)[0], []).extend(lines)
    made: list[str] = []
    for number in sorted(groups):
        made += ["", *groups[number]] if made else groups[number]
    return made + [line for key in noted if key not in tree for line in comments.lines_of(noted, key)]


def _place(key: str) -> tuple[int, int]:
    return _PLACES.get(key, _LAST)


def _key_lines(key: str, value: Any) -> list[str]:
    """The lines of a key. Of a list of names each stands on its own line, so that git merges what two have added."""
    if isinstance(value, list) and len(value) > 1 and all(isinstance(item, str) for item in value):
        head = yaml_text.lines({key: []})[0].removesuffix(" []")
        return [head, *(f"  - {yaml_text.flow(item)}" for item in value)]
    return yaml_text.lines({key: value})


# ---- changed ----


class _Key(NamedTuple):
    """A key of the outermost mapping and what belongs to it: the lines from `first` to before `last`.

    value  where its value stands, if that is a scalar on the key's own line
    """

    name: str
    first: int
    last: int
    value: tuple[int, int] | None


def changed(lines: Sequence[str], tree: Tree, changes: Mapping[str, Any]) -> list[str] | None:
    """The lines of front matter in which some keys have other values, and those without a value (None) are gone; None
    where that cannot be done line by line: the mapping stands in braces, or further to the right.

    tree  what the lines hold
    """
    if len(changes) > _MOST:
        return None
    made = list(lines)
    for key, value in changes.items():
        keys = _keys(made, tree)
        if keys is None:
            return None
        there = next((one for one in keys if one.name == key), None)
        if there is not None and value is None:
            _remove(made, there)
        elif there is not None:
            made[there.first : there.last] = _replaced(made[there.first : there.last], there, value)
        elif value is not None:
            _insert(made, keys, key, _key_lines(key, value))
        tree = {name: old for name, old in tree.items() if name != key} | ({} if value is None else {key: value})
    return made


_START = regex(r"[^\s#-][^\n]*:(?:[ \t]|\Z)")

_VALUE = regex(
    r"""[^\n]*?:[ \t]+("[^"\\]*(?:\\.[^"\\]*)*"|'[^']*(?:''[^']*)*'|[^\s#"'\[\]{}|>&*!%@`?,-](?:[^#]|(?<=\S)#)*?)"""
    r"[ \t]*(?:[ \t]#[^\n]*)?\Z"
)


def _keys(lines: list[str], tree: Tree) -> list[_Key] | None:
    """The keys, whose names the tree has in their order; None where they do not begin lines of their own.

    What the lines say afterwards is compared with what is meant, so a look at their beginnings is enough.
    """
    starts = [number for number, line in enumerate(lines) if _START.match(line)]
    if len(starts) != len(tree):
        return None
    keys: list[_Key] = []
    for name, first, last in zip(tree, starts, [*starts[1:], len(lines)], strict=False):
        while last > first + 1 and (not lines[last - 1].strip() or lines[last - 1].startswith("#")):
            last -= 1
        value = _VALUE.match(lines[first]) if last == first + 1 else None
        keys.append(_Key(name, first, last, value.span(1) if value else None))
    return keys


def _replaced(lines: list[str], key: _Key, value: Any) -> list[str]:
    """The lines of a key with another value. A scalar is replaced where it stands, in the quotes that it has."""
    if key.value is None or isinstance(value, (list, dict)) or "\n" in str(value):
        return [*_comments(lines), *_key_lines(key.name, value)]
    line, (first, last) = lines[0], key.value
    written = yaml_text.flow(value)
    if isinstance(value, str) and line[first] == "'" and value.isprintable():
        written = "'" + value.replace("'", "''") + "'"
    elif isinstance(value, str) and line[first] != '"' and _PLAIN.match(value):
        written = value
    return [line[:first] + written + line[last:]]


def _remove(lines: list[str], key: _Key) -> None:
    """Take a key out, and the blank line that would be one of two. What was said of it stays."""
    kept = _comments(lines[key.first : key.last])
    lines[key.first : key.last] = kept
    at = key.first
    if not kept and (at == 0 or not lines[at - 1].strip()):
        if at < len(lines) and not lines[at].strip():
            del lines[at]
        elif at == len(lines) and at:
            del lines[at - 1]


def _comments(lines: list[str]) -> list[str]:
    noted = comments.found("\n".join(lines) + "\n")
    return [line for key in noted for line in comments.lines_of(noted, key)]


def _insert(lines: list[str], keys: list[_Key], name: str, new: Iterable[str]) -> None:
    """Put a key behind those that come before it, in its own group."""
    place = _place(name)
    before = [key for key in keys if _place(key.name) <= place]
    after = [key for key in keys if _place(key.name) > place]
    group = [key for key in keys if _place(key.name)[0] == place[0]]
    if not group and before:
        lines[before[-1].last : before[-1].last] = ["", *new]
    elif not group or (group and _place(group[0].name) > place):
        first = _above(lines, (group or after)[0].first) if group or after else len(lines)
        lines[first:first] = [*new] if group or not after else [*new, ""]
    else:
        at = next(key.last for key in reversed(group) if _place(key.name) <= place)
        lines[at:at] = new


def _above(lines: list[str], number: int) -> int:
    """Where what is said of the key in this line begins."""
    while number and lines[number - 1].startswith("#"):
        number -= 1
    return number
