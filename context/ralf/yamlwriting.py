"""Writing the YAML of front matter: a strict subset, the same text for the same tree."""

from __future__ import annotations

import json
import re
from functools import lru_cache, partial
from typing import Any

from ralf.remembered import Remembered
from ralf.tree import Items
from ralf.yamlscalars import FLOAT, meaning

_INDENT = "  "
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_KEY_WORDS = frozenset("y n yes no on off true false null".split())
_COMPACT = frozenset("paths commands commits requests todos completed_steps source".split())
_BARE = frozenset(("id", "decision", "origin"))  # of a decision whose details are folded
_COMPACT_WIDTH = 200
_LIST_WIDTH = 100
_NEEDS_ESCAPE = re.compile(r"[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def dump(tree: dict[str, Any]) -> str:
    """`tree` in ralf's subset of YAML, with a line break at the end; `load(dump(tree)) == tree` for clean text."""
    return "".join(f"{piece}\n" for piece in pieces(tree))


def pieces(tree: dict[str, Any]) -> list[str]:
    """What `dump` joins by line breaks: lines, and the lines of each item of a list as one text.

    The items' texts are remembered, for a route file is written again and again with a few items more. A list may be
    that of their JSON, as `ralf.tree.outline` has it.
    """
    return _block(tree, "", False)


def _block(tree: dict[str, Any], indent: str, compact: bool) -> list[str]:
    lines = []
    for key, value in tree.items():
        name = _key(key)
        narrow = compact or key in _COMPACT
        if isinstance(value, dict) and value:
            flow = _flow(value) if narrow else None
            if flow is not None and len(flow) <= _COMPACT_WIDTH:
                lines.append(f"{indent}{name}: {flow}")
            else:
                lines += [f"{indent}{name}:", *_block(value, indent + _INDENT, narrow)]
        elif isinstance(value, list) and value:
            whole = value.__class__ is Items or any(isinstance(item, dict) for item in value)
            flow = None if whole else _flow(value)
            if flow is not None and len(flow) <= _LIST_WIDTH:
                lines.append(f"{indent}{name}: {flow}")
            else:
                lines += [f"{indent}{name}:", *_items(value, indent + _INDENT, narrow)]
        else:
            lines += _scalar_lines(f"{indent}{name}: ", value, indent + _INDENT)
    return lines


def _items(items: list[Any], indent: str, compact: bool) -> list[str]:
    # By their JSON, which tells 1 from true and one order of keys from another.
    texts = items if isinstance(items, Items) else map(json.dumps, items)
    return list(map(_written_at(indent, compact).__getitem__, texts))


@lru_cache(maxsize=16)
def _written_at(indent: str, compact: bool) -> Remembered[str]:
    return Remembered(partial(_write, indent, compact))


_read: dict[str, Any] = {}
"""By its lines, the tree of an item that was written in a list of the outermost mapping; nobody's to change."""
_MOST_READ, _LONGEST_READ = 4_096, 2_000  # items, and characters of one: what is remembered takes a few megabytes


def written_before(lines: str) -> Any:
    """The tree, nobody's to change, of an item in a list of the outermost mapping that was written as these lines here
    before; None for any other.
    """
    return _read.get(lines)


def _write(indent: str, compact: bool, text: str) -> str:
    tree = json.loads(text)
    lines = "\n".join(_item(tree, indent, compact))
    if (indent, compact) == (_INDENT, False) and len(lines) <= _LONGEST_READ and _is_exact(tree):
        if len(_read) >= _MOST_READ:
            _read.clear()
        _read[lines] = tree
    return lines


def _is_exact(tree: Any) -> bool:
    """Whether a tree comes back as it is: a number that is not canonical is read as text."""
    if isinstance(tree, dict):
        return all(map(_is_exact, tree.values()))
    if isinstance(tree, list):
        return all(map(_is_exact, tree))
    return not isinstance(tree, (int, float)) or meaning(_inline(tree)) == tree


def _item(item: Any, indent: str, compact: bool) -> list[str]:
    if not isinstance(item, (dict, list)) or not item:
        return _scalar_lines(f"{indent}- ", item, indent + _INDENT)
    bare = isinstance(item, dict) and set(item) <= _BARE
    flow = _flow(item) if compact or bare or isinstance(item, list) else None
    if flow is not None and (bare or len(flow) <= _COMPACT_WIDTH):
        return [f"{indent}- {flow}"]
    if isinstance(item, list):
        return [f"{indent}-", *_items(item, indent + _INDENT, compact)]
    inner = _block(item, indent + _INDENT, compact)
    return [f"{indent}- {inner[0].lstrip(' ')}", *inner[1:]]


def _flow(value: Any) -> str | None:
    """`value` on one line, None where it has text of several lines."""
    if isinstance(value, dict):
        parts = [(_key(key), _flow(inner)) for key, inner in value.items()]
        return None if any(flow is None for _, flow in parts) else "{" + ", ".join(f"{k}: {f}" for k, f in parts) + "}"
    if isinstance(value, list):
        flows = [_flow(inner) for inner in value]
        return None if any(flow is None for flow in flows) else "[" + ", ".join(map(str, flows)) + "]"
    if isinstance(value, str) and "\n" in value:
        return None
    return _inline(value)


def _scalar_lines(head: str, value: Any, indent: str) -> list[str]:
    if isinstance(value, str) and "\n" in value and not _NEEDS_ESCAPE.search(value):
        return _literal(head, value, indent)
    return [head + _inline(value)]


def _literal(head: str, text: str, indent: str) -> list[str]:
    """A block scalar: every line stands as it is, behind the indent."""
    body = text.rstrip("\n")
    ending = len(text) - len(body)
    if not body:
        return [head + json.dumps(text)]
    lines = body.split("\n")
    explicit = "2" if lines[0][:1] in (" ", "\t", "") else ""
    chomping = {0: "-", 1: ""}.get(ending, "+")
    return [f"{head}|{explicit}{chomping}", *(indent + line if line else "" for line in lines), *[""] * (ending - 1)]


def _inline(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if FLOAT.match(repr(value)) else _quoted(repr(value))
    if isinstance(value, str):
        return _quoted(value)
    return "{}" if isinstance(value, dict) else "[]"


def _quoted(text: str) -> str:
    plain = text.isprintable() if text.isascii() else not ("\n" in text or "\t" in text or _NEEDS_ESCAPE.search(text))
    if plain:
        if '"' not in text and "\\" not in text:
            return f'"{text}"'
        return "'" + text.replace("'", "''") + "'"
    escaped = json.dumps(text, ensure_ascii=False)
    return _NEEDS_ESCAPE.sub(
        lambda match: f"\\U{ord(match[0]):08x}" if ord(match[0]) > 0xFFFF else f"\\u{ord(match[0]):04x}", escaped
    )


@lru_cache(maxsize=1024)
def _key(key: str) -> str:
    return key if _PLAIN_KEY.match(key) and key.lower() not in _KEY_WORDS else _quoted(key)
