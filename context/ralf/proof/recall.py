"""What a segment holds, item by item, and which items a checkpoint's words give back."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from ralf.facts.commands import command_text, is_shell
from ralf.format.codec import to_tree
from ralf.model import ActiveWork, Body, Facts, HandOver, RouteContext, Since
from ralf.text.cleaning import one_line
from ralf.text.frozen import dataclass
from ralf.text.matcher import stands_whole
from ralf.text.patterns import regex
from ralf.transcripts.events import Event, EvidenceLine, blocks, object_in

# ---- what a segment holds ----


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

_PATH_KEY = regex(r"(?i)(?:^|_)(?:file|path|notebook)|path$")

_LOOKING = regex(r"(?i)grep|glob|search|list|find|\bls\b")  # tools that name a path, but touch no file

_PATCHED = regex(r"(?m)^\*\*\* (?:Add|Update|Delete) File: ([^\n]+)$")

_CHOICE = regex(
    r"\b(?:decided (?:to|on|against|that)|instead of|rather than|going with|(?:we|i)(?:'ll| will) (?:use|keep|go with)"
    r"|chose|switch(?:ed|ing)? (?:to|from)|opted for)\b",
    re.I,
)

_RULING = regex(r"\b(?:always|never|from now on|must not|instead of|rather than|do not|don't)\b", re.I)

_SENTENCE = regex(r"(?<=[.!?:;])\s+|\n+")

_SHORTEST, _LONGEST = 30, 600  # characters of a sentence that can be a decision

_NUMBER = regex(r"(?<![\w.#:/-])[A-Za-z_.#:/-]*+\d[\w.#:/-]*")

_NAME = regex(r"`([^`\s]{3,60})`")

_TESTED = regex(r"\b\d+ (?:passed|failed|passing|failing)\b|^test result: \w+|^(?:ok  |FAIL)\t\S+", re.M)

_TAIL = 4_000  # characters at the end of a command's output in which a test run says what it came to

_COMMITTED = regex(r"(?m)^\[[^\[\]\n]{1,200} ([0-9a-f]{7,40})\] ")

_ADDING = regex(r"(?i)(?:task|todo)_?(?:create|add)")

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


def seen(events: Iterable[Event | EvidenceLine]) -> list[Item]:
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

    def take(self, event: Event | EvidenceLine) -> Iterator[Item]:
        """The items of one event."""
        line = event.line if isinstance(event, EvidenceLine) else event.start.line + 1
        if isinstance(event, Event) and event.cwd and not self._base:
            self._base = event.cwd.rstrip("/") + "/"
        if event.kind in ("user", "assistant", "note", "call"):
            self._count(event.text, line)
        if event.kind in ("user", "assistant", "note"):
            self._tally(self._names, _NAME.findall(event.text), line)
            yield from (_note_items if event.kind == "note" else _message_items)(event, line)
        elif event.kind == "call":
            if isinstance(event, Event):
                self._calls[event.call_id] = event
            elif not is_shell(event.tool):
                yield from self._path_items(event.tool, {"path": event.text.partition("\n")[0]}, event.text, line)
        elif event.kind == "result" and isinstance(event, Event):
            yield from self._result_items(event, line)

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
        self._tally(self._numbers, numbers, line)

    def _tally(self, counted: Counter[str], words: Iterable[str], line: int) -> None:
        for word in set(words):
            counted[word] += 1
            self._first.setdefault(word, line)

    def _result_items(self, result: Event, line: int) -> Iterator[Item]:
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
            yield from self._path_items(call.tool, call.input, call.text, called)
            self._follow_todos(call.tool, call.input, called)

    def _follow_todos(self, tool: str, arguments: Mapping[str, Any], line: int) -> None:
        """Follow the to-do list: calls that write it whole, and calls that add to it."""
        for value in arguments.values():
            if isinstance(value, list) and any(isinstance(entry, Mapping) and "status" in entry for entry in value):
                self._todos = {text: line for entry in value if (text := _todo_text(entry))}
                return
        if _ADDING.search(tool) and (text := _todo_text(arguments)):
            self._todos[text] = line

    def _path_items(self, tool: str, arguments: Mapping[str, Any], text: str, line: int) -> Iterator[Item]:
        if _LOOKING.search(tool):
            return
        named = [value for key, value in arguments.items() if isinstance(value, str) and _PATH_KEY.search(key)]
        named += _PATCHED.findall(text) if "*** Begin Patch" in text else []
        for path in named:
            if path.strip() and "\n" not in path and len(path) < 400:
                yield Item("paths", path.strip().removeprefix(self._base or "\0"), line)


def _note_items(event: Event | EvidenceLine, line: int) -> Iterator[Item]:
    """What a note says, and what stands in its fields: nothing of its prose is a decision."""
    yield Item("statements", event.text.replace("**", ""), line)
    if isinstance(event, EvidenceLine):
        return
    decision = object_in(event.input, "decision").get("decision")
    if isinstance(decision, str) and decision.strip():
        yield Item("decisions", decision.strip(), line)
    for entry in blocks(object_in(event.input, "facts").get("paths")):
        path = entry.get("path")
        if isinstance(path, str) and path.strip() and "\n" not in path and len(path) < 400:
            yield Item("paths", path.strip(), line)


def _message_items(event: Event | EvidenceLine, line: int) -> Iterator[Item]:
    text = event.text
    if not text.strip():
        return
    kind, cue = ("requests", _RULING) if event.kind == "user" else ("statements", _CHOICE)
    yield Item(kind, text, line)
    if cue.search(text):
        for sentence in _SENTENCE.split(text[:_LONGEST_READ]):
            if _SHORTEST <= len(sentence) <= _LONGEST and "?" not in sentence and cue.search(sentence):
                yield Item("decisions", sentence.strip(), line)


def _todo_text(entry: object) -> str:
    """The words of an entry of a to-do list."""
    if not isinstance(entry, Mapping):
        return ""
    return next((entry[key].strip() for key in _TODO_KEYS if isinstance(entry.get(key), str)), "")


# ---- what a checkpoint gives back ----
# The probes are read from the events (`ralf.proof.recall`), never from what was extracted of them: a fault of the
# extractor shows as a low recall.


PROBED = ("requests", "decisions", "to-dos", "paths", "failed commands", "numbers")
"""The kinds by which a checkpoint is judged: what the next agent asks for, and rules can tell for certain."""

FLOORS: Mapping[str, float] = {"decisions": 0.75, "to-dos": 0.9, "numbers": 0.75, "names": 0.75, "names told": 0.34}
"""Share of what one summary gives back that another must give back, too, to take its place: by kind. Those are the
kinds that a summariser answers for; requests, paths and commands are in the facts, which no summariser writes."""

_PREFIX, _CLAUSE = 60, 40  # characters at the beginning of a text, of a clause, by which it is known again

_SHORTEST_CLAUSE, _SHORTEST_ERROR = 25, 8

_MOST_READ = 20_000  # characters of one statement

_CLAUSES = regex(r"(?<=[.!?:;])\s+|\n+")

_ENDS = ".!?:;"

_WORD = regex(r"\w{4,}|\w*[\d_]\w*")

_EXACT = regex(r"[\d_]")  # a word that may not be paraphrased: a name, a number

_ENOUGH = 0.7  # of the longer words of a decision, in one line: it may have been put in other words


@dataclass(frozen=True, slots=True)
class Recall:
    """How many distinct items were asked for, by kind, how many of them were given back, and which were not."""

    asked: Mapping[str, int]
    found: Mapping[str, int]
    missing: tuple[Item, ...]

    @property
    def share(self) -> float | None:
        """The share that was given back, 0 to 1 with two decimals, never rounded up; None where nothing was asked."""
        asked = sum(self.asked.values())
        return 100 * sum(self.found.values()) // asked / 100 if asked else None


class Words:
    """The words of a checkpoint, one value a line, in which items are looked up."""

    def __init__(self, text: str) -> None:
        self._lines = [one_line(line) for line in text.split("\n")]
        self._flat = " ".join(self._lines)
        self._known: dict[tuple[str, str], bool] = {}

    @classmethod
    def of(cls, *values: object) -> Words:
        """The words of texts, trees and the values of `ralf.model`, in any mixture."""
        return cls("\n".join(texts(values)))

    def give_back(self, item: Item) -> bool:
        """Whether an item can be read off these words.

        Paths, numbers, names, commits: whole, not as part of a longer one. Requests, commands, to-dos: their first 60
        characters. Decisions: those, or in one line most of their words, with all names and numbers. Statements: a
        clause. Errors and tests: a line of the output.
        """
        known = self._known.get(item.key)
        if known is None:
            known = self._known[item.key] = self._look_up(item)
        return known

    def _look_up(self, item: Item) -> bool:
        if item.kind in ("paths", "numbers", "names", "names told", "commits"):
            return stands_whole(item.text, self._flat, strict=True)
        if item.kind == "statements":
            clauses = (one_line(clause) for clause in _CLAUSES.split(item.text[:_MOST_READ]))
            return any(
                len(clause) >= _SHORTEST_CLAUSE and clause[:_CLAUSE].rstrip(_ENDS) in self._flat for clause in clauses
            )
        if item.kind == "errors":
            lines = (one_line(line) for line in item.text.split("\n"))
            return any(len(line) >= _SHORTEST_ERROR and line[:_PREFIX] in self._starts for line in lines)
        if item.kind == "tests":
            return any(one_line(line) in self._flat for line in item.text.split("\n"))
        return beginning(item.text) in self._flat or (item.kind == "decisions" and self._says(item.text))

    def _says(self, text: str) -> bool:
        words = set(_WORD.findall(text.lower()))
        hits = Counter(line for word in words for line in self._index.get(word, ()))
        exact = [self._index.get(word, set()) for word in words if _EXACT.search(word)]
        likely = (line for line, hit in hits.items() if hit >= _ENOUGH * len(words))
        return any(all(line in lines for lines in exact) for line in likely)

    @cached_property
    def _starts(self) -> frozenset[str]:
        return frozenset(line[:_PREFIX] for line in self._lines)

    @cached_property
    def _index(self) -> Mapping[str, set[int]]:
        found: dict[str, set[int]] = defaultdict(set)
        for number, line in enumerate(self._lines):
            for word in _WORD.findall(line.lower()):
                found[word].add(number)
        return found


def measure(
    of: Iterable[Event | EvidenceLine] | Sequence[Item], words: Words | str, *, kinds: Sequence[str] = PROBED
) -> Recall:
    """How much of a segment the words of its checkpoint give back.

    of     the segment: its events, the lines of its evidence (which tell less), or what `items.seen` found in either
    words  what the checkpoint says: `Words.of` its parts, or a text
    kinds  the kinds of items that are asked for
    """
    found = list(of)
    items = found if found and isinstance(found[0], Item) else seen(found)  # type: ignore[arg-type]
    where = Words(words) if isinstance(words, str) else words
    asked: Counter[str] = Counter()
    given: Counter[str] = Counter()
    missing = []
    for item in {item.key: item for item in items if isinstance(item, Item) and item.kind in kinds}.values():
        asked[item.kind] += 1
        if where.give_back(item):
            given[item.kind] += 1
        else:
            missing.append(item)
    return Recall(dict(asked), dict(given), tuple(missing))


def beginning(text: str) -> str:
    """The beginning of a text, by which it is known again."""
    return one_line(text[: 4 * _PREFIX])[:_PREFIX]


def refuse(before: Recall, after: Recall) -> str:
    """Why a summary must not take the place of another, "" where it may.

    before, after  what the present one and the new one give back of the same items
    """
    for kind, floor in FLOORS.items():
        had, has = before.found.get(kind, 0), after.found.get(kind, 0)
        if has < floor * had:
            return f"gives back {has} of the {had} {kind} that the embedded summary gives back"
    return ""


def texts(values: Iterable[object], *, numbers: bool = False) -> Iterator[str]:
    """The texts in a mixture of texts, trees and the values of `ralf.model`; its numbers, too, if they are wanted."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from texts(value.values(), numbers=numbers)
        elif isinstance(value, (list, tuple)):
            yield from texts(value, numbers=numbers)
        elif hasattr(value, "__dataclass_fields__"):
            yield from texts(to_tree(value).values(), numbers=numbers)
        elif numbers and value is not None:
            yield str(value)


