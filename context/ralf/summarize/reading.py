"""Reads a decision for comparison: what it speaks of, what it chooses, what it turns away from, which numbers it gives.

Words are read in English, German, French and Spanish; a word of another language is a word like any other. A clause
that gives a reason says nothing about the choice, but about the subject.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

from ralf.text.matcher import AnyOf
from ralf.text.patterns import regex

# ---- kinds of words ----

_FILE = Path(__file__).parents[1] / "data" / "choices.txt"

_SHORTENED = regex(r"['\u2019](?:s|re|ll|ve|d)$")

_ENDING = regex(
    r"(?:ings?(?<=\w{6})|ed(?<=\w{5})|en(?<=\w{6})|ies(?<=\w{5})|e?s(?<=\w{4})|er(?<=\w{6})|e(?<=\w{5})|y(?<=\w{5}))$"
)

_STEM = 7  # letters; what comes behind them is mostly an ending: "migration", "migrates"

_MARKS = "!*~"


@dataclass(frozen=True, slots=True, eq=False)  # there is one of each
class Kind:
    """A kind of choice.

    mark  "!" where a project mostly has one member, "*" where a member says only where something runs, "~" where it
          says little alone, else ""
    """

    name: str
    is_name: bool
    mark: str


@dataclass(slots=True)
class Tables:
    """The file's sections, to be looked up by a flat word, or by a concept.

    members     the members of kinds that a word is
    capital     words that are a member only where they are written like a name
    same        the concept of a word that has others beside it, and of two words with a hyphen
    attributes  concepts that many things have: a port, a limit, a name
    general     concepts that any project has: files, tests, users
    parts       (kind, part, whether no other part of the kind stands for it) of a word that names a part of something
    units       (what is measured, factor to its smallest common unit)
    numbers     words that are numbers
    empty       words that say nothing about the subject
    verbs       verbs of main clauses
    """

    members: dict[str, dict[Kind, str]]
    capital: frozenset[str]
    same: dict[str, str]
    attributes: frozenset[str]
    general: frozenset[str]
    parts: dict[str, tuple[str, str, bool]]
    units: dict[str, tuple[str, float]]
    numbers: dict[str, float]
    empty: frozenset[str]
    verbs: frozenset[str]


def flat(word: str) -> str:
    """A word in lower case, without accents and without what follows an apostrophe."""
    word = _SHORTENED.sub("", word.lower().rstrip("-'\u2019")).replace("ß", "ss")
    if word.isascii():
        return word
    return "".join(sign for sign in unicodedata.normalize("NFKD", word) if not unicodedata.combining(sign))


@lru_cache(maxsize=8192)
def concept(word: str) -> str:
    """What a flat word speaks of: the same for all its forms, and for other words for it."""
    same, stem = tables().same, _stem(word)
    return same.get(word) or same.get(stem, stem)


def members(word: str, *, written_as_name: bool = True) -> dict[Kind, str]:
    """The member that a flat word is, by kind. Names that are words as well count only where they are written so."""
    known = tables()
    found = known.members.get(word, {})
    if written_as_name or word not in known.capital:
        return found
    return {kind: member for kind, member in found.items() if not kind.is_name}


def is_verb(word: str) -> bool:
    """Whether a flat word is the verb of a main clause."""
    verbs = tables().verbs
    return word in verbs or (word.endswith("s") and word[:-1] in verbs)


# ---- the file ----


@cache
def tables() -> Tables:
    """The tables, read at first need."""
    sections = _sections()
    same = _same(sections["same"])

    def concepts(section: str) -> frozenset[str]:
        return frozenset(same.get(word) or same.get(_stem(word), _stem(word)) for word in _words(sections[section]))

    return Tables(
        members=_members(sections),
        capital=frozenset(_words(sections["capital"])),
        same=same,
        attributes=concepts("attributes"),
        general=concepts("general"),
        parts={
            spelling: (name, spellings[0], mark == "!")
            for mark, name, groups in _kinds(sections["parts"])
            for spellings in groups
            for spelling in spellings
        },
        units=_units(sections["units"]),
        numbers={word: float(line.split()[0]) for line in sections["numbers"] for word in line.split()[1:]},
        empty=frozenset(_words(sections["empty"])),
        verbs=frozenset(_words(sections["verbs"])),
    )


def _sections() -> dict[str, list[str]]:
    """The lines of each section; one that goes on in the next stands in one."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = sections.setdefault(line.strip("[]"), [])
        elif line.startswith(" "):
            lines[-1] += line
        elif line and not line.startswith("#"):
            lines.append(line)
    return sections


