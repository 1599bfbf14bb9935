"""Tells whether a newer decision chooses otherwise than an older one: about the same subject, and against its choice.

The newer one may turn away from what the older one took, or take what that denied; give another answer of the same kind
(`ralf.summarizers.slots`), another number of the same unit, another value or place of the same thing; allow what the
older one forbade, or the reverse; or put the same two things into the other order. All but the last need a subject that
both share, and none stands where both speak of different parts, of different things of one name, or where the newer one
only adds. Only short texts are compared: in a longer one other words stand beside the choice.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ralf.summarizers.about import About, every_stem, stem, stems_in
from ralf.summarizers.cues import cues
from ralf.summarizers.grammar import is_question
from ralf.summarizers.slots import is_exclusive, slots_of

_LONGEST = 400  # characters
_OLD, _NEW = (18, 8), (28, 12)  # words, and stems, of the older and of the newer text


def opposes(new: str, old: str) -> bool:
    """Whether `new` chooses otherwise on what `old` decided."""
    if max(len(new), len(old)) > _LONGEST or is_question(new) or is_question(old):
        return False
    after, before = About.of(new), About.of(old)
    if _is_longer(after, _NEW) or _is_longer(before, _OLD) or _of_other_parts(after, before):
        return False
    shared = _subjects(after, before)
    if _permits_otherwise(new, old, shared) or _orders_otherwise(new, old):
        return True
    if after.adds:
        return False
    if _turns_away(new, after, before, shared):
        return True
    if _of_other_things(after, before):
        return False
    return (
        bool(shared and "returns" in cues(new))
        or _denies_the_same(new, old)
        or _assigns_otherwise(new, old)
        or _answers_otherwise(after, before, shared)
        or _counts_otherwise(new, old, after, before, shared)
    )


def _is_longer(text: About, most: tuple[int, int]) -> bool:
    return text.words > most[0] or len(text.stems) > most[1]


# ---- the subject ----


def _of_other_parts(after: About, before: About) -> bool:
    """Whether both speak of different parts: one of staging, the other of production."""
    if not after.scopes or not before.scopes:
        return False
    kinds = {kind for kind, _ in after.scopes} & {kind for kind, _ in before.scopes}
    return any(not after.scope(kind) & before.scope(kind) for kind in kinds)


def _of_other_things(after: About, before: About) -> bool:
    """Whether each names what it is for, and neither names what the other one is for."""
    both = after.objects and before.objects
    return bool(both and not after.objects & before.stems and not before.objects & after.stems)


def _subjects(after: About, before: About) -> frozenset[str]:
    """The stems that both share, without those that are part of different names: "pool size", "page size"."""
    shared = after.stems & before.stems
    return frozenset(one for one in shared if not any(_of_other_name(one, place, after, before) for place in (0, 1)))


def _of_other_name(one: str, place: int, after: About, before: About) -> bool:
    """Whether a stem is the first (0) or second (1) word of another name in each."""
    mine = {pair[1 - place] for pair in after.pairs if pair[place] == one}
    others = {pair[1 - place] for pair in before.pairs if pair[place] == one}
    return bool(mine and others) and not (mine & others or mine & before.stems or others & after.stems)


# ---- the choice ----


def _turns_away(new: str, after: About, before: About, shared: frozenset[str]) -> bool:
    """Whether the newer one turns away from a thing that the older one takes, or takes one that it denies."""
    left = after.away | after.denied
    if (before.denied & shared) - left - after.blamed:
        return True
    if not after.stems - before.stems:
        return False
    turned = (left & shared) - before.away - before.denied
    if turned and (turned & before.names or len(shared) >= 2):
        return True
    blamed = (after.blamed & shared) - before.blamed
    return bool(blamed and "concludes" in cues(new)) and (len(shared) >= 2 or any("." in one for one in blamed))


def _answers_otherwise(after: About, before: About, shared: frozenset[str]) -> bool:
    """Whether both answer the same question, each in its own way."""
    slots = {slot for slot, _ in after.answers} & {slot for slot, _ in before.answers}
    if "language" in slots and len(slots) > 1 and not after.answer("language") & before.answer("language"):
        return False  # each is about code of another language
    for slot in slots:
        mine, others = after.answer(slot), before.answer(slot)
        left = {one for one in others & mine if stem(one) in after.away | after.blamed | after.denied}
        if not mine - others or not (others - mine or left):
            continue
        beyond = {one for one in shared if slot not in slots_of(one)}
        if beyond or others & mine or is_exclusive(slot):
            return True
    return False


def _counts_otherwise(new: str, old: str, after: About, before: About, shared: frozenset[str]) -> bool:
    """Whether both give a number for the same thing, and not the same one."""
    if not after.numbers or not before.numbers or after.numbers == before.numbers:
        return False
    if after.stems == before.stems:
        return True
    units = {unit for unit, _ in before.numbers}
    subject = shared - (after.counted & before.counted)
    if subject and any(after.number(unit) != before.number(unit) for unit, _ in after.numbers if unit in units):
        return True
    mine, others = ({number for _, number in one.numbers} for one in (after, before))
    again = mine & others
    if again and mine - others and (shared or any(len(number) > 2 for number in again)):
        return bool(cues(new) & {"changes", "complains"})  # "8081: 8080 is taken"
    if len(units) == 1 and after.number("plain") and "to number" in cues(new):
        return bool(shared - before.counted)
    versions = [{number for number in numbers if "." in number} for numbers in (mine, others)]
    return bool(all(versions) and versions[0] != versions[1] and "bounds" in cues(new) & cues(old))


def _permits_otherwise(new: str, old: str, shared: frozenset[str]) -> bool:
    """Whether one forbids, or wants to be asked, and the other allows; or one needs what the other does not."""
    if not shared:
        return False
    mine, others = cues(new), cues(old)
    for one, other in ((mine, others), (others, mine)):
        if "needless" in one and "needless" not in other and "needs" in other and len(shared) >= 2:
            return True
    bound = {"forbids", "asks"}
    if "permits" in mine and "permits" not in others:
        return bool(others & bound)
    return "permits" in others and "permits" not in mine and bool(mine & bound) and not others & bound


# ---- the same deed, the same place ----

_NEGATED = re.compile(
    r"\b(?:do not|don['\u2019]t|never|no longer|stop(?= \w{2,30}ing\b)|nicht|nie|ne|no|jamais|nunca)\s+"
    r"((?:[\w`.'/-]++\s*+){2,5})",
    re.I,
)
_ARTICLES = frozenset(
    "a an the any my our your this that these der die das den ein eine einen le la les un une el los".split()
)
_ATTRIBUTE = (
    r"(?:level|mode|name|size|limit|format|type|colou?r|font|theme|version|port|path|default|strategy|policy|timeout"
    r"|interval|prefix|suffix|branch|language|encoding|title|label|layout|width|height|order|method|backend|engine"
    r"|driver|provider|style|scheme|algorithm|library|framework|tool|server|licen[cs]e|minimum|maximum|target)"
)
_SETS = re.compile(
    rf"\b((?:[\w-]{{1,40}} ){{0,2}}{_ATTRIBUTE}s?)"
    r"(?: (?:is|are|should be|will be|stays|becomes|goes|moves)(?: (?:to|at|now)){0,2}| to| =|:| as)\s+"
    r"(?:the |an? )?([\w`.+#-]{1,60})",
    re.I,
)
_NAMES = re.compile(
    r"\b(?:re)?(?:name|call)s? (?:(?:the|this|that|it) )?([\w-]{1,40})(?: to| as)? ([`'\"][\w.-]{1,60})", re.I
)
_PLACE = r"((?:[\w`./-]++\s*+){1,4})"
_PUTS = re.compile(
    r"\b(?:store|put|keep|save|write|place|hold|move)s? (?:(?:the|all|our) )?([\w-]{1,40}(?: [\w-]{1,40})?)"
    rf"(?: as [\w-]{{1,40}})? (?:in|into|to|on|next to|under|beside|inside)\s+{_PLACE}",
    re.I,
)
_LIES = re.compile(
    r"(?<![\w-])([\w-]{1,40})(?: (?:now|all|always))?"
    r" (?:goe?s?|lives?|sits?|lies?|belongs?|(?:are|is) (?:stored|kept|saved)|vont|kommen|gehen)"
    rf"\s+(?:in|into|to|on|next to|under|beside|inside|dans|nach|auf)\s+{_PLACE}",
    re.I,
)
_BEFORE = re.compile(
    r"(?<![\w-])([\w-]{1,40}) (?:first|before|then|und dann|vor|d'abord|avant|antes de)\W{1,3}"
    r"(?:(?:the|then|and|a|der|die|das|le|la|el) ){0,3}([\w-]{1,40})",
    re.I,
)
_AFTER = re.compile(
    r"(?<![\w-])([\w-]{1,40}) (?:\w{1,20} )?(?:after|nach|après|después de)"
    r" (?:(?:the|a|der|dem|le|la|el) )?([\w-]{1,40})",
    re.I,
)


def _denies_the_same(new: str, old: str) -> bool:
    """Whether one says not to do what the other says to do: the deed and its object, whatever else."""
    mine, others = _negated(new), _negated(old)
    if bool(mine) == bool(others):
        return False
    there = frozenset(every_stem(old if mine else new))
    return any(pair <= there for pair in mine or others)


@lru_cache(maxsize=2048)
def _negated(text: str) -> frozenset[frozenset[str]]:
    """The first two words of each thing that a text says not to do."""
    found = [[one for one in every_stem(match[1]) if one not in _ARTICLES][:2] for match in _NEGATED.finditer(text)]
    return frozenset(frozenset(pair) for pair in found if len(pair) == 2)


def _assigns_otherwise(new: str, old: str) -> bool:
    """Whether both give the same attribute, name or place of one thing, and another value."""
    mine, others = _assigned(new), _assigned(old)
    return any(what == thing and not value & given for what, value in mine for thing, given in others)


@lru_cache(maxsize=2048)
def _assigned(text: str) -> frozenset[tuple[tuple[str, ...], frozenset[str]]]:
    """(what, the words of its value) of each thing that a text sets, names or puts somewhere."""
    found = [(stems_in(match[1]), {stem(match[2].strip("`"))}) for match in _SETS.finditer(text)]
    found += [(("name", stem(match[1])), {stem(match[2].strip("`'\""))}) for match in _NAMES.finditer(text)]
    for match in (*_PUTS.finditer(text), *_LIES.finditer(text)):
        found.append((("place", *stems_in(match[1])[-1:]), set(stems_in(match[2]))))
    return frozenset(
        (what, frozenset(value)) for what, value in found if value and len(what) + (what[:1] != ("place",)) > 1
    )


def _orders_otherwise(new: str, old: str) -> bool:
    """Whether both put the same two things in order, each in the other one."""
    return bool(_order(old) & {(second, first) for first, second in _order(new)})


@lru_cache(maxsize=2048)
def _order(text: str) -> frozenset[tuple[str, str]]:
    found = {(stem(match[1]), stem(match[2])) for match in _BEFORE.finditer(text)}
    return frozenset(found | {(stem(match[2]), stem(match[1])) for match in _AFTER.finditer(text)})
