"""Documents that a run or an agent wrote, read as notes: rewritten files, and plain text."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ralf.errors import DamagedTranscript
from ralf.model import Attempt
from ralf.text.cleaning import OWN_OUTPUT, clean
from ralf.text.patterns import regex
from ralf.transcripts.events import START, Event, Position, arguments
from ralf.transcripts.lines import END_KEPT, Fingerprint, Growing, Head, Line, open_regular, read_lines

# --------------------
# Transcripts of notes: documents that a run or an agent wrote, rewritten in place rather than appended to.
#
# A note is an event of the kind `note`: a piece of such a document. What of it stands in fields is its `input`:
#
#     title      a few words, for the heading of the section
#     path, line  the document in which it stands, relative to the project, and the line, counted from 1
#     decision   a tree with fields of `ralf.model.Decision` (decision, rationale, alternatives, kind, status,
# timestamp);
#                any other key stays with it (`label`: its qualified name in the source, reversibility, consequences
# …).
#                Only this is a decision: never a sentence of the text
#     work       a tree with fields of `ralf.model.ActiveWork`; what is named takes the place of what was known
#     facts      a tree with fields of `ralf.model.Facts`: paths [{path did}], commands, errors, commits, tests
#     file_sha256  of the document's bytes, where it is not to change any more; stands beside its path
#     aside      true: kept and found, and nothing of it is told in the section (templates, what fields say already)
#
# Fields that do not fit are left out: the text has their words.


def note(text: str, *, path: str = "", line: int = 0, timestamp: str = "", **fields: Any) -> Event:
    """A note of these words and fields. A text without any word is none: leave it out."""
    placed = {"path": path, **({"line": line} if line else {})} if path else {}
    return Event("note", clean(text), START, START, timestamp, input=arguments({**placed, **fields}))


class Notes:
    """Documents as a transcript; see `ralf.transcripts.reader.Transcript` for the fields.

    path     the document, or the folder of the documents
    session  its name: `session_of`
    notes    what stands there, in order; made by `note`
    format   what it is, in a word or two
    origin   who made its decisions: "agent" for a run of this project, "import" for what another tool had kept
    skipped  what of it is no note, by reason
    attempt  the run that the documents are of, None where they are of none
    agent_type  of the agent whose documents they are, "" where nothing says it: that of a route which has none yet
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
        self.agent_type = ""
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


# ---- plain text and Markdown, read as a document on request ----

# Each paragraph is a note. A paragraph ends at an empty line outside a fence, at a heading, or at 64 KiB. Words such as
# `User:` have no meaning in it: a text does not tell who wrote it.


_HEADING = regex(r"#{1,6}\s")

_FENCE = regex(r" {0,3}(`{3,}|~{3,})")

_JSON = (".jsonl", ".json", ".traj", ".ndjson")


def reader(path: Path, head: Head) -> Plain | None:
    """The reader of a file in which no record is finished yet: nothing can be said of it, and nothing is read.

    Raises DamagedTranscript for any other file: no client wrote it.
    """
    if not head.is_text():
        raise head.damaged("is binary, not a transcript")
    if not head.data.strip() or (head.whole and _is_begun(head.data)):
        return Plain(path)
    raise _no_session(path, head)


def document(path: Path, head: Head) -> Plain:
    """The reader of a text file as a document; any text will do. Raises DamagedTranscript for what is binary."""
    if not head.is_text():
        raise head.damaged("is binary, not a text")
    return Plain(path)


def _is_begun(data: bytes) -> bool:
    """Whether this is the beginning of a first JSON record."""
    if data.lstrip()[:1] not in (b"{", b"[") or b"\n" in data:
        return False
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return True
    return False


def _no_session(path: Path, head: Head) -> DamagedTranscript:
    """The error that says why a text is no session, and how to read it as a document."""
    what = "is not a session: it holds no client's records and no messages with a role"
    bad = head.first_bad_line()
    if head.in_lines:
        keys = ", ".join(sorted(ascii(key) for key in next(iter(head.records)))[:6])
        what = f"is JSON lines, but of no client known here: its records have {keys}"
    elif bad and (path.suffix.lower() in _JSON or re.match(rb'\{\s*(?:"|\}|\Z)', head.opening)):
        what = f"line {bad}: not a JSON record, nor is any other line before byte {len(head.data)}"
    return DamagedTranscript(path, what, f"ralf checkpoint ROUTE --transcript {shlex.quote(str(path))} --as text")


class Plain(Growing):
    """A text file; see ralf.transcripts.reader.Transcript for the fields. It names no session and no folder."""

    format = "text"
    origin = "import"

    def events(self, after: Position = START) -> Iterator[Event]:
        """The paragraphs after a place. A last line without line end waits."""
        self._start(after)
        part = _Paragraph(after)
        with open_regular(self.path, after) as file:
            for line in read_lines(file, after):
                if not line.finished:
                    self.skipped["unfinished"] += 1
                    break
                text = self._text(line)
                if part.ends_before(text):
                    yield from self._given(part)
                    part = _Paragraph(Position(line.start, line.number))
                part.add(text, line)
        yield from self._given(part)

    def _text(self, line: Line) -> str:
        text = line.data.decode("utf-8", "replace")
        if line.cut:
            self.skipped["oversized"] += 1
            text += "\n…\n" + line.tail.decode("utf-8", "replace")
        return clean(text.removeprefix("\ufeff") if line.start == 0 else text).rstrip("\n")

    def _given(self, part: _Paragraph) -> Iterator[Event]:
        text = part.text
        if text.startswith(OWN_OUTPUT):
            self.skipped["own output"] += 1
        elif text:
            yield Event("note", text, part.start, part.end, cut=part.cut)
        self.end = part.end


class _Paragraph:
    """Lines that belong together, and the empty ones after them."""

    def __init__(self, start: Position) -> None:
        self.start = self.end = start
        self.cut = 0
        self._lines: list[str] = []
        self._size = 0
        self._fence = ""
        self._over = False

    @property
    def text(self) -> str:
        """Its words."""
        return "\n".join(self._lines).strip()

    def ends_before(self, text: str) -> bool:
        """Whether this line is the first of another paragraph."""
        if not self._lines or self._fence:
            return bool(self._lines) and self._size >= END_KEPT
        return self._size >= END_KEPT or bool(_HEADING.match(text)) or (self._over and bool(text.strip()))

    def add(self, text: str, line: Line) -> None:
        """Take a line in."""
        self.end = Position(line.end, line.number + 1)
        self.cut += line.cut
        self._size += len(text) + 1
        if not text.strip() and not self._fence:
            self._over = bool(self._lines)
            return
        fence = _FENCE.match(text)
        if fence and not self._fence:
            self._fence = fence[1]
        elif fence and fence[1].startswith(self._fence) and not text.strip().strip(self._fence[0]):
            self._fence = ""
        self._lines.append(text)
