"""The section of a checkpoint: what was asked, found out, changed and verified, in the words of the source, within a
room of so many characters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from math import log2

from ralf.extraction.recurring import names_in
from ralf.prose import Sentence, joined, sentences
from ralf.summarizers import grammar
from ralf.summarizers.statements import LONGEST, Exchange, Voice
from ralf.text import one_line
from ralf.trim import trimmed

_REQUEST, _SENTENCE = 120, 320  # characters
_ANSWER = 60  # characters up to which a request only answers
_HINT = re.compile(r"\w{2,}")
_EMPTY = frozenset(
    "the an of to in on for and or is are was were be do doe did what when where who which why how with at by from as"
    " that thi these those it all any keep kept about everything our my your we you".split()
)
_AROUND = 4  # characters around a sentence in its line
_WEIGHT, _OFTEN, _BREVITY = 1.0, 4, 0.7
_WORD = re.compile(r"\w{4,}")
_LEAST = 24  # characters from which a sentence says something
_NOTED_LEAST = 48  # of an item in a document, which is mostly lists: a shorter one leans on what stands above it

FINDS = grammar.any_of(
    r"\b(?:root cause|the (?:real |actual |underlying )?(?:cause|culprit|problem|issue|bug) (?:is|was)|(?:is"
    r"|was) caused by|turns out"
    r"|it turned out|caused by|explains why|this is why|that's why|confirmed that|the reason (?:is|was))\b",
)
"""Sentences that say what the cause of something is."""

_RESULT = grammar.any_of(
    r"\b(?:fix(?:ed|es)?|added|removed|renamed|moved|created|updated|implemented|replaced|committed|pushed"
    r"|merged|rebased|resolved"
    r"|pass(?:es|ed)?|fail(?:s|ed)?|works?|done|complete[d]?|because|root cause|caused?|the issue"
    r"|the problem|found|result"
    r"|so|therefore|means|confirmed|turns out|instead|only|changed|wired|refactored|verified|posted|replied"
    r"|skipped|since|but|never|always|already|still|not|without)\b",
)
_UNSURE = grammar.any_of(
    r"\b(?:maybe|perhaps|might|could be|probably|hmm+|wait|let me|let's|i should|i need to|i'll)\b"
)
_VOICE: dict[Voice, float] = {"said": 3.0, "wrote": 3.0, "reported": 2.0, "thought": 1.5, "noted": 3.0}


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One sentence that the section may hold, and where it stands: exchange, statement, sentence."""

    place: tuple[int, int, int]
    text: str
    score: float
    terms: frozenset[str]


