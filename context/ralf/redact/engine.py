"""The regular-expression engine for foreign text: RE2, whose time is linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from re import _constants as constants, _parser as parser  # type: ignore[attr-defined]  # no other module parses them
from typing import Any, Protocol

from ralf.text.frozen import NamedTuple

# RE2 is a compiled dependency, and not every platform has a build of it (musl has none). Without it `available()` is
# False, the vendors' rules are not looked for, and a user's pattern runs on Python's engine only where its structure
# bounds the work at each place of the text.
#
# Only this module imports `re2`, and only at first need: the import costs more than redacting a short text.


MOST_STEPS = 4096
"""Ways in which a pattern may match at one place of a text, for Python's engine to run it."""

_MEMORY = 32 << 20  # bytes that RE2 may take for one expression; a set of words takes far less

_SMALL = 4096  # characters of a text that are looked through for words without loading RE2

_WITHOUT = 16_384  # characters in all, after which RE2 is loaded for small texts, too

Place = tuple[int, int]
"""Where a group begins and ends, in characters; (-1, -1) for a group that did not take part."""


class Hit(NamedTuple):
    """A secret in a text: where it stands, and its kind."""

    start: int
    end: int
    kind: str


class PatternError(ValueError):
    """An expression that cannot run here; its message says why."""


class Text:
    """A text that is looked through, in the forms that the rules read."""

    def __init__(self, raw: str) -> None:
        self.raw = raw

    @cached_property
    def low(self) -> str:
        """The text in lower case, each character in its place."""
        low = self.raw.lower()
        if len(low) == len(self.raw):
            return low
        return "".join(
            each if len(each) == 1 else raw for raw, each in zip(self.raw, map(str.lower, self.raw), strict=True)
        )

    @cached_property
    def data(self) -> bytes:
        """The text as RE2 reads it: UTF-8, a lone surrogate as one question mark."""
        return self.raw.encode("utf-8", "replace")


class Expression(Protocol):
    """A compiled expression."""

    def matches(self, text: Text) -> Iterator[Sequence[Place]]:
        """The matches in order, none over another, each as the places of the whole and of its groups."""
        ...  # pragma: no cover


NOT_LOOKED_FOR = (
    "google-re2 is not installed: of vendors' tokens only the commonest are found, user patterns need bounds"
)
"""What is said where RE2 is missing."""


@cache
def available() -> bool:
    """Whether RE2 is installed."""
    return find_spec("re2") is not None


def compile(pattern: str) -> Expression:  # noqa: A001  # as `re.compile`
    """An expression in RE2's syntax, ready to run. PatternError where it is none."""
    return _Re2(pattern) if available() else _Bounded(pattern)


def compile_users(pattern: str) -> Expression:
    """An expression that a person wrote. PatternError where it is none, and where nothing runs it in linear time."""
    expression = compile(pattern)
    if next(iter(expression.matches(Text(""))), None) is not None:
        raise PatternError("it matches where nothing stands")
    return expression


# ---- RE2 ----


def _options(*, literal: bool = False) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.literal = literal
    options.max_mem = _MEMORY
    return options


class _Re2:
    def __init__(self, pattern: str) -> None:
        import re2

        try:
            self._expression = re2.compile(pattern, _options())
        except (re2.error, UnicodeEncodeError) as error:
            said = error.args[0] if error.args else error
            raise PatternError(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)) from None

    def matches(self, text: Text) -> Iterator[Sequence[Place]]:
        data = text.data
        plain = len(data) == len(text.raw)
        place = characters = 0  # how far the bytes were counted, and how many characters these are
        for found in self._expression.finditer(data):
            spans = [found.span(group) for group in range(self._expression.groups + 1)]
            if not plain:
                start = spans[0][0]
                characters += len(data[place:start].decode())
                place = start
                spans = [_in_characters(data, start, span, characters) for span in spans]
            yield spans


def _in_characters(data: bytes, start: int, span: Place, before: int) -> Place:
    """A group's place in characters; `before` characters stand before its match, which begins at the byte `start`."""
    first, last = span
    if first < 0:
        return span
    begin = before + len(data[start:first].decode())
    return begin, begin + len(data[first:last].decode())


# ---- without RE2 ----


class _Bounded:
    """An expression on Python's engine whose structure bounds how often each place of a text is looked at."""

    def __init__(self, pattern: str) -> None:
        try:
            steps = _ways(parser.parse(pattern))
            self._expression = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise PatternError(str(error)) from None
        if steps > MOST_STEPS:
            raise PatternError(
                "RE2 is not installed, and only an expression with small bounds on its repeats runs without"
            )

    def matches(self, text: Text) -> Iterator[Sequence[Place]]:
        for found in self._expression.finditer(text.raw):
            yield [found.span(group) for group in range(self._expression.groups + 1)]


def _ways(tree: Any) -> int:
    """In how many ways an expression can go on from one place, at most MOST_STEPS + 1."""
    ways = 1
    for operation, argument in tree:
        ways = min(ways * _ways_of(operation, argument), MOST_STEPS + 1)
    return ways


def _ways_of(operation: Any, argument: Any) -> int:
    if operation in (constants.MAX_REPEAT, constants.MIN_REPEAT):
        least, most = int(argument[0]), int(argument[1])
        if most > MOST_STEPS:
            return MOST_STEPS + 1
        ways = _ways(argument[2])
        return most - least + 1 if ways == 1 else min(ways ** min(most, 16) * most, MOST_STEPS + 1)
    if operation is constants.BRANCH:
        return sum(map(_ways, argument[1]))
    if operation is constants.SUBPATTERN:
        return _ways(argument[-1])
    if operation in (constants.LITERAL, constants.NOT_LITERAL, constants.ANY, constants.IN, constants.AT):
        return 1
    raise re.error("lookaround, backreferences and possessive repeats are not supported")


# ---- words ----


class Words:
    """Which of many words stand in a text: one pass over it, however many they are.

    words  in lower case
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._words = tuple(dict.fromkeys(words))
        self._set: Any = None
        self._looked = 0  # characters that were looked through without RE2

    def within(self, low: str) -> list[str]:
        """The words that stand in a text, which is in lower case."""
        if self._set is None and not self._loaded(len(low)):
            return [word for word in self._words if word in low]
        return [self._words[number] for number in self._set.Match(low.encode("utf-8", "replace")) or ()]

    def _loaded(self, size: int) -> bool:
        self._looked += size
        if not available() or (size < _SMALL and self._looked < _WITHOUT):
            return False
        import re2

        self._set = re2.Set.SearchSet(_options(literal=True))
        for word in self._words:
            self._set.Add(word.encode())
        self._set.Compile()
        return True
