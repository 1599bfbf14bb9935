"""Redaction: the texts of a session, and 1 MB of each text made of the rules' own words, in MB/s of this core."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

import measure
import synthetic

from ralf.redact import rules
from ralf.redact.redactor import Redactor
from ralf.transcripts.reader import open_transcript

SIZE = 1_000_000
LEAST, LEAST_HOSTILE = 10.0, 2.0  # MB/s
REDACTOR = Redactor(b"k" * 32)
_OWN_WORDS = (
    *(
        "token=",
        "api_key= ",
        "password=$",
        "password: a ",
        "authorization: bearer ",
        "AccountKey=",
        "curl -u ",
        "mysql -p ",
        "docker login ",
        "://a:",
    ),
    *("-----END PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----\n", "kind: Secret\ndata:\n", "login a password b "),
)


def produce(rounds: int) -> list[measure.Row]:
    """The rows; the hostile ones are the slowest five. The ratio is that of the goal to the figure."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.jsonl")
        path.write_bytes(b"".join(synthetic.session(range(300), "s-1")))
        events = [event for event in open_transcript(path).events() if event.text]
    size = sum(len(event.text.encode()) for event in events)
    usual = measure.functions(
        {
            "each text of a session": lambda: [REDACTOR.hits(event.text) for event in events],
            "its events, with their borders": lambda: REDACTOR.events(events),
        },
        rounds=rounds,
    )
    words = dict.fromkeys([*_OWN_WORDS, *(one.literals[0] for one in rules.formats())])
    texts = {f"hostile: {word.strip()}": (word * (SIZE // len(word) + 1))[:SIZE] for word in words}
    hostile = measure.functions({name: partial(REDACTOR.hits, text) for name, text in texts.items()}, rounds=1)
    worst = sorted(hostile, key=lambda row: -row.value)[:5]
    return [_speed(row, size, LEAST) for row in usual] + [_speed(row, SIZE, LEAST_HOSTILE) for row in worst]


def _speed(row: measure.Row, size: int, least: float) -> measure.Row:
    speed = size / row.value / 1000
    return measure.Row(row.name, speed, "MB/s", least / speed, 0, 1)


if __name__ == "__main__":
    sys.exit(measure.main("Redaction", produce))
