"""Transcripts: a client's session log, whatever its format, as one stream of events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ralf.errors import DamagedTranscript
from ralf.transcripts.events import START, Event, Position

if TYPE_CHECKING:
    from ralf.fingerprint import Fingerprint
    from ralf.model import Attempt
    from ralf.transcripts.head import Head

__all__ = ["Event", "Position", "Transcript", "open_transcript", "requests"]

_FIRST_EVENTS = 500  # events among which a session's first request is looked for


class Transcript(Protocol):
    """A session log of one format, or documents that were written down.

    path     the file; of documents, the folder in which they lie
    format   "claude-code", "codex", "chat", "text"; of documents, what they are: "run folder"
    session  the session's id; the file's name without its suffix where the format has none. Of documents, their path
             (`notes.session_of`)
    cwd      the first working directory that the head of the file names, or ""
    branch   the first git branch that the head of the file names, or ""
    origin   who made the decisions that stand in fields of its notes: "agent" or "import"; "" where there are none
    attempt  the run of a loop that the documents are of, and how it ended; None where they are of none
    skipped  records that were not used, by reason or type, in the last reading: "sidechain", "malformed", "oversized"
    rewritten  it is not only appended to: each reading gives all of it, and new is what has not been taken before
             (`notes.new`). Nobody asks its places, nor `mark`
    """

    path: Path
    format: str
    session: str
    cwd: str
    branch: str
    origin: str
    rewritten: bool
    attempt: Attempt | None
    skipped: Counter[str]
    malformed: list[int]
    """Numbers, from 1, of the first lines that could not be read."""

    @property
    def end(self) -> Position:
        """The place after the last complete record that was consumed by the last reading."""
        ...

    def size(self) -> int:
        """Bytes of it now. OSError where it is gone."""
        ...

    def mark(self, end: Position) -> Fingerprint | None:
        """The fingerprint of what lies before a place; None where it is shorter than that. OSError where it is gone."""
        ...

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events that begin after a place: the start, an event's `start` or `end`, or `end` of an earlier reading.

        Reads at most 64 KiB before it, to know what is going on there. An unfinished last record waits for the next
        reading. Raises TranscriptChanged where the file has become shorter than that, and what `open_transcript` raises
        where it is gone or no longer a file.
        """
        ...


def readers() -> Iterator[Callable[[Path, Head], Transcript | None]]:
    """What reads a format, asked in this order; each answers None where the file is not of its format.

    A new format is one module and one entry here, before `plain`, which refuses what is no session.
    """
    from ralf.transcripts import claude_code  # each when it is asked: a hook has time for its own client's alone

    yield claude_code.reader
    from ralf.transcripts import codex

    yield codex.reader
    from ralf.transcripts import chat

    yield chat.reader
    from ralf.transcripts import plain

    yield plain.reader


def open_transcript(path: Path, *, root: Path | None = None, as_text: bool = False) -> Transcript:
    """The transcript in a file, whose format is told by its content (at most 256 KiB are read), or in a run's folder.

    root     the project's directory: a run is called by its folder's path in it
    as_text  read the file as a document, whatever it holds: its paragraphs are notes of the origin "import", and none
             of it was said by anybody

    Raises TranscriptNotFound; DamagedTranscript (a folder, a pipe, a binary file, a text that is no session, JSON of no
    known client, JSON lines of which none can be read); UsageError (a path that cannot be one); RalfError (not
    readable).
    """
    from ralf.transcripts.head import Head

    try:
        head = Head.read(path)
    except DamagedTranscript:
        if as_text or not path.is_dir():
            raise
        from ralf.transcripts import runfolder

        return runfolder.reader(path, root or path.parent)
    if as_text:
        from ralf.transcripts import plain

        return plain.document(path, head)
    for reader in readers():
        transcript = reader(path, head)
        if transcript is not None:
            return transcript
    raise head.damaged("is no transcript that ralf knows")


def requests(transcript: Transcript) -> Iterator[str]:
    """What a person asked for among a session's first events, in order. Raises what `events` does."""
    return (event.text for event in islice(transcript.events(), _FIRST_EVENTS) if event.kind == "user")
