"""Links decisions over time: what is said again is one record, what is replaced or taken back is marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ralf.model import MOST_SOURCES, Decision
from ralf.summarizers.grammar import any_of

_REPLACED = re.compile(
    r"\b(?:instead of|no longer|rather than|away from|moves? from|moved from|switch(?:ed|ing)? from|dropping"
    r"|dropped|drop"
    r"|replac(?:e|es|ed|ing)|abandon(?:ed|ing)?|revert(?:ed|ing)?|undo|scrap|back out|remov(?:e|ed|ing)|not)\s+"
    r"(?:the |our |using |use )?([\w.+#/`-]+(?: [\w.+#/`-]+){0,3})",
    re.I,
)
_CHANGE = any_of(
    r"\b(?:instead|no longer|now|moves?|moved|switch\w*|drop\w*|replac\w+|abandon\w*|revert\w*|changed? (?:our"
    r"|my) minds?"
    r"|on (?:reflection|second thou?ghts?)|after all|back to|from here on|from now on|scrap|undo|roll(?:ed|ing)? back"
    r"|actually|change of (?:plan|mind)|turn(?:s|ed) out)\b",
)
_TAKES_BACK = any_of(
    r"\b(?:revert(?:ed|ing)?|undo|undone|roll(?:ed|ing|s)? (?:it |that |this |them )?back|back(?:ed|ing)? out|scrap(?:ped)?"
    r"|never ?mind|forget (?:it|that|about|the)|take (?:that|it) back|drop (?:that|it|this|the idea))\b",
)
_PUTS_INSTEAD = any_of(r"\b(?:instead|use|go with|switch|replace|rather|back to|we now|now we)\b")
_WORD = re.compile(r"[a-z0-9_+#]{2,}")
_ENDING = re.compile(r"(?<=\w{4})(?:ing|ed|es|s)$")
_EMPTY = re.compile(
    r"the|and|for|with|that|this|us(?:e|es|ing|ed)|now|instead|not|from|our|are|was|will|should|have|has|its|can|into|decision"
    r"|decided|longer|here|of|we|it|is|to|in|on|as|by|be|or|an|at|go|goes|runs?|let|lets|do|so|but|just|also|please|yes|yeah"
    r"|because|since|so|change[sd]?|mind|minds|plan|reflection|actually|decide|chose|choose|choice|pick|switch(?:es|ed|ing)?"
    r"|mov(?:e|es|ed|ing)|drop(?:s|ped|ping)?|replac(?:e|es|ed|ing)|keep|stay|turned|out|ok|okay|ll|re|ve|me|my|you|your|need|needs|make|after|all|back|then|than|rather|no|new"
)
_REASON = re.compile(r"\b(?:because|since|so that|as it|to avoid|in order to)\b|(?<=\w)[.;] ", re.I)
_SLOT = 9  # content words: in more, one other word is no other choice


def linked(found: Sequence[Decision], known: Sequence[Decision] = ()) -> list[Decision]:
    """The found decisions, oldest first, linked to each other and to the route's `known` active ones.

    A decision that was said before is no new one: its source goes to the one that it repeats, which, where that is a
    known one, stands in the list again under its label. What is replaced or taken back is marked so if it was found
    here too; it is named by its label, or as `#n`, the nth of the list, until the route gives it one.
    """
    out: list[Decision] = []
    retold: dict[str, int] = {}  # labels of known decisions that are in `out`, and where
    for new in found:
        again = next((n for n in reversed(range(len(out))) if _is_open(out[n]) and _restates(new, out[n])), None)
        if again is not None:
            out[again] = _told_again(out[again], new)
            continue
        old = next((one for one in reversed(known) if one.id not in retold and one.id and _restates(new, one)), None)
        if old is not None:
            retold[old.id] = len(out)
            out.append(_told_again(old, new))
            continue
        here = next((n for n in reversed(range(len(out))) if _is_open(out[n]) and _replaces(new, out[n])), None)
        if here is None and _only_takes_back(new) and out and _is_open(out[-1]) and out[-1].kind == "decision":
            here = len(out) - 1
        if here is not None:
            label = f"#{len(out) + 1}"
            out[here] = replace(out[here], status=_status(new), superseded_by=label)
            out.append(replace(new, supersedes=out[here].id or f"#{here + 1}"))
            continue
        older = next((one for one in reversed(known) if one.id and one.id not in retold and _replaces(new, one)), None)
        if older is not None and _status(new) == "reversed":
            out.append(replace(older, status="reversed"))
            retold[older.id] = len(out) - 1
        out.append(replace(new, supersedes=older.id) if older is not None else new)
    return out


def replaced_terms(text: str) -> list[set[str]]:
    """What a sentence says it turns away from: for each mention, its first content word and those that follow."""
    return [words for match in _REPLACED.finditer(text) if (words := _words(match[1]))]


def _words(text: str) -> set[str]:
    return {_ENDING.sub("", word) for word in _WORD.findall(text.lower()) if not _EMPTY.fullmatch(word)}


def _affirmed(text: str) -> set[str]:
    """The words of a decision without those of what it turns away from."""
    words = _words(text)
    return words.difference(*replaced_terms(text)) or words


def _is_open(decision: Decision) -> bool:
    return decision.status == "active"


def _status(new: Decision) -> str:
    taken_back = _TAKES_BACK.search(new.decision) and not _PUTS_INSTEAD.search(new.decision)
    return "reversed" if taken_back else "superseded"


def _only_takes_back(new: Decision) -> bool:
    """Whether a person says no more than "undo that": it means what was decided right before."""
    return new.origin == "user" and bool(_TAKES_BACK.search(new.decision)) and len(_words(new.decision)) <= 2


# ---- the same again ----


def _restates(new: Decision, old: Decision) -> bool:
    """Whether a decision says nothing that the older one does not: the same words, or one within the other."""
    if (new.kind == "failed-approach") != (old.kind == "failed-approach"):
        return False
    words, before = _affirmed(new.decision), _affirmed(old.decision)
    least = min(len(words), len(before))
    if least >= 3 and min(len(words - before), len(before - words)) <= least // 7:
        return not _TAKES_BACK.search(new.decision) or bool(_TAKES_BACK.search(old.decision))
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


def _replaces(new: Decision, old: Decision) -> bool:
    if (old.kind == "rule" and new.origin != "user") or old.kind == "failed-approach" or new.kind == "failed-approach":
        return False
    if not _CHANGE.search(new.decision):
        return False
    before, words, chosen = _words(old.decision), _words(new.decision), _affirmed(old.decision)
    shared = before & words
    terms = replaced_terms(new.decision)
    named = any(len(term & chosen) * 2 >= len(term) for term in terms)
    if named and len(shared) >= 3 and len(shared) * 2 >= min(len(before), len(words)):
        return True
    if named and len(before) <= 2 and before <= words:
        return True
    # Not named: the same said of the same thing, with another word in one place.
    before, words = _words(_REASON.split(old.decision)[0]), _words(_REASON.split(new.decision)[0])
    other, instead = before - words, words - before
    return (
        len(before & words) >= 2
        and 1 <= len(other) <= 2
        and 1 <= len(instead) <= 3
        and max(len(before), len(words)) <= _SLOT
    )
