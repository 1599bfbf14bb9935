"""What documents cost: a write in a standing process, its system calls, a cold `decide`, and lists of many.

    BEFORE=/tmp/before/.venv/bin/python python benchmarks/machinery.py     beside an earlier version, in turns

A row with `before` has a ratio to what the earlier version takes for the same. Whole commands run in a project without
git, whose call is another program's.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from installed import ralf
from measure import BARE, ROOT, Row, main

TITLE = "Documents"

EXAMPLE = ROOT / "examples" / "session.jsonl"

MAKE = """
import functools, sys, time, ralf
decide = functools.partial(ralf.record_decision, sys.argv[2], root=sys.argv[1])
"""

WRITES = (
    MAKE
    + """
decide("the first one")
for number in range(int(sys.argv[3])):
    began = time.perf_counter(), time.process_time()
    decide(f"number {number} of {time.time_ns()}")
    print(time.perf_counter() - began[0], time.process_time() - began[1])
"""
)


TOGETHER = (
    MAKE
    + """
time.sleep(max(0.0, float(sys.argv[3]) - time.time()))
for number in range(int(sys.argv[4])):
    began = time.perf_counter()
    decide(f"number {number} of {time.time_ns()}")
    print(time.perf_counter() - began)
"""
)

LONG = (
    MAKE
    + """
for number in range(int(sys.argv[3])): decide(f"number {number}", rationale=f"word{number} " * 55_000)
for number in range(20):
    began = time.perf_counter()
    decide(f"one more: {number}")
    print(time.perf_counter() - began)
"""
)
"""A journal of about so many times 500 KB, and what a write to it takes."""


class Version:
    """A version of ralf, its projects, and how its commands are called."""

    def __init__(self, python: str, command: str, scratch: Path) -> None:
        self.python, self.command, self.folder = python, command, scratch
        scratch.mkdir()
        self.environment = os.environ | {"HOME": str(scratch), "XDG_CONFIG_HOME": str(scratch / "config")}
        self.environment.pop("PYTHONPATH", None)

    def runs(self, code: str, *words: object) -> str:
        """What a program prints that imports ralf."""
        command = [self.python, "-c", code, *map(str, words)]
        return subprocess.run(command, env=self.environment, cwd="/", check=True, capture_output=True, text=True).stdout

    def takes(self, root: Path, *words: str) -> tuple[float, float]:
        """Seconds of a command, elapsed and of the processor."""
        command = [self.command, "--root", str(root), *words]
        return spent(command, self.environment)

    def project(self, name: str, routes: int) -> Path:
        """A project of so many routes of one decision, the first of them with the example's checkpoints."""
        root = self.folder / name
        root.mkdir()
        code = "import sys, ralf\nralf.checkpoint('route-0', sys.argv[2], root=sys.argv[1])\n"
        code += "for n in range(int(sys.argv[3])): ralf.record_decision(f'route-{n}', f'number {n}', root=sys.argv[1])"
        self.runs(code, root, EXAMPLE, routes)
        return root


