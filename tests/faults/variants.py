"""Every variant that is broken on purpose, and how its harness finds it: the release tests run them all."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
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
    """

    harness: str
    name: str
    found: str
    options: str = ""
    seconds: float = 4

    def __str__(self) -> str:
        return f"{self.harness}, {self.name}" + (f", {self.options}" if "--only" in self.options else "")

    def run(self, home: Path) -> str:
        """Run what finds it; the line, "" for none, or `skipped: REASON`."""
        options = shlex.split(f"{self.options} --broken {shlex.quote(self.name)}")
        done = started(self.harness, *options, home=home)
        if done.returncode == SKIPPED:
            return f"skipped: {done.stderr.strip()}"
        line = re.search(rf"(?m)^(?:{self.found})(?:: |$)", done.stderr)
        if line and done.returncode:
            return line[0]
        print(f"{self}: not found\n{done.stdout}{done.stderr}", file=sys.stderr)
        return ""


def started(name: str, *arguments: object, home: Path) -> subprocess.CompletedProcess[str]:
    """`python -m tests.faults.NAME`, as a person starts it whose home this is."""
    known = environment(home)
    known["PYTHONPATH"] = os.pathsep.join([str(SOURCE), known["PYTHONPATH"]])
    command = [sys.executable, "-m", f"tests.faults.{name}", *map(str, arguments)]
    return subprocess.run(command, cwd=SOURCE, env=known, capture_output=True, text=True, timeout=HANGS, check=False)


VARIANTS = (
    # ---- the write path ----
    Variant("calls", "lock by existence", "blocked", "--only 'a decision' --part 50", 12),
    Variant("calls", "no fsync", "not synced", "--only 'a decision' --part 50"),
    Variant("shares", "one file a clone", "conflict", "--rounds 6"),
    Variant("mixed", "no lock", "failed: [a-z ]+|lost|torn", "--rounds 3"),
    Variant("mixed", "rename", "lost", "--rounds 5 --only save --only decide --only revert"),
    Variant("power", "anything", "lost", "--states 40", 16),
    # ---- what is recorded, merged, forgotten and read ----
    *(Variant("forget", part, "left", "--rounds 60") for part in ("blobs", "caches", "files", "records")),
    Variant("fuzz", "front matter", "crash", "--rounds 3000 --only 'front matter'"),
    Variant("fuzz", "name", "escape", "--rounds 300 --only name"),
    Variant("fuzz", "transcript", "hang", "--rounds 60 --only transcript"),
    Variant("fuzz", "cache", "memory", "--rounds 7 --only cache"),
    Variant("roundtrip", "nothing is quoted", "at the margin", "--rounds 150"),
    Variant("thresholds", "hints that look too far ahead", "late", "--sessions 1 --most 200000 --threshold 10000", 30),
    Variant(
        "thresholds",
        "a watcher that counts what is injected",
        "early",
        "--sessions 1 --most 200000 --threshold 10000",
        30,
    ),
    *(
        Variant("cut_secrets", name, "left", "--rounds 8000")
        for name in ("each piece by itself", "what may follow an end", "what goes on from an end")
    ),
    # ---- NATS ----
    Variant("nats", "no compare and swap", "lost|doubled|moved|damaged", "--kills 2", 20),
)


def of(*harnesses: str) -> Iterator[Variant]:
    """Those of some harnesses."""
    return (each for each in VARIANTS if each.harness in harnesses)
