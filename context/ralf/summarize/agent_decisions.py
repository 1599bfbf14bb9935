"""Finds what the agent decided: in short messages about one decision, before edits, in reports and reviews."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ralf.model import Decision
from ralf.summarize import english, messages, standing
from ralf.summarize.messages import DECISION_WORDS, REASON_WORDS, Made, Message, around, clip, join, room_beside
from ralf.text.matcher import AnyOf
from ralf.text.patterns import regex
from ralf.text.sentences import Sentence, joined

# ---- the English of designs ----

is_imperative = AnyOf(
    r"^(?:to )?(?:add|adopt|allow|alter|apply|avoid|ban|bump|change|check|clarify|close|codify|combine|convert|create"
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
)
"""Whether a sentence begins with what is to be done: "add", "keep", "do not"."""

_PROPOSAL = AnyOf(
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

_TALKS = AnyOf(r"\b(?:i(?![./])|i'm|i'll|i've|i'd|me|my|you|your|you're|you'll|let's|let us)\b|\bhere's\b")

_TAKES = (
    r"(?:adopt\w*|back\w*|bas(?:e|ed|ing)|build\w*|built|chose\w*|choos\w+|go(?:ing)? (?:with|for)|went (?:with|for)"
    r"|opt\w* for|pick\w*|put(?:ting)?|select\w*|settl\w+ (?:on|for)|stor(?:e|ed|ing)|take|took|taking|us(?:e|ed|ing))"
)

_NEAR_TO = r"(?:around|as|behind|by|for|from|in|on|to|under|with)"

_ASSIGNS = AnyOf(
    rf"(?:(?:so|ok(?:ay)?|then|right)[ ,]+)*(?:(?:i|we)(?:'m|'re|'ve| am| are| have)? )?{_TAKES} "
    r"(?!it\b|this\b|that\b|them\b)"
    rf"(?:\S+(?: \S+){{0,5}}? {_NEAR_TO} (?:the|our|an?) [^.?!:]+"
    rf"|(?:the|our) \S+(?: \S+){{0,4}}? {_NEAR_TO} \S[^.?!:]*)[.!]?$",
)

_SHORT = 16

_FINDS = AnyOf(r":|\b(?:is|are)\b")  # in a few words: "the picker is slow"

_REPORTS = AnyOf(
    r"\b(?:tests?|build|lint|ci|checks?) (?:all )?(?:pass|fail|are|is|was|now)\w*",
    r"\bready (?:to|for)\b|\bnow (?:has|have)\b|\bwhich no longer\b",
    r"\b(?:passed|failed|failing|the issue|the problem|the bug|root cause|stack ?trace|the output|the error"
    r"|the diff|the logs?)\b",
)

_CONTINUES = AnyOf(
    # What begins like this answers, points back, reports or depends: it does not stand for itself.
    r"^`?[0-9a-f]{7,40}`|^\d|^[^.]{1,60}, (?:yes|no)\b|^(?:if|because|since|yes|yeah|yep|no|nope|right|ah|oh"
    r"|ok(?:ay)?|so|and|but|also|still|wait|note|good|great"
    r"|clean|perfect|all"
    r"|just|now|next|then|here|there|that|those|these|they|it|he|she|both|same|need|needs|two|three|one(?! of)"
    r"|found|done"
    r"|logged|looks|says|interesting|exactly|correct|true|fair|makes sense|summary|\w+ed|\w+ing"
    r"|(?:the )?\w+ (?:is |are |now )*(?:complete|done|saved|posted|ready|updated|finished|fixed))\b",
)

_SPEAKS = AnyOf(r"(?:let me|i'll|i'm|i've|i|you|now|first|next)\b")

_DISCOVERS = AnyOf(r"^(?:found|interesting|i see|there|ah|oh|hmm|wait|turns out|confirmed)\b")

_WAS = AnyOf(r"\b(?:was|were|had|did|says?|said|tells?)\b")


def states_design(texts: Sequence[str], *, orders: bool = False) -> int:
    """The score of a message that does nothing but state how something is to be; 0 for reports and narration.

    Agents talk to somebody about what they see and do. A message in which nobody is spoken to, that begins of itself
    and reports nothing, states what holds. With `orders` it has to say what is to be done.
    """
    opening = texts[0] if texts else ""
    texts = [text for text in texts if len(text.split()) > 2] if len(texts) > 1 else list(texts)
    first = texts[0] if texts else ""
    least = 4 if len(texts) == 1 and not _FINDS(first) else 6
    if not least <= len(first.split()) <= 90 or english.is_question(first) or _TALKS(first) or _REPORTS(first):
        return 0
    if any(english.looks_around(text) for text in texts):
        return 0
    continues = _CONTINUES.match(first) is not None
    if (is_imperative(first) or _PROPOSAL(first)) and not continues:
        return english.ENOUGH
    if orders or continues or _DISCOVERS.match(opening) or any(_TALKS(text) or _REPORTS(text) for text in texts):
        return 0
    if english.guesses(first, len(first)) or _WAS(first) or (len(texts) == 1 and first.endswith(":")):
        return 0
    return english.ENOUGH


def assigns(text: str) -> bool:
    """Whether a short message only gives a purpose its thing: "picked Y for the X", "I put Y behind the X"."""
    return len(text.split()) <= _SHORT and bool(_ASSIGNS.match(text)) and not _REPORTS(text)


def may_follow(texts: Sequence[str]) -> bool:
    """Whether a message can be what was announced as decided: it asks nothing, and does not go on to look around."""
    first = texts[0] if texts else ""
    ends = len(first.split()) < 5 or first.endswith(":") or _SPEAKS.match(first)
    return not (ends or any(english.is_question(text) or english.looks_around(text) for text in texts))


# ---- the English of failures ----

_FAILED = AnyOf(
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

redoes = AnyOf(
    r"^(?:so |then |ok(?:ay)?,? )*(?:let me|i'll|i will|i need to|need to) (?:redo|re-do|undo|revert|roll back"
    r"|back out"
    r"|start over|go back|try (?:a )?(?:different"
    r"|another))\b",
)
"""Whether a sentence announces that what the agent did just before is done another way."""

_WENT_WRONG = AnyOf(
    r"n't\b|\b(?:not|never|no|lost|loses?|broken?|fail\w*|wrong|over(?:wrote|writ\w+)|unstaged|missing|unnecessary"
    r"|useless|only|conflict\w*|corrupt\w*)\b",
)

_EXCLAIMS = AnyOf(r"(?:sorry|wait|oops|ugh|damn)\b")


_SHOWED_NOTHING = AnyOf(
    r"\b(?:does(?:n't| not)|did(?:n't| not)) (?:dump|show|list|print|display|find|return|match|include|contain|tell)\b"
)
"""Whether a sentence only says what a look did not show."""

_SUPPOSES = AnyOf(r"\b(?:if|would|could|might|may)\b")


def failed(text: str) -> bool:
    """Whether a sentence says that something was tried and why it did not work."""
    if not 6 <= len(text.split()) <= 80 or _EXCLAIMS.match(text) or english.is_question(text) or _SHOWED_NOTHING(text):
        return False
    return _FAILED(text) and not english.looks_around(text) and not _SUPPOSES(text)


def went_wrong(text: str) -> bool:
    """Whether a sentence tells what went wrong with what was done, and is no exclamation or guess."""
    return _WENT_WRONG(text) and not _EXCLAIMS.match(text) and not english.guesses(text, len(text))


# ---- the English of offers and replies ----

concedes = AnyOf(
    r"^(?:you're (?:absolutely |totally )?(?:right|correct)|good (?:point|call|catch)|fair(?: point| enough)?\b"
    r"|agreed|exactly|true\b"
    r"|(?:yes|yeah|yep|right)\b[^.]{0,60}\b(?:pointless|mistake|overkill|unnecessary|redundant|no reason|shouldn't"
    r"|leftover))",
)
"""Whether the agent's answer gives way to an objection."""

