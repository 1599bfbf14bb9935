"""A run folder of the RALF loop as a transcript: what the run wrote down, part by part, and how it ended.

Each section of a document in which somebody wrote something is a note, and so is each decision, and each list that its
metadata tells. A folder of skeletons gives no note. How the run ended is its `attempt`, also where it wrote nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ralf.document.guarded_yaml import BadYaml
from ralf.errors import DamagedTranscript, RalfError, TranscriptNotFound
from ralf.model import Attempt
from ralf.text.cleaning import clean, one_line, outside, trimmed
from ralf.text.sentences import promised, sentences
from ralf.transcripts.events import Event
from ralf.transcripts.notes import Notes, note, session_of
from ralf_integrations.blackbox5.runs import decisionsmd, handwritten, markdown, registry
from ralf_integrations.blackbox5.runs.folder import (
    Recorded,
    RunFolder,
    is_brought,
    is_run,
    outcome_of,
    read_recorded,
    task_id,
    time_of,
)
from ralf_integrations.blackbox5.runs.markdown import ITEM, Line
from ralf_integrations.blackbox5.runs.written import WrittenDecision, decision_tree, lines_within

# ---- parts of documents ----


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

_DEEPEST = 3  # characters before an item that stands in no other

_FIELD = re.compile(r"\s*(?:[-*+]\s+)?\*\*(?P<name>[^*\n]{1,60}?):?\*\*\s*:?\s*(?P<value>.*)$")

_BOLD_LINE = re.compile(r"\s*\*\*([^*\n]{1,60}?):?\*\*:?\s*$")

_KIND = re.compile(r"^[A-Za-z ]{3,20}\s*[:-]\s*")  # of document: "Results - TASK-7"

_NUMBER = re.compile(r"^[\W\d]*")

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
        kept = markdown.without_marks(self.lines)
        while kept and (kept[-1].rule or not kept[-1].text.strip()):
            kept.pop()
        return clean("\n".join(line.text for line in kept)).strip("\n")

    def without(self, numbers: Container[int]) -> Part:
        """The part without some of its lines."""
        left = tuple(line for line in self.lines if line.number not in numbers)
        return self if left == self.lines else _make_part(self.document, self.heading, left, top=self.top)


def _make_part(document: str, heading: str, lines: Sequence[Line], *, top: bool) -> Part:
    return Part(document, heading, tuple(lines), top, markdown.says_something(lines, header=top))


def parts_of(document: str, text: str) -> list[Part]:
    """The parts of a document, in order."""
    made: list[Part] = []
    held: list[Line] = []
    top, heading = True, ""
    for line in markdown.titled(markdown.lines_of(text)):
        if 0 < line.level <= _MAIN and any(one.text.strip() for one in held):
            made.append(_make_part(document, heading, held, top=top))
            top, heading, held = top and line.level == 1, "", []
        if 0 < line.level <= _MAIN:
            heading = heading or line.heading
            top = top and line.level == 1
        held.append(line)
    return [*made, _make_part(document, heading, held, top=top)] if held else made


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


def task_in_documents(folder: RunFolder) -> str:
    """The task that a run's documents name at their tops, "" for none. OSError where one cannot be read."""
    return task_of([parts[0] for name in folder.documents if (parts := parts_of(name, folder.text(name)))])[0]


def _names_task(name: str) -> bool:
    return name.strip().lower() in ("task", "task id", "task_id")


def summary_of(parts: Sequence[Part]) -> str:
    """The first sentence that sums the run up: below a heading for that, else the first one of its results."""
    results = [part for part in parts if part.document.upper() in ("RESULTS.MD", "SUMMARY.MD")]
    headed = [part for part in results if _SUMMARY.match(_bare(part.heading))]
    for part in (*headed, *results, *(part for part in parts if _SUMMARY.match(_bare(part.heading)))):
        if part.is_written and (said := _telling(part.text)):
            return said[0]
    return ""


def first_words(prose: str) -> str:
    """The first sentence of a text that says something, else its beginning."""
    return next(iter(_telling(prose)), prose)


