"""What a checkpoint of 50,000 tokens costs beyond the same command on an empty transcript, both with the tokenizer, the
redactor and the summariser loaded.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from commands import EXAMPLE, ROUTE
from installed import ralf
from measure import Row, main, python, run

from ralf.checkpointing.due import cut
from ralf.text import tokens
from ralf.transcripts.reader import open_transcript

TITLE = "A checkpoint of 50,000 tokens"
TOKENS = 50_000
MOST_SECONDS = 0.5

LOADED = """
from ralf.checkpointing import record as payload; from ralf.text import tokens
from ralf.redact import engine, redactor as redact
from ralf.checkpointing import section
tokens.count("loaded")
"""
"""What only a transcript with anything new in it needs: with it loaded, two differ in what is done to them alone."""

COMMAND = """
sys.argv = ["ralf", "--root", {root!r}, "checkpoint", {route!r}, "--transcript", {transcript!r}]
from ralf_cli.main import run
run()
"""


def command(root: Path, transcript: Path, *, loaded: str = LOADED) -> list[str]:
    """The command that checkpoints a transcript, in a process of its own that has first loaded what it may need."""
    return python(loaded + COMMAND.format(route=ROUTE, root=str(root), transcript=str(transcript)))


def median_difference(longer: Sequence[float], shorter: Sequence[float]) -> float:
    """The median over the rounds: what else the machine did meets both cases of one."""
    return statistics.median(one - other for one, other in zip(longer, shorter, strict=True))


def produce(rounds: int) -> list[Row]:
    """Each round in a fresh store, the two transcripts in turns."""
    ralf()
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        empty, session = here / "empty.jsonl", here / "session.jsonl"
        empty.write_bytes(EXAMPLE.read_bytes().partition(b"\n")[0] + b"\n")  # a log without any record is refused
        source = open_transcript(EXAMPLE)
        piece = next(cut(source.events(), TOKENS, tokens.count))
        session.write_bytes(EXAMPLE.read_bytes()[: piece.end.byte])
        taken: dict[str, list[float]] = {"empty": [], "session": []}
        peak = 0
        for number in range(2 * rounds):  # the tokenizer's 0.2 s sway by more than what is looked for
            pair = (("empty", empty), ("session", session))
            for name, transcript in pair if number % 2 else pair[::-1]:
                root = here / f"{name}-{number}"
                root.mkdir()
                sample = run(command(root, transcript))
                taken[name].append(sample.cpu)
                peak = max(peak, sample.peak)
        base, full = (statistics.median(times) for times in taken.values())
        beyond = median_difference(taken["session"], taken["empty"])
        return [
            Row("empty transcript, all loaded", base * 1000, "ms CPU", 1.0),
            Row(f"checkpoint of {piece.tokens:,} tokens", full * 1000, "ms CPU", full / base, peak),
            Row(
                "a checkpoint beyond an empty one, as a share of 0.5 s",
                beyond * 1000,
                "ms CPU",
                beyond / MOST_SECONDS,
                0,
                1,
            ),
        ]


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
