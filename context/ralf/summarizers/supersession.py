"""Links decisions over time: what is said again is one record, what is replaced or taken back is marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from ralf.model import MOST_SOURCES, Decision, Tombstone
from ralf.summarizers.directives import leans
from ralf.summarizers.grammar import any_of, content_words, takes_back
from ralf.summarizers.replacing import affirmed, alike, may_replace, phrases, replaced_terms, replaces
from ralf.tombstones import cover

_CHANGE = any_of(
    r"\b(?:instead|no longer|now|moves?|moved|switch\w*|drop\w*|replac\w+|abandon\w*|revert\w*|changed? (?:our"
    r"|my) minds?"
    r"|on (?:reflection|second thou?ghts?)|after all|back to|from here on|from now on|scrap|undo|roll(?:ed|ing)? back"
    r"|actually|change of (?:plan|mind)|turn(?:s|ed) out)\b",
)
_PUTS_INSTEAD = any_of(r"\b(?:instead|use|go with|switch|replace|rather|back to|we now|now we)\b")
_REASON = re.compile(r"\b(?:because|since|so that|as it|to avoid|in order to)\b|(?<=\w)[.;] ", re.I)
_NEAR = 60  # lines of a transcript: some turns
_SLOT = 9  # content words: in more, one other word is no other choice
_MANY = 8  # content words, of which three quarters make two sentences that follow each other the same
_BY_SUBJECT = 30  # the score from which a decision replaces another by what both are about, whatever the verb


def linked(
    found: Sequence[Decision],
    known: Sequence[Decision] = (),
    said: Sequence[Decision] = (),
    dropped: Sequence[Tombstone] = (),
) -> list[Decision]:
    """The found decisions, oldest first, linked to each other and to the route's `known` active ones.

    said     short messages as a whole: each counts only where it puts another thing in the place of what was decided
    dropped  tombstones: what lies under them is not found, and what only repeats it is not either

    A decision that was said before is no new one: its source goes to the one that it repeats, which, where that is a
    known one, stands in the list again under its label. What is replaced or taken back is marked so if it was found
    here too; it is named by its label, or as `#n`, the nth of the list, until the route gives it one.
    """
    out: list[Decision] = []
    retold: set[str] = set()  # labels of known decisions that stand in `out`
    buried: list[Decision] = []
    told: dict[int, frozenset[str]] = {}  # lines of messages that replace something as a whole, with their words
    candidates = sorted(
        [*((1, one) for one in found), *((0, one) for one in said)], key=lambda one: (_line(one[1]), one[0])
    )
    for listed, new in candidates:
        if not listed and not may_replace(new.decision):
            continue
        if content_words(new.decision) <= told.get(_line(new), frozenset()):
            continue  # a part of it
        if cover(dropped, new):
            buried.append(new)
            continue
        known_still = [one for one in known if one.id and one.id not in retold]
        pool = [
            (_replaced_by(new, one), n, one)
            for n, one in enumerate([*known_still, *out])
            if _is_open(one) and _related(new, one)
        ]
        score, place, old = max(pool, key=lambda one: one[:2], default=(0, 0, new))
        if not listed:
            if score < _BY_SUBJECT:
                continue
            told[_line(new)] = content_words(new.decision)
        elif score < _BY_SUBJECT:
            here = next((n for n in reversed(range(len(out))) if _is_open(out[n]) and _repeats(new, out[n])), None)
            if here is not None:
                out[here] = _told_again(out[here], new)
                continue
            if any(_repeats(new, one) for one in buried):
                continue
            before = next((one for one in reversed(known_still) if _repeats(new, one)), None)
            if before is not None:
                retold.add(before.id)
                out.append(_told_again(before, new))
                continue
        if not score:
            out.append(new)
            continue
        label = f"#{len(out) + 1}"
        if place >= len(known_still):
            here = place - len(known_still)
            out[here] = replace(old, status=_status(new, score), superseded_by=label)
            old = replace(old, id=old.id or f"#{here + 1}")
        elif _status(new, score) == "reversed":
            retold.add(old.id)
            out.append(replace(old, status="reversed", superseded_by=f"#{len(out) + 2}"))
        out.append(replace(new, supersedes=old.id))
    return out


def _same_subject(new: Decision, old: Decision) -> bool:
    return bool(phrases(new.decision) & phrases(old.decision))


def _one_message(new: Decision, old: Decision) -> bool:
    if new.source is None or old.source is None:
        return False
    return (new.source.session, new.source.first_line) == (old.source.session, old.source.first_line)


def _line(decision: Decision) -> int:
    return decision.source.first_line if decision.source is not None else 0


def _related(new: Decision, old: Decision) -> bool:
    """Whether two decisions have words enough in common to be compared at all; "undo that" has none of its own."""
    words = content_words(new.decision)
    if len(words) <= 2:
        return True
    before = content_words(old.decision)
    shared = len(words & (before | content_words(old.rationale)))
    return shared >= 2 or (shared == 1 and len(before) <= 3)


def _repeats(new: Decision, old: Decision) -> bool:
    return _related(new, old) and _restates(new, old)


def _is_open(decision: Decision) -> bool:
    return decision.status == "active"


def _near(new: Decision, old: Decision) -> bool:
    if new.source is None or old.source is None or new.source.session != old.source.session:
        return False
    return 0 < new.source.first_line - old.source.first_line <= _NEAR


def _status(new: Decision, score: int) -> str:
    if score >= _BY_SUBJECT or _PUTS_INSTEAD.search(new.decision):
        return "superseded"
    return "reversed" if takes_back(new.decision) else "superseded"


# ---- the same again ----


def _restates(new: Decision, old: Decision) -> bool:
    """Whether a decision says nothing that the older one does not: the same words, or one within the other."""
    if (new.kind == "failed-approach") != (old.kind == "failed-approach"):
        return False
    words, before = affirmed(new.decision), affirmed(old.decision)
    least = min(len(words), len(before))
    if alike(words, before):
        return not takes_back(new.decision) or takes_back(old.decision)
    if least >= _MANY and len(words & before) * 4 >= least * 3 and new.origin == old.origin and _near(new, old):
        return not takes_back(new.decision) or takes_back(old.decision)
    if len(words) >= 2 and words <= before and _near(new, old) and leans(new.decision):
        return not takes_back(new.decision)  # "let's do this as a separate one"
    # What the agent made of a person's words stands beside them already.
    said, beside = (" ".join(text.lower().split()) for text in (new.decision, old.rationale))
    about = len(before) < 4 or len(words & before) >= 2
    return new.origin == "agent" and about and len(words) >= 3 and said.rstrip(".:") in beside


def _told_again(old: Decision, new: Decision) -> Decision:
    sources = [old.source, *old.further_sources]
    further = old.further_sources
    if new.source is not None and new.source not in sources:
        further = (*further, new.source)[: MOST_SOURCES - 1]
    return replace(
        old,
        pinned=old.pinned or new.pinned,
        rationale=old.rationale or new.rationale,
        alternatives=old.alternatives or new.alternatives,
        further_sources=further,
    )


# ---- another instead ----


@lru_cache(maxsize=2048)
def _changes(text: str) -> bool:
    return bool(_CHANGE.search(text))


@lru_cache(maxsize=2048)
def _chosen(text: str) -> frozenset[str]:
    """The words of a decision without its reason."""
    return content_words(_REASON.split(text)[0])


def _replaced_by(new: Decision, old: Decision) -> int:
    """How clearly a decision puts itself in the place of the older one; 0 where it does not."""
    if "failed-approach" in (new.kind, old.kind) or (old.kind == "rule" and new.origin != "user"):
        return 0
    before, words, chosen = content_words(old.decision), content_words(new.decision), affirmed(old.decision)
    if not _one_message(new, old) and replaces(new.decision, old.decision):
        return _BY_SUBJECT + 10 * len(before & words) // max(len(before), 1)
    if new.origin == "user" and takes_back(new.decision) and len(words) <= 2:
        return int(_near(new, old)) + len(before & words)  # "undo that": what was decided right before
    if not _changes(new.decision):
        return 0
    shared = before & words
    named = any(len(term & chosen) * 2 >= len(term) for term in replaced_terms(new.decision))
    if named and (
        (len(shared) >= 3 and len(shared) * 2 >= min(len(before), len(words)) and _same_subject(new, old))
        or (len(before) <= 2 and before <= words)
    ):
        return 20 + len(shared)
    # Not named: the same said of the same thing, with another word in one place.
    before, words = _chosen(old.decision), _chosen(new.decision)
    other, instead = before - words, words - before
    alike = len(before & words) >= 2 and 1 <= len(other) <= 2 and 1 <= len(instead) <= 3
    return 10 + len(before & words) if alike and max(len(before), len(words)) <= _SLOT else 0
