"""The vendors' rules: gitleaks' rule file, as `vendoring` keeps it in `ralf/data/gitleaks.json`.

A rule is compiled when one of its keywords stands in a text, and what it finds counts as gitleaks counts it: the
secret is the rule's group, else the first group that took part, else the match; its entropy is above the rule's; no
allow-list of the rule or of the file names it. They run on RE2 only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from math import log2
from pathlib import Path
from typing import Any

from ralf.secrets import engine
from ralf.secrets.engine import Text
from ralf.secrets.secretformats import Hit
from ralf.secrets.secretvalues import is_sample

_FILE = Path(__file__).parents[1] / "data" / "gitleaks.json"
_LONGEST_KIND = 40


class Rule:
    """One rule of gitleaks.

    kind  what the marker calls what it finds
    """

    def __init__(self, rule: Mapping[str, Any]) -> None:
        self._rule = rule
        self.kind: str = rule["id"][:_LONGEST_KIND]

    @cached_property
    def _expression(self) -> engine.Expression:
        return engine.compile(self._rule["regex"])

    @cached_property
    def _allowed(self) -> Sequence[_Allowed]:
        return [_Allowed(one) for one in self._rule.get("allowlists", ())]

    def find(self, text: Text) -> Iterator[Hit]:
        """The secrets that the rule finds in a text, in order."""
        for places in self._expression.matches(text):
            start, end = self._secret(places)
            secret = text.raw[start:end]
            if _entropy(secret) <= self._rule.get("entropy", 0) or is_sample(secret):
                continue
            if not any(one.names(text.raw, places[0], secret) for one in (_allowed_anywhere(), *self._allowed)):
                yield Hit(start, end, self.kind)

    def _secret(self, places: Sequence[engine.Place]) -> engine.Place:
        if "secretGroup" in self._rule:
            return places[int(self._rule["secretGroup"])]
        return next((place for place in places[1:] if place[0] < place[1]), places[0])


class _Allowed:
    """What is no secret though a rule matches: where one of the expressions or words is in it, or both for AND."""

    def __init__(self, allowed: Mapping[str, Any]) -> None:
        self._allowed = allowed
        self._expressions = [engine.compile(regex) for regex in allowed.get("regexes", ())]

    def names(self, text: str, match: engine.Place, secret: str) -> bool:
        checks = []
        if self._expressions:
            target = Text(self._target(text, match, secret))
            checks.append(any(next(iter(one.matches(target)), None) for one in self._expressions))
        if words := self._allowed.get("stopwords"):
            low = secret.lower()
            checks.append(any(word.lower() in low for word in words))
        return (all if self._allowed.get("condition") == "AND" else any)(checks)

    def _target(self, text: str, match: engine.Place, secret: str) -> str:
        start, end = match
        target = self._allowed.get("regexTarget")
        if target == "match":
            return text[start:end]
        if target == "line":
            after = text.find("\n", end)
            return text[text.rfind("\n", 0, start) + 1 : after if after >= 0 else len(text)]
        return secret


def _entropy(secret: str) -> float:
    size = len(secret)
    return -sum(many / size * log2(many / size) for many in Counter(secret).values())


# ---- the file ----


@cache
def _file() -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = json.loads(_FILE.read_text("utf-8"))
    return loaded


@cache
def _allowed_anywhere() -> _Allowed:
    return _Allowed(_file()["allowed"])


@cache
def _by_keyword() -> Mapping[str, Sequence[Rule]]:
    found: dict[str, list[Rule]] = {}
    for one in _file()["rules"]:
        rule = Rule(one)
        for keyword in one["keywords"]:
            found.setdefault(keyword, []).append(rule)
    return found


@cache
def rules() -> Sequence[Rule]:
    """The rules, in the file's order."""
    return tuple(dict.fromkeys(rule for its in _by_keyword().values() for rule in its))


@cache
def words() -> Sequence[str]:
    """The words, in lower case, without one of which no rule finds anything; none where RE2 is not installed."""
    return tuple(_by_keyword()) if engine.available() else ()


@cache
def literals() -> Sequence[str]:
    """The literals with which tokens begin that the rules find."""
    found = [literal for rule in _file()["rules"] for literal in rule.get("literals", ())]
    return tuple(dict.fromkeys(found)) if engine.available() else ()


def find(text: Text, there: Iterable[str]) -> Iterator[Hit]:
    """The secrets that the rules find in a text, in no order; they may overlap.

    there  the words of the rules that stand in the text
    """
    known = _by_keyword() if engine.available() else {}
    for rule in dict.fromkeys(rule for word in there for rule in known.get(word, ())):
        yield from rule.find(text)
