"""The English around decisions: narration, questions, reasons, an agent's choices, a person's answers and orders."""

from __future__ import annotations

import re

from ralf.text.matcher import AnyOf, content_words, takes_back
from ralf.text.patterns import regex

ENOUGH = 3
"""The score from which a sentence counts as a decision."""

# ---- what is no decision ----

_LOOK = (
    r"(?:check|look|see|verify|run|re-?run|test|try|find|trace|read|examine|explore|review|search|start|begin"
    r"|fetch|get|pull|build|compile|re-?build"
    r"|investigate|inspect|confirm|understand|take (?:a|another|stock)|have (?:a|another)(?: \w+)? look"
    r"|continue|proceed|debug|analy[sz]e|show|list"
    r"|view|dig|map"
    r"|think|also check)"
)

looks_around = AnyOf(
    r"^(?:ok(?:ay)?[,.!]? |now,? |first,? |next,? |then,? |and |so |but |good[,.!]? |great[,.!]? "
    r"|perfect[,.!]? |also,? )*"
    rf"(?:let me|let's|i(?:'ll| will|'m going to| need to| want to| should| can| have to)) (?:now |first |also "
    rf"|just |quickly )*{_LOOK}\b",
    rf"\b(?:let me|i'll) (?:now |first |also |just |quickly )*{_LOOK}\b",
    rf"\b(?:let me|let's|i(?:'ll| will)) (?:now |first )?use\b[^.]{{1,80}} to (?:locate|{_LOOK})\b",
    r"^(?:now|next)\b[^.]{0,60}:$",
    r"^(?:now,? |first,? |next,? |then,? |but |and )*(?:a|an|one|another)(?: \w+)? look (?:at|into|through)\b"
    r"[^,;:]{1,80}$",
    r"^(?:checking|running|reading|looking|searching|rebasing|testing|verifying)\b",
    remembers=8192,
)
"""Whether a sentence only tells what the agent is about to look at or run."""

narrates = AnyOf(
    r"^(?:ok(?:ay)?|now|first|next|then|good|great|perfect|excellent|done|fixed|pushed|committed|all|both|hmm"
    r"|wait|interesting"
    r"|found|looking|here|there it is|still|i see|i found|i've|i have|i can see|tests? pass|test|running"
    r"|checking|reading"
    r"|summary|everything|looks|finally|ready|sorry|oops|ah|oh|yes|no|and now)\b",
    r"\b(?:let me|i'll now|now i'll|i'm now)\b",
    r"\b(?:pass(?:es|ed|ing)?|green|succeeded|compiles|lint clean)\b[.!]?$",
)
"""Whether a sentence tells what happens or is done at the moment."""

_HYPOTHETICAL = AnyOf(
    r"\b(?:could|might|may|maybe|perhaps|possibly|probably|would|consider|option (?:\d|[a-e])|alternatively|if you"
    r"|whether|seems?"
    r"|i think|i guess|i suspect|not sure|unclear|likely|appears?|suggests?|suppose|leaning|either"
    r"|suspicion|hypothes[ie]s|theory)\b",
    r", or (?:just|simply|even|else)\b",
)

is_question = AnyOf(
    r"\?[^\w?]*$",
    remembers=8192,
)
"""Whether a sentence ends as a question."""

is_status = AnyOf(
    r"^(?:(?:all )?(?:tests?|checks?|lint)\b.{0,30}\bpass\w*|done|pushed|committed|fixed|clean|all (?:clean"
    r"|good|green|passing)|good|great)\W*$",
    remembers=8192,
)
"""Whether a sentence says no more than that something is done or passes."""


def guesses(text: str, end: int) -> bool:
    """Whether what a sentence says before `end` is only possible, supposed or one of several ways."""
    return _HYPOTHETICAL(text[:end])


# ---- reasons and rejected options ----

