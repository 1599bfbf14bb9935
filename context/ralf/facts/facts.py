"""A route's facts: files, commands, errors, commits, tests and requests, by the entries of its sessions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ralf import config
from ralf.facts import noted
from ralf.facts.checks import is_test, most_telling
from ralf.facts.commands import did_by, in_order
from ralf.facts.errors import NAMED, put_last, test_result
from ralf.facts.progress import KEYS, LONG_PASSED, again, same_command
from ralf.facts.repository import Repository
from ralf.facts.state import simple_parts
from ralf.model import CommandFact, CommitFact, ErrorFact, Facts, PathFact, RequestFact, TestFact
from ralf.model.entries import Entry, Message, Step
from ralf.text.cleaning import one_line, trimmed, without_middle
from ralf.transcripts.events import Event

_LONG_FAILED, _FAILED_KEPT = 600, (320, 100)  # characters; the head and the tail that are kept of a longer one

_PASSED_KEPT = (90, 40)

_LONGEST_REQUEST, _REQUEST_KEPT = 4_000, (2_600, 1_380)  # characters

_FAILED = ("failed", "failed by output")

_PASSED_LATER = "the same command passed later"


def facts_of(entries: Iterable[Entry], unsolved: Iterable[ErrorFact] = ()) -> Facts:
    """The facts of some entries, of which none was taken back: oldest first, each once.

    unsolved  errors known before that nothing has fixed yet: where their command passes, they come back with `fixed_by`
    """
    reader = _Reader(unsolved)
    for entry in entries:
        if isinstance(entry, Message):
            reader.asked(entry)
        elif isinstance(entry, Step) and entry.outcome not in ("", "refused", "running"):
            reader.done(entry)
    return reader.facts


def with_notes(facts: Facts, events: Iterable[Event], base: str) -> Facts:
    """Facts with those in the fields of a document's notes; `base`: the project's folder."""
    told = [noted.facts(event) for event in events if event.kind == "note"]
    relative = Repository(base.rstrip("/\\") if len(base) > 1 else base).relative
    paths = {fact.path: fact for fact in facts.paths}
    for path in (path for one in told for path in one.paths):
        name = relative(path.path, "")
        old = paths.pop(name, PathFact())
        paths[name] = PathFact(name, in_order((*old.did, *(path.did or ("edited",)))), path.last)
    others: dict[str, Any] = {
        kind: (*getattr(facts, kind), *(fact for one in told for fact in getattr(one, kind)))
        for kind in ("commands", "errors", "commits", "tests", "requests")
    }
    return replace(facts, paths=tuple(paths.values()), **others)


def taken_back(before: Facts, after: Facts) -> Facts:
    """Those facts of one record that another one has no longer."""
    gone: dict[str, Any] = {}
    for kind, key in KEYS.items():
        left = set(map(key, getattr(after, kind)))
        gone[kind] = tuple(fact for fact in getattr(before, kind) if key(fact) not in left)
    return Facts(**gone)


class _Reader:
    """Collects facts entry by entry; every collection keeps its newest entry at its end."""

    def __init__(self, unsolved: Iterable[ErrorFact]) -> None:
        self._paths: dict[str, PathFact] = {}
        self._commands: dict[tuple[str, str, int], CommandFact] = {}
        self._errors: dict[tuple[str, str], ErrorFact] = {}
        self._commits: dict[str, CommitFact] = {}
        self._tests: dict[str, TestFact] = {}
        self._requests: dict[tuple[str, int], RequestFact] = {}
        self._unsolved = list(unsolved)

    @property
    def facts(self) -> Facts:
        return Facts(
            paths=tuple(self._paths.values()),
            commands=tuple(self._commands.values()),
            errors=tuple(self._errors.values()),
            commits=tuple(self._commits.values()),
            tests=tuple(self._tests.values()),
            requests=tuple(self._requests.values()),
        )

    def asked(self, message: Message) -> None:
        """Take what a person sent."""
        text = message.text
        if message.form in ("ran", "unsent") or not text or config.is_all(text):
            return
        kept = without_middle(text, *_REQUEST_KEPT)[0] if len(text) > _LONGEST_REQUEST else text
        cut = len(text) - len(kept)
        put_last(self._requests, (kept, cut), RequestFact(kept, "", cut, kind=message.form, line=message.line))

    def done(self, step: Step) -> None:
        """Take what a call came to."""
        is_read = step.kind == "look" and step.outcome == "ok" and did_by(step.tool, {}) == "read"
        for path, did in step.files or (((step.object, "read"),) if is_read else ()):
            old = self._paths.pop(path, PathFact())
            self._paths[path] = PathFact(path, in_order((*old.did, did)), step.at)
        for fact in step.git:
            if fact.kind in ("commit", "amended", "applied") and fact.value:
                put_last(self._commits, fact.value, CommitFact(fact.value, fact.subject, step.at))
        if step.kind == "command":
            self._ran(step)

    def _ran(self, step: Step) -> None:
        has_failed = step.outcome in _FAILED or bool(
            step.status
        )  # a merge with conflicts is in progress: it failed, too
        named = trimmed(step.object, NAMED)
        new = _command(step, has_failed=has_failed)
        old = self._commands.pop(same_command(new), None)
        self._commands[same_command(new)] = again(old, new) if old else new
        if said := _tested(step, has_failed=has_failed):
            put_last(self._tests, named, TestFact(named, said, step.at))
        if has_failed:
            error = next(iter(most_telling(step.lines, 1)), "") or f"exit {step.status}"
            put_last(self._errors, (error, named), ErrorFact(error, named, last=step.at))
        elif step.outcome != "not shown":
            self._passed(step)

    def _passed(self, step: Step) -> None:
        """Say of the errors of a command that it passed later."""
        ran = simple_parts(step.object)
        for error in (*self._unsolved, *self._errors.values()):
            if not error.fixed_by and simple_parts(error.command)[-1] in ran:
                key = error.error, error.command
                put_last(self._errors, key, replace(error, fixed_by=_PASSED_LATER, last=step.at))


def _command(step: Step, *, has_failed: bool) -> CommandFact:
    """A command as it is kept: one that failed at length, one that passed in brief."""
    text = step.object
    most, ends = (_LONG_FAILED, _FAILED_KEPT) if has_failed else (LONG_PASSED, _PASSED_KEPT)
    kept, omitted = without_middle(text, *ends) if len(text) > most else (text, 0)
    if has_failed:
        return CommandFact(kept, "failed", step.status or None, 1, 1, step.at, omitted)
    return CommandFact(kept, omitted=omitted)


def _tested(step: Step, *, has_failed: bool) -> str:
    """What a test run came to, in the runner's words where it has some; "" for what runs no tests."""
    if not step.checks:
        return ""
    said = test_result(step.object, "\n".join(step.lines))
    if said or not any(map(is_test, step.checks)):
        return said
    line = one_line(next(iter(step.lines), ""))
    return f"FAILED{f': {line}' if line else ''}" if has_failed else line
