"""What a harness prints at its end: a table with a line a figure, as benchmarks/RESULTS.md has them, and the first
faults.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

_MOST_TOLD = 20

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
