"""The English of choices: sentences of an agent that choose, prescribe, settle, judge or carry out."""

from __future__ import annotations

import re

from ralf.summarizers.grammar import (
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
_NAMED_FIX = re.compile(
    rf"^[^—:.;]{{3,40}} (?:—|-|:) (?!let )(?:{_MADE}|broaden|narrow|{_VAGUE})\b.*(?:`|\w+ \w+ \w+)", _I
)
_PRONOUN = re.compile(r"\W*(?:it|this|that|them|these|those|both|both of them|the changes?|the edits?|sure)\b\W*$", _I)
_PRESCRIBES = re.compile(
    r"^(?!that\b|this\b|the (?:key )?(?:insight|point|idea)\b|[^.;:?]{0,90}\b(?:i|you|we|n't need"
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


_RESULTS = re.compile(
    r"(?:this|that|it|which)(?: also| now)? (?:ensures?|means|makes?|keeps?|avoids?|prevents?|allows?|gives?|lets?)\b",
    _I,
)


def agent_score(text: str, *, item: bool = False, edits: bool = False, grounded: bool = False) -> int:
    """How much a sentence of the agent is a choice; 0 for narration, questions and what might be.

    edits     the agent changed files right after the message
    grounded  a statement before it in the message tells the state of things, so it can be its consequence
    """
    words = len(text.split())
    if _RESULTS.match(text):
        return 0
    choice = _CHOICE.search(text)
    if (words < 5 and not choice and not edits) or words > 120 or is_question(text):
        return 0
    commits = _commits(text) or (edits and bool(_NAMED_FIX.match(text)))
    if looks_around(text) and (choice or not commits):
        return 0
    score = 3 * bool(choice) + 2 * _CONTRAST.found(text) + _CHANGE.found(text)
    score += 3 * _SETTLES.found(text) + 2 * _JUDGES.found(text)
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
    if item and _BEHAVES.found(text):
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
    return bool(_PRESCRIBES.match(text) or _SETTLES.found(text) or _JUDGES.found(text)) or _commits(text)


def chooses(text: str) -> bool:
    """Whether a sentence holds an outright word of choice."""
    return _CHOICE.found(text)


def contrasts(text: str) -> bool:
    """Whether a sentence sets what is chosen against what is not."""
    return _CONTRAST.found(text)


def is_lead_in(text: str) -> bool:
    """Whether a sentence only announces the decision that follows it."""
    if len(text.split()) > 12 or re.search(r":\s+\S", text):
        return False
    return len(text.split()) <= 2 or (chooses(text) and (text.endswith(":") or len(content_words(text)) <= 2))
