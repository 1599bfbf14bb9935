"""The English of decisions: which sentences of an agent choose, give reasons, say what failed, or only narrate."""

from __future__ import annotations

import re

ENOUGH = 3
"""The score from which a sentence counts as a decision."""

_I = re.IGNORECASE


def any_of(*alternatives: str) -> re.Pattern[str]:
    """A pattern, blind to case, that finds any of the alternatives."""
    return re.compile("|".join(alternatives), _I)


# ---- what is no decision ----

_LOOK = (
    r"(?:check|look|see|verify|run|re-?run|test|try|find|trace|read|examine|explore|review|search|start|begin"
    r"|fetch|get|pull"
    r"|investigate|inspect|confirm|understand|take|continue|proceed|debug|analy[sz]e|show|list|view|dig|map"
    r"|think|also check)"
)
_LOOKS = any_of(
    r"^(?:ok(?:ay)?[,.!]? |now,? |first,? |next,? |then,? |and |so |but |good[,.!]? |great[,.!]? "
    r"|perfect[,.!]? |also,? )*"
    rf"(?:let me|let's|i(?:'ll| will|'m going to| need to| want to| should| can| have to)) (?:now |first |also "
    rf"|just |quickly )*{_LOOK}\b",
    rf"\b(?:let me|i'll) (?:now |first |also |just |quickly )*{_LOOK}\b",
    r"^(?:now|next)\b[^.]{0,60}:$",
    r"^(?:checking|running|reading|looking|searching|rebasing|testing|verifying)\b",
)
_NARRATES = any_of(
    r"^(?:ok(?:ay)?|now|first|next|then|good|great|perfect|excellent|done|fixed|pushed|committed|all|both|hmm"
    r"|wait|interesting"
    r"|found|looking|here|there it is|still|i see|i found|i've|i have|i can see|tests? pass|test|running"
    r"|checking|reading"
    r"|summary|everything|looks|finally|ready|sorry|oops|ah|oh|yes|no|and now)\b",
    r"\b(?:let me|i'll now|now i'll|i'm now)\b",
    r"\b(?:pass(?:es|ed|ing)?|green|succeeded|compiles|lint clean)\b[.!]?$",
)
_HYPOTHETICAL = any_of(
    r"\b(?:could|might|may|maybe|perhaps|possibly|probably|would|consider|option \d|alternatively|if you"
    r"|whether|seems?"
    r"|i think|i guess|i suspect|not sure|unclear|likely|appears?|suggests?|suppose|leaning|either)\b"
)
_QUESTION = re.compile(r"\?\W*$")


def looks_around(text: str) -> bool:
    """Whether a sentence only tells what the agent is about to look at or run."""
    return bool(_LOOKS.search(text))


_STATUS = re.compile(
    r"^(?:(?:all )?(?:tests?|checks?|lint)\b.{0,30}\bpass\w*|done|pushed|committed|fixed|clean|all (?:clean"
    r"|good|green|passing)|good|great)\W*$",
    _I,
)


def is_status(text: str) -> bool:
    """Whether a sentence says no more than that something is done or passes."""
    return bool(_STATUS.match(text))


def is_question(text: str) -> bool:
    """Whether a sentence ends as a question."""
    return bool(_QUESTION.search(text))


# ---- reasons and rejected options ----