def _words(lines: list[str]) -> Iterator[str]:
    return (word for line in lines for word in line.split())


def _kinds(lines: list[str]) -> Iterator[tuple[str, str, list[list[str]]]]:
    """(mark, name, spellings of each member) of each line."""
    for line in lines:
        name, _, rest = line.lstrip(_MARKS + " ").partition(":")
        yield line[0] if line[0] in _MARKS else "", name, [group.split("=") for group in rest.split()]


def _members(sections: dict[str, list[str]]) -> dict[str, dict[Kind, str]]:
    found: dict[str, dict[Kind, str]] = {}
    for section in ("names", "words"):
        for mark, name, groups in _kinds(sections[section]):
            kind = Kind(name, section == "names", mark)
            for spellings in groups:
                for spelling in spellings:
                    found.setdefault(spelling, {}).setdefault(kind, spellings[0])
    return found


def _same(lines: list[str]) -> dict[str, str]:
    """The name of its line for each word, and for its stem; lines that share a word have one name."""
    names: dict[str, str] = {}

    def name_of(word: str) -> str:
        while names.setdefault(word, word) != word:
            word = names[word]
        return word

    for line in lines:
        first, *others = line.split()
        for word in others:
            names[name_of(word)] = name_of(first)
    found = {word: f"={name_of(word)}" for word in list(names)}
    for word in list(found):
        found.setdefault(_stem(word), found[word])
    return found


def _units(lines: list[str]) -> dict[str, tuple[str, float]]:
    found = {}
    for line in lines:
        measured, _, rest = line.partition(":")
        for group in rest.split("|"):
            factor, *spellings = group.split()
            found.update(dict.fromkeys(spellings, (measured, float(factor))))
    return found


def _stem(word: str) -> str:
    return _ENDING.sub("", word)[:_STEM]


# ---- reading ----

_REACH = 45  # characters behind a word that turns away, in which stands what it turns away from

_OBJECT = 3  # words of what is turned away from

_LONGEST_NAME = 3  # words of a member

_WORD = regex(r"`[^`\n]{1,60}`|#[0-9A-Fa-f]{6}\b|[^\W_][\w+#'\u2019-]*(?:[./][\w+#-]+)*%?|%")

_BREAK = regex(
    r"[;:!?\u2013\u2014(),]\s|[.)]\s+|\s[-\u2013\u2014]\s"
    r"|\s(?:because|since|given that|so that|otherwise|weil|denn|car|parce que|porque|puisque|but|aber|mais|pero"
    r"|rather than|instead of|statt|and not)\s|\sas (?=the\b|we\b|it\b|they\b|two\b|three\b|our\b|i\b)",
    re.I,
)

_FOR = r"because|since|given that|so that|otherwise|weil|denn|car|parce que|porque|puisque"

_REASON = regex(rf"\b(?:{_FOR}|as)\b", re.I)

_GIVES_REASON = regex(rf"(?:{_FOR})\b", re.I)

_REFUSES = AnyOf(r"\b(?:rather than|instead of|statt|and not)\b")

_SENTENCE = regex(r"(?<=[.;!?:])\s+")

_DENIES = AnyOf(
    r"\b(?:no(?! later| longer than)|not|never|without|don't|do not|doesn't|dont|don\u2019t|won't|can't|cannot|stop"
    r"|drop(?:s|ped|ping)?|remov(?:e|es|ed|ing)|delet(?:e|es|ed|ing)|forget|scrap|ditch(?:ed|ing)?|abandon(?:ed)?"
    r"|replac(?:e|es|ed|ing)|rip(?:ped|ping)?(?: out)?|kick(?:ed|ing)? out|get rid of|instead of|rather than"
    r"|away from|off|nothing|nobody|kein\w*|nicht|nie|ohne|statt|weg mit|raus mit|pas de|pas|plus de|plus|sans|jamais"
    r"|ne|sin|nunca|ya no|ningun\w*|no longer|none|enough of|swap(?:ped|ping)?|retir(?:e|ed|ing)|took|out of"
    r"|switch(?:ed|ing)? (?:away )?from|mov(?:e|ed|ing) (?:away )?from|except)\b",
)

_GONE = AnyOf(
    r"\b(?:(?:is|are|gets?|being|were|was) (?:[\w-]{1,20} )?(?:gone|removed|dropped|deleted|stripped out|retired|off"
    r"|history|out|overkill|disabled|dead)|can go|goes away|go away|goes\b(?! to| in| on| through| out| over)|went"
    r"|didn't work|any ?more|fliegt raus|kommt weg|weg|raus|disappears?|is no longer|are no longer|may not"
    r"|must not|becomes)\b",
)

