"""What of a model's answer its lines bear out; the rest is thrown away and counted."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from ralf.model import SHA256_DIGITS, Decision, Source
from ralf.summarize.prompt import MOST_SECTION, Change, Item, NewDecision, Patch
from ralf.text.cleaning import one_line
from ralf.text.matcher import stands_whole
from ralf.transcripts.events import EvidenceLine

# ---- what lines bear out ----

MARGIN = 3
"""Lines before and after those that a model names: a call and its result stand between a question and its answer."""

PROSE = ("user", "assistant")

Where = Literal["prose", "said", "all"]
"""What of the lines counts: what people and the agent said, that and the agent's calls, or all."""

_QUOTED = re.compile(r"`([^`]+)`")

_EDGES = ".,;:!?…()[]{}<>\"'*_“”‘’«»|—–"  # noqa: RUF001  # typographic quotes and dashes are what is stripped

_PLAIN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]{1,2})?\Z")  # noqa: RUF001  # an apostrophe

_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w])")

_WORD = re.compile(r"[^\W\d_]+")

_CASELESS = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_DENIAL = re.compile(r"\b(?:not|never|cannot|no longer)\b|n['’]t\b", re.I)  # noqa: RUF001  # an apostrophe

_NEGATIVE = re.compile(
    r"\b(?:not|never|no|none|nothing|cannot|without|avoid\w*|dropp?\w*|remov\w*|reject\w*|instead|rather|stop\w*|fail\w*)\b"
    r"|n['’]t\b",  # noqa: RUF001  # an apostrophe
    re.I,
)

_SENTENCE = re.compile(r"(?:^|[.!?:;]\s+|\s[—–-]\s)[\"'(*]*([^\W\d_]+)", re.M)  # noqa: RUF001

_STOP = frozenset(
    """
    about above after again against because been before being below between both could does doing down during each
    from further have having here into itself just more most once only other over same should some such than that
    their them then there these they this those through under until very were what when where which while with would
    will your also used uses using make made need needs must instead rather chose choose chosen decided decision
    agent user work next step
    """.split()
)

_OPENERS = _STOP | frozenset(
    """
    the and but for its our all any one two yes let now never always add adopt allow apply ask avoid build call change
    check choose commit copy create delete do drop fix follow go have implement keep leave let make merge move name open
    pass pin prefer put read remove rename replace return revert run say send set show skip split start stop store take
    tell test try turn update use wait wants write
    """.split()
)
"""Words that open a sentence without being a name."""

_HUMP = re.compile(r"[^\W\d_](?=[A-Z][a-z])|[a-z](?=[A-Z])")

_FORM = re.compile(r"(?:ed|ing|ly)\Z")

_CUT = re.compile(r"(?<=[.!?;])\s+|\n+")

_REACH = 4  # words that a "not" speaks of

_STEM = 5  # characters that two forms of a word share


class Lines:
    """The text of a segment's events by their lines in the transcript."""

    def __init__(self, lines: Iterable[EvidenceLine]) -> None:
        self._lines: Sequence[EvidenceLine] = sorted(lines, key=lambda line: (line.line, line.last))
        self._starts = [line.line for line in self._lines]
        self._longest = max((line.last - line.line for line in self._lines), default=0)

    @property
    def first(self) -> int:
        """The first line, 0 for no text."""
        return self._lines[0].line if self._lines else 0

    @property
    def last(self) -> int:
        """The last line, 0 for no text."""
        return max((line.last for line in self._lines), default=0)

    def within(self, first: int, last: int, margin: int = MARGIN) -> list[EvidenceLine]:
        """The events between two lines, a margin included; [] for lines that are not there."""
        if not self.first <= first <= last <= self.last:
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


class Support:
    """A text that a claim is held against."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._parts = tuple(texts)
        self._text = one_line("\n".join(self._parts))

    def __bool__(self) -> bool:
        return bool(self._text)

    @cached_property
    def _folded(self) -> str:
        return self._text.casefold()

    @cached_property
    def _sentences(self) -> tuple[str, ...]:
        return tuple(sentence for part in self._parts for sentence in _CUT.split(part) if sentence.strip())

    @cached_property
    def _numbers(self) -> Mapping[str, frozenset[str]]:
        """Each number with the words that stand beside it."""
        found: dict[str, frozenset[str]] = {}
        for sentence in self._sentences:
            for number in _NUMBER.findall(sentence):
                plain = number.replace(",", "")
                found[plain] = found.get(plain, frozenset()) | _all_units(sentence)
        return found

    @cached_property
    def _units(self) -> frozenset[str]:
        return _all_units(self._text)

    def missing(self, text: str, beyond: Support | None = None) -> list[str]:
        """The names, paths and numbers of a text that do not stand here; a number has to stand with a word of it.

        beyond  where a proper noun or an abbreviation, which is no path, number or identifier, may stand as well
        """
        words = _all_units(text)
        missing = [claim for claim in claims(text) if not self._has(claim, words)]
        if beyond is None:
            return missing
        return [claim for claim in missing if not _is_word(claim) or not beyond.knows(claim)]

    def missing_of(self, wanted: Iterable[str]) -> list[str]:
        """Those of some names, paths and numbers that do not stand here."""
        return [claim for claim in wanted if not self._has(claim, frozenset())]

    def share(self, text: str) -> float:
        """The share of a text's words that stand here, in any form; 1 for a text without words of its own."""
        wanted = _all_units(text)
        return len(wanted & self._units) / len(wanted) if wanted else 1.0

    def bears_out(self, text: str, least: float, beyond: Support | None = None) -> bool:
        """Whether every name of a text and this share of its words stand here, and both say yes, or both no."""
        if not self or self.missing(text, beyond) or self.share(text) < least or self.denies(text):
            return False
        if not _DENIAL.search(text):
            return True
        denied, near = _denied_units(_DENIAL, text), self._nearest(text)
        if not denied:  # short names only: that something is denied has to do
            return any(_NEGATIVE.search(sentence) for sentence in near)
        return any(denied & _denied_units(_NEGATIVE, sentence) for sentence in near)

    def denies(self, text: str) -> bool:
        """Whether what comes nearest to a text here says no to a word that the text says yes to."""
        if _NEGATIVE.search(text):
            return False
        return any(_denied_units(_DENIAL, sentence) & _all_units(text) for sentence in self._nearest(text)[:1])

    def knows(self, word: str) -> bool:
        """Whether a word stands here, in whatever letters."""
        return stands_whole(word.casefold(), self._folded)

    def uses(self, word: str) -> bool:
        """Whether a word stands here in small letters, in any form: then it is no name."""
        stem = re.escape(word.lower().rstrip("s"))
        return re.search(rf"(?<!\w){stem}(?:e?s|e?d|ing|e?r|e?rs|ly|ion|ions)?(?!\w)", self._text) is not None

    def _nearest(self, text: str) -> list[str]:
        """The two sentences that have most of a text's words, best first."""
        wanted = _all_units(text)
        return sorted(self._sentences, key=lambda sentence: -len(wanted & _all_units(sentence)))[:2]

    def _has(self, claim: str, words: frozenset[str]) -> bool:
        if _NUMBER.fullmatch(claim):
            beside = self._numbers.get(claim.replace(",", ""))
            return beside is not None and (not words or not words.isdisjoint(beside))
        if _is_word(claim):
            return stands_whole(claim.casefold(), self._folded)
        return stands_whole(claim, self._text)


