"""Finds the words of a text wherever they stand, however they are laid out, and takes them out. Pure.

White space, case, the signs of Markdown, how letters are composed (NFC, NFD, full width), the escapes of JSON, percent
encoding and HTML's entities do not count, so that a sentence is found in a message, in a quote of it, in an address and
in a file of data. Where a copy was cut (`…`), what is left of it is found, too. What is not: `NOT_REACHED`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any, NamedTuple

MARK = "[forgotten]"
"""Stands where words were taken out."""

NOT_REACHED = ("base64", "hexadecimal", "double encoding", "other spellings", "words with others between them")
"""Forms of the words that are not found, and not purged: docs/guarantees.md."""

LEAST = 12
"""Characters that count which a piece of a text must have to be known for one."""

_CUT = "…"
_AROUND = 12  # characters, of which an escape before a word seldom has more
_PASSED_OVER = re.compile(r"""[\s*_`~>#|+\-"'\\]+""")
_ESCAPE = (
    r"(?<!\\)(?:((?:\\+u[0-9a-fA-F]{4})+)|\\+[nrt])"  # from its first backslash on, for there may be many
    r"|(%(?:[0-7][0-9a-fA-F]|[c-dC-D][0-9a-fA-F]%[89abAB][0-9a-fA-F]|[eE][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){2}"
    r"|[fF][0-7](?:%[89abAB][0-9a-fA-F]){3}))"  # one character of UTF-8
    r"|(&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
)
_MAY_ESCAPE = re.compile(r"[\\%&]")
_ESCAPED = re.compile(_ESCAPE)
_TOKEN = re.compile(rf"(?s){_ESCAPE}|.")


class _Read(NamedTuple):
    """The characters of a text that count, and where each stands in it: its first place, and the one behind it."""

    essence: str
    places: list[tuple[int, int]]


class Wording:
    """The words of one or more texts."""

    def __init__(self, texts: Iterable[str], *, within_words: bool = False) -> None:
        """within_words: whether they count also where they are a part of other words, as a secret may be."""
        self._within_words = within_words
        keys = set()
        for text in texts:
            pieces = text.replace(MARK, _CUT).split(_CUT)
            for piece in pieces:
                for essence in (_essence(piece), _essence(_unescaped(piece))):
                    if len(essence) >= (LEAST if len(pieces) > 1 else 1):
                        keys.add(essence)
        self._keys = sorted(keys, key=lambda key: (-len(key), key))

    def __bool__(self) -> bool:
        return bool(self._keys)

    def stands_in(self, text: str) -> bool:
        """Whether the words, or what is left of them in a cut copy, stand in a text."""
        return bool(self._spans(text))

    def without(self, text: str) -> str:
        """The text with `MARK` in the words' place; the text itself where they do not stand in it."""
        spans = self._spans(text)
        made, done = "", 0
        for start, end in spans:
            made += text[done:start] + MARK
            done = end
        return made + text[done:] if spans else text

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Where the words stand in a text, in order."""
        spans = []
        for escapes in (False, True) if _MAY_ESCAPE.search(text) else (False,):
            if self._is_in(_essence(_unescaped(text) if escapes else text)):  # most texts need no closer look
                essence, places = _read(text, escapes=escapes)
                for start, end, begins, ends in self._found(essence):
                    first, last = places[start][0], places[end - 1][1]
                    if self._within_words or _is_apart(text, first, last, begins=begins, ends=ends):
                        spans.append((first, last))
        return _merged(spans)

    def taken_out(self, tree: Any) -> Any:
        """A plain tree without the words, keys included; the same object where they do not stand in it."""
        if isinstance(tree, str):
            return self.without(tree)
        if isinstance(tree, dict):
            made = {self.without(key): self.taken_out(inner) for key, inner in tree.items()}
            same = all(a is b for a, b in zip(made, tree, strict=False)) and len(made) == len(tree)
            return tree if same and all(made[key] is tree[key] for key in tree) else made
        if isinstance(tree, list):
            items = [self.taken_out(inner) for inner in tree]
            return tree if all(one is other for one, other in zip(items, tree, strict=True)) else items
        return tree

    def _is_in(self, essence: str) -> bool:
        return any(key in essence for key in self._keys) or (_CUT in essence and any(self._cut(essence)))

    def _found(self, essence: str) -> Iterator[tuple[int, int, bool, bool]]:
        """Where the words stand, and whether their first and their last one are among them."""
        for key in self._keys:
            place = essence.find(key)
            while place >= 0:
                yield place, place + len(key), True, True
                place = essence.find(key, place + 1)
        yield from self._cut(essence)

    def _cut(self, essence: str) -> Iterator[tuple[int, int, bool, bool]]:
        """Where the beginning of a text stands before the sign of a cut, or its end behind one."""
        start = 0
        for piece in essence.split(_CUT):
            end = start + len(piece)
            for key in self._keys if len(piece) >= LEAST else ():
                lengths = range(min(len(key) - 1, len(piece)), LEAST - 1, -1)
                head = next((n for n in lengths if piece.endswith(key[:n])), 0) if end < len(essence) else 0
                tail = next((n for n in lengths if piece.startswith(key[-n:])), 0) if start else 0
                if head:
                    yield end - head, end, True, False
                if tail:
                    yield start, start + tail, False, True
            start = end + len(_CUT)


def is_telling(text: str, words: int = 3) -> bool:
    """Whether a text is long enough to be looked for everywhere: a word or two stand in too many places."""
    return len(text.split()) >= words and weight(text) >= LEAST


def weight(text: str) -> int:
    """How many characters of a text count."""
    return len(_essence(text))


def _essence(text: str) -> str:
    folded = text.casefold()
    if not folded.isascii():  # the sign of a cut stays one
        folded = _CUT.join(unicodedata.normalize("NFKD", part) for part in folded.split(_CUT))
    return _PASSED_OVER.sub("", folded)


def _read(text: str, *, escapes: bool) -> _Read:
    """The text without what does not count; `escapes`: `\\n`, `%20` and `&eacute;` are read as what they stand for."""
    essence: list[str] = []
    places: list[tuple[int, int]] = []
    known: dict[str, str] = {}  # a text has few different characters
    for said, place in _tokens(text) if escapes else _characters(text):
        if (counts := known.get(said)) is None:
            counts = known[said] = _essence(_unescaped(said) if escapes else said)
        for char in counts:
            essence.append(char)
            places.append(place)
    return _Read("".join(essence), places)


def _tokens(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    return ((match[0], match.span()) for match in _TOKEN.finditer(text))


def _characters(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    return ((char, (place, place + 1)) for place, char in enumerate(text))


def _is_apart(text: str, first: int, last: int, *, begins: bool, ends: bool) -> bool:
    """Whether words do not go on beyond a span of a text, at its beginning and at its end."""
    before, after = _unescaped(text[max(0, first - _AROUND) : first])[-1:], text[last : last + 1]
    inside = begins and before.isalnum() and text[first].isalnum()
    return not inside and not (ends and after.isalnum() and text[last - 1].isalnum())


def _unescaped(text: str) -> str:
    """The text with escapes as what they stand for: `\\n` and `\\u00e9` however many times they were escaped, `%20`,
    `&eacute;`.
    """
    return _ESCAPED.sub(_meant, text)


def _meant(escape: re.Match[str]) -> str:
    if escape[1]:
        return str(json.loads('"' + re.sub(r"\\+", r"\\", escape[1]) + '"'))
    if escape[2]:
        return bytes.fromhex(escape[2].replace("%", "")).decode("utf-8", "replace")
    return unescape(escape[3]) if escape[3] else "\n"


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    made: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if made and start <= made[-1][1]:
            made[-1] = made[-1][0], max(made[-1][1], end)
        else:
            made.append((start, end))
    return made
