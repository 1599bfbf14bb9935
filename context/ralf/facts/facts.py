"""Reads a transcript's events and notes mechanically, and extracts what was done, in its own words: a route's facts."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ralf import config
from ralf.facts import commands, pasted
from ralf.facts.progress import LONG_PASSED, SUBSTANTIAL, TodoList, again, same_command
from ralf.format.codec import BadTree, from_tree, to_tree
from ralf.model import (
    SHA256_DIGITS,
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
    Source,
    TestFact,
)
from ralf.text.cleaning import one_line, trimmed, without_middle
from ralf.text.patterns import regex
from ralf.text.sentences import promised
from ralf.transcripts.events import Event

_Key = TypeVar("_Key")

_Value = TypeVar("_Value")

# ---- what commands answered ----

# Plain names of trouble; `_STRONG` are the shapes in which programs report it.
_STRONG = regex(
    r"\b(?:error|fatal|panic|exception|failure)\b\s*+(?:\[\w+\]\s*+)?[:(]|\b\w+(?:Error|Exception)\b\s*(?::|$)"
    r"|^E {2,}\S|^--- FAIL|^CONFLICT\b|^FAILED\b|: (?:command )?not found\b"
    r"|: No such file|: Permission denied"
    r"|^\s*[x✗✘✕] \S|^thread '.{1,200}' panicked",
    re.I,
)

_WEAK = regex(
    r"\b(?:error|fail(?:s|ed|ure|ing)?|fatal|panic(?:ked)?|exception|undefined|cannot|can't"
    r"|could not|couldn't|not found|no such|denied|rejected|conflict|unable|invalid|missing|refused|unknown"
    r"|unexpected|no matches"
    r"|timed out|timeout|killed|expected)\b",
    re.I,
)

_PLACE = regex(r"^\S+:\d+(?::\d+)?:\s+\S")

_AMISS = regex(r"\b(?:want|wanted|got|should|must|needs?|not|never used|unused|deprecated)\b|\(\w+\)$", re.I)

_HARMLESS = regex(
    r"\b(?:0|no) (?:errors?|failures?|failed)\b|\berrors?: 0\b|^\$ |^\[[\w-]+\] \$|^Traceback \(|^exit code:? \d+$"
    r"|^=== (?:RUN|PAUSE|CONT)"
    r"|^(?:Process )?exit(?:ed)?(?: with)? (?:code|status)|^--- PASS|^\s*File \"|\bno test files\b",
    re.I,
)


_MOST_LINES, _LONGEST_LINE = 4_001, 4_000  # lines of an output, and characters of one, that are read


def error_line(output: str) -> str:
    """The first line of a failed command's output that names an error; "" where none does."""
    weak = place = ""
    for line in map(str.strip, output.splitlines()[:_MOST_LINES]):
        if not line or len(line) > _LONGEST_LINE or _HARMLESS.search(line):
            continue
        at_place = _PLACE.match(line)
        if _STRONG.search(line) or (at_place and (_WEAK.search(line) or _AMISS.search(line))):
            return line
        weak = weak or (line if _WEAK.search(line) else "")
        place = place or (line if at_place else "")
    return weak or place


_COMMIT = regex(r"(?m)^\[[^\[\]\n]{1,200} ([0-9a-f]{7,40})\] ([^\n]*)$")

_COMMITS = regex(r"\bgit\b[^\n]{0,200}?\b(?:commit|merge|cherry-pick|revert|am|rebase|pull)\b")


def commits(command: str, output: str) -> list[tuple[str, str]]:
    """(hash, message) of the commits that a command made, as git reported them."""
    made = _COMMIT.finditer(output) if _COMMITS.search(command) else ()
    return [(match[1], match[2].strip()) for match in made]


_TESTING = regex(
    r"test|spec|jest|mocha|cargo|\bgo\b|\bnpm\b|yarn|pnpm|\bbun\b|deno|\bmake\b|mise|\btox\b|nox|gradle|mvn"
    r"|check|\bci\b|python",
    re.I,
)

