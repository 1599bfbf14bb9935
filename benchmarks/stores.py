"""What a long route, many drops and many routes cost: each against a store of a tenth of that, made in the same run.

Search, and reads without a cache, are calls in this process; what looks at all routes is run as the commands that a
person types, and so pays for its start, as they do.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import measure
from installed import ralf as installed
from measure import Row, main
from search import QUERIES
from synthetic import turn

import ralf
from ralf.document.tree import to_tree
from ralf.errors import DamagedRouteFile
from ralf.model import Decision
from ralf.project import Project
from ralf.route.cap import tombstone
from ralf.route.routefile import parse
from ralf.storage import journal
from ralf.storage.journal import Record
from ralf.text import tokens

TITLE = "Growth"

TENTH = 10
CHECKPOINTS, RECORDS, DROPS, ROUTES = 3_000, 6_000, 5_200, 2_000
FLAT = 1.5
ROUTE = "loop"
_COMMANDS = {
    "ralf search": ["search", QUERIES[3]],
    "ralf status": ["status"],
    "ralf doctor": ["doctor"],
    "ralf list": ["list"],
}


def produce(rounds: int) -> list[Row]:
    """The rows; see above."""
    tokens.count("loaded")
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        return [*_long(root, rounds), *_cold(root, rounds), *_dropped(root, rounds), *_many(root, rounds)]


def _long(scratch: Path, rounds: int) -> list[Row]:
    small, large = _growing(scratch / "long", CHECKPOINTS, _checkpoint)

    def searched(root: Path) -> None:
        for query in QUERIES:
            ralf.search(query, root=root, route=ROUTE)

    costs = _in_turns(small, large, searched, rounds, each=len(QUERIES))
    return _pair("search in one route", f"{CHECKPOINTS // TENTH:,} checkpoints", f"{CHECKPOINTS:,}", costs, FLAT)


def _cold(scratch: Path, rounds: int) -> list[Row]:
    small, large = _growing(scratch / "cold", RECORDS, _decide)

    def shown(root: Path) -> None:
        project = Project(root)
        shutil.rmtree(project.cache, ignore_errors=True)
        project.route_file(ROUTE).unlink(missing_ok=True)
        ralf.get_context(ROUTE, root=root)

    costs = _in_turns(small, large, shown, max(1, rounds // 4))
    return _pair("get_context, cache and file deleted", f"{RECORDS // TENTH:,} records", f"{RECORDS:,}", costs)


def _dropped(scratch: Path, rounds: int) -> list[Row]:
    roots = []
    for count in (DROPS // TENTH, DROPS):
        root = scratch / f"drops-{count}"
        root.mkdir()
        _decide(root, 0)
        _drop(root, count)
        _decide(root, 1)
        roots.append(root)
    names = (f"{DROPS // TENTH:,} drops", f"{DROPS:,}")
    decided = _in_turns(*roots, lambda root: _decide(root, time.monotonic_ns()), rounds)
    read = _in_turns(*roots, lambda root: ralf.get_context(ROUTE, root=root), rounds)
    file = Project(roots[1]).route_file(ROUTE)
    return [
        *_pair("decide", *names, decided),
        *_pair("get_context", *names, read),
        Row(f"route file after {DROPS:,} drops", file.stat().st_size / 1e3, "KB"),
        Row(f"route files after {DROPS:,} drops that cannot be read", float(not _is_readable(file)), "of 1"),
    ]


def _many(scratch: Path, rounds: int) -> list[Row]:
    small, large = _growing(scratch / "many", ROUTES, _checkpoint, one_route=False)
    for root in (small, large):
        Project(root).local_config_file.touch(0o600)  # as `ralf init` does: `status` then tells what models have cost
    rows = []
    for name, arguments in _COMMANDS.items():
        costs: tuple[list[float], list[float]] = ([], [])
        for number in range(rounds + 1):
            for root, taken in zip((small, large), costs, strict=True):
                command = [installed(), "--root", str(root), *arguments]
                cpu = measure.run(["/bin/sh", "-c", '"$@" || true', "sh", *command]).cpu  # doctor finds no client
                if number:  # the first call warms
                    taken.append(cpu)
        flat = None if name == "ralf list" else FLAT  # that one tells all of them
        rows += _pair(name, f"{ROUTES // TENTH:,} routes", f"{ROUTES:,}", costs, flat)
    return rows


def _growing(root: Path, count: int, write: Callable[..., None], *, one_route: bool = True) -> tuple[Path, Path]:
    """A store with a tenth of so many writes, and one with all."""
    root.mkdir()
    small = root.with_name(f"{root.name}-tenth")
    for number in range(count):
        if number == count // TENTH:
            measure.copied(root, small)
        write(root, number, **({} if one_route else {"route": f"TASK-{number:04}"}))
    return small, root


def _checkpoint(root: Path, number: int, route: str = ROUTE) -> None:
    transcript = root / "newest.jsonl"
    transcript.write_bytes(b"".join(turn(number, f"session-{number}")))
    ralf.checkpoint(route, transcript, root=root)


def _decide(root: Path, number: int) -> None:
    ralf.record_decision(ROUTE, f"Use way {number} of {number % 97}", rationale="it is another one", root=root)


def _drop(root: Path, count: int) -> None:
    """Drop so many decisions, by records alone: a writer for each would take an hour."""
    store, stream = Project(root).store, journal.stream_of(ROUTE)
    head = store.head(stream)
    for number in range(count):
        decision = Decision(
            f"DEC-{9_000 + number}", decision=f"Pump basin{number} beside quay{number} and lock{number}"
        )
        payload = {"tombstone": to_tree(tombstone(decision))}
        head = journal.append(store, ROUTE, Record(number + 2, "drop", payload), id=f"drop-{number}", after=head)


def _is_readable(file: Path) -> bool:
    try:
        parse(file.read_bytes(), file)
    except DamagedRouteFile:
        return False
    return True


def _in_turns(
    small: Path, large: Path, call: Callable[[Path], object], rounds: int, *, each: int = 1
) -> tuple[list[float], list[float]]:
    """Processor seconds of a call on either store, in turns; `each`: calls in one."""
    costs: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for root, taken in zip((small, large), costs, strict=True):
            begin = time.process_time()
            call(root)
            if number:  # the first call warms
                taken.append((time.process_time() - begin) / each)
    return costs


def _pair(
    what: str, few: str, many: str, costs: tuple[list[float], list[float]], target: float | None = None
) -> list[Row]:
    small, large = (statistics.median(taken) * 1000 for taken in costs)
    return [
        Row(f"{what}, {few}", small, "ms CPU", 1.0),
        Row(f"{what}, {many}", large, "ms CPU", large / small, target=target),
    ]


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