def claims(text: str) -> list[str]:
    """What of a text can be true or false by itself: quoted code, paths, names, numbers and proper nouns, each once.

    A name is any word that is not made of letters alone, or has a capital where no sentence begins.
    """
    found = [one_line(quoted).strip().removesuffix("()") for quoted in _QUOTED.findall(text)]
    rest = _QUOTED.sub(" ", text)
    openings = {match.start(1) for match in _SENTENCE.finditer(rest)}
    for match in re.finditer(r"\S+", rest):
        token = re.sub(r"(?:['’]s|\(\))\Z", "", match.group().strip(_EDGES))  # noqa: RUF001  # an apostrophe
        if not token:
            continue
        at = match.start() + match.group().index(token)
        parts = token.split("-")
        if all(_PLAIN.match(part) for part in parts):
            opens = at in openings
            found += [
                part
                for place, part in enumerate(parts)
                if len(part) > 1
                and (part[1:] != part[1:].lower() or (part[:1] != part[:1].lower() and not (opens and not place)))
            ]
        elif any(character.isalnum() for character in token):
            found.append(token)
    return [claim for claim in dict.fromkeys(found) if claim]


def _is_word(claim: str) -> bool:
    return _PLAIN.match(claim) is not None and _HUMP.search(claim) is None


def openers(text: str) -> list[str]:
    """The words with a capital that open a sentence and may be names: nobody can tell by the capital."""
    found = _SENTENCE.findall(_QUOTED.sub(" ", text))
    return [
        word
        for word in found
        if word[0] != word[0].lower() and word.casefold() not in _OPENERS and not _FORM.search(word) and len(word) > 2
    ]


def _denied_units(word: re.Pattern[str], text: str) -> frozenset[str]:
    """The words that a "not" in a text speaks of: the few behind it."""
    behind = (" ".join(text[found.end() :].split()[:_REACH]) for found in word.finditer(text))
    return frozenset(unit for words in behind for unit in _all_units(words))


def _all_units(text: str) -> frozenset[str]:
    return frozenset(unit for word in _WORD.findall(text) for unit in _units_of(word))


def _units_of(word: str) -> Iterable[str]:
    folded = word.casefold()
    if _CASELESS.search(word):  # written without spaces: its pairs of characters
        return [folded[place : place + 2] for place in range(max(1, len(folded) - 1))]
    return [] if len(folded) < 4 or folded in _STOP else [folded[:_STEM]]


# ---- what is left of an answer ----

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
            title = ""
            self._dropped += 1
        section = self._reported(patch.section)
        text: list[str] = []
        room = MOST_SECTION
        for line in section:
            room -= len(line) + 3
            if room < 0:
                self._dropped += 1
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
        replaced = self._current.get(item.supersedes)
        supersedes = ""
        if item.supersedes:
            if replaced is not None and _may_change(replaced, origin) and self._speaks_of(replaced, prose, text):
                supersedes = replaced.id
            else:
                self._dropped += 1
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
        if self._borne_out(text, said, REASON, said=True):
            return True
        self._dropped += 1
        return False

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


_NO_WORD = re.compile(r"`[^`]*`|(?<![^\s`])[^\s\d/_.]{0,200}+[\d/_.]\S*+")


def _words(text: str) -> str:
    """The text in small letters without what stands in backticks: only its words count, names are looked at apart."""
    return _NO_WORD.sub(" ", text).lower()


def _may_change(known: Decision, origin: str) -> bool:
    """What a person wrote or laid down as a rule changes only by a person's word."""
    return origin == "user" or not (known.pinned or known.kind == "rule" or known.origin in ("human-edit", "user"))


def _same(one: str, other: str) -> bool:
    return Support([one]).share(other) >= SAME and Support([other]).share(one) >= SAME