# ---- what a text lacks of a route's context ----


T = TypeVar("T")

_PATHS, _COMMANDS, _REQUESTS = 20, 8, 6
"""How many of each, the newest, a successor has to have."""

_SHORTEST_NAME = 5  # characters of a file's name by which its path is known


def lost(context: RouteContext, text: str) -> RouteContext | None:
    """The context without what the text gives back; None where nothing of weight is missing.

    What counts is what a successor cannot do without: goal, step, active decisions, rules and failed approaches, open
    to-dos and next steps, blockers, findings, the newest changed files, failed commands, unsolved errors, requests. The
    last words and outputs are left out: clients keep the end of a conversation as it is. "" gives nothing back.
    """
    words, facts = Words(text), context.facts
    changed = [path for path in facts.paths if set(path.did) - {"read"}][-_PATHS:]
    failed = [command for command in facts.commands if command.status == "failed"][-_COMMANDS:]
    unsolved = [error for error in facts.errors if not error.fixed_by]
    active = [item for item in context.decisions if item.status == "active"]
    left = replace(
        context,
        goal="".join(_lacking(words, "requests", [context.goal], str)),
        active_work=_work_lacking(context.active_work, text, words),
        decisions=_lacking(words, "decisions", active, lambda item: item.decision),
        facts=Facts(
            paths=_lacking(words, "paths", changed, lambda fact: fact.path),
            commands=_lacking(words, "commands", failed, lambda fact: fact.command),
            errors=_lacking(words, "commands", unsolved, lambda fact: fact.error),
            requests=_lacking(words, "requests", facts.requests[-_REQUESTS:], lambda fact: fact.request),
        ),
        began_as="",
        handover=_handover_lacking(context.handover, words),
        checkpoint_history=(),
        body=Body(),
        since=Since(),
    )
    facts = left.facts
    held = (left.goal, left.handover, left.decisions, facts.paths, facts.commands, facts.errors, facts.requests)
    return left if any(held) or left.active_work != ActiveWork() else None


