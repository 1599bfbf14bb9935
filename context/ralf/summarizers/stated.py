"""What a decision states outright: the value of an attribute, the name or place of a thing, which of two comes first.

Two decisions that state the same otherwise oppose each other, whatever else they say.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ralf.summarizers import kinds
from ralf.summarizers.kinds import concept, flat

_WORD = re.compile(r"[^\W_][\w+#'\u2019-]*(?:[./][\w+#-]+)*")
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

_LARGE = re.compile(r"(?<![\w.-])\d{3,9}(?![\w.-]*\w)")
_DENIES_NUMBER = re.compile(
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
    found = [(_said(match[1]), {_one(match[2])}) for match in _SETS.finditer(text)]
    found += [(("name", _one(match[1])), {_one(match[2])}) for match in _NAMES.finditer(text)]
    for match in (*_PUTS.finditer(text), *_LIES.finditer(text)):
        found.append((("place", *_said(match[1])[-1:]), set(_said(match[2]))))
    return frozenset(
        (what, frozenset(value)) for what, value in found if value and len(what) + (what[:1] != ("place",)) > 1
    )


@lru_cache(maxsize=2048)
def _order(text: str) -> frozenset[tuple[str, str]]:
    """(first, second) of each two things that a text puts in order."""
    found = {(_one(match[1]), _one(match[2])) for match in _BEFORE.finditer(text)}
    return frozenset(found | {(_one(match[2]), _one(match[1])) for match in _AFTER.finditer(text)})


def _one(word: str) -> str:
    return concept(flat(word.strip("`'\"")))


def _said(text: str) -> tuple[str, ...]:
    """The concepts of the words of a text that say something, in order."""
    return tuple(concept(word) for word in map(flat, _WORD.findall(text)) if not kinds.is_empty(word))
