"""The harnesses that break the write path: each finds what a broken one loses, and nothing in ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.kept import Kept

from examples import examples, step
from storekit import SOURCE, copied, environment

SKIPPED = 77
HANGS = 1_800  # seconds: the longest takes two minutes on a machine that does nothing else


def faults(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What a run has found. Not the time that writers waited: that is for a machine which does nothing else."""
    return [line for line in done.stderr.splitlines() if not line.startswith("slow: ")]


def harness(name: str, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`python -m tests.faults.NAME`, as a person starts it; skips the test where the harness cannot run."""
    folder = cwd / "home"
    folder.mkdir()
    known = environment(folder)
    known["PYTHONPATH"] = os.pathsep.join([str(SOURCE), known["PYTHONPATH"]])
    command = [sys.executable, "-m", f"tests.faults.{name}", *map(str, arguments)]
    done = subprocess.run(command, cwd=SOURCE, env=known, capture_output=True, text=True, timeout=HANGS)
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    print(done.stdout)  # the figures, in the report of a failure and with -rP
    return done


def test_a_folder_that_is_kept_is_laid_out_as_it_was_whatever_became_of_it(tmp_path: Path) -> None:
    store, other = tmp_path / "store", tmp_path / "other"
    (store / "inner" / "empty").mkdir(parents=True)
    (store / "inner").chmod(0o700)
    (store / "inner" / "file").write_bytes(b"one")
    (store / "inner" / "file").chmod(0o600)
    os.utime(store / "inner" / "file", ns=(1, 2))
    copied(store, other)
    kept = Kept(store)
    (store / "inner" / "file").write_bytes(b"two")
    (store / "more").mkdir()
    kept.lay(store)
    assert _all_of(store) == _all_of(other)


def _all_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    found = sorted(folder.rglob("*"))
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes())
        if path.is_file()
        else (path.stat().st_mode, 0, b"")
        for path in found
    }


LENGTHS = {
    "kills": (6, "--rounds", examples(400)),
    "calls": (18, "--part", 8 * step()),
    "cuts": (5,),
    "editors": (5, "--rounds", examples(400)),
    "editors, on another system": (4, "--rounds", 8, "--without", "exchange", "--without", "leases"),
    "gits": (5, "--rounds", examples(100)),
    "mixed": (8, "--rounds", examples(20)),
    "shares": (8, "--rounds", examples(40)),
    "merges": (10, "--rounds", examples(60)),
    "loop": (14, "--iterations", 12),
    "writers": (5, "--rounds", 2, "--only", "decide"),
}
"""How many seconds each takes in `.ci/run`, and the part of it that is run; all of the writers run there, alone."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow(seconds=how[0])) for name, how in LENGTHS.items()]
)
def test_a_run_finds_nothing(tmp_path: Path, name: str) -> None:
    done = harness(name.partition(", ")[0], *LENGTHS[name][1:], cwd=tmp_path)
    assert faults(done) == []
    assert "| case | figure | target |" in done.stdout


UNLOCKED = "failed|AssertionError: the revisions have gaps"
"""The store compares and swaps: a writer that takes no lock has errors, or numbers records as another does."""

BROKEN = {
    "kills, lock by existence": ("kills", "blocked", "--rounds", 20),
    "calls, no fsync": ("calls", "not synced", "--only", "a decision", "--part", 50),
    "calls, plain write": ("calls", "not synced", "--only", "a decision", "--part", 50),
    "cuts, a cache of another journal": ("cuts", "lost", "--rounds", 10, "--only", "with the newer cache"),
    "shares, histories that nobody joins": ("shares", "undone|doubled|apart", "--rounds", 10),
    "merges, labels as they are": ("merges", "doubled|mislinked", "--rounds", 20, "--only", "by the driver"),
    "merges, the newer alone": ("merges", "lost", "--rounds", 20, "--only", "by the driver"),
    "merges, no slots": ("merges", "conflicts", "--rounds", 160, "--only", "by git alone"),
    "writers, no lock": ("writers", UNLOCKED, "--rounds", 5),
    "writers, one temporary name": ("writers", UNLOCKED, "--rounds", 5),
    "mixed, no lock": ("mixed", "failed: [a-z ]+|lost|torn", "--rounds", 3),
    "mixed, rename": ("mixed", "lost", "--rounds", 5, "--only", "save", "--only", "decide", "--only", "revert"),
    "editors, plain write": ("editors", "lost", "--rounds", 60, "--only", "by rename"),
    "editors, rename": ("editors", "lost", "--rounds", 40, "--only", "by rename"),
    "editors, no look at open files": ("editors", "lost", "--rounds", 40, "--only", "in pieces"),
    "editors, no second look": ("editors", "lost", "--rounds", 40, "--only", "found before"),
    "loop, nothing taken in": ("loop", "lost", "--iterations", 18),
    "loop, nothing handed over": ("loop", "untold", "--iterations", 6),
    "gits, a store that git sees": ("gits", "lost", "--rounds", 10, "--only", "hidden"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_write_path_is_found(tmp_path: Path, case: str) -> None:
    name, fault, *arguments = BROKEN[case]
    done = harness(str(name), *arguments, "--broken", case.partition(", ")[2], cwd=tmp_path)
    assert done.returncode == 1
    assert re.search(rf"(?m)^({fault}): ", done.stderr)
