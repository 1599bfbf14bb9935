"""Reads a model's answer, and keeps what the lines that it names bear out; the rest is thrown away and counted."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

from ralf.model import SHA256_DIGITS, Decision, Source
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.patterns import regex
from ralf.text.sentences import Support, openers
from ralf.transcripts.events import EvidenceLine

# ---- the answer ----

MOST_TEXT = 500  # characters of one text

MOST_ITEMS = 40  # of each list

MOST_SECTION = 4_400  # characters of a section, as many as the embedded summariser takes


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT = {"type": "string"}

_LINES = _object(first={"type": "integer"}, last={"type": "integer"})

_ITEM = _object(text=_TEXT, lines=_LINES)

_OPTION = _object(option=_TEXT, why_not=_TEXT)

KINDS = ("decision", "rule", "failed-approach")

CHANGES = ("changed", "superseded", "reversed")

SCHEMA: dict[str, Any] = _object(
    title=_TEXT,
    section=_list(_ITEM),
    decisions=_list(
        _object(
            kind={"type": "string", "enum": list(KINDS)},
            decision=_TEXT,
            reason=_TEXT,
            rejected=_list(_OPTION),
            supersedes=_TEXT,
            lines=_LINES,
        )
    ),
    changes=_list(
        _object(
            id=_TEXT,
            change={"type": "string", "enum": list(CHANGES)},
            replaced_by=_TEXT,
            reason=_TEXT,
            rejected=_list(_OPTION),
            lines=_LINES,
        )
    ),
    active_work=_object(next_steps=_list(_ITEM), blockers=_list(_ITEM), findings=_list(_ITEM)),
)
"""The answer's schema: closed, every property required, "" and [] for nothing, so that providers with a strict mode
(which allows no optional property) take it as it stands.
"""


@dataclass(frozen=True, slots=True)
class Item:
    """One line of text, and the first and last line of the transcript that say so."""

    text: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class NewDecision:
    """A decision that the current list does not have; `supersedes` is the label of the one that it replaces."""

    kind: str
    decision: str
    reason: str
    rejected: tuple[str, ...]
    supersedes: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a decision of the current list: changed (its reason or options), superseded, reversed."""

    id: str
    change: str
    replaced_by: str
    reason: str
    rejected: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Patch:
    """A model's answer."""

    title: str
    section: tuple[Item, ...]
    decisions: tuple[NewDecision, ...]
    changes: tuple[Change, ...]
    work: Mapping[str, tuple[Item, ...]]


class BadAnswer(ValueError):
    """An answer that does not fit the schema; the message says where and why."""


def patch_of(tree: object) -> Patch:
    """The patch that an answer holds; BadAnswer when it does not fit the schema."""
    wrong = misfit(tree, SCHEMA)
    if wrong:
        raise BadAnswer(wrong)
    assert isinstance(tree, dict)  # noqa: S101  # the schema has just said so
    return Patch(
        title=_text(tree["title"]),
        section=_items(tree["section"]),
        decisions=tuple(
            NewDecision(
                item["kind"],
                _text(item["decision"]),
                _text(item["reason"]),
                _options(item["rejected"]),
                _text(item["supersedes"]),
                item["lines"]["first"],
                item["lines"]["last"],
            )
            for item in tree["decisions"][:MOST_ITEMS]
        ),
        changes=tuple(
            Change(
                _text(item["id"]),
                item["change"],
                _text(item["replaced_by"]),
                _text(item["reason"]),
                _options(item["rejected"]),
                item["lines"]["first"],
                item["lines"]["last"],
            )
            for item in tree["changes"][:MOST_ITEMS]
        ),
        work={key: _items(value) for key, value in tree["active_work"].items()},
    )


_TYPES = {
    "object": (dict, "object"),
    "array": (list, "list"),
    "integer": (int, "whole number"),
    "string": (str, "text"),
}


def misfit(value: object, schema: Mapping[str, Any], at: str = "the answer") -> str:
    """Where and why a value does not fit a schema of objects, arrays, strings and integers; "" when it does."""
    kind, name = _TYPES[schema["type"]]
    if not isinstance(value, kind) or isinstance(value, bool):
        return f"{at} is no {name}"
    if isinstance(value, dict):
        known = schema["properties"]
        odd = [f"{at} has no {name!r}" for name in known if name not in value]
        odd += [f"{at} has {name!r}, which is not asked for" for name in value if name not in known]
        odd += [wrong for name in known if name in value if (wrong := misfit(value[name], known[name], f"{at}.{name}"))]
        return odd[0][:200] if odd else ""
    if isinstance(value, list):
        wrongs = (misfit(item, schema["items"], f"{at}[{place}]") for place, item in enumerate(value))
        return next((wrong for wrong in wrongs if wrong), "")
    choices = schema.get("enum", [value])
    return "" if value in choices else f"{at} is none of {', '.join(choices)}"


