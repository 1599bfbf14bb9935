"""Finds and masks the words of a forget in texts, trees and files.

White space, case, the signs of Markdown, composition of letters (NFC, NFD, full width), JSON escapes, percent encoding
and HTML entities do not count. In a copy that was cut (`…`) the rest is found. `NOT_REACHED` lists the forms that are
not found.
"""

from __future__ import annotations

import errno
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

from ralf.storage.files import content_of
from ralf.storage.journal_file import unpacked
from ralf.text.cleaning import MARK
from ralf.text.patterns import regex

NOT_REACHED = ("base64", "hexadecimal", "double encoding", "other spellings", "words with others between them")
"""Forms of the words that are not found, and not purged: docs/internals.md#guarantees."""

LEAST = 12
"""Characters that count which a piece of a text must have to be recognized as one of its words."""

_CUT = "…"

_BYTES = {"text", "size"}  # the keys of bytes as an agent framework's saver puts them into a record

_IGNORED = regex(r"""[\s*_`~>#|+\-"'\\]+""")

_ESCAPE = (
    r"(?<!\\)(?:((?:\\+u[0-9a-fA-F]{4})+)|\\+[nrt])"  # from its first backslash on, for there may be many
    r"|(%(?:[0-7][0-9a-fA-F]|[c-dC-D][0-9a-fA-F]%[89abAB][0-9a-fA-F]|[eE][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){2}"
    r"|[fF][0-7](?:%[89abAB][0-9a-fA-F]){3}))"  # one character of UTF-8
    r"|(&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
)

_ESCAPED, _CHARACTER = regex(_ESCAPE), regex(rf"(?s){_ESCAPE}|.")

_VALUE = regex(rf"(?m)^((?: *- )*(?: *[\w-]+: )?)({re.escape(MARK)}.*)$")

_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EINVAL)


_OWN_NUMBER = regex(r"byte|line|token|number|revision|counter|seconds|process|born|size|cost|^v$")


class Wording:
    """The words of one or more texts.

    within_words  whether they count also where they are a part of other words, as a secret may be
    """

    def __init__(self, texts: Iterable[str], *, within_words: bool = False) -> None:
        self._within_words = within_words
        keys = set[str]()
        for text in texts:
            pieces = text.replace(MARK, _CUT).split(_CUT)
            least = LEAST if len(pieces) > 1 else 1
            keys |= {key for key in map(_essence, pieces) if len(key) >= least}
        self._keys = sorted(keys, key=lambda key: (-len(key), key))

    def __bool__(self) -> bool:
        return bool(self._keys)

    def stands_in(self, text: str) -> bool:
        """Whether the words, or what is left of them in a cut copy, stand in a text."""
        return bool(self.spans(text))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the words stand in a text, in order."""
        if not any(True for _ in self._found(_essence(text))):  # most texts need no closer look
            return []
        essence, places = _read(text)
        spans: list[tuple[int, int]] = []
        for start, end, begins, ends in self._found(essence):
            first, last = places[start][0], places[end - 1][1]
            if self._within_words or _is_apart(text, first, last, begins=begins, ends=ends):
                spans.append((first, last))
        merged: list[tuple[int, int]] = []
        for first, last in sorted(spans):
            if merged and first <= merged[-1][1]:
                first, last = merged[-1][0], max(merged.pop()[1], last)
            merged.append((first, last))
        return merged

    def _found(self, essence: str) -> Iterator[tuple[int, int, bool, bool]]:
        """Where the words stand, and whether their first and their last one are among them."""
        for key in self._keys:
            place = essence.find(key)
            while place >= 0:
                yield place, place + len(key), True, True
                place = essence.find(key, place + 1)
        start = 0
        for piece in essence.split(_CUT) if _CUT in essence else ():
            end = start + len(piece)
            for key in self._keys if len(piece) >= LEAST else ():
                if end < len(essence) and (head := _head(piece, key)):
                    yield end - head, end, True, False
                if start and (tail := _head(piece[::-1], key[::-1])):
                    yield start, start + tail, False, True
            start = end + len(_CUT)

    def without(self, text: str) -> str:
        """The text with `MARK` in the words' place; the text itself where they do not stand in it."""
        for first, last in reversed(self.spans(text)):
            text = text[:first] + MARK + text[last:]
        return text

    def taken_out(self, tree: Any, key: str = "") -> Any:
        """A plain tree without the words, keys included. Bytes that stand in it as text keep their length, which may
        stand in them. A number that is one of the words goes, too, but for ralf's own, such as a place in a log.
        """
        if isinstance(tree, str):
            return self.without(tree)
        if isinstance(tree, int | float) and len(str(tree)) > len("99999") and not _OWN_NUMBER.search(key):
            return MARK if self.without(str(tree)) == MARK else tree
        if isinstance(tree, dict):
            if tree.keys() == _BYTES:
                return tree | {"text": self._blanked(str(tree["text"]))}
            return {self.without(key): self.taken_out(value, key) for key, value in tree.items()}
        return [self.taken_out(inner, key) for inner in tree] if isinstance(tree, list) else tree

    def _blanked(self, text: str) -> str:
        for first, last in reversed(self.spans(text)):
            size = len(text[first:last].encode("utf-8", "surrogateescape"))
            text = f"{text[:first]}{'*' * size}{text[last:]}"
        return text

    def masked(self, content: bytes) -> bytes:
        """The bytes of a file without the words: of lines of JSON, in each string; of any other text, in the whole."""
        text = content.decode("utf-8", "surrogateescape")
        if not self.stands_in(text):
            return content
        try:
            lines = [self._line(line) for line in content.split(b"\n")]
        except ValueError:
            made = self.without(text)
            if made.startswith("---\n"):  # in YAML a value that begins with a bracket is a list
                front, end, body = made.partition("\n---\n")
                made = _VALUE.sub(lambda found: found[1] + json.dumps(found[2], ensure_ascii=False), front) + end + body
            return made.encode("utf-8", "surrogateescape")
        return b"\n".join(lines)

    def _line(self, line: bytes) -> bytes:
        tree = json.loads(line) if line.strip() else None
        made = self.taken_out(tree)
        return line if made == tree else line_of(made)


