"""The section of a checkpoint: what was asked, what was said of it and what was done, in the words of the source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import accumulate, groupby
from math import log2

from ralf.facts.commands import names_in
from ralf.summarize import english
from ralf.summarize.messages import LONGEST, Exchange, Voice
from ralf.text.cleaning import one_line, trimmed
from ralf.text.matcher import AnyOf
from ralf.text.patterns import regex
from ralf.text.sentences import Sentence, joined, sentences

_REQUEST, _SENTENCE = 160, 320  # characters

_ANSWER = 60  # characters up to which a request only answers

_HINT = regex(r"\w{2,}")

_EMPTY = frozenset(
    "the an of to in on for and or is are was were be do doe did what when where who which why how with at by from as"
    " that thi these those it all any keep kept about everything our my your we you".split()
)

_AROUND = 4  # characters around a sentence in its line

_WEIGHT, _OFTEN, _BREVITY = 1.0, 4, 0.7

_WORD = regex(r"\w{4,}")

_LEAST = 24  # characters from which a sentence says something

_NOTED_LEAST = 48  # of an item in a document, which is mostly lists: a shorter one leans on what stands above it

FINDS = AnyOf(
    r"\b(?:root cause|the (?:real |actual |underlying )?(?:cause|culprit|problem|issue|bug) (?:is|was)|(?:is"
    r"|was) caused by|turns out"
    r"|it turned out|caused by|explains why|this is why|that's why|confirmed that|the reason (?:is|was))\b",
)
"""Sentences that say what the cause of something is."""

_RESULT = AnyOf(
    r"\b(?:fix(?:ed|es)?|added|removed|renamed|moved|created|updated|implemented|replaced|committed|pushed"
    r"|merged|rebased|resolved"
    r"|pass(?:es|ed)?|fail(?:s|ed)?|works?|done|complete[d]?|because|root cause|caused?|the issue"
    r"|the problem|found|result"
    r"|so|therefore|means|confirmed|turns out|instead|only|changed|wired|refactored|verified|posted|replied"
    r"|skipped|since|but|never|always|already|still|not|without)\b",
)

_ASIDE = AnyOf(
    r"\b(?:let me know|curious|up to you|your (?:call|preference|choice|thoughts)|what do you think|happy to)\b",
    r"^(?:good (?:point|question|catch)|great question|you're (?:absolutely )?right)\W*$",
)
"""Whether a sentence only leaves it to the person."""

_UNSURE = AnyOf(r"\b(?:maybe|perhaps|might|could be|probably|hmm+|wait|let me|let's|i should|i need to|i'll)\b")

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
    asked = {n: f"- **Asked:** {_asked(exchanges, n)}" for n, exchange in enumerate(exchanges) if exchange.request}
    again = {line: n for n, line in asked.items()}  # clients record a queued request more than once
    asked = {n: line for n, line in asked.items() if again[line] == n}
    did = {n: line for n, exchange in enumerate(exchanges) if (line := _did(exchange))}
    spent = sum(len(line) + 1 for line in (*asked.values(), *did.values()))
    for number in sorted(asked, key=lambda n: (len(exchanges[n].request) > _ANSWER, n)):  # short answers go first
        if spent <= room * _ASKED_AND_DONE:
            break
        spent -= len(asked.pop(number)) + 1
    told = one_line("\n".join((told, *wanted))).casefold()
    candidates = [_without_repeats(candidate, told) for candidate in _candidates(exchanges)]
    candidates = [one for one in candidates if not _ASIDE(one.text)]
    closing = {
        (n, max((m for m, s in enumerate(e.statements) if s.voice == "said"), default=-1))
        for n, e in enumerate(exchanges)
    }
    kept = _chosen(candidates, room - spent, closing)
    texts = {at: [kept[place] for place in places] for at, places in groupby(sorted(kept), lambda place: place[:2])}
    for number, exchange in enumerate(exchanges):
        if number in asked:
            out.append(asked[number])
        for place, statement in enumerate(exchange.statements):
            if said := texts.get((number, place)):
                thought = "thought: " if statement.voice == "thought" else ""
                out.append(("  " if number in asked else "- ") + thought + joined(said))
        if number in did:
            out.append(("  " if number in asked else "- ") + did[number])
    return out


_SHORT_ANSWER, _QUESTION = 25, 140  # characters of a request that only answers, and of the question that it answers


def _asked(exchanges: Sequence[Exchange], number: int) -> str:
    """A request on one line; one that only answers, with the question that the agent had asked."""
    request = trimmed(one_line(exchanges[number].request), _REQUEST)
    before = exchanges[number - 1].spoken[-1:] if number and len(request) < _SHORT_ANSWER else []
    questions = [sentence.text for statement in before for sentence in statement.said if sentence.text.endswith("?")]
    return f"{request} (to: {trimmed(questions[-1], _QUESTION)})" if questions else request


_ASKED_AND_DONE = 0.6  # of a section's room, for requests and deeds

_EDITED, _COMMITTED = 6, 3  # files and commits of an exchange that are named

_DID = "did: "


def _did(exchange: Exchange) -> str:
    """What an exchange changed, committed and posted, on one line; "" for nothing."""
    edited, made = [*exchange.edited], [*exchange.commits]
    more = f" and {len(edited) - _EDITED} more" if len(edited) > _EDITED else ""
    parts = [f"edited {', '.join(edited[:_EDITED])}{more}"] if edited else []
    parts += [f"committed {trimmed(one_line(commit), 100)}" for commit in made[-_COMMITTED:]]
    parts += [*exchange.deeds][-_COMMITTED:]
    return f"{_DID}{'; '.join(parts)}" if parts else ""


def briefly(exchanges: Sequence[Exchange], room: int) -> list[str]:
    """What notes say of which no sentence can stand alone: all of it, as far as there is room."""
    noted = [one for exchange in exchanges for note in exchange.statements for one in note.said]
    said = [one.text for one in noted if one.kind != "heading" and not one.text.endswith(":")]
    return [f"- {trimmed('; '.join(said), min(room, _SENTENCE))}"] if said else []


def tells(sentence: Sentence) -> bool:
    """Whether a sentence says something about the work, rather than what is looked at next or asked."""
    text = sentence.text
    return sentence.kind != "heading" and len(text) > _LEAST and "?" not in text and not english.looks_around(text)


# ---- what a person wants kept ----


def _kept_on_request(exchanges: Sequence[Exchange], hints: Sequence[str], room: int) -> list[str]:
    """The sentences that touch a hint, the newest that fit, in their order."""
    wanted = [words for hint in hints if (words := _content(hint))]
    said = (
        sentence
        for exchange in (exchanges if wanted else ())
        for part in (sentences(exchange.request[:LONGEST]), *(s.said for s in exchange.statements))
        for sentence in part
    )
    touched = [trimmed(s.text, _SENTENCE) for s in said if any(_touches(s.text, words) for words in wanted)]
    newest = [*dict.fromkeys(reversed(touched))]
    sizes = accumulate(len(text) + len("- kept on request: \n") for text in newest)
    return newest[: sum(size <= room for size in sizes)][::-1]


def _content(text: str) -> frozenset[str]:
    """The words that carry a text's meaning, without the endings of plurals."""
    words = _HINT.findall(text.lower())
    return frozenset(word.removesuffix("s") if len(word) > 3 else word for word in words) - _EMPTY


