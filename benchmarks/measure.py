"""Measures commands and functions against a baseline of the same run: CPU time, peak memory, ratios.

Every benchmark is a script beside this one: it names its cases, one of them the baseline, and calls `main`. Cases take
turns, so that whatever else the machine does meets all of them; a figure is the median over the rounds.
"""

from __future__ import annotations

import argparse
import atexit
import inspect
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("RESULTS.md")
IMPORT_ROOTS = [str(ROOT / name) for name in ("context", "cli", "integrations", "migrations")]

# What is measured is this checkout, whatever is installed.
sys.path[:0] = [path for path in IMPORT_ROOTS if path not in sys.path]
# The user's own folder of a benchmark is its own, never that of whoever runs it; processes inherit it.
_own = Path(os.environ.get("XDG_CONFIG_HOME", ""))
if not (_own.name.startswith("ralf-tests-") or _own.is_relative_to(tempfile.gettempdir())):
    os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="ralf-tests-")
    atexit.register(shutil.rmtree, os.environ["XDG_CONFIG_HOME"], ignore_errors=True)


def copied(project: Path, to: Path) -> Path:
    """A copy of a project, registered as the original is."""
    from ralf.storage import registry

    shutil.copytree(project, to)
    found = registry.find(project)
    if found is not None:
        said = [each for each in found.__slots__ if each not in ("path", "_brought")]
        registry.update(to, **{each: getattr(found, each) for each in said})
    return to


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: CPU seconds (user and system), and the peak memory in bytes, 0 where it was not measured."""

    cpu: float
    peak: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A case in figures.

    value, unit   the figure
    ratio         to the baseline of the same run, None where there is no baseline
    peak          bytes, 0 where not measured
    target        what `ratio` may be at most, None where nothing was promised
    """

    name: str
    value: float
    unit: str
    ratio: float | None = None
    peak: int = 0
    target: float | None = None

    @property
    def missed(self) -> bool:
        """Whether a promise was broken."""
        return self.target is not None and self.ratio is not None and self.ratio > self.target

    def promise(self) -> str:
        """The ratio to the baseline and what it may be, in one cell."""
        _, _, ratio, target, _ = self.cells()
        return ", ".join(filter(None, (ratio and f"ratio {ratio}", target)))

    def cells(self) -> list[str]:
        """As text, one for each column."""
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        target = "" if self.target is None else f"≤ {self.target:g}{' MISSED' if self.missed else ''}"
        peak = f"{self.peak / 1e6:.0f} MB" if self.peak else ""
        return [self.name, f"{self.value:,.4g} {self.unit}", ratio, target, peak]


def python(code: str, *, isolated: bool = True) -> list[str]:
    """The command that runs `code` in a fresh interpreter that sees this checkout."""
    setup = f"import sys; sys.path[:0] = {IMPORT_ROOTS!r}\n"
    return [sys.executable, *(["-I"] if isolated else []), "-c", setup + code]


BARE = [sys.executable, "-I", "-c", "pass"]
"""The floor of every command: an interpreter that starts and stops."""


# A process inherits the peak memory of the one that started it, so a small one has to stand in between.
_LAUNCHER = """
import os, sys
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
report = f"{os.waitstatus_to_exitcode(status)} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}"
os.write(int(sys.argv[1]), report.encode())
"""


def run(command: Sequence[str], *, stdin: bytes = b"") -> Sample:
    """Runs a command, given by its absolute path, to its end. Raises RuntimeError, with its complaint, if it fails."""
    reader, writer = os.pipe()
    with open(reader, "rb") as report:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(writer), *command],
            input=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(writer,),
        )
        os.close(writer)
        code, cpu, peak = report.read().decode().split() or ("-1", "0", "0")
    if done.returncode or code != "0":
        raise RuntimeError(f"{command[0]} ended with {code}: {done.stderr.decode(errors='replace')}")
    return Sample(float(cpu), int(peak) * (1 if sys.platform == "darwin" else 1024))


def commands(
    cases: Mapping[str, Sequence[str]],
    *,
    rounds: int,
    targets: Mapping[str, float] | None = None,
    stdin: Mapping[str, bytes] | None = None,
) -> list[Row]:
    """Each case by its CPU time; the first one is the baseline. `stdin`: what a case reads, by its name."""
    given = stdin or {}
    runs = {name: partial(run, command, stdin=given.get(name, b"")) for name, command in cases.items()}
    return _compare(runs, rounds, targets)


