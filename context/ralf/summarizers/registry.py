"""Which summarisers there are, by name."""

from __future__ import annotations

from ralf.errors import UsageError
from ralf.summarizers import Summarizer

NAMES = ("extractive",)


def named(name: str) -> Summarizer:
    """The summariser of this name; UsageError for one that is not known."""
    if name == "extractive":
        from ralf.summarizers.extractive import Extractive

        return Extractive()
    raise UsageError(name, f"no such summarizer; known: {', '.join(NAMES)}", f"--summarizer {NAMES[0]}")