def _text(value: str) -> str:
    return trimmed(one_line(clean(value)), MOST_TEXT)


def _items(values: list[Any]) -> tuple[Item, ...]:
    made = (Item(_text(item["text"]), item["lines"]["first"], item["lines"]["last"]) for item in values[:MOST_ITEMS])
    return tuple(item for item in made if item.text)


def _options(values: list[Any]) -> tuple[str, ...]:
    found = ((_text(item["option"]), _text(item["why_not"])) for item in values[:MOST_ITEMS])
    return tuple(f"{option}: {why}" if why else option for option, why in found if option)


# ---- what lines bear out ----

MARGIN = 3
"""Lines before and after those that a model names: a call and its result stand between a question and its answer."""

PROSE = ("user", "assistant")

Where = Literal["prose", "said", "all"]
"""What of the lines counts: what people and the agent said, that and the agent's calls, or all."""


class Lines:
    """The text of a segment's events by their lines in the transcript."""

    def __init__(self, lines: Iterable[EvidenceLine]) -> None:
        self._lines: Sequence[EvidenceLine] = sorted(lines, key=lambda line: (line.line, line.last))
        self._starts = [line.line for line in self._lines]
        self._last = max((line.last for line in self._lines), default=0)
        self._longest = max((line.last - line.line for line in self._lines), default=0)

    def within(self, first: int, last: int, margin: int = MARGIN) -> list[EvidenceLine]:
        """The events between two lines, a margin included; [] for lines that are not there."""
        if not self._starts or not self._starts[0] <= first <= last <= self._last:
            return []
        start = bisect_left(self._starts, first - margin - self._longest)
        stop = bisect_left(self._starts, last + margin + 1)
        return [line for line in self._lines[start:stop] if line.last >= first - margin]

    def support(self, first: int, last: int, where: Where = "all") -> Support:
        """What these lines say."""
        kinds = {"prose": PROSE, "said": (*PROSE, "call", "note")}.get(where, ())
        return Support(line.text for line in self.within(first, last) if not kinds or line.kind in kinds)

    @cached_property
    def whole(self) -> Support:
        """What the whole segment says."""
        return Support(line.text for line in self._lines)

    @cached_property
    def whole_said(self) -> Support:
        """The same without what tools printed."""
        return Support(line.text for line in self._lines if line.kind in (*PROSE, "call", "note"))


# ---- what is left of an answer ----

MOST_DECISIONS = 12  # new ones of one segment: a model that finds more is not choosing

MOST_LINES = 20  # that one decision may rest on: who names the whole segment names nothing

CHOICE, REASON, REPORT = 0.5, 0.5, 0.5  # share of the words that stand in the lines

SAME, ABOUT = 0.8, 0.3  # share of the words of another decision: says the same, speaks of it