affirms = AnyOf(
    r"^(?:you're (?:absolutely |totally )?(?:right|correct)|good (?:point|call|catch|idea|thinking|insight|choice)"
    r"|exactly|agreed"
    r"|(?:that )?makes sense|that clarif|that's a (?:good|great|better|cleaner|fair)|yes[,!.]|fair (?:point|enough)"
    r"|got it|understood)",
)
"""Whether the agent's answer takes what a person stated as settled."""

agrees = AnyOf(
    r"^(?:you're (?:absolutely )?right|good (?:point|call|catch|idea|thinking|insight|choice)|got it"
    r"|makes? sense|that makes sense|agreed"
    r"|right|yes|exactly|understood|fair|sure|will do|true|that works|noted|great (?:point|idea|question)"
    r"|ok(?:ay)?|absolutely|of course"
    r"|that's a (?:good|great|better|fair))\b",
)
"""Whether the agent's answer begins by agreeing."""

recommends = AnyOf(
    r"\b(?:i(?:'d| would)? (?:suggest|recommend|propose|go with|say)|i'd (?!like|love|want|need|be|have|rather)\w+"
    r"|recommend(?:ation|ed)?|suggestion"
    r"|my (?:take|preference|vote)"
    r"|(?:seems?|is|looks) (?:the )?(?:cleanest|simplest|best|safest)|makes? sense|the (?:\w+ )?(?:fix|plan|approach"
    r"|proposal) (?:is|would be|should)"
    r"|best (?:option|approach)|better (?:option|approach|to)|simpler and)\b",
)
"""Whether a sentence puts one of several ways forward as the better one."""

