"""The regular-expression engine for foreign text (RE2, in time linear in the text) and the rules that run on it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from math import log2
from pathlib import Path
from re import _constants as constants, _parser as parser  # type: ignore[attr-defined]  # no other module parses them
from typing import Any, Protocol, TypeVar

from ralf.text.frozen import NamedTuple
from ralf.text.patterns import regex

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

T = TypeVar("T")

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


def by_word(rules: Iterable[T], words: Callable[[T], Iterable[str]]) -> dict[str, list[T]]:
    """The rules under each of the words without one of which they find nothing."""
    found: dict[str, list[T]] = {}
    for rule in rules:
        for word in words(rule):
            found.setdefault(word, []).append(rule)
    return found


def rules_for(there: Iterable[str], rules: Mapping[str, Iterable[T]]) -> Iterable[T]:
    """The rules of the words that a text has, each once; `rules` as `by_word` returns them."""
    return dict.fromkeys(rule for word in there for rule in rules.get(word, ()))


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


@cache
def pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression of a rule, at first need: rules are many, and few of them are asked for a text."""
    return re.compile(text)


def any_of(words: Iterable[str]) -> str:
    """A regular expression that matches the first of some words, as `a|b|c` does, but looks at each beginning once."""
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(its)})" for first, its in rests.items())


def entropy(text: str) -> float:
    """Shannon's entropy of a text, in bits for each character."""
    size = len(text)
    return -sum(many / size * log2(many / size) for many in Counter(text).values())


_SAME = regex(r"(.)\1*\Z", re.S)

_DISTINCT = 5  # a secret has at least as many characters that differ


def is_sample(token: str) -> bool:
    """Whether a token of the right shape is one of documentation: AKIAIOSFODNN7EXAMPLE, ghp_xxxxxxxx."""
    low = token.lower()
    repeats = len(set(low)) < _DISTINCT and (len(token) > len("12345678") or _SAME.match(low) is not None)
    return repeats or "example" in low or "xxxxx" in low


# ---- the rules of vendors ----
#
# A rule is compiled when one of its keywords stands in a text, and its finds count as gitleaks counts them: the secret
# is the group of the rule, else the first group that took part, else the match; its entropy is above that of the
# rule; no allow-list of the rule or of the file names it. The rules run on RE2 only.


_FILE = Path(__file__).parents[1] / "data" / "gitleaks.json"

_LONGEST_KIND = 40


class VendorRule:
    """One rule of gitleaks.

    kind   what the marker calls what it finds
    words  one of them, in lower case, is in a text in which it finds something
    """

    def __init__(self, rule: Mapping[str, Any]) -> None:
        self._rule = rule
        self.kind: str = rule["id"][:_LONGEST_KIND]
        self.words: Sequence[str] = rule.get("keywords", ())

    @cached_property
    def _expression(self) -> Expression:
        return compile(self._rule["regex"])

    @cached_property
    def _allowed(self) -> Sequence[_Allowed]:
        return [_Allowed(one) for one in self._rule.get("allowlists", ())]

    def find(self, text: Text) -> Iterator[Hit]:
        """The secrets that the rule finds in a text, in order."""
        for places in self._expression.matches(text):
            start, end = self._secret(places)
            secret = text.raw[start:end]
            if entropy(secret) <= self._rule.get("entropy", 0) or is_sample(secret):
                continue
            if not any(one.names(text.raw, places[0], secret) for one in (_allowed_anywhere(), *self._allowed)):
                yield Hit(start, end, self.kind)

    def _secret(self, places: Sequence[Place]) -> Place:
        if "secretGroup" in self._rule:
            return places[int(self._rule["secretGroup"])]
        return next((place for place in places[1:] if place[0] < place[1]), places[0])


class _Allowed:
    """What is no secret though a rule matches: where one of the expressions or words is in it, or both for AND."""

    def __init__(self, allowed: Mapping[str, Any]) -> None:
        self._allowed = allowed
        self._expressions = [compile(regex) for regex in allowed.get("regexes", ())]

    def names(self, text: str, match: Place, secret: str) -> bool:
        checks = []
        if self._expressions:
            target = Text(self._target(text, match, secret))
            checks.append(any(next(iter(one.matches(target)), None) for one in self._expressions))
        if words := self._allowed.get("stopwords"):
            low = secret.lower()
            checks.append(any(word.lower() in low for word in words))
        return (all if self._allowed.get("condition") == "AND" else any)(checks)

    def _target(self, text: str, match: Place, secret: str) -> str:
        start, end = match
        target = self._allowed.get("regexTarget")
        if target == "match":
            return text[start:end]
        if target == "line":
            after = text.find("\n", end)
            return text[text.rfind("\n", 0, start) + 1 : after if after >= 0 else len(text)]
        return secret


@cache
def _file() -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = json.loads(_FILE.read_text("utf-8"))
    return loaded


@cache
def _allowed_anywhere() -> _Allowed:
    return _Allowed(_file()["allowed"])


@cache
def vendor_rules() -> Mapping[str, Sequence[VendorRule]]:
    """The rules by keyword."""
    return by_word(map(VendorRule, _file()["rules"]), lambda rule: rule.words)


@cache
def vendor_words() -> Sequence[str]:
    """The words, in lower case, without one of which no rule finds anything; none where RE2 is not installed."""
    return tuple(vendor_rules()) if available() else ()


@cache
def vendor_literals() -> Sequence[str]:
    """The literals with which tokens begin that the rules find."""
    found = [literal for rule in _file()["rules"] for literal in rule.get("literals", ())]
    return tuple(dict.fromkeys(found)) if available() else ()


def find_vendor_tokens(text: Text, there: Iterable[str]) -> Iterator[Hit]:
    """The secrets that the rules find in a text, in no order; they may overlap.

    there  the words of the rules that stand in the text
    """
    for rule in rules_for(there, vendor_rules() if available() else {}):
        yield from rule.find(text)