gives_reason = AnyOf(
    r"\b(?:because|since|so that|as it|as they|in order to|to avoid|to prevent|to keep|to match|due to"
    r"|otherwise|therefore"
    r"|which means|that way|this way|this (?:ensures?|avoids?|keeps?|makes?|lets?|allows?|means|prevents?"
    r"|gives?)|the reason"
    r"|redundant|simpler|cleaner|safer|faster|cheaper|easier|overkill|unnecessary|consisten(?:t|cy)|reason(?:s"
    r"|ing)?:|why:)\b",
    remembers=8192,
)
"""Whether a sentence says why."""

_PHRASE = r"[^\s.,;:!?()]+(?:\s[^\s.,;:!?()]+)"

_REJECTED = regex(
    rf"\b(?:instead of|rather than|as opposed to|in place of|in favou?r over|and not|not)\s+({_PHRASE}{{0,13}})"
    rf"|\b(?:over|than)\s+({_PHRASE}{{0,5}})\s+because",
    re.I,
)


_NAMES_ONE = regex(r"(?:a|an|the|in|on|via|by|with|using|from)\b|`", re.I)


def rejected(text: str) -> list[str]:
    """The options that a sentence turns down, in its own words."""
    found = (((match[1] or match[2]).strip(), match.group().lower()) for match in _REJECTED.finditer(text))
    named = [one for one, said in found if not said.startswith(("not", "and not")) or _NAMES_ONE.match(one)]
    return [option for option in named if option.count("`") % 2 == 0][:3]


# ---- choices of an agent ----

chooses = AnyOf(
    r"\b(?:decided|decision|deciding|chose|chosen|choosing|opted?|opting) (?:to|on|for|is|was|that|against|not|by)\b",
    r"\bdecision\s*[:—-]",
    r"\b(?:settled|settling|landed|agreed) (?:on|for|to|that|with)\b|^agreed\b",
    r"\b(?:go|goes|going|went|stick|sticking|stuck|stay|staying) (?:with|for)\b",
    r"\bwe(?:'ll| will| now| shall)? (?:use|keep|adopt|standardi[sz]e|prefer|pick|go|store|rely|require|support"
    r"|drop|avoid|replace|switch|move)\b",
    r"\bwe(?:'re| are) (?:now )?(?:switching|moving|dropping|replacing|keeping|using)\b",
    r"\blet's (?:just |instead )?(?:use|keep|adopt|drop|stick|store)\b|\bchange of plan\b",
    r"\bi(?:'m| am) (?:keeping|choosing|picking|dropping|leaving)\b",
    r"\b(?:final|chosen|agreed|resulting) (?:approach|design|choice|decision|solution|plan)\b",
    r"\bit is (?:for|then)\b|\bwins\b|\bthe (?:choice|verdict|conclusion) is\b(?! between\b)",
    r"\b(?:by|as a) (?:design|convention|policy|rule)\b",
    r"\b(?:take|took|taking|keep|kept|keeping|adopt\w*|accept\w*) (?:theirs|ours|both sides|(?:the |all )?(?:\w+'s"
    r"|main|"
    r"upstream|parent|incoming|their|our) (?:version|side|approach|changes?|copy|implementation)\b)",
    r"\bi take (?:that |it )?back\b|\bi was wrong (?:about|that)\b|\bscratch that\b",
    r"\b(?:leaving|keeping) [^.]{1,60} (?:as (?:is|it is|they are)|in place|alone|untouched)\b",
    r"\b[Tt]he [^.]{3,60}(?-i: DID | DOES )",
    r"\bi (?:put|placed|kept|left|named|chose|took|made|moved|skipped) [^.]{4,160}"
    r"\b(?:because|rather than|instead of|since|so that)\b",
)
"""Whether a sentence holds an outright word of choice."""

contrasts = AnyOf(
    r"\b(?:instead of|rather than|in favou?r of|as opposed to|no longer|not needed|in place of)\b",
    r"\binstead\b",
    r"\bnot (?:in|on|via|by|through|with|as) ",
    r",? (?:but|and) (?:keep|leave|do not|don't|not|without) \w",
    r", not (?:`|the|a|an)\b",
)
"""Whether a sentence sets what is chosen against what is not."""