_OFFER = regex(
    r"(?:want me to|would you like me to|do you want me to|want to|should (?:i|we)|shall (?:i|we)|i can|okay if i"
    r"|ok to)\s+(?:go ahead and |also |now )?"
    r"([^?]{12,})\??",
    re.I,
)

_ROUTINE_OFFER = AnyOf(
    r"^(?:commit|push|merge|approve|run|continue|move on|proceed|start|check|look|show|go|do (?:it|that|this)"
    r"|help|explain|dig)\b",
)

_VAGUE_OFFER = AnyOf(
    r"^(?:\w+ )?(?:ahead and )?\w+ (?:it|this|that|them|these|those|both|either)(?: (?:up|here|there|now|as well"
    r"|too|all))*\W*$",
)


def offer(text: str) -> str:
    """What a question such as "Want me to …?" offers to do, without the question; "" if routine, vague or none."""
    match = _OFFER.search(text)
    if match is None or _ROUTINE_OFFER.match(match[1]) or _VAGUE_OFFER.match(match[1].rstrip("?")):
        return ""
    return match[1].strip().rstrip("?").strip()


# ---- decisions in a message ----

_SHORT_MESSAGE = 190  # words up to which a message with a decision in it is about that decision only

_MOST = 4  # decisions of one message


_WEIGHS = AnyOf(
    r"\b(?:choices?|decision|options|candidates|question|alternatives) (?:here )?(?:is|are|was|were) (?:between"
    r"|whether|which)\b"
)
"""Whether a sentence says between what is to be chosen: the choice comes behind it."""


def agent_decisions(message: Message, before: Message | None = None) -> Made:
    """The decisions in a message of the agent, with their scores; `before`: what it said right before."""
    own = messages.own_sentences([s for s in message.said if s.kind != "heading"])
    said = [s for s in messages.behind_place(own) if not _WEIGHS(s.text)]
    if not said:
        return []
    edits = message.does == "edits"
    words = sum(len(s.text.split()) for s in said)
    announced, rest = messages.without_lead_in(said)
    whole = 0
    if words <= _SHORT_MESSAGE + 60 and not messages.says_place(own):  # a step's work is no design
        led = bool(rest) and rest[0] is not said[0] and messages.reacts(said[0].text)
        whole = _states(rest, announced=announced, led=led)
        said = rest if whole and (announced or len(rest) < len(said)) else said  # "the index: B" keeps its subject
        whole = whole or _states(said)
    made: Made = []
    taken: set[int] = set()
    better: dict[int, int] = {}
    again = _done_again(message, said)
    if again is not None:
        return [(english.ENOUGH, again, [message])]
    for place, sentence in enumerate(said):
        if sentence.paragraph in taken:
            continue
        grounds = _grounds(said, place)
        if len(said) == 1 and edits and before is not None:
            grounds = _grounds(before.said, len(before.said))  # "First fix — scope it to …:", after what was found
        if failed(sentence.text):
            taken.add(sentence.paragraph)
            made.append((english.ENOUGH, _failure(sentence.text, around(said, sentence, REASON_WORDS)), [message]))
            continue
        states = bool(whole) and place == 0
        if sentence.text.endswith(":") and not edits and not states and not english.chooses(sentence.text):
            continue  # what follows it is not here
        score = max(_score(said, place, edits=edits, grounded=bool(grounds)), whole if place == 0 else 0)
        if score < english.ENOUGH:
            made += [(score, Decision(decision=sentence.text), [message])] if score > 0 else []
            continue
        if not states and _best_after(said, place, better, edits=edits) > score - edits:
            continue  # the next sentence says it outright
        taken.add(sentence.paragraph)
        outright = words <= _SHORT_MESSAGE and sentence.kind == "text" and english.chooses(sentence.text) and not edits
        if states or outright:
            text, reason, options = _whole(said, place)
            taken.update(s.paragraph for s in said[place:])
        else:
            text = clip(sentence.text.rstrip(":"), DECISION_WORDS)
            reason = _reason(text, grounds, said, place, alone=len(said) == 1)
            options = tuple(english.rejected(text))
        made.append((score, Decision(decision=text, rationale=reason, alternatives=options, origin="agent"), [message]))
    enough = [one for one in made if one[0] >= english.ENOUGH]
    return [one for one in made if one[0] < english.ENOUGH] + sorted(enough, key=lambda one: -one[0])[:_MOST]


