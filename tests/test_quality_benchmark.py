"""The quality benchmark runs on any session, and finds by itself what was needed again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ralf.transcripts.events import Event, Position
from storekit import HANGS

ROOT = Path(__file__).parents[1]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / "benchmarks" / "quality.py"
    return subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=HANGS)


@pytest.mark.ci
def test_every_arm_is_measured_on_the_example_session() -> None:
    done = run(str(ROOT / "examples" / "session.jsonl"), "--slice", "20000", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    for asked in ("requests, stored", "changed files, stored", "names used again, closed"):
        for arm in ("masking", "recency", "ralf"):
            assert 0 <= rows[f"{asked}: {arm}"]["value"] <= 100
    assert rows["changed files, stored: ralf"]["value"] == 100


def test_a_name_is_needed_when_it_was_known_and_is_used_before_it_is_shown_again() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from quality import needs
    finally:
        sys.path.pop(0)
    said = [
        ("assistant", "The cause is in parse_header, commit 4f2a9c1."),
        ("result", "src/a.py:12 and retry_limit"),
        ("assistant", "On we go."),  # the cut lies before this one
        ("result", "retry_limit = 3"),
        ("assistant", "Now I change retry_limit as 4f2a9c1 did, and brand_new."),
    ]
    place = Position()
    events = [Event(kind, text, place, place) for kind, text in said]  # type: ignore[arg-type]
    found = needs(events, 2)
    assert [need.name for need in found] == ["4f2a9c1"]  # shown again, or never seen before: not needed
    assert "4f2a9c1" not in found[0].question
    assert "change" in found[0].question
