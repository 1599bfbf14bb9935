"""Secrets that an expression tells: tokens of vendors, hashes, addresses, announcements, what a call takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

from ralf.redact.engine import Hit, Rule, Text
from ralf.redact.table import expression, rows, words
from ralf.redact.values import (
    ID,
    MIXED,
    RANDOM,
    VOWEL,
    is_basic,
    is_gibberish,
    is_placeholder,
    is_random,
    is_sample,
    strength,
)
from ralf.text.patterns import regex

# ---- what a token or a value must satisfy ----


def _has_digit(token: str) -> bool:
    return any(map(str.isdigit, token)) and not is_sample(token)


def _has_cases(token: str) -> bool:
    return token.upper() != token != token.lower() and not is_sample(token)


def _in_webhook(path: str) -> bool:
    """Whether the path of a webhook's address has what makes it secret: digits within a long part."""
    long = [
        part
        for part in re.split(r"[/@?]", path)
        if len(part) > len("012345") and (is_random(part) or any(map(str.isdigit, part)))
    ]
    return bool(long) and not is_sample("".join(long)) and "XXXX" not in path


def _in_groups(groups: str) -> bool:
    """Whether groups of four are a key, and no words: they have a digit, or a group has no vowel or sound of a word."""
    low = groups.lower().split()
    return any(any(map(str.isdigit, group)) or not VOWEL.search(group) or is_gibberish(group) for group in low)


_CHECKS: dict[str, Callable[[str], bool]] = {
    "": lambda token: not is_sample(token),
    "any": lambda _: True,
    "digit": _has_digit,
    "mixed": _has_cases,
    "both": lambda token: _has_digit(token) and _has_cases(token),
    "random": is_random,
    "tail": lambda token: is_random(max(token.replace(".", "_").split("_"), key=len)) and not is_sample(token),
    "told": lambda value: strength(value) >= MIXED,
    "made": lambda value: strength(value) >= ID,
    "open": lambda value: not is_placeholder(value),
    "basic": is_basic,
    "webhook": _in_webhook,
    "groups": _in_groups,
}

# ---- rules ----

_AWS_SECRET = regex(
    r"(?<![A-Za-z0-9+/=])(?=[A-Z0-9+/]{0,39}[a-z])(?=[a-z0-9+/]{0,39}[A-Z])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])"
)
_NEAR = 200  # characters behind a key's id in which its secret is looked for
_ESCAPED = regex(r"(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9A-Fa-f]{2}|\\x[0-9a-fA-F]{2}|\[[0-9;]{0,6}m)\Z")
_LONGEST_ESCAPE, _LONGEST_BEHIND = 8, 40


_FIXED = regex(r"(?:%[ah]|\[(?:0-9|a-z|A-Z|a-f|A-F|2-7){1,3}\])\{([0-9]+)")  # how many letters and digits follow


class Format:
    """A token that begins with a literal: tried only where that stands, each character read a bounded number of times.

    kind      what the marker calls it
    literals  one of them stands at its beginning
    words     these in lower case: one is in a text that has such a token
    patterns  by literal, the whole expression
    """

    def __init__(self, kind: str, literals: str, follows: str, check: str = "") -> None:
        self.kind, self.literals = kind, literals.split(",")
        many = _FIXED.match(follows)
        behind = f"[a-z0-9]{{{many[1]}}}" if many else r"\S{10}"
        self.words = [f"~{re.escape(literal.lower())}{behind}" for literal in self.literals]
        self.patterns = [re.escape(literal) + expression(follows) for literal in self.literals]
        self._finds = list(map(regex, self.patterns))
        self._check = _CHECKS[check]

    def find(self, text: Text, there: Collection[str]) -> Iterator[Hit]:
        """Where such tokens stand in a text, in which these words stand."""
        raw = text.raw
        for word, shape in zip(self.words, self._finds, strict=True):
            for found in shape.finditer(raw) if word in there else ():
                start, end = found.span()
                if (not raw[start].isalnum() or self._begins(raw, start)) and self._check(found[0]):
                    yield Hit(start, end, self.kind)
                    if self.kind == "aws-key-id" and (secret := _AWS_SECRET.search(raw, end, end + _NEAR)):
                        yield Hit(*secret.span(), "aws-secret")

    def _begins(self, text: str, start: int) -> bool:
        """Whether a word begins at `start`: also one behind an escape, whose last character is a letter or digit."""
        before = text[start - 1 : start]
        if not before.isalnum() and not (before in ("_", "-") and before and len(self.literals[0]) < len("four")):
            return True
        escape = text[max(0, start - _LONGEST_ESCAPE) : start]
        return any(sign in escape for sign in "\\%[") and _ESCAPED.search(escape) is not None


