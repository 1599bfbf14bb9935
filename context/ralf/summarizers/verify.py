"""What of a model's answer its lines bear out; the rest is thrown away and counted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ralf.evidence import Line
from ralf.model import SHA256_DIGITS, Decision, Source
from ralf.summarizers.patch import MOST_SECTION, Change, Item, NewDecision, Patch
from ralf.summarizers.support import PROSE, Lines, Support, openers

MOST_DECISIONS = 12  # new ones of one segment: a model that finds more is not choosing
MOST_LINES = 20  # that one decision may rest on: who names the whole segment names nothing
CHOICE, REASON, REPORT = 0.5, 0.5, 0.5  # share of the words that stand in the lines
SAME, ABOUT = 0.8, 0.3  # share of the words of another decision: says the same, speaks of it
_MARKS = re.compile(r"^(?:[#>=~+|\-\s]|\*(?=\s)|`{3,})+(?=\S)")


@dataclass(frozen=True, slots=True)
class Amendment:
    """What a decision of the current list becomes: a new status, what replaces it, a better reason, more options."""

    id: str
    status: str
    replaced_by: str = ""
    rationale: str = ""
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verified:
    """What is left of an answer; `dropped` counts the items whose lines do not bear them out."""

    title: str = ""
    text: str = ""
    decisions: tuple[Decision, ...] = ()
    amendments: tuple[Amendment, ...] = ()
    work: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kept: int = 0
    dropped: int = 0

    def __bool__(self) -> bool:
        return bool(self.text or self.decisions or self.amendments or any(self.work.values()))


def verified(
    patch: Patch,
    lines: Lines,
    current: Sequence[Decision],
    *,
    session: str,
    timestamp: str,
    imported: bool = False,
) -> Verified:
    """What the lines of a segment bear out of a patch.

    current    the decisions that the model was shown
    session    of the segment; `timestamp`, its end: where new decisions come from
    imported   the lines are a document's: nobody here said them, so the origin of each decision is "import"
    """
    return _Verifier(lines, current, session, timestamp, imported).all_of(patch)


class _Verifier:
    def __init__(self, lines: Lines, current: Sequence[Decision], session: str, timestamp: str, imported: bool) -> None:
        self._lines = lines
        self._current = {item.id: item for item in current}
        self._session = session
        self._timestamp = timestamp
        self._imported = imported
        self._dropped = 0

    def all_of(self, patch: Patch) -> Verified:
        title = _bare(patch.title)[:100].rstrip()
        if title and not self._borne_out(title, self._lines.whole, REPORT):
            title = self._drop("")
        section = self._reported(patch.section)
        text: list[str] = []
        room = MOST_SECTION
        for line in section:
            room -= len(line) + 3
            if room < 0:
                self._drop()
            else:
                text.append(f"- {line}")
        decisions = [made for item in patch.decisions if (made := self._decision(item)) is not None]
        self._dropped += len(decisions[MOST_DECISIONS:])
        decisions = decisions[:MOST_DECISIONS]
        changed = [amended for item in patch.changes if (amended := self._change(item)) is not None]
        amendments = {item.id: item for item in changed}
        # The next agent does what it reads here, so that no tool's output may be the only one to say so.
        work = {key: tuple(self._reported(items, said=key == "next_steps")) for key, items in patch.work.items()}
        kept = bool(title) + len(text) + len(decisions) + len(amendments) + sum(map(len, work.values()))
        return Verified(title, "\n".join(text), tuple(decisions), tuple(amendments.values()), work, kept, self._dropped)

    def _drop(self, instead: str = "") -> str:
        self._dropped += 1
        return instead

    def _reported(self, items: Sequence[Item], *, said: bool = False) -> list[str]:
        """The items that all that stands in their lines (`said`: but what tools printed) bears out, as plain lines,
        each once.
        """
        found: dict[str, None] = {}
        for item in items:
            text = _bare(item.text)
            lines = self._lines.support(item.first, item.last, "said" if said else "all")
            if text and self._borne_out(text, lines, REPORT, said=said):
                found[text] = None
            else:
                self._drop()
        return list(found)

    # ---- decisions: only what people and the agent said can be one ----

    def _spoken(self, first: int, last: int) -> tuple[list[Line], Support, Support]:
        """The messages of a decision's lines; what they say; and that with the calls between them."""
        if last - first > MOST_LINES:
            return [], Support(()), Support(())
        kinds = (*PROSE, "note") if self._imported else PROSE
        near = [line for line in self._lines.within(first, last) if line.kind in kinds and line.text.strip()]
        within = [line for line in near if line.last >= first and line.line <= last]
        said = self._lines.support(first, last, "said")
        return within or near, said if self._imported else self._lines.support(first, last, "prose"), said

    def _decision(self, item: NewDecision) -> Decision | None:
        spoken, prose, said = self._spoken(item.first, item.last)
        text = _bare(item.decision)
        if (
            not spoken
            or not text
            or not self._borne_out(text, said, 0, said=True)
            or not prose.bears_out(_words(text), CHOICE)
        ):
            self._drop()
            return None
        if any(_same(text, known.decision) for known in self._current.values()):
            return None  # known: neither kept nor wrong
        origin = self._origin(spoken, text)
        kind = item.kind if item.kind != "rule" or origin == "user" else "decision"
        replaced = self._current.get(item.supersedes)
        supersedes = ""
        if item.supersedes:
            if replaced is not None and _may_change(replaced, origin) and self._speaks_of(replaced, prose, text):
                supersedes = replaced.id
            else:
                self._drop()
        return Decision(
            kind=kind,
            pinned=kind == "rule",
            timestamp=self._timestamp,
            decision=text,
            rationale=self._reason(item.reason, said),
            alternatives=tuple(option for option in item.rejected if self._holds(option, said)),
            supersedes=supersedes,
            source=self._source(spoken),
            origin=origin,
        )

    def _change(self, item: Change) -> Amendment | None:
        known = self._current.get(item.id)
        spoken, prose, said = self._spoken(item.first, item.last)
        if known is None or not spoken or not self._speaks_of(known, prose, ""):
            self._drop()
            return None
        reason = self._reason(item.reason, said)
        options = tuple(option for option in item.rejected if self._holds(option, said))
        if not _may_change(known, self._origin(spoken, item.reason or known.decision)):
            self._drop()
            return None
        if item.change == "changed":
            rationale = reason if reason and _worth(reason) > _worth(known.rationale) else known.rationale
            more = tuple(option for option in options if option not in known.alternatives)
            if rationale == known.rationale and not more:
                return None
            return Amendment(known.id, known.status, "", rationale, (*known.alternatives, *more))
        by = self._current.get(item.replaced_by)
        if item.change == "superseded" and by is not None and by.id != known.id:
            return Amendment(known.id, "superseded", by.id, known.rationale, known.alternatives)
        if item.change == "reversed" and reason:
            told = f"{known.rationale} Reversed: {reason}".strip()
            return Amendment(known.id, "reversed", "", told, known.alternatives)
        self._drop()
        return None

    def _reason(self, text: str, said: Support) -> str:
        text = _bare(text)
        return text if text and self._holds(text, said) else ""

    def _holds(self, text: str, said: Support) -> bool:
        if self._borne_out(text, said, REASON, said=True):
            return True
        self._drop()
        return False

    def _borne_out(self, text: str, support: Support, least: float, *, said: bool = False) -> bool:
        """Whether a text holds; `said`: nothing that a tool printed counts."""
        whole = self._lines.whole_said if said else self._lines.whole
        if not support.bears_out(text, least, whole):
            return False
        return all(support.knows(word) or whole.uses(word) for word in openers(text))

    def _speaks_of(self, known: Decision, prose: Support, text: str) -> bool:
        return max(prose.share(known.decision), Support([text]).share(known.decision) if text else 0) >= ABOUT

    def _origin(self, spoken: Sequence[Line], text: str) -> str:
        """Who said it: the message that has most of its words, the later one of two."""
        if self._imported:
            return "import"
        best = max(enumerate(spoken), key=lambda found: (Support([found[1].text]).share(text), found[0]))[1]
        return "user" if best.kind == "user" else "agent"

    def _source(self, spoken: Sequence[Line]) -> Source:
        text = "\n".join(line.text for line in spoken)
        return Source(
            self._session,
            min(line.line for line in spoken),
            max(line.last for line in spoken),
            hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:SHA256_DIGITS],
        )


def _bare(text: str) -> str:
    """A line without marks at its beginning that Markdown would take for a heading, a quote, a rule or a fence."""
    return _MARKS.sub("", text).strip() if text.strip(" #>=~+|*-`") else ""


_NO_WORD = re.compile(r"`[^`]*`|(?<![^\s`])[^\s\d/_.]{0,200}+[\d/_.]\S*+")


def _words(text: str) -> str:
    """The text in small letters without what stands in backticks: only its words count, names are looked at apart."""
    return _NO_WORD.sub(" ", text).lower()


def _may_change(known: Decision, origin: str) -> bool:
    """What a person wrote or laid down as a rule changes only by a person's word."""
    return origin == "user" or not (known.pinned or known.kind == "rule" or known.origin in ("human-edit", "user"))


def _same(one: str, other: str) -> bool:
    return Support([one]).share(other) >= SAME and Support([other]).share(one) >= SAME


def _worth(text: str) -> int:
    return len(text.split())
