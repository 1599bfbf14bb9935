"""Writes session.jsonl, the example transcript: always the same bytes. `--check` only says whether it is up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from tidepool_story import tell

TARGET = Path(__file__).with_name("session.jsonl")


def main(arguments: list[str]) -> int:
    """Exit status 0: written, or up to date; 1: `--check` found another content; 2: usage."""
    if arguments not in ([], ["--check"]):
        print("usage: python examples/make_session.py [--check]", file=sys.stderr)
        return 2
    data = tell().jsonl().encode()
    if not arguments:
        TARGET.write_bytes(data)
    elif not TARGET.exists() or TARGET.read_bytes() != data:
        print(f"error: {TARGET.name} is out of date\nhint: python examples/make_session.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
