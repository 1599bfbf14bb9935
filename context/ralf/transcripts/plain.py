"""Plain text and Markdown, read as a document where somebody asks for it: each paragraph is a note that nobody said.

A paragraph ends at an empty line that stands in no fence, at a heading, or when it has grown to 64 KiB. Words such as
`User:` have no meaning in it: who wrote a text is not told by the text.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ralf.briefing.fence import OWN_OUTPUT
from ralf.errors import DamagedTranscript
from ralf.text import clean
from ralf.transcripts.events import START, Event, Position
from ralf.transcripts.growing import Growing
from ralf.transcripts.head import Head
from ralf.transcripts.lines import END_KEPT, Line, open_regular, read_lines

_HEADING = re.compile(r"#{1,6}\s")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_JSON = (".jsonl", ".json", ".traj", ".ndjson")


def reader(path: Path, head: Head) -> Plain | None:
    """The reader of a file in which no record is finished yet: nothing can be said of it, and nothing is read.

    Raises DamagedTranscript for any other file: no client wrote it.
    """
    if not head.is_text():
        raise head.damaged("is binary, not a transcript")
    if not head.data.strip() or _is_begun(head.data):
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
    return DamagedTranscript(
        path, what, f"ralf context checkpoint ROUTE --transcript {shlex.quote(str(path))} --as text"
    )


class Plain(Growing):
    """A text file; see ralf.transcripts.Transcript for the fields. It names no session and no folder."""

    format = "text"
    origin = "import"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.session = clean(path.stem)
        self.cwd = ""
        self.branch = ""
        self.skipped: Counter[str] = Counter()
        self.malformed: list[int] = []
        self.end = START

    def events(self, after: Position = START) -> Iterator[Event]:
        """The paragraphs after a place. A last line without line end waits."""
        self.skipped.clear()
        self.end = after
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