_CHANGE = AnyOf(
    r"\b(?:switch(?:ed|ing)?|mov(?:e|es|ed|ing)|migrat(?:e|ed|ing)|chang(?:ed|ing)|renamed?) (?:[^.]{1,60} )?(?:to"
    r"|over to|back to)\b",
    r"\breplac(?:e|es|ed|ing) [^.]{1,80} (?:with|by)\b",
    r"\b(?:drop|dropped|dropping|revert|reverted|reverting|removed entirely|abandon(?:ed|ing)?)\b",
    r"\bchanged? (?:our|my) minds?\b|\bon (?:reflection|second thoughts?)\b",
)

_SETTLES = AnyOf(
    r"\b(?:out of scope|won't fix|separate (?:pr|pull request|issue|branch|change)|follow-up (?:pr|issue))\b",
    r"\b(?:(?:is|are|be|gets?) (?:deferred|postponed|put off)|(?:defer|postpone|put off) (?:it|this|that|them|until"
    r"|to))\b",
    r"\bleav(?:e|ing) [^.]{1,60} (?:as (?:is|it is|they are)|in place|alone|untouched)\b"
    r"|\bkeep(?:ing)? [^.]{1,60} as(?:-| )is\b",
    r"\bstays? (?:as (?:is|it is|they are)|in place|untouched|unchanged|where)\b",
    r"\b(?:interim|stopgap|temporary) (?:fix|solution|measure)\b",
    r"\bthe (?:\w+ )?(?:fix|solution|approach|way forward)(?: here)?(?: is|:) (?:just |simply |to |after |for )+\w",
)

_JUDGES = AnyOf(
    r"\bit'?s overkill\b|\bis (?:overkill|unnecessary|redundant)\b|\b(?:is|are) (?:simpler and|sufficient"
    r"|reasonable)\b",
)

# ---- commitments and prescriptions ----

_MADE = (
    r"add|adopt|allow|avoid|base|bump|call|change|combine|convert|create|cut|declare|define|delete|disable|drop|enable"
    r"|emit|ensure|exclude|export|expose|extend|extract|fall back|fold|forbid|give|group|handle|have|hide|ignore"
    r"|include|inline|introduce|isolate|keep|leave|let|limit|log|make|mark|merge|migrate|move|name|normali[sz]e|only"
    r"|parse|pass|pin|point|put|raise|re-add|record|redo|refactor|reject|remove|rename|reorgani[sz]e|replace|require"
    r"|reset|restrict|restructure|return|reuse|rework|rewrite|route|scope|send|separate|serve|set|simplify|skip|split"
    r"|stick|stop|store|swap|switch|take|target|tighten|treat|turn|unify|use|wait|warn|wire|wrap"
)

_VAGUE = r"fix|update|write|implement|adjust|address|do|clean"  # say how only with what follows them

_WILL = (
    r"(?:let me|let's|i(?:'ll| will|'m going to| need to| should| have to)"
    r"|we(?:'ll| will| should| need to| have to)|need to)"
)

_COMMITS = regex(
    r"^(?:(?:so|then|therefore|instead|actually|ok(?:ay)?|right|good|got it|understood|yes|yeah|yep|exactly|agreed"
    r"|makes sense"
    r"|fair enough|for \w+)\b[ ,.!:—-]*|since [^,]{8,160}, )*"
    rf"{_WILL} (?:instead |just |simply |therefore |rather |only )*(?:(?:{_MADE})\b(?P<what>.*)"
    rf"|(?:{_VAGUE})\b.{{3,80}}? (?:to \w+|by \w+ing|so that|instead)\b(?P<how>.*))",
    re.I,
)

_NAMED_FIX = AnyOf(rf"^[^—:.;]{{3,40}} (?:—|-|:) (?!let )(?:{_MADE}|broaden|narrow|{_VAGUE})\b.*(?:`|\w+ \w+ \w+)")

_PRONOUN = AnyOf(r"\W*(?:it|this|that|them|these|those|both|both of them|the changes?|the edits?|sure)\b\W*$")

