"""The documents of a run in parts, by their main headings, and what these tell: task, summary, next steps, files."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ralf.text.cleaning import clean, one_line
from ralf.text.sentences import sentences
from ralf_integrations.blackbox5.runs import markdown
from ralf_integrations.blackbox5.runs.folder import RunFolder, task_id
from ralf_integrations.blackbox5.runs.markdown import ITEM, Line
from ralf_integrations.blackbox5.runs.outline import FIELD, Node, outline

NEXT = r"(?:recommended |immediate )?(?:next|follow-?up)(?: steps?| actions?| tasks?|-ups?)?\b|(?:remaining|to ?do)\b"
"""Headings below which it stands what comes next."""

BLOCKERS = r"(?:blockers?|blocked|impediments?)\b"
"""Headings below which it stands what is in the way."""

_SUMMARY = (
    r"(?:(?:executive|task|brief) )?(?:summary|outcomes?|results?|conclusion|(?:implementation )?complet(?:ed?|ion)"
    r"|what was (?:done|delivered|accomplished|built))\b"
)
_FILES = r"(?:files?|artifacts?|deliverables?) (?:created|modified|changed|touched|added|updated|deleted)\b.*"
RESULTS = ("RESULTS.MD", "SUMMARY.MD")
_MAIN = 2  # the level of headings at which a document is cut
_DEEPEST = 3  # characters before an item that stands in no other
_LEAST = 20  # characters of a sentence that says something
_END = 4_000  # characters of an output in which its last words are looked for
_KIND = re.compile(r"^[A-Za-z ]{3,20}\s*[:-]\s*")  # of document: "Results - TASK-7"
_PATH = re.compile(r"`([^`\s*]{2,200})`|(?<![\w@.~/-])((?:[\w@.~-]+/)+[\w@.-]+\.\w{1,8})\b")
_LIKE_A_PATH = re.compile(r"(?:[\w@.~-]*/)*[\w@.-]+\.\w{1,8}\Z|(?:[\w@.~-]+/)+\Z")
_LEADS = re.compile(r":\Z|^[A-Z][\w /-]{1,24}:\s")  # to a list; a field
_PROMISE = re.compile(r"<promise>[^<]*</promise>")
_DID = {"deleted": r"\b(?:deleted|removed)\b", "edited": r"\bmodif", "created": r"\b(?:created?|new|added)\b"}
_TITLE = re.compile(r"(?P<id>(?=[A-Za-z](?:[^\W\d]|[.-])*+\d)[\w.-]++)\s*(?:[:—\u2013]|\s-\s)\s*(?P<title>.+)$")


@dataclass(frozen=True)
class Part:
    """A document's lines from one main heading to the next; the first one has what stands above all of them.

    heading  its words, "" for the first part of a document that has none
    top      whether it is a document's first part, where fields name the run
    """

    document: str
    heading: str
    lines: tuple[Line, ...]
    top: bool

    @cached_property
    def is_written(self) -> bool:
        """Whether somebody wrote anything there."""
        return markdown.says_something(self.lines, header=self.top)

    @property
    def first(self) -> int:
        """The number of its first line that is not empty, from 1."""
        return next((line.number for line in self.lines if line.text.strip()), 1)

    @cached_property
    def text(self) -> str:
        """Its words, without the marks of a template and the rule at its end."""
        kept = markdown.without_marks(self.lines)
        while kept and (kept[-1].rule or not kept[-1].text.strip()):
            kept.pop()
        return clean("\n".join(line.text for line in kept)).strip("\n")

    def without(self, numbers: Container[int]) -> Part:
        """The part without some of its lines."""
        left = tuple(line for line in self.lines if line.number not in numbers)
        return self if left == self.lines else Part(self.document, self.heading, left, self.top)


def parts_of(document: str, text: str) -> list[Part]:
    """The parts of a document, in order."""
    made: list[Part] = []
    held: list[Line] = []
    top, heading = True, ""
    for line in markdown.lines_of(text):
        if 0 < line.level <= _MAIN:
            if any(one.text.strip() for one in held):
                made.append(Part(document, heading, tuple(held), top))
                heading, held = "", []
            heading, top = heading or line.heading, top and line.level == 1
        held.append(line)
    return [*made, Part(document, heading, tuple(held), top)] if held else made


def field_of(parts: Iterable[Part], document: str, *names: str) -> str:
    """The value of a document's field in bold, above or below its first headings; "" where it has none of these."""
    for line in (line for part in parts if part.document.upper() == document.upper() for line in part.lines):
        found = None if line.fence else FIELD.match(line.text)
        if found is not None and found["name"].lower() in names and found["rest"].strip():
            return one_line(found["rest"])
    return ""