_READING = regex(r"^\s*(?:cat|grep|rg|git|gh|less|ls|find|echo|curl)\b")

_SUMMARY = regex(
    r"(?<!=)=++ (?=[^=\n]*+(?<= )=+$)"
    r"(?P<pytest>(?=[^=\n]*\b(?:passed|failed|errors?|skipped|no tests ran)\b)[^=\n]* in [\d.:]+[^=\n]*?) =+$"
    r"|^(?P<quiet>\d+ (?:passed|failed|skipped|errors?)\b[^\n]{0,200} in [\d.]+s.*)$"
    r"|^(?P<cargo>test result: .*)$"
    r"|^\s*(?P<jest>Tests:?\s+\d+ (?:passed|failed|skipped|todo|total).*)$"
    r"|^\s*(?P<mocha>\d+ (?:passing|failing)\b.*)$"
    r"|^(?P<unittest>Ran \d+ tests? in .*|FAILED \((?:failures|errors)=.*\)|OK(?: \(skipped=\d+\))?)$"
    r"|^(?P<rspec>\d+ (?:examples?|runs|tests), .*)$"
    r"|^(?P<phpunit>OK \(\d+ tests?, .*\)|Tests: \d+, Assertions: .*)$"
    r"|^(?:\[\w+\] )?(?P<maven>Tests run: .*)$"
    r"|^(?P<gradle>\d+ tests? completed, .*)$"
    r"|^(?P<ctest>\d+% tests passed, .*)$"
    r"|^(?P<dotnet>(?:Passed|Failed)! {1,4}- .*)$"
    r"|^# (?P<node>(?:tests|pass|fail) \d+)$"
    r"|^\s*(?P<bun>\d+ (?:pass|fail))$"
    r"|^(?:ok|FAILED) \| (?P<deno>\d+ passed.*)$"
    r"|^(?P<gofail>--- FAIL: .*|FAIL\t.*)$"
    r"|^(?P<go>ok  \t.*)$",
)

_ALL_LINES = frozenset({"unittest", "mocha", "node", "bun", "gofail"})  # runners whose summary takes several lines


def test_result(command: str, output: str) -> str:
    """What a test run said of itself in its last summary, in its own words; "" where there is none."""
    if not _TESTING.search(command) or _READING.match(command):
        return ""
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        match = _SUMMARY.search(line.rstrip()) if len(line) < 600 else None
        if match is not None and match.lastgroup is not None:
            found.setdefault(match.lastgroup, []).append(one_line(match[match.lastgroup]))
    if not any(line.startswith("Ran") for line in found.get("unittest", ())):
        found.pop("unittest", None)
    if not found:
        return ""
    kind = "gofail" if "gofail" in found else next(reversed(found))
    lines = found[kind]
    if kind == "cargo":
        return next((line for line in lines if "FAILED" in line), lines[-1])
    return "; ".join(list(dict.fromkeys(lines))[-4:] if kind in _ALL_LINES else lines[-1:])


_SAYS_FAILED = regex(r"\b[1-9]\d* (?:failed|failing|failures?|errors?|fail)\b|\bFAIL(?:ED|URES)?\b|# fail [1-9]")


def says_failed(result: str) -> bool:
    """Whether a test result says that a test failed."""
    return _SAYS_FAILED.search(result) is not None


# ---- errors ----

NAMED = 120
"""Characters of a command that name it beside an error or a test result."""

_LONG_ERROR = 300

_FIXES = 3  # files that are named as the fix, the last that were changed


@dataclass(slots=True)
class _Since:
    """The errors of a command that failed, and what was changed and what passed since."""

    errors: list[ErrorFact] = field(default_factory=list)
    changed: dict[str, None] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)


