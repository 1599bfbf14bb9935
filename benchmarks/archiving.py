"""What moving old checkpoints to the archive adds to a checkpoint of 50,000 tokens, on a route all of which is old."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from measure import Row, main
from synthetic import turn

import ralf
from ralf.route import archive
from ralf.text import tokens

TITLE = "Archiving by itself"
TOKENS = 50_000
BEFORE = 24
"""Checkpoints that the route has, more than what always stays, before it is measured."""
MOST = 0.05


def _grow(transcript: Path, number: int) -> int:
    """Append a segment to a transcript; the number of the turn that comes next."""
    size = 0
    with transcript.open("ab") as file:
        while size < TOKENS:
            lines = list(turn(number, "one"))
            size += sum(tokens.estimate(line.decode()) for line in lines)
            file.writelines(lines)
            number += 1
    return number


def produce(rounds: int) -> list[Row]:
    """Checkpoint after checkpoint, with the time of `a_little` taken within each."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        transcript, number = root / "one.jsonl", 0
        spent: list[float] = []
        original = archive.a_little

        def timed(*arguments: object, **_: object) -> None:
            begin = time.process_time()
            original(*arguments, now=time.time() + 10_000 * 86_400)  # type: ignore[arg-type]
            spent.append(time.process_time() - begin)

        taken = []
        for _ in range(BEFORE):
            number = _grow(transcript, number)
            ralf.checkpoint("loop", transcript, root=root)
        archive.a_little = timed
        try:
            for _ in range(max(rounds, 10)):
                number = _grow(transcript, number)
                begin = time.process_time()
                assert len(ralf.checkpoint("loop", transcript, root=root).checkpoints) >= 1
                taken.append(time.process_time() - begin)
        finally:
            archive.a_little = original
    shares = [one / whole for one, whole in zip(spent, taken, strict=False)]
    moved = [share for share in shares if share > MOST / 10]
    return [
        Row("a checkpoint", statistics.median(taken) * 1000, "ms CPU", 1.0),
        Row(
            "archiving, of all checkpoints' time",
            sum(spent) / len(spent) * 1000,
            "ms CPU",
            sum(spent) / sum(taken),
            0,
            MOST,
        ),
        Row(f"archiving, the worst of {len(moved)} that moved anything", max(spent) * 1000, "ms CPU", max(shares)),
    ]


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
