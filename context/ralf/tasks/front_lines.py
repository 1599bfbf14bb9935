"""The front matter of a task file, changed key by key: every line that is about something else stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ralf.format import codec, comments
from ralf.format.codec import Tree
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.format import guarded_yaml

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
        head = codec.yaml_pieces({key: []})[0].removesuffix(" []")
        return [head, *(f"  - {codec.flow(item)}" for item in value)]
    return "\n".join(codec.yaml_pieces({key: value})).split("\n")


# ---- changed ----


class _Key(NamedTuple):
    """A key of the outermost mapping and what belongs to it: the lines from `first` to before `last`.

    value  where its value stands, if that is a scalar on the key's own line
    """

    name: str
    first: int
    last: int
    value: guarded_yaml.Scalar | None


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


def _keys(lines: list[str], tree: Tree) -> list[_Key] | None:
    from ralf.format import guarded_yaml  # the parser: only what changes a file needs it

    found = list(guarded_yaml.scalars("".join(f"{line}\n" for line in lines)))
    starts = [number for number, scalar in enumerate(found) if scalar.top]
    if len(starts) != len(tree) or any(found[start].column for start in starts):
        return None
    keys: list[_Key] = []
    for start, following in zip(starts, [*starts[1:], len(found)], strict=False):
        key, inner = found[start], found[start + 1 : following]
        ends_before = found[following].line if following < len(found) else len(lines)
        least = max((scalar.last + (scalar.end > 0) for scalar in inner), default=key.line + 1)
        last = ends_before
        while last > key.line + 1 and _says_nothing(lines[last - 1], is_text=last <= least):
            last -= 1
        is_scalar = len(inner) == 1 and not isinstance(tree.get(key.text), (list, dict))
        on_line = is_scalar and inner[0].line == inner[0].last == key.line and inner[0].column < inner[0].end
        keys.append(_Key(key.text, key.line, last, inner[0] if on_line and last == key.line + 1 else None))
    return keys


def _says_nothing(line: str, *, is_text: bool) -> bool:
    """Whether a line is blank or, outside of a text of several lines, a comment."""
    return not (line if is_text else line.split("#", 1)[0]).strip()


def _replaced(lines: list[str], key: _Key, value: Any) -> list[str]:
    """The lines of a key with another value. A scalar is replaced where it stands, in the quotes that it has."""
    if key.value is not None and not isinstance(value, (list, dict)):
        old, line = key.value, lines[0]
        written = codec.flow(value)
        if isinstance(value, str):
            if not old.style and _PLAIN.match(value):
                written = value
            elif old.style == "'" and value.isprintable():
                written = "'" + value.replace("'", "''") + "'"
        if "\n" not in str(value):
            return [line[: old.column] + written + line[old.end :]]
    return [*_comments(lines), *_key_lines(key.name, value)]


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
