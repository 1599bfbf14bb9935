"""A route's facts: files, commands, errors, commits, tests and requests, by the entries of its sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ralf import config
from ralf.facts import noted
from ralf.facts.checks import is_test, most_telling, says_failed, test_result
from ralf.facts.commands import did_by
from ralf.facts.progress import KEYS, Collected
from ralf.facts.repository import Repository
from ralf.facts.state import simple_parts
from ralf.model import CommandFact, CommitFact, ErrorFact, Facts, PathFact, RequestFact, TestFact
from ralf.model.entries import Entry, Message, Step
from ralf.text.cleaning import one_line, trimmed, without_middle
from ralf.transcripts.events import Event

NAMED = 120
"""Characters of a command that name it beside an error or a test result."""

_LONGEST_COMMAND, _COMMAND_KEPT = 300, (200, 80)  # characters; the head and the tail that are kept of a longer one

_LONGEST_REQUEST, _REQUEST_KEPT = 4_000, (2_600, 1_380)  # characters

_PASSED_LATER = "the same command passed later"


def facts_of(
    entries: Iterable[Entry], unsolved: Iterable[ErrorFact] = (), notes: Iterable[Event] = (), base: str = ""
) -> Facts:
    """The facts of some entries, of which none was taken back: oldest first, each once.

    unsolved  errors known before that nothing has fixed yet: where their command passes, they come back with `fixed_by`
    notes     those of documents, whose fields hold facts; `base`: the project's folder
    """
    made, unsolved = Collected(), tuple(unsolved)
    for entry in entries:
        for kind, fact in _shown_by(entry):
            made.add(kind, fact)
        if isinstance(entry, Step) and entry.kind == "command" and entry.has_passed and not entry.status:
            ran = simple_parts(entry.object)
            for error in (*unsolved, *made.all("errors")):
                if not error.fixed_by and simple_parts(error.command)[-1] in ran:
                    made.add("errors", replace(error, fixed_by=_PASSED_LATER, last=entry.at))
    relative = Repository(base).relative
    for told in map(noted.facts, notes):
        paths = tuple(PathFact(relative(path.path, ""), path.did or ("edited",)) for path in told.paths)
        for kind in KEYS:
            for fact in paths if kind == "paths" else getattr(told, kind):
                made.add(kind, fact)
    return Facts(**{kind: made.all(kind) for kind in KEYS})


def _shown_by(entry: Entry) -> Iterator[tuple[str, Any]]:
    """The facts that an entry shows, each with its kind."""
    if isinstance(entry, Message):
        if entry.form not in ("ran", "unsent") and entry.text and not config.is_all(entry.text):
            kept, _ = _within(entry.text, _LONGEST_REQUEST, _REQUEST_KEPT)
            yield "requests", RequestFact(kept, "", len(entry.text) - len(kept), kind=entry.form, line=entry.line)
    elif isinstance(entry, Step) and entry.outcome not in ("", "refused", "running"):
        is_read = entry.kind == "look" and entry.outcome == "ok" and did_by(entry.tool, {}) == "read"
        for path, did in entry.files or (((entry.object, "read"),) if is_read else ()):
            yield "paths", PathFact(path, (did,), entry.at)
        for fact in entry.git:
            if fact.kind in ("commit", "amended", "applied") and fact.value:
                yield "commits", CommitFact(fact.value, fact.subject, entry.at)
        if entry.kind == "command":
            yield from _ran(entry)


def _ran(step: Step) -> Iterator[tuple[str, Any]]:
    """What a command shows."""
    named = trimmed(step.object, NAMED)
    kept, omitted = _within(step.object, _LONGEST_COMMAND, _COMMAND_KEPT)
    has_failed = step.has_failed or bool(step.status)  # so did what left a merge in progress
    if has_failed:
        yield "commands", CommandFact(kept, "failed", step.status or None, 1, 1, step.at, omitted)
        error = next(iter(most_telling(step.lines, 1)), "") or f"exit {step.status}"
        yield "errors", ErrorFact(error, named, last=step.at)
    else:
        yield "commands", CommandFact(kept, omitted=omitted)
    if said := _tested(step, has_failed=has_failed):
        yield "tests", TestFact(named, said, step.at)


def _within(text: str, most: int, ends: tuple[int, int]) -> tuple[str, int]:
    """A text of at most so many characters, else its head and its tail; and how many are left out."""
    return without_middle(text, *ends) if len(text) > most else (text, 0)


def _tested(step: Step, *, has_failed: bool) -> str:
    """What a test run came to, in the runner's words where it has some; "" for what runs no tests."""
    if not any(map(is_test, step.checks)):
        return ""
    said = test_result("\n".join(step.lines)) or one_line(next(iter(step.lines), ""))
    return f"FAILED: {said}" if has_failed and not says_failed(said) else said
