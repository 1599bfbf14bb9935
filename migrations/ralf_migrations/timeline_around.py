"""What stands around the state of a timeline-memory.md: whose it is, and prose that is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ralf.runs.markdown import Line, Section
from ralf.runs.written import plain
from ralf.transcripts.events import Event
from ralf.transcripts.notes import note
from ralf_migrations.reading import Source
from ralf_migrations.report import Field

FIELD = re.compile(r"\s*(?:[-*+]\s+)?\*\*(?P<name>[A-Za-z][\w ]{0,39}?)\s*(?::\*\*|\*\*\s*:)\s*(?P<value>.*)$")
"""A field in bold, also as a bullet: `**Task:** TASK-7`, `- **Status**: done`."""


def header_of(lines: Sequence[Line]) -> dict[str, str]:
    """The fields in bold below the title, down to the first rule, fence or heading."""
    made: dict[str, str] = {}
    for line in lines:
        if line.rule or line.fenced or line.level > 1:
            break
        if (found := FIELD.match(line.text)) and found["value"].strip():
            made[found["name"]] = found["value"].strip()
    return made


def agent_of(source: Source, lines: Sequence[Line]) -> str:
    """The agent of a memory that does not name it in its state: by its heading, else by the folder in which it lies."""
    heading = next((line.heading for line in lines if line.level == 1), "")
    words = re.sub(r"\btimeline memory\b", "", plain(heading), flags=re.IGNORECASE).split()
    if words:
        return "-".join(words).lower()
    folder = source.path.absolute().parent
    return folder.parent.name if folder.name == "memory" else folder.name


def summary_of(source: Source, agent: str, *, when: str, runs: int, queue: Sequence[Mapping[str, Any]]) -> Event:
    """What the section says of a memory: its state stands in the active work, and is not told again."""
    done = sum(item.get("status") == "completed" for item in queue)
    of_queue = f"{done} of {len(queue)} items of its queue done" if queue else "an empty queue"
    count = f"{runs} run{'s' * (runs != 1)}" if runs else "no runs"
    text = f"Memory of {agent}{f', last updated {when}' if when else ''}: {count}, {of_queue}."
    return note(text, path=source.name, line=1, timestamp=when)


def aside(source: Source, section: Section, text: str) -> tuple[Event, Field]:
    """A section that is kept as evidence alone, and its account."""
    heading = f"{'#' * section.level} {section.heading}"
    event = note(f"{heading}\n\n{text}", path=source.name, line=section.first, aside=True)
    return event, Field(heading, "evidence", "kept in its words")