_PRESCRIBES = AnyOf(
    r"^(?!that\b|this\b|the (?:key )?(?:insight|point|idea)\b|[^.;:?]{0,90}\b(?:i|you|we|n't need"
    r"|not need)\b)[^.;:?]{0,90}\b(?:should|must|needs? to|has to|have to) (?:not |never |always |just |only "
    r"|still |simply )*(?!have\b|see\b|fail|work\b|pass\b|find\b|already\b)\w+",
)

_CONCRETE = regex(r"`[^`]+`|\b\w+[._/]\w+|\b[a-z]+[A-Z]\w+")

_BOOKKEEPS = AnyOf(
    r"^(?:updated?|added|fixed|wrote|created|extended|verified|bumped|ran|refreshed|adjusted) (?:the |all |two "
    r"|both |\d+ )*"
    r"(?:\w+ ){0,3}(?:tests?|docs?|comments?|documentation|expectations?|call sites?|references?|imports?|examples?"
    r"|places)\b",
)

_BEHAVES = AnyOf(
    r"\bnow (?:only|always|never|just)\b|\b(?:always|never|only (?:when|if|for|runs?|in)|even (?:if|when|without)"
    r"|falls? back)\b"
)

_NO_LONGER = AnyOf(r"(?<!which )(?<!that )\bno longer\b")

_BECAUSE = AnyOf(r"\b(?:because|since|so that|to (?:avoid|prevent|keep))\b")

_ACCLAIMS = AnyOf(r"(?:agreed|good|great|ok(?:ay)?|perfect|fine)\b")

_EXPLAINS = AnyOf(r"\b(?:is|was|are|were|it's|that's|happens?) (?:from|because|due to|caused by|why)\b|\bdepends on\b")

_RESULTS = AnyOf(
    r"(?:this|that|it|which)(?: also| now)? (?:ensures?|means|makes?|keeps?|avoids?|prevents?|allows?|gives?|lets?)\b",
)


def agent_score(text: str, *, item: bool = False, edits: bool = False, grounded: bool = False) -> int:
    """How much a sentence of the agent is a choice; 0 for narration, questions and what might be.

    edits     the agent changed files right after the message
    grounded  a statement before it in the message tells the state of things, so it can be its consequence
    """
    words = len(text.split())
    if _RESULTS.match(text):
        return 0
    choice = chooses.search(text)
    if (words < 5 and not choice and not edits) or words > 120 or is_question(text):
        return 0
    commits = _commits(text) or (edits and bool(_NAMED_FIX.match(text)))
    if looks_around(text) and (choice or not commits):
        return 0
    score = 3 * bool(choice) + 2 * contrasts(text) + _CHANGE(text) + 3 * _SETTLES(text) + 2 * _JUDGES(text)
    if commits or _PRESCRIBES.match(text):
        score += 1 + edits + (grounded and edits)
    score += 2 * (item and _NO_LONGER(text))
    if not score or (_BOOKKEEPS.match(text) and not choice):
        return 0
    if gives_reason(text):
        score += 1 + (commits and not edits and _BECAUSE(text))
    score += item and _BEHAVES(text)
    # What is chosen may itself speak of what could be; what leads up to an outright choice may not.
    score -= 2 * _EXPLAINS(text) + 3 * guesses(text, choice.end() if choice else len(text)) + item
    score -= narrates(text) and not commits and not (choice and _ACCLAIMS.match(text))
    score -= text.endswith(":") and words < 9 and not edits
    return max(score, 0)


def _commits(text: str) -> bool:
    """Whether a sentence says what the agent is going to make, and of what: "so I'll define them in the core"."""
    match = _COMMITS.match(text)
    if match is None:
        return False
    what = match["what"] if match["what"] is not None else match["how"]
    return not _PRONOUN.match(what) and (
        bool(_CONCRETE.search(what)) or len(what.split()) >= 4 or match["how"] is not None
    )


def prescribes(text: str) -> bool:
    """Whether a sentence says how something is to be, or what the agent is going to make of it."""
    return bool(_PRESCRIBES.match(text) or _SETTLES(text) or _JUDGES(text)) or _commits(text)


