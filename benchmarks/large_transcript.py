"""What a transcript of 200 MB with one line of 50 MB costs: memory and time at first, time again when it has grown."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from commands import ROUTE
from installed import ralf
from measure import Row, main, run
from one_checkpoint import command, median_difference
from synthetic import long_result, skipped, turn

import ralf as core

TITLE = "A transcript of 200 MB with a line of 50 MB"

SIZE = 200_000_000
LONG_LINE = 50_000_000
TURNS = 900  # about 8 MB of conversation, 1.8 million tokens
GROWN = 10_000
MOST_MEMORY = 200_000_000
MOST_SECONDS = 0.05
SESSION = "large"


def large(path: Path) -> None:
    """Mostly records that say nothing about the work, conversation between them, and one very long line."""
    filler = (SIZE - LONG_LINE) // TURNS
    with path.open("wb") as file:
        for number in range(TURNS):
            records = b"".join(turn(number, SESSION))
            file.write(records)
            file.write(skipped(number, max(1_000, filler - len(records)), SESSION))
            if number == TURNS // 2:
                file.writelines(long_result(LONG_LINE, SESSION))


def grown() -> bytes:
    """What the agent did next: about 10 KB."""
    added = b""
    for number in range(TURNS, TURNS + 9):
        for record in turn(number, SESSION):
            if len(added) + len(record) <= GROWN:
                added += record
    return added


def produce(rounds: int) -> list[Row]:
    """The first call once; the second on copies of the store that the first one left, in turns with an empty one."""
    ralf()
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        transcript, empty = here / "large.jsonl", here / "empty.jsonl"
        empty.touch()
        large(transcript)
        size = transcript.stat().st_size
        after_first = here / "first"
        after_first.mkdir()
        first = run(command(after_first, transcript))
        checkpoints = core.get_context(ROUTE, root=after_first).checkpoint_count
        with transcript.open("ab") as file:
            file.write(grown())
        taken: dict[str, list[float]] = {"empty": [], "grown": []}
        peak = 0
        for number in range(2 * rounds):  # the tokenizer's 0.2 s sway by more than what is looked for
            pair = (("empty", empty), ("grown", transcript))
            for name, given in pair if number % 2 else pair[::-1]:
                root = shutil.copytree(after_first, here / f"{name}-{number}")
                sample = run(command(root, given))
                taken[name].append(sample.cpu)
                peak = max(peak, sample.peak)
                written = core.get_context(ROUTE, root=root).checkpoint_count - checkpoints
                assert written == (name == "grown")
                shutil.rmtree(root)
        base, again = (statistics.median(times) for times in taken.values())
        beyond = median_difference(taken["grown"], taken["empty"])
        what = f"first call, {size / 1e6:.0f} MB, {checkpoints} checkpoints"
        return [
            Row("empty transcript, tokenizer loaded", base * 1000, "ms CPU", 1.0),
            Row(what, first.cpu * 1000, "ms CPU", first.cpu / base, first.peak),
            Row("its peak memory, as a share of 200 MB", first.peak / 1e6, "MB", first.peak / MOST_MEMORY, 0, 1),
            Row("second call, 10 KB appended", again * 1000, "ms CPU", again / base, peak),
            Row("beyond the empty one, as a share of 50 ms", beyond * 1000, "ms CPU", beyond / MOST_SECONDS, 0, 1),
        ]


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