def _telling(prose: str) -> list[str]:
    """The sentences of a text that are no items, no headings and no names of fields."""
    said = [sentence.text for sentence in sentences(prose) if sentence.kind == "text"]
    return [text for text in said if len(text) > 20 and not _LEADS.search(text)]


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
                item = None if line.fenced or line.indent > _DEEPEST else ITEM.match(line.text)
                if item is not None and (item["box"] or "") not in ("x", "X") and markdown.says_something([line]):
                    found[one_line(item["text"].replace("**", ""))] = None
    return list(found)


def files_of(parts: Iterable[Part]) -> list[tuple[str, str]]:
    """The paths below headings such as "Files Modified", each with what was done to it."""
    found: dict[tuple[str, str], None] = {}
    for part in parts:
        for lines in _below(part, _FILES):
            is_made = _MADE.search(_title_of(lines[0])) and "modif" not in lines[0].text.lower()
            did = "created" if is_made else "edited"
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


# ---- the transcript ----


FORMAT = "run folder"

REGISTRY = "decision_registry.yaml"

_OUTPUT_KEPT = 12_000  # characters of what a client printed; its end says what came of the run

_SAID = 240  # characters of the line that says what came of it

_MOST_LISTED = 12  # next steps, blockers, findings

_HEADINGS = {
    "actions": "Actions taken",
    "discoveries": "Discoveries",
    "learnings": "Learnings",
    "assumptions": "Assumptions",
    "questions": "Questions",
    "next_steps": "Next steps",
    "blockers": "Blockers",
    "created tasks": "Tasks created",
    "finished tasks": "Tasks completed",
    "progress": "Progress",
}


def reader(path: Path, root: Path, *, origin: str = "", logged: bool = False) -> Notes:
    """The transcript of a run folder.

    root    the project's: the session is called by the folder's path in it
    logged  the log of a client's session has told what the run's agent said: what it printed is left out
    origin  "import" where the run is not of this project's life; "": so where git has brought it, else "agent"

    Raises TranscriptNotFound; DamagedTranscript for a folder that is no run's; RalfError for one that cannot be read.
    """
    if not path.exists():
        raise TranscriptNotFound(path, "no such run folder", "ralf checkpoint --help")
    if not is_run(path):
        hint = "name a run folder, such as runs/executor/run-0018, or a session log"
        raise DamagedTranscript(
            path, "is a directory, but no run's: no THOUGHTS.md, RESULTS.md, metadata.yaml or the like is in it", hint
        )
    folder = RunFolder(path)
    try:
        origin = origin or ("import" if is_brought(folder) else "agent")
        return _Reading(folder, session_of(path, root), root, logged=logged).notes(origin)
    except OSError as error:
        raise RalfError(path, f"cannot be read: {error.strerror or error}", "make it readable") from error


