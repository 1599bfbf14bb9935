"""A run's Markdown documents in parts, one for each of their main headings, and what can be read off them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ralf.prose import sentences
from ralf.runs import markdown, skeleton
from ralf.runs.folder import RunFolder, task_id
from ralf.runs.markdown import Line
from ralf.text import clean, one_line

Heading = re.Pattern[str]

NEXT = re.compile(
    r"(?:recommended |immediate )?(?:next|follow-?up)(?: steps?| actions?| tasks?|-ups?)?\b|(?:remaining|to ?do)\b",
    re.I,
)
"""Headings below which it stands what comes next."""

BLOCKERS = re.compile(r"(?:blockers?|blocked|impediments?)\b", re.I)
"""Headings below which it stands what is in the way."""

_SUMMARY = re.compile(
    r"(?:(?:executive|task|brief) )?(?:summary|outcomes?|results?|conclusion|(?:implementation )?complet(?:ed?|ion)"
    r"|what was (?:done|delivered|accomplished|built))\b",
    re.I,
)
_FILES = re.compile(
    r"(?:files?|artifacts?|deliverables?) (?:created|modified|changed|touched|added|updated|deleted)\b.*", re.I
)
_MAIN = 2  # the level of headings at which a document is cut
_FIELD = re.compile(r"\s*(?:[-*+]\s+)?\*\*(?P<name>[^*\n]{1,60}?):?\*\*\s*:?\s*(?P<value>.*)$")
_BOLD_LINE = re.compile(r"\s*\*\*([^*\n]{1,60}?):?\*\*:?\s*$")
_KIND = re.compile(r"^[A-Za-z ]{3,20}\s*[:-]\s*")  # of document: "Results - TASK-7"
_NUMBER = re.compile(r"^[\W\d]*")
_ITEM = re.compile(r"\s{0,3}(?:[-*+]|\d{1,3}[.)])\s+(?:\[(?P<box>[ xX])\]\s*)?(?P<text>.+)$")
_PATH = re.compile(r"`([^`\s]{2,200})`|(?<![\w@.~/-])((?:[\w@.~-]+/)+[\w@.-]+\.\w{1,8})\b")
_LIKE_A_PATH = re.compile(r"(?:[\w@.~ -]*/)*[\w@.-]+\.\w{1,8}\Z|(?:[\w@.~-]+/)+\Z")
_LEADS = re.compile(r":\Z|^[A-Z][\w /-]{1,24}:\s")  # to a list; a field
_PROMISE = re.compile(r"<promise>[^<]*</promise>")
_MADE = re.compile(r"\bcreated?\b|\bnew\b|\badded\b", re.I)
_GONE = re.compile(r"\b(?:deleted|removed)\b", re.I)
_TITLE = re.compile(r"(?P<id>(?=[A-Za-z](?:[^\W\d]|[.-])*+\d)[\w.-]++)\s*(?:[:—\u2013]|\s-\s)\s*(?P<title>.+)$")


@dataclass(frozen=True)
class Part:
    """A document's lines from one main heading to the next; the first one has what stands above all of them.

    heading  its words, "" for the first part of a document that has none
    top      whether it is a document's first part, where fields name the run
    is_written  whether somebody wrote anything there
    """

    document: str
    heading: str
    lines: tuple[Line, ...]
    top: bool
    is_written: bool

    @property
    def first(self) -> int:
        """The number of its first line that is not empty, from 1."""
        return next((line.number for line in self.lines if line.text.strip()), 1)

    @cached_property
    def text(self) -> str:
        """Its words, without the marks of a template and the rule at its end."""
        kept = skeleton.without_marks(self.lines)
        while kept and (kept[-1].rule or not kept[-1].text.strip()):
            kept.pop()
        return clean("\n".join(line.text for line in kept)).strip("\n")

    def without(self, numbers: Container[int]) -> Part:
        """The part without some of its lines."""
        left = tuple(line for line in self.lines if line.number not in numbers)
        return self if left == self.lines else _part(self.document, self.heading, left, top=self.top)


def _part(document: str, heading: str, lines: Sequence[Line], *, top: bool) -> Part:
    return Part(document, heading, tuple(lines), top, skeleton.says_something(lines, header=top))


def parts_of(document: str, text: str) -> list[Part]:
    """The parts of a document, in order."""
    made: list[Part] = []
    held: list[Line] = []
    top, heading = True, ""
    for line in markdown.titled(markdown.lines_of(text)):
        if 0 < line.level <= _MAIN and any(one.text.strip() for one in held):
            made.append(_part(document, heading, held, top=top))
            top, heading, held = top and line.level == 1, "", []
        if 0 < line.level <= _MAIN:
            heading = heading or line.heading
            top = top and line.level == 1
        held.append(line)
    return [*made, _part(document, heading, held, top=top)] if held else made


def field_of(parts: Iterable[Part], document: str, *names: str) -> str:
    """The value of a document's field in bold, above or below its first headings; "" where it has none of these."""
    for part in parts:
        if part.document.upper() != document.upper():
            continue
        for line in part.lines:
            found = None if line.fenced else _FIELD.match(line.text)
            if found is not None and found["name"].strip().lower() in names and found["value"].strip():
                return one_line(found["value"])
    return ""


