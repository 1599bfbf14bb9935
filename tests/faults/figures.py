"""The options of a harness, and what it prints at its end: a table with a line a figure, and the first faults."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TypeVar

_Size = TypeVar("_Size")

_MOST_TOLD = 20
SKIPPED = 77  # the exit status of a harness that cannot run here

Figure = tuple[str, object, str]
"""What was measured, what came out, and what was promised ("" for nothing)."""


def told(figures: Iterable[Figure], faults: Sequence[str] = ()) -> int:
    """Print both; the exit status, which is 1 where there are faults."""
    print("| case | figure | target |\n| --- | --- | --- |")
    for figure in figures:
        print(f"| {' | '.join(map(str, figure))} |", flush=True)
    for fault in faults[:_MOST_TOLD]:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def size_options(
    name: str, size: _Size | type[_Size], kinds: Iterable[str], broken: Iterable[str], args: Sequence[str] | None = None
) -> tuple[argparse.Namespace, _Size]:
    """The options of `tests.faults.NAME`, read: one for each field of its size, what to run, what to break."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.faults.{name}")
    names = {one.name: f"--{one.name.replace('_', '-')}" for one in fields(size)}  # type: ignore[arg-type]
    for one in fields(size):  # type: ignore[arg-type]
        default = getattr(size, one.name)
        if one.type == "bool":
            parser.add_argument(names[one.name], action="store_true")
        else:
            parser.add_argument(names[one.name], type=type(default), default=default, help=f"default: {default}")
    if "seed" not in names:
        parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=list(kinds), action="append", help="only these; may be repeated")
    parser.add_argument("--broken", choices=sorted(broken), default="", help="break it on purpose: it has to be found")
    given = parser.parse_args(args)
    made = size if isinstance(size, type) else type(size)
    return given, made(**{one: getattr(given, one) for one in names})
