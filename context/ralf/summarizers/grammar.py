"""The English around decisions: narration, questions, guesses, reasons, and options that are turned down."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby

from ralf.summarizers.caseless import Caseless

ENOUGH = 3
"""The score from which a sentence counts as a decision."""

_I = re.IGNORECASE


def any_of(*alternatives: str) -> Caseless:
    """A pattern, blind to case, that finds any of the alternatives."""
    return Caseless(_joined, [branch for alternative in alternatives for branch in _branches(alternative)])


def _joined(branches: Iterable[str]) -> str:
    """The branches as one pattern. Neighbours that begin at a border of a word, or of the text, share it: else each is
    tried at every character.
    """
    parts = []
    for anchor, run in groupby(branches, lambda branch: next((a for a in (r"\b", "^") if branch.startswith(a)), "")):
        parts.append(f"{anchor}(?:{'|'.join(branch.removeprefix(anchor) for branch in run)})")
    return "|".join(parts)


_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\\\]])*\]|.", re.S)  # of a pattern: an escape, a set, or a character


def _branches(pattern: str) -> list[str]:
    """The parts of a pattern between the bars that stand in no group."""
    branches, depth = [""], 0
    for piece in _PIECE.findall(pattern):
        if piece == "|" and not depth:
            branches.append("")
        else:
            depth += (piece == "(") - (piece == ")")
            branches[-1] += piece
    return branches


# ---- what is no decision ----

_LOOK = (
    r"(?:check|look|see|verify|run|re-?run|test|try|find|trace|read|examine|explore|review|search|start|begin"
    r"|fetch|get|pull|build|compile|re-?build"
    r"|investigate|inspect|confirm|understand|take (?:a|another|stock)|have (?:a|another)(?: \w+)? look"
    r"|continue|proceed|debug|analy[sz]e|show|list"
    r"|view|dig|map"
    r"|think|also check)"
)
_LOOKS = any_of(
    r"^(?:ok(?:ay)?[,.!]? |now,? |first,? |next,? |then,? |and |so |but |good[,.!]? |great[,.!]? "
    r"|perfect[,.!]? |also,? )*"
    rf"(?:let me|let's|i(?:'ll| will|'m going to| need to| want to| should| can| have to)) (?:now |first |also "
    rf"|just |quickly )*{_LOOK}\b",
    rf"\b(?:let me|i'll) (?:now |first |also |just |quickly )*{_LOOK}\b",
    rf"\b(?:let me|let's|i(?:'ll| will)) (?:now |first )?use\b[^.]{{1,80}} to (?:locate|{_LOOK})\b",
    r"^(?:now|next)\b[^.]{0,60}:$",
    r"^(?:now,? |first,? |next,? |then,? |but |and )*(?:a|an|one|another)(?: \w+)? look (?:at|into|through)\b"
    r"[^,;:]{1,80}$",
    r"^(?:checking|running|reading|looking|searching|rebasing|testing|verifying)\b",
)
_NARRATES = any_of(
    r"^(?:ok(?:ay)?|now|first|next|then|good|great|perfect|excellent|done|fixed|pushed|committed|all|both|hmm"
    r"|wait|interesting"
    r"|found|looking|here|there it is|still|i see|i found|i've|i have|i can see|tests? pass|test|running"
    r"|checking|reading"
    r"|summary|everything|looks|finally|ready|sorry|oops|ah|oh|yes|no|and now)\b",
    r"\b(?:let me|i'll now|now i'll|i'm now)\b",
    r"\b(?:pass(?:es|ed|ing)?|green|succeeded|compiles|lint clean)\b[.!]?$",
)
_HYPOTHETICAL = any_of(
    r"\b(?:could|might|may|maybe|perhaps|possibly|probably|would|consider|option (?:\d|[a-e])|alternatively|if you"
    r"|whether|seems?"
    r"|i think|i guess|i suspect|not sure|unclear|likely|appears?|suggests?|suppose|leaning|either"
    r"|suspicion|hypothes[ie]s|theory)\b",
    r", or (?:just|simply|even|else)\b",
)
_QUESTION = re.compile(r"\?[^\w?]*$")


@lru_cache(maxsize=8192)  # each sentence of a segment is read alone, beside those around it, and with its message
def looks_around(text: str) -> bool:
    """Whether a sentence only tells what the agent is about to look at or run."""
    return _LOOKS.found(text)


_STATUS = re.compile(
    r"^(?:(?:all )?(?:tests?|checks?|lint)\b.{0,30}\bpass\w*|done|pushed|committed|fixed|clean|all (?:clean"
    r"|good|green|passing)|good|great)\W*$",
    _I,
)


@lru_cache(maxsize=8192)
def is_status(text: str) -> bool:
    """Whether a sentence says no more than that something is done or passes."""
    return bool(_STATUS.match(text))


def narrates(text: str) -> bool:
    """Whether a sentence tells what happens or is done at the moment."""
    return _NARRATES.found(text)


def guesses(text: str, end: int) -> bool:
    """Whether what a sentence says before `end` is only possible, supposed or one of several ways."""
    return _HYPOTHETICAL.found(text[:end])


@lru_cache(maxsize=8192)
def is_question(text: str) -> bool:
    """Whether a sentence ends as a question."""
    return bool(_QUESTION.search(text))


# ---- reasons and rejected options ----

_REASON = any_of(
    r"\b(?:because|since|so that|as it|as they|in order to|to avoid|to prevent|to keep|to match|due to"
    r"|otherwise|therefore"
    r"|which means|that way|this way|this (?:ensures?|avoids?|keeps?|makes?|lets?|allows?|means|prevents?"
    r"|gives?)|the reason"
    r"|redundant|simpler|cleaner|safer|faster|cheaper|easier|overkill|unnecessary|consisten(?:t|cy)|reason(?:s"
    r"|ing)?:|why:)\b"
)
_PHRASE = r"[^\s.,;:!?()]+(?:\s[^\s.,;:!?()]+)"
_REJECTED = re.compile(
    rf"\b(?:instead of|rather than|as opposed to|in place of|in favou?r over|and not|not)\s+({_PHRASE}{{0,13}})"
    rf"|\b(?:over|than)\s+({_PHRASE}{{0,5}})\s+because",
    _I,
)


@lru_cache(maxsize=8192)
def gives_reason(text: str) -> bool:
    """Whether a sentence says why."""
    return _REASON.found(text)


def rejected(text: str) -> list[str]:
    """The options that a sentence turns down, in its own words."""
    found = []
    for match in _REJECTED.finditer(text):
        option = (match[1] or match[2]).strip()
        strong = not match.group().lower().startswith(("not", "and not"))
        if option.count("`") % 2 == 0 and (
            strong or re.match(r"(?:a|an|the|in|on|via|by|with|using|from)\b|`", option, _I)
        ):
            found.append(option)
    return found[:3]


# ---- taking back ----

_TAKES_BACK = any_of(
    r"\b(?:revert(?:ed|ing)?|undo|undone|roll(?:ed|ing|s)? (?:it |that |this |them )?back|back(?:ed|ing)? out)\b",
    r"\b(?:scrap(?:ped)?|never ?mind|forget (?:it|that|about|the)|take (?:that|it) back)\b",
    r"\b(?:drop (?:that|it|this|the idea))\b|^(?:no,? |nah,? |ok,? |let's |please )*go(?:ing)? back\b",
)


@lru_cache(maxsize=2048)  # each decision is compared with many
def takes_back(text: str) -> bool:
    """Whether a sentence takes back what was decided or done: "undo that", "let's roll it back"."""
    return _TAKES_BACK.found(text)


# ---- what a sentence is about ----

_WORD = re.compile(r"[A-Za-z0-9_+#]+")
_NAME = re.compile(r"(?<![A-Za-z0-9_+#])(?!\A)(?<![.!?:;] )[A-Z][A-Za-z0-9_+#]*")
_ENDING = re.compile(r"(?:ing(?<=\w{7})|e[ds](?<=\w{6})|s(?<=\w{5}))$", re.M)  # behind four letters at the least
_EMPTY = frozenset(
    "the and for with that this use uses using used now instead not from our are was will should have has its can"
    " into decision decided longer here of we it is to in on as by be or an at go goes run runs let lets do so but"
    " just also please yes yeah because since change changes changed mind minds plan reflection actually decide"
    " chose choose choice pick switch switches switched switching move moves moved moving drop drops dropped"
    " dropping replace replaces replaced replacing keep stay turned out ok okay ll re ve me my you your need needs"
    " make after all back then than rather no new".split()
)


@lru_cache(maxsize=4096)  # each decision is compared with each
def content_words(text: str) -> frozenset[str]:
    """The words of a text that say what it is about, without endings, and without those that only say that it decides.

    A capital within a sentence makes a name of any word: "Go", "C".
    """
    words = set(map(str.lower, _WORD.findall(text)))
    names = set(map(str.lower, _NAME.findall(text))) - {"i", "a"}
    plain = {word for word in words - _EMPTY if len(word) > 1}
    return frozenset(_ENDING.sub("", "\n".join(plain | names)).split())
