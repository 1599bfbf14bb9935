"""Rules and pastes in what a person types, on prompts and pastes whose author had not seen the code.

`python -m tests.honest` prints, for each set (development has not looked at the third), how many of the labelled rules
are kept and listed, and how many sentences of pastes were promoted; `--each` names the others.
`tests/labels/README.md` describes the sets.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ralf.facts import facts
from ralf.model import Decision
from ralf.summarize import extractive
from ralf.transcripts.events import Event, Position

LABELS = Path(__file__).parent / "labels"
SETS = {"dev": 30, "held": 30, "second": 60, "third": 30}
"""The sets, and how many prompts each has."""
BOTH = ("rule", "decision")
_OVERLAP = 0.8  # of a label's words, for a decision to hold it
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Taken:
    """What ralf makes of one message that an agent takes up: decisions, and the request as it is kept."""

    decisions: Sequence[Decision]
    request: str

    @classmethod
    def of(cls, text: str) -> Taken:
        """Reads a message."""
        said: list[tuple[Any, str]] = [("user", text), ("assistant", "I'll start by looking at the code.")]
        events = [Event(kind, words, Position(n, n), Position(n + 1, n + 1)) for n, (kind, words) in enumerate(said)]
        (request,) = facts.extract(events).facts.requests
        return cls(extractive.find_decisions(events), request.request)

    def lists(self, label: str, *, kinds: Sequence[str] = ("rule",)) -> bool:
        """Whether a person's decision of one of these kinds holds most of a label's words."""
        own = [one for one in self.decisions if one.origin == "user" and one.kind in kinds]
        return any(_overlap(label, one.decision) >= _OVERLAP for one in own)

    def keeps(self, label: str) -> bool:
        """Whether a label is listed, or stands whole in the request."""
        return self.lists(label) or _flat(label) in _flat(self.request)


@dataclass(slots=True)
class Figures:
    """Counts over one set.

    rules, kept, listed    labelled rules of long prompts; in the route as a rule or in their request; listed as rules
    decided                those that are listed as rules or decisions
    traps, taken           sentences that only sound like rules; listed as rules
    traps_decided          those that are listed as rules or decisions
    foreign, promoted      sentences of pastes; listed as anybody's decision or rule
    requests, lost         what a person asked beside a paste; not in the request as it is kept
    own, own_kept, own_listed  rules in a person's own words beside a paste, as above
    """

    rules: int = 0
    kept: int = 0
    listed: int = 0
    decided: int = 0
    traps: int = 0
    taken: int = 0
    traps_decided: int = 0
    foreign: int = 0
    promoted: int = 0
    requests: int = 0
    lost: int = 0
    own: int = 0
    own_kept: int = 0
    own_listed: int = 0


def rows(what: str, name: str) -> Iterator[dict[str, Any]]:
    """The prompts or pastes of a set; see `tests/labels/README.md` for the fields."""
    lines = (LABELS / f"honest_{what}.{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return (json.loads(line) for line in lines)


@cache
def measured(name: str, *, each: bool = False) -> Figures:
    """The figures of a set; `each` prints what is missed and what is promoted."""
    figures = Figures()

    def note(what: str, row: dict[str, Any], label: str) -> None:
        if each:
            print(f"  {what} {row['id']}: {label}")

    for row in rows("prompts", name):
        taken = Taken.of(row["text"])
        for label in row["rules"]:
            figures.rules += 1
            figures.kept += taken.keeps(label)
            figures.listed += taken.lists(label)
            figures.decided += taken.lists(label, kinds=BOTH)
            if not taken.lists(label):
                note("a decision" if taken.lists(label, kinds=BOTH) else "not listed", row, label)
        for label in row["not_rules"]:
            figures.traps += 1
            figures.taken += taken.lists(label)
            figures.traps_decided += taken.lists(label, kinds=BOTH)
            if taken.lists(label, kinds=BOTH):
                note("no rule" if taken.lists(label) else "no rule but a decision", row, label)
    for row in rows("pastes", name):
        taken = Taken.of(row["text"])
        for label in row["foreign"]:
            figures.foreign += 1
            promoted = any(_overlap(label, one.decision) >= _OVERLAP for one in taken.decisions)
            figures.promoted += promoted
            if promoted:
                note("promoted", row, label)
        figures.requests += 1
        figures.lost += _flat(row["request"]) not in _flat(taken.request)
        for label in row["own_rules"]:
            figures.own += 1
            figures.own_kept += taken.keeps(label)
            figures.own_listed += taken.lists(label)
            if not taken.lists(label):
                note("own rule not listed", row, label)
    return figures


def _overlap(label: str, text: str) -> float:
    words, held = _WORD.findall(label.lower()), set(_WORD.findall(text.lower()))
    return sum(word in held for word in words) / len(words)


def _flat(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def main() -> int:
    """Prints the figures of the sets."""
    parser = argparse.ArgumentParser(description="Rules and pastes in what a person types.")
    parser.add_argument("--each", action="store_true", help="name what is missed and what is promoted")
    parser.add_argument("--set", choices=SETS, help="one set only")
    options = parser.parse_args()
    for name in [options.set] if options.set else SETS:
        found = measured(name, each=options.each)
        print(
            f"{name}: of {found.rules} rules {found.kept} kept, {found.listed} listed as rules, {found.decided} as "
            f"rules or decisions; of {found.traps} that only sound so {found.taken} and {found.traps_decided}; of "
            f"{found.foreign} pasted sentences {found.promoted} promoted; of {found.requests} requests {found.lost} "
            f"lost; of {found.own} own rules beside a paste {found.own_kept} kept, {found.own_listed} listed"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