def is_lead_in(text: str) -> bool:
    """Whether a sentence only announces the decision that follows it."""
    if len(text.split()) > 12 or re.search(r":\s+\S", text):
        return False
    return len(text.split()) <= 2 or (chooses(text) and (text.endswith(":") or len(content_words(text)) <= 2))


# ---- answers ----

_ACCEPTS = AnyOf(
    r"^(?:y|yes|yep|yeah|yup|ya|ok(?:ay)?|sure|please do|please|lgtm|do it|do that|go ahead|go for it|sounds good"
    r"|agreed|perfect|great"
    r"|exactly|correct|right|fine|makes sense|that works|let's do (?:it|that)|works for me|approved?|ship it|👍)\b",
)

_PICKED = regex(
    r"^(?:(?:yes|yeah|ok(?:ay)?|let's (?:go with|do)|go with|i'd go with|i prefer|prefer)[,. ]*+)?(?:option"
    r"|approach|number|#|choice)?\s*+"
    r"\(?(\d|[a-e])\)?(?:\s*(?:,|and|&|\+)\s*\(?(\d|[a-e])\)?(?!\w))?(?:[.):,]|\s*$|\s+(?:please|is|sounds|looks|but"
    r"|and|-))",
    re.I,
)

_LETTER = regex(
    r"^\W*(?:(?:yes|ok(?:ay)?|go with)[, ]+)?(?:(?:option|approach|choice)\s*)?\(?(?:[a-e]\W*$|[A-E][,.):;]"
    r"|(?<=n )[a-e]\b)"
)

_NTH = regex(
    r"^(?:(?:yes|yeah|ok(?:ay)?|let's (?:go with|do)|go with|i'd go with|i prefer|prefer)[,. ]*)?the (first|second"
    r"|third|last|former|latter)"
    r"(?: one| option| approach| way)?\b(?! \w+ \w+ \w+ \w+ \w+ \w+)",
    re.I,
)

_PLACES = {"first": "1", "former": "1", "second": "2", "latter": "2", "third": "3", "last": "last"}


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
    # A letter may be an article ("a test …"): it counts by itself, or as a capital with a comma or a stop.
    if match is None or (match[1].isalpha() and not _LETTER.match(text.strip())):
        return ()
    return tuple(mark.lower() for mark in match.groups() if mark)


# ---- directives, corrections, suggestions and standing rules of people ----
_ERRAND = (
    r"(?:see|look|check|discuss|talk|review|continue|try|test|commit|push|pull|fetch|sync|run|debug|investigate"
    r"|update from"
    r"|go (?:over|through)|have a look|respond|reply|explain|tell|show|open|read|list|help|clean up|proceed"
    r"|go (?:on|ahead))"
)

_STANDING = AnyOf(
    # "never finishes", "which always fails" tell how things are; they ask for nothing.
    r"(?<!which )(?<!that )\b(?:always|never)\b(?! mind)(?!\s+\w*[^\Ws](?:s|ed)\b)",
    r"\b(?:from now on|going forward|from here on|in (?:the )?future(?! \w)|every time|whenever|as a rule|in general"
    r"|at all times|without exception)\b",
    r"\b(?:under no circumstances|no matter what|remember (?:to|that)|keep in mind)\b",
)

_DECLARES = AnyOf(r"\b(?:overriding|standing|general|hard) (?:directive|rule|principle|requirement|constraint)\b")

_FORBIDS = AnyOf(
    r"^(?:please |and |but |also |so |ok,? |no,? |just )*(?:don't|do not|dont) (?!think|know|see|want|worry"
    r"|understand|get|have|believe"
    r"|you|we|mind|need|like|agree|care|remember|really)\w+",
    r"\b(?:must|should) (?:never|always|not ever)\b|\b(?:you|we|it) must(?: not|n't)?\b",
)

_ANNOUNCES = AnyOf(
    r"^(?:please |so |and |ok(?:ay)?,? )*(?:from (?:now|here) on\b|going forward\b|(?:everything|anything|whatever"
    r"|nothing)\b"
    r"[^.?]{0,80}\b(?:has to|must|should|needs to)\b)",
)

