"""What people say to an agent: directives, corrections, standing rules, and answers to what it offered."""

from __future__ import annotations

import re

from ralf.summarizers.grammar import any_of, contrasts, gives_reason, is_question

_I = re.IGNORECASE

_STANDING = any_of(
    # "never finishes", "which always fails" tell how things are; they ask for nothing.
    r"(?<!which )(?<!that )\b(?:always|never)\b(?! mind)(?!\s+\w*[^\Ws](?:s|ed)\b)",
    r"\b(?:from now on|going forward|from here on|in (?:the )?future|every time|whenever|as a rule|in general"
    r"|at all times|without exception)\b",
    r"\b(?:overriding|standing|general|hard) (?:directive|rule|principle|requirement|constraint)\b",
    r"\b(?:under no circumstances|no matter what|remember (?:to|that)|keep in mind)\b",
)
_FORBIDS = any_of(
    r"^(?:please |and |but |also |so |ok,? |no,? |just )*(?:don't|do not|dont) (?!think|know|see|want|worry"
    r"|understand|get|have|believe"
    r"|you|we|mind|need|like|agree|care|remember|really)\w+",
    r"\b(?:must|should) (?:never|always|not ever)\b|\b(?:you|we|it) must(?: not|n't)?\b",
)
_ORDERS = any_of(
    r"\b(?:should|must|shall|needs? to|has to|have to|will|directive|rule|principle|constraint|don't|do not"
    r"|please|always|never)\b"
)
_TELLS = any_of(r"\b(?:happens?|happened|was|were|i've|it's|is always|seems?|why|has never|have never)\b")
_HERE = re.compile(r"\b(?:it|this|that|now|yet|here|these|those|there)\b", _I)
_DIRECTS = any_of(
    r"\b(?:let's|lets|let us) (?!see\b|look\b|check\b|start\b|discuss\b|talk\b|review\b|continue\b|move on"
    r"|try\b|test\b|commit\b|push\b|run\b|say\b)\w+",
    r"\b(?:i'd|i would|i) (?:also |really |much )?(?:would )?(?:rather|prefer|want|like to explore|like us"
    r"|like to (?:keep|use|have|avoid))\b",
    r"\b(?:we|you|it|they|that|this) (?:also |really |still |just |do |then |now |probably "
    r"|at least )?(?:should|need to|needs to|must|have to|ought to|shouldn't|can just|don't need)\b",
    r"\bi (?:think|figure|guess|feel like|reckon) (?:we|you|it|that|the|this)\b",
    r"\bi(?:'ll| will) (?:do|handle|take|fix|merge|make)\b",
)
_IMPERATIVE_USER = re.compile(
    r"^(?:ok(?:ay)?|yes|yeah|yep|no|nope|and|then|so|but|also|please|just|actually|hmm|first|well|sure"
    r"|right)?[,.!:… ]*"
    r"(?:just |please |first |then )*"
    r"(?:use|keep|drop|skip|ignore|make|move|put|rename|remove|revert|rebase|fix|leave|stop|avoid|go|stick"
    r"|merge|split|replace"
    r"|switch|set|store|add|define|wire|treat|return|write|call|give|swap|document|include|exclude|limit|only"
    r"|pick|choose|do)\b",
    _I,
)
_STRENGTH = any_of(
    r"\b(?:just|instead|first|before|only|rather|because|since|so (?:that|we)|for now|separate|manually|as well"
    r"|not|no longer|simply"
    r"|anyway|until|don't|too|same|without|later|already|more like|over there|as long as|but|also|make sure"
    r"|then|manual|simpl(?:e|er))\b"
)
_CORRECTS = any_of(
    r"^(?:no|nope|nah|actually|wait|hold on|not quite|wrong|hmm,? (?:no|but|actually))\b",
    r"\bi mean(?:t)?\b|\bnot [\w` -]{1,40} but\b|\bthat's (?:not|wrong)\b|\binstead\b|\bon second thoughts?\b"
    r"|\bwhat are you doing\b",
)
_SUGGESTS = any_of(
    r"\b(?:is there (?:a|any) (?:good )?reason (?:not to|why)|why (?:not|don't we|aren't we)|shouldn't|can't we"
    r"|couldn't we|can we|could we"
    r"|do we (?:really|even|still)? ?need|don't we|we don't(?: really)? need|what if we|how about|that could"
    r"|we can|we could|but we)\b"
)
_ROUTINE = re.compile(
    r"^(?:ok(?:ay)?|yes|and|now|please|then|so|can you|could you|pls)?[,. ]*(?:commit|push|merge|run|test|check"
    r"|look|review|show"
    r"|continue|go on|go ahead|proceed|explain|tell|respond|reply|pull|open|read|list|help)\b(?:\W+\w+){0,8}\W*$",
    _I,
)


