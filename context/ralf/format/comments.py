"""Comments in front matter, which YAML's loaders drop: each is found by the key above which it is written again.

One above or behind a top-level key stays there; one further inside moves above the key that it is in, and says which
line it was about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.format import guarded_yaml

# Not `(?:[^"]|\\.)*`: that keeps every character on a stack, 80 MB for a long scalar.
_QUOTED = regex(r""""[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\n]*(?:''[^'\n]*)*'""")

_MARK = regex(r"#(?<![^ \t\n].)")

_INDICATOR = regex(r"[|>][-+0-9]*")

_ABOUT = 80  # characters of the line that a comment was about

_Span = tuple[int, int]


def found(front: str, ours: str = "") -> dict[str, str]:
    """The comments of front matter that can be loaded, by the top-level key above which they stand, "" for the end.

    ours  a comment that is no person's: it is left out
    """
    if not _MARK.search(front) or not _MARK.search(_QUOTED.sub('""', front)):
        return {}  # as are nearly all
    covered, keys = _covered(front)
    lines = front.split("\n")
    comments: dict[str, list[str]] = {}
    for number, line in enumerate(lines):
        place = next((m.start() for m in _MARK.finditer(line) if not _within(covered.get(number, ()), m.start())), None)
        if place is None:
            continue
        said = clean(line[place:]).rstrip()
        if said == ours:
            continue
        if place == 0:
            key = next((name for at, name in keys if at > number), "")
        else:
            at, key = max(((at, name) for at, name in keys if at <= number), default=(number, ""))
            if (at != number or not line[:place].strip()) and (about := _about(lines, number, place)):
                said = f"{said} ← {about}"
        comments.setdefault(key, []).append(said)
    return {key: "\n".join(said) for key, said in comments.items()}


def lines_of(comments: Mapping[str, str], key: str) -> Iterable[str]:
    """The lines of the comment above a key; nothing else than a comment, whatever the text is."""
    for line in clean(comments.get(key, "")).split("\n"):
        if line.strip():
            yield line if line.startswith("#") else f"# {line}"


def _covered(front: str) -> tuple[dict[int, list[_Span]], list[tuple[int, str]]]:
    """The columns that scalars cover in each line, and the top-level keys with their lines."""
    from ralf.format import guarded_yaml  # the parser: only what is read needs it

    covered: dict[int, list[_Span]] = {}
    keys: list[tuple[int, str]] = []
    lines = front.split("\n")
    for scalar in guarded_yaml.scalars(front):
        for number, span in _spans(scalar, lines):
            covered.setdefault(number, []).append(span)
        if scalar.top:
            keys.append((scalar.line, scalar.text))
    return covered, keys


def _spans(scalar: guarded_yaml.Scalar, lines: list[str]) -> Iterable[tuple[int, _Span]]:
    if scalar.style in ("|", ">"):  # a comment may stand behind the indicator
        indicator = _INDICATOR.match(lines[scalar.line], scalar.column)
        yield scalar.line, (scalar.column, indicator.end() if indicator else scalar.column + 1)
        last = scalar.last if scalar.end else scalar.last - 1
        yield from ((number, (0, len(lines[number]))) for number in range(scalar.line + 1, min(last + 1, len(lines))))
        return
    for number in range(scalar.line, scalar.last + 1):
        first = scalar.column if number == scalar.line else 0
        yield number, (first, scalar.end if number == scalar.last else len(lines[number]))


def _within(spans: Iterable[_Span], place: int) -> bool:
    return any(first <= place < last for first, last in spans)


def _about(lines: list[str], number: int, place: int) -> str:
    """The line that a comment stands in or above."""
    line = lines[number][:place].strip()
    following = (text.strip() for text in lines[number + 1 :] if text.strip() and not text.strip().startswith("#"))
    return trimmed(one_line(line or next(following, "")).removeprefix("- "), _ABOUT)