def spent(command: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds that a command takes, elapsed and of the processor."""
    began = time.perf_counter()
    child = os.posix_spawn(command[0], command, environment, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, 1, 0)])
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{' '.join(command)}: ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def in_turns(cases: dict[str, Callable[[], tuple[float, float]]], rounds: int) -> dict[str, tuple[float, float]]:
    """Of each case the medians of what it takes, the cases in turns."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            found[name].append(case())
    return {name: tuple(map(statistics.median, zip(*taken, strict=True))) for name, taken in found.items()}  # type: ignore[misc]


def writes(version: Version, root: Path) -> tuple[float, float]:
    """The medians of fifty decisions in one process."""
    lines = version.runs(WRITES, root, "many", 50).splitlines()
    pairs = [tuple(map(float, line.split())) for line in lines]
    return statistics.median(one for one, _ in pairs), statistics.median(one for _, one in pairs)


_OF_THE_PROGRAM = re.compile(r"^\d+ +(?:write\(1, |clock_gettime\()")
"""Calls by which the program that writes measures and prints."""


def calls_of_a_write(version: Version, root: Path) -> tuple[float, float]:
    """System calls and fsyncs of one more decision in a standing process, as strace counts them."""
    counts = []
    for number in (10, 110):
        report = version.folder / "strace"
        command = ["strace", "-f", "-o", str(report), version.python, "-c", WRITES, str(root), "traced", str(number)]
        subprocess.run(command, env=version.environment, cwd="/", check=True, capture_output=True)
        lines = [line for line in report.read_text(errors="replace").splitlines() if not _OF_THE_PROGRAM.search(line)]
        counts.append((len(lines), sum(bool(re.search(r" f(?:data)?sync\(", line)) for line in lines)))
    (few, few_syncs), (many, many_syncs) = counts
    return (many - few) / 100, (many_syncs - few_syncs) / 100


def together(version: Version, root: Path, documents: int, writes: int = 100) -> float:
    """The 99th percentile of the elapsed time of a write, in seconds: sixteen processes write at once to so many."""
    start = time.time() + 4
    writers = [
        subprocess.Popen(
            [version.python, "-c", TOGETHER, str(root), f"shared-{number % documents}", str(start), str(writes)],
            env=version.environment,
            cwd="/",
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(16)
    ]
    taken = sorted(float(line) for writer in writers for line in writer.communicate()[0].split())
    assert len(taken) == 16 * writes, f"{len(taken)} writes of {16 * writes} were done"
    return taken[int(len(taken) * 0.99)]


def produce(rounds: int) -> list[Row]:
    """Every row, those of an earlier version only where one is named."""
    scratch = Path(tempfile.mkdtemp(prefix="ralf-machinery-"))
    try:
        return [*_rows(scratch, rounds)]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _rows(scratch: Path, rounds: int) -> list[Row]:
    now, rows = Version(sys.executable, ralf(), scratch / "now"), list[Row]()
    versions = {"now": now}
    if before := os.environ.get("BEFORE"):
        versions["before"] = Version(before, str(Path(before).with_name("ralf")), scratch / "before")
    ten = {name: version.project("ten", 10) for name, version in versions.items()}

    def add(what: str, taken: dict[str, tuple[float, float]], limit: float, which: Sequence[int] = (0, 1)) -> None:
        for one in which:
            ratio = taken["now"][one] / taken["before"][one] if "before" in taken else None
            unit = ("ms elapsed", "ms CPU")[one]
            rows.append(Row(f"{what}, {unit[3:]}; ratio to before", 1_000 * taken["now"][one], unit, ratio, 0, limit))

    add(
        "one write",
        in_turns({name: lambda v=v, n=name: writes(v, ten[n]) for name, v in versions.items()}, rounds),
        0.3,
    )  # type: ignore[misc]
    if shutil.which("strace"):
        for name, version in versions.items():
            calls, syncs = calls_of_a_write(version, ten[name])
            limits = (100, 1) if name == "now" else (None, None)
            rows.append(Row(f"system calls of a write, {name}", calls, "calls", calls, 0, limits[0]))
            rows.append(Row(f"fsyncs of a write, {name}", syncs, "calls", syncs, 0, limits[1]))
    of_one = {name: together(version, ten[name], 1) for name, version in versions.items()}
    ratio = of_one["now"] / of_one["before"] if "before" in of_one else None
    rows.append(Row("16 writers of one document: p99; ratio to before", 1_000 * of_one["now"], "ms", ratio, 0, 0.6))
    of_many = together(now, ten["now"], 16)
    rows.append(
        Row("16 writers of 16 documents: p99; ratio to one", 1_000 * of_many, "ms", of_many / of_one["now"], 0, 1)
    )
    long = statistics.median(map(float, now.runs(LONG, ten["now"], "long", 110).split()))
    rows.append(Row("a write to a journal of 50 MB, a share of 20 ms", 1_000 * long, "ms", long / 0.02, 0, 1))
    number = count()
    decide = {
        name: lambda version=version, root=ten[name]: version.takes(  # type: ignore[misc]
            root, "context", "decide", "route-1", f"cold {next(number)}"
        )
        for name, version in versions.items()
    }
    add("cold decide", in_turns(decide, rounds), 0.5)
    thousand, most = now.project("thousand", 1_000), now.project("most", 4_000)
    reads = {
        "bare": lambda: spent(BARE, now.environment),
        "show": lambda: now.takes(ten["now"], "show", "route-0"),
        "list": lambda: now.takes(ten["now"], "list"),
        "list of 1,000 routes": lambda: now.takes(thousand, "list"),
        "status of 4,000 routes": lambda: now.takes(most, "status"),
        "search in 4,000 routes": lambda: now.takes(most, "search", "number 77"),
    }
    for case in reads.values():
        case()  # what is cached by then is
    taken = in_turns(reads, rounds)
    bare = taken["bare"][1]
    rows.append(Row("python -I -c pass", 1_000 * bare, "ms CPU"))
    for name, limit in (("show", 2.2), ("list", 2.5)):
        rows.append(
            Row(f"{name} against a bare start", 1_000 * taken[name][1], "ms CPU", taken[name][1] / bare, 0, limit)
        )
    of_thousand = taken["list of 1,000 routes"][1]
    ratio = of_thousand / taken["list"][1]
    rows.append(Row("list of 1,000 routes against 10", 1_000 * of_thousand, "ms CPU", ratio, 0, 1.6))
    for name in ("status of 4,000 routes", "search in 4,000 routes"):
        rows.append(Row(f"{name}, a share of 2 s", taken[name][0], "s", taken[name][0] / 2, 0, 1))
    return rows


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
