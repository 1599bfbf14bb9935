"""The English of designs: orders, proposals and statements that say how something is to be, and speak to nobody."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ralf.summarizers.grammar import ENOUGH, any_of, guesses, is_question, looks_around

_I = re.IGNORECASE

_IMPERATIVE = re.compile(
    r"^(?:to )?(?:add|adopt|allow|alter|apply|avoid|ban|bump|change|check|clarify|close|codify|combine|convert|create"
    r"|cut|declare|define"
    r"|delete|deny|demote|deprecate|derive|disable|disallow|discourage|divide|do not|document|don't|drop"
    r"|eliminate|emit|enable|encode|enforce"
    r"|ensure|establish|exclude|expand|export|expose|extend|fold|forbid|formali[sz]e|generali[sz]e|generate"
    r"|give|grant|group|have"
    r"|hide|ignore|implement|improve|include|inline|install|integrate|introduce|isolate|keep|let|lift|limit|log"
    r"|loosen|make|mark"
    r"|merge|migrate|modify|move|name|never|normali[sz]e|only|parse|permit|pin|place|prefer|prevent|prohibit"
    r"|promote|propose|provide"
    r"|publish|put|raise|record|redefine|redesign|reduce|refactor|refuse|reject|relax|remove|rename"
    r"|reorgani[sz]e|replace|report"
    r"|require|reserve|restrict|return|reuse|rework|rewrite|run|send|separate|serve|set|ship|simplify|split"
    r"|stabili[sz]e"
    r"|standardi[sz]e|stop|store|support|swap|switch|tighten|track|treat|turn|unify|update|use|validate|warn"
    r"|wrap|write)s?\b",
    _I,
)
_PROPOSAL = any_of(
    r"\b(?:this|the|our|a) (?:new |proposed )?(?:rfc|proposal|design|change|document|adr|pep|spec(?:ification)?"
    r"|decision|scheme|convention"
    r"|mechanism|approach|policy)\b[^.]{0,60}\b(?:propos|add|introduc|defin|describ|allow|change|extend|specif"
    r"|replac|remov|establish"
    r"|permit|provid|make|require|augment|is)",
    r"\b(?:moves?|switch(?:es)?|migrates?|changes?) (?:over )?from\b[^.]{1,80}\bto\b|\bno longer\b|\bwe now\b",
    r"^we (?:introduce|propose|define|add|extend|change|allow|require|use|make|keep|will)\b",
    r"\b(?:should|must|shall) (?:not |only |always |never |now )?(?:be|have|use|capture|return|allow|support"
    r"|take|go|live|stay|remain)\b",
    r"\b(?:is|are) (?:now |to be |no longer |always |never |only )?(?:added|allowed|introduced|required"
    r"|deprecated|removed|replaced|stored"
    r"|permitted|forbidden|kept|moved|renamed|made|defined as|treated as|represented|split|exposed)\b",
)
_TALKS = re.compile(r"\b(?:i(?![./])|i'm|i'll|i've|i'd|me|my|you|your|you're|you'll|let's|let us)\b|\bhere's\b", _I)
_TAKES = (
    r"(?:adopt\w*|back\w*|bas(?:e|ed|ing)|build\w*|built|chose\w*|choos\w+|go(?:ing)? (?:with|for)|went (?:with|for)"
    r"|opt\w* for|pick\w*|put(?:ting)?|select\w*|settl\w+ (?:on|for)|stor(?:e|ed|ing)|take|took|taking|us(?:e|ed|ing))"
)
_NEAR_TO = r"(?:around|as|behind|by|for|from|in|on|to|under|with)"
_ASSIGNS = re.compile(
    rf"(?:(?:so|ok(?:ay)?|then|right)[ ,]+)*(?:(?:i|we)(?:'m|'re|'ve| am| are| have)? )?{_TAKES} "
    r"(?!it\b|this\b|that\b|them\b)"
    rf"(?:\S+(?: \S+){{0,5}}? {_NEAR_TO} (?:the|our|an?) [^.?!:]+"
    rf"|(?:the|our) \S+(?: \S+){{0,4}}? {_NEAR_TO} \S[^.?!:]*)[.!]?$",
    _I,
)
_SHORT = 16
_FINDS = re.compile(r":|\b(?:is|are)\b", _I)  # in a few words: "the picker is slow"
_REPORTS = any_of(
    r"\b(?:tests?|build|lint|ci|checks?) (?:all )?(?:pass|fail|are|is|was|now)\w*",
    r"\bready (?:to|for)\b|\bnow (?:has|have)\b|\bwhich no longer\b",
    r"\b(?:passed|failed|failing|the issue|the problem|the bug|root cause|stack ?trace|the output|the error"
    r"|the diff|the logs?)\b",
)
_CONTINUES = re.compile(
    # What begins like this answers, points back, reports or depends: it does not stand for itself.
    r"^`?[0-9a-f]{7,40}`|^\d|^[^.]{1,60}, (?:yes|no)\b|^(?:if|because|since|yes|yeah|yep|no|nope|right|ah|oh"
    r"|ok(?:ay)?|so|and|but|also|still|wait|note|good|great"
    r"|clean|perfect|all"
    r"|just|now|next|then|here|there|that|those|these|they|it|he|she|both|same|need|needs|two|three|one(?! of)"
    r"|found|done"
    r"|logged|looks|says|interesting|exactly|correct|true|fair|makes sense|summary|\w+ed|\w+ing"
    r"|(?:the )?\w+ (?:is |are |now )*(?:complete|done|saved|posted|ready|updated|finished|fixed))\b",
    _I,
)
_SPEAKS = re.compile(r"(?:let me|i'll|i'm|i've|i|you|now|first|next)\b", _I)
_DISCOVERS = re.compile(r"^(?:found|interesting|i see|there|ah|oh|hmm|wait|turns out|confirmed)\b", _I)
_WAS = re.compile(r"\b(?:was|were|had|did|says?|said|tells?)\b", _I)


def states_design(texts: Sequence[str], *, orders: bool = False) -> int:
    """The score of a message that does nothing but state how something is to be; 0 for reports and narration.

    Agents talk to somebody about what they see and do. A message in which nobody is spoken to, that begins of itself
    and reports nothing, states what holds. With `orders` it has to say what is to be done.
    """
    opening = texts[0] if texts else ""
    texts = [text for text in texts if len(text.split()) > 2] if len(texts) > 1 else list(texts)
    if not texts:
        return 0
    first = texts[0]
    words = len(first.split())
    least = 4 if len(texts) == 1 and not _FINDS.search(first) else 6
    if words < least or words > 90 or is_question(first) or _TALKS.search(first) or _REPORTS.found(first):
        return 0
    if any(looks_around(text) for text in texts):
        return 0
    if (_IMPERATIVE.match(first) or _PROPOSAL.found(first)) and not _CONTINUES.match(first):
        return ENOUGH
    if (
        orders
        or _DISCOVERS.match(opening)
        or _CONTINUES.match(first)
        or any(_TALKS.search(text) or _REPORTS.found(text) for text in texts)
    ):
        return 0
    if guesses(first, len(first)) or _WAS.search(first) or (len(texts) == 1 and first.endswith(":")):
        return 0
    return ENOUGH


def assigns(text: str) -> bool:
    """Whether a short message only gives a purpose its thing: "picked Y for the X", "I put Y behind the X"."""
    return len(text.split()) <= _SHORT and bool(_ASSIGNS.match(text)) and not _REPORTS.found(text)


def may_follow(texts: Sequence[str]) -> bool:
    """Whether a message can be what was announced as decided: it asks nothing, and does not go on to look around."""
    first = texts[0] if texts else ""
    if len(first.split()) < 5 or first.endswith(":") or _SPEAKS.match(first):
        return False
    return not any(is_question(text) or looks_around(text) for text in texts)


def is_imperative(text: str) -> bool:
    """Whether a sentence begins with what is to be done: "add", "keep", "do not"."""
    return bool(_IMPERATIVE.match(text))