class Troubles:
    """The errors of a stretch; `unsolved` are those known before that nothing has fixed yet."""

    def __init__(self, unsolved: Iterable[ErrorFact]) -> None:
        self.errors: dict[tuple[str, str], ErrorFact] = {}
        self._failing: dict[str, _Since] = {}
        for error in unsolved:
            if not error.fixed_by:
                self._failing.setdefault(_same(error.command), _Since()).errors.append(error)

    def failed(self, line: str, command: str, time: str) -> None:
        """A command or tool failed with this line of error; "" where none was found."""
        if not line:
            return
        line = trimmed(line, _LONG_ERROR)
        error = ErrorFact(line, command, "", time)
        self._put(error)
        before = self._failing.get(_same(command), _Since()).errors
        self._failing[_same(command)] = _Since([e for e in before if (e.error, e.command) != (line, command)] + [error])

    def changed(self, path: str) -> None:
        """A file was changed."""
        for since in self._failing.values():
            _put_last(since.changed, path, None)

    def passed(self, command: str, time: str) -> None:
        """A command passed: the errors of the same command, alone or at its beginning, are fixed."""
        same, named = _same(command), _same(trimmed(command, NAMED))
        for failing in [name for name in self._failing if name == named or same.startswith(name + " && ")]:
            since = self._failing.pop(failing)
            for error in since.errors:
                self._put(replace(error, fixed_by=_fix(since), last=time))
        for since in self._failing.values():
            since.ran.append(command)

    def _put(self, error: ErrorFact) -> None:
        _put_last(self.errors, (error.error, error.command), error)


def _same(command: str) -> str:
    """One form for commands that differ only in spaces and in where their errors are sent."""
    return " ".join(command.replace(" 2>&1", "").split())


_LOOKS = regex(r"(?:ls|cat|grep|rg|head|tail|find|echo|pwd|git (?:status|log|diff|show|branch))\b")


def _fix(since: _Since) -> str:
    if since.changed:
        return "edited " + ", ".join(list(since.changed)[-_FIXES:])
    ran = next((command for command in reversed(since.ran) if not _LOOKS.match(command)), "")
    return "ran " + trimmed(ran.split("\n")[0], 160) if ran else "passed when run again"


