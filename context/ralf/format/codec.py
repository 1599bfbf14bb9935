"""Values of `ralf.model` as plain trees and back, unknown keys kept; trees as our YAML; guarded JSON."""

from __future__ import annotations

import builtins
import json
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from functools import cache, lru_cache, partial
from operator import attrgetter
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from ralf.text.patterns import regex

T = TypeVar("T")

Tree = dict[str, Any]

_DIGITS = 18

_LONGEST_NUMBER, _MOST = 32, 1e18

_MOST_KNOWN = 4_096  # items of which something is remembered: a route file holds a few hundred

_SCALARS = frozenset((str, int, bool, float, type(None)))


class BadTree(ValueError):
    """A tree that does not fit: `at` is the path of keys to the place, `expected` what should stand there."""

    def __init__(self, at: tuple[str, ...], expected: str, found: object) -> None:
        super().__init__(f"{'.'.join(at) or 'the whole'}: expected {expected}, got {_shown(found)}")
        self.at = at


class ById(Generic[T]):
    """What `make` makes of objects that mostly stay from one record of a route to the next, each made once.

    A fold measures the file after each record, and of sixteen writers each goes on from what the others wrote: of all
    that a file holds only a few items are new.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._known: tuple[dict[int, T], dict[int, Any]] = {}, {}  # by id: what was made; the object, to keep its id

    def of(self, items: Sequence[Any]) -> list[T]:
        """What is made of each of some objects that do not change; None is made of none."""
        found: list[Any] = [*map(self._known[0].get, map(id, items))]
        if None in found:
            pairs = zip(items, found, strict=True)
            found = [self.know(item, self._make(item)) if made is None else made for item, made in pairs]
        return found

    def know(self, item: Any, made: T) -> T:
        """Remember what is made of an object."""
        if len(self._known[0]) >= _MOST_KNOWN:
            self._known = {}, {}  # not emptied: another thread may be looking
        known, alive = self._known
        alive[id(item)] = item
        return known.setdefault(id(item), made)

    def know_all(self, items: Sequence[Any], made: Sequence[T]) -> None:
        """Remember what is made of each of some objects; ValueError where there are not as many."""
        for item, one in zip(items, made, strict=True):
            if id(item) not in self._known[0]:
                self.know(item, one)


class Items(list[str]):
    """A list of dataclasses, each as the JSON of its tree; see `outline`."""

    __slots__ = ()


def to_tree(value: Any) -> Tree:
    """A dataclass of `ralf.model` as a tree: fields in their order, empty ones left out, then the unknown ones."""
    return _tree(value, lambda items: list(map(to_tree, items)))


def outline(value: Any) -> Tree:
    """As `to_tree`, but a list of dataclasses is `Items`."""
    return _tree(value, lambda items: Items(_texts.of(items)))


def outlined(value: Any) -> Any:
    """The value of a field as `outline` has it."""
    return value if value.__class__ in _SCALARS else _plain(value, lambda items: Items(_texts.of(items)))


def shallow(value: Any) -> Tree:
    """As `to_tree`, but the dataclasses in a list stay what they are."""
    return _tree(value, list)


def shared(value: Any) -> Tree:
    """As `to_tree`, but the trees of dataclasses in lists are remembered, and nobody's to change: two contexts with an
    item in common have its tree in common.
    """
    return _tree(value, _trees.of)


def _tree(value: Any, of_items: Callable[[tuple[Any, ...]], list[Any]]) -> Tree:
    keys, defaults, values = _shape(value.__class__).written
    always = getattr(value, "always_written", ())
    tree: Tree = {}
    for key, default, inner in zip(keys, defaults, values(value), strict=True):
        if (inner is not default and inner != default) or (always and key in always):
            tree[key] = inner if inner.__class__ in _SCALARS else _plain(inner, of_items)
    tree.update(getattr(value, "extra", ()))
    return tree


_RETIRED: Mapping[str, tuple[str, ...]] = {
    "Checkpoint": ("kept", "dropped", "recall"),
    "Header": ("lineage",),
    "Body": ("crlf", "bom"),
}
"""Keys that files of earlier versions have, by the class that had them: no longer read, and not kept as unknown."""


def from_tree(cls: type[T], tree: object, at: tuple[str, ...] = ()) -> T:
    """The dataclass that a tree holds; BadTree where the tree does not fit. Unknown keys go to `extra`; what earlier
    versions wrote a class with `of_earlier` knows.
    """
    if not isinstance(tree, Mapping):
        raise BadTree(at, "a mapping", tree)
    of_earlier: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = getattr(cls, "of_earlier", None)
    if of_earlier is not None:
        tree = of_earlier(tree)
    named = _shape(cls).read  # type: ignore[arg-type]  # a class can be hashed
    known: dict[str, Any] = {}
    extra: Tree = {}
    for key, value in tree.items():
        field = named.get(key)
        if field is None:
            if key not in _RETIRED.get(cls.__name__, ()):
                extra[key] = value
        elif value is not None:
            name, read = field
            known[name] = read(value, (*at, key))
    if "extra" in cls.__dataclass_fields__:  # type: ignore[attr-defined]
        if any(map(_has_items, extra.values())):  # nobody knows what they are items of
            raise BadTree(at, "no items", extra)
        known["extra"] = extra
    elif extra:
        raise BadTree((*at, next(iter(extra))), "no such key", extra)
    return cls(**known)


def _has_items(tree: object) -> bool:
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return tree.__class__ is Items or any(map(_has_items, inner))


def _plain(value: Any, of_items: Callable[[tuple[Any, ...]], list[Any]]) -> Any:
    if isinstance(value, tuple):
        return of_items(value) if value and hasattr(value[0], "__dataclass_fields__") else list(value)
    return _tree(value, of_items) if hasattr(value, "__dataclass_fields__") else value


_texts = ById(lambda item: json.dumps(to_tree(item), ensure_ascii=False))

_known_texts: dict[type, dict[str, Any]] = {}


def _items_of(cls: type, texts: Items) -> tuple[Any, ...]:
    known = _known_texts.setdefault(cls, {})
    found = [*map(known.get, texts)]
    if not all(found):
        for place, text in enumerate(texts):
            if found[place] is None:
                item = found[place] = remember(known, text, from_tree(cls, json.loads(text)))
                _texts.know(item, text)
    return tuple(found)


def _tree_of(item: Any) -> Tree:
    tree = to_tree(item)
    remember(_sources, id(tree), (tree, item))
    return tree


_trees = ById(_tree_of)

_sources: dict[int, tuple[Tree, Any]] = {}


def _known_item(cls: Any, tree: Any, at: tuple[str, ...]) -> Any:
    """What `from_tree` makes of an item; of a tree of `shared` the object that it is of, about which more is known."""
    if tree.__class__ is cls:
        return tree
    source = _sources.get(id(tree))
    return source[1] if source is not None and source[1].__class__ is cls else from_tree(cls, tree, at)


def remember(known: dict[Any, T], key: object, value: T) -> T:
    """Add a value to what is known, which is forgotten as a whole where it grows too large; return the value."""
    if len(known) >= _MOST_KNOWN:
        known.clear()
    known[key] = value
    return value


_Read = Callable[[Any, tuple[str, ...]], Any]


class _Shape(NamedTuple):
    """The stored fields of a dataclass, for all but `extra`.

    written  their keys, the values that are left out, and what gives their values; all in the order of the fields
    read     by key, the field's name and what reads it from a tree
    """

    written: tuple[tuple[str, ...], tuple[Any, ...], Callable[[Any], tuple[Any, ...]]]
    read: Mapping[str, tuple[str, _Read]]


@cache
def _shape(cls: Any) -> _Shape:
    names_there = {**vars(builtins), **vars(sys.modules[cls.__module__])}
    stored = [field for field in fields(cls) if field.name != "extra" and field.metadata.get("stored", True)]
    names = [field.name for field in stored]
    keys = tuple(str(field.metadata.get("key", field.name)) for field in stored)
    made: list[Any] = [field.default_factory if field.default is MISSING else None for field in stored]
    defaults = tuple(make() if make else field.default for make, field in zip(made, stored, strict=True))
    values = attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
    hints = [_hint(field.type, names_there) for field in stored]
    read = {key: (name, _reader(hint)) for key, name, hint in zip(keys, names, hints, strict=True)}
    return _Shape((keys, defaults, values), read)


def _hint(written: Any, names: Mapping[str, Any]) -> Any:
    """The type that an annotation means. For the forms that fields have, without the parser, which takes its time."""
    if not isinstance(written, str):
        return written
    if written in names:
        return names[written]
    if written.startswith("tuple[") and written.endswith(", ...]"):
        return types.GenericAlias(tuple, (_hint(written[6:-6], names), ...))
    if written.endswith(" | None"):
        return _hint(written[:-7], names) | None
    return eval(written, dict(names))  # noqa: S307 - what the class itself says


def _reader(hint: Any) -> Any:
    if hint in _SCALAR_READERS:
        return _SCALAR_READERS[hint]
    if typing.get_origin(hint) is Literal:
        return partial(_word, typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        cls = typing.get_args(hint)[0]
        item = partial(_known_item, cls) if _is_dataclass(cls) else _reader(cls)
        return lambda value, at: _items(value, at, cls, item)
    if isinstance(hint, types.UnionType):  # X | None
        return _reader(next(arg for arg in typing.get_args(hint) if arg is not type(None)))
    return lambda value, at: from_tree(hint, value, at)


def _text(value: object, at: tuple[str, ...]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)  # a person may well leave the quotes off
    raise BadTree(at, "text", value)


def _word(words: tuple[str, ...], value: object, at: tuple[str, ...]) -> str:
    if value in words:
        return str(value)
    raise BadTree(at, f"one of {', '.join(filter(None, words))}", value)


def _truth(value: object, at: tuple[str, ...]) -> bool:
    if isinstance(value, bool):
        return value
    raise BadTree(at, "true or false", value)


def _whole(value: object, at: tuple[str, ...]) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) <= _DIGITS:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**_DIGITS:
        return value
    raise BadTree(at, "a whole number", value)


def _number(value: object, at: tuple[str, ...]) -> float:
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER:
        with suppress(ValueError):
            value = float(value)  # written as text where YAML's number would not be exact
    if isinstance(value, (int, float)) and not isinstance(value, bool) and -_MOST < value < _MOST:
        return float(value)
    raise BadTree(at, "a number", value)


_SCALAR_READERS: dict[Any, _Read] = {Any: lambda value, _: value, str: _text, bool: _truth, int: _whole, float: _number}


def _items(value: object, at: tuple[str, ...], cls: Any, item: _Read) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise BadTree(at, "a list", value)
    if value.__class__ is Items:
        return _items_of(cls, value)
    return tuple(item(inner, (*at, str(number))) for number, inner in enumerate(value, start=1))


def _shown(value: object) -> str:
    kinds = {dict: "a mapping", list: "a list", type(None): "nothing"}
    return kinds.get(type(value)) or ascii(value)[:60]


# ---- JSON that others write ----

MAX_DEPTH = 64


def load(text: str) -> Any:
    """The value that a document holds. ValueError for what is no JSON, and for a value deeper than 64 levels."""
    try:
        tree = json.loads(text)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    level = [tree]
    for _ in range(MAX_DEPTH + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return tree
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    raise ValueError(f"nested deeper than {MAX_DEPTH} levels")


# ---- our YAML: a strict subset, the same text for the same tree ----

_WHOLE_NUMBER = regex(r"(?:0|-?[1-9][0-9]{0,17})\Z")

FLOAT = regex(r"-?(?:0|[1-9][0-9]{0,15})\.[0-9]{1,15}\Z")

_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


def meaning(plain: str) -> Any:
    """What a scalar without quotes means: text, unless it is canonical."""
    if plain in _WORDS:
        return _WORDS[plain]
    if _WHOLE_NUMBER.match(plain):
        return int(plain)
    if FLOAT.match(plain) and repr(float(plain)) == plain:
        return float(plain)
    return plain


_INDENT = "  "

_PLAIN_KEY = regex(r"[A-Za-z_][A-Za-z0-9_-]*\Z")

_KEY_WORDS = frozenset("y n yes no on off true false null".split())

_COMPACT = frozenset("paths commands commits requests todos completed_steps source".split())

_BARE = frozenset(("id", "decision", "origin"))  # of a decision whose details are folded

_COMPACT_WIDTH = 200

_LIST_WIDTH = 100

_NEEDS_ESCAPE = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def dump_yaml(tree: dict[str, Any]) -> str:
    """`tree` in ralf's subset of YAML, with a line break at the end; `guarded_yaml` reads clean text back as it was."""
    return "".join(f"{piece}\n" for piece in yaml_pieces(tree))