def functions(
    cases: Mapping[str, Callable[[], object]], *, rounds: int, targets: Mapping[str, float] | None = None
) -> list[Row]:
    """Each case by the CPU time of this process; the first one is the baseline."""

    def timed(function: Callable[[], object]) -> Sample:
        begin = time.process_time()
        function()
        return Sample(time.process_time() - begin)

    return _compare({name: partial(timed, function) for name, function in cases.items()}, rounds, targets)


def _compare(cases: Mapping[str, Callable[[], Sample]], rounds: int, targets: Mapping[str, float] | None) -> list[Row]:
    samples: dict[str, list[Sample]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, once in cases.items():
            samples[name].append(once())
    medians = {name: statistics.median(sample.cpu for sample in taken) for name, taken in samples.items()}
    base = next(iter(medians.values()))
    return [
        Row(
            name,
            medians[name] * 1000,
            "ms CPU",
            medians[name] / base if base else None,
            max(sample.peak for sample in taken),
            (targets or {}).get(name),
        )
        for name, taken in samples.items()
    ]


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    return aligned([["case", "figure", "ratio", "target", "peak"], *(row.cells() for row in rows)])


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells, the first one the heading, as a Markdown table whose columns line up."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    head, *rest = lines
    shown = [head, ["-" * width for width in widths], *rest]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in shown
    )


def main(title: str, produce: Callable[[int], list[Row]], arguments: Sequence[str] | None = None) -> int:
    """Prints the table; `--record` also writes its promises into RESULTS.md. Exit status 1: a target was missed."""
    parser = argparse.ArgumentParser(description=f"{title}. The first row of each group is the baseline.")
    parser.add_argument("-k", "--rounds", type=int, default=11, help="rounds; the figure is the median")
    add_record_option(parser)
    options = parser.parse_args(arguments)
    rows = produce(options.rounds)
    print(table(rows))
    if options.record:
        figures = [(row.name, row.cells()[1], row.promise()) for row in promised(rows)]
        usual = options.rounds == parser.get_default("rounds")
        record(Path(inspect.getfile(produce)).stem, figures, "" if usual else f"-k {options.rounds}")
    return 1 if any(row.missed for row in rows) else 0


def promised(rows: Sequence[Row]) -> list[Row]:
    """The rows with a target, or all of them if the benchmark has no targets."""
    return [row for row in rows if row.target is not None] or list(rows)


# ---- the table of newest figures ----

_SECTIONS = {
    "Quality": ("quality",),
    "Commands and hooks (speed)": (*("commands", "hooks", "large_transcript", "one_checkpoint", "serving", "tokens"),),
    "Storage and growth": ("growth", "machinery", "storage", "stores"),
    "Search": ("search",),
    "Redaction and secrets": ("redaction",),
    "Tasks and loop": ("between_agents", "claims", "loop", "tasks"),
    "Agent state and stores": ("runs",),
    "Migration": ("migration",),
}
"""The section of RESULTS.md that keeps the figures of a script."""


def add_record_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--record`."""
    parser.add_argument("--record", action="store_true", help="replace the figures in benchmarks/RESULTS.md")


def record(script: str, figures: Iterable[tuple[str, str, str]], options: str = "") -> None:
    """Writes the figures of `python benchmarks/SCRIPT.py OPTIONS` into its section of RESULTS.md, with today's date.

    figures   what was measured, the figure, its baseline and target
    """
    section = next(name for name, scripts in _SECTIONS.items() if script in scripts)
    command = f"`python benchmarks/{script}.py{options and ' '}{options}`"
    rows = [(*figure, f"{datetime.now(UTC):%Y-%m-%d}", command) for figure in figures]
    RESULTS.write_text(replaced(RESULTS.read_text("utf-8"), section, rows), "utf-8")


def replaced(text: str, section: str, rows: Iterable[Sequence[str]]) -> str:
    """The text with the rows in the table of the section: each replaces the row with its first cell, or is added."""
    lines = text.split("\n")
    start = lines.index(f"## {section}")
    end = next((n for n in range(start + 1, len(lines)) if lines[n].startswith("## ")), len(lines))
    places = {_first_cell(lines[n]): n for n in range(start, end) if lines[n].startswith("|")}
    added: dict[str, str] = {}
    for row in rows:
        line = f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"
        if (first := _first_cell(line)) in places:
            lines[places[first]] = line
        else:
            added[first] = line
    last = max(places.values()) + 1
    return "\n".join([*lines[:last], *added.values(), *lines[last:]])


def _first_cell(line: str) -> str:
    return line.split("|")[1].strip()
