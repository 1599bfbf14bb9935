"""The English of decisions: which sentences choose, refuse, rule, recommend or only tell what is going on."""

from __future__ import annotations

import re

ENOUGH = 3
"""The score from which a sentence counts as a decision."""

_I = re.IGNORECASE


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), _I)


# ---- what is no decision ----

_LOOK = (
    r"(?:check|look|see|verify|run|re-?run|test|try|find|trace|read|examine|explore|review|search|start|begin|fetch|get|pull"
    r"|investigate|inspect|confirm|understand|take|continue|proceed|debug|analy[sz]e|show|list|view|dig|map|think|also check)"
)
_LOOKS = _any(
    r"^(?:ok(?:ay)?[,.!]? |now,? |first,? |next,? |then,? |and |so |but |good[,.!]? |great[,.!]? |perfect[,.!]? |also,? )*"
    rf"(?:let me|let's|i(?:'ll| will|'m going to| need to| want to| should| can| have to)) (?:now |first |also |just |quickly )*{_LOOK}\b",
    rf"\b(?:let me|i'll) (?:now |first |also |just |quickly )*{_LOOK}\b",
    r"^(?:now|next)\b[^.]{0,60}:$",
    r"^(?:checking|running|reading|looking|searching|rebasing|testing|verifying)\b",
)
_NARRATES = _any(
    r"^(?:ok(?:ay)?|now|first|next|then|good|great|perfect|excellent|done|fixed|pushed|committed|all|both|hmm|wait|interesting"
    r"|found|looking|here|there it is|still|i see|i found|i've|i have|i can see|tests? pass|test|running|checking|reading"
    r"|summary|everything|looks|finally|ready|sorry|oops|ah|oh|yes|no|and now)\b",
    r"\b(?:let me|i'll now|now i'll|i'm now)\b",
    r"\b(?:pass(?:es|ed|ing)?|green|succeeded|compiles|lint clean)\b[.!]?$",
)
_HYPOTHETICAL = _any(
    r"\b(?:could|might|may|maybe|perhaps|possibly|probably|would|consider|option \d|alternatively|if you|whether|seems?"
    r"|i think|i guess|i suspect|not sure|unclear|likely|appears?|suggests?|suppose|leaning|either)\b"
)
_QUESTION = re.compile(r"\?\W*$")


def looks_around(text: str) -> bool:
    """Whether a sentence only tells what the agent is about to look at or run."""
    return bool(_LOOKS.search(text))


_STATUS = re.compile(
    r"^(?:(?:all )?(?:tests?|checks?|lint)\b.{0,30}\bpass\w*|done|pushed|committed|fixed|clean|all (?:clean|good|green|passing)|good|great)\W*$",
    _I,
)


def is_status(text: str) -> bool:
    """Whether a sentence says no more than that something is done or passes."""
    return bool(_STATUS.match(text))


def is_question(text: str) -> bool:
    """Whether a sentence ends as a question."""
    return bool(_QUESTION.search(text))


# ---- reasons and rejected options ----

