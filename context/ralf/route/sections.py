"""Takes out of the sections of checkpoints what was taken back by rewinding."""

from __future__ import annotations

from collections.abc import Collection

from ralf.model import Section
from ralf.text.frozen import replace


def without(sections: tuple[Section, ...], taken_back: Collection[str]) -> tuple[Section, ...]:
    """The sections without messages that begin so, and without what was said and done for these."""
    return tuple(_without(section, tuple(taken_back)) for section in sections) if taken_back else sections


def _without(section: Section, taken_back: tuple[str, ...]) -> Section:
    kept: list[str] = []
    is_gone = False
    for line in (lines := section.text.split("\n")):
        is_gone = line.startswith(taken_back) if line.startswith("- ") else is_gone
        if not is_gone:
            kept.append(line)
    return section if len(kept) == len(lines) else replace(section, text="\n".join(kept).rstrip("\n"))