class Shape:
    """What one expression finds: its first group that took part, else the whole.

    kind   what the marker calls it
    words  one of them, in lower case, is in a text in which it finds something
    """

    def __init__(self, kind: str, words: str, finds: str, check: str, _example: str = "") -> None:
        self.kind = kind
        self.words = [words] if words[:1] == "~" else words.replace("\\n", "\n").replace("\\t", "\t").split("|")
        behind, found, finds = finds.rpartition(" << ")
        self._finds = regex(expression(finds))
        # what stands right before it and belongs to it: an expression that begins with a sign is found fast
        self._behind = regex(rf"(?<![A-Za-z0-9_-]){behind}\Z") if found else None
        self._check, self._low = _CHECKS[check.removesuffix("low").strip() or "any"], check.endswith("low")

    def find(self, text: Text, _: Collection[str] = ()) -> Iterator[Hit]:
        """Where it stands in a text."""
        for found in self._finds.finditer(text.low if self._low else text.raw):
            start, end = found.span(found.lastindex or 0)
            if self._behind is not None:
                first = self._behind.search(text.raw, max(0, start - _LONGEST_BEHIND), start)
                if first is None:
                    continue
                start = first.start()
            value = text.raw[start:end].rstrip()
            if self._check(value):
                yield Hit(start, start + len(value), self.kind)


_WORDS_IN_A_ROW = regex(r"(?<![a-z])(?:[a-z]{3,8}(?:[\s,\"'`]{1,12}(?:[0-9]{1,2}[.):]?\s{1,3})?(?=[a-z])|(?![a-z])))++")
_FEWEST_WORDS, _MOST_WORDS = 12, 27  # of a seed phrase, with words that name it


@cache
def _seed_words() -> frozenset[str]:
    """The words of seed phrases: BIP-39's English list."""
    return frozenset((Path(__file__).parents[1] / "data" / "bip39.txt").read_text("utf-8").split())


_SEED_WORDS = (r"~(?:[a-z]{3,8}[\s,\"'`]{1,12}(?:[0-9]{1,2}[.):]? {1,2})?){11}[a-z]{3,8}",)


def _seed_phrases(text: Text, _: Collection[str]) -> Iterator[Hit]:
    """The words of a wallet: twelve or more of BIP-39's in a row, as no sentence has them."""
    for row in _WORDS_IN_A_ROW.finditer(text.low):
        words = re.finditer("[a-z]+", row[0]) if len(row[0]) > _FEWEST_WORDS * len("zoo") else ()
        for are_seeds, run in groupby(words, key=lambda word: word[0] in _seed_words()):
            spans = [word.span() for word in run] if are_seeds else []
            if _FEWEST_WORDS <= len(spans) <= _MOST_WORDS:
                yield Hit(row.start() + spans[0][0], row.start() + spans[-1][1], "seed-phrase")


_CALLEE = regex(rf"(?i:{'|'.join(words('callees'))})\w{{0,24}}\(")
_ARGUMENT = regex(
    r"[^'\"()\n\\]*+(?:\\{0,3}(?:'(?P<one>[^'\n\\]{0,200})\\{0,3}'|\"(?P<two>[^\"\n\\]{0,200})\\{0,3}\")|(?P<sign>[()]))"
)
_NO_PASSWORD = regex(  # an address of a page, a person or a machine, a path, a setting
    r"[\w+.-]+://|[\w.+-]+@[\w-]+\.[\w.-]+\Z|[/.]|[a-z_ ]{2,20}=|\w+:\w+="
    r"|(?:[a-z0-9-]+\.)+[a-z]{2,10}(?:[:/]|\Z)|[\w.-]+:[0-9]{2,5}\Z"
)
_MOST_ARGUMENTS = 12


def _arguments(text: Text, _: Collection[str]) -> Iterator[Hit]:
    """What a call is given that logs in, connects or signs: its literals that are no words, places or ids."""
    for call in _CALLEE.finditer(text.raw):
        place, depth, key = call.end(), 1, "hmac" in call[0].lower()
        for _number in range(_MOST_ARGUMENTS):
            found = _ARGUMENT.match(text.raw, place) if depth else None
            if found is None:
                break
            place, group = found.end(), found.lastgroup or ""
            depth += {"(": 1, ")": -1}.get(found[group], 0) if group == "sign" else 0
            value = found[group].removeprefix("{noop}")
            user, _, behind = value.partition(":")
            value = behind if behind and user.isidentifier() else value
            level = strength(value)
            if level in (MIXED, RANDOM, ID if key else RANDOM) and not _NO_PASSWORD.match(value):
                yield Hit(found.end(group) - len(value), found.end(group), "password")


@cache
def formats() -> tuple[Format, ...]:
    """The tokens that begin with a literal."""
    return tuple(Format(*row) for row in rows("formats"))


def rules() -> Iterator[Rule]:
    """These, what other expressions find in addresses, announcements, commands and calls, and what takes no table."""
    yield from (Rule(one.words, one.find) for one in formats())
    yield from (Rule(one.words, one.find) for one in (Shape(*row) for row in (*rows("shapes"), *rows("calls"))))
    yield Rule(_SEED_WORDS, _seed_phrases)
    yield Rule((f"~(?:{'|'.join(words('callees'))})\\w{{0,24}}\\(",), _arguments)
