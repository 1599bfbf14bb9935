"""Puts the most valuable items between markers into a file that a client loads by itself, within what it loads."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from ralf.errors import Damaged
from ralf.memory import writing
from ralf.memory.wording import line, longest, parted
from ralf.project import Project
from ralf.storage import users_files
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

BEGIN = "<!-- ralf memory: written by `ralf export --memory`, made anew by it; edit the memory instead -->"

END = "<!-- ralf memory: end -->"

_SECTION = regex(rf"\n?{re.escape(BEGIN)}.*?{re.escape(END)}\n?", re.S)

_TITLE = "## What was learned here"

_LEFT_OUT = (
    "_{:,} items left out: no room below the {} lines, or the {} KB of {}, that are loaded; all of them:"
    " `ralf memory show --all`_"
)

CAPS = {
    "MEMORY.md": (200, 25 * 1024, 200),  # Claude Code cuts what is below, and says nothing
    "CLAUDE.md": (400, 40_000, 80),
    "AGENTS.md": (1_000, 32 * 1024, 80),  # Codex reads 32 KiB of all such files together
}
"""By the name of a file its lines and bytes that a client loads, and lines of it that the section may take; another
one is treated as `AGENTS.md`.
"""


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote: how many items, and how many had no room."""

    path: Path
    items: int
    left_out: int
    is_changed: bool


def export(project: Project, agent: str, path: Path) -> Exported:
    """Write the items of the highest worth into a file, between markers; what else it holds stays as it is.

    Offered and expired items are not written. What a person said stands in plain lines; all else, which may quote a
    tool, in a fence that says that it is data. The file keeps its mode. UsageError for a link and for what is no UTF-8,
    Damaged for a file with half of the markers, Busy where somebody saves it at this moment; OSError, and the errors of
    `writing.load`.
    """
    before = users_files.content(path)
    text = users_files.decoded(path, before) or ""
    plain = text.replace("\r\n", "\n")
    section = _SECTION.search(plain)
    head, tail = (plain[: section.start()], plain[section.end() :]) if section else (plain, "")
    if any(mark in head + tail for mark in (BEGIN, END)):
        raise Damaged(path, "has one of the two markers of the memory, not both", "remove the line, then try again")
    most, most_bytes, most_own = CAPS.get(path.name, CAPS["AGENTS.md"])
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    items = [item for item in writing.load(project, agent).best() if item.holds(today)]

    between = "" if not head else "\n" if head.endswith("\n") else "\n\n"

    def section_of(count: int) -> str:
        rest = len(items) - count
        more = [_LEFT_OUT.format(rest, most_own, most_bytes // 1024, path.name), ""] if rest else []
        return "\n".join([f"{between}{BEGIN}", _TITLE, "", *parted(items[:count], line), "", *more, END, ""])

    def fits(count: int) -> bool:
        section, whole = section_of(count), f"{head}{section_of(count)}{tail}"
        return section.count("\n") <= most_own and whole.count("\n") <= most and len(whole.encode()) <= most_bytes

    count = longest(len(items), fits)
    after = f"{head}{section_of(count)}{tail}"
    content = (after.replace("\n", "\r\n") if "\r\n" in text else after).encode()
    if content != before:
        users_files.replace(path, before, content, 0o644 if before is None else None)
    return Exported(path, count, len(items) - count, content != before)
