"""Which summarisers there are, by name."""

from __future__ import annotations

from ralf.errors import UsageError
from ralf.summarizers import Summarizer

NAMES = ("extractive",)
MODELS = ("claude", "codex", "llm", "command")
"""Command lines that can improve what the embedded summariser made: `ralf.summarizers.command`."""


def check(name: str) -> None:
    """UsageError for a summariser that is not known."""
    if name not in NAMES:
        raise UsageError(name, f"no such summarizer; known: {', '.join((*NAMES, *MODELS))}", f"--summarizer {NAMES[0]}")


def named(name: str) -> Summarizer:
    """The summariser of this name; UsageError for one that is not known."""
    check(name)
    from ralf.summarizers.extractive import Extractive

    return Extractive()
