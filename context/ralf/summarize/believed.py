"""What of a model's answer is believed: what names only what the route has seen, and what it may change."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ralf.facts import handover as handovers
from ralf.facts.grounding import Evidence
from ralf.model import SHA256_DIGITS, Decision, HandOver, Source
from ralf.summarize.answer import MOST_HANDED_OVER, Curation, NewDecision, Patch, Rewording
from ralf.summarize.listed import Listed
from ralf.text.cleaning import one_line, trimmed
from ralf.text.sentences import Support, is_denial, split
from ralf.transcripts.events import EvidenceLine

MARGIN = 3
"""Messages up to the line that a model names, and behind it: an answer is understood by its question."""

PROSE = ("user", "assistant")

MOST_DECISIONS = 12  # new ones of one segment: a model that finds more is not choosing

SPOKEN, ELSEWHERE = 0.3, 0.5
"""Share of a decision's words that what was said near the named line has to have, or one message anywhere else."""

BORNE = 0.5
"""Share of a reworded rule's words that the user has to have said."""

SAME = 0.8  # share of the words of another decision: says the same


# ---- the messages of a segment ----


class Lines:
    """The events of a segment by their lines in the transcript."""

    def __init__(self, lines: Iterable[EvidenceLine], *, imported: bool = False) -> None:
        """imported  a document's: nobody here said them, so that its notes count as messages"""
        self._prose = (*PROSE, "note") if imported else PROSE
        said = (line for line in lines if line.kind in (*self._prose, "call") and line.text.strip())
        self._said: Sequence[EvidenceLine] = sorted(said, key=lambda line: (line.line, line.last))
        self.messages = [line for line in self._said if line.kind in self._prose]
        self._starts = [line.line for line in self._said]
        self._words: dict[int, Support] = {}

    def near(self, line: int) -> Sequence[EvidenceLine]:
        """What was said and called around a line, up to `MARGIN` messages on both sides."""
        if not self._said or not self._starts[0] <= line <= self._said[-1].last:
            return []
        at = bisect_right(self._starts, line)
        start = self._reached(range(at - 1, -1, -1))
        stop = self._reached(range(at, len(self._said))) if at < len(self._said) else at - 1
        return self._said[start : stop + 1]

    def _reached(self, places: range) -> int:
        """The last place on a way that takes in `MARGIN` messages."""
        left = MARGIN
        for place in places:
            left -= self._said[place].kind in self._prose
            if not left:
                return place
        return places[-1]

    def source_of(self, text: str, line: int, *, only: str = "") -> EvidenceLine | None:
        """The message that says what a decision says: the one at a line, or the one near it that says most of it, where
        all that was said and called there bears the words out; else one that surely says it; None for none.

        only  a message of this kind, which has to bear the words out by itself
        """
        near = self.near(line)
        found = [message for message in near if message.kind in self._prose and only in ("", message.kind)]
        if only:
            best, share = self._best(found, text)
            return best if share >= SPOKEN else None
        if found and Support([one.text for one in near]).share(text) >= SPOKEN:
            at_it = (message for message in reversed(found) if message.line <= line <= max(message.last, message.line))
            return next(at_it, None) or self._best(found, text)[0]
        best, share = self._best(self.messages, text)
        return best if share >= ELSEWHERE else None

    def _best(self, messages: Sequence[EvidenceLine], text: str) -> tuple[EvidenceLine | None, float]:
        """The message that has most of a text's words, of two the later one, and their share."""
        shares = [(self._said_by(message).share(text), place) for place, message in enumerate(messages)]
        share, place = max(shares, default=(0.0, -1))
        return (messages[place], share) if messages else (None, 0.0)

    def _said_by(self, message: EvidenceLine) -> Support:
        """A message's words, which are counted once: many decisions are looked for among many messages."""
        known = self._words.get(id(message))
        if known is None:
            known = self._words[id(message)] = Support([message.text])
        return known


# ---- what is left of an answer ----