def _touches(text: str, words: frozenset[str]) -> bool:
    """Whether a sentence has both words of a hint of two, and more than half of those of a longer one."""
    shared = len(words & _content(text))
    return shared >= min(2, len(words)) and shared * 2 > len(words)


# ---- what is said ----


def _chosen(
    candidates: Sequence[_Candidate], room: int, closing: Collection[tuple[int, int]]
) -> dict[tuple[int, int, int], str]:
    """The sentences that say most that the others do not say, by their place; of each closing statement, by its place,
    one comes first, the newest first: it says what came of the request.

    Greedy coverage: a sentence is worth its own score and the weight of its terms that no chosen one has, per
    character. A term weighs more the more sentences use it.
    """
    used = Counter(term for candidate in candidates for term in candidate.terms)
    weight = {term: _WEIGHT * log2(1 + min(count, _OFTEN)) for term, count in used.items()}
    kept: dict[tuple[int, int, int], str] = {}
    covered: set[str] = set()
    best: dict[tuple[int, int], _Candidate] = {}
    for candidate in candidates:
        at = candidate.place[:2]
        if at in closing and (at not in best or candidate.score > best[at].score):
            best[at] = candidate
    spare = room // 2
    for candidate in reversed(best.values()):
        spare -= len(candidate.text) + _AROUND
        if spare >= 0:
            kept[candidate.place] = candidate.text
            covered |= candidate.terms
            room -= len(candidate.text) + _AROUND
    candidates = [candidate for candidate in candidates if candidate.place not in kept]
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


def _without_repeats(candidate: _Candidate, told: str) -> _Candidate:
    """The candidate, worth nothing where it says what stands elsewhere: then it fills what room is left."""
    again = one_line(candidate.text).rstrip(".…").casefold() in told
    return replace(candidate, score=0.0, terms=frozenset()) if again else candidate


def _worth_now(candidate: _Candidate, weight: Mapping[str, float], covered: set[str]) -> float:
    new = sum(weight[term] for term in candidate.terms if term not in covered)
    return (candidate.score + new) / (len(candidate.text) + _AROUND) ** _BREVITY if new else 0.0


def _candidates(exchanges: Sequence[Exchange]) -> Iterator[_Candidate]:
    for number, exchange in enumerate(exchanges):
        last = max((n for n, s in enumerate(exchange.statements) if s.voice == "said"), default=-1)
        for place, statement in enumerate(exchange.statements):
            for count, sentence in enumerate(statement.said):
                if not _worth(sentence, statement.voice):
                    continue
                score = _VOICE[statement.voice] + _score(sentence.text)
                score += 2 * (place == last) * (1 + (count < _ANSWERS)) + (count == 0) + (number >= len(exchanges) - 2)
                text = trimmed(sentence.text, _SENTENCE)
                yield _Candidate((number, place, count), text, score, frozenset(map(str.lower, _WORD.findall(text))))


_ANSWERS = 2  # first sentences of what was said last, which answer what was asked

_TRAILER = regex(r"(?:Co-Authored-By|Signed-off-by|Reviewed-by|Generated (?:with|by)|\W{0,4}Generated with)\b", re.I)


def _worth(sentence: Sentence, voice: Voice) -> bool:
    text = sentence.text
    if voice == "wrote" and sentence.kind == "heading":
        return len(text) > _LEAST
    if not tells(sentence) or text.endswith(":") or english.narrates(text) or _TRAILER.match(text):
        return False
    if voice == "noted":
        return sentence.kind != "item" or len(text) > _NOTED_LEAST
    return voice != "thought" or (not _UNSURE(text) and any(names_in(text)))


def _score(text: str) -> float:
    score = min(len(set(_RESULT.findall(text))), 3) + min(sum(1 for _ in names_in(text)), 4)
    return score + 2 * FINDS(text) + english.gives_reason(text)
