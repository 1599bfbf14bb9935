"""What all logs have in common that are one file and only ever appended to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ralf import fingerprint
from ralf.fingerprint import Fingerprint
from ralf.transcripts.events import Position

if TYPE_CHECKING:
    from ralf.model import Attempt


class Growing:
    """A log in one file to which its client appends; see ralf.transcripts.Transcript for the fields."""

    path: Path
    origin = ""
    rewritten = False
    attempt: Attempt | None = None

    def size(self) -> int:
        """Bytes of the file now."""
        return self.path.stat().st_size

    def mark(self, end: Position) -> Fingerprint | None:
        """The fingerprint of what lies before a place; None where the file is shorter than that."""
        return fingerprint.take(self.path, end.byte)