def _states(said: Sequence[Sentence], *, announced: bool = False, led: bool = False) -> int:
    """The score of a short message that states how something is to be, as a whole."""
    texts = [s.text for s in said if s.kind == "text"]
    if len(said) == 1 and assigns(said[0].text):
        return english.ENOUGH
    if announced and may_follow([s.text for s in said]) and said[0].kind == "text":
        return english.ENOUGH + 1
    return states_design(texts, orders=led)


def _done_again(message: Message, said: Sequence[Sentence]) -> Decision | None:
    """What the agent found wrong with what it did before it does it again another way."""
    for place, sentence in enumerate(said if message.does else ()):
        grounds = _grounds(said, place) if redoes(sentence.text) else []
        if grounds and went_wrong(grounds[-1]) and not _SHOWED_NOTHING(grounds[-1]):
            return _failure(joined([grounds[-1], sentence.text.rstrip(":")]), join(grounds[:-1], REASON_WORDS))
    return None


def _score(said: Sequence[Sentence], place: int, *, edits: bool, grounded: bool) -> int:
    sentence = said[place]
    return english.agent_score(sentence.text, item=sentence.kind == "item", edits=edits, grounded=grounded)


def _best_after(said: Sequence[Sentence], place: int, known: dict[int, int], *, edits: bool) -> int:
    """The best score of the sentences that follow in the same paragraph, 0 if none; `known`: those found before."""
    if place not in known:
        end = place + 1
        while end < len(said) and said[end].paragraph == said[place].paragraph:
            end += 1
        best = 0
        for later in reversed(range(place + 1, end)):
            known[later] = best
            best = max(best, _score(said, later, edits=edits, grounded=bool(_grounds(said, later))))
        known[place] = best
    return known[place]


def _failure(text: str, reason: str) -> Decision:
    text = clip(text, DECISION_WORDS)
    return Decision(kind="failed-approach", decision=text, rationale=reason, origin="agent")


def _grounds(said: Sequence[Sentence], place: int) -> list[str]:
    """The statements right before a sentence, which tell how things are."""
    grounds: list[str] = []
    for sentence in reversed(said[max(0, place - 3) : place]):
        text = sentence.text
        if sentence.kind == "item" and (place == len(said) or sentence.paragraph != said[place].paragraph):
            break
        if len(text.split()) < 4 or english.is_question(text) or english.looks_around(text) or english.is_status(text):
            break
        grounds.insert(0, text)
    return grounds


def _reason(text: str, grounds: Sequence[str], said: Sequence[Sentence], place: int, *, alone: bool) -> str:
    """Why it is so: what stands beside it in its message, else the ground right before it. One that stands in the
    message before (`alone`) counts only where it names the same thing.
    """
    beside = around(said, said[place], REASON_WORDS)
    names = {*_NAME.findall(text)}
    told = [
        one
        for one in grounds[-2:]
        if not one.endswith(":")
        and standing.unannounced(one) == standing.without_opening(one)
        and (not alone or names & {*_NAME.findall(one)})
    ]
    return join([*told, beside], REASON_WORDS)


_NAME = regex(r"`[^`]+`")