_COMPLAINS = AnyOf(
    r"\b(?:fail\w*|broken?|breaks?|breaking|slow\w*|too|pain\w*|hid|hides?|grow(?:s|ing|n)?|exceed\w*|quota|expensive"
    r"|leak\w*|flaky|wrong|worse|hate\w*|annoy\w*|trouble\w*|crash\w*|hang(?:s|ing)?|not|never|isn't|aren't|wasn't"
    r"|doesn't|didn't|nobody|lost|los(?:es|ing)|overwr\w+|can't|cannot|couldn't|won't|don't|drift\w*|explod\w*|dead"
    r"|taken|gone|suffer\w*|struggl\w*|outgr\w+|messy|noisy|ugly|confus\w+|deprecat\w*|vulnerab\w+|overkill|huge"
    r"|bloat\w*|dick|langsam|kaputt|voll|plein|lent|lento|lleno|complain\w*|awful|nightmare|old|falls? over"
    r"|cost more|let)\b",
)

_CUES = {
    "adds": AnyOf(
        r"\btoo(?=\W*$|[,.;])|\b(?:also|as well|in addition|additionally|besides|on top|another|auch|zusätzlich"
        r"|außerdem|ebenfalls|aussi|en plus|également|también|además|further)\b",
    ),
    "changes": AnyOf(
        r"\b(?:actually|instead|no longer|any ?more|go(?:ing)? back|back to|after all|on second"
        r"|from (?:now|today|here) on|now|moved?|moves|moving|switch\w*|swap\w*|replac\w*|changed?|changing|forget"
        r"|scrap|rip|ditch\w*|doch|stattdessen|jetzt|ab (?:jetzt|sofort|heute)|lieber|désormais|maintenant|passe"
        r"|plutôt|finalement|ahora|mejor|pasa\w*|from today|it is|gone|raise|lower|bump|reduce|change (?:that|it|this)"
        r"|revert\w*|return(?:s|ing)? to|zurück)\b",
    ),
    "complains": _COMPLAINS,
    "forbids": AnyOf(
        r"\b(?:don't|do not|dont|don\u2019t|never|must not|must never|may not|no one|nobody|nothing|forbidden"
        r"|not allowed|hands off|read-only|stop \w{2,30}ing|no more|nicht|nie|niemals|keine?n?|ne|jamais|nunca|no)\b",
    ),
    "asks": AnyOf(
        r"\b(?:ask me|ask before|ask first|wait for my|until i(?:'ve| have)?|check with me|my (?:ok|approval|review)"
        r"|frag mich|demande-moi|pregúntame)\b",
    ),
    "permits": AnyOf(
        r"\b(?:you (?:may|can)|may|feel free|go ahead|allowed|free to|freely|on your own|no need to|needn't|whenever"
        r"|welcome to|(?:it's|is|are|it is) (?:fine|ok|okay|alright)|fine to|ok to|without asking|darfst|kannst|dürfen"
        r"|peux|peut|puedes?|anywhere|anytime|allow any|enough)\b",
    ),
    "to number": AnyOf(
        r"\b(?:down|up|goes|go|raise\w*|lower\w*|reduc\w+|increas\w+|bump\w*|cut|set|change|runter|hoch|passe)"
        r" (?:[\w-]{1,30} ){0,4}?(?:to|auf|à|a) (?:\d|one|two|three|four|five|six)",
    ),
    "bounds": AnyOf(
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

_FRACTION = regex(r"(\d{1,9})/(\d{1,9})")

_NUMBER = regex(r"(\d+(?:[.,]\d+)*(?:e-?\d+)?)(%|[a-z]{0,6})")

_PIECE = regex(r"[^a-z0-9]+")


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
    """What a decision says. For concepts see `concept`.

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
        _Clause(*clause, place, reading).read()
        reading.explains |= clause[2]
    reading.explains |= len([part for part in _SENTENCE.split(text) if part.strip()]) > 1
    reading.cues = frozenset(cue for cue, pattern in _CUES.items() if pattern.search(text))
    return reading


def _clauses(text: str) -> Iterator[tuple[str, bool, bool, bool]]:
    """Each clause: its text, whether it opens a sentence, gives a reason, is refused as a whole."""
    start, opens, reason, refused = 0, True, False, False
    for match in _BREAK.finditer(text):
        yield text[start : match.start()], opens, reason, refused
        sign = match.group()
        opens, refused = sign[0] in ".!?:", bool(_REFUSES.search(sign))
        reason = bool(_REASON.search(sign)) or (reason and sign[0] not in ".!?;")
        start = match.end()
        reason = reason or bool(_GIVES_REASON.match(text, start))
    yield text[start:], opens, reason, refused


class _Clause:
    """Reads one clause into a reading."""

    def __init__(self, text: str, opens: bool, is_reason: bool, is_refused: bool, place: int, into: Reading) -> None:
        self._text, self._opens, self._reason, self._place, self._into = text, opens, is_reason, place, into
        self._tokens = list(_WORD.finditer(text))
        self._flat = [flat(token.group().strip("`")) for token in self._tokens]
        self._denied = set(self._denials(is_refused))
        self._complains = bool(_COMPLAINS.search(text))

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
            if (part := tables().parts.get(word)) and not self._reason:
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
            if word not in tables().empty:
                yield place
                most -= 1
            if not most:
                return

    def _topic(self) -> range:
        """The words with which the first clause that decides says what it is about."""
        if self._reason or self._into.topic:
            return range(0)
        verb = next((place for place, word in enumerate(self._flat) if is_verb(word)), None)
        if verb is None:
            return range(2)
        if set(self._flat[:verb]) <= _OPENERS:
            return range(verb + 1, verb + 4)
        return range(verb)

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
        given = _value(match[1]) if match else tables().numbers.get(word)
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
        measured = tables().units.get(attached) if attached else None
        if attached and not measured:
            counts.add(attached)
        for word in () if attached else behind:
            if measured := tables().units.get(word):
                break
            if word not in tables().empty:
                counts.add(concept(word))
        counts.update(concept(word) for word in [one for one in before[-3:] if one not in tables().empty][-2:])
        for words in (before, behind[:2]):
            counts.update(tables().same.get(f"{one}-{two}", "") for one, two in pairwise(words))
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
            found = members(self._joined(place, length), written_as_name=named or length > 1)
            if found:
                self._note_members(found, place)
                return range(place, place + length)
        for piece in self._flat[place].split("-") if "-" in self._flat[place] else ():
            if piece not in tables().empty:
                self._note_members(members(piece, written_as_name=False), place)
        return range(0)

    def _note_members(self, found: dict[Kind, str], place: int) -> None:
        for kind, member in found.items():
            self._into.clause.setdefault((kind, member), self._place)
            if place in self._denied:
                self._into.refused.setdefault(kind, set()).add(member)
            else:
                self._into.chosen.setdefault(kind, {})[member] = self._reason

    def _notes_neighbours(self) -> None:
        for place in range(len(self._flat) - 1):
            words = self._flat[place : place + 2]
            if self._joined(place, 2) and tables().empty.isdisjoint(words):
                one, two = map(concept, words)
                self._into.neighbours.setdefault(("behind", one), set()).add(two)
                self._into.neighbours.setdefault(("before", two), set()).add(one)

    def _notes_concepts(self, place: int, *, is_topic: bool) -> None:
        word, quoted = self._flat[place], self._is_quoted(place)
        both = tables().same.get(self._joined(place, 2))
        if both:
            self._note(both, place, is_topic)
        if len(word) < 2 or (word in tables().empty and not quoted):
            return
        pieces = [word]
        if quoted:
            pieces += [piece for piece in _PIECE.split(word) if len(piece) > 2]
        if "-" in word and not word.rpartition("-")[2].isdigit():  # else a ticket's number: its project says nothing
            pieces += [piece for piece in word.split("-") if len(piece) > 2 and piece not in tables().empty]
        for piece in pieces:
            one = concept(piece)
            self._note(one, place, is_topic)
            if self._complains:
                self._into.blamed.add(one)
        if quoted or self._has_capital(place) or any(sign in "_./+#" or sign.isdigit() for sign in word):
            self._into.names.add(concept(word))

    def _note(self, one: str, place: int, is_topic: bool) -> None:
        self._into.concepts.add(one)
        if place not in self._denied:
            self._into.affirmed.add(one)
        if not self._reason:
            if place in self._denied:
                self._into.denied.add(one)
            self._into.order.append(one)
            if is_topic:
                self._into.topic.add(one)


def _value(digits: str) -> float | str:
    """The number that digits are; themselves where they are a version or a time."""
    return digits if digits.count(".") + digits.count(",") > 1 else float(digits.replace(",", "."))
