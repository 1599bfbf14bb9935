"""Plain text and Markdown: each paragraph is something the agent said, unless it is marked as a person's.

A paragraph ends at an empty line that stands in no fence, at a heading, or when it has grown to 64 KiB. A person's is
one that begins with `User:` or `Human:`, one whose lines begin with `> `, and all that stands below a heading `User`
or `Human` up to the next heading. The marks themselves are taken off.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ralf.briefing.fence import OWN_OUTPUT
from ralf.text import clean
from ralf.transcripts.events import START, Event, Position
from ralf.transcripts.growing import Growing
from ralf.transcripts.head import Head
from ralf.transcripts.lines import END_KEPT, Line, open_regular, read_lines

_MARKED = re.compile(r"(?:\*\*)?(?:User|Human)(?::\*\*|\*\*:|:)[ \t]*", re.I)
_HEADING = re.compile(r"#{1,6}\s")
_USER_HEADING = re.compile(r"#{1,6}\s+(?:User|Human)\b[^\n]*\Z", re.I)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_JSON = (".jsonl", ".json", ".traj", ".ndjson")


def reader(path: Path, head: Head) -> Plain:
    """The reader of a text file; any text will do.

    Raises DamagedTranscript for what is binary, and for JSON that no reader knows.
    """
    if not head.is_text():
        raise head.damaged("is binary, not a transcript")
    if head.in_lines:
        keys = ", ".join(sorted(ascii(key) for key in next(iter(head.records)))[:6])
        raise head.damaged(f"is JSON lines, but of no client known here: its records have {keys}")
    bad = head.first_bad_line()
    if bad and (path.suffix.lower() in _JSON or re.match(rb'\{\s*(?:"|\}|\Z)', head.opening)):
        raise head.damaged(f"line {bad}: not a JSON record, nor is any other line before byte {len(head.data)}")
    return Plain(path)


class Plain(Growing):
    """A text file; see ralf.transcripts.Transcript for the fields. It names no session and no folder."""

    format = "text"

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
        text, by_user = part.said()
        if text.startswith(OWN_OUTPUT):
            self.skipped["own output"] += 1
        elif text:
            yield Event("user" if by_user else "assistant", text, part.start, part.end, cut=part.cut)
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
        self._by_user = False

    def ends_before(self, text: str) -> bool:
        """Whether this line is the first of another paragraph."""
        if not self._lines:
            return False
        if self._size >= END_KEPT:
            return True
        if self._fence:
            return False
        return bool(_HEADING.match(text)) or (self._over and not self._by_user and bool(text.strip()))

    def add(self, text: str, line: Line) -> None:
        """Take a line in."""
        self.end = Position(line.end, line.number + 1)
        self.cut += line.cut
        self._size += len(text) + 1
        if not text.strip() and not self._fence:
            self._over = bool(self._lines)
            if not self._by_user:
                return
        elif not self._lines and _USER_HEADING.match(text):
            self._by_user = True
        fence = _FENCE.match(text)
        if fence and not self._fence:
            self._fence = fence[1]
        elif fence and fence[1].startswith(self._fence) and not text.strip().strip(self._fence[0]):
            self._fence = ""
        self._lines.append(text)

    def said(self) -> tuple[str, bool]:
        """The words without the mark, and whether a person said them."""
        if self._by_user:
            return "\n".join(self._lines[1:]).strip(), True
        text = "\n".join(self._lines).strip()
        if marked := _MARKED.match(text):
            return text[marked.end() :].strip(), True
        if text and all(line.startswith(">") for line in self._lines):
            return "\n".join(line[1:].removeprefix(" ") for line in self._lines).strip(), True
        return text, False
