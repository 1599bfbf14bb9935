"""Messages with the contents of this repository's files, and honest ones, made from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

TREE = Path(__file__).parents[2]
_FOLDERS = ("context", "cli", "integrations", "tests", "docs")
_SUFFIXES = (".py", ".md", ".toml", ".sh", ".c")


class Given(NamedTuple):
    """The words of a message, and how they were made."""

    summary: str
    facts: tuple[str, ...]
    action: str
    how: str


def sources() -> list[Path]:
    """The files that contents are taken from."""
    found = [path for folder in _FOLDERS for path in (TREE / folder).rglob("*") if path.suffix in _SUFFIXES]
    return sorted(path for path in found if path.stat().st_size < 200_000)


def with_contents(count: int, seed: int) -> Iterator[Given]:
    """Messages that hold more than ten lines of a file, or more than 400 characters of it."""
    dice, files = random.Random(seed), sources()
    while count:
        lines = [line for line in dice.choice(files).read_text(encoding="utf-8").split("\n") if line.strip()]
        if len(lines) < 15:
            continue
        size = dice.randint(11, min(22, len(lines) - 1))
        start = dice.randrange(len(lines) - size)
        piece = lines[start : start + size]
        letters = sum(map(str.isalnum, "".join(piece)))
        if letters < 60:  # eleven lines of brackets are nobody's contents
            continue
        if dice.random() < 0.3 and letters > 500:  # few lines, many characters
            while len("\n".join(piece[:-1])) > 420:
                piece = piece[:-1]
        how = dice.choice([*_WAYS])
        yield _placed(dice, _WAYS[how](dice, piece), how)
        count -= 1


def _placed(dice: random.Random, facts: list[str], how: str) -> Given:
    where = dice.random()
    if where < 0.15:
        return Given("The parser: " + " ".join(facts), (), "Look at it.", f"{how}, in the summary")
    if where < 0.3:
        return Given(
            "The parser changed.", ("It has a new rule.",), "Use this: " + "\n".join(facts), f"{how}, in the action"
        )
    return Given("The parser changed. Please go on with it.", ("It has a new rule.", *facts), "Review it.", how)


def _in_pieces(dice: random.Random, piece: list[str]) -> list[str]:
    size = dice.randint(1, 4)
    return ["\n".join(piece[at : at + size]) for at in range(0, len(piece), size)]


_WAYS: dict[str, Callable[[random.Random, list[str]], list[str]]] = {
    "plain": lambda _, piece: ["\n".join(piece)],
    "quoted": lambda _, piece: ["\n".join(f"> {line}" for line in piece)],
    "fenced": lambda _, piece: ["```python\n" + "\n".join(piece) + "\n```"],
    "indented": lambda dice, piece: ["\n".join(" " * dice.choice((2, 4, 8)) + line for line in piece)],
    "dedented": lambda _, piece: ["\n".join(line.strip() for line in piece)],
    "joined": lambda _, piece: [" ".join(line.strip() for line in piece)],
    "joined with marks": lambda dice, piece: [dice.choice((" / ", "; ", " ⏎ ", " | ", "")).join(map(str.strip, piece))],
    "escaped": lambda _, piece: [json.dumps("\n".join(piece))],
    "numbered": lambda dice, piece: [
        "\n".join(f"{number:>4}{dice.choice((': ', '| ', chr(9)))}{line}" for number, line in enumerate(piece, 40))
    ],
    "as a diff": lambda _, piece: ["\n".join(f"+{line}" for line in piece)],
    "as a list": lambda _, piece: ["\n".join(f"- {line.strip()}" for line in piece)],
    "a fact a line": lambda _, piece: [line.strip() for line in piece],
    "in pieces": _in_pieces,
    "in capitals": lambda _, piece: ["\n".join(piece).upper()],
    "double spaced": lambda _, piece: ["\n\n".join(piece)],
}


def honest(count: int, seed: int) -> Iterator[Given]:
    """Messages as agents should write them: what changed, what was found, where it is, what is asked."""
    dice = random.Random(seed)
    for number in range(count):
        path = dice.choice(_PATHS)
        facts = [
            dice.choice(_FACTS).format(path=path, name=dice.choice(_NAMES), n=dice.randint(2, 900))
            for _ in range(dice.randint(0, 6))
        ]
        if dice.random() < 0.3:
            facts.append(f"`{dice.choice(_COMMANDS)}` failed:\n    {dice.choice(_ERRORS)}\nand passed after the fix.")
        summary = dice.choice(_SUMMARIES).format(path=path, name=dice.choice(_NAMES), n=number)
        yield Given(summary, tuple(facts), dice.choice(_ACTIONS).format(path=path), "honest")


_PATHS = (
    "context/ralf/storage/journal.py",
    "src/api/routes.py",
    "docs/tasks.md",
    "cli/ralf_cli/task.py",
    "db/schema.sql",
)
_NAMES = ("`fold()`", "TideTable.read", "the retry of uploads", "`Segment.events`", "POST /v1/tides", "MAX_OPEN_TODOS")
_COMMANDS = ("pytest -q tests/test_merge.py", "npm run build", "make lint", "cargo test -p reader", "ruff check .")
_ERRORS = (
    "E   AssertionError: assert 2 == 3",
    "error[E0425]: cannot find value `tides` in this scope",
    "sqlite3.OperationalError: database is locked",
    "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
)
_SUMMARIES = (
    "The reader in {path} is done. All {n} tests pass.",
    "I changed {name} in {path}: it returns None for an empty table.",
    "v1.{n}.0 is out, e.g. for the staging server.",
    "Do not touch {path} before noon, I am moving {name}.",
    "Which of the two forms should {name} take?",
    "The migration of db/schema.sql ran on staging in {n} s; production is next.",
)
_FACTS = (
    "{name} takes a second argument, `root`, since commit 4f05e2{n}.",
    "`pytest -q` takes {n} s here; use -n auto.",
    "Decided: SQLite instead of Postgres, because nobody has to run a server for it.",
    "{path} holds the schema. The column `tide_level` is now NOT NULL, and its default is 0.",
    "Tried a lock per row; failed because SQLite locks the whole file.",
    "The limit is {n} requests a minute; over that the server answers 429 with Retry-After.",
    "Ana wants the old field names kept until the release of 2026-12-01.",
    "Steps left: 1. rename the column 2. run the migration 3. delete {path}",
)
_ACTIONS = ("", "Review {path}.", "Run the tests again on your branch, then merge.", "Answer by 15:00, else I go on.")