@dataclass(frozen=True, slots=True)
class Amendment:
    """What becomes of a listed decision. `replaced_by`: a label, or `#n` for the nth of the new decisions.

    status  "" where it stays; `decision`, `rationale`, `alternatives`: None where they stay
    """

    id: str
    status: str = ""
    replaced_by: str = ""
    decision: str | None = None
    rationale: str | None = None
    alternatives: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Believed:
    """What is left of an answer.

    closed    next steps, blockers, findings and errors that are over, by kind
    verdicts  how many items got which one; those of which nothing was said count as `unmentioned`
    unborne   sentences that were left out, each with what it names that stands nowhere
    refused   what else was not done, and why, a line each
    """

    title: str = ""
    handover: HandOver = field(default_factory=HandOver)
    decisions: tuple[Decision, ...] = ()
    amendments: tuple[Amendment, ...] = ()
    closed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    verdicts: Mapping[str, int] = field(default_factory=dict)
    unborne: tuple[tuple[str, tuple[str, ...]], ...] = ()
    refused: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.handover or self.decisions or self.amendments or any(self.closed.values()) or self.title)

    @property
    def kept(self) -> int:
        """Items and sentences that are believed."""
        handover = self.handover
        said = [handover.goal, handover.state, *(one for name in handovers.LISTS for one in getattr(handover, name))]
        changed = sum(map(len, self.closed.values())) + len(self.amendments)
        return len(list(filter(None, [self.title, *said]))) + len(self.decisions) + changed

    @property
    def unsupported(self) -> int:
        """What was not believed."""
        return len(self.unborne) + len(self.refused)


def believed(
    patch: Patch,
    lines: Lines,
    evidence: Evidence,
    listed: Listed,
    *,
    session: str,
    timestamp: str,
    imported: bool = False,
) -> Believed:
    """What of a patch is believed.

    lines     the segment's; `evidence`: all that the route has seen, the segment included
    listed    the items that the model was shown
    session   of the segment; `timestamp`, its end: where new decisions come from
    imported  the lines are a document's: nobody here said them, so the origin of each decision is "import"
    """
    return _Judge(lines, evidence, listed, session, timestamp, imported).of(patch)


