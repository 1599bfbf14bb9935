"""The YAML of a route file's front matter: a guarded loader for what anybody may have written, a strict writer for
ours.

Read and written trees are plain: dicts, lists, text, whole numbers, floats, true, false and null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import yaml

from ralf.remembered import Remembered
from ralf.tree import Items

MAX_BYTES = 1 << 20
MAX_DEPTH = 8
MAX_ITEMS = 5_000  # of one list or mapping: ours hold a few hundred, and what compares them takes time by their square
MAX_KEY = 128  # a longer one, written back with escapes, would be more than YAML reads as a key
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_WHOLE = re.compile(r"(?:0|-?[1-9][0-9]{0,17})\Z")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]{0,15})\.[0-9]{1,15}\Z")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_LINE_BREAKS = re.compile(r"[\x85\u2028\u2029]")


class BadYaml(ValueError):
    """Front matter that is refused; `line` counts from 1 within it, 0 where no line can be named."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


# ---- reading ----


def load(text: str) -> dict[str, Any]:
    """The mapping that `text` holds; BadYaml says what is wrong and where.

    Refused: over 1 MiB, deeper than 8 levels, more than 5,000 items in one place, anchors, aliases, tags, merge keys, a
    key twice, a key that is no text, control characters, and anything but one mapping. Scalars that are not canonical
    stay text (see docs/format.md).
    """
    if len(text) > MAX_BYTES:
        raise BadYaml(f"front matter of more than {MAX_BYTES:,} characters")
    found = _FORBIDDEN.search(text) or _LINE_BREAKS.search(text)
    if found:
        raise BadYaml(f"control character U+{ord(found[0]):04X}", text.count("\n", 0, found.start()) + 1)
    known = _known(text)
    if known is not None:
        return known
    return _load(text)