_ORDERS = AnyOf(
    r"\b(?:should|must|shall|needs? to|has to|have to|will|directive|rule|principle|constraint|don't|do not"
    r"|please|always|never)\b"
)

_TELLS = AnyOf(r"\b(?:happens?|happened|was|were|i've|it's|is always|seems?|why|has never|have never)\b")

is_for_now = AnyOf(
    r"\b(?:it|this|that|now|yet|here|these|those|there)\b",
)
"""Whether an order speaks of what is being done at the moment."""

_DIRECTS = AnyOf(
    rf"\b(?:let's|lets|let us) (?:just |also |first |then )*(?!{_ERRAND}\b|start\b(?! with)|move on|say\b|do (?:it"
    rf"|that"
    rf"|this)\W*$)\w+",
    r"\b(?:i'd|i would|i) (?:also |really |much )?(?:would )?(?:rather|prefer|want|(?:dearly )?love to"
    r"|like to explore|like us"
    r"|like to (?:keep|use|have|avoid))\b",
    r"\b(?:we|you|it|they|that|this) (?:also |really |still |just |do |then |now |probably "
    r"|at least )?(?:(?:should|must)(?!'ve| have\b)|need to|needs to|have to|ought to|shouldn't|can just"
    r"|don't need)\b",
    r"\bi (?:think|figure|reckon) (?:we|you|it|that|the|this)\b",
    r"\bi(?:'ll| will) (?:do|handle|take|fix|merge|make)\b",
)

_OPENS = (
    r"(?:^|[,;] |\.{3}\s?|: |(?<= )[-\u2013—] )(?:ok(?:ay)?|yes|yeah|yep|no|nope|and|then|so|but|also|please|just"
    r"|actually"
    r"|hmm|first|well|sure|right)?[,.!:… ]{0,12}+(?:just |please |first |then ){0,4}"
)

_NOT_A_NOUN = r"\b(?! (?:is|are|was|were|has|looks)\b)"

_SHAPES = AnyOf(
    rf"{_OPENS}(?:use|keep|drop|skip|ignore|move|put|rename|remove|revert|rebase|leave|stop|avoid|go|stick|merge|split"
    r"|replace|switch|store|treat|swap|include|exclude|limit|only|pick|choose)" + _NOT_A_NOUN,
)
"""Orders that say how: they shape the work, and do not only start it."""

_STARTS = AnyOf(
    rf"{_OPENS}(?:make|fix|set|add|define|wire|return|write|call|give|document|create|log|file|handle|do)"
    + _NOT_A_NOUN,
)

_HOW = r"\b(?:in|with|via|by|using|as|at|on|to|from|through|under|behind|without)\b \S"

says_how = AnyOf(
    # "Cache the results in memcached.", "We deploy with Compose.", "Passwords go through argon2"
    rf"{_OPENS}(?:authenticate|back|batch|bind|build|bundle|cache|compile|compress|connect|count|deploy|draw|encode"
    rf"|encrypt"
    r"|expose|export|format|generate|hash|host|import|index|lint|load|log|map|mirror|model|mount|name|order|pack"
    r"|package"
    r"|paginate|parse|poll|publish|queue|rate-limit|read|render|represent|retry|round|run|save|schedule|seed|send"
    r"|serve|ship"
    rf"|sign|sort|start|stream|style|sync|tag|test|throttle|validate|vendor|version|wrap)\b [^.?!]{{0,60}}{_HOW}",
    rf"^we (?!have\b|had\b|were\b|are\b|got\b|can\b|could\b|did\b|just\b|see\b|saw\b|\w+ed\b)\w+ [^.?!]{{0,60}}{_HOW}",
    rf"{_OPENS}(?:call|name) (?:the |our )?\w+ \S",
)
"""Whether a person's order, or plain statement of what is done, says by what, where or how it is to be."""

_CHANGES_COURSE = AnyOf(
    r"\b(?:no longer|replac(?:e|es|ed|ing)|switch(?:es|ed|ing)?|moves? from|after all)\b",
)