class _Judge:
    def __init__(
        self, lines: Lines, evidence: Evidence, listed: Listed, session: str, timestamp: str, imported: bool
    ) -> None:
        self._lines = lines
        self._evidence = evidence
        self._listed = listed
        self._session = session
        self._timestamp = timestamp
        self._imported = imported
        self._unborne: list[tuple[str, list[str]]] = []
        self._refused: list[str] = []

    def of(self, patch: Patch) -> Believed:
        title = "" if self._evidence.missing(patch.title) else patch.title
        if title != patch.title:
            self._unborne.append((patch.title, self._evidence.missing(patch.title)))
        handover, unborne = handovers.held_against(self._evidence, patch.handover)
        self._unborne += unborne
        for item in patch.cut:
            self._refuse(item, f"the hand-over has more than {MOST_HANDED_OVER} tokens")
        decisions, labels = self._decisions(patch.decisions)
        amendments, closed, verdicts = self._curated(patch.curation, decisions, labels)
        return Believed(
            title=title,
            handover=handover,
            decisions=tuple(decisions),
            amendments=tuple(amendments.values()),
            closed=closed,
            verdicts=verdicts,
            unborne=tuple((sentence, tuple(missing)) for sentence, missing in self._unborne),
            refused=tuple(self._refused),
        )

    # ---- new decisions ----

    def _decisions(self, items: Sequence[NewDecision]) -> tuple[list[Decision], dict[str, str]]:
        """The decisions that are believed, and what `#n` of the answer is called now: `#m`, or a listed one's id."""
        made: list[Decision] = []
        labels: dict[str, str] = {}
        for number, item in enumerate(items, start=1):
            known = next((one.id for one in self._listed.decisions if _same(item.text, one.decision)), "")
            if known:
                labels[f"#{number}"] = known
                continue
            decision = self._decision(item)
            if decision is not None and len(made) < MOST_DECISIONS:
                made.append(decision)
                labels[f"#{number}"] = f"#{len(made)}"
            elif decision is not None:
                self._refuse(item.text, f"more than {MOST_DECISIONS} new decisions are no choice")
        return made, labels

    def _decision(self, item: NewDecision) -> Decision | None:
        if not item.text or self._is_unborne(item.text):
            return None
        said = self._lines.source_of(item.text, item.line)
        said = said or self._lines.source_of(f"{item.text} {item.reason}", item.line)
        users = self._lines.source_of(item.text, item.line, only="user") if item.kind == "rule" else None
        if users is not None:
            said = users
        if said is None:
            self._refuse(item.text, f"no message near line {item.line} says so")
            return None
        kind = item.kind if item.kind != "rule" or (users is not None and not self._imported) else "decision"
        origin = "import" if self._imported else "user" if said.kind == "user" else "agent"
        return Decision(
            kind=kind,
            status=item.status,
            pinned=kind == "rule" and item.status == "active",
            timestamp=self._timestamp,
            decision=item.text,
            rationale=_with_quote(self._evidence.borne(item.reason, self._unborne), item.text, said),
            alternatives=self._options(item.rejected),
            source=Source(
                self._session,
                said.line,
                said.last,
                hashlib.sha256(said.text.encode("utf-8", "replace")).hexdigest()[:SHA256_DIGITS],
            ),
            origin=origin,
        )

    def _is_unborne(self, text: str) -> bool:
        missing = self._evidence.missing(text)
        if missing:
            self._unborne.append((text, missing))
        return bool(missing)

    def _options(self, options: Sequence[str]) -> tuple[str, ...]:
        return tuple(option for option in options if not self._is_unborne(option))

    def _refuse(self, what: str, why: str) -> None:
        self._refused.append(f"{trimmed(what, 120)}: {why}")

    # ---- what becomes of listed items ----

    def _curated(
        self, curation: Curation, decisions: list[Decision], labels: Mapping[str, str]
    ) -> tuple[dict[str, Amendment], dict[str, tuple[Any, ...]], dict[str, int]]:
        """What becomes of the listed items; new decisions are told what they replace."""
        amendments: dict[str, Amendment] = {}
        closed: dict[str, list[Any]] = {}
        verdicts: Counter[str] = Counter()
        for item in curation.reworded:
            if (amendment := self._reworded(item)) is not None:
                amendments[item.id] = amendment
                verdicts["reworded"] += 1
        for label, by in self._resolved(curation, decisions, labels).items():
            amendments[label] = replace(amendments.get(label, Amendment(label)), status="superseded", replaced_by=by)
            verdicts["duplicate" if label in curation.repeated else "superseded"] += 1
            if by.startswith("#") and not decisions[int(by[1:]) - 1].supersedes:
                place = int(by[1:]) - 1
                decisions[place] = replace(decisions[place], supersedes=label)
        for verdict, status in _STATUS_BY_VERDICT.items():
            for label in curation.simple[verdict]:
                kind, item = self._listed.by_id.get(label, ("", None))
                if kind == "decisions" and label not in curation.replaced and self._may_change(label, verdict):
                    amendments[label] = Amendment(label, status)
                    verdicts[verdict] += 1
                elif kind and kind != "decisions":
                    closed.setdefault(kind, []).append(item)
                    verdicts["closed"] += 1
                elif not kind:
                    self._refuse(label, "no such item is listed")
        for label in curation.replaced:  # an error that was listed twice, a step that another one takes in
            kind, item = self._listed.by_id.get(label, ("", None))
            if kind and kind != "decisions":
                closed.setdefault(kind, []).append(item)
                verdicts["closed"] += 1
        verdicts["kept"] = sum(label in self._listed.by_id for label in curation.simple["keep"])
        verdicts["unmentioned"] = len(self._listed.by_id.keys() - curation.named)
        told = {name: count for name, count in verdicts.items() if count}
        return amendments, {kind: tuple(items) for kind, items in closed.items()}, told

    def _resolved(self, curation: Curation, decisions: Sequence[Decision], labels: Mapping[str, str]) -> dict[str, str]:
        """Of each replaced decision the one that replaces it in the end."""
        listed = {item.id: item for item in self._listed.decisions}
        gone = {label for verdict in _STATUS_BY_VERDICT for label in curation.simple[verdict]}
        found: dict[str, str] = {}
        for label in curation.replaced:
            if self._listed.by_id.get(label, ("decisions", None))[0] != "decisions":
                continue
            by, seen = label, set()
            while by in curation.replaced and by not in seen:
                seen.add(by)
                by = curation.replaced[by]
            by = labels.get(by, by) if by.startswith("#") else by
            new = decisions[int(by[1:]) - 1] if by.startswith("#") and by in labels.values() else None
            successor = new if new is not None else listed.get(by)
            if by in seen or successor is None or by in gone:
                self._refuse(f"{label} is replaced by {by}", "that is none in force")
            elif self._may_change(label, "superseded", successor):
                found[label] = by
        return found

    def _reworded(self, item: Rewording) -> Amendment | None:
        kind, known = self._listed.by_id.get(item.id, ("", None))
        if kind != "decisions":
            self._refuse(item.id, "no such decision is listed")
            return None
        if not item.text or not self._may_change(item.id, "reworded") or self._is_unborne(item.text):
            return None
        if known.kind == "rule" and not self._are_users_words(known, item.text):
            self._refuse(f"{item.id}: {item.text}", "a rule keeps the user's words")
            return None
        reason = self._evidence.borne(item.reason, self._unborne) or known.rationale
        return Amendment(
            item.id,
            decision=item.text,
            rationale=_quoting(reason, item.text, known.decision) if self._said_so(known) else reason,
            alternatives=self._options(item.rejected) or known.alternatives,
        )

    def _said_so(self, known: Decision) -> bool:
        """Whether the user said a decision in these words here, and did not only accept them."""
        said = [message.text for message in self._lines.messages if message.kind == "user"]
        return known.origin == "user" and Support(said).share(known.decision) >= SAME

    def _are_users_words(self, known: Decision, text: str) -> bool:
        """Whether new words of a rule are the user's, and say yes where it says yes, and no where it says no."""
        said = [message.text for message in self._lines.messages if message.kind == "user"]
        rule = Support([known.decision])
        turned = is_denial(text) != is_denial(known.decision) or rule.denies(text)
        return not turned and Support([known.decision, known.rationale, *said]).share(text) >= BORNE

    def _may_change(self, label: str, verdict: str, by: Decision | None = None) -> bool:
        """Whether the model may say this of a decision: not of a person's own; one that the agent recorded itself can
        only be over; and a rule of the user gives way to the user's words alone.
        """
        kind, known = self._listed.by_id.get(label, ("", None))
        why = ""
        if kind != "decisions":
            why = "no such decision is listed"
        elif self._listed.is_own(known):
            why = "a person's own stays as it is"
        elif known.kind == "rule" and known.origin == "user" and verdict in _STATUS_BY_VERDICT:
            why = "a rule of the user ends with the user's words alone"
        elif known.source is None and verdict in ("drop", "reworded"):
            why = "the agent recorded it itself"
        elif known.kind == "rule" and by is not None and not (self._is_users(by) and _is_about(by, known)):
            why = "a rule of the user is replaced by the user's words alone"
        if why:
            self._refuse(f"{label} {verdict}", why)
        return not why

    def _is_users(self, decision: Decision) -> bool:
        """Whether a decision is the user's in their own words: not what they only answered to."""
        if decision.origin == "human-edit" or (decision.origin == "user" and decision.source is None):
            return True
        if decision.origin != "user" or decision.source is None:
            return False
        if decision.kind == "rule":  # which comes from the user's words alone
            return True
        line = decision.source.first_line
        here = decision.source.session == self._session
        said = Support([one.text for one in self._lines.messages if here and one.kind == "user" and one.line == line])
        return said.share(decision.decision) >= SPOKEN and not said.denies(decision.decision)


