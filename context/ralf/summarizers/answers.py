"""The English of offers and answers: what is put forward, what is picked or accepted, what an agent agrees to."""

from __future__ import annotations

import re

from ralf.summarizers.grammar import any_of, is_question

_I = re.IGNORECASE

_CONCEDES = any_of(
    r"^(?:you're (?:absolutely |totally )?(?:right|correct)|good (?:point|call|catch)|fair(?: point| enough)?\b"
    r"|agreed|exactly|true\b"
    r"|(?:yes|yeah|yep|right)\b[^.]{0,60}\b(?:pointless|mistake|overkill|unnecessary|redundant|no reason|shouldn't"
    r"|leftover))"
)
_AFFIRMS = any_of(
    r"^(?:you're (?:absolutely |totally )?(?:right|correct)|good (?:point|call|catch|idea|thinking|insight|choice)"
    r"|exactly|agreed"
    r"|(?:that )?makes sense|that clarif|that's a (?:good|great|better|cleaner|fair)|yes[,!.]|fair (?:point|enough)"
    r"|got it|understood)"
)
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


def affirms(text: str) -> bool:
    """Whether the agent's answer takes what a person stated as settled."""
    return bool(_AFFIRMS.match(text))


def concedes(text: str) -> bool:
    """Whether the agent's answer gives way to an objection."""
    return bool(_CONCEDES.match(text))


_ACCEPTS = re.compile(
    r"^(?:y|yes|yep|yeah|yup|ya|ok(?:ay)?|sure|please do|please|lgtm|do it|do that|go ahead|go for it|sounds good"
    r"|agreed|perfect|great"
    r"|exactly|correct|right|fine|makes sense|that works|let's do (?:it|that)|works for me|approved?|ship it|👍)\b",
    _I,
)
_PICKED = re.compile(
    r"^(?:(?:yes|yeah|ok(?:ay)?|let's (?:go with|do)|go with|i'd go with|i prefer|prefer)[,. ]*+)?(?:option"
    r"|approach|number|#|choice)?\s*+"
    r"\(?(\d|[a-e])\)?(?:\s*(?:,|and|&|\+)\s*\(?(\d|[a-e])\)?(?!\w))?(?:[.):,]|\s*$|\s+(?:please|is|sounds|looks|but"
    r"|and|-))",
    _I,
)
_LETTER = re.compile(
    r"^\W*(?:(?:yes|ok(?:ay)?|go with)[, ]+)?(?:(?:option|approach|choice)\s*)?\(?(?:[a-e]\W*$|[A-E][,.):;]"
    r"|(?<=n )[a-e]\b)"
)
_NTH = re.compile(
    r"^(?:(?:yes|yeah|ok(?:ay)?|let's (?:go with|do)|go with|i'd go with|i prefer|prefer)[,. ]*)?the (first|second"
    r"|third|last|former|latter)"
    r"(?: one| option| approach| way)?\b(?! \w+ \w+ \w+ \w+ \w+ \w+)",
    _I,
)
_PLACES = {"first": "1", "former": "1", "second": "2", "latter": "2", "third": "3", "last": "last"}
_RECOMMENDS = any_of(
    r"\b(?:i(?:'d| would)? (?:suggest|recommend|propose|go with|say)|i'd (?!like|love|want|need|be|have|rather)\w+"
    r"|recommend(?:ation|ed)?|suggestion"
    r"|my (?:take|preference|vote)"
    r"|(?:seems?|is|looks) (?:the )?(?:cleanest|simplest|best|safest)|makes? sense|the (?:\w+ )?(?:fix|plan|approach"
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
_VAGUE_OFFER = re.compile(
    r"^(?:\w+ )?(?:ahead and )?\w+ (?:it|this|that|them|these|those|both|either)(?: (?:up|here|there|now|as well"
    r"|too|all))*\W*$",
    _I,
)


def accepts(text: str) -> bool:
    """Whether an answer says yes."""
    return bool(_ACCEPTS.match(text)) and not is_question(text)


def beyond_yes(text: str) -> str:
    """What an answer says beside its yes."""
    match = _ACCEPTS.match(text)
    return text[match.end() :].strip(" ,.:;!-\u2013—") if match else text


def picked(text: str) -> tuple[str, ...]:
    """The marks of the options that an answer picks ("2", "option b", "1 and 2")."""
    nth = _NTH.match(text.strip())
    if nth is not None:
        return (_PLACES[nth[1].lower()],)
    match = _PICKED.match(text.strip())
    if match is None:
        return ()
    # A letter may be an article ("a test …"): it counts by itself, or as a capital with a comma or a stop.
    if match[1].isalpha() and not _LETTER.match(text.strip()):
        return ()
    return tuple(mark.lower() for mark in match.groups() if mark)


def recommends(text: str) -> bool:
    """Whether a sentence puts one of several ways forward as the better one."""
    return _RECOMMENDS.found(text)


def offer(text: str) -> str:
    """What a question such as "Want me to …?" offers to do, without the question; "" if routine, vague or none."""
    match = _OFFER.search(text)
    if match is None or _ROUTINE_OFFER.match(match[1]) or _VAGUE_OFFER.match(match[1].rstrip("?")):
        return ""
    return match[1].strip().rstrip("?").strip()