def yaml_pieces(tree: dict[str, Any], indent: str = "", compact: bool = False) -> list[str]:
    """What `dump_yaml` joins by line breaks: lines, and the lines of each item of a list as one text.

    The items may be dataclasses, as `shallow` has them.
    """
    lines = []
    for key, value in tree.items():
        name = _key(key)
        narrow = compact or key in _COMPACT
        if isinstance(value, dict) and value:
            flow = _flow(value) if narrow else None
            if flow is not None and len(flow) <= _COMPACT_WIDTH:
                lines.append(f"{indent}{name}: {flow}")
            else:
                lines += [f"{indent}{name}:", *yaml_pieces(value, indent + _INDENT, narrow)]
        elif isinstance(value, list) and value:
            whole = _is_dataclass(value[0]) or any(isinstance(item, dict) for item in value)
            flow = None if whole else _flow(value)
            if flow is not None and len(flow) <= _LIST_WIDTH:
                lines.append(f"{indent}{name}: {flow}")
            elif flow is not None and all(isinstance(item, str) and len(item) <= _NAME for item in value):
                lines += [f"{indent}{name}: [", *_wrapped(value, indent + _INDENT), f"{indent}]"]
            else:
                lines += [f"{indent}{name}:", *_list_lines(value, indent + _INDENT, narrow)]
        else:
            lines += _scalar_lines(f"{indent}{name}: ", value, indent + _INDENT)
    return lines