# ---- the user's own words, beside those of the model ----

_QUOTED = 130  # characters of a quotation

_FEWEST = 3  # words of one: "yes please" says nothing by itself


def _with_quote(reason: str, text: str, said: EvidenceLine) -> str:
    """The reason of a decision with the words of the user who made it; as it is where the agent made it."""
    if said.kind != "user":
        return reason
    sentences = split(one_line(said.text)) or [""]
    about = Support([f"{text} {reason}"])
    shares = [
        (about.share(sentence) * len(sentence.split()) ** 0.5, -place) for place, sentence in enumerate(sentences)
    ]
    if len(said.text) <= _QUOTED:
        return _quoting(reason, text, one_line(said.text))
    best = sentences[-max(shares)[1]]
    return _quoting(reason, text, best) if about.share(best) >= SPOKEN else reason  # else it speaks of something else


def _quoting(reason: str, text: str, words: str) -> str:
    """A reason with the words in which something was said, unless they stand in it or in the text, or say nothing."""
    words = trimmed(one_line(words), _QUOTED)
    known = Support([text, reason]).share(words) >= SAME
    if len(words.split()) < _FEWEST or known or "(user: " in reason:
        return reason
    return f'{reason} (user: "{words}")'.strip()


_STATUS_BY_VERDICT = {"drop": "dropped", "done": "done", "taken_back": "reversed"}


def _is_about(one: Decision, other: Decision) -> bool:
    """Whether one decision can replace another: it speaks of the same."""
    return Support([one.decision, one.rationale]).share(other.decision) >= SPOKEN


def _same(one: str, other: str) -> bool:
    return Support([one]).share(other) >= SAME and Support([other]).share(one) >= SAME
