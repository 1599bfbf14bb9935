"""The section of AGENTS.md that tells an agent without hooks when to read a route and when to write to it."""

from __future__ import annotations

import re

from ralf.text.patterns import regex
from ralf_integrations.client import packaged_text
from ralf_integrations.clients.jsontext import Insertion

NAME = "agents-md"
PATH = "AGENTS.md"
BEGIN = "<!-- ralf: written by `ralf init --client agents-md`, taken out with --uninstall -->"
END = "<!-- ralf: end -->"
_SECTION = regex(rf"\n?{re.escape(BEGIN)}.*?{re.escape(END)}\n?", re.S)


def section() -> str:
    """The section, between its marks."""
    return f"{BEGIN}\n## Context that must not be lost\n\n{packaged_text('guidance.md')}{END}\n"


def insertions(text: str) -> list[Insertion]:
    """What adds the section at the end of a file that does not hold it."""
    between = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    added = between + section()
    return [Insertion(len(text), added.replace("\n", "\r\n") if "\r\n" in text else added)]


def holds(text: str) -> bool:
    """Whether the section stands in a file as this version writes it."""
    return section() in text.replace("\r\n", "\n")


def stripped(text: str) -> str:
    """A file without the section, of whatever version."""
    return _SECTION.sub("", text)
