"""Every variant that is broken on purpose, and what finds it: a harness as a person starts it, or a test.

python -m tests.faults.variants                all of them; exit status 1 where one is not found
python -m tests.faults.variants claims nats    those of these harnesses
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.figures import SKIPPED
from tests.storekit import SOURCE, environment

HANGS = 1_800  # seconds: the longest takes two minutes on a machine that does nothing else


@dataclass(frozen=True)
class Variant:
    """One of them, and how it is found.

    found    how a line of the harness's errors begins, up to a colon
    options  of the harness, beside the one that breaks it
    seconds  that it takes, about, on a machine that does nothing else
    test     the test that finds it instead, which runs where it stands
    """

    harness: str
    name: str
    found: str = ""
    options: str = ""
    seconds: float = 4
    test: str = ""

    def __str__(self) -> str:
        return f"{self.harness}, {self.name}" + (f", {self.options}" if "--only" in self.options else "")

    def run(self, home: Path) -> str:
        """Run what finds it; the line, "" for none, or `skipped: REASON`."""
        if self.test:
            command = [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", self.test]
            done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, timeout=HANGS, check=False)
            found = f"`{self.test}`" if not done.returncode else ""
        else:
            how = _OTHERWISE.get(self.harness, "--broken {}").format(shlex.quote(self.name))
            done = started(self.harness, *shlex.split(f"{self.options} {how}"), home=home)
            if done.returncode == SKIPPED:
                return f"skipped: {done.stderr.strip()}"
            line = re.search(rf"(?m)^(?:{self.found})(?:: |$)", done.stderr)
            found = " ".join(line[0].split()).removesuffix(":")[:60] if line and done.returncode else ""
        if not found:
            print(f"{self}: not found\n{done.stdout}{done.stderr}", file=sys.stderr)
        return found


def started(name: str, *arguments: object, home: Path) -> subprocess.CompletedProcess[str]:
    """`python -m tests.faults.NAME`, as a person starts it whose home this is."""
    known = environment(home)
    known["PYTHONPATH"] = os.pathsep.join([str(SOURCE), known["PYTHONPATH"]])
    command = [sys.executable, "-m", f"tests.faults.{name}", *map(str, arguments)]
    return subprocess.run(command, cwd=SOURCE, env=known, capture_output=True, text=True, timeout=HANGS, check=False)


_OTHERWISE = {"fuzz": "--only {}", "nats_power": "--default"}
"""How those harnesses are told what is broken that have no `--broken NAME`."""

_UNLOCKED = "failed|AssertionError: the revisions have gaps"
"""The store compares and swaps: a writer that takes no lock has errors, or numbers records as another does."""

_CASE = r".*--case \d+"
_RAISED = _CASE + r"(?s:.*?)^\S*"
_CUT = ".*: .* of .*checkpoint after .*"
_OF_REPLAYED = "tests/test_hooks_replayed.py::test_the_harness_finds_what_is_broken"
_OF_THRESHOLDS = "tests/test_hooks_thresholds.py::test_the_harness_finds_what_is_broken"

VARIANTS = (
    # ---- the write path ----
    Variant("calls", "lock by existence", "blocked", "--only 'a decision' --part 50", 12),
    Variant("calls", "no fsync", "not synced", "--only 'a decision' --part 50"),
    Variant("calls", "plain write", "not synced", "--only 'a decision' --part 50"),
    Variant("shares", "one file a clone", "conflict", "--rounds 6"),
    Variant("writers", "no lock", _UNLOCKED, "--rounds 5"),
    Variant("mixed", "no lock", "failed: [a-z ]+|lost|torn", "--rounds 3"),
    Variant("mixed", "rename", "lost", "--rounds 5 --only save --only decide --only revert"),
    Variant("editors", "plain write", "lost", "--rounds 60 --only 'by rename'"),
    Variant("editors", "rename", "lost", "--rounds 40 --only 'by rename'"),
    Variant("editors", "no second look", "lost", "--rounds 40 --only 'in pieces'"),
    Variant("gits", "a store that git sees", "lost", "--rounds 10 --only hidden"),
    Variant("power", "anything", "lost", "--states 40", 16),
    # ---- what is recorded, merged, forgotten and read ----
    Variant("forget", "blobs", r"seed \d+", "--rounds 60"),
    Variant("forget", "caches", r"seed \d+", "--rounds 60"),
    Variant("forget", "files", r"seed \d+", "--rounds 60"),
    Variant("forget", "records", r"seed \d+", "--rounds 60"),
    Variant("histories", "apply without order", _CASE, "--rounds 60 --jobs 1"),
    Variant("histories", "apply without removals", _CASE, "--rounds 60 --jobs 1"),
    Variant("histories", "revert without sections", _CASE, "--rounds 60 --jobs 1"),
    Variant(
        "damage",
        "a repair that removes",
        test="tests/test_damage.py::test_a_repair_that_removes_what_it_cannot_read_is_caught",
    ),
    Variant("fuzz", "unguarded front matter", _RAISED + "(?:Hang|Error)", "--rounds 300 --jobs 1"),
    Variant("fuzz", "unguarded name", ".*escape.*", "--rounds 300 --jobs 1"),
    Variant("fuzz", "unguarded transcript", _RAISED + "Hang", "--rounds 60 --jobs 1"),
    Variant("fuzz", "unguarded cache", f"{_CASE}.*MB.*", "--rounds 7 --jobs 1"),
    Variant(
        "roundtrip",
        "nothing is quoted",
        test="tests/test_roundtrip.py::test_the_harness_catches_a_renderer_that_does_not_quote",
    ),
    Variant(
        "remembered",
        "a parser that forgets fields",
        test="tests/test_memory.py::test_the_harness_catches_a_parser_that_forgets_fields_that_it_does_not_know",
    ),
    Variant("cut_secrets", "each piece by itself", _CUT, "--rounds 8000"),
    Variant("cut_secrets", "what may follow an end", _CUT, "--rounds 8000"),
    Variant("cut_secrets", "what goes on from an end", _CUT, "--rounds 8000"),
    Variant("cut_secrets", "how much goes on", _CUT, "--rounds 8000"),
    # ---- loops, tasks and runs ----
    Variant("loop", "nothing taken in", "lost", "--iterations 18", 15),
    Variant("loop", "nothing handed over", "untold", "--iterations 6"),
    Variant(
        "replayed",
        "hints that look too far ahead",
        test=f"{_OF_REPLAYED}[hints that look too far ahead-late-160000]",
    ),
    Variant(
        "replayed",
        "briefs that cost what they may",
        test=f"{_OF_REPLAYED}[briefs that cost what they may-dear-24000]",
    ),
    Variant(
        "thresholds",
        "hints that look too far ahead",
        test=f"{_OF_THRESHOLDS}[hints that look too far ahead-late]",
    ),
    Variant(
        "thresholds",
        "a watcher that counts what is injected",
        test=f"{_OF_THRESHOLDS}[a watcher that counts what is injected-early]",
    ),
    Variant("claims", "no compare and swap", "doubled|nobody|unfenced", "--rounds 12 --only 'one winner'"),
    Variant("claims", "no compare and swap", "doubled|unfenced|failed", "--tasks 60 --only 'long list'"),
    Variant("runs", "no phases", "repeated", "--step 25 --only boundaries", 8),
    Variant("runs", "no compare and swap", "unfenced", "--zombies 2 --only zombies", 8),
    Variant("runs", "no cursor", "lost|doubled|order", "--signals 3000 --only signals", 8),
    Variant("runs", "a timer", "early", "--delays 1 --only delays", 8),
    # ---- NATS ----
    Variant("nats", "no compare and swap", "lost|doubled|moved|damaged", "--kills 2", 20),
    Variant("nats_leases", "a lease for everybody", "false take-over", "--kills 1", 30),
    Variant("nats_load", "old states stay", "grown", "--runs 2 --workers 2 --minutes 0.7 --thinks 0.01", 60),
    Variant("nats_load", "saved twice", "slow", "--runs 6 --workers 3 --minutes 0.5 --thinks 0.1", 45),
    Variant("nats_machines", "a lease for everybody", "false take-over", "--only take-overs --runs 2", 15),
    Variant("nats_power", "servers that sync by themselves", "lost", "--servers 1 --losses 1", 6),
    Variant("engine_secrets", "not encrypted", "a secret is at rest on a server", "--only 'at rest' --secrets 88", 20),
    Variant("engine_secrets", "readable names", "a secret is at rest on a server", "--only 'at rest' --secrets 88", 20),
    Variant(
        "engine_secrets",
        "leaking",
        test="tests/test_nats_harness.py::test_a_password_that_a_program_lets_out_is_found_wherever_it_comes_out",
    ),
)


def of(*harnesses: str, but: Sequence[str] = ()) -> Iterator[Variant]:
    """Those of some harnesses, or of all but some."""
    for each in VARIANTS:
        if each.harness not in but and (not harnesses or each.harness in harnesses):
            yield each


def main(args: Sequence[str] | None = None) -> int:
    """Run them, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.variants")
    known = sorted({each.harness for each in VARIANTS})
    parser.add_argument("harnesses", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; all where none is named")
    given = parser.parse_args(args)
    if unknown := set(given.harnesses) - set(known):
        parser.error(f"no variants of {', '.join(sorted(unknown))}")
    print("| harness | variant | found as | seconds |\n| --- | --- | --- | --- |")
    status = 0
    for each in of(*given.harnesses):
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="ralf-variant-") as home:
            found = each.run(Path(home))
        status = status if found else 1
        cells = (each.harness, str(each).partition(", ")[2], found or "NOT FOUND", f"{time.monotonic() - begun:.0f}")
        print(f"| {' | '.join(cells)} |", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