_REASON = any_of(
    r"\b(?:because|since|so that|as it|as they|in order to|to avoid|to prevent|to keep|to match|due to"
    r"|otherwise|therefore"
    r"|which means|that way|this way|this (?:ensures?|avoids?|keeps?|makes?|lets?|allows?|means|prevents?"
    r"|gives?)|the reason"
    r"|redundant|simpler|cleaner|safer|faster|cheaper|easier|overkill|unnecessary|consisten(?:t|cy)|reason(?:s"
    r"|ing)?:|why:)\b"
)
_LABEL_REASON = any_of(
    r"^(?:the |our |my |main )*(?:reasons?|rationale|why|because|motivation|grounds?|reasoning)\b(?: is| was"
    r"| being)?\s*[:,—-]?"
)
_LABEL_REJECTED = any_of(
    r"^(?:we |i )?(?:also )?(?:rejected|ruled out|discarded|dropped|passed on|decided against|turned down"
    r"|considered|looked at"
    r"|thought about|weighed|explored|evaluated|not chosen|not taken|declined)\b",
    r"^(?:the |an |one |another |other )*(?:rejected |discarded |considered )?(?:alternatives?|other options?"
    r"|option that lost)\b",
    r"^(?:instead of|rather than|as opposed to|over)\b[^.]{0,3}[:,]",
)
_PHRASE = r"[^\s.,;:!?()]+(?:\s[^\s.,;:!?()]+)"
_REJECTED = re.compile(
    rf"\b(?:instead of|rather than|as opposed to|in place of|in favou?r over|and not|not)\s+({_PHRASE}{{0,13}})"
    rf"|\b(?:over|than)\s+({_PHRASE}{{0,5}})\s+because",
    _I,
)


def gives_reason(text: str) -> bool:
    """Whether a sentence says why."""
    return bool(_REASON.search(text))


def label(text: str) -> str:
    """ "reason" or "rejected" if the sentence is introduced as such, else ""."""
    if _LABEL_REJECTED.search(text):
        return "rejected"
    return "reason" if _LABEL_REASON.search(text) else ""


def rejected(text: str) -> list[str]:
    """The options that a sentence turns down, in its own words."""
    found = []
    for match in _REJECTED.finditer(text):
        option = (match[1] or match[2]).strip()
        strong = not match.group().lower().startswith(("not", "and not"))
        if option.count("`") % 2 == 0 and (
            strong or re.match(r"(?:a|an|the|in|on|via|by|with|using|from)\b|`", option, _I)
        ):
            found.append(option)
    return found[:3]


# ---- choices ----

_CHOICE = any_of(
    r"\b(?:decided|decision|deciding|chose|chosen|choosing|opted?|opting) (?:to|on|for|is|was|that|against|not|by)\b",
    r"\bdecision\s*[:—-]",
    r"\b(?:settled|settling|landed|agreed) (?:on|for|to|that|with)\b|^agreed\b",
    r"\b(?:go|goes|going|went|stick|sticking|stuck|stay|staying) (?:with|for)\b",
    r"\bwe(?:'ll| will| now| shall)? (?:use|keep|adopt|standardi[sz]e|prefer|pick|go|store|rely|require|support"
    r"|drop|avoid)\b",
    r"\bi(?:'m| am) (?:using|keeping|choosing|picking|dropping|leaving)\b",
    r"\b(?:final|chosen|agreed|resulting) (?:approach|design|choice|decision|solution|plan)\b",
    r"\bit is (?:for|then)\b|\bwins\b|\bthe (?:choice|verdict|conclusion) is\b",
    r"\b(?:by|as a) (?:design|convention|policy|rule)\b",
)
_CONTRAST = any_of(
    r"\b(?:instead of|rather than|in favou?r of|as opposed to|no longer|not needed|in place of)\b",
    r"\binstead\b",
    r"\bnot (?:in|on|via|by|through|with|as) ",
)
_CHANGE = any_of(
    r"\b(?:switch(?:ed|ing)?|mov(?:e|es|ed|ing)|migrat(?:e|ed|ing)|chang(?:ed|ing)) (?:[^.]{1,60} )?(?:to"
    r"|over to|back to)\b",
    r"\breplac(?:e|es|ed|ing) [^.]{1,80} (?:with|by)\b",
    r"\b(?:drop|dropped|dropping|revert|reverted|reverting|removed entirely|abandon(?:ed|ing)?)\b",
    r"\bchanged? (?:our|my) minds?\b|\bon (?:reflection|second thoughts?)\b",
)
_DEFER = any_of(
    r"\b(?:out of scope|won't fix|deferred|postponed?|put off|skipped|separate (?:pr|issue|branch|change)"
    r"|follow-up (?:pr|issue))\b",
    r"\bleav(?:e|ing) [^.]{1,60} as (?:is|it is|they are)\b|\bkeep(?:ing)? [^.]{1,60} as(?:-| )is\b",
    r"\b(?:pre-existing|unrelated) (?:issue|failure|problem|bug)\b",
    r"\b(?:interim|stopgap|temporary) (?:fix|solution|measure)\b",
)


