"""Puts the most valuable items between markers into a file that a client loads by itself, within what it loads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ralf.errors import Damaged
from ralf.memory import writing
from ralf.memory.model import Item, Memory
from ralf.memory.ranking import worth
from ralf.memory.wording import line
from ralf.project import Project
from ralf.storage import users_files
from ralf.text.cleaning import fenced, shown
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

BEGIN = "<!-- ralf memory: written by `ralf memory export`, made anew by it; edit the memory instead -->"

END = "<!-- ralf memory: end -->"

_SECTION = regex(rf"\n?{re.escape(BEGIN)}.*?{re.escape(END)}\n?", re.S)

_TITLE = "## What was learned here"

_LEFT_OUT = "{} left out: no room below {}; all of them: `ralf memory show --all`"


@dataclass(frozen=True, slots=True)
class Cap:
    """Lines and bytes of a whole file that its client loads, and lines of it that the section may take."""

    lines: int
    bytes: int
    section: int


CAPS = {
    "MEMORY.md": Cap(200, 25 * 1024, 200),  # Claude Code cuts what is below, and says nothing
    "CLAUDE.md": Cap(400, 40_000, 80),
    "AGENTS.md": Cap(1_000, 32 * 1024, 80),  # Codex reads 32 KiB of all such files together
}
"""By the name of the file; another one is treated as `AGENTS.md`."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote: how many items, and how many had no room."""

    path: Path
    items: int
    left_out: int
    is_changed: bool


def export(project: Project, agent: str, path: Path, *, now: datetime | None = None) -> Exported:
    """Write the items of the highest worth into a file, between markers; what else it holds stays as it is.

    Offered, stale and expired items are not written. What a person said stands in plain lines; all else, which may
    quote a tool, in a fence that says that it is data. The file keeps its mode. UsageError for a link and for what
    is no UTF-8, Damaged for a file with half of the markers, Busy where somebody saves it at this moment; OSError, and
    the errors of `writing.load`.
    """
    memory = writing.load(project, agent)
    before = users_files.content(path)
    text = users_files.decoded(path, before) or ""
    rest = _SECTION.sub("", text.replace("\r\n", "\n"))
    if BEGIN in rest or END in rest:
        raise Damaged(path, "has one of the two markers of the memory, not both", "remove the line, then try again")
    cap = CAPS.get(path.name, CAPS["AGENTS.md"])
    items = _chosen(memory, (now or datetime.now(UTC)).strftime("%Y-%m-%d"))
    section, count = _fitting(items, rest, cap, path.name)
    at = _SECTION.search(text.replace("\r\n", "\n"))
    plain = text.replace("\r\n", "\n")
    if at is not None:
        made = f"{plain[: at.start()]}{_between(plain[: at.start()])}{section}{plain[at.end() :]}"
    else:
        made = f"{plain}{_between(plain)}{section}"
    made = made.replace("\n", "\r\n") if "\r\n" in text else made
    content = made.encode()
    if content != before:
        users_files.replace(path, before, content, 0o644 if before is None else None)
    return Exported(path, count, len(items) - count, content != before)


def _between(before: str) -> str:
    return "" if not before else "\n" if before.endswith("\n") else "\n\n"


def _chosen(memory: Memory, today: str) -> list[Item]:
    """The items that count now, the most valuable first."""
    found = [
        item
        for item in memory.items
        if item.status == "active" and not item.stale and (not item.expires or item.expires[:10] >= today)
    ]
    return sorted(found, key=lambda item: -worth(item))


def _fitting(items: Sequence[Item], rest: str, cap: Cap, name: str) -> tuple[str, int]:
    """The section with as many items as have room, and how many these are."""
    low, high = 0, len(items)
    while low < high:  # what fits with more items fits with fewer
        middle = (low + high + 1) // 2
        if _fits(_section(items[:middle], len(items) - middle, cap, name), rest, cap):
            low = middle
        else:
            high = middle - 1
    return _section(items[:low], len(items) - low, cap, name), low


def _fits(section: str, rest: str, cap: Cap) -> bool:
    lines = rest.count("\n") + section.count("\n") + 2
    size = len(rest.encode()) + len(section.encode()) + 2
    return section.count("\n") <= cap.section and lines <= cap.lines and size <= cap.bytes


def _is_plain(item: Item) -> bool:
    """Whether all that an item says is a person's: what a tool printed stays in the fence though a person edited it."""
    return item.origin == "person" and item.kind != "trap"


def _section(items: Sequence[Item], left: int, cap: Cap, name: str) -> str:
    own = [f"- {shown(line(item))}" for item in items if _is_plain(item)]
    found = [f"- {shown(line(item))}" for item in items if not _is_plain(item)]
    parts = [BEGIN, _TITLE, ""]
    parts += [*own, ""] if own else []
    parts += [fenced("\n".join(found)).rstrip("\n"), ""] if found else []
    if left:
        which = "1 item" if left == 1 else f"{left:,} items"
        below = f"the {cap.section} lines, or the {cap.bytes // 1024} KB of {name}, that are loaded"
        parts += [f"_{_LEFT_OUT.format(which, below)}_", ""]
    return "\n".join([*parts, END, ""])
