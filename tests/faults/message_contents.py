"""Messages between agents that hold contents of this repository's files: all are refused; honest ones are accepted.

python -m tests.faults.message_contents
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.faults import agent_words
from tests.faults.figures import told

from ralf import project
from ralf.errors import UsageError
from ralf_integrations.agent_messages import compose


def main() -> int:
    """Send them, and print a line a figure."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.message_contents")
    parser.add_argument("--contents", type=int, default=1_000)
    parser.add_argument("--honest", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    whole_tree = project.find(agent_words.TREE)
    faults: list[str] = []
    ways: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    started = time.monotonic()
    for given in agent_words.with_contents(arguments.contents, arguments.seed):
        ways[given.how.partition(",")[0]] += 1
        try:
            compose(whole_tree, given.summary, facts=given.facts, action=given.action)
        except UsageError as error:
            reasons["a file's contents" if " of one file" in str(error) else "length"] += 1
            continue
        faults.append(f"accepted: {given}")
    refused = sum(reasons.values())
    product = project.find(agent_words.TREE / "context")  # the tests hold the honest words themselves
    for given in agent_words.honest(arguments.honest, arguments.seed):
        try:
            compose(product, given.summary, facts=given.facts, action=given.action)
        except UsageError as error:
            faults.append(f"refused: {given}: {error}")
    took = time.monotonic() - started
    accepted = arguments.honest - sum(fault.startswith("refused") for fault in faults)
    how = f"{len(ways)} ways; by {', '.join(f'{why}: {count}' for why, count in reasons.most_common())}"
    figures = [
        (f"messages with contents of files: refused ({how})", f"{refused:,} of {arguments.contents:,}", "all"),
        ("honest messages: accepted", f"{accepted} of {arguments.honest}", "all"),
        ("messages: time of each", f"{1_000 * took / (arguments.contents + arguments.honest):.0f} ms", ""),
    ]
    return told(figures, faults)


if __name__ == "__main__":
    sys.exit(main())
