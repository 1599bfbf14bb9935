"""The regular-expression engine for foreign text: RE2, whose time is linear in the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import accumulate
from typing import Any

from ralf.text.frozen import NamedTuple

# RE2 is a compiled dependency, and not every platform has a build of it (musl has none). Without it neither the
# vendors' rules nor patterns of users run. Only this module imports `re2`, and only at first need: the import costs
# more than redacting a short text.

NOT_LOOKED_FOR = "google-re2 is not installed: of vendors' tokens only the commonest are found, no user pattern runs"
"""What is said where RE2 is missing."""

_MEMORY = 32 << 20  # bytes that RE2 may take for one expression; a set of words takes far less
_WITHOUT = 4096  # characters of a text, and four times as many in all, that are looked through for words without RE2

Place = tuple[int, int]
"""Where a group begins and ends, in characters; (-1, -1) for a group that did not take part."""


class Hit(NamedTuple):
    """A secret in a text: where it stands, and its kind."""

    start: int
    end: int
    kind: str


class Rule(NamedTuple):
    """What finds secrets of a sort.

    words  one of them, in lower case, is in a text in which it finds something
    find   the secrets of a text in which these of the words stand, in no order; they may overlap
    """

    words: Sequence[str]
    find: Callable[[Text, Collection[str]], Iterator[Hit]]


class PatternError(ValueError):
    """An expression that cannot run here; its message says why."""


_PREFIX = re.compile(r"(?m)^(?:[ \t]*[0-9]{1,6}\u2192|[+-](?![+-]|[ ]))")


class Lines:
    """The lines of a text without what a client or a diff puts before each: `   12\u2192`, `+`."""

    def __init__(self, raw: str) -> None:
        self._raw, self.text = raw, _PREFIX.sub("", raw)

    @staticmethod
    def may_be(raw: str) -> bool:
        """Whether a text may have such lines."""
        return "\u2192" in raw or "\n@@ " in raw

    @cached_property
    def _parts(self) -> tuple[list[int], list[int]]:
        """Where what stands behind the prefixes begins, in the whole text and in the bare one."""
        prefixes = [found.span() for found in _PREFIX.finditer(self._raw)]
        starts = [0, *(end for _, end in prefixes)]
        sizes = (end - start for start, (end, _) in zip(starts, prefixes, strict=False))
        return starts, list(accumulate(sizes, initial=0))

    def place(self, place: int) -> int:
        """Where a place of the bare text stands in the whole one."""
        starts, places = self._parts
        part = max(0, bisect_right(places, place) - 1)
        return starts[part] + place - places[part]


class Text:
    """A text that is looked through, in the forms that the rules read.

    data  as RE2 reads it: bytes where each is a character, else a lone surrogate as one question mark
    """

    __slots__ = ("_low", "data", "raw")

    def __init__(self, raw: str) -> None:
        self.raw, self._low = raw, ""
        data = raw.encode("utf-8", "replace")
        self.data: bytes | str = data if len(data) == len(raw) else data.decode()

    @property
    def low(self) -> str:
        """The text in lower case, each character in its place."""
        if not self._low:
            self._low = self.raw.lower()
            if len(self._low) != len(self.raw):
                self._low = "".join(each if len(low := each.lower()) > 1 else low for each in self.raw)
        return self._low


@cache
def available() -> bool:
    """Whether RE2 is installed."""
    return find_spec("re2") is not None


@cache
def _re2() -> Any:
    """The module. OSError where it is installed and cannot be loaded: nothing is stored without what it finds."""
    try:
        import re2
    except ImportError as error:
        raise OSError(f"google-re2 cannot be loaded: {error}") from None
    return re2


def _options() -> Any:
    re2 = _re2()
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    return options


class Expression:
    """An expression in RE2's syntax, ready to run. PatternError where it is none, or RE2 is not installed."""

    def __init__(self, pattern: str) -> None:
        if not available():
            raise PatternError("google-re2 is not installed")
        re2 = _re2()
        try:
            self._expression = re2.compile(pattern, _options())
        except (re2.error, UnicodeEncodeError) as error:
            said = error.args[0] if error.args else error
            raise PatternError(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)) from None
        self._groups = range(self._expression.groups + 1)

    def matches(self, text: Text) -> Iterator[Sequence[Place]]:
        """The matches in order, none over another, each as the places of the whole and of its groups."""
        for found in self._expression.finditer(text.data):
            yield [found.span(group) for group in self._groups]


class Words:
    """Which of many words stand in a text: one pass over it, however many they are.

    words  in lower case; what begins with `~` is an expression
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._words = tuple(dict.fromkeys(words))
        self._looked = 0  # characters that were looked through without RE2

    def within(self, text: Text) -> list[str]:
        """The words that stand in a text, in whatever case."""
        if "_set" not in self.__dict__ and len(text.raw) < _WITHOUT:
            self._looked += len(text.raw)
            if self._looked < 4 * _WITHOUT:
                return self._one_by_one(text.low)
        if not available():
            return self._one_by_one(text.low)
        return [self._words[number] for number in self._set.Match(text.data) or ()]

    def _one_by_one(self, low: str) -> list[str]:
        return [word for word in self._words if (re.search(word[1:], low) if word[0] == "~" else word in low)]

    @cached_property
    def _set(self) -> Any:
        re2 = _re2()
        made = re2.Set.SearchSet(_options())
        for word in self._words:
            made.Add(f"(?i){word[1:] if word[0] == '~' else re.escape(word)}".encode())
        made.Compile()
        return made
