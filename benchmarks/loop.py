"""The targets that the proposal for context checkpoints sets itself, on the files of real runs: reading a route takes
less than 100 ms, its file less than 100 KB for each checkpoint, ralf less than 5 % of a run's time and of its tokens,
every decision of a run is kept, and more than nine of ten historical decisions are found.

A ratio is what came out to what may; of decisions, the share that is missing to what may be missing. A run's time is
that which its `metadata.yaml` records, of the shortest one; its tokens are those of real coding sessions. The files are
not part of this repository: without them, beside it, nothing is measured.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from measure import ROOT, Row, main

import ralf
from ralf.document import guarded_yaml
from ralf.project import Project
from ralf.text import tokens
from ralf.transcripts.reader import open_transcript
from ralf_integrations.blackbox5 import installing, loop
from ralf_integrations.clients import installation
from ralf_migrations.importing import import_all

TITLE = "The proposal's own targets, on real runs"

DATA = ROOT.parent / "shared" / "data" / "blackbox5"
SESSIONS = ROOT.parent / "shared" / "eval" / "data"
MOST_MS, MOST_KB, MOST_SHARE, MOST_UNFOUND = 100.0, 100.0, 0.05, 0.10
_HEADING = re.compile(r"(?m)^#{2,4}\s+(?:Decision\s+\d+|DEC-?\d+|D-?\d+)\b")
_DURATION = re.compile(r"(?m)^\s*duration_seconds:\s*(\d+)")


def produce(rounds: int) -> list[Row]:
    """The rows; see above."""
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        root = _tree(top)
        kept, told = _runs(root)
        rows = [
            *_reading(root, rounds),
            _size(root),
            _time(root, rounds),
            _tokens(top),
            Row("decisions of the runs that their routes have", kept, f"of {told}", 1 - kept / told, target=0.0),
        ]
        return [*rows, _found(top / "history")]


def _tree(top: Path) -> Path:
    """A project as the real one, with the real runs in their places, and ralf installed."""
    root = top / "5-project-memory" / "blackbox5"
    for run in sorted((DATA / "runs").iterdir()):
        agent, _, name = run.name.partition("__")
        shutil.copytree(run, root / "runs" / agent / name)
    (root / ".autonomous").mkdir()
    (root / "bin").mkdir()
    (root / "bin" / "ralf.md").write_text("# RALF\n")
    project = Project(root)
    for part in installing.parts(project):
        change = installation.plan(project, part)
        assert change is not None
        installation.apply(project, change)
    return root


def _runs(root: Path) -> tuple[int, int]:
    """Take in every run; how many of its decisions are in its route, and how many headings of its document tell."""
    kept = told = 0
    for number, folder in enumerate(sorted(root.glob("runs/*/*"))):
        document = folder / "DECISIONS.md"
        headings = len(_HEADING.findall(document.read_text(encoding="utf-8"))) if document.exists() else 0
        route = f"TASK-RUN-{number}"
        with contextlib.redirect_stderr(io.StringIO()):
            loop.end(Project(root), folder, route, None)
        told += headings
        if (root / ".autonomous/context/routes" / f"{route}.md").exists():
            kept += min(headings, len(ralf.get_context(route, root=root).decisions))
    return kept, told


def _reading(root: Path, rounds: int) -> Iterator[Row]:
    times = []
    for summary in ralf.list_routes(root=root):
        for _ in range(rounds):
            begin = time.perf_counter()
            ralf.get_context(summary.route, root=root).render(2_500, section="brief")
            times.append(1000 * (time.perf_counter() - begin))
    for name, value in (("median", statistics.median(times)), ("slowest", max(times))):
        yield Row(f"reading a route in process, {name}", value, "ms elapsed", value / MOST_MS, target=1.0)


def _size(root: Path) -> Row:
    found = [
        (root / ".autonomous/context/routes" / f"{one.route}.md").stat().st_size / 1000 / one.checkpoint_count
        for one in ralf.list_routes(root=root)
        if one.checkpoint_count
    ]
    return Row("the largest route file, for each checkpoint", max(found), "KB", max(found) / MOST_KB, target=1.0)


def _time(root: Path, rounds: int) -> Row:
    """What `start` and `end` take, as the shell calls them, to the shortest time that a real run took."""
    texts = [path.read_text(encoding="utf-8") for path in root.glob("runs/*/*/metadata.yaml")]
    shortest = min(int(found) for text in texts for found in _DURATION.findall(text))
    door, source = installing.script_path(Project(root)), next(root.glob("runs/*/run-0049"))
    times = []
    for number in range(rounds):
        folder = root / ".autonomous" / "runs" / f"run-20260201_1200{number:02d}-TASK-TIME-1"
        shutil.copytree(source, folder)
        begin = time.perf_counter()
        for command in ("start", "end"):
            words = [door, command, "--run-dir", folder, "--route", "TASK-TIME-1"]
            subprocess.run(words, check=True, capture_output=True)
        times.append(time.perf_counter() - begin)
    value = statistics.median(times)
    name = f"start and end of a run, to {MOST_SHARE:.0%} of the shortest ({shortest} s)"
    return Row(name, value, "s elapsed", value / shortest / MOST_SHARE, target=1.0)


def _tokens(top: Path) -> Row:
    """What the next run is handed, to the tokens of the session that it goes on with."""
    handed = whole = 0
    root = top / "sessions"
    root.mkdir()
    for path in sorted(SESSIONS.glob("*.jsonl.gz")):
        session = top / path.stem
        session.write_bytes(gzip.decompress(path.read_bytes()))
        report = ralf.checkpoint(f"TASK-{path.name[:2]}-{path.name[3:9]}", session, root=root)
        text = ralf.get_context(report.route, root=root).render(2_500, section="brief")
        handed += tokens.count(text)
        whole += sum(tokens.count(event.text) for event in open_transcript(session).events())
    name = f"tokens handed to a run, to {MOST_SHARE:.0%} of its session's"
    return Row(name, handed, f"of {whole:,}", handed / whole / MOST_SHARE, target=1.0)


def _found(root: Path) -> Row:
    """The registry's decisions that a search for their words finds among its first five answers."""
    place = root / ".autonomous" / "decisions" / "decision_registry.yaml"
    place.parent.mkdir(parents=True)
    shutil.copy(DATA / "decision_registry" / "project.yaml", place)
    import_all(Project(root), "decision-registry")
    entries: list[Mapping[str, Any]] = guarded_yaml.load(place.read_text(encoding="utf-8"))["decisions"]
    found = 0
    for entry in entries:
        title, why = str(entry["title"]), " ".join(str(entry["rationale"] or "").split())
        hits = ralf.search(f"{title} {' '.join(why.split()[:8])}", root=root)
        words = [" ".join(hit.text.split()) for hit in hits]
        found += any(" ".join(title.split()) in text and why[:60] in text for text in words)
    unfound = 1 - found / len(entries)
    return Row("historical decisions that are found", found, f"of {len(entries)}", unfound / MOST_UNFOUND, target=1.0)


if __name__ == "__main__":
    if not DATA.is_dir():
        print(f"{DATA}: is not there: nothing is measured", file=sys.stderr)
        sys.exit(0)
    sys.exit(main(TITLE, produce))