_NAME = 160  # characters of a name, as many of which as fit stand on one line


def _wrapped(names: Sequence[str], indent: str) -> list[str]:
    """Names as the lines of a list in brackets: a list of them one below the other would be the longest in the file."""
    lines: list[str] = []
    for name in names:
        written = _inline(name) + ","
        if lines and len(lines[-1]) + 1 + len(written) <= _LIST_WIDTH:
            lines[-1] += f" {written}"
        else:
            lines.append(indent + written)
    lines[-1] = lines[-1][:-1]
    return lines


def _list_lines(items: list[Any], indent: str, compact: bool) -> list[str]:
    if _is_dataclass(items[0]):
        return _lines_at(indent, compact).of(items)
    return ["\n".join(_item_lines(item, indent, compact)) for item in items]


@lru_cache(maxsize=16)
def _lines_at(indent: str, compact: bool) -> ById[str]:
    def lines_of(item: Any) -> str:
        tree = to_tree(item)
        lines = "\n".join(_item_lines(tree, indent, compact))
        if indent == _INDENT and not compact and is_exact(tree):
            remember(_written, (item.__class__, lines), item)
        return lines

    return ById(lines_of)


_written: dict[tuple[type, str], Any] = {}


def written_item(cls: type[T], lines: str) -> T | None:
    """The dataclass that was written as these lines, as an item of a top-level list; None if none was here."""
    return _written.get((cls, lines))


