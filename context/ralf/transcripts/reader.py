"""Transcripts: opened by their format, whichever client wrote them, as one stream of events."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ralf import extensions
from ralf.errors import DamagedTranscript
from ralf.transcripts.events import START, Event, Position

if TYPE_CHECKING:
    from ralf.model import Attempt
    from ralf.transcripts.lines import Fingerprint, Head


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


class TranscriptReader(Protocol):
    """Reads what a client leaves that is of no format of ours: an entry point of the group `ralf.transcripts`.

    path    a folder, or a file that is no log of a client that we know
    head    the first bytes of the file; None for a folder
    root    the project's directory: documents in it are called by their path there (`notes.session_of`)
    logged  the log of a client's session has told what was said in it: that is left out

    Returns the transcript, of documents a `notes.Notes`; None where it is not of its format. It may raise a
    DamagedTranscript that says what the format would need: the others are asked all the same, and it is raised where
    nobody reads the folder.
    """

    def __call__(self, path: Path, head: Head | None, *, root: Path, logged: bool) -> Transcript | None:
        """See the class."""
        ...


def readers() -> Iterator[Callable[[Path, Head], Transcript | None]]:
    """What reads a format, asked in this order; each answers None where the file is not of its format.

    A new format is one module and one entry here, before `plain`, which refuses what is no session; or a
    `TranscriptReader` of another distribution, which is asked about what is refused.
    """
    from ralf.transcripts import claude_code  # each when it is asked: a hook has time for its own client's alone

    yield claude_code.reader
    from ralf.transcripts import codex

    yield codex.reader
    from ralf.transcripts import chat

    yield chat.reader
    from ralf.transcripts import notes

    yield notes.reader


def open_transcript(path: Path, *, root: Path | None = None, as_text: bool = False, logged: bool = False) -> Transcript:
    """The transcript in a file, whose format is told by its content (at most 256 KiB are read), or in a run's folder.

    root     the project's directory: a run is called by its folder's path in it
    logged   of a folder: a client's log has told what was said in its run
    as_text  read the file as a document, whatever it holds: its paragraphs are notes of the origin "import", and none
             of it was said by anybody

    Raises TranscriptNotFound; DamagedTranscript (a folder, a pipe, a binary file, a text that is no session, JSON of no
    known client, JSON lines of which none can be read); UsageError (a path that cannot be one); RalfError (not
    readable).
    """
    from ralf.transcripts.lines import Head

    head: Head | None = None
    try:
        head = Head.read(path)
        if as_text:
            from ralf.transcripts import notes

            return notes.document(path, head)
        return next(found for reader in readers() if (found := reader(path, head)) is not None)
    except DamagedTranscript as error:
        if as_text or (head is None and not path.is_dir()):
            raise
        return _of_an_extension(path, head, root or path.parent, error, logged=logged)


def _of_an_extension(
    path: Path, head: Head | None, root: Path, error: DamagedTranscript, *, logged: bool
) -> Transcript:
    """What an extension reads; where none does, what the first of them says that it needs is raised, else `error`."""
    refused: list[DamagedTranscript] = []

    def read(reader: TranscriptReader) -> Transcript | None:
        try:
            return reader(path, head, root=root, logged=logged)
        except DamagedTranscript as refusal:
            refused.append(refusal)
            return None

    found = next(filter(None, extensions.ask(extensions.TRANSCRIPTS, read)), None)
    if found is None:
        raise next(iter(refused), error)
    return found


def requests(transcript: Transcript) -> Iterator[str]:
    """What a person asked for among a session's first events, in order. Raises what `events` does."""
    return (event.text for event in islice(transcript.events(), _FIRST_EVENTS) if event.kind == "user")


# ---- what counts towards a checkpoint: the one place that says so ----


def counted(event: Event) -> str:
    """Returns the text of an event that counts: all but the client's own summary of a window that it compacted."""
    return "" if event.kind == "compaction" else event.text


def estimate_since(source: Transcript, after: Position = START, *, most: float = math.inf) -> int:
    """Estimates the o200k_base tokens of a transcript behind a place. Raises as reading does.

    most  bytes that are read; what lies beyond them is taken to hold as many tokens a byte. All by default
    """
    from ralf.text import tokens  # a hook has an estimate of its own

    found = 0
    for event in source.events(after):
        found += tokens.estimate(counted(event))
        read = event.end.byte - after.byte
        if read > most:
            return round(found * (source.size() - after.byte) / read)
    return found
