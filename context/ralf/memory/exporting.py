"""Puts the most valuable items between markers into a file that a client loads by itself, within what it loads."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ralf.errors import Damaged
from ralf.memory import writing
from ralf.memory.model import Item
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
    before = users_files.content(path)
    text = users_files.decoded(path, before) or ""
    plain = text.replace("\r\n", "\n")
    found = _SECTION.search(plain)
    head, tail = (plain[: found.start()], plain[found.end() :]) if found else (plain, "")
    if any(mark in head + tail for mark in (BEGIN, END)):
        raise Damaged(path, "has one of the two markers of the memory, not both", "remove the line, then try again")
    cap = CAPS.get(path.name, CAPS["AGENTS.md"])
    today = (now or datetime.now(UTC)).strftime("%Y-%m-%d")
    items = [item for item in writing.load(project, agent).best() if item.holds(today)]
    section, count = _fitting(items, head + tail, cap, path.name)
    between = "" if not head else "\n" if head.endswith("\n") else "\n\n"
    made = f"{head}{between}{section}{tail}"
    content = (made.replace("\n", "\r\n") if "\r\n" in text else made).encode()
    if content != before:
        users_files.replace(path, before, content, 0o644 if before is None else None)
    return Exported(path, count, len(items) - count, content != before)


def _fitting(items: Sequence[Item], rest: str, cap: Cap, name: str) -> tuple[str, int]:
    """The section with as many items as have room, and how many these are."""

    def fits(count: int) -> bool:
        section = _section(items[:count], len(items) - count, cap, name)
        lines, size = section.count("\n"), len(rest.encode()) + len(section.encode()) + 2
        return lines <= cap.section and rest.count("\n") + lines + 2 <= cap.lines and size <= cap.bytes

    # what fits with more items fits with fewer
    count = bisect(range(1, len(items) + 1), 0, key=lambda count: 0 if fits(count) else 1)
    return _section(items[:count], len(items) - count, cap, name), count


def _section(items: Sequence[Item], left: int, cap: Cap, name: str) -> str:
    own = [f"- {shown(line(item))}" for item in items if item.is_plain]
    found = [f"- {shown(line(item))}" for item in items if not item.is_plain]
    parts = [BEGIN, _TITLE, ""]
    parts += [*own, ""] if own else []
    parts += [fenced("\n".join(found)).rstrip("\n"), ""] if found else []
    if left:
        which = "1 item" if left == 1 else f"{left:,} items"
        below = f"the {cap.section} lines, or the {cap.bytes // 1024} KB of {name}, that are loaded"
        parts += [f"_{_LEFT_OUT.format(which, below)}_", ""]
    return "\n".join([*parts, END, ""])
