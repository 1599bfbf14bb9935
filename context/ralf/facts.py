"""Takes from a transcript's events, mechanically and in their own words, what was done: the facts of a route."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ralf import commands, outcomes
from ralf.model import (
    ActiveWork,
    CommandFact,
    CommitFact,
    ErrorFact,
    Facts,
    OpenFile,
    PathFact,
    RequestFact,
    TestFact,
)
from ralf.todos import TodoList
from ralf.transcripts.events import Event
from ralf.trim import trimmed, without_middle

_DONE = ("created", "edited", "deleted", "read")
_PATH_KEYS = ("file_path", "notebook_path", "absolute_path", "filePath", "filepath", "target_file", "path")
_LONG_FAILED, _FAILED_KEPT = 600, (320, 100)  # characters; the head and the tail that are kept of a longer one
_LONG_PASSED, _PASSED_KEPT = 180, (120, 40)
_LONG_REQUEST, _REQUEST_HEAD, _REQUEST_TAIL = 1200, 900, 250
_LONG_ERROR = 300
_NAMED = 120  # characters of a command that name it beside an error or a test result
_OPEN_FILES = 10
_SUBSTANTIAL = 25  # characters from which a request says something by itself
_SPOKEN = re.compile(r"the user said:\s*\n?", re.I)

_Fact = TypeVar("_Fact", PathFact, CommandFact, ErrorFact, CommitFact, TestFact, RequestFact)


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a stretch of events came to.

    facts    of these events only, oldest first, each once
    work     the work before, with its mechanical parts renewed: to-dos, open files, last request, steps
    pending  calls that had no result yet; to be given to the next call
    """

    facts: Facts
    work: ActiveWork
    pending: tuple[Event, ...]


def extract(
    events: Iterable[Event],
    *,
    base: str = "",
    work: ActiveWork = ActiveWork(),  # noqa: B008  an immutable value
    pending: Sequence[Event] = (),
    unsolved: Sequence[ErrorFact] = (),
) -> Extracted:
    """Take the facts out of events; paths under `base`, the project directory, are written relative to it.

    `pending` are the calls that the stretch before left without a result, `unsolved` the errors known before that
    nothing has fixed yet: when their command passes now, they come back with `fixed_by`.
    """
    reader = _Reader(base, work, pending, unsolved)
    for event in events:
        reader.take(event)
    return reader.result()


def combine(before: Facts, new: Facts) -> Facts:
    """A route's facts with those of a newer stretch: each once, what came last at the end."""
    return replace(
        before,
        paths=_joined(before.paths, new.paths, lambda f: f.path, lambda a, b: replace(b, did=_in_order(a.did + b.did))),
        commands=_joined(before.commands, new.commands, _same_command, _again),
        errors=_joined(before.errors, new.errors, lambda f: (f.error, f.command)),
        commits=_joined(before.commits, new.commits, lambda f: f.commit),
        tests=_joined(before.tests, new.tests, lambda f: f.command),
        requests=_joined(before.requests, new.requests, lambda f: (f.request, f.omitted)),
        extra={**before.extra, **new.extra},
    )


def said_in_refusal(event: Event) -> str:
    """What a person said when declining a tool call, "" where nothing: it stands in the refused call's result."""
    if event.kind != "result" or not event.refused:
        return ""
    match = _SPOKEN.search(event.text)
    return event.text[match.end() :].strip() if match else ""


def changes_file(call: Event) -> bool:
    """Whether a tool call writes, creates or deletes the file that its input names."""
    return call.kind == "call" and _tool_did(call.tool, call.input) in ("edited", "created", "deleted")


def _joined(
    before: Sequence[_Fact],
    new: Sequence[_Fact],
    key: Callable[[_Fact], object],
    merge: Callable[[_Fact, _Fact], _Fact] = lambda _, b: b,
) -> tuple[_Fact, ...]:
    found = {key(fact): fact for fact in before}
    for fact in new:
        old = found.pop(key(fact), None)
        merged = fact if old is None else merge(old, fact)
        if old is not None and old.extra:
            merged = replace(merged, extra={**old.extra, **merged.extra})
        found[key(fact)] = merged
    return tuple(found.values())


def _same_command(fact: CommandFact) -> tuple[str, str, int]:
    """What tells a command from others, also when one of two is kept longer than the other."""
    if not fact.omitted and len(fact.command) <= _LONG_PASSED:
        return fact.command, "", 0
    length = len(fact.command) + (fact.omitted - len(" … ") if fact.omitted else 0)
    return fact.command[:70], fact.command[-20:], length


def _again(old: CommandFact, new: CommandFact) -> CommandFact:
    longer = old if old.failures and len(old.command) > len(new.command) else new
    return replace(
        new,
        command=longer.command,
        omitted=longer.omitted,
        runs=old.runs + new.runs,
        failures=old.failures + new.failures,
        last=new.last or old.last,
    )


