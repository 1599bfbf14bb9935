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

from ralf.redact.engine import Expression, Hit, Place, Text, available
from ralf.redact.values import entropy, is_sample

_FILE = Path(__file__).parents[1] / "data" / "gitleaks.json"
_LONGEST_KIND = 40
_OWN = ("lob-api-key", "gocardless-api-token")  # which the table finds without their names, and faster


Allowed = tuple[Mapping[str, Any], Sequence[Expression]]
"""What is no secret though a rule matches, and its expressions."""


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
    def _looked_for(self) -> tuple[Expression, Sequence[Allowed]]:
        """Its expression, and the allow-lists."""
        allowed = [_allowed(one) for one in self._rule.get("allowlists", ())]
        return Expression(self._rule["regex"]), [_allowed_anywhere(), *allowed]

    def find(self, text: Text, _: Collection[str] = ()) -> Iterator[Hit]:
        """The secrets that the rule finds in a text, in order."""
        finds, allowed = self._looked_for
        for places in finds.matches(text):
            first = next((place for place in places[1:] if place[0] < place[1]), places[0])
            start, end = places[self._rule["secretGroup"]] if "secretGroup" in self._rule else first
            secret = text.raw[start:end]
            if entropy(secret) <= self._rule.get("entropy", 0) or is_sample(secret):
                continue
            if not any(_names(*one, text.raw, places[0], secret) for one in allowed):
                yield Hit(start, end, self.kind)


def _names(allowed: Mapping[str, Any], expressions: Sequence[Expression], text: str, match: Place, secret: str) -> bool:
    """Whether an allow-list names a secret: one of its expressions or words is in it, or both for AND."""
    start, end = match
    target = allowed.get("regexTarget")
    if target == "line":
        start, after = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        end = after if after >= 0 else len(text)
    looked, words = Text(text[start:end] if target in ("match", "line") else secret), allowed.get("stopwords", ())
    checks = [any(any(one.matches(looked)) for one in expressions)] if expressions else []
    checks += [any(word.lower() in secret.lower() for word in words)] if words else []
    return all(checks) if allowed.get("condition") == "AND" else any(checks)


@cache
def _file() -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = json.loads(_FILE.read_text("utf-8"))
    return loaded


def _allowed(one: Mapping[str, Any]) -> Allowed:
    return one, [*map(Expression, one.get("regexes", ()))]


@cache
def _allowed_anywhere() -> Allowed:
    return _allowed(_file()["allowed"])


@cache
def rules() -> Sequence[VendorRule]:
    """The rules; none where RE2 is not installed."""
    return tuple(VendorRule(rule) for rule in _file()["rules"] if rule["id"] not in _OWN) if available() else ()