def _put_last(found: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Set an entry; it becomes the newest, which stands at the end."""
    found.pop(key, None)
    found[key] = value


# ---- facts ----

_LONG_FAILED, _FAILED_KEPT = 600, (320, 100)  # characters; the head and the tail that are kept of a longer one

_PASSED_KEPT = (90, 40)

_LONG_REQUEST, _REQUEST_HEAD, _REQUEST_TAIL = 1200, 900, 250

_OWN_WORDS, _OWN_HEAD, _OWN_TAIL = 6000, 4500, 1400  # of a request without what was pasted into it

_OPEN_FILES = 10

_RUNNING = 10  # tasks of the background

_STOPS = ("killshell", "killbash", "taskstop")

_OUTPUT_KEPT = (700, 300)  # characters of the output that the agent had just seen


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
    names = commands.rank_names(events, list(reader.paths))
    return reader.result(names, note_decisions(events, session, origin))


def _command_fact(text: str, result: Event) -> CommandFact:
    """A command as it is kept: one that failed at length, one that passed in brief."""
    most, ends = (_LONG_FAILED, _FAILED_KEPT) if result.failed else (LONG_PASSED, _PASSED_KEPT)
    kept, omitted = without_middle(text, *ends) if len(text) > most else (text, 0)
    if result.failed:
        return CommandFact(kept, "failed", result.exit_status, 1, 1, result.timestamp, omitted)
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

    def result(self, names: tuple[str, ...], decisions: tuple[Decision, ...]) -> Extracted:
        facts = Facts(
            paths=tuple(self.paths.values()),
            commands=tuple(self.commands.values()),
            errors=tuple(self.troubles.errors.values()),
            commits=tuple(self.commits.values()),
            tests=tuple(self.tests.values()),
            requests=tuple(self.requests.values()),
            names=names,
        )
        work = replace(
            self.todos.renew(self.work),
            open_files=tuple(self.open.values())[-_OPEN_FILES:],
            last_request=self._last_request(),
            last_output=self.unanswered,
            outcome=self.outcome,
            running=tuple(self.running.values())[-_RUNNING:],
        )
        return Extracted(facts, work, tuple(self.calls.values()), decisions)

    # ---- what people said ----

    def _stated(self, text: str) -> None:
        self.todos.said(text)
        if text.strip():
            self.unanswered = ""
        self.outcome = promised(text) or self.outcome

    def _request(self, text: str, time: str) -> None:
        text = text.strip()
        if not text or config.is_all(text):
            return
        kept, cut = _request_kept(text)
        _put_last(self.requests, (kept, cut), RequestFact(kept, omitted=cut))
        before = self.asked or self.work.last_request
        self.asked = kept if len(text) >= SUBSTANTIAL or not before else f"{before}\n{text}"

    def _last_request(self) -> str:
        text = self.asked or self.work.last_request
        return without_middle(text, _REQUEST_HEAD, _REQUEST_TAIL)[0] if len(text) > _LONG_REQUEST + 200 else text

    def _noted(self, event: Event) -> None:
        """What stands in fields of a note."""
        self.work = note_work(event, self.work)
        self.todos = TodoList(self.work)
        self.outcome = self.work.outcome
        told = note_facts(event)
        for path in told.paths:
            name = self._relative(path.path, "")
            old = self.paths.pop(name, PathFact())
            did = commands.in_order((*old.did, *(path.did or ("edited",))))
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
            asked = text or commands.named_in(call.input) or one_line(call.text)
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
        did = commands.did_by(tool, call.input)
        if result.failed:
            if not did and result.text.strip() and not self.todos.is_mine(tool):
                self.troubles.failed(error_line(result.text), tool, result.timestamp)
            return
        for name, done in (*commands.patched(call.text), *commands.changed(call.input)):
            self._touched(self._relative(name, call.cwd), done, result.timestamp)
        named = commands.named_in(call.input)
        if did and named:
            done = "created" if result.created and did == "edited" else did
            self._touched(self._relative(named, call.cwd), done, result.timestamp)
        for name in commands.shown_by(tool, result.text):
            self._touched(self._relative(name, call.cwd), "read", result.timestamp)

    def _command(self, text: str, call: Event, result: Event) -> None:
        time = result.timestamp
        new = _command_fact(text, result)
        old = self.commands.pop(same_command(new), None)
        self.commands[same_command(new)] = again(old, new) if old else new
        for commit, message in commits(text, result.text):
            _put_last(self.commits, commit, CommitFact(commit, message, time))
        said, named = test_result(text, result.text), trimmed(text, NAMED)
        if said:
            _put_last(self.tests, named, TestFact(named, said, time))
        if result.failed:
            self.troubles.failed(error_line(result.text), named, time)
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
        if said and says_failed(said):  # a pipe swallowed the exit status
            self.troubles.failed(error_line(result.text), named, time)
        else:
            self.troubles.passed(text, time)

    def _relative(self, path: str, cwd: str) -> str:
        path = path.strip()
        if not path.startswith(("/", "~", "\\")) and path[1:2] != ":":
            path = posixpath.normpath(posixpath.join(cwd, path))
        inside = bool(self.base) and path.startswith((f"{self.base}/", f"{self.base}\\"))
        return path[len(self.base) + 1 :] if inside else path

    def _touched(self, path: str, did: str, time: str) -> None:
        old = self.paths.pop(path, None)
        self.paths[path] = PathFact(path, commands.in_order(((*old.did, did)) if old else (did,)), time)
        if did == "read":
            return
        self.open.pop(path, None)
        if did != "deleted":
            self.open[path] = OpenFile(path, time)
        self.troubles.changed(path)


# ---- notes ----

_TEXT, _REASON, _OPTION = 600, 1_000, 300  # characters of a decision, its reason, an option: the file is capped

_MOST_OPTIONS = 12

_DIGEST = regex(r"[0-9a-f]{64}\Z")

_KINDS = ("decision", "rule", "failed-approach")

_DECISION_STATUSES = ("active", "superseded", "reversed", "dropped")

_KINDS_OF_IMPORTS = ("decision", "failed-approach")

_OURS = ("id", "pinned", "supersedes", "superseded_by", "source", "further_sources")

_COUNTED = ("attempts", "last_progress", "last_runs")


def note_decisions(events: Iterable[Event], session: str, origin: str) -> tuple[Decision, ...]:
    """The decisions in the fields of notes, in order, each with the place of its note."""
    return tuple(
        decision
        for event in events
        if event.kind == "note" and (decision := _decision(event, session, origin)) is not None
    )


def note_work(event: Event, known: ActiveWork) -> ActiveWork:
    """The work, with what a note says of it; how often it was tried is not for a note to say."""
    told = {key: value for key, value in _mapping(event, "work").items() if key not in _COUNTED}
    return from_tree(ActiveWork, {**to_tree(known), **_fitting(told, ActiveWork)}) if told else known


def note_facts(event: Event) -> Facts:
    """The facts in the fields of a note."""
    told = _mapping(event, "facts")
    return replace(from_tree(Facts, _fitting(told, Facts)), extra={}) if told else Facts()


def note_place(event: Event) -> dict[str, Any]:
    """The document in which a note stands, and its first line there; {} where it does not say."""
    path, line = event.input.get("path"), event.input.get("line")
    if not isinstance(path, str) or not path:
        return {}
    digest = event.input.get("file_sha256")
    return {
        "path": path,
        **({"line": line} if isinstance(line, int) and line > 0 else {}),
        **({"file_sha256": digest} if isinstance(digest, str) and _DIGEST.match(digest) else {}),
    }


def _decision(event: Event, session: str, origin: str) -> Decision | None:
    told = _mapping(event, "decision")
    if not told:
        return None
    made = from_tree(Decision, _fitting({key: value for key, value in told.items() if key not in _OURS}, Decision))
    if not made.decision.strip():
        return None
    digest = hashlib.sha256(event.text.encode("utf-8", "replace")).hexdigest()[:SHA256_DIGITS]
    extra = {key: value for key, value in made.extra.items() if value not in (None, "", [], {})}
    by = "import" if made.origin == "import" else origin  # no document speaks as the user
    return replace(
        made,
        kind=made.kind if made.kind in (_KINDS if by != "import" else _KINDS_OF_IMPORTS) else "decision",
        status=made.status if made.status in _DECISION_STATUSES else "active",
        timestamp=made.timestamp or event.timestamp,
        decision=trimmed(made.decision.strip(), _TEXT),
        rationale=trimmed(made.rationale.strip(), _REASON),
        alternatives=tuple(trimmed(text, _OPTION) for text in made.alternatives if text.strip())[:_MOST_OPTIONS],
        source=Source(session, event.start.line + 1, event.end.line, digest, note_place(event)),
        origin=by,
        extra=extra,
    )


def _mapping(event: Event, key: str) -> Mapping[str, Any]:
    value = event.input.get(key)
    return value if isinstance(value, Mapping) else {}


def _fitting(tree: Mapping[str, Any], cls: type[ActiveWork | Decision | Facts]) -> dict[str, Any]:
    """What of a tree is of the class; what does not fit is left out, in a list item by item."""
    fitting: dict[str, Any] = {}
    for key, value in tree.items():
        values = value if isinstance(value, list) else [value]
        kept = [one for one in values if _fits(cls, key, [one] if isinstance(value, list) else one)]
        if kept or value == []:
            fitting[key] = kept if isinstance(value, list) else value
    return fitting


def _fits(cls: type[ActiveWork | Decision | Facts], key: str, value: object) -> bool:
    try:
        from_tree(cls, {key: value})
    except BadTree:
        return False
    return True
