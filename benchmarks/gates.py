"""Holds the quality scorer's figures against the gates that this project has reached, and fails when one is lost."""

from __future__ import annotations

import json
import sys
from pathlib import Path

REACHED = ("C1", "C2", "C3", "C4", "C6", "C7", "C8", "C9", "D", "E", "O", "R5", "R6")
"""Tracks whose every gate must hold. A track joins when all its gates hold on all the development data (median of three
seeds). Not P: a machine that is busy at that moment must not turn a change away, and the speed benchmarks compare
within one run.
"""


def main() -> int:
    """Print every missed gate; 1 when one of a reached track is among them."""
    measures = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["results"]["ralf"]
    lost = 0
    for measure in measures:
        if measure["verdict"] == "FAIL":
            reached = measure["track"] in REACHED
            lost += reached
            word = "lost" if reached else "not reached yet"
            print(f"{word}: {measure['track']} {measure['name']}: {measure['figure']} (gate {measure['gate']})")
    print(f"{len(measures)} figures, {lost} gates lost")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
