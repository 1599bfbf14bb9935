"""What stands around the state of a timeline-memory.md: whose it is, and prose that is kept."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ralf.runs.markdown import Line, Section
from ralf.runs.written import plain
from ralf.transcripts.events import Event
from ralf.transcripts.notes import note
from ralf_migrations.reading import Source
from ralf_migrations.report import Field


def agent_of(source: Source, lines: Sequence[Line]) -> str:
    """The agent of a memory that does not name it in its state: by its heading, else by the folder in which it lies."""
    heading = next((line.heading for line in lines if line.level == 1), "")
    words = re.sub(r"\btimeline memory\b", "", plain(heading), flags=re.IGNORECASE).split()
    if words:
        return "-".join(words).lower()
    folder = source.path.absolute().parent
    return folder.parent.name if folder.name == "memory" else folder.name


def aside(source: Source, section: Section, text: str) -> tuple[Event, Field]:
    """A section that is kept as evidence alone, and its account."""
    heading = f"{'#' * section.level} {section.heading}"
    event = note(f"{heading}\n\n{text}", path=source.name, line=section.first, aside=True)
    return event, Field(heading, "evidence", "kept in its words")
