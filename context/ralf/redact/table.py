"""The table of rules, `data/secrets.tsv`: sections of rows, whose columns tabs part."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

_FILE = Path(__file__).parents[1] / "data" / "secrets.tsv"


@cache
def _sections() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for line in _FILE.read_text("utf-8").splitlines():
        if line.startswith("["):
            rows = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            rows.append(line.split("\t"))
    return found


def rows(section: str) -> Sequence[Sequence[str]]:
    """The rows of a section, each as its columns."""
    return _sections()[section]


def words(name: str) -> list[str]:
    """The words of a list."""
    return next(row[1].split() for row in rows("words") if row[0] == name)


@cache
def _signs() -> dict[str, str]:
    return {f"%{{{name}}}": "|".join(of.split()) for name, of in rows("words")} | {
        row[0]: row[1] for row in rows("signs")
    }


def expression(text: str) -> str:
    """An expression of the table in Python's syntax: each sign gives way to what it stands for, which may have some."""

    def of(sign: re.Match[str]) -> str:
        stands = _signs().get(sign[0])
        return expression(stands) if stands is not None else sign[0]

    return re.sub(r"%(?:[a-z]|\{[a-z-]+\})", of, text)
