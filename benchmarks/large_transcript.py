"""What large transcripts cost: one of 200 MB with a line of 50 MB, at first and when it has grown, and one of 1 GB, of
which a part is conversation; how fast each kind of record goes by, and how much memory it takes.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import measure
from commands import ROUTE
from installed import ralf
from measure import ROOT, Row, main, run
from one_checkpoint import command, median_difference
from synthetic import long_result, skipped, turn, unused

import ralf as core

TITLE = "Transcripts of 200 MB, with a line of 50 MB, and of 1 GB"

SIZE = 200_000_000
LONG_LINE = 50_000_000
TURNS = 900  # about 8 MB of conversation, 1.8 million tokens
GROWN = 10_000
MOST_MEMORY = 200_000_000
MOST_SECONDS = 0.05
SESSION = "large"
HUGE = 1_000_000_000
CONVERSATION = 30_000_000  # of it
LEAST_CONVERSATION, LEAST_SKIPPED = 6, 200  # MB a second


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


def conversation(path: Path, size: int) -> None:
    """A session as a client writes it, nothing in it skipped."""
    with path.open("wb") as file:
        number = 0
        while file.tell() < size:
            file.writelines(turn(number, SESSION, details=True))
            number += 1


def prose(path: Path) -> None:
    """The project's own pages, said by a person and by the agent in turns: what tells no decision and looks as if."""
    pages = [page.read_text(encoding="utf-8") for page in (*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md")]
    paragraphs = [paragraph for page in pages for paragraph in page.split("\n\n")]
    with path.open("wb") as file:
        for number, place in enumerate(range(0, len(paragraphs), 4)):
            said = "\n\n".join(paragraphs[place : place + 4])
            role = ("user", "assistant")[number % 2]
            message = {"role": role, "content": [{"type": "text", "text": said}]}
            file.write(json.dumps({"type": role, "sessionId": SESSION, "message": message}).encode() + b"\n")


def unread(path: Path, size: int) -> None:
    """One turn, and then only records that are skipped, most of them short."""
    with path.open("wb") as file:
        file.writelines(turn(0, SESSION))
        number = 0
        while file.tell() < size:
            file.writelines(unused(number, SESSION))
            number += 1


def huge(here: Path) -> list[Row]:
    """A gigabyte in one call, and its parts by themselves, each beyond an empty transcript."""
    parts = {"empty": here / "none.jsonl", "talk": here / "talk.jsonl", "unread": here / "unread.jsonl"}
    parts["empty"].touch()
    parts["prose"] = here / "prose.jsonl"
    prose(parts["prose"])
    conversation(parts["talk"], CONVERSATION)
    unread(parts["unread"], HUGE - CONVERSATION)
    with parts["unread"].open("rb") as skipped_part, parts["talk"].open("rb") as talk:
        whole = here / "huge.jsonl"
        with whole.open("wb") as file:
            shutil.copyfileobj(skipped_part, file, 1 << 20)
            shutil.copyfileobj(talk, file, 1 << 20)
    parts["huge"] = whole
    taken = {}
    for name, path in parts.items():
        root = here / f"root-{name}"
        root.mkdir()
        taken[name] = run(command(root, path))
        shutil.rmtree(root)
    rate = {
        name: parts[name].stat().st_size / 1e6 / (taken[name].cpu - taken["empty"].cpu)
        for name in ("talk", "unread", "prose")
    }
    size = parts["huge"].stat().st_size / 1e9
    for path in parts.values():
        path.unlink()
    told, passed = rate["talk"], rate["unread"]
    return [
        Row("conversation, as a share of 6 MB/s", told, "MB/s", LEAST_CONVERSATION / told, taken["talk"].peak, 1),
        Row(
            "prose, as a share of the conversation's", rate["prose"], "MB/s", told / rate["prose"], taken["prose"].peak
        ),
        Row("skipped records, as a share of 200 MB/s", passed, "MB/s", LEAST_SKIPPED / passed, taken["unread"].peak, 1),
        Row(f"{size:.2f} GB in one call", taken["huge"].cpu * 1000, "ms CPU", None, taken["huge"].peak),
        Row(
            "1 GB in one call: peak memory, as a share of 200 MB",
            taken["huge"].peak / 1e6,
            "MB",
            taken["huge"].peak / MOST_MEMORY,
            0,
            1,
        ),
    ]


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
        nothing = statistics.median(run(command(after_first, transcript, loaded="")).cpu for _ in range(rounds))
        with transcript.open("ab") as file:
            file.write(grown())
        taken: dict[str, list[float]] = {"empty": [], "grown": []}
        peak = 0
        for number in range(2 * rounds):  # the tokenizer's 0.2 s sway by more than what is looked for
            pair = (("empty", empty), ("grown", transcript))
            for name, given in pair if number % 2 else pair[::-1]:
                root = measure.copied(after_first, here / f"{name}-{number}")
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
            Row("empty transcript, all loaded", base * 1000, "ms CPU", 1.0),
            Row(what, first.cpu * 1000, "ms CPU", first.cpu / base, first.peak),
            Row(
                "first call: peak memory, as a share of 200 MB", first.peak / 1e6, "MB", first.peak / MOST_MEMORY, 0, 1
            ),
            Row("second call, nothing new", nothing * 1000, "ms CPU", nothing / base),
            Row("second call, 10 KB appended", again * 1000, "ms CPU", again / base, peak),
            Row(
                "second call, beyond an empty one, as a share of 50 ms",
                beyond * 1000,
                "ms CPU",
                beyond / MOST_SECONDS,
                0,
                1,
            ),
            *huge(here),
        ]


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
