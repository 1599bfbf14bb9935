"""Links a change of mind to the decision that it replaces, where the words leave no doubt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ralf.model import Decision

_REPLACED = re.compile(
    r"\b(?:instead of|no longer|rather than|away from|moves? from|moved from|switch(?:ed|ing)? from|dropping"
    r"|dropped|drop"
    r"|replac(?:e|es|ed|ing)|abandon(?:ed|ing)?|revert(?:ed|ing)?|back out|remov(?:e|ed|ing)|not)\s+"
    r"(?:the |our |using |use )?([\w.+#/`-]+(?: [\w.+#/`-]+){0,3})",
    re.I,
)
_CHANGE = re.compile(
    r"\b(?:instead|no longer|now|moves?|moved|switch\w*|drop\w*|replac\w+|abandon\w*|revert\w*|changed? (?:our"
    r"|my) minds?"
    r"|on reflection|on second thou?ghts?|after all|back to|from here on|from now on)\b",
    re.I,
)
_WORD = re.compile(r"[a-z0-9_+#]{2,}")
_EMPTY = re.compile(
    r"the|and|for|with|that|this|us(?:e|es|ing|ed)|now|instead|not|from|our|are|was|will|should|have|has|its|can|into|decision"
    r"|decided|longer|here|of|we|it|is|to|in|on|as|by|be|or|an|at|go|goes|runs?|let|do"
)


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if not _EMPTY.fullmatch(word)}


def replaced_terms(text: str) -> list[set[str]]:
    """What a sentence says it turns away from: for each mention, its first content word and those that follow."""
    return [words for match in _REPLACED.finditer(text) if (words := _words(match[1]))]


def _clearly(new: Decision, old: Decision) -> bool:
    if old.kind == "rule" or not _CHANGE.search(new.decision):
        return False
    old_words, new_words = _words(old.decision), _words(new.decision)
    shared = old_words & new_words
    if len(shared) < 3 or (old_words <= new_words and len(old_words) < 3):
        return False
    named = any(len(terms & old_words) * 2 >= len(terms) for terms in replaced_terms(new.decision))
    return named and len(shared) * 2 >= min(len(old_words), len(new_words))


def supersede(found: Sequence[Decision], known: Sequence[Decision]) -> list[Decision]:
    """The found decisions, linked to the known ones that they replace; those replaced among themselves are marked."""
    out: list[Decision] = []
    for decision in found:
        new = decision
        for place in range(len(out) - 1, -1, -1):
            if out[place].status == "active" and _clearly(decision, out[place]):
                out[place] = replace(out[place], status="superseded")
        older = next(
            (old for old in reversed(known) if old.id and old.status == "active" and _clearly(decision, old)), None
        )
        if older is not None:
            new = replace(decision, supersedes=older.id)
        out.append(new)
    return out
