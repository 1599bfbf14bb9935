"""Secrets that a text announces and that stand apart: seed phrases, recovery codes, keys in groups, a code by mail."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from ralf.secrets.engine import Text
from ralf.secrets.secretformats import Hit


@dataclass(frozen=True, eq=False)
class _Rule:
    """What is announced. Compiled at first need.

    kind    what the marker calls it
    words   one of them, in lower case, is in a text that announces it
    finds   finds it, as a regular expression, in a text in lower case; its first group is the secret
    """

    kind: str
    words: tuple[str, ...]
    finds: str

    @cached_property
    def secret(self) -> re.Pattern[str]:
        """Matches what is announced."""
        return re.compile(self.finds)


_JOINED = r"[\"'`*]{0,3}(?:[ \t]*[:=]|[ \t]+(?:is|was|are))?[ \t]*(?:\r?\n[ \t]*){0,2}[\"'`]?"
_CODES = "verification security one-time login sign-in authentication 2fa mfa otp".split()
_RULES = (
    _Rule(
        "seed-phrase",
        ("mnemonic", "phrase", "seed"),
        (
            rf"(?:mnemonic|(?:seed|recovery|backup|wallet)[ _-]?(?:phrase|words)){_JOINED}"
            r"((?:[a-z]{3,8}[ ]){11,23}[a-z]{3,8})(?![a-z])"
        ),
    ),
    _Rule(
        "recovery-code",
        ("recovery code", "backup code", "scratch code", "recovery_code", "backup_code"),
        (
            r"(?:recovery|backup|scratch)[ _]codes?[^\n:]{0,60}:?[ \t]*\r?\n"
            r"((?:[ \t]{0,20}+(?:[-*]|[0-9]{1,2}[.)])?[ \t]{0,20}+[a-z0-9]{4,12}(?:[- ][a-z0-9]{4,12}){0,3}"
            r"[ \t]{0,20}+(?:\r?\n|\Z)){2,20})"
        ),
    ),
    _Rule(
        "setup-key",
        ("this key", "setup key", "secret key", "entry key", "app password", "setup code", "secret:"),
        (
            rf"(?:(?:this|setup|secret|entry) key|secret|app password|setup code)(?:[ \t]for[^\n]{{0,40}})?{_JOINED}"
            r"((?:[a-z2-7]{4}[ ]){3,15}[a-z2-7]{4})(?=[\"'`.]?(?:\s|\Z))"
        ),
    ),
    _Rule(
        "one-time-code",
        (*(f"{what} code" for what in _CODES), "passcode", "one-time password"),
        (
            rf"(?:{'|'.join(_CODES)})[ ](?:code|password|passcode)"
            rf"{_JOINED}([0-9]{{6,8}})(?![0-9.,:/-]*[0-9])"
        ),
    ),
)
_BY_WORD: dict[str, list[_Rule]] = {}
for _one in _RULES:
    for _word in _one.words:
        _BY_WORD.setdefault(_word, []).append(_one)

WORDS = tuple(_BY_WORD)
"""The words, in lower case, without one of which no rule finds anything."""


def find(text: Text, there: Collection[str]) -> Iterator[Hit]:
    """The announced secrets of a text, in no order.

    there  those of WORDS that stand in the text
    """
    for rule in dict.fromkeys(rule for word in there for rule in _BY_WORD.get(word, ())):
        for found in rule.secret.finditer(text.low):
            start, end = found.span(1)
            if rule.kind != "setup-key" or _is_key(text.raw[start:end]):
                yield Hit(start, end - (len(found[1]) - len(found[1].rstrip())), rule.kind)


def _is_key(groups: str) -> bool:
    """Whether groups of four are a key, and no words: they have a digit, or fewer vowels than words have."""
    letters = groups.replace(" ", "").lower()
    return any(map(str.isdigit, letters)) or sum(letter in "aeiou" for letter in letters) * 4 < len(letters)
