"""Summarisers: what turns a segment into the text and the decisions of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

from ralf.errors import UsageError
from ralf.model import ActiveWork, Decision, Facts
from ralf.model.entries import Entry
from ralf.text.frozen import dataclass
from ralf.transcripts.events import Event

NAMES = ("extractive",)

MODELS = ("claude", "codex", "llm", "command")
"""Command lines that can hand over at a checkpoint: `ralf.summarize.command`."""


@dataclass(frozen=True, slots=True)
class Segment:
    """What a summariser is given.

    session      the session's id
    events       the segment's events in order, redacted
    facts        what was taken from them mechanically
    tokens       o200k_base tokens of the events
    decisions    the route's active decisions before this segment
    active_work  where the work stands after it, by the record
    keep         what a person wants kept: hints such as "the migration plan"; what touches them comes first
    entries      what its events came to, by the client's records; () to have it found out
    noted        decisions that stand in fields of the segment's notes: the checkpoint has them, whatever is summed up
    """

    session: str
    events: Sequence[Event]
    facts: Facts
    tokens: int
    decisions: Sequence[Decision] = ()
    active_work: ActiveWork = field(default_factory=ActiveWork)
    keep: Sequence[str] = ()
    noted: Sequence[Decision] = ()
    entries: Sequence[Entry] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """What a summariser gives back.

    title        a few words for the section's heading, one line, taken from the source
    text         the section's Markdown; every line of it begins with "- ", "> ", "**" or two spaces, so that no text
                 of a transcript can become a heading, a rule or a fence
    decisions    new decisions, rules and failed approaches, oldest first, without ids
    active_work  where the work stands after the segment (the whole of it, not a difference)
    key_events   a few lines for the checkpoint's entry in the front matter
    """

    title: str
    text: str
    decisions: tuple[Decision, ...] = ()
    active_work: ActiveWork = field(default_factory=ActiveWork)
    key_events: tuple[str, ...] = ()


class Summarizer(Protocol):
    """Turns a segment into a summary. `name` is written into the checkpoint."""

    name: str

    def summarize(self, segment: Segment) -> Summary:
        """Sum the segment up; the same segment gives the same summary, whatever the time and place."""
        ...


def check(name: str) -> None:
    """UsageError for a summariser that is not known."""
    if name not in NAMES:
        raise UsageError(name, f"no such summarizer; known: {', '.join((*NAMES, *MODELS))}", f"--summarizer {NAMES[0]}")