class _Reading:
    """One reading of a run's folder."""

    def __init__(self, folder: RunFolder, session: str, root: Path, *, logged: bool = False) -> None:
        self.folder = folder
        self.logged = logged
        self.session = session
        self.place = session if (root / session).exists() else str(folder.path)  # where its documents lie
        self.recorded = read_recorded(folder)
        self.parts: list[Part] = []
        self.texts: dict[str, str] = {}  # of the documents in which something was written
        self.skipped: Counter[str] = Counter()
        self.problems = dict(self.recorded.problems)
        self.registered = registry.Registry({}, ())
        self.output = ""
        self.promise = ""

    def notes(self, origin: str) -> Notes:
        for name in self.folder.documents:
            if (text := self._text(name)) is not None:
                parts = parts_of(name, text)
                self.parts += parts
                if any(part.is_written for part in parts):
                    self.texts[name] = text
                else:
                    self.skipped["empty document"] += 1
        self._read_registry()
        self._read_outputs()
        found = [*self._of_documents(), *self._of_registry(), *self._of_metadata(), *self._of_output()]
        if found:
            found.append(self._state())
        made = Notes(
            self.folder.path,
            self.session,
            found,
            format=FORMAT,
            origin=origin,
            skipped=self.skipped,
            attempt=self._attempt(),
        )
        made.problems = {f"{self.place}/{name}": what for name, what in self.problems.items()}
        return made

    def _text(self, name: str) -> str | None:
        try:
            return self.folder.text(name)
        except OSError as error:
            self.problems[name] = (error.strerror or str(error)).lower()
            return None

    # ---- how it ended ----

    def _attempt(self) -> Attempt:
        """What came of the run, in a few words."""
        return Attempt(
            run=self.session,
            outcome=self._outcome(),
            timestamp=self.recorded.ended or self._started,
            said=self._said,
        )

    def _outcome(self) -> str:
        """The promise that was made last counts most, then what the loop noted, then what the documents say."""
        told = (field_of(self.parts, name, "status") for name in ("RESULTS.md", "SUMMARY.md", "THOUGHTS.md"))
        return self.promise or self.recorded.outcome or next(filter(None, map(outcome_of, told)), "")

    @cached_property
    def _started(self) -> str:
        """When the run began; asked for each note, and looked for in all documents."""
        told = (field_of(self.parts, name, "started", "date", "timestamp") for name in self.folder.documents)
        return self.recorded.started or next(filter(None, map(time_of, told)), "") or self.folder.started

    def _task(self) -> str:
        told = self.recorded.task or task_of(self.parts)[0]
        return self.folder.task or told or task_id(self.registered.task)

    @cached_property
    def _said(self) -> str:
        """One line that says what came of it, in the run's own words."""
        texts = (
            summary_of(self.parts),
            self.recorded.summary,
            *map(first_words, self.recorded.notes[:1]),
            last_words(self.output),
            *(entry for entry in self.recorded.told.get("blockers", [])[:1]),
        )
        return next((trimmed(one_line(text), _SAID) for text in texts if text.strip()), "")

    # ---- notes ----

    def _state(self) -> Event:
        """Where the run leaves the work; its words are those that its files record."""
        task, title = self._task(), self.recorded.title or task_of(self.parts)[1]
        outcome = self._outcome()
        told = {
            "run": self.session,
            "task": f"{task} {title}".strip(),
            "agent": self.recorded.agent or self.folder.agent,
            "status": self.recorded.status,
            "ended as": outcome,
            "started": self._started,
            "ended": self.recorded.ended,
        }
        lines = [f"- {name}: {value}" for name, value in told.items() if value]
        lines += [f"- {line}" for line in self.recorded.rest]
        work: dict[str, Any] = {
            "next_steps": self._listed("next_steps", NEXT),
            "blockers": self._listed("blockers", BLOCKERS),
            "findings": [trimmed(text, _SAID) for text in self.recorded.told.get("discoveries", [])[:_MOST_LISTED]],
            "outcome": outcome,
            "last_statement": self._said or trimmed(one_line(last_thought(self.parts)), _SAID),
            "work_status": {"COMPLETE": "completed"}.get(outcome, outcome.lower() or "in_progress"),
        }
        work |= {"current_task": task} if task else {}
        work |= {"task_title": title} if title else {}
        own = f"{self.session}/"
        paths = [*self.recorded.paths, *files_of(self.parts)]
        facts = {
            "paths": [
                {"path": path, "did": [did]}
                for path, did in dict.fromkeys(paths)
                if not path.startswith(own) and f"{self.folder.name}/" not in path and path not in self.folder.files
            ],
            "commits": [{"commit": commit, "message": message} for commit, message in self.recorded.commits],
        }
        return self._note(
            "# The run\n\n" + "\n".join(lines),
            when=self.recorded.ended,
            title=": ".join(filter(None, (self.folder.name, title or self._said or outcome))),
            work=work,
            facts={key: value for key, value in facts.items() if value},
        )

    def _listed(self, what: str, heading: Heading) -> list[str]:
        told = self.recorded.told.get(what) or items_of(self.parts, heading)
        return [trimmed(one_line(text), _SAID) for text in told[:_MOST_LISTED]]

    def _of_documents(self) -> Iterator[Event]:
        texts = self.texts
        found = {name: decisionsmd.decisions_in(text) for name, text in texts.items() if "DECISION" in name.upper()}
        if not any(found.values()) and not self.registered.decisions:  # then other documents may tell them
            found = {name: decisionsmd.decisions_in(text, mixed=True) for name, text in texts.items()}
        for name, text in texts.items():
            made = found.get(name, [])
            taken = lines_within(made)
            lines = text.split("\n")
            events = [self._decision(name, lines, one) for one in made]
            for part in (part for part in self.parts if part.document == name):
                left = part.without(taken)
                if left.is_written:
                    events.append(self._note(left.text, name, left.first))
            yield from sorted(events, key=lambda event: int(event.input.get("line", 0)))

    def _decision(self, name: str, lines: Sequence[str], written: WrittenDecision) -> Event:
        words = "\n".join(lines[written.first_line - 1 : written.last_line])
        return self._told(name, words, written)

    def _told(self, name: str, words: str, written: WrittenDecision) -> Event:
        tree = decision_tree(written, self.session)
        return self._note(words, name, written.first_line, decision=tree)

    def _of_registry(self) -> Iterator[Event]:
        for written, words in zip(self.registered.decisions, self.registered.words, strict=True):
            yield self._told(REGISTRY, words, written)
        for first, _, words in self.registered.undecided:
            if markdown.says_something(markdown.lines_of(words)):
                yield self._note(words, REGISTRY, first, aside=True)

    def _read_registry(self) -> None:
        if REGISTRY in self.folder.files and (text := self._text(REGISTRY)) is not None:
            try:
                self.registered = registry.read(text)
                broken = self.registered.broken
                if broken:
                    first, _, what = broken[-1]
                    self.problems[REGISTRY] = f"line {first}: {what}"
                self.recorded.unread += [(REGISTRY, *words) for words in handwritten.words_at(text, broken)]
            except BadYaml as error:
                self.problems[REGISTRY] = error.what

    def _of_metadata(self) -> Iterator[Event]:
        recorded: Recorded = self.recorded
        for text in (recorded.summary, *recorded.notes):
            if markdown.says_something(markdown.lines_of(text)):
                yield self._note(text, recorded.file)
        for what, entries in recorded.told.items():
            lines = [f"- {entry}" for entry in dict.fromkeys(entries)]
            if markdown.says_something(markdown.lines_of("\n".join(lines))):
                yield self._note(f"## {_HEADINGS[what]}\n\n" + "\n".join(lines), recorded.file)
        for name, line, words in recorded.unread:
            if markdown.says_something(markdown.lines_of(words)):
                yield self._note(words, name, line, aside=True)
        for tree in recorded.decisions:
            kept = {key: value for key, value in tree.items() if key not in ("id", "title")}
            label = one_line(str(tree.get("id") or ""))
            title = one_line(str(tree.get("title") or ""))
            decided = one_line(str(tree.get("decision") or "")) or title
            if decided and markdown.says_something(markdown.lines_of(decided)):
                fields = {"decision": decided, **({"label": f"{self.session}#{label}"} if label else {})}
                lines = [f"## {f'{label}: ' if label else ''}{title or 'Decision'}", ""]
                lines += [f"**{key.capitalize()}:** {one_line(str(value))}" for key, value in kept.items() if value]
                yield self._note("\n".join(lines), recorded.file, decision={**kept, **fields})

    def _read_outputs(self) -> None:
        """The end of what the client printed, without what ralf itself, or the loop, had handed it; and the promise in
        it.
        """
        given = [text.strip() for name in self.folder.given if self.folder.outputs and (text := self._text(name))]
        for name in self.folder.outputs:
            if (text := self._text(name)) is None:
                continue
            said = outside(clean(text))
            for prompt in filter(None, given):
                said = said.replace(clean(prompt), "")
            said = said.strip()
            self.promise = promised(said) or self.promise
            self.output = said[-_OUTPUT_KEPT:]
        for part in self.parts:
            if part.document.upper() in ("RESULTS.MD", "SUMMARY.MD") and (tag := promised(part.text)):
                self.promise = self.promise or tag

    def _of_output(self) -> Iterator[Event]:
        if not self.logged and markdown.says_something(markdown.lines_of(self.output)):
            yield self._note(self.output, self.folder.outputs[-1])

    def _note(self, text: str, name: str = "", line: int = 1, *, when: str = "", **fields: Any) -> Event:
        place = {"path": f"{self.place}/{name}", "line": line} if name else {"path": self.place}
        return note(text, timestamp=when or self._started, **place, **fields)
