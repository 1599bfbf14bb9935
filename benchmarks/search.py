"""What a search costs in a project with about 10,000 documents: warm, the first one of a process, and when it indexes.

Warm: in this process, again and again. First: one call in a process of its own, against a Python that starts and
stops, by the processor time that it takes. It is the call alone that has a target: opening the index, asking each route
whether it has news, answering. The start of the interpreter and the imports are paid by every command, whatever it
asks; they stand beside it. One route: the same when it stands alone and when it stands among others. Indexing: by the
bytes of the evidence's text.
"""

from __future__ import annotations

import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import measure
from installed import ralf as installed
from measure import BARE, Row, commands, main, python
from synthetic import session

import ralf
from ralf import project, routing
from ralf.document import index
from ralf.storage import journal
from ralf.transcripts.events import read_evidence

TITLE = "Search"

DOCUMENTS = 10_000
TURNS_A_ROUTE = 90
WARM_MS, COLD_RATIO, FLAT_RATIO, INDEX_MB_A_SECOND = 10.0, 1.8, 1.5, 5.0
QUERIES = (
    "why a bounded queue",
    "optimistic locking manifest",
    "AssertionError expected tug",
    "ferry survives a restart",
    "monotonic clock",
    "what did we decide about the radar cache",
    "exponential backoff gateway",
    "pytest lock index",
)
_CALL = """
import time
begin = time.process_time()
import ralf, sqlite3
from ralf.finding.search import search
imported = time.process_time()
search({query!r}, root={root!r})
print(time.process_time() - imported, imported - begin)
"""


def produce(rounds: int) -> list[Row]:
    """The rows; see above."""
    with tempfile.TemporaryDirectory() as scratch:
        alone, root = Path(scratch, "alone"), Path(scratch, "all")
        root.mkdir()
        documents, routes = 0, 0
        while documents < DOCUMENTS:
            transcript = root / "session.jsonl"
            turns = range(routes * TURNS_A_ROUTE, (routes + 1) * TURNS_A_ROUTE)
            transcript.write_bytes(b"".join(session(turns, f"session-{routes}")))
            ralf.checkpoint(f"TASK-{routes:03}", transcript, root=root)
            routes += 1
            ralf.search("anything", root=root)
            documents = _documents(root)
            if routes == 1:
                measure.copied(root, alone)
        size = f"{documents:,} documents in {routes} routes"
        bare, *started = commands(
            {
                "python -I -c pass": BARE,
                f"ralf search, {size}": [installed(), "--root", str(root), "search", QUERIES[0]],
                "import sqlite3": [sys.executable, "-I", "-c", "import sqlite3"],
            },
            rounds=rounds,
        )
        firsts = [_first(root) for _ in range(rounds)]
        first, imports = (statistics.median(figures) * 1000 for figures in zip(*firsts, strict=True))
        warm = _warm(root, rounds)
        p95 = warm[len(warm) * 95 // 100]
        one, among = (statistics.median(_warm(place, rounds, "TASK-000")) for place in (alone, root))
        seconds, megabytes = _indexing(root)
        rate = megabytes / seconds
        return [
            bare,
            *started,
            Row("the first search of a process", first, "ms CPU", first / bare.value, target=COLD_RATIO),
            Row("what it imports", imports, "ms CPU", imports / bare.value),
            Row("search, warm, median", statistics.median(warm), "ms CPU"),
            Row(f"search, warm, p95, against {WARM_MS:g} ms", p95, "ms CPU", p95 / WARM_MS, target=1.0),
            Row("search of one route, alone", one, "ms CPU", 1.0),
            Row(f"search of one route, among {routes}", among, "ms CPU", among / one, target=FLAT_RATIO),
            Row("indexing", seconds * 1000, "ms CPU"),
            Row(f"indexing, against {INDEX_MB_A_SECOND:g} MB/s", rate, "MB/s", INDEX_MB_A_SECOND / rate, target=1.0),
        ]


def _warm(root: Path, rounds: int, route: str | None = None) -> list[float]:
    """Milliseconds of processor time of every query, `rounds` times, sorted."""
    taken = []
    for query in QUERIES * (rounds + 1):
        begin = time.process_time()
        ralf.search(query, root=root, route=route)
        taken.append((time.process_time() - begin) * 1000)
    return sorted(taken[len(QUERIES) :])  # the first round warms


def _first(root: Path) -> tuple[float, float]:
    """Seconds of processor time of the first search of a process, and of the imports before it."""
    code = _CALL.format(query=QUERIES[0], root=str(root))
    done = subprocess.run(python(code), capture_output=True, text=True, check=True)
    call, imports = map(float, done.stdout.split())
    return call, imports


def _indexing(root: Path) -> tuple[float, float]:
    """Seconds of processor time to index all, and the megabytes of evidence text that it took in."""
    found = project.find(root)
    for path in index.files_in(found.cache):
        path.unlink()
    begin = time.process_time()
    ralf.search("anything", root=root)
    seconds = time.process_time() - begin
    size = 0
    for route in routing.names_of(found):
        for _, record in journal.read(found.store, route):
            if digest := record.payload.get("evidence"):
                size += sum(len(line.text.encode()) for line in read_evidence(found.store, digest))
    return seconds, size / 1e6


def _documents(root: Path) -> int:
    with closing(sqlite3.connect(project.find(root).cache / index.NAME)) as database:
        count: int = database.execute("select count(*) from piece_docsize").fetchone()[0]
        return count


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