def lines_of(exchanges: Sequence[Exchange], room: int, *, keep: Sequence[str] = (), told: str = "") -> list[str]:
    """The lines of the section, in at most `room` characters.

    keep  what a person wants kept: sentences that share its content words come first, marked
    told  what the checkpoint says elsewhere: its sentences come last
    """
    wanted = _kept_on_request(exchanges, keep, room // 2)
    out = [f"- kept on request: {text}" for text in wanted]
    room -= sum(len(line) + 1 for line in out)
    asked = {n: _asked(exchange.request) for n, exchange in enumerate(exchanges) if exchange.request}
    again = {line: n for n, line in asked.items()}  # clients record a queued request more than once
    asked = {n: line for n, line in asked.items() if again[line] == n}
    spent = sum(len(line) + 1 for line in asked.values())
    for number in sorted(asked, key=lambda n: (len(exchanges[n].request) > _ANSWER, n)):  # short answers go first
        if spent <= room // 2:
            break
        spent -= len(asked.pop(number)) + 1
    told = one_line("\n".join((told, *wanted))).casefold()
    candidates = [_once(candidate, told) for candidate in _candidates(exchanges)]
    kept = _chosen(candidates, room - spent)
    texts: dict[tuple[int, int], list[str]] = {}
    for at in sorted(kept):
        texts.setdefault(at[:2], []).append(kept[at])
    for number, exchange in enumerate(exchanges):
        if number in asked:
            out.append(asked[number])
        for place, statement in enumerate(exchange.statements):
            if said := texts.get((number, place)):
                thought = "thought: " if statement.voice == "thought" else ""
                out.append(("  " if number in asked else "- ") + thought + joined(said))
    return out


def briefly(exchanges: Sequence[Exchange], room: int) -> list[str]:
    """What notes say of which no sentence can stand alone: all of it, as far as there is room."""
    said = [one.text for exchange in exchanges for note in exchange.statements for one in note.said if _is_item(one)]
    return [f"- {trimmed('; '.join(said), min(room, _SENTENCE))}"] if said else []


def _is_item(sentence: Sentence) -> bool:
    return sentence.kind != "heading" and not sentence.text.endswith(":")


def tells(sentence: Sentence) -> bool:
    """Whether a sentence says something about the work, rather than what is looked at next or asked."""
    text = sentence.text
    return sentence.kind != "heading" and len(text) > _LEAST and "?" not in text and not grammar.looks_around(text)


def _asked(request: str) -> str:
    return "- **Asked:** " + trimmed(one_line(request), _REQUEST)


# ---- what a person wants kept ----


def _kept_on_request(exchanges: Sequence[Exchange], hints: Sequence[str], room: int) -> list[str]:
    """The sentences that touch a hint, the newest that fit, in their order."""
    wanted = [words for hint in hints if (words := _content(hint))]
    found: dict[str, None] = {}
    for exchange in exchanges if wanted else ():
        for said in (sentences(exchange.request[:LONGEST]), *(s.said for s in exchange.statements)):
            for sentence in said:
                if any(_touches(sentence.text, words) for words in wanted):
                    text = trimmed(sentence.text, _SENTENCE)
                    found.pop(text, None)
                    found[text] = None
    kept: list[str] = []
    for text in reversed(found):
        room -= len(text) + len("- kept on request: \n")
        if room < 0:
            break
        kept.append(text)
    return kept[::-1]


def _content(text: str) -> frozenset[str]:
    """The words that carry a text's meaning, without the endings of plurals."""
    return frozenset(_bare(word) for word in _HINT.findall(text.lower())) - _EMPTY


def _bare(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def _touches(text: str, words: frozenset[str]) -> bool:
    """Whether a sentence has both words of a hint of two, and more than half of those of a longer one."""
    shared = len(words & _content(text))
    return shared >= min(2, len(words)) and shared * 2 > len(words)


# ---- what is said ----


def _chosen(candidates: Sequence[_Candidate], room: int) -> dict[tuple[int, int, int], str]:
    """The sentences that say most that the others do not say, by their place.

    Greedy coverage: a sentence is worth its own score and the weight of its terms that no chosen one has, per
    character. A term weighs more the more sentences use it.
    """
    used = Counter(term for candidate in candidates for term in candidate.terms)
    weight = {term: _WEIGHT * log2(1 + min(count, _OFTEN)) for term, count in used.items()}
    kept: dict[tuple[int, int, int], str] = {}
    covered: set[str] = set()
    queue = [(-_worth_now(c, weight, covered), c.place, n) for n, c in enumerate(candidates)]
    heapify(queue)
    while queue and room > _LEAST:
        value, place, number = heappop(queue)
        candidate = candidates[number]
        if len(candidate.text) + _AROUND > room:
            continue
        now = -_worth_now(candidate, weight, covered)
        if now > value and queue and now > queue[0][0]:
            heappush(queue, (now, place, number))
            continue
        kept[place] = candidate.text
        covered |= candidate.terms
        room -= len(candidate.text) + _AROUND
    return kept


def _once(candidate: _Candidate, told: str) -> _Candidate:
    """The candidate, worth nothing where it says what stands elsewhere: then it fills what room is left."""
    if one_line(candidate.text).rstrip(".…").casefold() in told:
        return replace(candidate, score=0.0, terms=frozenset())
    return candidate


def _worth_now(candidate: _Candidate, weight: Mapping[str, float], covered: set[str]) -> float:
    new = sum(weight[term] for term in candidate.terms if term not in covered)
    return (candidate.score + new) / (len(candidate.text) + _AROUND) ** _BREVITY if new else 0.0


def _terms(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        yield word.lower()


def _candidates(exchanges: Sequence[Exchange]) -> Iterator[_Candidate]:
    for number, exchange in enumerate(exchanges):
        last = max((n for n, s in enumerate(exchange.statements) if s.voice == "said"), default=-1)
        for place, statement in enumerate(exchange.statements):
            for count, sentence in enumerate(statement.said):
                if not _worth(sentence, statement.voice):
                    continue
                score = _VOICE[statement.voice] + _score(sentence.text)
                score += 2 * (place == last) + (count == 0) + (number >= len(exchanges) - 2)
                text = trimmed(sentence.text, _SENTENCE)
                yield _Candidate((number, place, count), text, score, frozenset(_terms(text)))


def _worth(sentence: Sentence, voice: Voice) -> bool:
    if voice == "wrote" and sentence.kind == "heading":
        return len(sentence.text) > _LEAST
    if not tells(sentence):
        return False
    text = sentence.text
    if voice == "noted":
        return (sentence.kind != "item" or len(text) > _NOTED_LEAST) and not text.endswith(":")
    return voice != "thought" or (not text.endswith(":") and not _UNSURE.found(text) and any(names_in(text)))


def _score(text: str) -> float:
    score = min(len(set(_RESULT.findall(text))), 3) + min(sum(1 for _ in names_in(text)), 4)
    return score + 2 * FINDS.found(text) + grammar.gives_reason(text)
