"""Whether what was found to be decided still asks for something, and its words so that they can be read alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from ralf.summarize import english
from ralf.text.matcher import AnyOf, content_words, words
from ralf.text.patterns import regex
from ralf.text.sentences import joined, split

Bearing = Literal["lasting", "states", "change", "once", "said"]
"""How long a sentence binds: for good, by what it orders or by how it says that things are; until the work is changed
so; until an errand is done; or it only tells something.
"""

# ---- the words, without what only belongs to the talk ----

_OPENS = regex(
    r"(?:(?:hm+|ehh?|oh|ah|uh|lol|sorry|i mean|q)\b[ ,.!:;\u2026\u2014-]{1,8}"
    r"|(?:sure|ok(?:ay)?|ye(?:s|ah|p)|yup|right|well|great|cool|nice|thanks|thank you|good(?: point| catch| call)?"
    r"|perfect|true|exactly|agreed"
    r"|you're right|got it|understood|interesting|as you asked|makes sense|question|reminder)(?:[,.!:;\u2026]{1,4}"
    r"| [-\u2013\u2014]) )+",
    re.I,
)

_ANNOUNCES = regex(
    r"(?:(?:now|then|so|next|first|instead|therefore)\b,? )*+(?:let me|i(?:'ll| will|'m going to| am going to| need to"
    r"| should| have to|'d say|'ll just))(?: (?:now|first|also|just|simply|quickly|go ahead and|say))*+ (?=\S)",
    re.I,
)

_TAG = regex(
    r"[ ,](?:yeah|yes|right|no|ok(?:ay)?|correct|hey|huh|isn't it|don't we|aren't we|i guess|i think)\W*$", re.I
)

_ASKS_TO = regex(
    r"(?:^|(?<=[,.:;\u2014-] ))(?:(?:and|so|but|for now|then|just|also|maybe|hmm?)\b,? ){0,3}"
    r"(?:(?:can|could|should|shall|shouldn't|couldn't|can't|would) (?:we|you|i|it be possible to)"
    r"|is there (?:a|any) (?:good )?reason (?:not to|why we (?:don't|can't))|why (?:not|don't we|aren't we|can't we)"
    r"|what if we|how about(?: we)?|would it (?:make sense|be (?:better|cleaner|nicer|ok(?:ay)?|possible)) to)"
    r"(?: (?:just|also|please|maybe|then|at least|now|simply|instead))*+ (?!not\b)(?=\w)",
    re.I,
)

_JOINED = regex(r"(?:(?:and|but|so|also|then)\b,? ){1,3}", re.I)

_LEAST = 3  # words that are left of a text without its opening, or the opening stays


def without_opening(text: str) -> str:
    """A sentence without the words with which a speaker takes their turn: "ok, so", "hmm"."""
    match = _OPENS.match(text)
    rest = text[match.end() :] if match else text
    return rest if len(rest.split()) >= _LEAST else text


_LABELS = regex(
    r"(?:(?:the )?(?:first|second|third|fourth|next|last|main)|task|step|issue|item|bug|finding)(?: #?\d{1,3})?"
    r"(?: fix| change)?(?: ?[\u2014\u2013:]| -) (?=[a-z])",
    re.I,
)
"""Which of several things an agent turns to: "Task #2 fix — broaden the cleanup"."""


_JOINT = regex(
    r"(?:(?:and|but|so|also|then|or|if so),? (?:really,? |yeah,? |then,? |also,? |in my head,? )?"
    r"|in my head,? )(?=[\w`])",
    re.I,
)


def without_joint(text: str) -> str:
    """A text without the word that joins it to what was said before: "but really we don't need …"."""
    match = _JOINT.match(text)
    rest = text[match.end() :] if match else text
    return rest if len(rest.split()) > _LEAST and not re.match(r"(?:if|when|that|which)\b", rest, re.I) else text


def unlabelled(text: str) -> str:
    """A sentence without the label of the thing that an agent turns to: "Task #2 fix — broaden …" is "Broaden …"."""
    bare = without_opening(text)
    match = _LABELS.match(bare)
    rest = bare[match.end() :] if match else bare
    return rest[:1].upper() + rest[1:] if match else text


def unannounced(text: str) -> str:
    """What an agent announces to do, as an order: "Let me use `-x`" is "Use `-x`"."""
    bare = without_opening(text)
    match = _ANNOUNCES.match(bare)
    if match is None or len(bare[match.end() :].split()) < 2:
        return bare
    rest = bare[match.end() :]
    return rest[:1].upper() + rest[1:]


_CAN_WE_NOT = regex(r"(?:^|[, ])(?:can|could|should) (?:we|you|i) not (?!only\b)", re.I)
"""A question that may ask for a thing or against it."""


def as_stated(text: str) -> str:
    """A sentence as a statement: a suggestion that was put as a question is what it suggests; "" for any other, and for
    one that only asks whether things are as it says.
    """
    if not english.is_question(text):
        return text
    bare = text.rstrip("? \u200d").rstrip()
    if found := _TAG.search(bare):
        rest = bare[: found.start()].rstrip(" ,")
        return f"{rest}." if len(rest.split()) > _LEAST and _puts_forward(rest) else ""
    if _CAN_WE_NOT.search(bare):
        return ""
    if asking := [*_ASKS_TO.finditer(bare)]:
        rest = bare[asking[-1].end() :]
        return f"{rest}." if len(rest.split()) > 1 else ""
    return f"{bare}." if english.suggests(text) else ""


def _puts_forward(text: str) -> bool:
    """Whether a statement orders or suggests something: behind it "yeah?" asks for more than whether it is true."""
    head = _POLITE.match(text)
    rest = text[head.end() :] if head else text
    orders = _HOLDS(rest) or _MAKES.match(rest) or _AT_ONCE.match(rest) or english.is_order(text)
    return bool(orders) or _RULES(text) or english.suggests(text) or english.contrasts(text)


# ---- how long it binds ----

_POLITE = regex(
    r"(?:(?:please|pls|just|then|now|also|first|instead|actually|maybe|perhaps|simply|at least|for now|no|nope|nah"
    r"|let's|lets|let us|we|you|i|it|they|should|could|can|must|shall|need to|needs to|have to|has to|want to|want you"
    r"|would|like|ought|to|do|go ahead|go|and|rather|would rather|'d|i'd|i'll|i will|will|think|that|figure|really"
    r"|personally|dearly|love|you to|better|still|only|even|suggest|recommend|propose|say|at minimum)\b"
    r"[ ,:;\u2014-]{0,4}){0,10}",
    re.I,
)

_ONCE = (
    r"(?:start|begin|continue|proceed|resume|check|checkout|rebase|merge|push|pull|fetch|sync|commit|amend|squash"
    r"|cherry-pick|stash|run|re-?run|test|try|fix|address|tackle|handle|resolve|redo|re-do|look|review|verify|validate"
    r"|confirm|investigate|debug|explore|find|search|reply|respond|answer|post|pop|send|open|close|finish|complete"
    r"|show"
    r"|tell|explain|list|read|clean|tidy|take a|take another|take care|brainstorm|discuss|think|ask|wait|reset|rebuild"
    r"|build|compile|deploy|release|install|update|revise|refresh|carry on|carry out|go on|move on"
    r"|move to (?:#|\d|the next)|kick off|help|see"
    r"|report|summari[sz]e|approve|implement this|implement it|implement the plan)"
)

_CHANGES = (
    r"(?:add|write|rewrite|create|make(?! sure\b| certain\b)|define"
    r"|implement|rename|delete|remove|put|document|file|log|set up|build out"
    r"|bump"
    r"|adjust|change|correct|leave a|raise|lower|include a|extend|format|revert|undo|simplify|broaden|improve|drop in"
    r"|split|swap|move|inline|extract|wire|convert|wrap|scope)"
)

_AT_ONCE = regex(rf"{_ONCE}(?:ing\b|\b|(?<=#))(?! (?:in (?:their|the same|that) order)\b)", re.I)

takes_side = AnyOf(
    r"\b(?:take|took|taking|keep|kept|keeping|accept\w*|use|used|using) (?:theirs|ours|both sides|(?:the "
    r"|all )?(?:\w+'s|main|upstream"
    r"|parent|incoming|their|our) (?:version|side|changes?|copy)\b)"
)
"""Whether a sentence tells which side of a conflict won: it is over with the merge."""

_ASKED = (
    r"\b(?:(?:can|could|would) (?:you|we)|let's|you (?:can|may|could)) (?:please |also |just |quickly |then |first )*+"
)

_ASKED_ONCE = regex(rf"{_ASKED}{_ONCE}\b", re.I)

_ASKED_CHANGE = regex(rf"{_ASKED}{_CHANGES}\b|^you (?:can|may|could)\b", re.I)

_MAKES = regex(rf"{_CHANGES}\b", re.I)

_WE_DO = regex(
    r"we (?!_?(?:see|know|think|believe|get|got|find|found|hope|guess|figure|agree|understand|hit|ran|saw|care"
    r"|like)_?(?!\w)"
    r"|need|should|can|could|must|have|want|ought|will|shall|may|might|just|now|also|are|were|had|do\b"
    r"|don't)\w+ ",
    re.I,
)
"""What a statement of how things are done begins with: "we deploy with …"."""

_PUT_OFF = regex(r"(?:do|fix|handle|address|tackle|resolve|implement|track|solve)(?:ing)?\b", re.I)

_REMARKS = AnyOf(r"^consider \w+ing\b|\bwould (?:also |then )?(?:make|be|allow|avoid|prevent|help)\b")
"""Whether a sentence is a remark of a review: carried out, it asks for nothing more."""

is_remark = _REMARKS

_PLACES = AnyOf(
    r"\b(?:as|in|into|for|with|on) (?:(?:its|their|a|an|another|the next|that|the same) ?(?:own|separate|different"
    r"|follow-up|later)?"
    r" (?:pr|pull request|branch|ticket|issue|commit|change|milestone|release)|#?\d{2,6})\b|\blater\b|\bnot (?:now"
    r"|yet|here)\b",
)

_LIMITS = AnyOf(
    r"\b(?:instead|rather|without|only|never|always|don't|do not|dont|must|no longer|no more|not|over|unless|until"
    r"|simply|prefer\w*|every|each|whenever|nothing|nobody|consistent\w*)\b",
)

_BECAUSE = AnyOf(r"\b(?:because|since|so that)\b")

_THROUGHOUT = AnyOf(r"\b(?:always|never|only|throughout|whenever|consistently)\b")

_HOLDS = AnyOf(
    r"^(?:use|keep|prefer|avoid|never|always|don't|do not|dont|not (?!now|yet|sure|only|all)\w+"
    r"|only|pick|choose|leave|skip|ignore|drop|treat|store"
    r"|limit"
    r"|exclude|include|require|support|allow|stick|stop|stay|follow|ensure|make sure|make it|go with|go for|go by"
    r"|call it"
    r"|break|replace|switch|return|reject|accept|forbid"
    r"|focus|target|default|fall back|take|reuse|base|route|send each)\b",
)

_ARGUES = AnyOf(
    r"\b(?:does(?:n't| not)|did(?:n't| not)) (?:necessarily )?(?:mean|imply|prove|explain)\b",
    r"^(?:we|i|you) _?(?:see|saw|know|knew|think|thought|believe|suspect)_?(?!\w)",
)
"""Whether a sentence argues about how things are, and orders nothing."""

_PERSONAL = AnyOf(
    r"\b(?:i(?:'ve| have| was| had| just|'ll| will| saw| see| tried| did| didn't| continued| called| checked| opened)"
    r"|we(?:'ve| were| had))\b",
)

_HAPPENED = AnyOf(
    r"\b(?:was|were|did|didn't|had|happened|got|went|came|saw|tried|this time|just now|a while ago|ago|earlier"
    r"|yesterday|already"
    r"|again|still (?:fails?|broken|failing)|completed|succeeded)\b",
)

_WONDERS = AnyOf(
    r"\b(?:technically|looks like|seems?|i wonder|i guess|not sure|no idea|maybe|might|i suppose"
    r"|i would have thought)\b"
    r"|(?:\.\.\.|\u2026)\s?$",
)

_RULES = AnyOf(r"\b(?:should|must|shall|need(?:s|ed)? to|have to|has to|ought to|prefer|rather|don't need|no need)\b")


def bearing(text: str) -> Bearing:
    """How long a sentence of a person, or what an agent announces, binds those who come later."""
    bare = without_opening(text)
    if joined_by := _JOINED.match(bare):
        bare = bare[joined_by.end() :]
    if _WE_DO.match(bare) and not _HAPPENED(bare):
        return "lasting"
    head = _POLITE.match(bare)
    rest = bare[head.end() :] if head else bare
    ordered = head is not None and head.end() > 0
    if _AT_ONCE.match(rest) or _ASKED_ONCE.search(bare):
        return "lasting" if _PUT_OFF.match(rest) and _PLACES(rest) else "once"
    if _REMARKS(bare) or takes_side(bare):
        return "change"
    if _MAKES.match(rest) or _ASKED_CHANGE.search(bare):
        binds = _LIMITS(rest) and (english.contrasts(rest) or _THROUGHOUT(rest))
        return "lasting" if binds or _BECAUSE(rest) else "change"
    if _HOLDS(rest) or english.chooses(bare) or english.contrasts(bare):
        return "lasting"
    if _RULES(bare) and not _PERSONAL(bare):
        return "lasting"
    if ordered and english.is_order(bare):
        return "change"
    if _PERSONAL(bare) or _HAPPENED(bare) or _WONDERS(bare) or _ARGUES(bare):
        return "said"
    return "states"


# ---- whether it can be read alone ----

_POINTS = regex(
    r"\b(?:it|that|this|they|them|these|those|both|all (?:\d|of)|the (?:first|second|latter|former|same|other)(?: one"
    r"| way)?\b(?! [a-z]{4})"
    r"|here|there|one of them)\b(?! \w*(?:is|are) (?:fine|ok|okay)\b)|(?<![\w.#-])#?\d(?![\w.:-]\w|\w)",
    re.I,
)

_NAMES_ITS_THING = regex(
    r" (?!(?:is|are|was|should|must|can|could|would|will|need|have|has|do|does|in|to|as|on|for|and|or|if|up|by|at)\b)"
    r"[_*]?[a-z]{3,}",
    re.I,
)

_SAYS_THAT = regex(
    r"\b(?:is|was|so|such|says?|said|means?|meant|sure|think|know|see|found|finds?|shows?|ensures?|now|given"
    r"|assum(?:e|es|ing))\s{1,2}$",
    re.I,
)
"""What stands before a "that" which only leads on."""

_QUOTED = regex(r"`[^`]+`|\w[._/]\w|[a-z][A-Z]|[A-Z]{2,}|\d{2,}")

_NAME_WORDS = 3

_SHORT = 3  # words

_FEW = 22  # words, in which a number may be that of an option, a task or a step


def reads_alone(text: str) -> bool:
    """Whether a text says what it is about: it names something, and no "it" or "2" in it stands for something else."""
    own = [word for word in content_words(text) if not word.isdigit()]
    if len(own) < 1 + (not _QUOTED.search(text)) or (len(text.split()) < _SHORT and not _QUOTED.search(text)):
        return False
    if _TAKES_BACK_WHAT.search(text) or _NO_SUBJECT.match(text):
        return False
    first, *_ = split(text) or [text]
    if len(content_words(first)) < 2:
        first = text
    for match in _POINTS.finditer(first):
        before, behind = first[: match.start()], first[match.end() :]
        word = match.group().lower()
        if word.lstrip("#").isdigit():
            if (
                len(text.split()) > _FEW
                or _COUNTED.match(behind)
                or _NUMBERED.search(before)
                or _ENUMERATED.search(behind)
            ):
                continue
            return False
        if word in ("that", "this", "these", "those", "both") and _NAMES_ITS_THING.match(behind):
            continue
        if word == "that" and _SAYS_THAT.search(before):
            continue
        if word == "it" and before.count(" ") <= _NAME_WORDS and behind.startswith(" is "):
            continue  # "SQLite it is for the cache"
        if " (" in behind or (word in ("it", "this", "that") and _COMMENTS.match(behind)):
            continue
        if not _has_antecedent(before):
            return False
    return True


def _has_antecedent(before: str) -> bool:
    """Whether what stands before a pronoun may hold what it stands for: a name, or a word behind the verb."""
    head = _POLITE.match(before)
    told = before[head.end() :].partition(" ")[2] if head else before
    return any(word.weight == 1.0 for word in words(told)) or bool(_QUOTED.search(before))


_NO_SUBJECT = regex(
    r"(?:should|must|needs to|has to) (?:just |also |only |really )*(?:be|have|go|use)\b"
    r"|(?:still|already) (?:\w{2,20}ed|in|needed|there|the)\b",
    re.I,
)
"""A sentence that does not say what should be so."""


def lacks_subject(text: str) -> bool:
    """Whether a sentence does not say of what it speaks: "Still used in `debug.go`"."""
    return bool(_NO_SUBJECT.match(text))


_TAKES_BACK_WHAT = regex(
    r"\b(?:roll(?:ing)? back|go(?:ing)? back|back out|revert|undo)(?: it| that| this| them)?(?: please| then)?"
    r"(?:$|[,.;!] )",
    re.I,
)
"""An order to go back that does not say from what."""

_COMMENTS = regex(
    r" (?:is |was )?(?:(?:im)?possible|easy|easier|hard|harder|clear|necessary|simple|simpler|mandatory)"
    r" (?:to|that|for)\b|(?:'s| is| was| gets?) (?:the|an?) (?:\w+ that\b|(?:\S+ ){5}\S)|(?:'s| is| was"
    r"| gets?)\b[^,;.]{0,40}[,;.\u2014-] (?:\S+ ){3}\S",
    re.I,
)
"""What follows a pronoun that says something of the talk, or of what comes behind: "this is getting big, put …"."""

_COUNTED = regex(r"[%a-z]| (?!and\b|or\b|is\b|are\b|first\b|then\b|in\b|to\b)[a-z]{3,}", re.I)

_ENUMERATED = regex(r" \(\d\. ")

_NUMBERED = regex(
    r"(?:step|phase|part|pr|task|issue|option|version|v|python|line|level|ticket|item|node|java|go|port|to|at|of|by"
    r"|than"
    r"|least|most|[-./:=<>\d])\W{0,2}$",
    re.I,
)


# ---- what an agent says of what it did ----

_DID = regex(
    r"(?:(?:done|ok(?:ay)?|good|great|perfect|clean|all (?:done|good|clean))\b[.,!: \u2014-]{1,4})*+"
    r"(?:i(?:'ve| have)? )?(?:now )?(?:also )?"
    r"(?:added|updated|removed|renamed|replaced|moved|created|committed|pushed|merged|rebased|posted|replied|logged"
    r"|wrote"
    r"|written|fixed|changed|switched|documented|deleted|rewrote|inlined|extracted|reverted|opened|closed|saved|wired"
    r"|implemented|refactored|simplified|set|put|made|took|kept|resolved|converted|dropped|installed|split|enabled"
    r"|disabled|extended|adjusted|corrected|bumped|squashed|pulled|inlined|cleaned)\b",
    re.I,
)

_STANDS_NOW = AnyOf(
    r"\b(?:is|are) (?:now |all )?(?:gone|done|in place|merged|pushed|saved|posted|complete|clean|updated|fixed"
    r"|addressed)\b",
    r"^now on\b|\b(?:rebase|merge|push|commit) succeeded\b|\bnow (?:has|have|uses?|goes|returns?|reads?|writes?)\b",
)


def did(text: str) -> bool:
    """Whether a sentence of the agent tells what it has done."""
    return bool(_DID.match(text))


_HEDGED = regex(r"(?:but|however|if|because|since|once|when|unless|although|so that)\b", re.I)

_OUTCOME = 32  # words


def outcome(reports: Sequence[Sequence[str]], of: str) -> str:
    """What an agent reported of something that it was told to do: of its replies' sentences, the one that has most to
    do with it; "" where it reported nothing.
    """
    about = content_words(of)
    best, found = 0, ""
    for number, said in enumerate(reports):
        for text in said:
            if (
                english.is_question(text)
                or _HEDGED.match(text)
                or not (_DID.match(text) or _STANDS_NOW(text))
                or len(text.split()) < 3
            ):
                continue
            worth = 2 * len(about & content_words(text)) + min(text.count("`") // 2, 2) + (number == len(reports) - 1)
            if worth > best:
                best, found = worth, text
    parts = found.rstrip(":").split()
    return " ".join(parts[:_OUTCOME]) + ("\u2026" if len(parts) > _OUTCOME else "")


# ---- proposals of an agent ----

_PROPOSES = AnyOf(
    r"^(?:so |then |and |but )?(?:the|a|an|one|another|my) (?:\w+ ){0,2}(?:fix|solution|remedy|workaround|idea|approach"
    r"|option|suggestion|way)(?: here| now| for (?:it|this|that))?"
    r"(?::| is(?: still)? (?:the same\b|to\b|just\b|simply\b)| (?:would|could|might) be\b)",
    r"^(?:so |then |and |but )?(?:we|you|i|one) (?:can|could|might|may) ",
    r"\b(?:i(?:'d| would)? (?:suggest|recommend|propose)|(?:would|could) be (?:to|a|an|the)\b)",
)


def proposes(text: str) -> bool:
    """Whether a sentence of the agent only puts a way forward: "The fix: replace …", "We can add …"."""
    return _PROPOSES(text)


# ---- reports that are no decisions ----

_PROMISE = regex(r"</?promise>", re.I)

_COUNTS = r"(?:[1-9]\d{0,2}(?:,\d{3})?|one|two|three|four|five|six|seven|eight|nine|ten)"

_CAME_TO = (
    "active|up|set|written|removed|deleted|uninstalled|installed|enabled|gone|merged|running|restored|created|converted"
    "|renamed|moved|migrated|tested|passing|published|released|rolled out"
)

_IS_SO_NOW = AnyOf(
    # "The button is blue now."; "now" at the beginning, or before the verb, may be a change of course
    r"^(?:the|all|both|every|each|this|that|it|its|their|our|your|\w+s|`[^`]+`)\b[^.;:?!,]{1,80} (?:now|again|already"
    r"|at last)\W*$",
    # "The table is carried over.", "Both files have been rewritten."
    r"^(?:the|all|both|every|each|this|that|it|its|their|our|your|\w+s|`[^`]+`)\b[^.;:?!,]{0,60}"
    r" (?:(?:is|are) (?:now |all |both |already |successfully |finally )?(?:carried|copied|moved|brought|taken"
    r"|switched) over"
    r"|(?:is|are) (?:now |all |both |already |successfully |finally )?(?:updated|adjusted|fixed|done|finished"
    r"|deployed|pushed"
    r"|committed|formatted|cleaned up|hooked up|wired up|in place|complete|ready|green|live|up and running)"
    r"|(?:has|have) (?:now |all |already |just )?been \w+(?:ed|en|t))\b[^.;:?!]{0,40}\W*$",
    # "Four chapters are written, and the build has no warnings.", "The timer is active.", "Six routes are up with tags"
    rf"^(?:the|all|both|every|each|its|their|our|your|{_COUNTS}|[a-z]\w+)\b[^.;:?!,]{{0,60}} (?:is|are) (?:now |all"
    rf" |both )?(?:{_CAME_TO})(?=\W*$|,| with\b| and\b)(?![^.;:?!]*\b(?:because|since|so that|by default|instead)\b)",
    # what was counted afterwards: "84 references updated", "0 errors", "the dump has no warnings"
    rf"\b{_COUNTS} (?:[a-z]+ )?[a-z]+s (?:updated|changed|moved|renamed|converted|touched|removed|migrated|replaced)\b",
    r"\b(?:0|no|zero) (?:[a-z]+ )?(?:errors?|warnings?|failures?)\W*$",
)


def is_report(text: str) -> bool:
    """Whether a sentence only reports how things have become: "The button is blue now."."""
    return bool(_PROMISE.search(text)) or (_IS_SO_NOW(text) and not english.chooses(text))


_DEFECT = AnyOf(
    r"\btoo (?:often|many|much|early|late|few|long|short|far|soon)\b",
    r"\b(?:twice|wrong(?:ly)?|missing|swapped|stale|leaks?|leaking|crashes|hangs|races?|off by one)\b",
    r"\b(?:is|are|gets?|was|were) (?:never |not |only )?(?:\w+ )?before (?:the |it |we )?\w+ (?:has|have|is|are|was"
    r"|sets?)\b",
    r"\bwe (?:never |only |still )?(?:slept|got|sent|lost|kept|read|wrote|ran|missed|saw|had|were|did)\b",
)


def tells_defect(text: str) -> bool:
    """Whether a sentence describes what is wrong, and chooses nothing."""
    return _DEFECT(text) and not (english.chooses(text) or english.contrasts(text) or english.prescribes(text))


_FINDS = regex(r" (?:DID|DOES|WAS|IS)(?: NOT)? ")


def finds(text: str) -> bool:
    """Whether a sentence takes back what was thought of how things are: "The hook DID run"."""
    return bool(_FINDS.search(text))


_PRAISES = AnyOf(
    r"^[^.;:?!,]{1,90} (?:is|are|looks?|seems?|was|would be) (?:much |far |also |a bit |the |more )*(?:clear|clean"
    r"|simpl"
    r"|nic|bett|saf|good|fine|correct|right|wrong|bad|worse|ugly|great|consistent|readable)(?:er|e"
    r"|est)?\b[^.;:]{0,60}\W*$",
)


approves = AnyOf(
    r"^(?:yes,? |yeah,? |ok(?:ay)?,? |and )?(?:that|this|it|the|these|those|all of (?:it|that))\b[^,;:]{0,40}"
    r" (?:makes? sense|sounds? (?:good|right|fine)|looks? (?:good|right|fine)|works for me)\b[^,;:]{0,20}$",
)
"""Whether a sentence of a person only says that what they were shown is right."""


_NOTES_ONLY = AnyOf(
    r"\bnon-?issues?\b|\bnot (?:a )?block(?:ing|er)\b|\bnit(?:pick)?\b",
    r"\b(?:just|only) (?:noting|a note|an observation)\b",
    r"\b(?:just )?worth (?:thinking about|noting|considering|mentioning)\b|\bnothing to (?:do|change|fix) here\b",
)


def notes_only(text: str) -> bool:
    """Whether a sentence of a review only notes something: "Not blocking, just worth thinking about."."""
    return _NOTES_ONLY(text) and not english.is_order(text)


def praises(text: str) -> bool:
    """Whether a sentence only says that something is good or bad, and chooses nothing."""
    return _PRAISES(text) and not (english.chooses(text) or english.contrasts(text) or english.is_order(text))


_SO_DO = regex(
    r"(?<=[\w)])(?:[ ](?:-|\u2013|\u2014)|;)[ ](?=(?:so |but |and )?(?:let's|let us|please|don't|do not|we should"
    r"|we need to)\b)",
    re.I,
)
"""Where behind a dash or a semicolon an order follows what led to it."""

_ASKED_BEFORE = regex(r"(?<=\?)\s+(?=[a-z])")


def sentences_of(text: str) -> list[str]:
    """The sentences of a text; one that asks ends at its sign, whatever letter follows."""
    found: list[str] = []
    parts = (
        part for sentence in split(text) for asked in _ASKED_BEFORE.split(sentence) for part in _SO_DO.split(asked)
    )
    for part in parts:
        if part.startswith("(") and found:
            found[-1] = f"{found[-1]} {part}"  # what "it" stands for
        else:
            found.append(part)
    return found


def stated(text: str) -> str:
    """A person's text with its suggestions as statements, without questions and the openings of its sentences."""
    kept = []
    for sentence in sentences_of(text):
        told = as_stated(sentence)
        if told and not english.looks_around(told):
            kept.append(without_opening(told))
    return joined(kept)
