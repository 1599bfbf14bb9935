"""Trees as YAML: a strict subset, the same text for the same tree, read back by `guarded_yaml` as it was."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from ralf.text.patterns import regex

_WHOLE_NUMBER = regex(r"(?:0|-?[1-9][0-9]{0,17})\Z")

_FLOAT = regex(r"-?(?:0|[1-9][0-9]{0,15})\.[0-9]{1,15}\Z")

_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}

_INDENT = "  "

_PLAIN_KEY = regex(r"[A-Za-z_][A-Za-z0-9_-]*\Z")

_KEY_WORDS = frozenset("y n yes no on off true false null".split())

_NEEDS_ESCAPE = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")

_COMPACT = frozenset("paths commands commits requests todos completed_steps source".split())

_BARE = frozenset(("id", "decision", "origin"))  # of an item whose details are folded

_COMPACT_WIDTH, _LIST_WIDTH = 200, 100

_CONTAINERS = (dict, list)


def meaning(plain: str) -> Any:
    """What a scalar without quotes means: text, unless it is canonical."""
    if plain in _WORDS:
        return _WORDS[plain]
    if _WHOLE_NUMBER.match(plain):
        return int(plain)
    if _FLOAT.match(plain) and repr(float(plain)) == plain:
        return float(plain)
    return plain


def dump(tree: dict[str, Any]) -> str:
    """A tree in ralf's subset of YAML, with a line break at the end."""
    return "".join(f"{line}\n" for line in lines(tree))


def lines(tree: dict[str, Any], indent: str = "", *, compact: bool = False) -> list[str]:
    """The lines of `dump`."""
    found: list[str] = []
    inner = indent + _INDENT
    for key, value in tree.items():
        head, narrow = f"{indent}{_key(key)}:", compact or key in _COMPACT
        if not isinstance(value, _CONTAINERS) or not value:
            found += _scalar(head, value, inner)
            continue
        is_list = isinstance(value, list) and not any(isinstance(item, dict) for item in value)
        most = _LIST_WIDTH if is_list else _COMPACT_WIDTH if narrow and isinstance(value, dict) else 0
        if most and len(text := flow(value)) <= most and r"\n" not in text:
            found.append(f"{head} {text}")
        elif isinstance(value, dict):
            found += [head, *lines(value, inner, compact=narrow)]
        else:
            found += [head, *(line for item in value for line in _item(item, inner, narrow))]
    return found


def _item(item: Any, indent: str, compact: bool) -> list[str]:
    """The lines of an item of a list."""
    if not isinstance(item, _CONTAINERS) or not item:
        return _scalar(f"{indent}-", item, indent + _INDENT)
    is_bare = isinstance(item, dict) and item.keys() <= _BARE
    if isinstance(item, list) or is_bare or (compact and len(flow(item)) <= _COMPACT_WIDTH):
        return [f"{indent}- {flow(item)}"]
    first, *others = lines(item, indent + _INDENT, compact=compact)
    return [f"{indent}- {first.lstrip(' ')}", *others]


def flow(value: Any) -> str:
    """A tree on one line, whatever it holds."""
    if value.__class__ is str:
        return _quoted(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not _FLOAT.match(repr(value)):
        return _quoted(repr(value))
    return _quoted(value) if isinstance(value, str) else repr(value)


def _scalar(head: str, value: Any, indent: str) -> list[str]:
    """A scalar, or what is empty; a text of several lines as a block, in which every line stands as it is."""
    body = value.rstrip("\n") if isinstance(value, str) and "\n" in value else ""
    if not body or _NEEDS_ESCAPE.search(value):
        return [f"{head} {flow(value)}"]
    ending = len(value) - len(body)
    inner = body.split("\n")
    explicit = "2" if inner[0][:1] in (" ", "\t", "") else ""
    chomping = {0: "-", 1: ""}.get(ending, "+")
    return [f"{head} |{explicit}{chomping}", *(indent + line if line else "" for line in inner), *[""] * (ending - 1)]


def _quoted(text: str) -> str:
    if not text.isprintable() and ("\n" in text or "\t" in text or _NEEDS_ESCAPE.search(text)):
        return quoted(text)
    return "'" + text.replace("'", "''") + "'" if '"' in text or "\\" in text else f'"{text}"'


def quoted(text: str) -> str:
    """A text in double quotes, on one line, as JSON and YAML read it."""
    escaped = json.dumps(text, ensure_ascii=False)
    return _NEEDS_ESCAPE.sub(
        lambda match: f"\\U{ord(match[0]):08x}" if ord(match[0]) > 0xFFFF else f"\\u{ord(match[0]):04x}", escaped
    )


@lru_cache(maxsize=1024)
def _key(key: str) -> str:
    return key if _PLAIN_KEY.match(key) and key.lower() not in _KEY_WORDS else _quoted(key)
