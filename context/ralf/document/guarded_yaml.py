"""Reading the YAML of front matter and configurations: a guarded loader for what anybody may have written.

Trees are plain: dicts, lists, text, whole numbers, floats, true, false and null.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from ralf.document.yaml_text import meaning
from ralf.text.cleaning import quoted
from ralf.text.patterns import regex

MAX_BYTES = 1 << 20

MAX_DEPTH = 8

_TOO_DEEP = "maximum nesting depth"

MAX_ITEMS = 5_000  # of one list or mapping: ours hold a few hundred, and what compares them takes time by their square

MAX_KEY = 128  # a longer one, written back with escapes, would be more than YAML reads as a key

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_FORBIDDEN = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

_LINE_BREAKS = regex(r"[\x85\u2028\u2029]")


class BadYaml(ValueError):
    """Front matter that is refused; `line` counts from 1 within it, 0 where no line can be named."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


# ---- reading ----


def load(text: str, *, most_bytes: int = MAX_BYTES, most_items: int = MAX_ITEMS) -> dict[str, Any]:
    """The mapping that `text` holds; BadYaml says what is wrong and where.

    Refused: over 1 MiB, deeper than 8 levels, more than 5,000 items in one place, anchors, aliases, tags, merge keys, a
    key twice, a key that is no text, control characters, and anything but one mapping. Scalars that are not canonical
    stay text (see docs/format.md). A caller whose time grows with the size alone may allow more.
    """
    if len(text) > most_bytes:
        raise BadYaml(f"front matter of more than {most_bytes:,} characters")
    found = _FORBIDDEN.search(text) or _LINE_BREAKS.search(text)
    if found:
        raise BadYaml(f"control character U+{ord(found[0]):04X}", text.count("\n", 0, found.start()) + 1)
    loader = _LOADER(text)
    try:
        return _document(loader, most_items)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        if _TOO_DEEP in str(what):  # of the scanner, which looks further ahead than we have read
            what = f"nested deeper than {MAX_DEPTH} levels"
        raise BadYaml(str(what).splitlines()[0], mark.line + 1 if mark else 0) from None
    except BadYaml:
        raise
    except (ValueError, RecursionError) as error:
        raise BadYaml(str(error).splitlines()[0]) from None
    finally:
        loader.dispose()


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


def _document(loader: Any, most: int) -> dict[str, Any]:
    loader.get_event()  # the stream's start
    if isinstance(loader.get_event(), yaml.StreamEndEvent):
        return {}
    tree = _value(loader, loader.get_event(), 1, most)
    loader.get_event()  # the document's end
    following = loader.get_event()
    if not isinstance(following, yaml.StreamEndEvent):
        raise BadYaml("a second document", _line(following))
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise BadYaml("not a mapping", 1)
    return tree


def _value(loader: Any, event: Any, depth: int, most: int) -> Any:
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise BadYaml("anchors and aliases are not allowed", _line(event))
    if event.tag is not None and event.tag != "!":
        raise BadYaml("tags are not allowed", _line(event))
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    if depth > MAX_DEPTH:
        raise BadYaml(f"nested deeper than {MAX_DEPTH} levels", _line(event))
    make: Any = _list if isinstance(event, yaml.SequenceStartEvent) else _mapping
    return make(loader, depth, most)


def _list(loader: Any, depth: int, most: int) -> list[Any]:
    items: list[Any] = []
    while not isinstance(event := loader.get_event(), yaml.SequenceEndEvent):
        if len(items) == most:
            raise BadYaml(f"a list of more than {most:,} items", _line(event))
        items.append(_value(loader, event, depth + 1, most))
    return items


def _mapping(loader: Any, depth: int, most: int) -> dict[str, Any]:
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
        if len(tree) == most:
            raise BadYaml(f"a mapping of more than {most:,} keys", _line(event))
        if key in tree:
            raise BadYaml(f"the key {quoted(key)} twice", _line(event))
        tree[key] = _value(loader, loader.get_event(), depth + 1, most)
    return tree


def _scalar(event: Any) -> Any:
    text: str = event.value
    if not event.style:  # None, or "" from libyaml: plain
        return meaning(text)
    if found := _FORBIDDEN.search(text):
        raise BadYaml(f"control character U+{ord(found[0]):04X}", _line(event))
    return text


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
