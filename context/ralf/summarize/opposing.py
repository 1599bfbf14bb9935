"""Tells whether a newer decision chooses otherwise than an older one: about the same subject, and against its choice.

Two questions, each weighed by a few signs: is it the same subject, and is it an opposing choice? What they come to is
multiplied, so that neither stands for the other. Which signs there are, and for what they speak, is written by hand;
how much each weighs is fitted to pairs of decisions by `python -m tests.pairs_fit`. What is stated outright
(`states_otherwise`) needs no weighing.

Only short texts are compared: in a longer one other words stand beside the choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from functools import cached_property, lru_cache
from itertools import product
from math import exp

from ralf.summarize.english import is_question
from ralf.summarize.reading import Kind, Reading, concept, flat, read, tables
from ralf.text.patterns import regex

_WORD = regex(r"[^\W_][\w+#'\u2019-]*(?:[./][\w+#-]+)*")

_ATTRIBUTE = (
    r"(?:level|mode|name|size|limit|format|type|colou?r|font|theme|version|port|path|default|strategy|policy|timeout"
    r"|interval|prefix|suffix|branch|language|encoding|title|label|layout|width|height|order|method|backend|engine"
    r"|driver|provider|style|scheme|algorithm|library|framework|tool|server|licen[cs]e|minimum|maximum|target)"
)

_SETS = regex(
    rf"\b((?:[\w-]{{1,40}} ){{0,2}}{_ATTRIBUTE}s?)"
    r"(?: (?:is|are|should be|will be|stays|becomes|goes|moves)(?: (?:to|at|now)){0,2}| to| =|:| as)\s+"
    r"(?:the |an? )?([\w`.+#-]{1,60})",
    re.I,
)

_NAMES = regex(
    r"\b(?:re)?(?:name|call)s? (?:(?:the|this|that|it) )?([\w-]{1,40})(?: to| as)? ([`'\"][\w.-]{1,60})", re.I
)

_PLACE = r"((?:[\w`./-]++\s*+){1,4})"

_PUTS = regex(
    r"\b(?:store|put|keep|save|write|place|hold|move)s? (?:(?:the|all|our) )?([\w-]{1,40}(?: [\w-]{1,40})?)"
    rf"(?: as [\w-]{{1,40}})? (?:in|into|to|on|next to|under|beside|inside)\s+{_PLACE}",
    re.I,
)

_LIES = regex(
    r"(?<![\w-])([\w-]{1,40})(?: (?:now|all|always))?"
    r" (?:goe?s?|lives?|sits?|lies?|belongs?|(?:are|is) (?:stored|kept|saved)|vont|kommen|gehen)"
    rf"\s+(?:in|into|to|on|next to|under|beside|inside|dans|nach|auf)\s+{_PLACE}",
    re.I,
)

_BEFORE = regex(
    r"(?<![\w-])([\w-]{1,40}) (?:first|before|then|und dann|vor|d'abord|avant|antes de)\W{1,3}"
    r"(?:(?:the|then|and|a|der|die|das|le|la|el) ){0,3}([\w-]{1,40})",
    re.I,
)

_AFTER = regex(
    r"(?<![\w-])([\w-]{1,40}) (?:\w{1,20} )?(?:after|nach|après|después de)"
    r" (?:(?:the|a|der|dem|le|la|el) )?([\w-]{1,40})",
    re.I,
)

_LARGE = regex(r"(?<![\w.-])\d{3,9}(?![\w.-]*\w)")

_DENIES_NUMBER = regex(
    r"\b\d{3,9} (?:is|was|are) (?:\w{1,20} )?(?:taken|used|in use|blocked|gone|wrong)\b|\bnot \d{3,9}\b", re.I
)


def states_otherwise(new: str, old: str) -> bool:
    """Whether both state the same attribute, name, place, order or large number, each in another way."""
    mine, others = _assigned(new), _assigned(old)
    if any(what == thing and not value & given for what, value in mine for thing, given in others):
        return True
    if _order(old) & {(second, first) for first, second in _order(new)}:
        return True
    before, after = set(_LARGE.findall(old)), set(_LARGE.findall(new))
    return bool(before & after and after - before and _DENIES_NUMBER.search(new))


@lru_cache(maxsize=2048)
def _assigned(text: str) -> frozenset[tuple[tuple[str, ...], frozenset[str]]]:
    """(what, the words of its value) of each thing that a text sets, names or puts somewhere."""
    found = [(_concepts(match[1]), {_concept(match[2])}) for match in _SETS.finditer(text)]
    found += [(("name", _concept(match[1])), {_concept(match[2])}) for match in _NAMES.finditer(text)]
    places = (*_PUTS.finditer(text), *_LIES.finditer(text))
    found += [(("place", *_concepts(match[1])[-1:]), set(_concepts(match[2]))) for match in places]
    return frozenset(
        (what, frozenset(value)) for what, value in found if value and len(what) + (what[:1] != ("place",)) > 1
    )


@lru_cache(maxsize=2048)
def _order(text: str) -> frozenset[tuple[str, str]]:
    """(first, second) of each two things that a text puts in order."""
    found = {(_concept(match[1]), _concept(match[2])) for match in _BEFORE.finditer(text)}
    return frozenset(found | {(_concept(match[2]), _concept(match[1])) for match in _AFTER.finditer(text)})


def _concept(word: str) -> str:
    return concept(flat(word.strip("`'\"")))


def _concepts(text: str) -> tuple[str, ...]:
    """The concepts of the words of a text that say something, in order."""
    return tuple(concept(word) for word in map(flat, _WORD.findall(text)) if word not in tables().empty)


ENOUGH, SURE = 0.89, 0.94
"""The likeness from which one decision replaces another where few stand open, and where many do: in a long list some
unrelated one is always alike. A decision that was replaced wrongly is worse than one that stands beside its successor:
`ENOUGH` links at most one unrelated pair of each author by weights that are fitted to the others.
"""

_MANY = 50  # open decisions

SUBJECT = {
    "bias": 0.33,
    "shares a concept": 0.36,
    "shares a special one": 0.00,
    "shares an attribute": 0.82,
    "begins alike": 1.34,
    "names the topic": 0.98,
    "has no other topic": 0.58,
    "same part": 0.81,
    "another name": 0.89,
    "another word": 1.10,
    "one answer": 0.87,
    "in another clause": 0.00,
    "other bound": 0.24,
    "keeps a name": 0.00,
    "keeps the choice": 0.00,
    "another part": -1.11,
    "another topic": -1.71,
}

CHOICE = {
    "bias": 2.09,
    "another name": 0.72,
    "another word": 1.30,
    "one answer": 0.16,
    "in another clause": 0.04,
    "turns away": 0.00,
    "takes up": 0.13,
    "another measure": 0.00,
    "another count": 0.33,
    "other bound": 0.50,
    "to a number": 0.61,
    "other permission": 0.43,
    "changes": 0.39,
    "explains": 1.39,
    "keeps the choice": -1.16,
    "keeps a name": -0.92,
    "both deny": -0.08,
    "adds": -0.68,
}

AGAINST = frozenset({"another part", "another topic", "both deny", "adds"})
"""Signs that speak against a replacement; those of a kept choice, or name, do so where the choice is weighed."""

KEPT = frozenset({"keeps the choice", "keeps a name"})

_LONGEST = 400  # characters

_BESIDE = 3  # concepts that one may say more

_OLD, _NEW = 24, 40  # words of the older text, and of the newer

_GENERAL, _SPECIAL = 0.4, 0.9  # what a general concept counts; from when on shared ones are special

_HEAD = 3  # concepts with which a decision begins


def opposes(new: str, old: str, among: int = 1) -> bool:
    """Whether `new` chooses otherwise on what `old` decided, one of so many decisions that stand open."""
    if not _is_comparable(new) or not _is_comparable(old) or len(old.split()) > _OLD:
        return False
    needed = ENOUGH + (SURE - ENOUGH) * min(1.0, among / _MANY)
    if likeness(new, old) >= needed or states_otherwise(new, old):
        return True
    pair = _pair(new, old)
    return pair is not None and pair.differ_in_one()


@lru_cache(maxsize=4096)
def _is_comparable(text: str) -> bool:
    return len(text) <= _LONGEST and len(text.split()) <= _NEW and not is_question(text)


def keys(text: str) -> frozenset[str]:
    """By which a decision is found again by another that may oppose it: its concepts, and questions with one answer."""
    reading = read(text) if _is_comparable(text) else Reading()
    answers = (f"?{kind.name}" for kind in reading.chosen if kind.mark == "!")
    return frozenset(reading.concepts).union(answers)


def likeness(new: str, old: str) -> float:
    """How sure it is, from 0 to 1, that `new` takes the place of `old`."""
    subject, choice = signs(new, old)
    return _sure(SUBJECT, subject) * _sure(CHOICE, choice) if subject and choice else 0.0


def _sure(weights: dict[str, float], found: frozenset[str]) -> float:
    return 1 / (1 + exp(-weights["bias"] - sum(weights[sign] for sign in found)))


@lru_cache(maxsize=8192)  # most pairs have none
def signs(new: str, old: str) -> tuple[frozenset[str], frozenset[str]]:
    """The signs of one subject, and those of an opposing choice; none where both speak of different parts."""
    pair, cues = _pair(new, old), read(new).cues
    choice = pair.opposes() if pair else frozenset()
    if not pair or not choice:
        return frozenset(), frozenset()
    choice |= _found({"changes": "changes" in cues, "explains": read(new).explains})
    return pair.is_related(), choice | pair.agrees()


@lru_cache(maxsize=64)  # its signs are looked at, and then whether it differs in one thing
def _pair(new: str, old: str) -> _Pair | None:
    """The two decisions, where they may have one subject."""
    after, before = read(new), read(old)
    if not after.concepts & before.concepts and not after.chosen.keys() & before.chosen.keys():
        return None
    return None if _of_other_parts(after, before) else _Pair(after, before)


def _of_other_parts(after: Reading, before: Reading) -> bool:
    """Whether each speaks of another part where none stands for the other, or of another item: "ticket 14"."""
    closed = ({(kind, part) for kind, part, closed in one.parts if closed} for one in (after, before))
    return _differ(*closed) or _differ(after.refers, before.refers)


def _differ(mine: Set[tuple[str, float | str]], others: Set[tuple[str, float | str]]) -> bool:
    """Whether both have something of one kind, and nothing of that kind in common."""
    for kind in {kind for kind, _ in mine} & {kind for kind, _ in others}:
        if not {one for one in mine if one[0] == kind} & others:
            return True
    return False


def _found(signs: Mapping[str, object]) -> frozenset[str]:
    return frozenset(sign for sign, is_there in signs.items() if is_there)


class _Pair:
    """A newer and an older decision."""

    def __init__(self, after: Reading, before: Reading) -> None:
        self._after, self._before = after, before
        self._opposed: set[Kind] = set()
        self._apart = False
        values: set[str] = set()
        for kind, mine, others, apart in self._opposed_kinds():
            self._opposed.add(kind)
            self._apart |= apart
            values |= mine | others
        self._chosen = {concept(flat(piece)) for value in values for piece in (value, *value.split("-"))}
        same = {one for one in after.concepts & before.concepts if self._is_of_other_names(one)}
        self._values = self._chosen | same

    def is_related(self) -> frozenset[str]:
        """The signs of one subject."""
        after, before = self._after, self._before
        topic, topic_before = self._topic(after), self._topic(before)
        named = bool(topic & before.concepts or topic_before & after.concepts)
        parts = ({(kind, part) for kind, part, _ in one.parts} for one in (after, before))
        found = _found(
            {
                "shares a concept": self._shared,
                "shares a special one": self._is_special,
                "shares an attribute": not tables().attributes.isdisjoint(after.concepts & before.concepts),
                "begins alike": set(self._order(after)[:2]) & set(self._order(before)[:2]),
                "names the topic": named,
                "another topic": not named and topic and topic_before,
                "has no other topic": topic and topic <= before.concepts,
                "same part": after.parts & before.parts,
                "another part": _differ(*parts),
            }
        )
        return found | self._kinds | self._bounds | self._kept

    def opposes(self) -> frozenset[str]:
        """The signs of an opposing choice, but for those that only add to others."""
        after, before = self._after, self._before
        head = set(before.order[:_HEAD]) & after.concepts
        permits = after.cues & {"changes", "permits"}
        found = _found(
            {
                "turns away": head & (after.denied - before.denied),
                "takes up": permits and head & (before.denied & after.affirmed - after.denied),
                "to a number": "to number" in after.cues and before.numbers,
                "other permission": self._permits_otherwise(),
            }
        )
        return found | self._kinds | self._bounds | self._counts()

    def agrees(self) -> frozenset[str]:
        """The signs against an opposing choice."""
        denied = self._after.denied & self._before.denied
        return self._kept | _found({"both deny": denied, "adds": "adds" in self._after.cues})

    def differ_in_one(self) -> bool:
        """Whether both say the same, but for the choice or the number: "retry 3 times", "retry 5 times"."""
        after, before = self._after, self._before
        mine, others = after.concepts - self._chosen, before.concepts - self._chosen
        if not mine or not others or min(len(mine - others), len(others - mine)) or len(mine ^ others) > _BESIDE:
            return False
        if "adds" in after.cues or bool(after.denied) != bool(before.denied):
            return False
        if self._opposed or len(after.numbers) != 1 or len(before.numbers) != 1:
            return bool(self._opposed)
        one, two = after.numbers[0], before.numbers[0]
        return one.value != two.value and bool(
            one.measures & two.measures or one.counts & two.counts or not one.is_word
        )

    # ---- the subject ----

    @cached_property
    def _shared(self) -> set[str]:
        """Concepts of both, without attributes, and without those that are the two choices."""
        both = self._after.concepts & self._before.concepts
        return both - tables().attributes - self._values

    @cached_property
    def _meet(self) -> bool:
        """Whether both speak of anything beside their choices."""
        return bool(self._shared) or not tables().attributes.isdisjoint(self._after.concepts & self._before.concepts)

    @cached_property
    def _is_special(self) -> bool:
        return sum(_GENERAL if one in tables().general else 1 for one in self._shared) >= _SPECIAL

    def _order(self, reading: Reading) -> list[str]:
        return [one for one in reading.order if one not in self._values]

    def _topic(self, reading: Reading) -> set[str]:
        return reading.topic - self._values - tables().general - tables().attributes

    def _is_of_other_names(self, one: str) -> bool:
        """Whether a concept is part of different names in the two: "pool size", "page size"."""
        after, before = self._after, self._before
        for side in ("before", "behind"):
            mine, others = after.neighbours.get((side, one)), before.neighbours.get((side, one))
            if not mine or not others:
                continue
            mine, others = mine - self._chosen, others - self._chosen
            if mine and others and not mine & before.concepts and not others & after.concepts:
                return True
        return False

    # ---- kinds ----

    def _opposed_kinds(self) -> Iterator[tuple[Kind, set[str], set[str], bool]]:
        """(kind, new members, old ones, whether these stand in another clause again) of each kind of which the newer
        one takes another member.
        """
        after, before = self._after, self._before
        for kind, theirs in before.chosen.items():
            mine = after.chosen.get(kind)
            if mine is None or kind.mark == "*":
                continue
            refused = after.refused.get(kind, set())
            taken = {one for one, is_reason in mine.items() if not is_reason} - theirs.keys() - refused
            left = {one for one, is_reason in theirs.items() if not is_reason}
            again = left <= mine.keys()
            clauses = ((after.clause[kind, one], after.clause[kind, other]) for one, other in product(taken, left))
            if taken and left and (not again or any(one != other for one, other in clauses)):
                yield kind, taken, left, again

    @cached_property
    def _kinds(self) -> frozenset[str]:
        telling = [kind for kind in self._opposed if kind.mark == "!" or (kind.mark != "~" and self._meet)]
        return _found(
            {
                "another name": any(kind.is_name for kind in telling),
                "another word": any(not kind.is_name for kind in telling),
                "one answer": any(kind.mark == "!" for kind in telling),
                "in another clause": self._apart,
            }
        )

    @cached_property
    def _kept(self) -> frozenset[str]:
        """What the newer one keeps of the older one's choice."""
        after, before = self._after, self._before
        kept = {
            one
            for kind, mine in after.chosen.items()
            if kind.is_name and kind.mark != "*"
            for one in mine.keys() & before.chosen.get(kind, {}).keys()
        }
        replaced = any(kind.is_name and kind.mark != "~" for kind in self._opposed) or self._refuses()
        return _found(
            {
                "keeps a name": (after.names & before.names & after.affirmed) - after.denied - after.blamed,
                "keeps the choice": kept
                and not replaced
                and not any(concept(flat(one)) in after.blamed for one in kept),
            }
        )

    def _refuses(self) -> bool:
        """Whether one takes a name that the other turns away from."""
        return any(
            chosen.keys() & other.refused.get(kind, set())
            for one, other in ((self._after, self._before), (self._before, self._after))
            for kind, chosen in one.chosen.items()
            if kind.is_name
        )

    # ---- the rest of the choice ----

    def _counts(self) -> frozenset[str]:
        """Whether both give a number for the same, and not the same one."""
        numbers = product(self._after.numbers, self._before.numbers)
        differ = [(one, two) for one, two in numbers if not one.in_reason and two.value != one.value]
        if any(one.measures & two.measures for one, two in differ):
            special = self._is_special and self._topic(self._after) <= self._before.concepts
            return _found({"another measure": special})
        counted = (one.counts & two.counts for one, two in differ)
        return _found({"another count": any(words - tables().attributes - tables().general for words in counted)})

    @cached_property
    def _bounds(self) -> frozenset[str]:
        """Whether both give a bound: "3.8 and up", "drop everything below 3.11"."""
        bounds = "bounds" in self._after.cues & self._before.cues
        return _found({"other bound": bounds and self._after.numbers and self._before.numbers})

    def _permits_otherwise(self) -> bool:
        """Whether one forbids, or wants to be asked, and the other allows."""
        mine, others = self._after.cues, self._before.cues
        return self._meet and any(
            "permits" in one and "forbids" not in one and not other.isdisjoint(("forbids", "asks"))
            for one, other in ((mine, others), (others, mine))
        )
