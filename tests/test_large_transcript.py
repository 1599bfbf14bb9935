"""A transcript of hundreds of megabytes is taken in one call, in little memory, at a pace that is held here in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ralf
import ralf.errors
import storekit

BENCHMARKS = storekit.SOURCE / "benchmarks"
MOST_MEMORY = 200 << 20


def write(path: Path, name: str, *sizes: int) -> None:
    """Have `benchmarks/large_transcript.py` append a part of a session to a file, in a process of its own."""
    code = f"import large_transcript, pathlib; large_transcript.{name}(pathlib.Path({str(path)!r}), *{sizes!r})"
    subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, env=storekit.environment(BENCHMARKS), check=True)


MEASURE = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(status, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
"""
"""In a small process of its own: a child's peak is at least what its parent held when it was started."""


def measured(root: Path, transcript: Path) -> tuple[float, int]:
    """Seconds of processor time and peak memory of a checkpoint by the command."""
    args = storekit.command("--root", root, "checkpoint", "r", "--transcript", transcript)
    run = [sys.executable, "-c", MEASURE, *args]
    done = subprocess.run(run, env=storekit.environment(root), capture_output=True, text=True, check=True)
    status, seconds, peak = done.stdout.split()
    assert status == "0", done.stderr
    return float(seconds), int(peak)


@pytest.mark.release
def test_two_hundred_megabytes_go_by_fast_and_in_little_memory(tmp_path: Path) -> None:
    """A sixth of the pace that is promised: this machine may be busy with other tests."""
    path = tmp_path / "large.jsonl"
    write(path, "unread", 130_000_000)
    write(tmp_path / "talk.jsonl", "conversation", 10_000_000)
    with path.open("ab") as file:
        result = b'{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"%s"}]}}\n'
        file.write(result % (b"compiling, " * (60_000_000 // 11)))
        file.write((tmp_path / "talk.jsonl").read_bytes())
    assert path.stat().st_size > 200_000_000
    seconds, peak = measured(tmp_path, path)
    assert peak < MOST_MEMORY
    assert seconds < 6 * (10 / 6 + 190 / 200)
    context = ralf.get_context("r", root=tmp_path)
    assert context.checkpoint_count > 5
    again, peak = measured(tmp_path, path)
    assert again < 1
    assert peak < MOST_MEMORY
    assert ralf.get_context("r", root=tmp_path).checkpoint_count == context.checkpoint_count


@pytest.mark.ci
def test_a_file_that_shrinks_while_it_is_read_ends_there_or_is_said_to_have_changed(tmp_path: Path) -> None:
    from ralf.transcripts.reader import open_transcript

    path = tmp_path / "s.jsonl"
    storekit.write_session(path, 60_000)
    events = open_transcript(path).events()
    for _ in range(3):
        next(events)
    os.truncate(path, 900)
    assert len(list(events)) < 2_000
    with pytest.raises(ralf.errors.TranscriptChanged):
        ralf.checkpoint("r", _shrinking(path), root=tmp_path)


def _shrinking(path: Path) -> Path:
    """The path of a transcript that has become shorter than what was taken of it."""
    storekit.write_session(path, 2_000)
    ralf.checkpoint("r", path, root=path.parent)
    os.truncate(path, 900)
    return path
