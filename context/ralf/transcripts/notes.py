"""Transcripts of notes: documents that a run or an agent wrote, rewritten in place rather than appended to.

A note is an event of the kind `note`: a piece of such a document. What of it stands in fields is its `input`:

    title      a few words, for the heading of the section
    path, line  the document in which it stands, relative to the project, and the line, counted from 1
    decision   a tree with fields of `ralf.model.Decision` (decision, rationale, alternatives, kind, status, timestamp);
               any other key stays with it (`label`: its qualified name in the source, reversibility, consequences …).
               Only this is a decision: never a sentence of the text
    work       a tree with fields of `ralf.model.ActiveWork`; what is named takes the place of what was known
    facts      a tree with fields of `ralf.model.Facts`: paths [{path did}], commands, errors, commits, tests
    file_sha256  of the document's bytes, where it is not to change any more; stands beside its path
    aside      true: kept and found, and nothing of it is told in the section (templates, what fields say already)

Fields that do not fit are left out: the text has their words.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ralf.fingerprint import Fingerprint
from ralf.model import Attempt
from ralf.text import clean
from ralf.transcripts.content import arguments
from ralf.transcripts.events import START, Event, Position


def note(text: str, *, path: str = "", line: int = 0, timestamp: str = "", **fields: Any) -> Event:
    """A note of these words and fields. A text without any word is none: leave it out."""
    placed = {"path": path, **({"line": line} if line else {})} if path else {}
    return Event("note", clean(text), START, START, timestamp, input=arguments({**placed, **fields}))


class Notes:
    """Documents as a transcript; see `ralf.transcripts.Transcript` for the fields.

    path     the document, or the folder of the documents
    session  its name: `session_of`
    notes    what stands there, in order; made by `note`
    format   what it is, in a word or two
    origin   who made its decisions: "agent" for a run of this project, "import" for what another tool had kept
    skipped  what of it is no note, by reason
    attempt  the run that the documents are of, None where they are of none
    problems  documents that could not be read, and why
    """

    rewritten = True
    branch = ""
    cwd = ""
    end = START

    def __init__(
        self,
        path: Path,
        session: str,
        notes: Iterable[Event],
        *,
        format: str = "notes",  # noqa: A002  as the field is called
        origin: str = "agent",
        skipped: Mapping[str, int] | None = None,
        attempt: Attempt | None = None,
    ) -> None:
        self.path = path
        self.session = session
        self.format = format
        self.origin = origin
        self.skipped: Counter[str] = Counter(skipped or {})
        self.malformed: list[int] = []
        self.problems: dict[str, str] = {}
        self.attempt = attempt
        self._notes = tuple(event for event in notes if event.text.strip())

    def size(self) -> int:
        """Characters of the notes."""
        return sum(len(event.text) for event in self._notes)

    def mark(self, end: Position) -> Fingerprint | None:
        """Nothing: what is rewritten has no beginning that stays."""
        return Fingerprint("", "")

    def events(self, after: Position = START) -> Iterator[Event]:
        """All notes."""
        yield from self._notes


def new(
    events: Iterable[Event], known: Collection[str], digest: Callable[[str], str], after: Position
) -> Iterator[Event]:
    """The notes that were not taken before, each once, at places that follow `after`: the places of all readings of a
    session are one row.

    known   digests of the notes that were
    digest  of the words of one, before anything is redacted in them
    """
    told = set(known)
    for event in events:
        name = digest(event.text)
        if name in told:
            continue
        told.add(name)
        size, lines = len(event.text.encode("utf-8", "surrogatepass")) + 1, event.text.count("\n") + 1
        end = Position(after.byte + size, after.line + lines)
        yield replace(event, start=after, end=end)
        after = end


def session_of(path: Path, root: Path) -> str:
    """The name of a document or folder as a session: its path in the project; of one outside, the last two parts of its
    path and eight digits of a hash of the whole. Two folders never have one name.
    """
    whole = Path(path).absolute()
    for base in (Path(root).absolute(), Path(root).resolve()):
        if base in whole.parents:
            return clean(whole.relative_to(base).as_posix())
    name = hashlib.sha256(str(whole).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return clean("/".join((*whole.parts[-2:], name)).lstrip("/"))
