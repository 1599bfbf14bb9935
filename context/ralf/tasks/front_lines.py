"""The front matter of a task file, changed key by key: every line that is about something else stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


class _Block:
    """A key of the outermost mapping: the blank lines and comments above it, and its own lines."""

    def __init__(self, name: str, lead: list[str], own: list[str]) -> None:
        self.name = name
        self.lead = lead
        self.own = own


_START = regex(r"[^\s#-][^\n]*:(?:[ \t]|\Z)")

_VALUE = regex(
    r"""[^\n]*?:[ \t]+("[^"\\]*(?:\\.[^"\\]*)*"|'[^']*(?:''[^']*)*'|[^\s#"'\[\]{}|>&*!%@`?,-](?:[^#]|(?<=\S)#)*?)"""
    r"[ \t]*(?:[ \t]#[^\n]*)?\Z"
)


def changed(lines: list[str], tree: Tree, changes: Mapping[str, Any]) -> list[str] | None:
    """The lines of front matter in which some keys have other values, and those without a value (None) are gone; None
    where that cannot be done line by line: the mapping stands in braces, or further to the right.

    tree  what the lines hold, with its keys in their order. What the lines say afterwards is to be compared with what
          is meant, so a look at their beginnings is enough
    """
    starts = [number for number, line in enumerate(lines) if _START.match(line)]
    if len(starts) != len(tree):
        return None
    blocks: list[_Block] = []
    end = 0
    for name, first, last in zip(tree, starts, [*starts[1:], len(lines)], strict=False):
        while last > first + 1 and (not lines[last - 1].strip() or lines[last - 1].startswith("#")):
            last -= 1
        blocks.append(_Block(name, lines[end:first], lines[first:last]))
        end = last
    by_name = {block.name: block for block in blocks}
    blocks.append(_Block("", lines[end:], []))  # what is below the last key
    for key, value in changes.items():
        block = by_name.get(key)
        if block is None and value is not None:
            _insert(blocks, _Block(key, [], _key_lines(key, value)))
        elif block is not None and value is None:
            _remove(blocks, block)
        elif block is not None:
            block.own = _replaced(block, value)
    return [line for block in blocks for line in (*block.lead, *block.own)]


def _replaced(block: _Block, value: Any) -> list[str]:
    """The lines of a key with another value. A scalar is replaced where it stands, in the quotes that it has."""
    line = block.own[0]
    found = _VALUE.match(line) if len(block.own) == 1 else None
    if found is None or isinstance(value, (list, dict)) or "\n" in str(value):
        return [*_comments(block.own), *_key_lines(block.name, value)]
    written, old = yaml_text.flow(value), found[1]
    if isinstance(value, str) and old[0] == "'" and value.isprintable():
        written = "'" + value.replace("'", "''") + "'"
    elif isinstance(value, str) and old[0] != '"' and _PLAIN.match(value):
        written = value
    return [line[: found.start(1)] + written + line[found.end(1) :]]


def _remove(blocks: list[_Block], block: _Block) -> None:
    """Take a key out, and the blank line that would be one of two. What was said of it stays."""
    at, said = blocks.index(block), _comments(block.own)
    del blocks[at]
    below, lead = blocks[at], [*block.lead, *said]
    if not said and (not at or _is_blank(lead[-1:])):
        if _is_blank(below.lead[:1]):
            del below.lead[0]
        elif len(blocks) == at + 1 and not below.lead:
            lead = lead[:-1]
    below.lead = [*lead, *below.lead]


def _insert(blocks: list[_Block], new: _Block) -> None:
    """Put a key behind those that come before it, in its own group."""
    place, keys = _place(new.name), blocks[:-1]
    group = [block for block in keys if _place(block.name)[0] == place[0]]
    if earlier := [block for block in group or keys if _place(block.name) <= place]:
        new.lead = [] if group else [""]
        blocks.insert(blocks.index(earlier[-1]) + 1, new)
    elif group:
        blanks = 1 if _is_blank(group[0].lead[:1]) else 0
        new.lead, group[0].lead = group[0].lead[:blanks], group[0].lead[blanks:]
        blocks.insert(blocks.index(group[0]), new)
    else:
        blocks[0].lead = ["", *blocks[0].lead] if keys else blocks[0].lead
        blocks.insert(0, new)


def _is_blank(lines: Sequence[str]) -> bool:
    return bool(lines) and not lines[0].strip()


def _comments(lines: Sequence[str]) -> list[str]:
    noted = comments.found("\n".join(lines) + "\n")
    return [line for key in noted for line in comments.lines_of(noted, key)]