def _load(text: str) -> dict[str, Any]:
    loader = _LOADER(text)
    try:
        return _document(loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise BadYaml(str(what).splitlines()[0], mark.line + 1 if mark else 0) from None
    except (ValueError, RecursionError, UnicodeError) as error:
        if isinstance(error, BadYaml):
            raise
        raise BadYaml(str(error).splitlines()[0]) from None
    finally:
        loader.dispose()


_LIST = "decisions"
_LISTED = re.compile(rf"^{_LIST}:\n(  - [^\n]*\n(?:(?:  [^\n]*)?\n)*+)(?![ \t])", re.M)
_NEXT = re.compile(r"\n(?=  - )")


def _known(text: str) -> dict[str, Any] | None:
    """What `_load` makes of a text in which most decisions are as we have written them: these are not read again. None
    where they are not, or nobody can be sure.

    Those items are taken out. Whatever stands before them that would make of them something else (a quotation that
    is open, a second key) leaves another number of items, or none; then, and after any error, all is read.
    """
    text = text if text.endswith("\n") else f"{text}\n"
    listed = _LISTED.search(text)
    if listed is None:
        return None
    written = _read_at(_INDENT, False)
    items = _NEXT.split(listed[1][:-1])
    trees = [written.get(item) for item in items]
    new = [item for item, tree in zip(items, trees, strict=True) if tree is None]
    if len(items) > MAX_ITEMS or 2 * len(new) > len(items):
        return None
    rest = "\n".join([f"{_LIST}:", *new]) if new else f"{_LIST}: []"
    try:
        tree = _load(f"{text[: listed.start()]}{rest}\n{text[listed.end() :]}")
    except BadYaml:
        return None
    found = tree.get(_LIST)
    if not isinstance(found, list) or len(found) != len(new):
        return None
    others = iter(found)
    tree[_LIST] = [next(others) if known is None else known for known in trees]
    return tree


class Scalar(NamedTuple):
    """Where a key or value stands: lines and columns from 0, `last` and `end` behind it; its style as in YAML's events.

    top  whether it is a key of the outermost mapping
    """

    line: int
    column: int
    last: int
    end: int
    style: str
    top: bool
    text: str


def scalars(text: str) -> Iterator[Scalar]:
    """The scalars of a text that `load` takes, in their order."""
    depth, key = 0, True
    events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
    for event in events:
        if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1
        elif isinstance(event, yaml.ScalarEvent):
            start: Any = event.start_mark
            end: Any = event.end_mark
            top = depth == 1 and key
            yield Scalar(start.line, start.column, end.line, end.column, event.style or "", top, event.value)
        if depth == 1 and isinstance(event, yaml.NodeEvent):
            key = not key
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1


def _document(loader: Any) -> dict[str, Any]:
    loader.get_event()  # the stream's start
    if isinstance(loader.get_event(), yaml.StreamEndEvent):
        return {}
    tree = _value(loader, loader.get_event(), 1)
    loader.get_event()  # the document's end
    following = loader.get_event()
    if not isinstance(following, yaml.StreamEndEvent):
        raise BadYaml("a second document", _line(following))
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise BadYaml("not a mapping", 1)
    return tree


def _value(loader: Any, event: Any, depth: int) -> Any:
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise BadYaml("anchors and aliases are not allowed", _line(event))
    if event.tag is not None and event.tag != "!":
        raise BadYaml("tags are not allowed", _line(event))
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    if depth > MAX_DEPTH:
        raise BadYaml(f"nested deeper than {MAX_DEPTH} levels", _line(event))
    return _list(loader, depth) if isinstance(event, yaml.SequenceStartEvent) else _mapping(loader, depth)


def _list(loader: Any, depth: int) -> list[Any]:
    items: list[Any] = []
    while not isinstance(event := loader.get_event(), yaml.SequenceEndEvent):
        if len(items) == MAX_ITEMS:
            raise BadYaml(f"a list of more than {MAX_ITEMS:,} items", _line(event))
        items.append(_value(loader, event, depth + 1))
    return items


def _mapping(loader: Any, depth: int) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    while not isinstance(event := loader.get_event(), yaml.MappingEndEvent):
        if not isinstance(event, yaml.ScalarEvent):
            raise BadYaml("a key that is no text", _line(event))
        key = event.value
        if event.anchor is not None or event.tag not in (None, "!"):
            raise BadYaml("anchors, aliases and tags are not allowed", _line(event))
        if key == "<<" and not event.style:
            raise BadYaml("merge keys are not allowed", _line(event))
        if len(key) > MAX_KEY:
            raise BadYaml(f"a key of more than {MAX_KEY} characters", _line(event))
        if len(tree) == MAX_ITEMS:
            raise BadYaml(f"a mapping of more than {MAX_ITEMS:,} keys", _line(event))
        if key in tree:
            raise BadYaml(f"the key {key!r} twice", _line(event))
        tree[key] = _value(loader, loader.get_event(), depth + 1)
    return tree


def _scalar(event: Any) -> Any:
    text: str = event.value
    if not event.style:  # None, or "" from libyaml: plain
        return _scalar_of(text)
    if found := _FORBIDDEN.search(text):
        raise BadYaml(f"control character U+{ord(found[0]):04X}", _line(event))
    return text


def _scalar_of(plain: str) -> Any:
    """What a scalar without quotes means."""
    if plain in _WORDS:
        return _WORDS[plain]
    if _WHOLE.match(plain):
        return int(plain)
    if _FLOAT.match(plain) and repr(float(plain)) == plain:
        return float(plain)
    return plain


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


# ---- writing ----

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


@lru_cache(maxsize=16)
def _read_at(indent: str, compact: bool) -> dict[str, Any]:
    """By its lines, the tree of an item that was written; nobody's to change."""
    return {}


def _write(indent: str, compact: bool, text: str) -> str:
    tree = json.loads(text)
    lines = "\n".join(_item(tree, indent, compact))
    read = _read_at(indent, compact)
    if len(read) >= _MOST_READ:
        read.clear()
    if len(lines) <= _LONGEST_READ and _is_exact(tree):
        read[lines] = tree
    return lines


def _is_exact(tree: Any) -> bool:
    """Whether a tree comes back as it is: a number that is not canonical is read as text."""
    if isinstance(tree, dict):
        return all(map(_is_exact, tree.values()))
    if isinstance(tree, list):
        return all(map(_is_exact, tree))
    return not isinstance(tree, (int, float)) or _scalar_of(_inline(tree)) == tree


_MOST_READ, _LONGEST_READ = 4_096, 2_000  # items, and characters of one: what is remembered takes a few megabytes


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
        return repr(value) if _FLOAT.match(repr(value)) else _quoted(repr(value))
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
