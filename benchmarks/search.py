"""What a search costs in a project with about 10,000 documents: warm, in a fresh process, and when it has to index."""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from installed import ralf as installed
from measure import BARE, Row, commands, main, python
from synthetic import session

import ralf
from ralf import project

TITLE = "Search"

DOCUMENTS = 10_000
TURNS_A_ROUTE = 90
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


def produce(rounds: int) -> list[Row]:
    """Warm: in this process, every query `rounds` times. Cold: a process each, against one that starts and stops."""
    command = installed()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        documents, routes, first = 0, 0, 0.0
        while documents < DOCUMENTS:
            transcript = root / "session.jsonl"
            turns = range(routes * TURNS_A_ROUTE, (routes + 1) * TURNS_A_ROUTE)
            transcript.write_bytes(b"".join(session(turns, f"session-{routes}")))
            ralf.checkpoint(f"TASK-{routes:03}", transcript, root=root)
            routes += 1
            begin = time.process_time()
            ralf.search("anything", root=root)
            first += time.process_time() - begin
            documents = _documents(root)
        warm = sorted(_timed(query, root) for query in QUERIES * rounds)
        name = f"search, cold process, {documents:,} documents in {routes} routes"
        core = f"import ralf\nralf.search({QUERIES[0]!r}, root={str(root)!r})"
        return [
            *commands(
                {
                    "python -I -c pass": BARE,
                    name: [command, "--root", str(root), "context", "search", QUERIES[0]],
                    "ralf.search, cold process": python(core),
                    "import sqlite3": [sys.executable, "-I", "-c", "import sqlite3"],
                },
                rounds=rounds,
            ),
            Row("search, warm, median", statistics.median(warm) * 1000, "ms CPU"),
            Row("search, warm, p95", warm[len(warm) * 95 // 100] * 1000, "ms CPU"),
            Row("indexing, all of it", first * 1000, "ms CPU"),
        ]


def _documents(root: Path) -> int:
    with closing(sqlite3.connect(project.find(root).cache / "search.sqlite")) as database:
        count: int = database.execute("select count(*) from doc").fetchone()[0]
        return count


def _timed(query: str, root: Path) -> float:
    begin = time.process_time()
    ralf.search(query, root=root)
    return time.process_time() - begin


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
