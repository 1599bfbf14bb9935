"""Reads Markdown tables as lists: a small table is an item that says, row by row, what stands in its cells."""

from __future__ import annotations

from collections.abc import Sequence

from ralf.text.patterns import regex

_RULE = regex(r"\s{0,12}\|?(?:\s{0,9}:?-{2,90}:?\s{0,9}\|)+(?:\s{0,9}:?-{2,90}:?\s{0,9})?\|?\s{0,9}$")

_LINK = regex(r"\[([^\[\]]{1,80})\]\([^()\s]{1,400}\)")

_MOST_ROWS = 8  # of a table that tells something; a longer one is looked things up in

_LONGEST_ROW = 1_000  # characters

_EMPTY = "-\u2014\u2013 "


def tables_as_items(text: str) -> str:
    """The text with each small table as one list item: "- PR 1: list view; PR 2: details (Blocked by: PR 1)"."""
    if "|" not in text:
        return text
    lines = text.split("\n")
    out: list[str] = []
    rows: list[list[str]] = []  # of the table that is read, its heads first
    for number, line in enumerate([*lines, ""]):
        if line.lstrip().startswith("|") and len(line) <= _LONGEST_ROW and (rows or _is_rule(lines, number + 1)):
            if not _is_rule(lines, number):
                rows.append(_cells(line))
            continue
        if 1 < len(rows) <= _MOST_ROWS + 1:
            out.append(f"- {'; '.join(filter(None, (_told(row, rows[0]) for row in rows[1:])))}")
        rows = []
        out.append(line)
    return "\n".join(out[:-1])


def _is_rule(lines: Sequence[str], number: int) -> bool:
    line = lines[number] if number < len(lines) else ""
    return "-" in line and len(line) <= _LONGEST_ROW and _RULE.match(line) is not None


def _cells(line: str) -> list[str]:
    return [_LINK.sub(r"\1", cell).strip() for cell in line.strip().strip("|").split("|")]


def _told(cells: Sequence[str], heads: Sequence[str]) -> str:
    """A row in words: its first cell, the second, and in brackets the others with the names of their columns."""
    heads = [*heads, *[""] * len(cells)]
    told = [(head, cell) for head, cell in zip(heads, cells, strict=False) if cell.strip(_EMPTY)]
    if len(told) < 2:
        return ""
    named = ", ".join(f"{head}: {cell}" if head else cell for head, cell in told[2:])
    return f"{told[0][1]}: {told[1][1]}{f' ({named})' if named else ''}"
