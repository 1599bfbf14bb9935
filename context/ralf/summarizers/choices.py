"""What of an agent's words is a choice: sentences that choose, prescribe, settle or carry out, and messages that state
a design.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ralf.summarizers.grammar import (
    ENOUGH,
    any_of,
    content_words,
    gives_reason,
    guesses,
    is_question,
    looks_around,
    narrates,
)

_I = re.IGNORECASE

# ---- words that choose ----

_CHOICE = any_of(
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
    r"\bit is (?:for|then)\b|\bwins\b|\bthe (?:choice|verdict|conclusion) is\b",
    r"\b(?:by|as a) (?:design|convention|policy|rule)\b",
    # one side of a conflict
    r"\b(?:take|took|taking|keep|kept|keeping|adopt\w*|accept\w*) (?:theirs|ours|both sides|(?:the |all )?(?:\w+'s"
    r"|main|"
    r"upstream|parent|incoming|their|our) (?:version|side|approach|changes?|copy|implementation)\b)",
    r"\bi take (?:that |it )?back\b|\bi was wrong (?:about|that)\b|\bscratch that\b",
    r"\b(?:leaving|keeping) [^.]{1,60} (?:as (?:is|it is|they are)|in place|alone|untouched)\b",
    r"\b[Tt]he [^.]{3,60}(?-i: DID | DOES )",
    r"\bi (?:put|placed|kept|left|named|chose|took|made|moved|skipped) [^.]{4,160}"
    r"\b(?:because|rather than|instead of|since|so that)\b",
)
_CONTRAST = any_of(
    r"\b(?:instead of|rather than|in favou?r of|as opposed to|no longer|not needed|in place of)\b",
    r"\binstead\b",
    r"\bnot (?:in|on|via|by|through|with|as) ",
    r",? (?:but|and) (?:keep|leave|do not|don't|not|without) \w",
    r", not (?:`|the|a|an)\b",
)
_CHANGE = any_of(
    r"\b(?:switch(?:ed|ing)?|mov(?:e|es|ed|ing)|migrat(?:e|ed|ing)|chang(?:ed|ing)|renamed?) (?:[^.]{1,60} )?(?:to"
    r"|over to|back to)\b",
    r"\breplac(?:e|es|ed|ing) [^.]{1,80} (?:with|by)\b",
    r"\b(?:drop|dropped|dropping|revert|reverted|reverting|removed entirely|abandon(?:ed|ing)?)\b",
    r"\bchanged? (?:our|my) minds?\b|\bon (?:reflection|second thoughts?)\b",
)
_SETTLES = any_of(
    r"\b(?:out of scope|won't fix|separate (?:pr|pull request|issue|branch|change)|follow-up (?:pr|issue))\b",
    r"\b(?:(?:is|are|be|gets?) (?:deferred|postponed|put off)|(?:defer|postpone|put off) (?:it|this|that|them|until"
    r"|to))\b",
    r"\bleav(?:e|ing) [^.]{1,60} (?:as (?:is|it is|they are)|in place|alone|untouched)\b"
    r"|\bkeep(?:ing)? [^.]{1,60} as(?:-| )is\b",
    r"\bstays? (?:as (?:is|it is|they are)|in place|untouched|unchanged|where)\b",
    r"\b(?:interim|stopgap|temporary) (?:fix|solution|measure)\b",
    r"\bthe (?:\w+ )?(?:fix|solution|approach|way forward)(?: here)?(?: is|:) (?:just |simply |to |after |for )+\w",
)
_JUDGES = any_of(
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
_COMMITS = re.compile(
    r"^(?:(?:so|then|therefore|instead|actually|ok(?:ay)?|right|good|got it|understood|yes|yeah|yep|exactly|agreed"
    r"|makes sense"
    r"|fair enough|for \w+)\b[ ,.!:—-]*|since [^,]{8,160}, )*"
    rf"{_WILL} (?:instead |just |simply |therefore |rather |only )*(?:(?:{_MADE})\b(?P<what>.*)"
    rf"|(?:{_VAGUE})\b.{{3,80}}? (?:to \w+|by \w+ing|so that|instead)\b(?P<how>.*))",
    _I,
)
_NAMED_FIX = re.compile(rf"^[^—:.;]{{3,40}} (?:—|-|:) (?:{_MADE}|broaden|narrow|{_VAGUE})\b.*(?:`|\w+ \w+ \w+)", _I)
_PRONOUN = re.compile(r"\W*(?:it|this|that|them|these|those|both|both of them|the changes?|the edits?|sure)\b\W*$", _I)
_PRESCRIBES = re.compile(
    r"^(?!that\b|this\b|it\b|the (?:key )?(?:insight|point|idea)\b|[^.;:?]{0,90}\b(?:i|you|we|n't need"
    r"|not need)\b)[^.;:?]{0,90}\b(?:should|must|needs? to|has to|have to) (?:not |never |always |just |only "
    r"|still |simply )*(?!have\b|see\b|fail|work\b|pass\b|find\b|already\b)\w+",
    _I,
)
_CONCRETE = re.compile(r"`[^`]+`|\b\w+[._/]\w+|\b[a-z]+[A-Z]\w+")
_BOOKKEEPS = re.compile(
    r"^(?:updated?|added|fixed|wrote|created|extended|verified|bumped|ran|refreshed|adjusted) (?:the |all |two "
    r"|both |\d+ )*"
    r"(?:\w+ ){0,3}(?:tests?|docs?|comments?|documentation|expectations?|call sites?|references?|imports?|examples?"
    r"|places)\b",
    _I,
)

_BEHAVES = any_of(
    r"\bnow (?:only|always|never|just)\b|\b(?:always|never|only (?:when|if|for|runs?|in)|even (?:if|when|without)"
    r"|falls? back)\b"
)
_BECAUSE = re.compile(r"\b(?:because|since|so that|to (?:avoid|prevent|keep))\b", _I)
_ACCLAIMS = re.compile(r"(?:agreed|good|great|ok(?:ay)?|perfect|fine)\b", _I)
_EXPLAINS = re.compile(
    r"\b(?:is|was|are|were|it's|that's|happens?) (?:from|because|due to|caused by|why)\b|\bdepends on\b", _I
)


def agent_score(text: str, *, item: bool = False, edits: bool = False, grounded: bool = False) -> int:
    """How much a sentence of the agent is a choice; 0 for narration, questions and what might be.

    edits     the agent changed files right after the message
    grounded  a statement before it in the message tells the state of things, so it can be its consequence
    """
    words = len(text.split())
    choice = _CHOICE.search(text)
    if (words < 5 and not choice and not edits) or words > 120 or is_question(text):
        return 0
    commits = _commits(text) or (edits and bool(_NAMED_FIX.match(text)))
    if looks_around(text) and (choice or not commits):
        return 0
    score = 3 * bool(choice) + 2 * bool(_CONTRAST.search(text)) + bool(_CHANGE.search(text))
    score += 3 * bool(_SETTLES.search(text)) + 2 * bool(_JUDGES.search(text))
    acts = commits or bool(_PRESCRIBES.match(text))
    if acts:
        score += 1 + edits + (grounded and edits)
    if item and re.search(r"(?<!which )(?<!that )\bno longer\b", text, _I):
        score += 2
    if not score or (_BOOKKEEPS.match(text) and not choice):
        return 0
    if _EXPLAINS.search(text):
        score -= 2
    if gives_reason(text):
        score += 1 + (commits and not edits and bool(_BECAUSE.search(text)))
    if item and _BEHAVES.search(text):
        score += 1
    # What is chosen may itself speak of what could be; what leads up to an outright choice may not.
    if guesses(text, choice.end() if choice else len(text)):
        score -= 3
    if narrates(text) and not commits and not (choice and _ACCLAIMS.match(text)):
        score -= 1
    if item:
        score -= 1
    if text.endswith(":") and words < 9 and not edits:
        score -= 1
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
    return bool(_PRESCRIBES.match(text) or _SETTLES.search(text) or _JUDGES.search(text)) or _commits(text)


def is_imperative(text: str) -> bool:
    """Whether a sentence begins with what is to be done: "add", "keep", "do not"."""
    return bool(_IMPERATIVE.match(text))


def chooses(text: str) -> bool:
    """Whether a sentence holds an outright word of choice."""
    return bool(_CHOICE.search(text))


def contrasts(text: str) -> bool:
    """Whether a sentence sets what is chosen against what is not."""
    return bool(_CONTRAST.search(text))


def is_lead_in(text: str) -> bool:
    """Whether a sentence only announces the decision that follows it."""
    if len(text.split()) > 12 or re.search(r":\s+\S", text):
        return False
    return len(text.split()) <= 2 or (chooses(text) and (text.endswith(":") or len(content_words(text)) <= 2))


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
_TALKS = re.compile(r"\b(?:i|i'm|i'll|i've|i'd|me|my|you|your|you're|you'll|let's|let us)\b|\bhere's\b", _I)
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
_DISCOVERS = re.compile(r"^(?:found|interesting|i see|there|ah|oh|hmm|wait|turns out|confirmed)\b", _I)
_WAS = re.compile(r"\b(?:was|were|had|did|says?|said|tells?)\b", _I)


def states_design(texts: Sequence[str]) -> int:
    """The score of a message that does nothing but state how something is to be; 0 for reports and narration.

    Agents talk to somebody about what they see and do. A message in which nobody is spoken to, that begins of itself
    and reports nothing, states what holds.
    """
    opening = texts[0] if texts else ""
    texts = [text for text in texts if len(text.split()) > 2] if len(texts) > 1 else list(texts)
    if not texts:
        return 0
    first = texts[0]
    words = len(first.split())
    if words < 6 or words > 90 or is_question(first) or _TALKS.search(first) or _REPORTS.search(first):
        return 0
    if any(looks_around(text) for text in texts):
        return 0
    if (_IMPERATIVE.match(first) or _PROPOSAL.search(first)) and not _CONTINUES.match(first):
        return ENOUGH
    if (
        _DISCOVERS.match(opening)
        or _CONTINUES.match(first)
        or any(_TALKS.search(text) or _REPORTS.search(text) for text in texts)
    ):
        return 0
    if guesses(first, len(first)) or _WAS.search(first) or (len(texts) == 1 and first.endswith(":")):
        return 0
    return ENOUGH


# ---- approaches that failed ----

_FAILED = any_of(
    r"\b(?:tried|attempted|trying)\b[^.]{3,140}\b(?:but|failed|didn't|does(?:n't| not)|without success"
    r"|to no avail|broke|which (?:lost|broke|left|made|gave))\b",
    r"\b(?:does(?:n't| not)|did(?:n't| not)|won't|will not|can(?:'t|not)) work\b[^.]{0,60}\b(?:because|since|as"
    r"|here|when|with|for|due)\b",
    r"\b(?:doesn't|didn't|does not|did not) help\b",
    r"\b(?:dead end|not viable|led nowhere|(?<!there )was a mistake|turned out (?:to be )?(?:wrong|not)|backfired)\b",
    r"\bthat (?:approach|attempt|theory|fix|idea|way) (?:failed|fails|didn't|doesn't|was wrong|is wrong|is closed)\b",
    r"\b(?:broke|breaks) because\b",
    r"^(?!look|check|run|test)\w+ing\b(?: [^\s,.:;]+){2,12} (?:fails|failed)[,:]? (?:because|since|it|as)\b",
)
_REDOES = re.compile(
    r"^(?:so |then |ok(?:ay)?,? )*(?:let me|i'll|i will|i need to|need to) (?:redo|re-do|undo|revert|roll back|back out"
    r"|simplify|restructure|re-add|start over|go back|handle (?:it|this|that) properly|try (?:a )?(?:different"
    r"|another))\b",
    _I,
)


def failed(text: str) -> bool:
    """Whether a sentence says that something was tried and why it did not work."""
    words = len(text.split())
    if words < 6 or words > 80 or is_question(text) or looks_around(text):
        return False
    return bool(_FAILED.search(text)) and not re.search(r"\b(?:if|would|could|might|may)\b", text, _I)


def redoes(text: str) -> bool:
    """Whether a sentence announces that what the agent did just before is done another way."""
    return bool(_REDOES.match(text))