def is_rule(text: str) -> bool:
    """Whether a sentence of a person orders or forbids in general."""
    words = len(text.split())
    if words < 3 or words > 80 or is_question(text):
        return False
    if _FORBIDS.search(text):
        return True
    orders = _ORDERS.search(text) or _DIRECTS.search(text) or _IMPERATIVE_USER.match(text)
    return bool(_STANDING.search(text) and orders and not _TELLS.search(text))


def is_standing(text: str) -> bool:
    """Whether a rule holds for good, and not only for what is being done at the moment."""
    if _STANDING.search(text):
        return True
    return bool(_FORBIDS.search(text)) and not _HERE.search(text) and len(text.split()) >= 4


def user_score(text: str) -> int:
    """How much a sentence of a person decides something."""
    words = len(text.split())
    if words < 2 or words > 90 or _ROUTINE.match(text):
        return 0
    score = 0
    if _CORRECTS.search(text):
        score += 2
    if _DIRECTS.search(text):
        score += 2
    if _IMPERATIVE_USER.match(text):
        score += 2
    if not score:
        return 0
    if _STRENGTH.search(text) or gives_reason(text) or contrasts(text):
        score += 1
    if words < 4:
        score -= 1
    if is_question(text):
        score -= 2
    return max(score, 0)


def suggests(text: str) -> bool:
    """Whether a question or remark of a person puts a change forward."""
    return bool(_SUGGESTS.search(text)) or user_score(text) > 0


_AGREES = any_of(
    r"^(?:you're (?:absolutely )?right|good (?:point|call|catch|idea|thinking|insight|choice)|got it"
    r"|makes? sense|that makes sense|agreed"
    r"|right|yes|exactly|understood|fair|sure|will do|true|that works|noted|great (?:point|idea|question)"
    r"|ok(?:ay)?|absolutely|of course"
    r"|that's a (?:good|great|better|fair))\b"
)


def agrees(text: str) -> bool:
    """Whether the agent's answer begins by agreeing."""
    return bool(_AGREES.match(text))


_ACCEPTS = re.compile(
    r"^(?:y|yes|yep|yeah|yup|ok(?:ay)?|sure|please do|please|lgtm|do it|do that|go ahead|go for it|sounds good"
    r"|agreed|perfect|great"
    r"|exactly|correct|right|fine|makes sense|that works|let's do (?:it|that)|works for me|approved?|ship it|👍)\b",
    _I,
)
_PICKED = re.compile(
    r"^(?:(?:yes|yeah|ok(?:ay)?|let's (?:go with|do)|go with|i'd go with|i prefer|prefer)[,. ]*)?(?:option"
    r"|approach|number|#|choice)?\s*"
    r"\(?(\d|[a-e])\)?(?:\s*(?:,|and|&|\+)\s*\(?(\d|[a-e])\)?)?(?:[.):,]|\s*$|\s+(?:please|is|sounds|looks|but"
    r"|and|-))",
    _I,
)
_RECOMMENDS = any_of(
    r"\b(?:i(?:'d| would)? (?:suggest|recommend|propose|go with|lean)|recommend(?:ation|ed)?|suggestion"
    r"|my (?:take|preference|vote)"
    r"|(?:seems?|is|looks) (?:the )?(?:cleanest|simplest|best|safest)|makes? sense|the (?:fix|plan|approach"
    r"|proposal) (?:is|would be|should)"
    r"|best (?:option|approach)|better (?:option|approach|to)|simpler and)\b"
)
_OFFER = re.compile(
    r"(?:want me to|would you like me to|do you want me to|should (?:i|we)|shall (?:i|we)|i can|okay if i"
    r"|ok to)\s+(?:go ahead and |also |now )?"
    r"([^?]{12,})\??",
    _I,
)
_ROUTINE_OFFER = re.compile(
    r"^(?:commit|push|merge|approve|run|continue|move on|proceed|start|check|look|show|go|do (?:it|that|this)"
    r"|help|explain|dig)\b",
    _I,
)


def accepts(text: str) -> bool:
    """Whether an answer says yes."""
    return bool(_ACCEPTS.match(text)) and not is_question(text)


def picked(text: str) -> tuple[str, ...]:
    """The marks of the options that an answer picks ("2", "option b", "1 and 2")."""
    match = _PICKED.match(text.strip())
    if match is None:
        return ()
    # A lone letter may be an article ("a test …"): it counts only where nothing but punctuation follows.
    if match[1].isalpha() and not re.match(r"^\W*(?:option|approach|choice)?\s*\(?[a-e]\)?\W*$", text.strip(), _I):
        return ()
    return tuple(mark.lower() for mark in match.groups() if mark)


def recommends(text: str) -> bool:
    """Whether a sentence puts one of several ways forward as the better one."""
    return bool(_RECOMMENDS.search(text))


def offer(text: str) -> str:
    """What a question such as "Want me to …?" offers to do, without the question; "" if routine or none."""
    match = _OFFER.search(text)
    if match is None or _ROUTINE_OFFER.match(match[1]):
        return ""
    return match[1].strip().rstrip("?").strip()
