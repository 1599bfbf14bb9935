"""Lead-ins: what a message says before what it decides ("OK, that settles it."), before a reason, a rejected option."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ralf.prose import Sentence
from ralf.summarizers.grammar import any_of, content_words, is_question, is_status, looks_around, narrates

_MOST_WORDS = 10
_CLAUSE = re.compile(r"([^:`]{2,70}):\s+(?=\S)")
_DECIDES = any_of(
    r"\b(?:decid|decision|settl|conclu|verdict|(?<!-)commit(?:ted|ting)? (?:to|on)|resolv|resolution|choice|choos"
    r"|chose|pick|opt(?:ed|ing)?\b|agree|design|direction|approach|way (?:forward|to go)|policy|convention|landed"
    r"|go with|going with|went with|going ahead|final (?:answer|call|word)|my (?:call|take|mind|pick)|the plan"
    r"|what (?:we|i)(?:'re|'ll|'m| are| will| am)? (?:do|doing|use|build))\w*"
)
_REPORTS = any_of(
    r"\b(?:issue|problem|bug|cause|result|output|error|status|summary|finding|found|fail\w*|tests?|diff|logs?|fix\w*"
    r"|changes?|update[sd]?|question|example|steps?|todo|theory|hypothesis|option|conflict\w*|reason|because|why"
    r"|insight|difference|risk|concern|caveat|note that|symptom|review|comment\w*|suggestion|alternativ\w*)s?\b"
)
_CONCRETE = re.compile(r"[`/\d_]|\w\.\w|[a-z][A-Z]|\w\(\)")


_REACTS = any_of(
    r"\b(?:it|that|this|there|these|those|he|she|they|is|are|was|were|\w+ed|either|or|yes|yeah|yep|no|nope|right"
    r"|sure|likely|probably|same)\b|!|'s\b|\.\.\.|…"
)
_OTHERS = any_of(
    r"\b(?:alternativ\w*|options?|candidates?|contenders?|competitors?|reject\w*|discard\w*|declin\w*|dismiss\w*"
    r"|turned down|rul(?:ed|ing) out|consider\w*|weigh\w*|look(?:ed)? (?:at|into)|instead|rather than"
    r"|los(?:t|e|es|er|ing)|beat|beaten|runner|second (?:best|place|choice)|second-best"
    r"|not (?:taken|chosen|picked|done|adopted|used|this)|left out"
    r"|pass(?:ed)? (?:on|over|up)|(?:could|might) (?:also |just )?have|others?|against|on the table|road|versus"
    r"|did(?:n't| not)|thrown out|set aside|shelved|in the running|tempting|thought about)\b"
)
_GROUNDS = any_of(
    r"\b(?:reason\w*|why|because|rationale|motivat\w*|grounds?|since|background|justif\w*|arguments?|benefits?|due"
    r"|what (?:tipped|speaks|spoke|made|decided|drove|drives|convinced)|the point|context|so that|what for)\b"
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


# "Step 3 of 10:", "Phase 2 is done."
_PLACE = re.compile(
    r"(?:now )?(?:step|phase|stage|part|task|milestone|iteration|round) #?\d+(?: ?(?:of|/) ?\d+)?"
    r"(?:,? (?:is |was )?(?:now )?(?:done|complete|completed|finished))?(?: ?[.:,]| [-\u2013\u2014]|$) ?",
    re.IGNORECASE,
)


def section(text: str) -> str:
    """What a sentence opens: "rejected" options, the "reason", "more" of what its lead-in does not name, or ""."""
    if _LABEL_REJECTED.found(text):
        return "rejected"
    clause = _CLAUSE.match(text)
    head = clause[1] if clause else text
    if len(head.split()) > _MOST_WORDS or _CONCRETE.search(head):
        return "reason" if _LABEL_REASON.found(text) else ""
    if (clause or len(head.split()) < _MOST_WORDS - 1) and _OTHERS.found(head):
        return "rejected"
    if _LABEL_REASON.found(text) or ((clause or is_question(head)) and _GROUNDS.found(head)):
        return "reason"
    return "more" if clause and is_lead(head) else ""


def without(said: Sequence[Sentence]) -> tuple[bool, list[Sentence]]:
    """The sentences of a message without its lead-in, and whether that announces a decision."""
    if not said:
        return False, []
    first, rest = said[0], list(said[1:])
    clause = _CLAUSE.match(first.text)
    if clause is not None and is_lead(clause[1]):
        return announces(clause[1]), [replace(first, text=first.text[clause.end() :]), *rest]
    if rest and rest[0].kind == "text" and is_lead(first.text):
        return announces(first.text), rest
    return False, list(said)


def says_place(said: Sequence[Sentence]) -> bool:
    """Whether a message begins by saying at which step of its plan the agent is: what follows is that step's work."""
    return bool(said) and bool(_PLACE.match(said[0].text))


def behind_place(said: Sequence[Sentence]) -> list[Sentence]:
    """The sentences of such a message without that; of any other, all."""
    place = _PLACE.match(said[0].text) if said else None
    if place is None:
        return list(said)
    first = replace(said[0], text=said[0].text[place.end() :])
    return [first, *said[1:]] if first.text else list(said[1:])


def is_lead(text: str) -> bool:
    """Whether a clause has no content of its own: short, it names nothing, and reports nothing."""
    if len(text.split()) > _MOST_WORDS or _CONCRETE.search(text) or _REPORTS.found(text) or is_question(text):
        return False
    if looks_around(text) or is_status(text):
        return False
    return announces(text) or (len(content_words(_plain(text))) <= 2 and not narrates(text))


def reacts(text: str) -> bool:
    """Whether a lead-in speaks of what was just seen ("Caught it."): what follows may be what was seen."""
    return bool(_REACTS.found(text.split(":")[0]))


def announces(text: str) -> bool:
    """Whether a clause says that something is decided, and not what."""
    if not _DECIDES.found(text) or _REPORTS.found(text):
        return False
    return len(content_words(_plain(_DECIDES.sub("", text)))) <= 2


def _plain(text: str) -> str:
    return text[:1].lower() + text[1:]
