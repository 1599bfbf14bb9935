"""What the harnesses find in ours, and in variants that are broken on purpose: docs/internals.md.

    python benchmarks/trust.py --record             the short runs, of which .ci/run does a part
    python benchmarks/trust.py --long --record      the long runs: hours on two cores
    python benchmarks/trust.py --long --only calls  one of them

Rows of a broken variant are the baseline: there the harness has to find something.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import measure

_SKIPPED = 77


class Harness(NamedTuple):
    """A harness `tests.faults.NAME`: its arguments in the short and in the long run, and those of its broken variants,
    by what is broken in them.
    """

    name: str
    usual: str
    long: str
    broken: Mapping[str, str] = MappingProxyType({})


HARNESSES = (
    Harness(
        "calls",
        "--part 8",
        "--rounds 20000",
        {
            name: f"--only 'a decision' --part 50 --broken '{name}'"
            for name in ("no fsync", "plain write", "lock by existence")
        },
    ),
    Harness(
        "power",
        "--states 200",
        "--states 10000 --modes ordered,writeback,journal",
        {"no fsync": "--states 40 --broken anything", "no fsync of the file": "--states 120 --broken 'the route file'"},
    ),
    Harness(
        "writers",
        "--rounds 100",
        "--rounds 1000",
        {name: f"--rounds 5 --broken '{name}'" for name in ("no lock", "one temporary name")},
    ),
    Harness(
        "editors",
        "--rounds 400",
        "--rounds 20000",
        {
            "plain write": "--rounds 60 --only 'by rename' --broken 'plain write'",
            "a bare rename": "--rounds 40 --only 'by rename' --broken rename",
            "no second look": "--rounds 40 --only 'found before' --broken 'no second look'",
            "no look at open files": "--rounds 40 --only 'in pieces' --broken 'no look at open files'",
        },
    ),
    Harness(
        "cuts",
        "--rounds 100",
        "--rounds 10000",
        {
            name: f"--rounds 10 --only 'with the newer cache' --broken '{name}'"
            for name in ("a cache of another journal",)
        },
    ),
    Harness(
        "gits",
        "--rounds 100",
        "--rounds 1000",
        {"a store that git sees": "--rounds 10 --only hidden --broken 'a store that git sees'"},
    ),
    Harness(
        "shares",
        "--rounds 20",
        "--rounds 500",
        {name: f"--rounds 6 --broken '{name}'" for name in ("one file a clone",)},
    ),
    Harness(
        "mixed",
        "--rounds 10",
        "--rounds 200",
        {name: f"--rounds 10 --broken '{name}'" for name in ("no lock", "rename")},
    ),
    Harness(
        "fuzz",
        "--rounds 20000",
        "--rounds 1000000",
        {name: f"--rounds 300 --only '{name}'" for name in ("unguarded front matter", "unguarded name")},
    ),
    Harness("roundtrip", "--rounds 4000", "--rounds 1000000", {"nothing is quoted": "--rounds 150 --broken"}),
    Harness("planted_secrets", "--rounds 2000", "--rounds 100000"),
    Harness("cut_secrets", "--rounds 40000", "--rounds 500000"),
    Harness(
        "forget",
        "--rounds 60",
        "--rounds 10000",
        {
            f"the {part} are left out": f"--rounds 60 --broken {part}"
            for part in ("blobs", "caches", "files", "records")
        },
    ),
    Harness(
        "histories",
        "--rounds 1000",
        "--rounds 100000",
        {name: f"--rounds 60 --broken '{name}'" for name in ("apply without order", "revert without sections")},
    ),
    Harness(
        "loop",
        "",
        "--iterations 300",
        {
            "runs that died are not taken in": "--iterations 18 --broken 'nothing taken in'",
            "nothing is handed over": "--iterations 6 --broken 'nothing handed over'",
        },
    ),
    Harness(
        "thresholds",
        "--sessions 4",
        "--sessions 200 --most 2000000 --jobs 2",
        {
            what: f"--sessions 1 --most 200000 --threshold 10000 --broken '{what}'"
            for what in ("hints that look too far ahead", "a watcher that counts what is injected")
        },
    ),
    Harness(
        "runs",
        "--step 3",
        "--kills 3000 --signals 100000 --zombies 50 --delays 20",
        {
            "calls without phases": "--step 25 --only boundaries --broken 'no phases'",
            "no compare and swap": "--zombies 2 --only zombies --broken 'no compare and swap'",
            "an inbox without a cursor": "--signals 800 --only signals --broken 'no cursor'",
            "a delay that a timer keeps": "--delays 1 --only delays --broken 'a timer'",
        },
    ),
    Harness("damage", "--rounds 100", "--rounds 10000", {"a repair that removes": "--rounds 9 --broken"}),
)


def _run(harness: Harness, arguments: str, *, told: bool) -> subprocess.CompletedProcess[str]:
    roots = os.pathsep.join([*measure.IMPORT_ROOTS, str(measure.ROOT)])
    return subprocess.run(
        [sys.executable, "-m", f"tests.faults.{harness.name}", *shlex.split(arguments)],
        cwd=measure.ROOT,
        env=os.environ | {"PYTHONPATH": roots},
        stdout=subprocess.PIPE,
        stderr=None if told else subprocess.DEVNULL,
        text=True,
        check=False,
    )


def _rows(harness: Harness, *, long: bool) -> Iterator[tuple[list[str], bool]]:
    """The rows of a harness and of its broken variants, as cells, and whether each came to what it should."""
    done = _run(harness, harness.long if long else harness.usual, told=True)
    if done.returncode == _SKIPPED:
        yield [f"{harness.name}: cannot run here", "skipped", ""], True
        return
    for line in done.stdout.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| ") and cells[0] not in ("case", "---"):
            yield cells, True
    if done.returncode:
        yield [f"{harness.name}: exit status", str(done.returncode), "0 MISSED"], False
    for what, arguments in harness.broken.items():
        found = _run(harness, arguments, told=False).returncode != 0
        yield [f"{harness.name}, broken: {what}", "found" if found else "NOT FOUND", "found"], found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; exit status 1 where a harness found something in ours, or nothing in a broken one."""
    parser = argparse.ArgumentParser(description="What the harnesses find.")
    parser.add_argument("--long", action="store_true", help="the long runs")
    parser.add_argument("--only", action="append", choices=[harness.name for harness in HARNESSES])
    measure.add_record_option(parser)
    options = parser.parse_args(arguments)
    good = True
    for harness in HARNESSES:
        if options.only and harness.name not in options.only:
            continue
        found = []
        for cells, fine in _rows(harness, long=options.long):
            found.append(cells)
            good = good and fine
            print(f"| {' | '.join(cells)} |", flush=True)
        if options.record:
            rows = outcomes(harness.name, found, "long run: " if options.long else "")
            measure.record("trust", rows, f"{'--long ' if options.long else ''}--only {harness.name}")
    return 0 if good else 1


