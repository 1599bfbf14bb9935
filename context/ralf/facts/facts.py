"""Reads a transcript's events and notes mechanically, and extracts what was done, in its own words: a route's facts."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from ralf import config
from ralf.facts import commands, pasted
from ralf.facts.errors import NAMED, Troubles, error_line, put_last, says_failed, test_result
from ralf.facts.git import Git, commits
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
from ralf.text.cleaning import clean, one_line, trimmed, without_middle
from ralf.text.patterns import regex
from ralf.text.sentences import promised
from ralf.transcripts.events import Event
from ralf.transcripts.typed import outside_tags

# ---- facts ----

_LONG_FAILED, _FAILED_KEPT = 600, (320, 100)  # characters; the head and the tail that are kept of a longer one

_PASSED_KEPT = (90, 40)

_LONG_REQUEST, _REQUEST_HEAD, _REQUEST_TAIL = 1200, 900, 250

_OWN_WORDS, _OWN_HEAD, _OWN_TAIL = 6000, 4500, 1400  # of a request without what was pasted into it

_OPEN_FILES = 8

_RUNNING = 10  # tasks of the background

_STOPS = ("killshell", "killbash", "taskstop")

_OUTPUT_KEPT = (500, 400)  # characters of the output that the agent had just seen

_OUTPUT_LINE = 300  # characters of one line of it


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


def _seen(tool: str, command: str, call: Event, result: Event) -> str:
    """What a call was, and what it printed: of an edit its first new line, of a file that was read its name alone, for
    the next agent can read it, too.
    """
    asked = f"{tool}: {trimmed(one_line(command or commands.named_in(call.input) or call.text), NAMED)}"
    did = "" if command or result.failed else commands.did_by(tool, call.input)
    if did:
        line = commands.first_change(call.input)
        return f"{asked}\n{trimmed(line, 2 * NAMED)}" if line else asked
    return f"{asked}\n{_ends(outside_tags(result.text))}".rstrip()


def _ends(output: str) -> str:
    """The first and the last lines of an output, and how many lie between them."""
    if len(output) <= sum(_OUTPUT_KEPT):
        return output
    lines = [trimmed(line, _OUTPUT_LINE) for line in output.splitlines() if line.strip()]
    first = sum(size <= _OUTPUT_KEPT[0] for size in accumulate(map(len, lines)))
    last = min(len(lines) - first, sum(size <= _OUTPUT_KEPT[1] for size in accumulate(map(len, reversed(lines)))))
    between = len(lines) - first - last
    return (
        "\n".join([*lines[:first], f"[{between} lines left out]", *lines[len(lines) - last :]]) if between else output
    )


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
        self.git = Git(work.git)

    def take(self, event: Event) -> None:
        if event.branch and not event.agent:
            self.git.stands_on(clean(one_line(event.branch)))
        if event.kind == "assistant":
            self._stated(event.text)
        elif event.kind == "user":
            self.unanswered = ""
            self._request(event.text, event.timestamp)
        elif event.kind == "call":
            self.calls[event.call_id] = event
        elif event.kind == "other":
            if event.task:
                self.running.pop(event.task, None)
            if event.tool:  # the client tells its own list
                self.todos.take(event, event)
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
            git=self.git.tree,
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
        put_last(self.requests, (kept, cut), RequestFact(kept, omitted=cut))
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
            self.unanswered = _seen(name, text, call, result)
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
        if not result.failed:
            self.git.ran(text, result.text, lambda path: self._relative(path, call.cwd))
        for commit, message in commits(text, result.text):
            put_last(self.commits, commit, CommitFact(commit, message, time))
        said, named = test_result(text, result.text), trimmed(text, NAMED)
        if said:
            self.git.tested()
            put_last(self.tests, named, TestFact(named, said, time))
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
        self.git.changed(path)
        self.open.pop(path, None)
        if did != "deleted":
            self.open[path] = OpenFile(path, time)
        self.troubles.changed(path)


# ---- notes ----

_TEXT, _REASON, _OPTION = 600, 1_000, 300  # characters of a decision, its reason, an option: the file is capped

_MOST_OPTIONS = 12

_DIGEST = regex(r"[0-9a-f]{64}\Z")

_KINDS = ("decision", "rule", "failed-approach")

_DECISION_STATUSES = ("active", "superseded", "reversed", "done", "dropped")

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
