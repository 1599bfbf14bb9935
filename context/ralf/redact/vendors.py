"""The rules of vendors, which are gitleaks'.

A rule is compiled when one of its keywords stands in a text, and its finds count as gitleaks counts them: the secret
is the group of the rule, else the first group that took part, else the match; its entropy is above that of the
rule; no allow-list of the rule or of the file names it. The rules run on RE2 only.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from ralf.redact import engine
from ralf.redact.engine import Expression, Hit, Place, Text
from ralf.redact.values import entropy, is_sample

_FILE = Path(__file__).parents[1] / "data" / "gitleaks.json"

_LONGEST_KIND = 40

_OWN = ("lob-api-key", "gocardless-api-token")  # which the table finds without their names, and faster


class VendorRule:
    """One rule of gitleaks.

    kind      what the marker calls what it finds
    words     one of them, in lower case, is in a text in which it finds something
    literals  with one of them what it finds begins
    """

    def __init__(self, rule: Mapping[str, Any]) -> None:
        self._rule = rule
        self.kind: str = rule["id"][:_LONGEST_KIND]
        self.words: Sequence[str] = rule.get("keywords", ())
        self.literals: Sequence[str] = rule.get("literals", ())

    @cached_property
    def _expression(self) -> Expression:
        return engine.compile(self._rule["regex"])

    @cached_property
    def _allowed(self) -> Sequence[_Allowed]:
        return [*_allowed_anywhere(), *map(_Allowed, self._rule.get("allowlists", ()))]

    def find(self, text: Text, _: Collection[str] = ()) -> Iterator[Hit]:
        """The secrets that the rule finds in a text, in order."""
        for places in self._expression.matches(text):
            first = next((place for place in places[1:] if place[0] < place[1]), places[0])
            start, end = places[self._rule["secretGroup"]] if "secretGroup" in self._rule else first
            secret = text.raw[start:end]
            if entropy(secret) <= self._rule.get("entropy", 0) or is_sample(secret):
                continue
            if not any(one.names(text.raw, places[0], secret) for one in self._allowed):
                yield Hit(start, end, self.kind)


class _Allowed:
    """What is no secret though a rule matches: where one of the expressions or words is in it, or both for AND."""

    def __init__(self, allowed: Mapping[str, Any]) -> None:
        self._target, self._words = allowed.get("regexTarget"), allowed.get("stopwords", ())
        self._all = all if allowed.get("condition") == "AND" else any
        self._expressions = [engine.compile(regex) for regex in allowed.get("regexes", ())]

    def names(self, text: str, match: Place, secret: str) -> bool:
        start, end = match
        if self._target == "line":
            start, after = text.rfind("\n", 0, start) + 1, text.find("\n", end)
            end = after if after >= 0 else len(text)
        target = Text(text[start:end] if self._target in ("match", "line") else secret)
        matches = any(next(iter(one.matches(target)), None) for one in self._expressions)
        stops = any(word.lower() in secret.lower() for word in self._words)
        return self._all(check for check, asked in ((matches, self._expressions), (stops, self._words)) if asked)


@cache
def _file() -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = json.loads(_FILE.read_text("utf-8"))
    return loaded


@cache
def _allowed_anywhere() -> Sequence[_Allowed]:
    return (_Allowed(_file()["allowed"]),)


@cache
def rules() -> Sequence[VendorRule]:
    """The rules; none where RE2 is not installed."""
    return tuple(VendorRule(rule) for rule in _file()["rules"] if rule["id"] not in _OWN) if engine.available() else ()


@cache
def literals() -> Sequence[str]:
    """The literals with which tokens begin that the rules find."""
    return tuple(dict.fromkeys(literal for rule in rules() for literal in rule.literals))