def _whole(said: Sequence[Sentence], place: int) -> tuple[str, str, tuple[str, ...]]:
    """Decision, reason and rejected options of a short message that is about one decision."""
    told = [s for s in said[place:] if not english.looks_around(s.text) and not s.text.endswith("?")]
    rest = told[len(told) > 1 and english.is_lead_in(told[0].text) :] or [said[place]]
    options: list[str] = []
    chosen: list[str] = []
    reasons: list[str] = []
    section = chosen
    for number, sentence in enumerate(rest):
        text = sentence.text
        opens = messages.lead_in_section(text) if number else ""
        if opens == "rejected":
            section = options
        elif section is not options and sentence.kind == "item" and not opens and section is reasons:
            continue  # what is listed tells more, not why
        elif opens == "reason" or (section is chosen and (opens or sentence.paragraph != rest[0].paragraph)):
            section = reasons
        section.append(text)
        if section is chosen and sum(len(t.split()) for t in chosen) >= DECISION_WORDS - 10:
            section = reasons
    before = [s.text for s in said[:place] if english.gives_reason(s.text) and not english.looks_around(s.text)]
    text = clip(joined(chosen) or said[place].text, DECISION_WORDS + 10)
    rejected = [clip(joined(options), REASON_WORDS + 5)] if options else english.rejected(text)
    room = REASON_WORDS + 8 if options else 2 * REASON_WORDS
    reasons = [one for one in (*before[-2:], *reasons) if not one.endswith(":")]
    return text, join(reasons, room), tuple(rejected)


# ---- verdicts of a review ----

_FINDING = AnyOf(r"^(?:issue |finding |comment |item )?#?\d{1,2}[.):]\s+\S")

_VERDICT = AnyOf(
    r"\b(?:not blocking|non-?blocking|non-?issue|no (?:action|change|fix) (?:is )?needed|not actionable|won't fix"
    r"|wontfix)\b",
    r"\b(?:fine (?:as is|given|because|since|here)|(?:is|are) (?:fine|acceptable|intentional)|by design"
    r"|false positive)\b",
    r"\b(?:should|must|needs? to) (?:also |still |just |then |not |only )*(?:be )?\w+(?:ed|en|e)\b|\bbefore merging\b",
    r"^(?:accept|reject|agree|disagree|skip|defer|decline|fix(?:ed)?|keep|valid|valid point|suggestion)(?:ed|d"
    r"|s)?\b\W",
)


_STAYS = AnyOf(
    r"\b(?:not blocking|non-?blocking|non-?issue|no (?:action|change|fix) (?:is )?needed|not actionable|won't fix"
    r"|wontfix|fine (?:as is|given|because|since|here)|(?:is|are) (?:fine|acceptable|intentional)|by design"
    r"|false positive)\b",
)
"""Whether a verdict leaves the code as it is: that holds for whoever goes on."""


def verdicts(message: Message) -> Made:
    """The findings of a review with a verdict, with their scores; nothing where a message is no such list."""
    parts = [part for part in _findings(message.said) if len(part) > 1]
    judged = [(part, verdict) for part in parts if (verdict := _verdict(part)) is not None]
    if len(parts) < 2 or len(judged) < 2:
        return []
    made: Made = []
    for part, verdict in judged[:_MOST]:
        title = re.sub(r"^\W*\d{1,2}[.):]\s+", "", part[0].text).rstrip(":.")
        text = clip(f"{title}: {verdict.text}", DECISION_WORDS)
        behind = [s.text for s in part[1:] if s is not verdict and not (s.text.endswith(":") and " " not in s.text)]
        rest = [one for one in behind if not english.guesses(one, len(one))]
        status = "active" if _STAYS(verdict.text) else "done"
        decision = Decision(decision=text, rationale=join(rest, room_beside(text)), status=status, origin="agent")
        made.append((english.ENOUGH, decision, [message]))
    return made


def _verdict(part: Sequence[Sentence]) -> Sentence | None:
    judges = (one for one in part[1:] if _VERDICT(one.text) and not english.is_question(one.text))
    return next((one for one in judges if not english.guesses(one.text, len(one.text))), None)


def _findings(said: Sequence[Sentence]) -> list[list[Sentence]]:
    """The findings: each numbered heading with what stands below it."""
    parts: list[list[Sentence]] = []
    inside = False
    for sentence in said:
        if sentence.kind == "heading":
            inside = bool(_FINDING.match(sentence.text))
            if inside:
                parts.append([sentence])
        elif inside:
            parts[-1].append(sentence)
    return parts
