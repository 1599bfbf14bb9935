"""Cuts secrets of each kind in two and in three at random places, and looks for what is left of them.

The pieces are results that follow on one another. Between two of them a checkpoint may end, which knows the next pieces
or does not. What is left is 12 characters in a row of a secret (the whole of one that is shorter) in any piece.

    python -m tests.faults.cut_secrets --rounds 1000000
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from unittest.mock import patch

from tests.faults import rig
from tests.faults.planted_secrets import RUN, Plant, plants

from ralf.redact import borders
from ralf.redact.redactor import Redactor
from ralf.transcripts.events import START, Event

CUTS = 20
"""So many times each secret is cut."""

_ENOUGH = 20  # of what is left
_REDACTOR = Redactor(b"k" * 32)


@dataclass(frozen=True, slots=True)
class Left:
    """What was left of a secret that was cut.

    plant   the secret
    run     what is left
    pieces  how it was cut
    border  how many pieces stood before the end of the checkpoint, 0 where there was none
    known   whether the checkpoint knew the pieces behind it
    """

    plant: Plant
    run: str
    pieces: tuple[str, ...]
    border: int
    known: bool


def run(seed: int, rounds: int) -> Iterator[Left]:
    """Cut so many times; each kind is cut as often as any other."""
    dice = random.Random(seed)
    for plant in plants(dice, -(-rounds // CUTS)):
        whole = f"log of the deployment\n{plant.text}\nall done"
        first = whole.index(plant.text)
        for _ in range(CUTS):
            parts = dice.choice((2, 3))
            places = sorted(dice.sample(range(first + 1, first + len(plant.text)), parts - 1))
            pieces = [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)]
            border, known = dice.randrange(parts), dice.random() < 0.5
            shown = _redacted(pieces, border, known=known)
            for left in _left(plant, shown):
                yield Left(plant, left, tuple(pieces), border, known)


def _redacted(pieces: Sequence[str], border: int, *, known: bool) -> list[str]:
    events = [Event("result", piece, START, START) for piece in pieces]
    before, behind = events[:border], events[border:]
    clean, tails = _REDACTOR.events(before, following=behind if known else ())
    rest, _ = _REDACTOR.events(behind, tails=tails)
    return [event.text for event in (*clean, *rest)]


def _left(plant: Plant, texts: Sequence[str]) -> Iterator[str]:
    for part in plant.parts:
        runs = [part[place : place + RUN] for place in range(max(1, len(part) - RUN + 1))]
        yield from [run for run in runs if any(run in text for text in texts)][:1]


# ---- broken on purpose ----

BROKEN: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "each piece by itself": lambda: patch.object(borders._Stream, "add", lambda *_, **__: None),
    "what may follow an end": lambda: patch.object(borders, "unfinished", lambda *_: iter(())),
    "what goes on from an end": lambda: patch.object(borders, "_tail", lambda *_: ""),
    "how much goes on": lambda: patch.object(borders, "_rest", lambda _: 0),
}
"""Redaction without one of its parts, by what it does not look at."""


def harness(size: rig.Rounds, seed: int, _: Sequence[str] = ()) -> rig.Found:
    """Cut so many times, and tell what is left; the first of it is enough."""
    found = rig.Found(rounds=size.rounds)
    for one in islice(run(seed, size.rounds), _ENOUGH):
        how = f"{one.pieces} (checkpoint after {one.border}, known: {one.known})"
        found.note("left", f"{one.plant.kind}: {one.run!r} of {how}"[:1_000])
    return found


if __name__ == "__main__":
    raise SystemExit(rig.command("cut_secrets", rig.Rounds(100_000), harness, broken=BROKEN))