def _handover_lacking(handover: HandOver | None, words: Words) -> HandOver | None:
    """What the agent itself handed over, where its state is not given back; a client's summary it has itself."""
    if handover is None or handover.author == "compaction":
        return None
    said = handover.state or handover.goal or handover.text
    return None if words.give_back(Item("statements", said, 0)) else handover


def _work_lacking(work: ActiveWork, text: str, words: Words) -> ActiveWork:
    where = ActiveWork()
    if work.plan_step is not None and not re.search(rf"\bsteps?\W{{0,4}}{work.plan_step}\b", text, re.I):
        where = replace(work, last_request="", last_statement="", last_output="", attempts=None, outcome="")
    todos = [todo for todo in work.todos if todo.status != "completed"]
    return replace(
        where,
        completed_steps=_lacking(words, "to-dos", work.completed_steps, lambda step: step.description),
        todos=_lacking(words, "to-dos", todos, lambda todo: todo.content),
        next_steps=_lacking(words, "to-dos", work.next_steps, str),
        blockers=_lacking(words, "to-dos", work.blockers, str),
        findings=_lacking(words, "to-dos", work.findings, str),
        open_files=_lacking(words, "paths", work.open_files, lambda file: file.path),
    )


def _lacking(words: Words, kind: str, items: Sequence[T], text_of: Callable[[T], str]) -> tuple[T, ...]:
    """The items that the words do not give back; an item without a text is none."""
    return tuple(item for item in items if (text := text_of(item)) and not _given_back(words, kind, text))


def _given_back(words: Words, kind: str, text: str) -> bool:
    """Whether the words give an item back; a path also by the name of its file."""
    name = text.rpartition("/")[2] if kind == "paths" else ""
    return words.give_back(Item(kind, text, 0)) or (
        len(name) >= _SHORTEST_NAME and words.give_back(Item(kind, name, 0))
    )
