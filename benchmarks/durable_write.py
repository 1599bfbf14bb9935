"""What the durable write of a route file costs, against the same calls written out by hand."""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from measure import Row, main, python

from ralf.route import state
from ralf.storage import durable
from ralf.storage.durable import hidden_beside

TITLE = "The durable write of a route file"

SIZES = (20_000, 80_000)
WRITES_A_ROUND = 30


def bare(path: Path, content: bytes) -> None:
    """Temporary file, fsync, rename, fsync of the folder, and nothing else."""
    temporary = f"{path}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(temporary, path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def exchange(path: Path, content: bytes, known: str) -> None:
    """As a writer of a route does it when nobody has saved the file meanwhile, knowing the hash of what it read. What
    the write before has displaced goes, as it does a moment later.
    """
    for before in _displaced.pop(path, ()):
        os.unlink(before)
    _exchange(path, content, known)


def swept(path: Path, content: bytes, known: str) -> None:
    """The same, with the writer's look for what lies beside the file in place of the bare removal."""
    durable.sweep(path, grace=0)
    _exchange(path, content, known)


def _exchange(path: Path, content: bytes, known: str) -> None:
    displaced = durable.exchange(path, content, known)
    if displaced is not None:
        displaced.drop()


_displaced: dict[Path, list[Path]] = {}
"""Where the file lies that the write before has displaced; found while nobody looks at the clock."""


def produce(rounds: int) -> list[Row]:
    """Both ways in turns; a ratio is the median over the pairs, as a disk is faster at one moment than at the next.

    A durable write waits for the disk, so what is promised is the time that goes by. TMPDIR has to lie on a disk.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        rows = [row for size in SIZES for row in _compared(folder, size, rounds * WRITES_A_ROUND)]
        return [*rows, *_counted(folder)]


def _compared(folder: Path, size: int, writes: int) -> list[Row]:
    content = os.urandom(size)
    known = state.digest_of(content)
    taken: dict[str, list[tuple[float, float]]] = {"bare": [], "ralf": [], "swept": []}
    ways: tuple[tuple[str, Callable[[Path, bytes], object]], ...] = (
        ("bare", bare),
        ("ralf", partial(exchange, known=known)),
        ("swept", partial(swept, known=known)),
    )
    for number in range(writes):
        for name, write in ways if number % 2 else ways[::-1]:
            path = folder / f"{name}-{size}.md"
            _displaced[path] = hidden_beside(path)
            clock, cpu = time.perf_counter(), time.process_time()
            write(path, content)
            taken[name].append((time.perf_counter() - clock, time.process_time() - cpu))
    rows = []
    for unit, what in enumerate(("ms elapsed", "ms CPU")):
        by_hand = statistics.median(times[unit] for times in taken["bare"]) * 1000
        rows.append(Row(f"{size // 1000} KB, the calls by hand", by_hand, what, 1.0))
        for name, told in (
            ("ralf", "ralf.storage.durable.exchange"),
            ("swept", "the same, and the look before the next"),
        ):
            pairs = [(ours[unit], theirs[unit]) for ours, theirs in zip(taken[name], taken["bare"], strict=True)]
            ratio = statistics.median(ours / theirs for ours, theirs in pairs)
            middle = statistics.median(ours for ours, _ in pairs) * 1000
            target = 1.2 if (name, unit) == ("ralf", 0) else None
            rows.append(Row(f"{size // 1000} KB, {told}", middle, what, ratio, 0, target))
    return rows


def _counted(folder: Path) -> list[Row]:
    """How many times one write syncs the file and the folder, as the kernel sees it."""
    strace = shutil.which("strace")
    if strace is None:
        print("fsync of file and folder: not counted, strace is not installed", file=sys.stderr)
        return []
    target = folder / "traced.md"
    target.write_bytes(b"old")
    log = folder / "trace"
    call = f"atomic.exchange(Path({str(target)!r}), b'new' * 7_000, {state.digest_of(b'old')!r}).drop()"
    code = f"from pathlib import Path\nfrom ralf.storage import durable as atomic\n{call}"
    done = subprocess.run(
        [strace, "-f", "-y", "-e", "trace=fsync,fdatasync,sync,syncfs", "-o", str(log), *python(code)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"fsync of file and folder: not counted, strace: {done.stderr.strip()}", file=sys.stderr)
        return []
    synced = re.findall(r"sync\w*\(\d+<([^>]*)>", log.read_text())
    folders = sum(os.path.isdir(name.removesuffix(" (deleted)")) for name in synced)
    files = len(synced) - folders
    # Promised is exactly one of each: one too few is as wrong as one too many.
    return [
        Row("fsync of the file, per write", files, "calls", 1.0 if files == 1 else 9.0, 0, 1),
        Row("fsync of the folder, per write", folders, "calls", 1.0 if folders == 1 else 9.0, 0, 1),
    ]


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
