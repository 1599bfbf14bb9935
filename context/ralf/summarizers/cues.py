"""Words by which a decision turns away from something, adds, allows, forbids, asks and counts, in four languages."""

from __future__ import annotations

from functools import lru_cache

from ralf.summarizers.grammar import any_of

ADDS = any_of(
    r"\b(?:also|too|as well|in addition|additionally|besides|on top|another|auch|zusätzlich|außerdem|ebenfalls|aussi"
    r"|en plus|également|también|además|tampoco)\b",
)
TURNS = any_of(
    r"\b(?:instead of|rather than|no longer|no more|stop\w*|drop\w*|forget|scrap|ditch\w*|abandon\w*"
    r"|replac\w+|remov\w+|swap\w*|rip\w*|kick\w*|retir\w+|revert\w*|undo|get rid of|throw\w*"
    r"|thrown|split\w*|out of|enough of|moving|nicht mehr|kein\w* mehr|statt|weg|raus|plus de|ya no"
    r"|dejar|quitar)\b",
    r"^no,? ",
)
GOES = any_of(r"\b(?:away|gone|goes|any ?more|out|weg|raus|history|retired|removed|dropped|replaced)\b")
COMPLAINS = any_of(
    r"\b(?:fail\w*|broken?|breaks?|breaking|slow\w*|too|pain\w*|hid|hides?|grow(?:s|ing|n)?|reached|exceed\w*"
    r"|limit(?:s|ed|ation)?|quota|expensive|leak\w*|flaky|wrong|worse|hate\w*|annoy\w*|trouble\w*|bugs?|crash\w*"
    r"|hang(?:s|ing)?|not|never|isn't|aren't|wasn't|doesn't|didn't|no tiene|no hay|no funciona|ne marche|don't"
    r"|don\u2019t|nobody|lost|los(?:es|ing)|overwr\w+|can't|cannot|couldn't|won't|drift\w*|explod\w*|dead|taken|gone"
    r"|suffer\w*|struggl\w*|outgr\w+|messy|noisy|contended|ugly|confus\w+|duplicat\w*|deprecat\w*|unmaintained|vulnerab\w+"
    r"|used up|eaten|overkill|huge|bloat\w*|dick|langsam|kaputt|voll|plein|lent|lento|lleno|caro|cher|teuer)\b",
)
_CONCLUDES = any_of(
    r"\b(?:so|therefore|hence|thus|now|instead|let's|i'm \w{2,30}ing|i am \w{2,30}ing|we'll|i'll|i change|also"
    r"|daher|darum|deshalb|jetzt|donc|maintenant"
    r"|así que|entonces|ahora|use)\b|\. (?!\w+ (?:is|are|was|were)\b)[A-Z]"
)
TURNS_FROM_IT = any_of(
    r"\b(?:replac(?:e|ed|es|ing)|drop(?:ped|ping)?|remov(?:e|ed|ing)|swap(?:ped|ping)?|ditch(?:ed|ing)?|rip(?:ped|ping)?"
    r"|throw(?:ing)?|kick(?:ed|ing)?|get(?:ting)? rid of|split(?:ting)?) (?:it|them|that|this|those)\b"
)
_CHANGES = any_of(
    r"\b(?:actually|instead|no longer|any ?more|go(?:ing)? back|back to|after all|on second|from (?:now|today) on"
    r"|now|moved?|moves|moving|switch\w*|swap\w*|replac\w*|changed?|changing|drop\w*|forget|scrap|rip|ditch|doch"
    r"|stattdessen|jetzt|ab (?:jetzt|sofort|heute)|lieber|désormais|maintenant|passe|plutôt|finalement|ahora|mejor"
    r"|pasa\w*|from today|we'll|it is|gone)\b",
)
_FORBIDS = any_of(
    r"\b(?:don't|do not|don\u2019t|never|must not|may not|no one|nobody|forbidden|not allowed|hands off|read-only"
    r"|stop \w{2,30}ing|no more|nicht|nie|niemals|keine?n?|ne|jamais|nunca)\b|^no\b"
)
_ASKS = any_of(
    r"\b(?:ask me|ask before|ask first|wait for my|until i(?:'ve| have)?|check with me|my (?:ok|approval|review)"
    r"|frag mich|demande-moi|pregúntame)\b"
)
_PERMITS = any_of(
    r"\b(?:you (?:may|can)|may|feel free|go ahead|allowed|free to|freely|on your own|no need to|needn't|whenever"
    r"|welcome to|it's (?:fine|ok|okay|alright) to|don't (?:need|have) to (?:ask|wait)|darfst|kannst|peux|puedes"
    r"|without asking)\b"
)
_RETURNS = any_of(
    r"\b(?:go(?:ing)? back to|back to|revert(?:ing)? to|return(?:ing)? to|zurück zu\w?|revenir à|volver a)\b"
)
_NEEDLESS = any_of(
    r"\b(?:(?:don't|doesn't|do not|does not|don\u2019t|doesn\u2019t) (?:really )?(?:need|require)|no need (?:for|of)"
    r"|not (?:needed|required|necessary)|unnecessary|braucht? kein\w*|brauchen kein\w*|pas besoin"
    r"|no (?:necesita|hace falta)\w*)\b"
)
_NEEDS = any_of(
    r"\b(?:needs?|must have|(?:is|are) (?:required|needed|mandatory)|requires?|we want|has to have|braucht?|brauchen"
    r"|il faut|necesita\w*|hace falta)\b"
)
_BOUNDS = any_of(
    r"\b(?:and (?:up|newer|later|above)|or (?:newer|later|higher)|at least|minimum|below|older than|support(?:s|ed)?"
    r"|required?|requires|mindestens|ab|mindestversion|minimale|minimum|al menos|au moins)\b|>="
)
_TO_NUMBER = any_of(
    r"\b(?:down|up|goes|go|raise\w*|lower\w*|reduc\w+|increas\w+|bump\w*|cut|set|runter|hoch"
    r"|passe) (?:\w+ )?(?:to|auf|à|a) \d"
)
_CUES = {
    "concludes": _CONCLUDES,
    "changes": _CHANGES,
    "complains": COMPLAINS,
    "forbids": _FORBIDS,
    "asks": _ASKS,
    "permits": _PERMITS,
    "returns": _RETURNS,
    "needless": _NEEDLESS,
    "needs": _NEEDS,
    "bounds": _BOUNDS,
    "to number": _TO_NUMBER,
}


@lru_cache(maxsize=2048)
def cues(text: str) -> frozenset[str]:
    """What a text does, of the kinds named in `_CUES`."""
    return frozenset(kind for kind, pattern in _CUES.items() if pattern.search(text))
