"""What looking at a store finds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was left, or worth a word.

    path    the file that it is about
    what    what is wrong with it, or to be known of it
    repair  what a repair would do, "" for nothing
    damage  whether it is damage; else all is fine with it as it stands
    """

    path: Path
    what: str
    repair: str = ""
    damage: bool = True
