"""Pairs of decisions: does the second take the place of the first?

`python -m tests.pairs FILE` reads one JSON object a line, `{"first": …, "second": …, "supersedes": true|false}`, with
"by" (user or agent, who says both) where it is known, and prints how many unrelated pairs are linked (false) and how
many opposing ones are (found). It prints both twice: for the two texts taken as decisions, and for two messages of a
session, of which the extractor may list no decision at all. `--each` names the pairs that went wrong.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ralf.model import Decision, Source
from ralf.summarize import extractive
from ralf.summarize.supersession import linked
from ralf.transcripts.events import Event, Position

_APART = 8  # lines between the first message and the second
_PLACES = {"user": "user", "agent": "assistant"}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two decisions in the order in which they were made, and whether the second takes the first one's place."""

    first: str
    second: str
    supersedes: bool
    by: str = "user"

    def links(self) -> bool:
        """Whether the second is linked to the first where both texts are decisions."""
        found = linked([self._decision(self.first, 1), self._decision(self.second, _APART)])
        return any(one.status != "active" for one in found)

    def links_said(self) -> bool:
        """Whether it is where both are messages of a session, each of which an agent takes up."""
        known = extractive.find_decisions(list(self._said(self.first, 1)), session="s")
        later = extractive.find_decisions(
            list(self._said(self.second, _APART)), session="s", known=[_labelled(one, n) for n, one in enumerate(known)]
        )
        return any(one.supersedes for one in later)

    def _decision(self, text: str, line: int) -> Decision:
        return Decision(decision=text, origin=self.by, source=Source("s", line, line))

    def _said(self, text: str, line: int) -> Iterator[Event]:
        said: list[tuple[Any, str]] = [(_PLACES[self.by], text)]
        said += [("assistant", "Understood, I'll do it that way.")] if self.by == "user" else []
        for number, (kind, words) in enumerate(said, line):
            yield Event(kind, words, Position(number, number), Position(number + 1, number + 1))


@dataclass(frozen=True, slots=True)
class Figures:
    """How many unrelated pairs are linked, and how many opposing ones are."""

    unrelated: int
    false: int
    opposing: int
    found: int

    @classmethod
    def of(cls, verdicts: Iterable[tuple[Pair, bool]]) -> Figures:
        """Counts the verdicts."""
        seen = list(verdicts)
        opposing = [links for pair, links in seen if pair.supersedes]
        unrelated = [links for pair, links in seen if not pair.supersedes]
        return cls(len(unrelated), sum(unrelated), len(opposing), sum(opposing))

    def __str__(self) -> str:
        return f"of {self.unrelated} unrelated pairs {self.false} false; of {self.opposing} opposing {self.found} found"


def read(path: Path) -> list[Pair]:
    """The pairs of a file."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [Pair(row["first"], row["second"], row["supersedes"], row.get("by", "user")) for row in rows]


def _labelled(decision: Decision, number: int) -> Decision:
    return replace(decision, id=f"DEC-{number + 1:03}")


def main() -> int:
    """Prints the figures of a file."""
    parser = argparse.ArgumentParser(description="Pairs of decisions, the second of which may replace the first.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--each", action="store_true", help="name the pairs that went wrong")
    options = parser.parse_args()
    pairs = read(options.file)
    for name, links in (("as decisions", Pair.links), ("as messages", Pair.links_said)):
        verdicts = [(pair, links(pair)) for pair in pairs]
        print(f"{name}: {Figures.of(verdicts)}")
        for pair, linked_up in verdicts if options.each else ():
            if linked_up != pair.supersedes:
                print(f"  {'false' if linked_up else 'missed'}: {pair.first} -> {pair.second}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
