"""The benchmarks keep their newest figures in benchmarks/RESULTS.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_the_table_of_the_readme_has_the_figures_of_the_results() -> None:
    names = {
        "changed": "changed files",
        "failed": "failed commands",
        "user": "requests",
        "identifiers": "names used again",
    }
    results = (BENCHMARKS / "RESULTS.md").read_text(encoding="utf-8")
    readme = (BENCHMARKS.parent / "README.md").read_text(encoding="utf-8")
    for first, name in names.items():
        shown = re.search(rf"(?m)^\| {first} .*", readme)
        recorded = re.search(rf"(?m)^\| {name}, compacted \| ([^;|]*)[^|]*\|([^|]*)", results)
        assert shown is not None
        assert recorded is not None
        shares = [re.findall(r"([\d.]+) %", text) for text in (shown[0], recorded[1] + recorded[2])]
        assert [float(share) for share in shares[0]] == [round(float(share)) for share in shares[1]], name


def test_every_benchmark_that_records_has_a_section_and_every_section_its_benchmarks() -> None:
    import measure

    named = [script for scripts in measure._SECTIONS.values() for script in scripts]
    recording = r"measure import .*\b(main|record)\b|measure\.(main|record)\("
    scripts = {
        path.stem
        for path in BENCHMARKS.glob("*.py")
        if path.stem not in ("measure", "speed") and re.search(recording, path.read_text(encoding="utf-8"))
    }
    assert sorted(named) == sorted(scripts)
