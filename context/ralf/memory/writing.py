"""Reads and writes the memory of an agent: hand edits are taken in, deltas recorded, then the file is rendered."""

from __future__ import annotations

from collections.abc import Sequence

from ralf.memory.model import Memory
from ralf.memory.records import Delta
from ralf.project import Project


def load(project: Project, agent: str) -> Memory:
    """The memory of an agent, with what a person changed in its file and no write has taken in yet.

    Takes no lock and records nothing. An agent that has none has an empty memory. DamagedJournal, UsageError.
    """
    raise NotImplementedError


def record(project: Project, agent: str, deltas: Sequence[Delta], *, id: str = "") -> Memory:  # noqa: A002
    """Record deltas in order, whole or not at all, and return the memory; what a person changed is taken in first.

    id  unique within the memory: what has been recorded under it already is not recorded again. "": made

    Secrets are redacted, texts cleaned and cut to their limits. Durable when this returns; then the file shows it, or
    a warning of the memory says why not. NotFound for a delta about an item that is not there, UsageError for one that
    makes no sense, Busy, OSError, DamagedJournal: then nothing was recorded.
    """
    raise NotImplementedError