def agent_score(text: str, *, item: bool = False) -> int:
    """How much a sentence of the agent is a choice; 0 for narration, questions and what might be."""
    words = len(text.split())
    choice = _CHOICE.search(text)
    if (words < 5 and not choice) or words > 120 or is_question(text) or looks_around(text):
        return 0
    score = 0
    if choice:
        score += 3
    if _CONTRAST.search(text):
        score += 2
    if _CHANGE.search(text):
        score += 1
    if _DEFER.search(text):
        score += 2
    if not score:
        return 0
    if gives_reason(text):
        score += 1
    # What is chosen may itself speak of what could be; what leads up to an outright choice may not.
    if _HYPOTHETICAL.search(text, 0, choice.end() if choice else len(text)):
        score -= 3
    if _NARRATES.search(text) and not re.match(r"agreed\b", text, _I):
        score -= 1
    if item:
        score -= 1
    if text.endswith(":") and words < 9:
        score -= 1
    return max(score, 0)


def contrasts(text: str) -> bool:
    """Whether a sentence sets what is chosen against what is not."""
    return bool(_CONTRAST.search(text))


def is_lead_in(text: str) -> bool:
    """Whether a sentence only announces the decision that follows it."""
    words = len(text.split())
    return words <= 12 and (words <= 2 or bool(_CHOICE.search(text))) and not re.search(r":\s+\S", text)


# ---- messages that state a design as a whole ----

_IMPERATIVE = re.compile(
    r"^(?:to )?(?:add|adopt|allow|alter|apply|avoid|ban|bump|change|check|clarify|codify|combine|convert|create"
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
_REPORTS = any_of(
    r"\b(?:i|i'm|i'll|i've|i'd|me|my|you|your|you're|let's)\b",
    r"\b(?:tests?|build|lint|ci|checks?) (?:all )?(?:pass|fail|are|is|was|now)\w*",
    r"\b(?:passed|failed|failing|the issue|the problem|the bug|root cause|stack ?trace|the output|the error"
    r"|the diff|the logs?)\b",
    r"^(?:done|fixed|pushed|committed|found|looks|good|great|clean|perfect|all|now|here|so|still|wait|note)\b",
)


def states_design(texts: list[str]) -> int:
    """The score of a message that does nothing but state how something is to be; 0 for reports and narration."""
    texts = [text for text in texts if len(text.split()) > 2] if len(texts) > 1 else texts
    if not texts:
        return 0
    first = texts[0]
    words = len(first.split())
    if words < 6 or words > 90 or is_question(first) or looks_around(first) or _REPORTS.search(first):
        return 0
    if any(looks_around(text) for text in texts) or first.endswith(":"):
        return 0
    if _IMPERATIVE.match(first) or _PROPOSAL.search(first):
        return ENOUGH
    return 0


# ---- approaches that failed ----

_FAILED = any_of(
    r"\b(?:tried|attempted|trying)\b[^.]{3,140}\b(?:but|failed|didn't|does(?:n't| not)|without success"
    r"|to no avail|broke)\b",
    r"\b(?:does(?:n't| not)|did(?:n't| not)|won't|will not|can(?:'t|not)) work\b[^.]{0,40}\b(?:because|since|as"
    r"|here|when|with|for|due)\b",
    r"\b(?:doesn't help|didn't help|dead end|not viable|led nowhere|was a mistake"
    r"|turned out (?:to be )?(?:wrong|not)|backfired)\b",
    r"\bthat (?:approach|attempt|theory|fix|idea) (?:failed|fails|didn't|doesn't|was wrong|is wrong)\b",
    r"\b(?:fails|failed|broke|breaks) because\b",
)


def failed(text: str) -> bool:
    """Whether a sentence says that something was tried and why it did not work."""
    words = len(text.split())
    if words < 6 or words > 80 or is_question(text) or looks_around(text):
        return False
    return bool(_FAILED.search(text)) and not re.search(r"\b(?:if|would|could|might|may)\b", text, _I)
