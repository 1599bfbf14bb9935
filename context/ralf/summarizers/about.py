"""What a decision is about: its words without endings, the things it names, the answers and the numbers it gives.

Words are read in English, German, French and Spanish; a word of another language is a word like any other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ralf.summarizers.cues import ADDS, COMPLAINS, GOES, TURNS, TURNS_FROM_IT
from ralf.summarizers.slots import UNITS, is_name, member, scopes_of, slots_of, unit_of

_REACH = 36  # characters behind a word that turns away, in which stands what it turns away from
_WORD = re.compile(r"(?<![#:./\w-])[^\W_][\w+#'\u2019-]*(?:[./][\w+#-]+)*")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*(?:e-?\d+)?")
_SHORTENED = re.compile(r"['\u2019](?:s|re|ll|ve|d)$")
_ATTACHED = re.compile(r"(\d+(?:[.,]\d+)?)([a-z]{1,5})")
_ENDING = re.compile(r"(?:ings?(?<=\w{6})|ed(?<=\w{5})|en(?<=\w{6})|e?s(?<=\w{4})|e(?<=\w{5}))$")
_CLAUSE = re.compile(
    r"[;:!?\u2013\u2014(),]\s|\.\s+|\s[-\u2013\u2014]\s"
    r"|\s(?:so|because|since|but|weil|denn|aber|sondern|car|parce que|mais|pero|porque)\s",
    re.I,
)
_STOP = frozenset(
    # English
    "a about above after again all already am an and any anyway are around as at back be because been before being"
    " between both but by can come could day did do does doing don done down each else even ever every everything few"
    " first for from full get give go goes gone good got had has have he her here him his how i if in instead into is"
    " it its it's just keep last later let lets let's like long look made make makes many may maybe me means more most"
    " move much must my need needs never new next no not nothing now of off ok okay old on once one only onto or other"
    " our out over own part per please pls put rather really run runs s same see set should since so some something"
    " start still stop such sure switch take than that that's the their them then there these they thing things think"
    " this those through time to today together too two under until up upon us use used uses using very via want wants"
    " was way we we'll well were what when where which while who why will with within without work works would yes yet"
    " you your i'll i'm i'd i've actually don't doesn't didn't isn't can't won't call write send go add adds adding"
    " change changes changing drop remove removing show shows think thought decide plan from everywhere anymore"
    " freely plain whole goes comes gets getting going nobody everybody else's everyone store stores stored lives"
    " sits save saved hold holds went goes taken took side whenever anything anyone somebody ahead"
    # German
    " aber alle allen aller als am an auch auf aus bei bitte das dem den der des die doch dort ein eine einem einen"
    " einer es für fur gibt haben hat ich im immer in ist ja jetzt kann kein keine man mir mit nach nehmen nicht noch"
    " nur oder pro schon sein sich sie sind so soll sollen sonst und uns vom von vor war was wenn werden wie wir wird"
    " zu zum zur mehr lassen machen brauchen laufen kommen kommt gehen geht speichern liegen liegt"
    # French
    " au aux avec ce ces cette dans de des du elle en est et il ils je la le les leur lui mais ne nous on ou par pas"
    " plus pour que qui sa se ses son sont sur tout toute un une va vont vous faire met prend passe garde prends"
    # Spanish
    " al ante como con cuando de del el ella en es esta este esto la las lo los mas más muy no nos nunca o para pero"
    " por que se si sin su sus también tambien tiene un una usar usamos va van y ya hay ser".split()
)
_REFERS = frozenset(
    "part ticket issue step section line lines pr phase chapter point item task milestone sprint figure page bug no nr"
    " punkt teil schritt abschnitt zeile seite kapitel partie point étape etape ligne page parte paso linea".split()
)
"""Words before a number that name something and count nothing."""
_LIMITS = frozenset("max min maximum minimum limit most least".split())
_OFTEN = re.compile(r"\b(?:once|one|every|each|per|pro|par|por) (?:a |an |une |eine |una )?(\w{1,40})\b", re.I)
_DENIES = re.compile(
    r"\b(?:no|not|without|never use|not use|stop using|instead of|rather than|keine?n?|ohne|sans|pas de|sin)\s+"
    r"([\w`.'/-]{1,80})",
    re.I,
)
_OBJECT = re.compile(r"\b(?:for|of|für|pour|para)\s+((?:[\w`.'/-]++\s*+){1,4})", re.I)


@dataclass(slots=True)
class _Sets:
    """What `About` is made of, while a text is read."""

    stems: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    away: set[str] = field(default_factory=set)
    blamed: set[str] = field(default_factory=set)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    answers: set[tuple[str, str]] = field(default_factory=set)
    numbers: set[tuple[str, str]] = field(default_factory=set)
    counted: set[str] = field(default_factory=lambda: set(_COUNTS))
    scopes: set[tuple[str, str]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class About:
    """What a text is about.

    stems    of its words that say something
    names    those that are written like a name: in code, with a capital within a sentence, with a sign or a digit
    away     those that the text turns away from
    blamed   those that stand in a clause that complains
    denied   those right behind a word that denies them: "no branches"
    objects  those behind "for" and "of"
    pairs    stems that stand next to each other
    answers  (slot, member), see `ralf.summarizers.slots`
    numbers  (unit, number); "plain" for a number that may be one of anything
    counted  stems beside a number: what is counted is no subject
    scopes   (kind of part, part)
    adds     whether it says that it only adds, in a clause that turns away from nothing
    words    how many it has
    """

    stems: frozenset[str]
    names: frozenset[str]
    away: frozenset[str]
    blamed: frozenset[str]
    denied: frozenset[str]
    objects: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    answers: frozenset[tuple[str, str]]
    numbers: frozenset[tuple[str, str]]
    counted: frozenset[str]
    scopes: frozenset[tuple[str, str]]
    adds: bool
    words: int

    @classmethod
    @lru_cache(maxsize=4096)  # each decision is compared with many
    def of(cls, text: str) -> About:
        """Reads a text."""
        sets, adds, words = _Sets(), False, 0
        before: set[str] = set()
        for clause in _clauses(text):
            if TURNS_FROM_IT.search(clause):
                sets.away |= before
            known = set(sets.stems)
            words += _read(clause, sets)
            before = sets.stems - known
            adds = adds or bool(ADDS.search(clause) and not (TURNS.search(clause) or COMPLAINS.search(clause)))
        for match in _OFTEN.finditer(text):
            if unit := unit_of(flat(match[1])):
                sets.numbers.add((unit, f"one {flat(match[1])}"))
        return cls(
            stems=frozenset(sets.stems),
            names=frozenset(sets.names),
            away=frozenset(sets.away),
            blamed=frozenset(sets.blamed),
            denied=frozenset(one for match in _DENIES.finditer(text) for one in stems_in(match[1])),
            objects=frozenset(one for match in _OBJECT.finditer(text) for one in stems_in(match[1])),
            pairs=frozenset(sets.pairs),
            answers=frozenset(sets.answers),
            numbers=frozenset(sets.numbers),
            counted=frozenset(sets.counted),
            scopes=frozenset(sets.scopes),
            adds=adds,
            words=words,
        )

    def answer(self, slot: str) -> frozenset[str]:
        """Its answers for a slot."""
        return _of(self.answers, slot)

    def number(self, unit: str) -> frozenset[str]:
        """Its numbers of a unit."""
        return _of(self.numbers, unit)

    def scope(self, kind: str) -> frozenset[str]:
        """Which parts of a kind it speaks of."""
        return _of(self.scopes, kind)


def _of(pairs: frozenset[tuple[str, str]], key: str) -> frozenset[str]:
    return frozenset(value for one, value in pairs if one == key)


def _read(clause: str, sets: _Sets) -> int:
    """Reads a clause into the sets; how many words it has."""
    blames = bool(COMPLAINS.search(clause))
    reach = [(cue.end(), cue.end() + _REACH) for cue in TURNS.finditer(clause)]
    reach += [(0, cue.start()) for cue in GOES.finditer(clause)]
    tokens = list(_WORD.finditer(clause))
    plain = [flat(token.group()) for token in tokens]
    last, opens = "", True
    for place, match in enumerate(tokens):
        raw, word = match.group(), plain[place]
        if word[0].isdigit() and _count(word, plain[place + 1 : place + 4], last, sets):
            last = ""
            continue
        sets.scopes.update((kind, member(word)) for kind in scopes_of(word))
        slots = slots_of("" if raw == "mit" else word)
        sets.answers.update((slot, member(word)) for slot in slots)
        if word in _REFERS and place + 1 < len(plain) and plain[place + 1].isdigit():
            last, opens = word, False
            continue
        if len(word) < 2 or (word in _STOP and not (raw.isupper() and slots)):
            last, opens = "", False
            continue
        one = stem(raw)
        sets.stems.add(one)
        quoted = clause[max(0, match.start() - 1) : match.start()] == "`"
        capital = raw[0].isupper() and not opens and not raw.isupper()
        if quoted or capital or is_name(word) or any(sign in "_./+#" or sign.isdigit() for sign in raw):
            sets.names.add(one)
        if any(start <= match.start() < end for start, end in reach):
            sets.away.add(one)
        if blames:
            sets.blamed.add(one)
        if last:
            sets.pairs.add((last, one))
        last, opens = one, False
    return len(tokens)


def _count(word: str, following: Sequence[str], last: str, sets: _Sets) -> bool:
    """Takes a word that is a number; whether it is one."""
    if attached := _ATTACHED.fullmatch(word):
        sets.numbers.add((unit_of(attached[2]) or attached[2], attached[1]))
        return True
    if not _NUMBER.fullmatch(word):
        return False
    if last not in _REFERS:
        units = set(_units(following, last))
        sets.numbers.update((unit, word) for unit in units)
        sets.counted |= units - {"plain"}
        sets.counted |= {stem(one) for one in following if "per" in following}
    return True


def _units(following: Sequence[str], before: str) -> Iterator[str]:
    """What a number counts: the word behind it, or before it."""
    unit = unit_of(following[0]) if following else ""
    if unit:
        yield unit
    elif following and following[0] not in _STOP:
        yield stem(following[0])
    if before:
        yield before
    if unit in ("", "tries"):
        yield "plain"


def _clauses(text: str) -> Iterator[str]:
    return (part for part in _CLAUSE.split(text) if part.strip())


def stems_in(text: str) -> tuple[str, ...]:
    """The stems of the words of a text that say something, in order."""
    return tuple(stem(word) for word in _WORD.findall(text) if flat(word) not in _STOP)


def every_stem(text: str) -> tuple[str, ...]:
    """The stems of all words of a text, in order."""
    return tuple(stem(word) for word in _WORD.findall(text))


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A word without its ending; other spellings of a choice are one word."""
    return _ENDING.sub("", member(flat(word)))


@lru_cache(maxsize=8192)
def flat(word: str) -> str:
    """A word in lower case, without accents and without what follows an apostrophe."""
    word = _SHORTENED.sub("", word.lower().rstrip("-'\u2019")).replace("ß", "ss")
    if word.isascii():
        return word
    return "".join(sign for sign in unicodedata.normalize("NFKD", word) if not unicodedata.combining(sign))


_COUNTS: frozenset[str] = frozenset(map(stem, [*UNITS, *_LIMITS]))
"""Stems of what is counted, and of limits: two texts that share only these share no subject."""
