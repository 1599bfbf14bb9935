"""The English of people who tell an agent what to do: directives, corrections, suggestions, standing rules."""

from __future__ import annotations

import re

from ralf.summarizers.choices import chooses, contrasts, prescribes
from ralf.summarizers.grammar import any_of, content_words, gives_reason, is_question, takes_back

_I = re.IGNORECASE

_ERRAND = (
    r"(?:see|look|check|discuss|talk|review|continue|try|test|commit|push|pull|fetch|sync|run|debug|investigate"
    r"|update from"
    r"|go (?:over|through)|have a look|respond|reply|explain|tell|show|open|read|list|help|clean up|proceed"
    r"|go (?:on|ahead))"
)
_STANDING = any_of(
    # "never finishes", "which always fails" tell how things are; they ask for nothing.
    r"(?<!which )(?<!that )\b(?:always|never)\b(?! mind)(?!\s+\w*[^\Ws](?:s|ed)\b)",
    r"\b(?:from now on|going forward|from here on|in (?:the )?future(?! \w)|every time|whenever|as a rule|in general"
    r"|at all times|without exception)\b",
    r"\b(?:under no circumstances|no matter what|remember (?:to|that)|keep in mind)\b",
)
_DECLARES = re.compile(
    r"\b(?:overriding|standing|general|hard) (?:directive|rule|principle|requirement|constraint)\b", _I
)
_FORBIDS = any_of(
    r"^(?:please |and |but |also |so |ok,? |no,? |just )*(?:don't|do not|dont) (?!think|know|see|want|worry"
    r"|understand|get|have|believe"
    r"|you|we|mind|need|like|agree|care|remember|really)\w+",
    r"\b(?:must|should) (?:never|always|not ever)\b|\b(?:you|we|it) must(?: not|n't)?\b",
)
_ANNOUNCES = re.compile(
    r"^(?:please |so |and |ok(?:ay)?,? )*(?:from (?:now|here) on\b|going forward\b|(?:everything|anything|whatever"
    r"|nothing)\b"
    r"[^.?]{0,80}\b(?:has to|must|should|needs to)\b)",
    _I,
)
_ORDERS = any_of(
    r"\b(?:should|must|shall|needs? to|has to|have to|will|directive|rule|principle|constraint|don't|do not"
    r"|please|always|never)\b"
)
_TELLS = any_of(r"\b(?:happens?|happened|was|were|i've|it's|is always|seems?|why|has never|have never)\b")
_HERE = re.compile(r"\b(?:it|this|that|now|yet|here|these|those|there)\b", _I)
_DIRECTS = any_of(
    rf"\b(?:let's|lets|let us) (?:just |also |first |then )*(?!{_ERRAND}\b|start\b(?! with)|move on|say\b|do (?:it|that"
    rf"|this)\W*$)\w+",
    r"\b(?:i'd|i would|i) (?:also |really |much )?(?:would )?(?:rather|prefer|want|(?:dearly )?love to"
    r"|like to explore|like us"
    r"|like to (?:keep|use|have|avoid))\b",
    r"\b(?:we|you|it|they|that|this) (?:also |really |still |just |do |then |now |probably "
    r"|at least )?(?:(?:should|must)(?!'ve| have\b)|need to|needs to|have to|ought to|shouldn't|can just|don't need)\b",
    r"\bi (?:think|figure|reckon) (?:we|you|it|that|the|this)\b",
    r"\bi(?:'ll| will) (?:do|handle|take|fix|merge|make)\b",
)
_OPENS = (
    r"(?:^|[,;] |\.{3}\s?|: |(?<= )[-\u2013—] )(?:ok(?:ay)?|yes|yeah|yep|no|nope|and|then|so|but|also|please|just"
    r"|actually"
    r"|hmm|first|well|sure|right)?[,.!:… ]{0,12}+(?:just |please |first |then ){0,4}"
)
_NOT_A_NOUN = r"\b(?! (?:is|are|was|were|has|looks)\b)"
_SHAPES = re.compile(
    rf"{_OPENS}(?:use|keep|drop|skip|ignore|move|put|rename|remove|revert|rebase|leave|stop|avoid|go|stick|merge|split"
    r"|replace|switch|store|treat|swap|include|exclude|limit|only|pick|choose)" + _NOT_A_NOUN,
    _I,
)
"""Orders that say how: they shape the work, and do not only start it."""
_STARTS = re.compile(
    rf"{_OPENS}(?:make|fix|set|add|define|wire|return|write|call|give|document|create|log|file|handle|do)"
    + _NOT_A_NOUN,
    _I,
)
_CHANGES_COURSE = any_of(
    r"\b(?:no longer|replac(?:e|es|ed|ing)|switch(?:es|ed|ing)?|moves? from|after all)\b",
)
_CHANGES_MIND = any_of(
    r"\bchanged? (?:our|my) minds?\b|\bon (?:reflection|second thoughts?)\b|\bchange of plan\b",
)
_PUTS_OFF = re.compile(
    r"\b(?:not (?:now|yet|here)|(?:in|into|as) (?:its|their|a) (?:own|separate|different)|later on)\b", _I
)
_STRENGTH = any_of(
    r"\b(?:just|instead|first|before|only|rather|because|since|so (?:that|we)|for now|separate|manually|as well"
    r"|not|no longer|simply"
    r"|own|anyway|until|don't|too|same|without|later|already|more like|over there|as long as|but|also|make sure"
    r"|then|manual|simpl(?:e|er))\b"
)
_CORRECTS = any_of(
    r"^(?:no|nope|nah|actually|wait|hold on|not quite|wrong|hmm,? (?:no|but|actually))\b",
    r"\bi mean(?:t)?\b|\bnot [\w` -]{1,40} but\b|\bthat's (?:not|wrong)\b|\binstead\b|\bon second thoughts?\b",
)
_VERBS = (
    r"use|keep|drop|skip|ignore|make|move|put|rename|remove|revert|rebase|fix|leave|stop|avoid|stick|merge|split"
    r"|replace"
    r"|switch|set|store|add|define|wire|treat|return|write|call|give|swap|document|include|exclude|limit|only|pick"
    r"|choose"
    r"|create|do|get rid|not|take|have|start|log|file|roll back|undo|scrap|go back"
)
_SUGGESTS = any_of(
    r"\bis there (?:a|any) (?:good )?reason (?:not to|why we (?:don't|can't))|\bwhy (?:not|don't we|aren't we)\b",
    r"\b(?:shouldn't|couldn't|can't|can|could|should) we (?:just |also |please |maybe |then |at least )*"
    rf"(?:get|{_VERBS})\b",
    r"\bdo we (?:really|even|still) need\b|\bwe (?:really )?don't(?: really)? need\b|\bdon't we need\b",
    r"\b(?:what if we|how about|maybe (?:we|you|as|in|with|just|it)|(?:that|this|it) (?:could|should) (?:go|be|stay"
    r"|live)|we can)\b",
    r"^consider \w+ing\b|\bwould (?:make|be (?:better|cleaner|nicer|simpler|safer))\b",
)
_ASKS_FIRST = re.compile(r"\W*(?:\w+,? )?(?:do|did|does|have|has|is|are|so|what|why|how|which)\b", _I)
_EITHER = re.compile(r"\bor (?:should|shall|do|can|could|would|is)\b|^(?:genuine )?question\b", _I)
_TAG = re.compile(r"(?:[, ](?:yeah|yes|right|no|ok(?:ay)?|correct|isn't it|don't we|aren't we))\?+(?!\w)[^\w?]*$", _I)
_WITHDRAWS = re.compile(r"\b(?:forget|scratch|ignore|never ?mind) (?:that|it|this)\b|\bnever ?mind\W*$", _I)
_DOUBTS = re.compile(r"\b(?:looks like|seems?|i guess|i wonder|not sure|maybe|no idea|i suppose)\b", _I)
_PAST = re.compile(r"\b(?:did|was|were|had|been|already|should have|would have|thought|\w{3,}ed)\b", _I)
_POINTS = re.compile(r"\b(?:it|this|that|these|those|them|they|both|all)\b", _I)
_DEEDS = re.compile(
    r"fix|do|address|tackle|handle|manual(?:ly)?|start|chang|change|update|thing|want|just|try|make|that|this"
)
_TICKETS = re.compile(
    r"^(?:(?:ok(?:ay)?|yes|yeah|and|also|then|so|now|please|for now|first|let's|lets|just"
    r"|can (?:we|you)|could (?:we|you))\b[ ,]*)*"
    r"(?:add|write|leave|put|pop|post|create|log|open|file|raise|make)\b[^,.;]{0,30}"
    r"\b(?:comments?|issues?|tickets?|sub-issues?|linear|test coverage|tests?|todo)\b",
    _I,
)
_ROUTINE = re.compile(
    r"^(?:ok(?:ay)?|yes|and|now|please|then|so|can you|could you|pls)?[,. ]*(?:commit|push|merge|run|test|check"
    r"|look|review|show"
    r"|continue|go on|go ahead|proceed|explain|tell|respond|reply|pull|open|read|list|help)\b(?:\W+\w+){0,8}\W*$",
    _I,
)
_ERRAND_REQUEST = re.compile(
    rf"^(?:ok(?:ay)?|yes|and|now|please|then|so|also|first|can you|could you|pls|let's|lets|have|hmm"
    rf"|just|\W)*\b{_ERRAND}\b",
    _I,
)