_MARKS = regex(r"^(?:[#>=~+|\-\s]|\*(?=\s)|`{3,})+(?=\S)")


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
            title = ""
            self._dropped += 1
        section = [f"- {line}" for line in self._reported(patch.section)]
        ends = accumulate(len(line) + 1 for line in section)
        text = [line for line, end in zip(section, ends, strict=True) if end <= MOST_SECTION]
        made = [decision for decision in map(self._decision, patch.decisions) if decision is not None]
        decisions = made[:MOST_DECISIONS]
        self._dropped += len(section) - len(text) + len(made) - len(decisions)
        amendments = {item.id: item for item in map(self._change, patch.changes) if item is not None}
        # The next agent does what it reads here, so that no tool's output may be the only one to say so.
        work = {key: tuple(self._reported(items, said=key == "next_steps")) for key, items in patch.work.items()}
        kept = bool(title) + len(text) + len(decisions) + len(amendments) + sum(map(len, work.values()))
        return Verified(title, "\n".join(text), tuple(decisions), tuple(amendments.values()), work, kept, self._dropped)

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
                self._dropped += 1
        return list(found)

    # ---- decisions: only what people and the agent said can be one ----

    def _messages(self, first: int, last: int) -> tuple[list[EvidenceLine], Support, Support]:
        """The messages of a decision's lines; what they say; and that with the calls between them."""
        if last - first > MOST_LINES:
            return [], Support(()), Support(())
        kinds = (*PROSE, "note") if self._imported else PROSE
        near = [line for line in self._lines.within(first, last) if line.kind in kinds and line.text.strip()]
        within = [line for line in near if line.last >= first and line.line <= last]
        said = self._lines.support(first, last, "said")
        return within or near, said if self._imported else self._lines.support(first, last, "prose"), said

    def _decision(self, item: NewDecision) -> Decision | None:
        spoken, prose, said = self._messages(item.first, item.last)
        text = _bare(item.decision)
        if (
            not spoken
            or not text
            or not self._borne_out(text, said, 0, said=True)
            or not prose.bears_out(_words(text), CHOICE)
        ):
            self._dropped += 1
            return None
        if any(_same(text, known.decision) for known in self._current.values()):
            return None  # known: neither kept nor wrong
        origin = self._origin(spoken, text)
        kind = item.kind if item.kind != "rule" or origin == "user" else "decision"
        replaced = self._current.get(item.supersedes) if item.supersedes else None
        if replaced is None or not (_may_change(replaced, origin) and self._speaks_of(replaced, prose, text)):
            self._dropped += bool(item.supersedes)
            replaced = None
        return Decision(
            kind=kind,
            pinned=kind == "rule",
            timestamp=self._timestamp,
            decision=text,
            rationale=self._reason(item.reason, said),
            alternatives=tuple(option for option in item.rejected if self._holds(option, said)),
            supersedes=replaced.id if replaced is not None else "",
            source=self._source(spoken),
            origin=origin,
        )

    def _change(self, item: Change) -> Amendment | None:
        known = self._current.get(item.id)
        spoken, prose, said = self._messages(item.first, item.last)
        if known is None or not spoken or not self._speaks_of(known, prose, ""):
            self._dropped += 1
            return None
        reason = self._reason(item.reason, said)
        options = tuple(option for option in item.rejected if self._holds(option, said))
        if not _may_change(known, self._origin(spoken, item.reason or known.decision)):
            self._dropped += 1
            return None
        if item.change == "changed":
            rationale = reason if reason and len(reason.split()) > len(known.rationale.split()) else known.rationale
            more = tuple(option for option in options if option not in known.alternatives)
            if rationale == known.rationale and not more:
                return None
            return Amendment(known.id, known.status, "", rationale, (*known.alternatives, *more))
        by = self._current.get(item.replaced_by)
        if item.change == "superseded" and by is not None and by.id != known.id:
            return Amendment(known.id, "superseded", by.id, known.rationale, known.alternatives)
        if item.change == "reversed" and reason:
            return Amendment(
                known.id, "reversed", "", f"{known.rationale} Reversed: {reason}".strip(), known.alternatives
            )
        self._dropped += 1
        return None

    def _reason(self, text: str, said: Support) -> str:
        text = _bare(text)
        return text if text and self._holds(text, said) else ""

    def _holds(self, text: str, said: Support) -> bool:
        holds = self._borne_out(text, said, REASON, said=True)
        self._dropped += not holds
        return holds

    def _borne_out(self, text: str, support: Support, least: float, *, said: bool = False) -> bool:
        """Whether a text holds; `said`: nothing that a tool printed counts."""
        whole = self._lines.whole_said if said else self._lines.whole
        if not support.bears_out(text, least, whole):
            return False
        return all(support.knows(word) or whole.uses(word) for word in openers(text))

    def _speaks_of(self, known: Decision, prose: Support, text: str) -> bool:
        return max(prose.share(known.decision), Support([text]).share(known.decision) if text else 0) >= ABOUT

    def _origin(self, spoken: Sequence[EvidenceLine], text: str) -> str:
        """Who said it: the message that has most of its words, the later one of two."""
        if self._imported:
            return "import"
        best = max(enumerate(spoken), key=lambda found: (Support([found[1].text]).share(text), found[0]))[1]
        return "user" if best.kind == "user" else "agent"

    def _source(self, spoken: Sequence[EvidenceLine]) -> Source:
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


_NO_WORD = regex(r"`[^`]*`|(?<![^\s`])[^\s\d/_.]{0,200}+[\d/_.]\S*+")


def _words(text: str) -> str:
    """The text in small letters without what stands in backticks: only its words count, names are looked at apart."""
    return _NO_WORD.sub(" ", text).lower()


def _may_change(known: Decision, origin: str) -> bool:
    """What a person wrote or laid down as a rule changes only by a person's word."""
    return origin == "user" or not (known.pinned or known.kind == "rule" or known.origin in ("human-edit", "user"))


def _same(one: str, other: str) -> bool:
    return Support([one]).share(other) >= SAME and Support([other]).share(one) >= SAME
