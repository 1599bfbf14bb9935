"""The benchmarks keep their newest figures in benchmarks/RESULTS.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
CELLS = 5

TEXT = """# Results

## Search

The files are warm.

| figure of | figure | baseline, target | date | command |
| --- | --- | --- | --- | --- |
| warm | 9 ms | ratio 0.90, ≤ 1 | 2026-11-20 | `old` |
| cold | 60 ms | ratio 5.90 | 2026-11-20 | `old` |

## Storage

| figure of | figure | baseline, target | date | command |
| --- | --- | --- | --- | --- |
| warm | 1 MB | | 2026-11-20 | `old` |
"""


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_a_recorded_figure_replaces_its_row_and_a_new_one_ends_the_table_of_its_section() -> None:
    import measure

    rows = [("new", "1 | 2", "", "2026-11-28", "`now`"), ("warm", "4 ms", "ratio 0.40", "2026-11-28", "`now`")]
    text = measure.replaced(TEXT, "Search", rows)
    cold = "| cold | 60 ms | ratio 5.90 | 2026-11-20 | `old` |\n"
    assert text == TEXT.replace(
        "| warm | 9 ms | ratio 0.90, ≤ 1 | 2026-11-20 | `old` |", "| warm | 4 ms | ratio 0.40 | 2026-11-28 | `now` |"
    ).replace(cold, f"{cold}| new | 1 / 2 |  | 2026-11-28 | `now` |\n")
    assert measure.replaced(text, "Search", rows) == text


def test_record_writes_the_promises_of_a_benchmark_and_the_command_that_measures_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import measure

    monkeypatch.setattr(measure, "RESULTS", tmp_path / "RESULTS.md")
    measure.RESULTS.write_text(TEXT, encoding="utf-8")
    rows = [measure.Row("a floor", 1, "ms"), measure.Row("warm", 9, "ms", 1.5, target=1)]
    measure.record("search", [(row.name, row.cells()[1], row.promise()) for row in measure.promised(rows)])
    recorded = measure.RESULTS.read_text(encoding="utf-8")
    assert re.search(
        r"(?m)^\| warm \| 9 ms \| ratio 1\.50, ≤ 1 MISSED \| [\d-]{10} \| `python benchmarks/search\.py` \|$", recorded
    )
    assert "a floor" not in recorded


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


def test_every_section_that_a_benchmark_records_into_has_one_table_with_distinct_rows() -> None:
    import measure

    sections = dict(part.split("\n", 1) for part in measure.RESULTS.read_text("utf-8").split("\n## ")[1:])
    assert set(measure._SECTIONS) <= set(sections)
    for name, text in sections.items():
        rows = [line for line in text.splitlines() if line.startswith("|")]
        firsts = [line.split(" | ")[0] for line in rows]
        assert len(firsts) == len(set(firsts)), name
        assert {line.count(" | ") + 1 for line in rows} == {CELLS}, name


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