def _command_fact(text: str, result: Event) -> CommandFact:
    """A command as it is kept: one that failed at length, one that passed in brief."""
    if result.failed:
        kept, omitted = without_middle(text, *_FAILED_KEPT) if len(text) > _LONG_FAILED else (text, 0)
        return CommandFact(kept, "failed", result.exit_status, 1, 1, result.timestamp, omitted)
    kept, omitted = without_middle(text, *_PASSED_KEPT) if len(text) > _LONG_PASSED else (text, 0)
    return CommandFact(kept, omitted=omitted)


def _in_order(did: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for word in _DONE if word in did)


def _tool_did(tool: str, arguments: Any) -> str:
    """What a tool of this name does to the file that its arguments name; "" if it is no file tool."""
    name = tool.lower().rpartition("__")[2].replace("_", "").replace("-", "").replace(".", "")
    if "strreplace" in name or "texteditor" in name:
        return {"view": "read", "create": "created"}.get(str(arguments.get("command", "")), "edited")
    if (
        any(word in name for word in ("grep", "glob", "search", "list", "find", "issue", "comment"))
        and "replace" not in name
    ):
        return ""
    for word, did in _VERBS:
        if word in name:
            return did
    return ""


_VERBS = (
    ("delete", "deleted"),
    ("remove", "deleted"),
    ("edit", "edited"),
    ("replace", "edited"),
    ("insert", "edited"),
    ("append", "edited"),
    ("patch", "edited"),
    ("diff", "edited"),
    ("write", "edited"),
    ("createfile", "created"),
    ("read", "read"),
    ("view", "read"),
    ("openfile", "read"),
)