def is_exact(tree: Any) -> bool:
    """Whether a tree is read as it was written: a number that is not canonical is read as text."""
    if isinstance(tree, dict | list):
        return all(map(is_exact, tree.values() if isinstance(tree, dict) else tree))
    return not isinstance(tree, int | float) or meaning(_inline(tree)) == tree


def _is_dataclass(item: object) -> bool:
    return hasattr(item, "__dataclass_fields__")


def _item_lines(item: Any, indent: str, compact: bool) -> list[str]:
    if not isinstance(item, (dict, list)) or not item:
        return _scalar_lines(f"{indent}- ", item, indent + _INDENT)
    bare = isinstance(item, dict) and set(item) <= _BARE
    flow = _flow(item) if compact or bare or isinstance(item, list) else None
    if flow is not None and (bare or len(flow) <= _COMPACT_WIDTH):
        return [f"{indent}- {flow}"]
    if isinstance(item, list):
        return [f"{indent}-", *_list_lines(item, indent + _INDENT, compact)]
    inner = yaml_pieces(item, indent + _INDENT, compact)
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
    return quoted(text)


def quoted(text: str) -> str:
    """A text in double quotes, on one line, as JSON and YAML read it."""
    escaped = json.dumps(text, ensure_ascii=False)
    return _NEEDS_ESCAPE.sub(
        lambda match: f"\\U{ord(match[0]):08x}" if ord(match[0]) > 0xFFFF else f"\\u{ord(match[0]):04x}", escaped
    )


def flow(value: Any) -> str:
    """A tree in our YAML, on one line whatever it holds."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return quoted(value) if isinstance(value, str) else _inline(value)


@lru_cache(maxsize=1024)
def _key(key: str) -> str:
    return key if _PLAIN_KEY.match(key) and key.lower() not in _KEY_WORDS else _quoted(key)
