"""Takes from a transcript's events, mechanically and in their own words, what was done: the facts of a route."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ralf import command
from ralf.extraction import commands, filetools, noted, outcomes, pasted, recurring
from ralf.extraction.combining import LONG_PASSED, again, same_command
from ralf.extraction.todos import TodoList
from ralf.extraction.troubles import NAMED, Troubles
from ralf.model import (
    ActiveWork,
    CommandFact,
    CommitFact,
    Decision,
    ErrorFact,
    Facts,
    OpenFile,
    PathFact,
    RequestFact,
    RunningTask,
    TestFact,
)
from ralf.runs.outcomes import promised
from ralf.text import one_line
from ralf.transcripts.events import Event
from ralf.trim import trimmed, without_middle

_LONG_FAILED, _FAILED_KEPT = 600, (320, 100)  # characters; the head and the tail that are kept of a longer one
_PASSED_KEPT = (90, 40)
_LONG_REQUEST, _REQUEST_HEAD, _REQUEST_TAIL = 1200, 900, 250
_OWN_WORDS, _OWN_HEAD, _OWN_TAIL = 6000, 4500, 1400  # of a request without what was pasted into it
_OPEN_FILES = 10
_RUNNING = 10  # tasks of the background
_STOPS = ("killshell", "killbash", "taskstop")
_OUTPUT_KEPT = (700, 300)  # characters of the output that the agent had just seen
_SUBSTANTIAL = 25  # characters from which a request says something by itself


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a stretch of events came to.

    facts    of these events only, oldest first, each once
    work     the work before, with its mechanical parts renewed: to-dos, open files, last request, steps
    pending  calls that had no result yet; to be given to the next call
    decisions  those that stand in fields of notes, oldest first, without labels
    """

    facts: Facts
    work: ActiveWork
    pending: tuple[Event, ...]
    decisions: tuple[Decision, ...] = ()


def extract(
    events: Iterable[Event],
    *,
    base: str = "",
    work: ActiveWork = ActiveWork(),  # noqa: B008  an immutable value
    pending: Sequence[Event] = (),
    unsolved: Sequence[ErrorFact] = (),
    session: str = "",
    origin: str = "",
) -> Extracted:
    """Take the facts out of events; paths under `base`, the project directory, are written relative to it.

    `pending` are the calls that the stretch before left without a result, `unsolved` the errors known before that
    nothing has fixed yet: when their command passes now, they come back with `fixed_by`. The decisions of notes are of
    this `session` and `origin`.
    """
    reader = _Reader(base, work, pending, unsolved)
    events = tuple(events)
    for event in events:
        reader.take(event)
    found = reader.result()
    names = recurring.ranked(events, [fact.path for fact in found.facts.paths])
    decisions = noted.decisions(events, session, origin)
    return replace(found, facts=replace(found.facts, names=names), decisions=decisions)


def _command_fact(text: str, result: Event) -> CommandFact:
    """A command as it is kept: one that failed at length, one that passed in brief."""
    if result.failed:
        kept, omitted = without_middle(text, *_FAILED_KEPT) if len(text) > _LONG_FAILED else (text, 0)
        return CommandFact(kept, "failed", result.exit_status, 1, 1, result.timestamp, omitted)
    kept, omitted = without_middle(text, *_PASSED_KEPT) if len(text) > LONG_PASSED else (text, 0)
    return CommandFact(kept, omitted=omitted)


def _request_kept(text: str) -> tuple[str, int]:
    """A request as it is kept, and how many characters of it are left out: a long one loses what was pasted into it but
    the beginning, and of a person's own words at most the middle of very many.
    """
    if len(text) <= _LONG_REQUEST:
        return text, 0
    own = pasted.shortened(text)
    kept = without_middle(own, _OWN_HEAD, _OWN_TAIL)[0] if len(own) > _OWN_WORDS else own
    return kept, max(0, len(text) - len(kept))


