"""Runs every benchmark of speed, one after the other; about five minutes. Options: those of each."""

from __future__ import annotations

import sys

import commands
import growth
import hooks
import large_transcript
import machinery
import one_checkpoint
import search
from measure import main

ALL = (commands, hooks, machinery, one_checkpoint, growth, large_transcript, search)

if __name__ == "__main__":
    statuses = []
    for benchmark in ALL:
        print(f"\n{benchmark.TITLE}\n", flush=True)
        statuses.append(main(benchmark.TITLE, benchmark.produce))
    sys.exit(max(statuses))
