"""What a segment holds, item by item: read from its events with other eyes than those that make its checkpoint."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ralf.evidence import Line
from ralf.extraction.commands import command_text, is_shell
from ralf.transcripts.events import Event

KINDS = (
    "requests",
    "decisions",
    "statements",
    "to-dos",
    "paths",
    "failed commands",
    "commands",
    "errors",
    "tests",
    "commits",
    "numbers",
    "names",
)
MOST_NUMBERS, MOST_NAMES = 20, 30
"""Numbers (with ids and hashes) and names of one segment that count: what its words came back to most often."""

_LONGEST_READ = 100_000  # characters of one event
_PATH_KEY = re.compile(r"(?i)(?:^|_)(?:file|path|notebook)|path$")
_LOOKING = re.compile(r"(?i)grep|glob|search|list|find|\bls\b")  # tools that name a path, but touch no file
_PATCHED = re.compile(r"(?m)^\*\*\* (?:Add|Update|Delete) File: ([^\n]+)$")
_CHOICE = re.compile(
    r"\b(?:decided (?:to|on|against|that)|instead of|rather than|going with|(?:we|i)(?:'ll| will) (?:use|keep|go with)"
    r"|chose|switch(?:ed|ing)? (?:to|from)|opted for)\b",
    re.I,
)
_RULING = re.compile(r"\b(?:always|never|from now on|must not|instead of|rather than|do not|don't)\b", re.I)
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+|\n+")
_SHORTEST, _LONGEST = 30, 600  # characters of a sentence that can be a decision
_NUMBER = re.compile(r"(?<![\w.#:/-])[A-Za-z_.#:/-]*+\d[\w.#:/-]*")
_NAME = re.compile(r"`([^`\s]{3,60})`")
_TESTED = re.compile(r"\b\d+ (?:passed|failed|passing|failing)\b|^test result: \w+|^(?:ok  |FAIL)\t\S+", re.M)
_TAIL = 4_000  # characters at the end of a command's output in which a test run says what it came to
_COMMITTED = re.compile(r"(?m)^\[[^\[\]\n]{1,200} ([0-9a-f]{7,40})\] ")
_ADDING = re.compile(r"(?i)(?:task|todo)_?(?:create|add)")
_TODO_KEYS = ("content", "step", "subject", "title", "text")


@dataclass(frozen=True, slots=True)
class Item:
    """Something that a segment holds: its kind, its words as they stand there, and its line, counted from 1."""

    kind: str
    text: str
    line: int

    @property
    def key(self) -> tuple[str, str]:
        """The same for the same thing seen again."""
        return self.kind, self.text[:2_000].strip()


def seen(events: Iterable[Event | Line]) -> list[Item]:
    """Every item of a segment, each time that it occurs; once at the end: to-dos, as the list stood then, and names and
    numbers, which count only where they recur.

    Lines of evidence do not tell how a call ended: from them come only what was said, and the files that were named.
    """
    reader = _Reader()
    found = [item for event in events for item in reader.take(event)]
    return [*found, *reader.at_the_end()]


class _Reader:
    """Goes through the events once."""

    def __init__(self) -> None:
        self._calls: dict[str, Event] = {}
        self._base = ""
        self._numbers: Counter[str] = Counter()
        self._names: Counter[str] = Counter()
        self._todos: dict[str, int] = {}
        self._first: dict[str, int] = {}

    def take(self, event: Event | Line) -> Iterator[Item]:
        """The items of one event."""
        line = event.line if isinstance(event, Line) else event.start.line + 1
        if isinstance(event, Event) and event.cwd and not self._base:
            self._base = event.cwd.rstrip("/") + "/"
        if event.kind in ("user", "assistant"):
            self._count(event.text, line)
            self._tell(self._names, _NAME.findall(event.text), line)
            yield from _said(event.kind, event.text, line)
        elif event.kind == "note":
            self._count(event.text, line)
            self._tell(self._names, _NAME.findall(event.text), line)
            yield from _noted(event, line)
        elif event.kind == "call":
            self._count(event.text, line)
            if isinstance(event, Event):
                self._calls[event.call_id] = event
            elif not is_shell(event.tool):
                yield from self._paths(event.tool, {"path": event.text.partition("\n")[0]}, event.text, line)
        elif event.kind == "result" and isinstance(event, Event):
            yield from self._answered(event, line)

    def at_the_end(self) -> Iterator[Item]:
        """The to-dos, and the numbers and names that stand in two events or more: the most frequent ones."""
        for text, line in self._todos.items():
            yield Item("to-dos", text, line)
        for kind, counted, most in (("numbers", self._numbers, MOST_NUMBERS), ("names", self._names, MOST_NAMES)):
            often = sorted((-count, word) for word, count in counted.items() if count > 1)
            for _, word in often[:most]:
                yield Item(kind, word, self._first[word])

    def _count(self, text: str, line: int) -> None:
        words = (found.strip(".:/-#") for found in _NUMBER.findall(text[:_LONGEST_READ]))
        numbers = [word for word in words if 3 <= len(word) <= 60 and sum(map(str.isdigit, word)) >= 3]
        self._tell(self._numbers, numbers, line)

    def _tell(self, counted: Counter[str], words: Iterable[str], line: int) -> None:
        for word in set(words):
            counted[word] += 1
            self._first.setdefault(word, line)

    def _answered(self, result: Event, line: int) -> Iterator[Item]:
        call = self._calls.pop(result.call_id, None)
        if result.refused or call is None:
            return
        called = call.start.line + 1
        if result.failed and result.text.strip():
            yield Item("errors", result.text[:_LONGEST_READ], line)
        command = command_text(call.input) if is_shell(call.tool) else ""
        if command:
            yield Item("failed commands" if result.failed else "commands", command, called)
            tested = _TESTED.findall(result.text[-_TAIL:])
            if tested:
                yield Item("tests", "\n".join(tested), line)
            if "git" in command:
                for commit in _COMMITTED.findall(result.text):
                    yield Item("commits", commit, line)
        elif not result.failed:
            yield from self._paths(call.tool, call.input, call.text, called)
            self._listed(call.tool, call.input, called)

    def _listed(self, tool: str, arguments: Mapping[str, Any], line: int) -> None:
        """Follow the to-do list: calls that write it whole, and calls that add to it."""
        for value in arguments.values():
            if isinstance(value, list) and any(isinstance(entry, Mapping) and "status" in entry for entry in value):
                self._todos = {text: line for entry in value if (text := _todo(entry))}
                return
        if _ADDING.search(tool) and (text := _todo(arguments)):
            self._todos[text] = line

    def _paths(self, tool: str, arguments: Mapping[str, Any], text: str, line: int) -> Iterator[Item]:
        if _LOOKING.search(tool):
            return
        named = [value for key, value in arguments.items() if isinstance(value, str) and _PATH_KEY.search(key)]
        named += _PATCHED.findall(text) if "*** Begin Patch" in text else []
        for path in named:
            if path.strip() and "\n" not in path and len(path) < 400:
                yield Item("paths", path.strip().removeprefix(self._base or "\0"), line)


def _noted(event: Event | Line, line: int) -> Iterator[Item]:
    """What a note says, and what stands in its fields: nothing of its prose is a decision."""
    yield Item("statements", event.text.replace("**", ""), line)
    if isinstance(event, Line):
        return
    decision, facts = event.input.get("decision"), event.input.get("facts")
    if isinstance(decision, Mapping) and isinstance(text := decision.get("decision"), str) and text.strip():
        yield Item("decisions", text.strip(), line)
    paths = facts.get("paths") if isinstance(facts, Mapping) else None
    for entry in paths if isinstance(paths, list) else ():
        path = entry.get("path") if isinstance(entry, Mapping) else None
        if isinstance(path, str) and path.strip() and "\n" not in path and len(path) < 400:
            yield Item("paths", path.strip(), line)


def _said(who: str, text: str, line: int) -> Iterator[Item]:
    if not text.strip():
        return
    yield Item("requests" if who == "user" else "statements", text, line)
    cue = _RULING if who == "user" else _CHOICE
    if cue.search(text):
        for sentence in _SENTENCE.split(text[:_LONGEST_READ]):
            if _SHORTEST <= len(sentence) <= _LONGEST and "?" not in sentence and cue.search(sentence):
                yield Item("decisions", sentence.strip(), line)


def _todo(entry: object) -> str:
    """The words of an entry of a to-do list."""
    if not isinstance(entry, Mapping):
        return ""
    return next((entry[key].strip() for key in _TODO_KEYS if isinstance(entry.get(key), str)), "")
