"""The labelled sentences with their text, and how well the embedded extractor's list agrees with them.

The labels and the rule behind them are in `labels/`. The text of the sessions' sentences is read from `shared/`, which
lies beside the checkout of those who have it. `python -m tests.labelled` prints the figures.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ralf.checkpointing.due import cut
from ralf.format.codec import to_tree
from ralf.model import Decision
from ralf.route.edits import labelled
from ralf.route.fold import apply, empty
from ralf.storage.journal import Record
from ralf.summarize import extractive
from ralf.transcripts.events import Event, Position
from ralf.transcripts.reader import open_transcript

LABELS = Path(__file__).parent / "labels"
DATA = Path(__file__).parents[2] / "shared" / "eval" / "data"
KINDS = ("decision", "rule", "failed-approach", "none")
UNIFORM = 120
"""These first rows were drawn uniformly from all sentences; the others hold a word that decisions often use."""

_SEGMENT = 50_000  # tokens
_SHORT = 6  # words of an answer that says nothing by itself
_WHOLE = 4  # words of a listed text that can stand for a longer sentence
_UNSIGNED = re.compile(r"[^\w]+")


@dataclass(frozen=True, slots=True)
class Labelled:
    """One sentence of a session: where it stands, who said it, what it is."""

    session: str
    line: int
    block: int
    start: int
    end: int
    sha256: str
    who: str
    label: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.session}:{self.line}#{self.block}[{self.start}:{self.end}]"


@dataclass(frozen=True, slots=True)
class Own:
    """One sentence of a short exchange in this project's own words: what was said, who says it in which turn."""

    said: tuple[tuple[str, str], ...]
    turn: int
    text: str
    label: str

    @property
    def who(self) -> str:
        """Who says the sentence."""
        return self.said[self.turn][0]

    @property
    def line(self) -> int:
        """The line of its turn, from 1."""
        return self.turn + 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """A labelled sentence, whether it is part of what the extractor lists, and whether only beside what is listed."""

    sentence: Labelled | Own
    listed: bool
    beside: bool = False

    @classmethod
    def of(cls, sentence: Labelled | Own, found: Sequence[Decision]) -> Verdict:
        """Looks a sentence up in a list."""
        listed = is_listed(sentence, found)
        return cls(sentence, listed, listed and is_beside(sentence, found))

    @property
    def real(self) -> bool:
        """Whether the sentence decides something."""
        return self.sentence.label != "none"


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many sentences are real, listed, and both."""

    real: int
    listed: int
    both: int

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Agreement:
        """Counts the verdicts."""
        seen = list(verdicts)
        return cls(sum(v.real for v in seen), sum(v.listed for v in seen), sum(v.real and v.listed for v in seen))

    @property
    def precision(self) -> float:
        """The share of the listed that are real."""
        return self.both / self.listed if self.listed else 0.0

    @property
    def recall(self) -> float:
        """The share of the real that are listed."""
        return self.both / self.real if self.real else 0.0

    def __str__(self) -> str:
        return (
            f"precision {_share(self.both, self.listed)}, recall {_share(self.both, self.real)}, "
            f"F0.5 {_f_half(self.precision, self.recall):.0%}"
        )


# ---- the sentences ----


def available() -> bool:
    """Whether the sessions are beside the checkout."""
    return DATA.is_dir()


def rows() -> list[Labelled]:
    """The labels without the text."""
    lines = (LABELS / "sentences.jsonl").read_text(encoding="utf-8").splitlines()
    return [Labelled(**json.loads(line)) for line in lines]


def sentences() -> Iterator[Labelled]:
    """The labelled sentences of the sessions with their text, in the order of the file.

    Raises FileNotFoundError without the sessions; ValueError where a place does not hold the words that were
    labelled.
    """
    held: dict[str, list[str]] = {}
    for row in rows():
        if row.session not in held:
            held[row.session] = _unpacked(row.session).decode("utf-8").split("\n")
        text = block_texts(json.loads(held[row.session][row.line - 1]))[row.block][row.start : row.end]
        if hashlib.sha256(text.encode("utf-8")).hexdigest()[:16] != row.sha256:
            raise ValueError(f"{row} does not hold the words that were labelled")
        yield Labelled(**{name: getattr(row, name) for name in Labelled.__slots__ if name != "text"}, text=text)


def own_words() -> list[Own]:
    """The labelled sentences in this project's own words."""
    found = []
    for line in (LABELS / "own_words.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        said = tuple((turn["who"], turn["text"]) for turn in row["said"])
        found.append(Own(said, row["turn"], row["sentence"], row["label"]))
    return found


def block_texts(record: dict[str, Any]) -> list[str]:
    """The text of each content block of a record; a string is one block."""
    if record.get("type") == "queue-operation":
        content = record.get("content")
    elif record.get("type") == "attachment":
        content = record["attachment"].get("prompt")
    else:
        content = record.get("message", {}).get("content")
    if isinstance(content, str):
        return [content]
    return [_block_text(block) for block in content or ()]


def _block_text(block: dict[str, Any]) -> str:
    text = block.get("content") if block.get("type") == "tool_result" else block.get("text")
    if isinstance(text, list):
        return "\n".join(part.get("text") or "" for part in text if part.get("type") == "text")
    return text if isinstance(text, str) else ""


def _unpacked(session: str) -> bytes:
    return gzip.decompress((DATA / f"{session}.jsonl.gz").read_bytes())


# ---- the measure ----


def precision_and_recall() -> list[Verdict]:
    """For each labelled sentence of the sessions, in order, whether it is listed when its session is taken in segments.

    See `is_listed` for what that means.
    """
    everything = list(sentences())
    of_session: dict[str, list[Labelled]] = defaultdict(list)
    for sentence in everything:
        of_session[sentence.session].append(sentence)
    verdicts: dict[Labelled, Verdict] = {}
    with tempfile.TemporaryDirectory() as folder:
        for session, said in of_session.items():
            path = Path(folder, f"{session}.jsonl")
            path.write_bytes(_unpacked(session))
            found = _listed(path, session)
            verdicts.update({sentence: Verdict.of(sentence, found) for sentence in said})
    return [verdicts[sentence] for sentence in everything]


def _listed(path: Path, session: str) -> Sequence[Decision]:
    """What the decision list of a route comes to when a session is taken segment by segment."""
    context = empty("labelled")
    for piece in cut(open_transcript(path).events(), _SEGMENT, lambda text: len(text) // 4):
        known = [decision for decision in context.decisions if decision.status == "active"]
        found = extractive.find_decisions(piece.events, session=session, known=known)
        payload = labelled(context, "checkpoint", {"decisions": [to_tree(decision) for decision in found]})
        context = apply(context, Record(context.revision + 1, "checkpoint", payload))
    return context.decisions


def own_precision_and_recall() -> list[Verdict]:
    """The same for the sentences in this project's own words, each exchange by itself."""
    kinds: dict[str, Any] = {"user": "user", "agent": "assistant"}
    verdicts = []
    for own in own_words():
        events = [
            Event(kinds[who], text, Position(turn, turn), Position(turn + 1, turn + 1))
            for turn, (who, text) in enumerate(own.said)
        ]
        verdicts.append(Verdict.of(own, extractive.find_decisions(events)))
    return verdicts


def is_listed(sentence: Labelled | Own, found: Sequence[Decision]) -> bool:
    """Whether a sentence is part of the text of a listed decision that names its line as a source.

    Part is: its words stand in the text one after the other, or the text, where it was cut short, is a part of them. A
    question whose content the answer made a decision is not part of it. A short answer of a person ("yes, the second")
    has no words that could stand there: it is listed when a person's decision ends with it and begins with an earlier
    message, where what was answered stands.
    """
    return bool(_holding(sentence, found))


def is_beside(sentence: Labelled | Own, found: Sequence[Decision]) -> bool:
    """Whether a listed sentence is less than half of every listed text that holds it: what is listed is another."""
    words = len(_words(sentence.text).split())
    return all(2 * words < len(_words(decision.decision).split()) for decision in _holding(sentence, found))


def _holding(sentence: Labelled | Own, found: Sequence[Decision]) -> list[Decision]:
    words = _words(sentence.text)
    asked = sentence.text.rstrip().endswith("?")
    holding = []
    for decision in found:
        places = [place for place in (decision.source, *decision.further_sources) if place is not None]
        source = next((place for place in places if place.first_line <= sentence.line <= place.last_line), None)
        if source is None:
            continue
        text = _words(decision.decision)
        cut = len(text.split()) >= _WHOLE and not (asked and not decision.decision.endswith("?"))
        answers = sentence.who == "user" and decision.origin == "user" and len(words.split()) <= _SHORT
        if (
            f" {words} " in f" {text} "
            or (cut and f" {text} " in f" {words} ")
            or (answers and not asked and source.first_line < sentence.line == source.last_line)
        ):
            holding.append(decision)
    return holding


def _words(text: str) -> str:
    return _UNSIGNED.sub(" ", text.lower()).strip()


# ---- the report ----


def main() -> int:
    """Prints how the list and the labels agree."""
    parser = argparse.ArgumentParser(
        description="Precision and recall of the embedded extractor on labelled sentences."
    )
    parser.add_argument("--each", action="store_true", help="print every sentence on which list and label differ")
    each = parser.parse_args().each
    _report("own words", own_precision_and_recall(), each)
    if not available():
        print("sessions: skipped, the evaluation data is not beside the checkout")
        return 0
    verdicts = precision_and_recall()
    _report("sessions", verdicts, each)
    parts = {
        "  drawn uniformly": verdicts[:UNIFORM],
        "  holding a cue": verdicts[UNIFORM:],
        "  said by users": [v for v in verdicts if v.sentence.who == "user"],
        "  said by agents": [v for v in verdicts if v.sentence.who == "agent"],
    }
    for name, part in parts.items():
        print(f"{name}: {Agreement.of(part)}")
    return 0


def _report(name: str, verdicts: Sequence[Verdict], each: bool) -> None:
    labels = Counter(v.sentence.label for v in verdicts)
    print(f"{name}: {len(verdicts)} sentences ({', '.join(f'{labels[kind]} {kind}' for kind in KINDS)})")
    print(f"  all: {Agreement.of(verdicts)}")
    judged = [v for v in verdicts if v.real or not v.beside]
    print(f"  without what only stands beside a listed sentence: {Agreement.of(judged)}")
    for kind in KINDS[:-1]:
        of_kind = [v for v in verdicts if v.sentence.label == kind]
        print(f"  {kind}: listed {_share(sum(v.listed for v in of_kind), len(of_kind))}")
    if each:
        for verdict in verdicts:
            if verdict.listed != verdict.real:
                said = verdict.sentence
                where = f"{said} " if isinstance(said, Labelled) else ""
                what = "listed" if verdict.listed else "missed"
                print(f"  {what} {said.label} {where}({said.who}): {' '.join(said.text.split())[:160]}")


def _share(part: int, whole: int) -> str:
    """A share with its Wilson 95 % interval."""
    if not whole:
        return "- (0 of 0)"
    share, z = part / whole, 1.96
    middle = share + z * z / (2 * whole)
    spread = z * (share * (1 - share) / whole + z * z / (4 * whole * whole)) ** 0.5
    low, high = ((middle + sign * spread) / (1 + z * z / whole) for sign in (-1, 1))
    return f"{share:.0%} ({part} of {whole}; {max(0.0, low):.0%} to {high:.0%})"


def _f_half(precision: float, recall: float) -> float:
    """The measure that weighs precision twice as much as recall."""
    return 1.25 * precision * recall / (0.25 * precision + recall) if precision or recall else 0.0


if __name__ == "__main__":
    raise SystemExit(main())