def line_of(tree: Any) -> bytes:
    """A tree as a line of JSON, without the line break."""
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def is_telling(text: str, words: int = 3) -> bool:
    """Whether a text is long enough to be looked for everywhere: a word or two stand in too many places."""
    return len(text.split()) >= words and weight(text) >= LEAST


def weight(text: str) -> int:
    """How many characters of a text count."""
    return len(_essence(text))


def _head(piece: str, key: str) -> int:
    """How many of a key's first characters, `LEAST` or more but not all, end a piece: 0 for none."""
    place = piece.find(key[:LEAST], max(0, len(piece) - len(key) + 1))
    while place >= 0 and not key.startswith(piece[place:]):
        place = piece.find(key[:LEAST], place + 1)
    return len(piece) - place if place >= 0 and len(key) > LEAST else 0


def _essence(text: str) -> str:
    """The characters of a text that count."""
    folded = _ESCAPED.sub(_decoded, text).casefold()
    if not folded.isascii():  # the sign of a cut stays one
        folded = _CUT.join(unicodedata.normalize("NFKD", part) for part in folded.split(_CUT))
    return _IGNORED.sub("", folded)


def _read(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The characters of a text that count, and the span in it of each."""
    essence: list[str] = []
    places: list[tuple[int, int]] = []
    counted: dict[str, str] = {}  # a text has few different characters
    units: list[tuple[int, int]] = []  # marks belong to their letter: only together are they in canonical order
    for match in _CHARACTER.finditer(text):
        if (counts := counted.get(match[0])) is None:
            counts = counted[match[0]] = _essence(match[0])
        if units and counts and unicodedata.combining(counts[0]):
            units[-1] = units[-1][0], match.end()
        else:
            units.append(match.span())
    for first, last in units:
        piece = text[first:last]
        if (counts := counted.get(piece)) is None:
            counts = counted[piece] = _essence(piece)
        essence += counts
        places += [(first, last)] * len(counts)
    return "".join(essence), places


def _decoded(escape: re.Match[str]) -> str:
    if escape[1]:
        return str(json.loads('"' + re.sub(r"\\+", r"\\", escape[1]) + '"'))
    if escape[2]:
        return bytes.fromhex(escape[2].replace("%", "")).decode("utf-8", "replace")
    return unescape(escape[3]) if escape[3] else "\n"


def _is_apart(text: str, first: int, last: int, *, begins: bool, ends: bool) -> bool:
    """Whether words do not go on beyond a span of a text, at its beginning and at its end."""
    before, after = _ESCAPED.sub(_decoded, text[max(0, first - LEAST) : first])[-1:], text[last : last + 1]
    inside = begins and before.isalnum() and text[first].isalnum()
    return not inside and not (ends and after.isalnum() and text[last - 1].isalnum())


# ---- files ----


def holds(path: Path, wording: Wording) -> bool:
    """Whether the words stand in a file; one that is gone, or none, holds nothing. One that cannot be read, or is too
    large for that, may: nobody can say that they are gone.
    """
    try:
        content = unpacked(content_of(path))
    except OSError as error:
        return error.errno not in _NO_FILE
    return wording.masked(content) != content


def remains(folder: Path, wording: Wording) -> list[Path]:
    """The files below `folder` in which the words stand, sorted; links are not followed."""
    return sorted(path for path in files_below(folder) if holds(path, wording))


def files_below(folder: Path) -> Iterator[Path]:
    """The files below `folder`; links are not followed."""
    for top, _, files in os.walk(folder):
        yield from (Path(top, name) for name in files)