_REASON = _any(
    r"\b(?:because|since|so that|as it|as they|in order to|to avoid|to prevent|to keep|to match|due to|otherwise|therefore"
    r"|which means|that way|this way|this (?:ensures?|avoids?|keeps?|makes?|lets?|allows?|means|prevents?|gives?)|the reason"
    r"|redundant|simpler|cleaner|safer|faster|cheaper|easier|overkill|unnecessary|consisten(?:t|cy)|reason(?:s|ing)?:|why:)\b"
)
_LABEL_REASON = _any(
    r"^(?:the |our |my |main )*(?:reasons?|rationale|why|because|motivation|grounds?|reasoning)\b(?: is| was| being)?\s*[:,—-]?"
)
_LABEL_REJECTED = _any(
    r"^(?:we |i )?(?:also )?(?:rejected|ruled out|discarded|dropped|passed on|decided against|turned down|considered|looked at"
    r"|thought about|weighed|explored|evaluated|not chosen|not taken|declined)\b",
    r"^(?:the |an |one |another |other )*(?:rejected |discarded |considered )?(?:alternatives?|other options?|option that lost)\b",
    r"^(?:instead of|rather than|as opposed to|over)\b[^.]{0,3}[:,]",
)
_REJECTED = re.compile(
    r"\b(?:instead of|rather than|as opposed to|in place of|in favou?r over|and not|not)\s+((?:[^\s.,;:!?()]+\s?){1,14})"
    r"|\b(?:over|than)\s+((?:[^\s.,;:!?()]+\s?){1,6})\s+because",
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

_CHOICE = _any(
    r"\b(?:decided|decision|deciding|chose|chosen|choosing|opted?|opting) (?:to|on|for|is|was|that|against|not|by)\b",
    r"\bdecision\s*[:—-]",
    r"\b(?:settled|settling|landed|agreed) (?:on|for|to|that|with)\b|^agreed\b",
    r"\b(?:go|goes|going|went|stick|sticking|stuck|stay|staying) (?:with|for)\b",
    r"\bwe(?:'ll| will| now| shall)? (?:use|keep|adopt|standardi[sz]e|prefer|pick|go|store|rely|require|support|drop|avoid)\b",
    r"\bi(?:'m| am) (?:using|keeping|choosing|picking|dropping|leaving)\b",
    r"\b(?:final|chosen|agreed|resulting) (?:approach|design|choice|decision|solution|plan)\b",
    r"\bit is (?:for|then)\b|\bwins\b|\bthe (?:choice|verdict|conclusion) is\b",
    r"\b(?:by|as a) (?:design|convention|policy|rule)\b",
)
_CONTRAST = _any(
    r"\b(?:instead of|rather than|in favou?r of|as opposed to|no longer|not needed|in place of)\b",
    r"\binstead\b",
    r"\bnot (?:in|on|via|by|through|with|as) ",
)
_CHANGE = _any(
    r"\b(?:switch(?:ed|ing)?|mov(?:e|es|ed|ing)|migrat(?:e|ed|ing)|chang(?:ed|ing)) (?:[^.]{1,60} )?(?:to|over to|back to)\b",
    r"\breplac(?:e|es|ed|ing) [^.]{1,80} (?:with|by)\b",
    r"\b(?:drop|dropped|dropping|revert|reverted|reverting|removed entirely|abandon(?:ed|ing)?)\b",
    r"\bchanged? (?:our|my) minds?\b|\bon (?:reflection|second thoughts?)\b",
)
_DEFER = _any(
    r"\b(?:out of scope|won't fix|deferred|postponed?|put off|skipped|separate (?:pr|issue|branch|change)|follow-up (?:pr|issue))\b",
    r"\bleav(?:e|ing) [^.]{1,60} as (?:is|it is|they are)\b|\bkeep(?:ing)? [^.]{1,60} as(?:-| )is\b",
    r"\b(?:pre-existing|unrelated) (?:issue|failure|problem|bug)\b",
    r"\b(?:interim|stopgap|temporary) (?:fix|solution|measure)\b",
)
_NORM = _any(r"\b(?:should|must|shall|needs? to|has to|have to|will)\b")


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


def is_lead_in(text: str) -> bool:
    """Whether a sentence only announces the decision that follows it."""
    words = len(text.split())
    return words <= 12 and (words <= 2 or bool(_CHOICE.search(text))) and not re.search(r":\s+\S", text)


# ---- messages that state a design as a whole ----

_IMPERATIVE = re.compile(
    r"^(?:to )?(?:add|adopt|allow|alter|apply|avoid|ban|bump|change|check|clarify|codify|combine|convert|create|cut|declare|define"
    r"|delete|deny|demote|deprecate|derive|disable|disallow|discourage|divide|do not|document|don't|drop|eliminate|emit|enable|encode|enforce"
    r"|ensure|establish|exclude|expand|export|expose|extend|fold|forbid|formali[sz]e|generali[sz]e|generate|give|grant|group|have"
    r"|hide|ignore|implement|improve|include|inline|install|integrate|introduce|isolate|keep|let|lift|limit|log|loosen|make|mark"
    r"|merge|migrate|modify|move|name|never|normali[sz]e|only|parse|permit|pin|place|prefer|prevent|prohibit|promote|propose|provide"
    r"|publish|put|raise|record|redefine|redesign|reduce|refactor|refuse|reject|relax|remove|rename|reorgani[sz]e|replace|report"
    r"|require|reserve|restrict|return|reuse|rework|rewrite|run|send|separate|serve|set|ship|simplify|split|stabili[sz]e"
    r"|standardi[sz]e|stop|store|support|swap|switch|tighten|track|treat|turn|unify|update|use|validate|warn|wrap|write)s?\b",
    _I,
)
_PROPOSAL = _any(
    r"\b(?:this|the|our|a) (?:new |proposed )?(?:rfc|proposal|design|change|document|adr|pep|spec(?:ification)?|decision|scheme|convention"
    r"|mechanism|approach|policy)\b[^.]{0,60}\b(?:propos|add|introduc|defin|describ|allow|change|extend|specif|replac|remov|establish"
    r"|permit|provid|make|require|augment|is)",
    r"\b(?:moves?|switch(?:es)?|migrates?|changes?) (?:over )?from\b[^.]{1,80}\bto\b|\bno longer\b|\bwe now\b",
    r"^we (?:introduce|propose|define|add|extend|change|allow|require|use|make|keep|will)\b",
    r"\b(?:should|must|shall) (?:not |only |always |never |now )?(?:be|have|use|capture|return|allow|support|take|go|live|stay|remain)\b",
    r"\b(?:is|are) (?:now |to be |no longer |always |never |only )?(?:added|allowed|introduced|required|deprecated|removed|replaced|stored"
    r"|permitted|forbidden|kept|moved|renamed|made|defined as|treated as|represented|split|exposed)\b",
)
_REPORTS = _any(
    r"\b(?:i|i'm|i'll|i've|i'd|me|my|you|your|you're|let's)\b",
    r"\b(?:tests?|build|lint|ci|checks?) (?:all )?(?:pass|fail|are|is|was|now)\w*",
    r"\b(?:passed|failed|failing|the issue|the problem|the bug|root cause|stack ?trace|the output|the error|the diff|the logs?)\b",
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

_FAILED = _any(
    r"\b(?:tried|attempted|trying)\b[^.]{3,140}\b(?:but|failed|didn't|does(?:n't| not)|without success|to no avail|broke)\b",
    r"\b(?:does(?:n't| not)|did(?:n't| not)|won't|will not|can(?:'t|not)) work\b[^.]{0,40}\b(?:because|since|as|here|when|with|for|due)\b",
    r"\b(?:doesn't help|didn't help|dead end|not viable|led nowhere|was a mistake|turned out (?:to be )?(?:wrong|not)|backfired)\b",
    r"\bthat (?:approach|attempt|theory|fix|idea) (?:failed|fails|didn't|doesn't|was wrong|is wrong)\b",
    r"\b(?:fails|failed|broke|breaks) because\b",
)


def failed(text: str) -> bool:
    """Whether a sentence says that something was tried and why it did not work."""
    words = len(text.split())
    if words < 6 or words > 80 or is_question(text) or looks_around(text):
        return False
    return bool(_FAILED.search(text)) and not re.search(r"\b(?:if|would|could|might|may)\b", text, _I)


# ---- what people say ----

_STANDING = _any(
    r"\b(?:always|never)\b(?! mind)",
    r"\b(?:from now on|going forward|from here on|in (?:the )?future|every time|whenever|as a rule|in general|at all times|without exception)\b",
    r"\b(?:overriding|standing|general|hard) (?:directive|rule|principle|requirement|constraint)\b",
    r"\b(?:under no circumstances|no matter what|remember (?:to|that)|keep in mind)\b",
)
_FORBIDS = _any(
    r"^(?:please |and |but |also |so |ok,? |no,? |just )*(?:don't|do not|dont) (?!think|know|see|want|worry|understand|get|have|believe"
    r"|you|we|mind|need|like|agree|care|remember|really)\w+",
    r"\b(?:must|should) (?:never|always|not ever)\b|\b(?:you|we|it) must(?: not|n't)?\b",
)
_HERE = re.compile(r"\b(?:it|this|that|now|yet|here|these|those|there)\b", _I)
_DIRECTS = _any(
    r"\b(?:let's|lets|let us) (?!see\b|look\b|check\b|start\b|discuss\b|talk\b|review\b|continue\b|move on|try\b|test\b|commit\b|push\b|run\b|say\b)\w+",
    r"\b(?:i'd|i would|i) (?:also |really |much )?(?:would )?(?:rather|prefer|want|like to explore|like us|like to (?:keep|use|have|avoid))\b",
    r"\b(?:we|you|it|they|that|this) (?:also |really |still |just |do |then |now |probably |at least )?(?:should|need to|needs to|must|have to|ought to|shouldn't|can just|don't need)\b",
    r"\bi (?:think|figure|guess|feel like|reckon) (?:we|you|it|that|the|this)\b",
    r"\bi(?:'ll| will) (?:do|handle|take|fix|merge|make)\b",
)
_IMPERATIVE_USER = re.compile(
    r"^(?:ok(?:ay)?|yes|yeah|yep|no|nope|and|then|so|but|also|please|just|actually|hmm|first|well|sure|right)?[,.!:… ]*"
    r"(?:just |please |first |then )*"
    r"(?:use|keep|drop|skip|ignore|make|move|put|rename|remove|revert|rebase|fix|leave|stop|avoid|go|stick|merge|split|replace"
    r"|switch|set|store|add|define|wire|treat|return|write|call|give|swap|document|include|exclude|limit|only|pick|choose|do)\b",
    _I,
)
_STRENGTH = _any(
    r"\b(?:just|instead|first|before|only|rather|because|since|so (?:that|we)|for now|separate|manually|as well|not|no longer|simply"
    r"|anyway|until|don't|too|same|without|later|already|more like|over there|as long as|but|also|make sure|then|manual|simpl(?:e|er))\b"
)
_CORRECTS = _any(
    r"^(?:no|nope|nah|actually|wait|hold on|not quite|wrong|hmm,? (?:no|but|actually))\b",
    r"\bi mean(?:t)?\b|\bnot [\w` -]{1,40} but\b|\bthat's (?:not|wrong)\b|\binstead\b|\bon second thoughts?\b|\bwhat are you doing\b",
)
_SUGGESTS = _any(
    r"\b(?:is there (?:a|any) (?:good )?reason (?:not to|why)|why (?:not|don't we|aren't we)|shouldn't|can't we|couldn't we|can we|could we"
    r"|do we (?:really|even|still)? ?need|don't we|we don't(?: really)? need|what if we|how about|that could|we can|we could|but we)\b"
)
_ROUTINE = re.compile(
    r"^(?:ok(?:ay)?|yes|and|now|please|then|so|can you|could you|pls)?[,. ]*(?:commit|push|merge|run|test|check|look|review|show"
    r"|continue|go on|go ahead|proceed|explain|tell|respond|reply|pull|open|read|list|help)\b(?:\W+\w+){0,8}\W*$",
    _I,
)


def is_rule(text: str) -> bool:
    """Whether a sentence of a person orders or forbids in general."""
    words = len(text.split())
    if words < 3 or words > 80 or is_question(text):
        return False
    return (
        bool(
            _STANDING.search(text)
            and (
                _NORM.search(text)
                or _DIRECTS.search(text)
                or _IMPERATIVE_USER.match(text)
                or re.search(r"\b(?:directive|rule|principle|constraint|don't|do not|please|always|never)\b", text, _I)
            )
        )
        and not re.search(
            r"\b(?:happens?|happened|was|were|i've|it's|is always|seems?|why|has never|have never)\b", text, _I
        )
        or bool(_FORBIDS.search(text))
    )


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
    if _STRENGTH.search(text) or gives_reason(text) or _CONTRAST.search(text):
        score += 1
    if words < 4:
        score -= 1
    if is_question(text):
        score -= 2
    return max(score, 0)


def suggests(text: str) -> bool:
    """Whether a question or remark of a person puts a change forward."""
    return bool(_SUGGESTS.search(text)) or user_score(text) > 0


_AGREES = _any(
    r"^(?:you're (?:absolutely )?right|good (?:point|call|catch|idea|thinking|insight|choice)|got it|makes? sense|that makes sense|agreed"
    r"|right|yes|exactly|understood|fair|sure|will do|true|that works|noted|great (?:point|idea|question)|ok(?:ay)?|absolutely|of course"
    r"|that's a (?:good|great|better|fair))\b"
)


def agrees(text: str) -> bool:
    """Whether the agent's answer begins by agreeing."""
    return bool(_AGREES.match(text))


_ACCEPTS = re.compile(
    r"^(?:y|yes|yep|yeah|yup|ok(?:ay)?|sure|please do|please|lgtm|do it|do that|go ahead|go for it|sounds good|agreed|perfect|great"
    r"|exactly|correct|right|fine|makes sense|that works|let's do (?:it|that)|works for me|approved?|ship it|👍)\b",
    _I,
)
_PICKED = re.compile(
    r"^(?:(?:yes|yeah|ok(?:ay)?|let's (?:go with|do)|go with|i'd go with|i prefer|prefer)[,. ]*)?(?:option|approach|number|#|choice)?\s*"
    r"\(?(\d|[a-e])\)?(?:\s*(?:,|and|&|\+)\s*\(?(\d|[a-e])\)?)?(?:[.):,]|\s*$|\s+(?:please|is|sounds|looks|but|and|-))",
    _I,
)
_RECOMMENDS = _any(
    r"\b(?:i(?:'d| would)? (?:suggest|recommend|propose|go with|lean)|recommend(?:ation|ed)?|suggestion|my (?:take|preference|vote)"
    r"|(?:seems?|is|looks) (?:the )?(?:cleanest|simplest|best|safest)|makes? sense|the (?:fix|plan|approach|proposal) (?:is|would be|should)"
    r"|best (?:option|approach)|better (?:option|approach|to)|simpler and)\b"
)
_OFFER = re.compile(
    r"(?:want me to|would you like me to|do you want me to|should (?:i|we)|shall (?:i|we)|i can|okay if i|ok to)\s+(?:go ahead and |also |now )?"
    r"([^?]{12,})\??",
    _I,
)
_ROUTINE_OFFER = re.compile(
    r"^(?:commit|push|merge|approve|run|continue|move on|proceed|start|check|look|show|go|do (?:it|that|this)|help|explain|dig)\b",
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