_CHANGES_MIND = AnyOf(
    r"\bchanged? (?:our|my) minds?\b|\bon (?:reflection|second thoughts?)\b|\bchange of plan\b",
)

_PUTS_OFF = AnyOf(r"\b(?:not (?:now|yet|here)|(?:in|into|as) (?:its|their|a) (?:own|separate|different)|later on)\b")

_STRENGTH = AnyOf(
    r"\b(?:just|instead|first|before|only|rather|because|since|so (?:that|we)|for now|separate|manually|as well"
    r"|not|no longer|simply"
    r"|own|anyway|until|don't|too|same|without|later|already|more like|over there|as long as|but|also|make sure"
    r"|then|manual|simpl(?:e|er))\b"
)

_CORRECTS = AnyOf(
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

_SUGGESTS = AnyOf(
    r"\bis there (?:a|any) (?:good )?reason (?:not to|why we (?:don't|can't))|\bwhy (?:not|don't we|aren't we)\b",
    r"\b(?:shouldn't|couldn't|can't|can|could|should) we (?:just |also |please |maybe |then |at least )*"
    rf"(?:get|{_VERBS})\b",
    r"\bdo we (?:really|even|still) need\b|\bwe (?:really )?don't(?: really)? need\b|\bdon't we need\b",
    r"\b(?:what if we|how about|maybe (?:we|you|as|in|with|just|it)|(?:that|this|it) (?:could|should) (?:go|be|stay"
    r"|live)|we can)\b",
    r"^consider \w+ing\b|\bwould (?:make|be (?:better|cleaner|nicer|simpler|safer))\b",
)

_ASKS_FIRST = AnyOf(r"\W*(?:\w+,? )?(?:do|did|does|have|has|is|are|so|what|why|how|which)\b")

_EITHER = AnyOf(r"\bor (?:should|shall|do|can|could|would|is)\b|^(?:genuine )?question\b")

_TAG = AnyOf(r"(?:[, ](?:yeah|yes|right|no|ok(?:ay)?|correct|isn't it|don't we|aren't we))\?+(?!\w)[^\w?]*$")

withdraws = AnyOf(
    r"\b(?:forget|scratch|ignore|never ?mind) (?:that|it|this)\b|\bnever ?mind\W*$",
)
"""Whether a sentence takes back what the same message says before it: "no, wait, forget that"."""

doubts = AnyOf(
    r"\b(?:looks like|seems?|i guess|i wonder|not sure|maybe|no idea|i suppose)\b",
)
"""Whether a sentence only supposes."""

_PAST = AnyOf(r"\b(?:did|was|were|had|been|already|should have|would have|thought|\w{3,}ed)\b")

_POINTS = AnyOf(r"\b(?:it|this|that|these|those|them|they|both|all)\b")

_DEEDS = regex(
    r"fix|do|address|tackle|handle|manual(?:ly)?|start|chang|change|update|thing|want|just|try|make|that|this"
)

_TICKETS = AnyOf(
    r"^(?:(?:ok(?:ay)?|yes|yeah|and|also|then|so|now|please|for now|first|let's|lets|just"
    r"|can (?:we|you)|could (?:we|you))\b[ ,]*)*"
    r"(?:add|write|leave|put|pop|post|create|log|open|file|raise|make)\b[^,.;]{0,30}"
    r"\b(?:comments?|issues?|tickets?|sub-issues?|linear|test coverage|tests?|todo)\b",
)

_ROUTINE = AnyOf(
    r"^(?:ok(?:ay)?|yes|and|now|please|then|so|can you|could you|pls)?[,. ]*(?:commit|push|merge|run|test|check"
    r"|look|review|show"
    r"|continue|go on|go ahead|proceed|explain|tell|respond|reply|pull|open|read|list|help)\b(?:\W+\w+){0,8}\W*$",
)

_ERRAND_REQUEST = AnyOf(
    rf"^(?:ok(?:ay)?|yes|and|now|please|then|so|also|first|can you|could you|pls|let's|lets|have|hmm"
    rf"|just|\W)*\b{_ERRAND}\b",
)


def is_rule(text: str) -> bool:
    """Whether a sentence of a person orders or forbids in general."""
    if not 3 <= len(text.split()) <= 80:
        return False
    if _DECLARES(text) or is_question(text) or doubts(text):
        return _DECLARES(text)
    orders = _STANDING(text) and (_ORDERS(text) or _DIRECTS(text) or _SHAPES(text) or _STARTS(text))
    return bool(_FORBIDS(text) or _ANNOUNCES.match(text) or (orders and not _TELLS(text)))


def is_order(text: str) -> bool:
    """Whether a sentence begins as an order that shapes the work, and gives no reason: "Use port 8081."."""
    return bool(_SHAPES.match(text)) and not (is_question(text) or gives_reason(text) or is_errand(text))


def is_standing(text: str) -> bool:
    """Whether a rule holds for good, and not only for what is being done at the moment."""
    forbids = _FORBIDS(text) and not is_for_now(text) and len(text.split()) >= 4
    return forbids or bool(_ANNOUNCES.match(text)) or _DECLARES(text) or _STANDING(text)


def user_score(text: str) -> int:
    """How much a sentence of a person decides something."""
    words = len(text.split())
    if words < 2 or words > 90 or _ROUTINE.match(text):
        return 0
    score = 2 * _CORRECTS(text) + 2 * _DIRECTS(text) + 2 * _CHANGES_COURSE(text)
    score += 2 if _SHAPES(text) or says_how(text) else _STARTS(text)
    score += 3 if chooses(text) else 2 * prescribes(text)
    if _CHANGES_MIND(text) or (takes_back(text) and not is_question(text)):
        score += 4 - (words > 12)
    if not score or (doubts(text) and not (_DIRECTS(text) or _SHAPES(text))):
        return 0
    if _STRENGTH(text) or gives_reason(text) or contrasts(text):
        score += 1 + _PUTS_OFF(text)
    return max(score - (words < 4 and not says_how(text)) - 2 * (is_question(text) and not _orders(text)), 0)


def suggests(text: str) -> bool:
    """Whether a question or remark of a person puts a change forward: "can we not take it from …?"."""
    return _SUGGESTS(text) and not _EITHER(text)


def asks(text: str) -> bool:
    """Whether a sentence only asks: no suggestion, and no statement that ends with "yeah?"."""
    return is_question(text) and not suggests(text) and not _TAG(text) and not _orders(text)


def _orders(text: str) -> bool:
    """Whether a sentence begins as an order, whatever its sign: "write it first, I guess?"."""
    return bool(_SHAPES.match(text) or _STARTS.match(text)) and not _ASKS_FIRST.match(text)


def is_errand(text: str) -> bool:
    """Whether a person's sentence only asks to look, run, commit and the like."""
    return bool(_ROUTINE.match(text) or _ERRAND_REQUEST.match(text))


def is_errand_request(text: str) -> bool:
    """Whether a person's sentence only asks for an errand, or for a ticket, a comment or tests to be written."""
    writes = _TICKETS.match(text) and len(text.split()) <= 16 and not contrasts(text) and not gives_reason(text)
    return bool(writes) or is_errand(text)


def leans(text: str) -> bool:
    """Whether a sentence speaks of something that stands elsewhere: "just fix it", "address all 4"."""
    return _POINTS(text) and says_little(text)


def says_little(text: str) -> bool:
    """Whether a sentence has at most a few words of its own."""
    return len(_own(text)) <= 3


def says_something(text: str) -> bool:
    """Whether a sentence that points elsewhere has something to say by itself."""
    return len(_own(text)) >= 2


def _own(text: str) -> frozenset[str]:
    return frozenset(word for word in content_words(text) if not _DEEDS.fullmatch(word) and not word.isdigit())


def states(text: str) -> bool:
    """Whether a sentence of a person says how things are to be taken from now on, and not what happened."""
    return len(text.split()) >= 8 and not _PAST(text) and not doubts(text) and not asks(text)