class _Reader:
    """Collects facts event by event; every collection keeps its newest entry at its end."""

    def __init__(self, base: str, work: ActiveWork, pending: Sequence[Event], unsolved: Sequence[ErrorFact]) -> None:
        self.base = base.rstrip("/\\") if len(base) > 1 else base
        self.work = work
        self.calls = {call.call_id: call for call in pending}
        self.paths: dict[str, PathFact] = {}
        self.commands: dict[tuple[str, str, int], CommandFact] = {}
        self.errors: dict[tuple[str, str], ErrorFact] = {}
        self.commits: dict[str, CommitFact] = {}
        self.tests: dict[str, TestFact] = {}
        self.requests: dict[tuple[str, int], RequestFact] = {}
        self.todos = TodoList(work)
        self.open = {file.path: file for file in work.open_files}
        self.asked = ""  # the last request, with the short answers that followed it
        self.last_command = ""
        # Commands that failed, and the paths changed and the command passed since; `None` until the first change.
        self.failing: dict[str, list[ErrorFact]] = {}
        self.since: dict[str, tuple[dict[str, None], list[str]]] = {}
        for error in unsolved:
            if not error.fixed_by:
                self._unsolved(error)

    def take(self, event: Event) -> None:
        if event.kind == "user":
            self._request(event.text, event.timestamp)
        elif event.kind == "call":
            self.calls[event.call_id] = event
        elif event.kind == "result":
            call = self.calls.pop(event.call_id, None)
            if event.refused:
                self._request(said_in_refusal(event), event.timestamp)
            elif call is not None:
                self._answered(call, event)

    def result(self) -> Extracted:
        facts = Facts(
            paths=tuple(self.paths.values()),
            commands=tuple(self.commands.values()),
            errors=tuple(self.errors.values()),
            commits=tuple(self.commits.values()),
            tests=tuple(self.tests.values()),
            requests=tuple(self.requests.values()),
        )
        work = self.todos.renew(self.work)
        work = replace(work, open_files=tuple(self.open.values())[-_OPEN_FILES:], last_request=self._last_request())
        return Extracted(facts, work, tuple(self.calls.values()))

    # ---- what people said ----

    def _request(self, text: str, time: str) -> None:
        text = text.strip()
        if not text:
            return
        kept, cut = without_middle(text, _REQUEST_HEAD, _REQUEST_TAIL) if len(text) > _LONG_REQUEST else (text, 0)
        self.requests.pop((kept, cut), None)
        self.requests[kept, cut] = RequestFact(kept, time, cut)
        if len(text) >= _SUBSTANTIAL or not (self.asked or self.work.last_request):
            self.asked = kept
        else:
            before = (self.asked or self.work.last_request).split("\n")
            self.asked = "\n".join([*before, *text.split("\n")])

    def _last_request(self) -> str:
        text = self.asked or self.work.last_request
        return without_middle(text, _REQUEST_HEAD, _REQUEST_TAIL)[0] if len(text) > _LONG_REQUEST + 200 else text

    # ---- what was done ----

    def _answered(self, call: Event, result: Event) -> None:
        self.todos.take(call, result)
        name = call.tool or result.tool
        text = commands.command_text(call.input) if commands.is_shell(name) else ""
        if text:
            self._command(text, call, result)
        else:
            self._file(name, call, result)

    def _file(self, tool: str, call: Event, result: Event) -> None:
        did = _tool_did(tool, call.input)
        if result.failed:
            if not did and result.text.strip() and not self.todos.is_mine(tool):
                self._failed(outcomes.error_line(result.text), tool, result.timestamp)
            return
        for name, done in commands.patched(call.text):
            self._touched(self._relative(name, call.cwd), done, result.timestamp)
        named = next((call.input[key] for key in _PATH_KEYS if isinstance(call.input.get(key), str)), "")
        if did and named:
            done = "created" if result.created and did == "edited" else did
            self._touched(self._relative(named, call.cwd), done, result.timestamp)

    def _command(self, text: str, call: Event, result: Event) -> None:
        time = result.timestamp
        new = _command_fact(text, result)
        old = self.commands.pop(_same_command(new), None)
        self.commands[_same_command(new)] = _again(old, new) if old else new
        for commit, message in outcomes.commits(text, result.text):
            self.commits.pop(commit, None)
            self.commits[commit] = CommitFact(commit, message, time)
        said = outcomes.test_result(text, result.text)
        if said:
            named = trimmed(text, _NAMED)
            self.tests.pop(named, None)
            self.tests[named] = TestFact(named, said, time)
        if result.failed:
            self._failed(outcomes.error_line(result.text), trimmed(text, _NAMED), time)
            return
        for name, done in commands.patched(text):
            self._touched(self._relative(name, call.cwd), done, time)
        for folder, name, done in commands.touched(text):
            cwd = posixpath.normpath(posixpath.join(call.cwd, folder)) if folder else call.cwd
            path = self._relative(name, cwd)
            # A joined path that nothing has named before may stand nowhere in the source: only certain ones count.
            at_home = folder == "" and cwd in ("", self.base)
            if "?" not in folder and (path in self.paths or name.startswith(("/", "~")) or at_home):
                self._touched(path, done, time)
        self._passed(text, time)

    def _relative(self, path: str, cwd: str) -> str:
        path = path.strip()
        if not path.startswith(("/", "~", "\\")) and path[1:2] != ":":
            joined = posixpath.normpath(posixpath.join(cwd, path)) if cwd else posixpath.normpath(path)
            path = joined
        for separator in ("/", "\\"):
            if self.base and path.startswith(self.base + separator):
                return path[len(self.base) + 1 :]
        return path

    def _touched(self, path: str, did: str, time: str) -> None:
        old = self.paths.pop(path, None)
        self.paths[path] = PathFact(path, _in_order(((*old.did, did)) if old else (did,)), time)
        if did == "read":
            return
        self.open.pop(path, None)
        if did != "deleted":
            self.open[path] = OpenFile(path, time)
        for changed, _ in self.since.values():
            changed.pop(path, None)
            changed[path] = None

    # ---- errors, and what made them go away ----

    def _unsolved(self, error: ErrorFact) -> None:
        self.failing.setdefault(_same(error.command), []).append(error)
        self.since.setdefault(_same(error.command), ({}, []))

    def _failed(self, line: str, command: str, time: str) -> None:
        if not line:
            return
        line = trimmed(line, _LONG_ERROR)
        error = ErrorFact(line, command, "", time)
        self.errors.pop((line, command), None)
        self.errors[line, command] = error
        same = _same(command)
        known = [e for e in self.failing.get(same, ()) if (e.error, e.command) != (line, command)]
        self.failing[same] = [*known, error]
        self.since[same] = ({}, [])

    def _passed(self, command: str, time: str) -> None:
        same, named = _same(command), _same(trimmed(command, _NAMED))
        for failing in [name for name in self.failing if name == named or same.startswith(name + " && ")]:
            changed, ran = self.since.pop(failing)
            for error in self.failing.pop(failing):
                fixed = replace(error, fixed_by=_fix(list(changed), ran), last=time)
                self.errors.pop((error.error, error.command), None)
                self.errors[error.error, error.command] = fixed
        for _, ran in self.since.values():
            ran.append(command)


def _same(command: str) -> str:
    """One form for commands that differ only in spaces and in where their errors are sent."""
    return " ".join(command.replace(" 2>&1", "").split())


def _fix(changed: list[str], ran: list[str]) -> str:
    if changed:
        return "edited " + ", ".join(changed[-5:])
    for command in reversed(ran):
        if not re.match(r"(?:ls|cat|grep|rg|head|tail|find|echo|pwd|git (?:status|log|diff|show|branch))\b", command):
            return "ran " + trimmed(command.split("\n")[0], 160)
    return "passed when run again"