def is_rule(text: str) -> bool:
    """Whether a sentence of a person orders or forbids in general."""
    words = len(text.split())
    if words < 3 or words > 80:
        return False
    if _DECLARES.search(text):
        return True
    if is_question(text) or _DOUBTS.search(text):
        return False
    if _FORBIDS.found(text) or _ANNOUNCES.match(text):
        return True
    orders = _ORDERS.found(text) or _DIRECTS.found(text) or _SHAPES.search(text) or _STARTS.search(text)
    return bool(_STANDING.found(text) and orders and not _TELLS.found(text))


def is_order(text: str) -> bool:
    """Whether a sentence begins as an order that shapes the work, and gives no reason: "Use port 8081."."""
    return bool(_SHAPES.match(text)) and not (is_question(text) or gives_reason(text) or is_errand(text))


def is_for_now(text: str) -> bool:
    """Whether an order speaks of what is being done at the moment."""
    return bool(_HERE.search(text))


def is_standing(text: str) -> bool:
    """Whether a rule holds for good, and not only for what is being done at the moment."""
    if _ANNOUNCES.match(text) or _DECLARES.search(text) or _STANDING.found(text):
        return True
    return _FORBIDS.found(text) and not _HERE.search(text) and len(text.split()) >= 4


def user_score(text: str) -> int:
    """How much a sentence of a person decides something."""
    words = len(text.split())
    if words < 2 or words > 90 or _ROUTINE.match(text):
        return 0
    score = 0
    if _CORRECTS.found(text):
        score += 2
    if _DIRECTS.found(text):
        score += 2
    if _SHAPES.search(text):
        score += 2
    elif _STARTS.search(text):
        score += 1
    if chooses(text):
        score += 3
    elif prescribes(text):
        score += 2
    if _CHANGES_COURSE.found(text):
        score += 2
    if _CHANGES_MIND.found(text) or (takes_back(text) and not is_question(text)):
        score += 4 - (words > 12)
    if not score or (_DOUBTS.search(text) and not (_DIRECTS.found(text) or _SHAPES.search(text))):
        return 0
    if _STRENGTH.found(text) or gives_reason(text) or contrasts(text):
        score += 1 + bool(_PUTS_OFF.search(text))
    if words < 4:
        score -= 1
    if is_question(text):
        score -= 2
    return max(score, 0)