def outcomes(harness: str, found: Sequence[Sequence[str]], long: str = "") -> list[tuple[str, str, str]]:
    """One row for each case of a harness that has a target; its parts and its numbers stand beside the figure.

    So the next run replaces the row, whatever its size and whatever it finds. Broken variants are the baseline of the
    first row.
    """
    figures: dict[str, dict[str, list[str]]] = {}
    promised: dict[str, dict[str, None]] = {}
    broken: dict[str, list[str]] = {}
    for case, figure, target in found:
        size, _, part = case.rpartition(": ")
        if size.endswith(", broken"):
            broken.setdefault(figure, []).append(part)
        elif target and part != "exit status":  # the faults behind it are figures of their own
            whole = size or f"{harness}, {part}"
            name = re.sub(r"\b\d[\d,]*", "N", whole)
            text = figure if name == whole else f"{figure} ({whole})"
            figures.setdefault(long + name, {}).setdefault(text, []).append(part if size else "")
            promised.setdefault(long + name, {})[target] = None
    variants = [f"; broken variants {result}: {', '.join(names)}" for result, names in broken.items()]
    return [
        (
            name,
            "; ".join(f"{', '.join(parts)}: {text}".removeprefix(": ") for text, parts in named.items()),
            ", ".join(promised[name]) + ("" if number else "".join(variants)),
        )
        for number, (name, named) in enumerate(figures.items())
    ]


if __name__ == "__main__":
    sys.exit(main())