class _Reader:
    """Collects facts event by event; every collection keeps its newest entry at its end."""

    def __init__(self, base: str, work: ActiveWork, pending: Sequence[Event], unsolved: Sequence[ErrorFact]) -> None:
        self.base = base.rstrip("/\\") if len(base) > 1 else base
        self.work = work
        self.calls = {call.call_id: call for call in pending}
        self.paths: dict[str, PathFact] = {}
        self.commands: dict[tuple[str, str, int], CommandFact] = {}
        self.commits: dict[str, CommitFact] = {}
        self.tests: dict[str, TestFact] = {}
        self.requests: dict[tuple[str, int], RequestFact] = {}
        self.todos = TodoList(work)
        self.open = {file.path: file for file in work.open_files}
        self.asked = ""  # the last request, with the short answers that followed it
        self.unanswered = work.last_output
        self.outcome = work.outcome
        self.running = {task.id: task for task in work.running}
        self.troubles = Troubles(unsolved)

    def take(self, event: Event) -> None:
        if event.kind == "assistant":
            self._stated(event.text)
        elif event.kind == "user":
            self.unanswered = ""
            self._request(event.text, event.timestamp)
        elif event.kind == "call":
            self.calls[event.call_id] = event
        elif event.task and event.kind == "other":
            self.running.pop(event.task, None)
        elif event.kind == "result":
            call = self.calls.pop(event.call_id, None)
            self.unanswered = "" if not event.agent else self.unanswered
            if not event.refused and call is not None:
                self._answered(call, event)
        elif event.kind == "note":
            self._noted(event)

    def result(self) -> Extracted:
        facts = Facts(
            paths=tuple(self.paths.values()),
            commands=tuple(self.commands.values()),
            errors=tuple(self.troubles.errors.values()),
            commits=tuple(self.commits.values()),
            tests=tuple(self.tests.values()),
            requests=tuple(self.requests.values()),
        )
        work = self.todos.renew(self.work)
        work = replace(
            work,
            open_files=tuple(self.open.values())[-_OPEN_FILES:],
            last_request=self._last_request(),
            last_output=self.unanswered,
            outcome=self.outcome,
            running=tuple(self.running.values())[-_RUNNING:],
        )
        return Extracted(facts, work, tuple(self.calls.values()))

    # ---- what people said ----

    def _stated(self, text: str) -> None:
        self.todos.said(text)
        if text.strip():
            self.unanswered = ""
        self.outcome = promised(text) or self.outcome

    def _request(self, text: str, time: str) -> None:
        text = text.strip()
        if not text or command.is_all(text):
            return
        kept, cut = _request_kept(text)
        self.requests.pop((kept, cut), None)
        self.requests[kept, cut] = RequestFact(kept, omitted=cut)
        if len(text) >= _SUBSTANTIAL or not (self.asked or self.work.last_request):
            self.asked = kept
        else:
            before = (self.asked or self.work.last_request).split("\n")
            self.asked = "\n".join([*before, *text.split("\n")])

    def _last_request(self) -> str:
        text = self.asked or self.work.last_request
        return without_middle(text, _REQUEST_HEAD, _REQUEST_TAIL)[0] if len(text) > _LONG_REQUEST + 200 else text

    def _noted(self, event: Event) -> None:
        """What stands in fields of a note."""
        self.work = noted.work(event, self.work)
        self.todos = TodoList(self.work)
        self.outcome = self.work.outcome
        told = noted.facts(event)
        for path in told.paths:
            name = self._relative(path.path, "")
            old = self.paths.pop(name, PathFact())
            did = filetools.in_order((*old.did, *(path.did or ("edited",))))
            self.paths[name] = PathFact(name, did, path.last or event.timestamp)
        self.commits.update((fact.commit, fact) for fact in told.commits)
        self.tests.update((fact.command, fact) for fact in told.tests)
        self.requests.update(((fact.request, fact.omitted), fact) for fact in told.requests)
        self.commands.update((same_command(fact), fact) for fact in told.commands)
        self.troubles.errors.update(((fact.error, fact.command), fact) for fact in told.errors)

    # ---- what was done ----

    def _answered(self, call: Event, result: Event) -> None:
        name = call.tool or result.tool
        if not result.agent:  # a sub-agent's list is its own
            self.todos.take(call, result)
        self._background(name, call, result)
        text = commands.command_text(call.input) if commands.is_shell(name) else ""
        if not self.todos.is_mine(name) and not result.agent and result.text.strip():
            asked = text or filetools.named_in(call.input) or one_line(call.text)
            output = without_middle(result.text.strip(), *_OUTPUT_KEPT)[0]
            self.unanswered = f"{name}: {trimmed(one_line(asked), NAMED)}\n{output}"
        if text:
            self._command(text, call, result)
        else:
            self._file(name, call, result)

    def _background(self, tool: str, call: Event, result: Event) -> None:
        """Which tasks go on in the background, and which were stopped."""
        if result.task and not result.agent:
            told = commands.command_text(call.input) or str(call.input.get("description") or call.tool)
            self.running[result.task] = RunningTask(result.task, trimmed(one_line(told), NAMED), result.timestamp)
        elif tool.lower().replace("_", "") in _STOPS and not result.failed:
            for key in ("shell_id", "task_id", "bash_id"):
                self.running.pop(str(call.input.get(key)), None)

    def _file(self, tool: str, call: Event, result: Event) -> None:
        did = filetools.did_by(tool, call.input)
        if result.failed:
            if not did and result.text.strip() and not self.todos.is_mine(tool):
                self.troubles.failed(outcomes.error_line(result.text), tool, result.timestamp)
            return
        for name, done in (*commands.patched(call.text), *filetools.changed(call.input)):
            self._touched(self._relative(name, call.cwd), done, result.timestamp)
        named = filetools.named_in(call.input)
        if did and named:
            done = "created" if result.created and did == "edited" else did
            self._touched(self._relative(named, call.cwd), done, result.timestamp)
        for name in filetools.shown_by(tool, result.text):
            self._touched(self._relative(name, call.cwd), "read", result.timestamp)

    def _command(self, text: str, call: Event, result: Event) -> None:
        time = result.timestamp
        new = _command_fact(text, result)
        old = self.commands.pop(same_command(new), None)
        self.commands[same_command(new)] = again(old, new) if old else new
        for commit, message in outcomes.commits(text, result.text):
            self.commits.pop(commit, None)
            self.commits[commit] = CommitFact(commit, message, time)
        said = outcomes.test_result(text, result.text)
        if said:
            named = trimmed(text, NAMED)
            self.tests.pop(named, None)
            self.tests[named] = TestFact(named, said, time)
        if result.failed:
            self.troubles.failed(outcomes.error_line(result.text), trimmed(text, NAMED), time)
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
        if said and outcomes.says_failed(said):  # a pipe swallowed the exit status
            self.troubles.failed(outcomes.error_line(result.text), trimmed(text, NAMED), time)
        else:
            self.troubles.passed(text, time)

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
        self.paths[path] = PathFact(path, filetools.in_order(((*old.did, did)) if old else (did,)), time)
        if did == "read":
            return
        self.open.pop(path, None)
        if did != "deleted":
            self.open[path] = OpenFile(path, time)
        self.troubles.changed(path)