def task_of(parts: Sequence[Part]) -> tuple[str, str]:
    """The task that the documents name at their tops, and its title; "" for what they do not tell."""
    task = title = words = ""
    for line in (line for part in parts if part.top for line in part.lines):
        field = _FIELD.match(line.text)
        told = field["value"] if field is not None and _names_task(field["name"]) else ""
        told = told or (_KIND.sub("", line.heading) if line.level == 1 else "")
        found = task_id(told) if told else ""
        if found and any(map(str.isdigit, found)) and not found.startswith("run-"):
            titled = _TITLE.match(one_line(told))
            task = task or found
            title = title or (titled["title"].strip() if titled is not None and titled["id"].startswith(task) else "")
        elif told and field is not None:
            words = words or told
    return task, title or one_line(words)


def task_in(folder: RunFolder) -> str:
    """The task that a run's documents name at their tops, "" for none. OSError where one cannot be read."""
    return task_of([parts[0] for name in folder.documents if (parts := parts_of(name, folder.text(name)))])[0]


def _names_task(name: str) -> bool:
    return name.strip().lower() in ("task", "task id", "task_id")


def summary_of(parts: Sequence[Part]) -> str:
    """The first sentence that sums the run up: below a heading for that, else the first one of its results."""
    results = [part for part in parts if part.document.upper() in ("RESULTS.MD", "SUMMARY.MD")]
    headed = [part for part in results if _SUMMARY.match(_bare(part.heading))]
    for part in (*headed, *results, *(part for part in parts if _SUMMARY.match(_bare(part.heading)))):
        if part.is_written:
            for sentence in sentences(part.text):
                if sentence.kind == "text" and len(sentence.text) > 20 and not _LEADS.search(sentence.text):
                    return sentence.text
    return ""


def first_words(prose: str) -> str:
    """The first sentence of a text that says something, else its beginning."""
    said = [sentence.text for sentence in sentences(prose) if sentence.kind == "text"]
    return next((text for text in said if len(text) > 20 and not _LEADS.search(text)), prose)


def last_thought(parts: Sequence[Part]) -> str:
    """The last sentence of its thoughts that says something, "" for none: how far a run came that told no results."""
    written = [part for part in parts if part.document.upper() == "THOUGHTS.MD" and part.is_written]
    return last_words(written[-1].text) if written else ""


def last_words(output: str) -> str:
    """The last sentence of what a client printed that says something."""
    said = [sentence.text for sentence in sentences(_PROMISE.sub("", output[-4_000:]))]
    return next((text for text in reversed(said) if len(text) > 20), "")


def items_of(parts: Iterable[Part], heading: Heading) -> list[str]:
    """The entries below headings of a kind, without those that are ticked off."""
    found: dict[str, None] = {}
    for part in parts:
        for lines in _below(part, heading):
            for line in lines:
                item = None if line.fenced else _ITEM.match(line.text)
                if item is not None and (item["box"] or " ") == " " and skeleton.says_something([line]):
                    found[one_line(item["text"].replace("**", ""))] = None
    return list(found)


def files_of(parts: Iterable[Part]) -> list[tuple[str, str]]:
    """The paths below headings such as "Files Modified", each with what was done to it."""
    found: dict[tuple[str, str], None] = {}
    for part in parts:
        for lines in _below(part, _FILES):
            did = (
                "created"
                if lines and _MADE.search(_title_of(lines[0])) and "modif" not in lines[0].text.lower()
                else "edited"
            )
            for line in lines[1:]:
                if line.level or _BOLD_LINE.match(line.text):
                    did = "deleted" if _GONE.search(line.text) else "created" if _MADE.search(line.text) else "edited"
                elif not line.fenced and (path := _path_in(line.text)):
                    found[path, did] = None
    return list(found)


def _path_in(text: str) -> str:
    for match in _PATH.finditer(text):
        path = match[1] or match[2]
        if _LIKE_A_PATH.match(path) and "*" not in path:
            return path
    return ""


def _below(part: Part, heading: Heading) -> Iterator[list[Line]]:
    """The lines from each heading of a kind down to the next heading that is as high; the heading comes first."""
    level = 0
    held: list[Line] = []
    for line in part.lines:
        title = _title_of(line)
        if line.level and level and line.level <= level:
            yield held
            level, held = 0, []
        if title and not level and heading.match(_bare(title)):
            level, held = line.level or 6, []
        if level:
            held.append(line)
    if level:
        yield held


def _title_of(line: Line) -> str:
    if line.level:
        return line.heading
    bold = _BOLD_LINE.match(line.text) if "**" in line.text else None
    return bold[1] if bold is not None else ""


def _bare(heading: str) -> str:
    """A heading without the number and the signs before its words."""
    return _NUMBER.sub("", heading)