def task_of(parts: Sequence[Part]) -> tuple[str, str]:
    """The task that the documents name at their tops, and its title; "" for what they do not tell."""
    task = title = ""
    for line in (line for part in parts if part.top for line in part.lines):
        field = FIELD.match(line.text)
        is_task = field is not None and field["name"].lower() in ("task", "task id", "task_id")
        told = field["rest"].strip() if field is not None and is_task else ""
        told = told or (_KIND.sub("", line.heading) if line.level == 1 else "")
        found = task_id(told) if told else ""
        if any(map(str.isdigit, found)) and not found.startswith("run-"):
            named = _TITLE.match(one_line(told))
            task = task or found
            title = title or (named["title"].strip() if named is not None and named["id"].startswith(task) else "")
    return task, title


def task_in_documents(folder: RunFolder) -> str:
    """The task that a run's documents name at their tops, "" for none. OSError where one cannot be read."""
    return task_of([parts[0] for name in folder.documents if (parts := parts_of(name, folder.text(name)))])[0]


def summary_of(parts: Sequence[Part]) -> str:
    """The first sentence that sums the run up: below a heading for that, else the first one of its results."""
    results = [part for part in parts if part.document.upper() in RESULTS]
    headed, others = ([part for part in those if _is_headed(part.heading, _SUMMARY)] for those in (results, parts))
    return next(filter(None, (first_words(part.text) for part in (*headed, *results, *others) if part.is_written)), "")


def first_words(prose: str) -> str:
    """The first sentence of a text that says something and is no item, no heading and no field; "" for none."""
    said = (sentence.text for sentence in sentences(prose) if sentence.kind == "text")
    return next((text for text in said if len(text) > _LEAST and not _LEADS.search(text)), "")


def last_words(output: str) -> str:
    """The last sentence of what a client printed that says something."""
    said = [sentence.text for sentence in sentences(_PROMISE.sub("", output[-_END:]))]
    return next((text for text in reversed(said) if len(text) > _LEAST), "")


def items_of(parts: Iterable[Part], heading: str) -> list[str]:
    """The entries below headings of a kind, without those that are ticked off."""
    lines = (line for node in _below(parts, heading) for line in node.lines)
    found = (
        item["text"].replace("**", "")
        for line in lines
        if not line.fence and line.indent <= _DEEPEST and (item := ITEM.match(line.text))
        if (item["box"] or "") not in ("x", "X") and markdown.says_something([line])
    )
    return list(dict.fromkeys(map(one_line, found)))


def files_of(parts: Iterable[Part]) -> list[tuple[str, str]]:
    """The paths below headings such as "Files Modified", each with what was done to it."""
    found: dict[tuple[str, str], None] = {}
    for node in _below(parts, _FILES):
        titles = {one.line.number: one.name for one in (node, *node.walk()) if one.form != "item"}
        for line in (node.line, *node.lines):
            if title := titles.get(line.number, ""):
                did = next((done for done, words in _DID.items() if re.search(words, title, re.I)), "edited")
            if not (line.fence or line.level):
                paths = (match[1] or match[2] for match in _PATH.finditer(line.text))
                path = next(filter(_LIKE_A_PATH.match, paths), "")
                found |= {(path, did): None} if path else {}
    return list(found)


def _below(parts: Iterable[Part], heading: str) -> Iterator[Node]:
    """What stands below each heading of a kind, or name in bold."""
    nodes = (node for part in parts for node in outline(part.lines).walk() if node.form != "item")
    return (node for node in nodes if _is_headed(node.name, heading))


def _is_headed(heading: str, kind: str) -> bool:
    """Whether a heading is of a kind, without the number and the signs before its words."""
    return re.match(kind, re.sub(r"^[\W\d]*", "", heading), re.IGNORECASE) is not None
