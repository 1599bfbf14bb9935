"""What `ralf show` and `ralf list` cost, from the start of the process to its end."""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

import measure
from installed import ralf
from measure import BARE, ROOT, Row, commands, main

import ralf as core

TITLE = "Commands that read"

EXAMPLE = ROOT / "examples" / "session.jsonl"
ROUTE = "demo"


def example_store(root: Path) -> Path:
    """A project at `root` with one route, the example session's. Returns the route file."""
    root.mkdir(parents=True, exist_ok=True)
    return core.checkpoint(ROUTE, EXAMPLE, root=root).path


def many_routes(root: Path, count: int) -> None:
    """A project at `root` with `count` routes of a decision each, listed once, so that the index has them."""
    root.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        core.record_decision(f"TASK-{number:04}", "Use one writer", root=root)
    core.list_routes(root=root)


def produce(rounds: int) -> list[Row]:
    """Every case against an interpreter that starts and stops."""
    command = ralf()
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        file = example_store(here / "one")
        many_routes(here / "ten", 10)
        many_routes(here / "thousand", 1_000)
        edited = here / "edited"
        measure.copied(here / "one", edited)
        _edit_by_hand(edited / file.relative_to(here / "one"))
        bare = measure.copied(here / "one", here / "no cache")
        shutil.rmtree(bare / ".autonomous" / "context" / "cache")
        show = partial(_of, command, "show", ROUTE)
        cases = {
            "python -I -c pass": BARE,
            f"show, a route file of {file.stat().st_size // 1000} KB": show(here / "one"),
            "show --max-tokens 2500": show(here / "one", "--max-tokens", "2500"),
            "show, cache deleted": show(bare),
            "show, file edited by hand": show(edited),
            "list, 10 routes": _of(command, "list", here / "ten"),
            "list, 1,000 routes": _of(command, "list", here / "thousand"),
            "--version": [command, "--version"],
            "python -I -c 'import click, yaml'": [sys.executable, "-I", "-c", "import click, yaml"],
        }
        names = list(cases)
        rows = commands(cases, rounds=rounds, targets={names[1]: 8, names[2]: 8, names[5]: 6})
        ten, thousand = rows[5], rows[6]
        return [
            *rows,
            Row("list, 1,000 routes against 10", thousand.value, "ms CPU", thousand.value / ten.value, 0, 2),
        ]


def _of(command: str, *rest: str | Path) -> list[str]:
    words = [word for word in rest if isinstance(word, str)]
    root = next(str(word) for word in rest if isinstance(word, Path))
    return [command, "--root", root, *words]


def _edit_by_hand(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('work_status: "in_progress"', 'work_status: "blocked"', 1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
