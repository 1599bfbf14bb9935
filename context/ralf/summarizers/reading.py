"""Reads a decision for comparison: what it speaks of, what it chooses, what it turns away from, which numbers it gives.

Words are read in English, German, French and Spanish; a word of another language is a word like any other. A clause
that gives a reason says nothing about the choice, but about the subject.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from ralf.summarizers import kinds
from ralf.summarizers.grammar import any_of
from ralf.summarizers.kinds import Kind, concept, flat

_REACH = 45  # characters behind a word that turns away, in which stands what it turns away from
_OBJECT = 3  # words of what is turned away from
_LONGEST_NAME = 3  # words of a member
_WORD = re.compile(r"`[^`\n]{1,60}`|#[0-9A-Fa-f]{6}\b|[^\W_][\w+#'\u2019-]*(?:[./][\w+#-]+)*%?|%")
_BREAK = re.compile(
    r"[;:!?\u2013\u2014(),]\s|[.)]\s+|\s[-\u2013\u2014]\s"
    r"|\s(?:because|since|given that|so that|otherwise|weil|denn|car|parce que|porque|puisque|but|aber|mais|pero"
    r"|rather than|instead of|statt|and not)\s|\sas (?=the\b|we\b|it\b|they\b|two\b|three\b|our\b|i\b)",
    re.I,
)
_FOR = r"because|since|given that|so that|otherwise|weil|denn|car|parce que|porque|puisque"
_REASON = re.compile(rf"\b(?:{_FOR}|as)\b", re.I)
_GIVES_REASON = re.compile(rf"(?:{_FOR})\b", re.I)
_REFUSES = any_of(r"\b(?:rather than|instead of|statt|and not)\b")
_SENTENCE = re.compile(r"(?<=[.;!?:])\s+")
_DENIES = any_of(
    r"\b(?:no(?! later| longer than)|not|never|without|don't|do not|doesn't|dont|don\u2019t|won't|can't|cannot|stop"
    r"|drop(?:s|ped|ping)?|remov(?:e|es|ed|ing)|delet(?:e|es|ed|ing)|forget|scrap|ditch(?:ed|ing)?|abandon(?:ed)?"
    r"|replac(?:e|es|ed|ing)|rip(?:ped|ping)?(?: out)?|kick(?:ed|ing)? out|get rid of|instead of|rather than"
    r"|away from|off|nothing|nobody|kein\w*|nicht|nie|ohne|statt|weg mit|raus mit|pas de|pas|plus de|plus|sans|jamais"
    r"|ne|sin|nunca|ya no|ningun\w*|no longer|none|enough of|swap(?:ped|ping)?|retir(?:e|ed|ing)|took|out of"
    r"|switch(?:ed|ing)? (?:away )?from|mov(?:e|ed|ing) (?:away )?from|except)\b",
)
_GONE = any_of(
    r"\b(?:(?:is|are|gets?|being|were|was) (?:[\w-]{1,20} )?(?:gone|removed|dropped|deleted|stripped out|retired|off"
    r"|history|out|overkill|disabled|dead)|can go|goes away|go away|goes\b(?! to| in| on| through| out| over)|went"
    r"|didn't work|any ?more|fliegt raus|kommt weg|weg|raus|disappears?|is no longer|are no longer|may not"
    r"|must not|becomes)\b",
)
_COMPLAINS = any_of(
    r"\b(?:fail\w*|broken?|breaks?|breaking|slow\w*|too|pain\w*|hid|hides?|grow(?:s|ing|n)?|exceed\w*|quota|expensive"
    r"|leak\w*|flaky|wrong|worse|hate\w*|annoy\w*|trouble\w*|crash\w*|hang(?:s|ing)?|not|never|isn't|aren't|wasn't"
    r"|doesn't|didn't|nobody|lost|los(?:es|ing)|overwr\w+|can't|cannot|couldn't|won't|don't|drift\w*|explod\w*|dead"
    r"|taken|gone|suffer\w*|struggl\w*|outgr\w+|messy|noisy|ugly|confus\w+|deprecat\w*|vulnerab\w+|overkill|huge"
    r"|bloat\w*|dick|langsam|kaputt|voll|plein|lent|lento|lleno|complain\w*|awful|nightmare|old|falls? over"
    r"|cost more|let)\b",
)
_CUES = {
    "adds": any_of(
        r"\btoo(?=\W*$|[,.;])|\b(?:also|as well|in addition|additionally|besides|on top|another|auch|zusätzlich"
        r"|außerdem|ebenfalls|aussi|en plus|également|también|además|further)\b",
    ),
    "changes": any_of(
        r"\b(?:actually|instead|no longer|any ?more|go(?:ing)? back|back to|after all|on second"
        r"|from (?:now|today|here) on|now|moved?|moves|moving|switch\w*|swap\w*|replac\w*|changed?|changing|forget"
        r"|scrap|rip|ditch\w*|doch|stattdessen|jetzt|ab (?:jetzt|sofort|heute)|lieber|désormais|maintenant|passe"
        r"|plutôt|finalement|ahora|mejor|pasa\w*|from today|it is|gone|raise|lower|bump|reduce|change (?:that|it|this)"
        r"|revert\w*|return(?:s|ing)? to|zurück)\b",
    ),
    "complains": _COMPLAINS,
    "forbids": any_of(
        r"\b(?:don't|do not|dont|don\u2019t|never|must not|must never|may not|no one|nobody|nothing|forbidden"
        r"|not allowed|hands off|read-only|stop \w{2,30}ing|no more|nicht|nie|niemals|keine?n?|ne|jamais|nunca|no)\b",
    ),
    "asks": any_of(
        r"\b(?:ask me|ask before|ask first|wait for my|until i(?:'ve| have)?|check with me|my (?:ok|approval|review)"
        r"|frag mich|demande-moi|pregúntame)\b",
    ),
    "permits": any_of(
        r"\b(?:you (?:may|can)|may|feel free|go ahead|allowed|free to|freely|on your own|no need to|needn't|whenever"
        r"|welcome to|(?:it's|is|are|it is) (?:fine|ok|okay|alright)|fine to|ok to|without asking|darfst|kannst|dürfen"
        r"|peux|peut|puedes?|anywhere|anytime|allow any|enough)\b",
    ),
    "to number": any_of(
        r"\b(?:down|up|goes|go|raise\w*|lower\w*|reduc\w+|increas\w+|bump\w*|cut|set|change|runter|hoch|passe)"
        r" (?:[\w-]{1,30} ){0,4}?(?:to|auf|à|a) (?:\d|one|two|three|four|five|six)",
    ),
    "bounds": any_of(
        r"\b(?:and (?:up|newer|later|above)|or (?:newer|later|higher)|at least|minimum|min|below|older than"
        r"|support(?:s|ed)?|requires?|required|mindestens|minsdk|al menos|au moins)\b|>=|\d\+",
    ),
}
_REFERS = frozenset(
    "part ticket issue step section line lines pr phase chapter point item task milestone sprint figure page bug no nr"
    " punkt teil schritt abschnitt zeile seite kapitel partie etape ligne parte paso linea level".split()
)
"""Words before a number that name something and count nothing."""
_COUNTS_AND_SAYS = frozenset("one a ein eine un une once single both".split())
_OPENERS = frozenset(
    "i we you let's i'll we'll i'm please ok and so then it they he she wir ich on nous all just also actually don't"
    " never no not".split()
)
_LEADS_ON = frozenset(
    "from in of on for with to at by into under than that which who and or as von in auf für mit aus zu und de dans sur"
    " pour avec en con por y".split()
)
_STANDS_FOR = frozenset("it them these those ihn".split())
_FRACTION = re.compile(r"(\d{1,9})/(\d{1,9})")
_NUMBER = re.compile(r"(\d+(?:[.,]\d+)*(?:e-?\d+)?)(%|[a-z]{0,6})")
_PIECE = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Number:
    """A number, in the smallest unit of what it measures: (measured,), or what it counts or stands behind."""

    value: float | str
    measures: frozenset[str]
    counts: frozenset[str]
    is_word: bool
    in_reason: bool


@dataclass(slots=True)
class Reading:
    """What a decision says. Concepts are those of `ralf.summarizers.kinds`.

    concepts  all that it speaks of
    order     those of its choice, in order
    topic     those with which it begins: what it is about
    denied    those that it turns away from, or denies; affirmed: the others
    blamed    those of a clause that complains
    neighbours  those that stand right before one, or behind it: "pool size"
    names     those that are written like a name
    chosen    the members of each kind that it takes, and whether only a reason has them
    refused   the members of each kind that it turns away from
    clause    in which clause a member stands first
    refers    (what, number) of numbers that name something: "part 22"
    parts     (kind, part, whether no other stands for it): "staging", "the client"
    cues      what it does, of the kinds named in `_CUES`
    explains  whether it says more than its choice: a reason, or another sentence
    """

    concepts: set[str] = field(default_factory=set)
    order: list[str] = field(default_factory=list)
    topic: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    affirmed: set[str] = field(default_factory=set)
    blamed: set[str] = field(default_factory=set)
    neighbours: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    chosen: dict[Kind, dict[str, bool]] = field(default_factory=dict)
    refused: dict[Kind, set[str]] = field(default_factory=dict)
    clause: dict[tuple[Kind, str], int] = field(default_factory=dict)
    numbers: list[Number] = field(default_factory=list)
    refers: set[tuple[str, float | str]] = field(default_factory=set)
    parts: set[tuple[str, str, bool]] = field(default_factory=set)
    cues: frozenset[str] = frozenset()
    explains: bool = False


@lru_cache(maxsize=4096)  # each decision is compared with many; nobody changes a reading
def read(text: str) -> Reading:
    """Reads a decision."""
    reading = Reading()
    for place, clause in enumerate(_clauses(text)):
        _Clause(clause, place, reading).read()
        reading.explains |= clause.is_reason
    reading.explains |= len([part for part in _SENTENCE.split(text) if part.strip()]) > 1
    reading.cues = frozenset(cue for cue, pattern in _CUES.items() if pattern.search(text))
    return reading


@dataclass(frozen=True, slots=True)
class _Part:
    """A clause: whether it opens a sentence, gives a reason, is refused as a whole."""

    text: str
    opens: bool
    is_reason: bool
    is_refused: bool


def _clauses(text: str) -> Iterator[_Part]:
    start, opens, reason, refused = 0, True, False, False
    for match in _BREAK.finditer(text):
        yield _Part(text[start : match.start()], opens, reason, refused)
        sign = match.group()
        opens, refused = sign[0] in ".!?:", bool(_REFUSES.search(sign))
        reason = bool(_REASON.search(sign)) or (reason and sign[0] not in ".!?;")
        start = match.end()
        reason = reason or bool(_GIVES_REASON.match(text, start))
    yield _Part(text[start:], opens, reason, refused)


class _Clause:
    """Reads one clause into a reading."""

    def __init__(self, part: _Part, place: int, into: Reading) -> None:
        self._text, self._reason, self._place, self._into = part.text, part.is_reason, place, into
        self._opens = part.opens
        self._tokens = list(_WORD.finditer(part.text))
        self._flat = [flat(token.group().strip("`")) for token in self._tokens]
        self._denied = set(self._denials(part.is_refused))
        self._complains = bool(_COMPLAINS.search(part.text))

    def read(self) -> None:
        """Notes each of its words."""
        topic = self._topic()
        taken: set[int] = set()
        self._notes_neighbours()
        for place, word in enumerate(self._flat):
            if not word or (self._notes_number(place) and word not in _COUNTS_AND_SAYS):
                continue
            if place not in taken:
                taken.update(self._notes_members(place))
            if (part := kinds.part(word)) and not self._reason:
                self._into.parts.add(part)
            self._notes_concepts(place, is_topic=place in topic)

    def _denials(self, refused: bool) -> Iterator[int]:
        """The places of the words that the clause turns away from."""
        if refused:
            yield from self._object(range(len(self._tokens)))
        for match in _DENIES.finditer(self._text):
            yield from self._object(
                place for place, token in enumerate(self._tokens) if match.end() <= token.start() < match.end() + _REACH
            )
        for match in _GONE.finditer(self._text):
            yield from self._object(
                place
                for place in range(len(self._tokens) - 1, -1, -1)
                if match.start() - _REACH <= self._tokens[place].start() < match.start()
            )

    def _object(self, places: Iterable[int]) -> Iterator[int]:
        """The first words that say something, up to one that leads on to another thing."""
        most = _OBJECT
        for place in places:
            word = self._flat[place]
            if word in _STANDS_FOR or (most < _OBJECT and word in _LEADS_ON):
                return
            if not kinds.is_empty(word):
                yield place
                most -= 1
            if not most:
                return

    def _topic(self) -> range:
        """The words with which the first clause that decides says what it is about."""
        if self._reason or self._into.topic:
            return range(0)
        verb = next((place for place, word in enumerate(self._flat) if kinds.is_verb(word)), None)
        if verb is None:
            return range(2)
        if set(self._flat[:verb]) <= _OPENERS:
            return range(verb + 1, verb + 4)
        return range(verb)

    def _is_denied(self, place: int) -> bool:
        return place in self._denied

    def _is_quoted(self, place: int) -> bool:
        return self._tokens[place].group()[0] == "`"

    def _has_capital(self, place: int) -> bool:
        return self._tokens[place].group()[0].isupper() and not (place == 0 and self._opens)

    def _joined(self, place: int, length: int) -> str:
        """The words from a place on, with hyphens; "" where anything else than a blank stands between them."""
        if place + length > len(self._tokens):
            return ""
        tokens = self._tokens[place : place + length]
        for one, two in pairwise(tokens):
            if not self._text[one.end() : two.start()].isspace():
                return ""
        return "-".join(self._flat[place : place + length])

    # ---- numbers ----

    def _notes_number(self, place: int) -> bool:
        """Notes the word at a place where it is a number; whether it is."""
        word = self._flat[place]
        before, behind = self._flat[max(0, place - 4) : place], self._flat[place + 1 : place + 4]
        if self._is_quoted(place):
            return False
        if (fraction := _FRACTION.fullmatch(word)) and int(fraction[2]):
            self._into.numbers.append(self._number(int(fraction[1]) / int(fraction[2]), "", before, behind, False))
            return True
        match = _NUMBER.fullmatch(word)
        given = _value(match[1]) if match else kinds.number(word)
        if given is None:
            return False
        if before and before[-1] in _REFERS:
            self._into.refers.add((concept(before[-1]), given))
        else:
            self._into.numbers.append(self._number(given, match[2] if match else "", before, behind, not match))
        return True

    def _number(
        self, value: float | str, attached: str, before: Sequence[str], behind: Sequence[str], is_word: bool
    ) -> Number:
        counts: set[str] = set()
        measured = kinds.unit(attached) if attached else None
        if attached and not measured:
            counts.add(attached)
        for word in () if attached else behind:
            if measured := kinds.unit(word):
                break
            if not kinds.is_empty(word):
                counts.add(concept(word))
        counts.update(concept(word) for word in [one for one in before[-3:] if not kinds.is_empty(one)][-2:])
        for words in (before, behind[:2]):
            counts.update(kinds.phrase(f"{one}-{two}") for one, two in pairwise(words))
        what = set()
        if measured:
            what, value = {measured[0]}, value * measured[1] if isinstance(value, float) else value
            if measured[0] == "rate" and isinstance(value, float) and value:
                what, value = {"rate", "time"}, 1 / value
        rounded = round(value, 6) if isinstance(value, float) else value
        return Number(rounded, frozenset(what), frozenset(counts - {""}), is_word, self._reason)

    # ---- words ----

    def _notes_members(self, place: int) -> range:
        """Notes the members of kinds that begin at a place, the longest; the words that they have."""
        named = self._is_quoted(place) or self._has_capital(place)
        for length in range(_LONGEST_NAME, 0, -1):
            found = kinds.members(self._joined(place, length), written_as_name=named or length > 1)
            if found:
                self._note_members(found, place)
                return range(place, place + length)
        for piece in self._flat[place].split("-") if "-" in self._flat[place] else ():
            if not kinds.is_empty(piece):
                self._note_members(kinds.members(piece, written_as_name=False), place)
        return range(0)

    def _note_members(self, found: dict[Kind, str], place: int) -> None:
        denied = self._is_denied(place)
        for kind, member in found.items():
            self._into.clause.setdefault((kind, member), self._place)
            if denied:
                self._into.refused.setdefault(kind, set()).add(member)
            else:
                self._into.chosen.setdefault(kind, {})[member] = self._reason

    def _notes_neighbours(self) -> None:
        for place in range(len(self._flat) - 1):
            words = self._flat[place : place + 2]
            if self._joined(place, 2) and not any(map(kinds.is_empty, words)):
                one, two = map(concept, words)
                self._into.neighbours.setdefault(("behind", one), set()).add(two)
                self._into.neighbours.setdefault(("before", two), set()).add(one)

    def _notes_concepts(self, place: int, *, is_topic: bool) -> None:
        word, quoted = self._flat[place], self._is_quoted(place)
        both = kinds.phrase(self._joined(place, 2))
        if both:
            self._note(both, place, is_topic)
        if len(word) < 2 or (kinds.is_empty(word) and not quoted):
            return
        pieces = [word]
        if quoted:
            pieces += [piece for piece in _PIECE.split(word) if len(piece) > 2]
        if "-" in word and not word.rpartition("-")[2].isdigit():  # else a ticket's number: its project says nothing
            pieces += [piece for piece in word.split("-") if len(piece) > 2 and not kinds.is_empty(piece)]
        for piece in pieces:
            one = concept(piece)
            self._note(one, place, is_topic)
            if self._complains:
                self._into.blamed.add(one)
        if quoted or self._has_capital(place) or any(sign in "_./+#" or sign.isdigit() for sign in word):
            self._into.names.add(concept(word))

    def _note(self, one: str, place: int, is_topic: bool) -> None:
        self._into.concepts.add(one)
        if not self._is_denied(place):
            self._into.affirmed.add(one)
        if not self._reason:
            if self._is_denied(place):
                self._into.denied.add(one)
            self._into.order.append(one)
            if is_topic:
                self._into.topic.add(one)


def _value(digits: str) -> float | str:
    """The number that digits are; themselves where they are a version or a time."""
    return digits if digits.count(".") + digits.count(",") > 1 else float(digits.replace(",", "."))
