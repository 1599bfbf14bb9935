"""A stand-in embedder: `python embedder.py JOURNAL [MODE]` reads JSON lines and prints a vector a line, in which words
of one meaning share an axis. Each start is a line of JSON in the journal: the texts that it was given.

MODE    how it fails: see `FAILURES`; `slow=SECONDS`: each text takes so long; `hang` leaves a child that hangs, too;
        `wide`: vectors of other length; anything else is another model
"""

from __future__ import annotations

import json
import os
import sys
import time
import zlib

MEANINGS = (
    "database databases postgres sqlite persistence rows",
    "login authentication signin password credentials",
    "speed fast slow latency performance",
    "colour color palette hue",
)
AXES = 64

FAILURES = {
    "few": "printed 1 vectors for",
    "uneven": "printed a vector of",
    "nan": "printed no array of finite numbers: [NaN",
    "words": "printed no array of finite numbers: Loading the model",
    "strings": 'printed no array of finite numbers: ["1',
    "nothing": "printed no array of finite numbers: []",
    "huge": "printed no array of finite numbers: [1000",
    "deep": "printed no array of finite numbers: [[[[",
    "exit": "exit status 3: no such model",
    "endless": "printed more than 4 MiB",
    "hang": "took longer than 1 s",
}
"""How it fails, by mode, and what is said of that."""


def vector(text: str) -> list[float]:
    """A text's vector: how often each meaning occurs, and a little of each other word."""
    numbers = [0.0] * AXES
    for word in "".join(letter if letter.isalnum() else " " for letter in text.lower()).split():
        axis = next((n for n, words in enumerate(MEANINGS) if word in words.split()), None)
        if axis is None:
            numbers[len(MEANINGS) + zlib.crc32(word.encode()) % (AXES - len(MEANINGS))] += 0.1
        else:
            numbers[axis] += 1.0
    return numbers


def fail(mode: str, rows: list[list[float]]) -> None:
    """Print what is no answer."""
    if mode == "few":
        rows = rows[:1]
    elif mode == "uneven":
        rows[-1] = rows[-1][:-1]
    elif mode == "nan":
        rows[0] = [float("nan"), *rows[0][1:]]
    elif mode == "words":
        print("Loading the model …")
        rows.pop()
    elif mode == "exit":
        print("no such model", file=sys.stderr)
        sys.exit(3)
    elif mode == "endless":
        while True:
            print("0.5, " * 100_000)
    elif mode == "hang":
        os.fork()
        with open(f"{sys.argv[1]}.pids", "a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(600)
    odd = {"strings": '["1"]', "nothing": "[]", "huge": f"[1{'0' * 400}]", "deep": "[" * 100_000}
    for row in rows:
        print(odd.get(mode) or json.dumps(row))


def main() -> None:
    """Answer once."""
    texts = [json.loads(line)["text"] for line in sys.stdin]
    with open(sys.argv[1], "a") as file:
        file.write(json.dumps(texts) + "\n")
    mode, _, value = (sys.argv[2] if len(sys.argv) > 2 else "").partition("=")
    rows = [vector(text) for text in texts]
    if mode in FAILURES:
        fail(mode, rows)
        return
    for row in rows:
        time.sleep(float(value or 0) if mode == "slow" else 0)
        print(json.dumps([*row, 0.0] if mode == "wide" else row))


if __name__ == "__main__":
    main()
