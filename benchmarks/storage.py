"""What a thousand checkpoints of 50,000 tokens take on the disk, and what a checkpoint and its evidence cost.

Sessions: those named with `--sessions`, else the evaluation data beside the checkout, else a made one.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from measure import ROOT, Row, main
from synthetic import turn

import ralf
from ralf.storage.filestore import FileStore
from ralf.text import tokens
from ralf.transcripts.events import keep_evidence, read_evidence
from ralf.transcripts.reader import open_transcript

TITLE = "Storage"
CHECKPOINT, CHECKPOINTS = 50_000, 1_000
MOST_BLOBS, MOST_JOURNAL = 60.0, 30.0  # MB, of so many checkpoints of so many tokens
LEAST_READ = 5.0  # MB of evidence a second, for the search index
DATA = ROOT.parent / "shared" / "eval" / "data"

T = TypeVar("T")


class _Clock:
    """Adds up the CPU seconds of what it is given to do."""

    def __init__(self) -> None:
        self.spent = 0.0

    def __call__(self, work: Callable[[], T]) -> T:
        begin = time.process_time()
        try:
            return work()
        finally:
            self.spent += time.process_time() - begin


def produce(rounds: int) -> list[Row]:
    """The sessions one after another, each as a route of its own."""
    tokens.count("loaded")
    found: list[list[float]] = []
    sizes: dict[str, float] = {}
    for _ in range(max(1, rounds // 4)):
        with tempfile.TemporaryDirectory() as scratch:
            figures = _measured(Path(scratch))
        found.append([figures["checkpoint"], figures["read"]])
        sizes = figures
    checkpoint, read = (min(column) for column in zip(*found, strict=True))
    share = CHECKPOINT * CHECKPOINTS / sizes["tokens"] / 1e6
    text = sizes["text"] / 1e6
    per = CHECKPOINT / sizes["tokens"] * 1000
    return [
        Row("text of the events", sizes["text"] * share, "MB"),
        Row("the transcripts, gzip", sizes["gzip"] * share, "MB", 1.0),
        _limited("blobs", sizes["blobs"] * share, MOST_BLOBS),
        _limited("journal", sizes["journal"] * share, MOST_JOURNAL),
        Row("a checkpoint of 50,000 tokens", checkpoint * per, "ms CPU", 1.0),
        Row("evidence read back", text / read, "MB/s", LEAST_READ * read / text, 0, 1.0),
    ]


def _limited(name: str, size: float, most: float) -> Row:
    return Row(f"{name}, {CHECKPOINTS:,} checkpoints, limit {most:g} MB", size, "MB", size / most, 0, 1.0)


def _measured(scratch: Path) -> dict[str, float]:
    whole, read = _Clock(), _Clock()
    taken = text = packed = 0
    for number, path in enumerate(_sessions(scratch)):
        route = f"route-{number}"
        taken += whole(lambda route=route, path=path: ralf.checkpoint(route, path, root=scratch)).tokens_read  # type: ignore[misc]
        packed += len(zlib.compress(path.read_bytes(), 6))
        events = list(open_transcript(path).events())
        store = FileStore(scratch / "again")
        digest = keep_evidence(store, events)
        text += sum(len(line.text.encode()) for line in read(lambda s=store, d=digest: list(read_evidence(s, d))))  # type: ignore[misc]
    folder = scratch / ".autonomous" / "context"
    return {
        "tokens": taken,
        "text": text,
        "gzip": packed,
        "blobs": _size(folder / "blobs"),
        "journal": _size(folder / "journal"),
        "checkpoint": whole.spent,
        "read": read.spent,
    }


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _sessions(scratch: Path) -> Iterator[Path]:
    if "--sessions" in sys.argv:
        place = sys.argv.index("--sessions")
        yield from map(Path, sys.argv[place + 1 :])
    elif DATA.is_dir():
        for packed in sorted(DATA.glob("*.jsonl.gz")):
            path = scratch / packed.stem
            path.write_bytes(gzip.decompress(packed.read_bytes()))
            yield path
    else:
        path = scratch / "made.jsonl"
        with path.open("wb") as file:
            for number in range(300):
                file.writelines(turn(number, "made"))
        yield path


if __name__ == "__main__":
    named = sys.argv.index("--sessions") if "--sessions" in sys.argv else len(sys.argv)
    sys.exit(main(TITLE, produce, sys.argv[1:named]))