def suggests(text: str) -> bool:
    """Whether a question or remark of a person puts a change forward: "can we not take it from …?"."""
    return _SUGGESTS.found(text) and not _EITHER.search(text)


def asks(text: str) -> bool:
    """Whether a sentence only asks: no suggestion, and no statement that ends with "yeah?"."""
    orders = (_SHAPES.match(text) or _STARTS.match(text)) and not _ASKS_FIRST.match(text)  # "write it first, I guess?"
    return is_question(text) and not suggests(text) and not _TAG.search(text) and not orders


def is_errand(text: str) -> bool:
    """Whether a person's sentence only asks to look, run, commit and the like."""
    return bool(_ROUTINE.match(text) or _ERRAND_REQUEST.match(text))


def is_errand_request(text: str) -> bool:
    """Whether a person's sentence only asks for an errand, or for a ticket, a comment or tests to be written."""
    writes = _TICKETS.match(text) and len(text.split()) <= 16 and not contrasts(text) and not gives_reason(text)
    return bool(writes) or is_errand(text)


def leans(text: str) -> bool:
    """Whether a sentence speaks of something that stands elsewhere: "just fix it", "address all 4"."""
    return bool(_POINTS.search(text)) and says_little(text)


def says_little(text: str) -> bool:
    """Whether a sentence has at most a few words of its own."""
    return len(_own(text)) <= 3


def says_something(text: str) -> bool:
    """Whether a sentence that points elsewhere has something to say by itself."""
    return len(_own(text)) >= 2


def _own(text: str) -> frozenset[str]:
    return frozenset(word for word in content_words(text) if not _DEEDS.fullmatch(word) and not word.isdigit())


def doubts(text: str) -> bool:
    """Whether a sentence only supposes."""
    return bool(_DOUBTS.search(text))


def withdraws(text: str) -> bool:
    """Whether a sentence takes back what the same message says before it: "no, wait, forget that"."""
    return bool(_WITHDRAWS.search(text))


def states(text: str) -> bool:
    """Whether a sentence of a person says how things are to be taken from now on, and not what happened."""
    return len(text.split()) >= 8 and not _PAST.search(text) and not _DOUBTS.search(text) and not asks(text)
