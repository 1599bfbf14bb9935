"""Carries a route's work and facts from one segment to the next: attempts, joined facts, to-dos and steps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ralf.format.codec import from_tree, to_tree
from ralf.model import (
    ActiveWork,
    Attempt,
    Checkpoint,
    CommandFact,
    CommitFact,
    ErrorFact,
    Facts,
    PathFact,
    RequestFact,
    Step,
    TestFact,
    Todo,
)
from ralf.text.patterns import regex
from ralf.transcripts.events import Event

if TYPE_CHECKING:
    from ralf.redact.redactor import Redactor

# ---- attempts ----

UNSAID = "ended without a word"
"""What is said of a run that left nothing: begun, and killed or given up."""

SUBSTANTIAL = 25
"""Characters from which a request says something by itself."""

MOST_RUNS = 5
"""Runs whose end a route tells: the newest."""

_SUCCESS = "COMPLETE"


def count_attempt(
    work: ActiveWork, session: str, history: Sequence[Checkpoint], known: Facts, new: Facts
) -> ActiveWork:
    """The work with its attempts after one more stretch.

    session  that of the stretch; one that is not in `history`, the checkpoints before, begins a new attempt
    known    the route's facts before the stretch, `new` those of the stretch
    """
    another = bool(history and session) and all(entry.session != session for entry in history)
    attempt = (1 if work.attempts is None else work.attempts) + another
    progress = attempt if has_progressed(known, new) else work.last_progress
    return replace(work, attempts=attempt if attempt > 1 else work.attempts or None, last_progress=progress)


def with_documents(work: ActiveWork, history: Sequence[Checkpoint]) -> ActiveWork:
    """The work after documents were taken in that are of no run: nobody has tried anything by that."""
    return replace(work, attempts=0) if work.attempts is None and not history and not work.last_runs else work


def with_run(
    work: ActiveWork, tree: Mapping[str, Any], history: Sequence[Checkpoint], known: Facts, new: Facts
) -> ActiveWork:
    """The work after a record that tells of a run: a tree as `tree_of` has it.

    A run counts once, however many records are of it; what a later one says of its end takes the place of what was
    known. `history`, `known` and `new` are as for `count_attempt`.
    """
    run = from_tree(Attempt, {key: value for key, value in tree.items() if key not in ("again", "digest")})
    before = int(bool(history or work.last_runs)) if work.attempts is None else work.attempts
    known_run = next((one for one in reversed(work.last_runs) if one.run == run.run), Attempt())
    attempts = before if tree.get("again") else before + 1
    number = known_run.number if tree.get("again") else attempts
    run = replace(
        run,
        outcome=run.outcome or known_run.outcome,
        timestamp=run.timestamp or known_run.timestamp,
        said=run.said or known_run.said,
    )
    runs = tuple(one for one in work.last_runs if one.run != run.run)
    if number is not None:  # else one of long ago, which is told no more
        runs = tuple(sorted((*runs, replace(run, number=number)), key=lambda one: one.number or 0))[-MOST_RUNS:]
    moved = has_progressed(known, new) or run.outcome == _SUCCESS
    progress = max(work.last_progress or 0, number) if moved and number is not None else work.last_progress
    outcome = run.outcome if number == attempts else work.outcome
    return replace(work, attempts=attempts, last_progress=progress, outcome=outcome, last_runs=runs)


def run_tree(run: Attempt, redactor: Redactor) -> dict[str, Any]:
    """A run as a record holds it; there with `again`, where the route has a record of it already.

    `digest` tells whether a later reading says the same: what was forgotten of it is not to come back. Under a key that
    is forgotten there is none.
    """
    tree = to_tree(replace(run, number=None))
    told = {} if redactor.problem else {"digest": redactor.digest(json.dumps(tree, sort_keys=True))}
    return {**redactor.tree(tree), **told}


def is_newest(work: ActiveWork, run: Attempt) -> bool:
    """Whether no later run is known: only then is what one says of the work still so."""
    return not run.timestamp or all(one.timestamp <= run.timestamp for one in work.last_runs if one.run != run.run)


def has_progressed(known: Facts, new: Facts) -> bool:
    """Whether a stretch changed a file, made a commit, or saw a test's result that was not known."""
    results = {(test.command, test.result) for test in known.tests}
    return (
        any(set(path.did) - {"read"} for path in new.paths)
        or bool(new.commits)
        or any((test.command, test.result) not in results for test in new.tests)
    )


def idle_attempts(work: ActiveWork) -> int:
    """How many attempts there have been since one last got anywhere."""
    return (work.attempts or 0) - (work.last_progress or 0)


def describe_attempts(work: ActiveWork) -> str:
    """One line for a route that has come back: "attempt 14; last outcome PARTIAL; nothing changed since attempt 9"."""
    parts = [f"attempt {work.attempts}"] if work.attempts else []
    if work.outcome:
        parts.append(f"last outcome {work.outcome}")
    if work.attempts is not None and work.last_progress is not None and work.last_progress < work.attempts:
        parts.append(f"nothing changed since attempt {work.last_progress}")
    elif work.attempts is not None and work.attempts > 1 and work.last_progress is None and work.last_runs:
        parts.append("nothing has changed in any")
    return "; ".join(parts)


def describe_run(run: Attempt, *, ours: bool = False) -> str:
    """One line on a run: "attempt 4 (runs/executor/run-0018): PARTIAL: the tests of the loader still fail".

    ours  it is the one in which we are
    """
    if ours and not run.outcome:
        return f"attempt {run.number} ({run.run}): this one"
    number = f"attempt {run.number} " if run.number is not None else ""
    return ": ".join(filter(None, (f"{number}({run.run})", run.outcome or ("" if run.said else UNSAID), run.said)))


def idle_warning(work: ActiveWork, most: int) -> str:
    """What an agent is told that is about to try once more after `most` attempts that changed nothing; else ""."""
    count = idle_attempts(work)
    if work.attempts is None or work.attempts < 2 or count < most:
        return ""
    return f"{count} attempts have changed nothing: find out why before trying the same again, or say BLOCKED and stop"


# ---- facts ----

LONG_PASSED = 140
"""Characters from which a command that passed is kept in brief."""

_PASSED = 5  # commands that passed and never failed which a route keeps

_TESTS = 5  # newest test results that a route keeps

_Fact = TypeVar("_Fact", PathFact, CommandFact, ErrorFact, CommitFact, TestFact, RequestFact)


def combine(before: Facts, new: Facts) -> Facts:
    """A route's facts with those of a newer stretch: each once, what came last at the end.

    A command that only looked around counts once it has failed: it is what not to try again. When
    something came last is left to the journal: the order tells enough.
    """
    from ralf.facts.commands import in_order, join_names, only_looks  # a reader whose snapshot is new joins nothing

    ran = {same_command(command) for command in before.commands}
    telling = [c for c in new.commands if c.failures or same_command(c) in ran or not only_looks(c.command)]
    return replace(
        before,
        paths=_joined(before.paths, new.paths, lambda f: f.path, lambda a, b: replace(b, did=in_order(a.did + b.did))),
        commands=_newest_passed(_joined(before.commands, telling, same_command, again)),
        errors=_joined(before.errors, new.errors, lambda f: (f.error, f.command)),
        commits=_joined(before.commits, new.commits, lambda f: f.commit),
        tests=_joined(before.tests, new.tests, lambda f: f.command)[-_TESTS:],
        requests=_joined(before.requests, new.requests, lambda f: (f.request, f.omitted)),
        names=join_names(before.names, new.names),
        extra={**before.extra, **new.extra},
    )


def _joined(
    before: Sequence[_Fact],
    new: Sequence[_Fact],
    key: Callable[[_Fact], object],
    merge: Callable[[_Fact, _Fact], _Fact] = lambda _, b: b,
) -> tuple[_Fact, ...]:
    found = {key(fact): fact for fact in before}
    for fact in new:
        old = found.pop(key(fact), None)
        fact = replace(fact, last="")
        merged = fact if old is None else merge(old, fact)
        if old is not None and old.extra:
            merged = replace(merged, extra={**old.extra, **merged.extra})
        found[key(fact)] = merged
    return tuple(found.values())


def _newest_passed(commands: Sequence[CommandFact]) -> tuple[CommandFact, ...]:
    passed = [command for command in commands if not command.failures]
    gone = set(map(id, passed[:-_PASSED]))
    return tuple(command for command in commands if id(command) not in gone)


def same_command(fact: CommandFact) -> tuple[str, str, int]:
    """What tells a command from others, also when one of two is kept longer than the other."""
    if not fact.omitted and len(fact.command) <= LONG_PASSED:
        return fact.command, "", 0
    length = len(fact.command) + (fact.omitted - len(" … ") if fact.omitted else 0)
    return fact.command[:70], fact.command[-20:], length


def again(old: CommandFact, new: CommandFact) -> CommandFact:
    """One fact of a command that ran before and again."""
    longer = old if old.failures and len(old.command) > len(new.command) else new
    return replace(
        new,
        command=longer.command,
        omitted=longer.omitted,
        runs=old.runs + new.runs,
        failures=old.failures + new.failures,
    )


# ---- to-dos and steps ----

_MOST = 1_000  # to-dos that are followed: each single change goes through all of them

_WHOLE = frozenset({"todowrite", "updateplan", "todolist", "writetodos"})

_TASK = frozenset({"taskcreate", "taskupdate", "tasklist"})

_NUMBER = regex(r"#(\w+)")

_LISTED = regex(r"(?m)^#(\w+)[.:]? \[(\w+)\] (.+)$")

_BLOCKED = " [blocked by "

_PLACE = regex(
    r"(?m)^(?:[#*]|[^\S\n])*+(?:now )?step #?(\d{1,3}) ?(?:of|/) ?(\d{1,3})\b"
    r"(?:[*]{0,2} ?[:.\u2013\u2014-] {1,2}([^\n]{0,160}))?",
    re.IGNORECASE,
)  # within one line: a run of blank lines is not gone through again from each of them

_ENDED = regex(
    r"(?m)^(?:[#*>-]|[^\S\n])*+(?:(?P<tick>[\u2705\u2714\u2611\u2713]\ufe0f?)[^\S\n]{0,3}[*]{0,2})?"
    r"(?P<verb>(?:finished|completed|done with) )?step #?(?P<step>\d{1,3})(?: ?(?:of|/) ?\d{1,3})?[*]{0,2}"
    r"(?P<end> (?:is |are )?(?:now )?(?:done|complete|completed|finished)\b)?[*]{0,2}"
    r"(?:[^\S\n]{0,2}[:.,\u2013\u2014(-][^\S\n]{0,2}(?P<told>[^\n]{0,160}))?",
    re.IGNORECASE,
)

_STATUSES = {
    "pending": "pending",
    "open": "pending",
    "todo": "pending",
    "in_progress": "in_progress",
    "in-progress": "in_progress",
    "active": "in_progress",
    "completed": "completed",
    "complete": "completed",
    "done": "completed",
}


def _flat(tool: str) -> str:
    return tool.lower().replace("_", "")  # a tool of an MCP server keeps the server's name, and is none of the client's


class TodoList:
    """The to-dos of a session, whole lists and single changes alike."""

    def __init__(self, work: ActiveWork) -> None:
        self.todos = list(work.todos)
        self.changed = False
        self._place: tuple[int, int] | None = None
        self._steps: dict[int, str] = {}  # what is said of each step
        self._done = {step.step: step for step in work.completed_steps if step.step is not None}

    @staticmethod
    def is_mine(tool: str) -> bool:
        """Whether a tool of this name changes or shows the client's own to-do list."""
        return _flat(tool) in _WHOLE | _TASK

    def take(self, call: Event, result: Event) -> None:
        """Follow one answered call."""
        name = "" if result.failed else _flat(call.tool)
        lists = [call.input[key] for key in ("todos", "plan", "items") if isinstance(call.input.get(key), list)]
        if name in _WHOLE and lists:
            self._set(_todos(lists[0]))
        elif name == "taskcreate":
            number = _NUMBER.search(result.text)
            subject = str(call.input.get("subject") or call.input.get("description") or "").strip()
            if subject:
                self._put(Todo(subject, "pending", number[1] if number else ""))
        elif name == "taskupdate":
            self._update(call.input)
        elif name == "tasklist":
            listed = _LISTED.finditer(result.text)
            known = {todo.id: todo.content for todo in self.todos}
            self._set(
                [_todo(_as_known(_without_blockers(m[3]), known.get(m[1])), m[2], m[1]) for m in listed] or self.todos
            )

    def said(self, text: str) -> None:
        """Follow what the agent says of its place in a plan, at the beginning of a line: "Step 7 of 10: pack",
        "Step 7 is done". A step of a plan that is gone on from is done, too, where it was named.
        """
        for match in _PLACE.finditer(text):
            step, total = int(match[1]), int(match[2])
            if 0 <= step <= total:
                self._place = step, total
                for before in [number for number in self._steps if number < step]:
                    self._end(before, "")
                self._steps[step] = (match[3] or "").strip(" *")
        for match in _ENDED.finditer(text):
            if match["end"] or match["verb"] or match["tick"]:
                self._end(int(match["step"]), (match["told"] or "").strip(" *)"))

    def _end(self, number: int, told: str) -> None:
        """Note that a step is done; what was said of it before is what it was, `told` what came of it."""
        named = self._steps.pop(number, "")
        old = self._done.get(number, Step(number))
        description = old.description or named or told or f"step {number}"
        self._done[number] = Step(number, description, old.result or (told if told != description else ""))

    def renew(self, work: ActiveWork) -> ActiveWork:
        """The work with its to-dos, and with the steps that the list tells, if the list was touched."""
        if not self.changed and not self.todos:
            unnumbered = (step for step in work.completed_steps if step.step is None)
            done = (*unnumbered, *(self._done[number] for number in sorted(self._done)))
            place = self._place or (work.plan_step, work.total_steps)
            return replace(work, plan_step=place[0], total_steps=place[1], completed_steps=done)
        if not self.changed:
            return work
        done = tuple(
            Step(number, todo.content, _result(work, todo.content))
            for number, todo in enumerate(self.todos, 1)
            if todo.status == "completed"
        )
        states, total = [todo.status for todo in self.todos], len(self.todos) or None
        current = next((states.index(state) + 1 for state in ("in_progress", "pending") if state in states), total)
        return replace(
            work,
            todos=tuple(self.todos),
            plan_step=current,
            total_steps=total,
            completed_steps=done,
        )

    def _set(self, todos: Sequence[Todo]) -> None:
        self.todos = list(todos)[-_MOST:]
        self.changed = True

    def _put(self, todo: Todo) -> None:
        if not any(todo.id and old.id == todo.id and old.content == todo.content for old in self.todos):
            done = self.todos and all(old.status == "completed" for old in self.todos) and todo.id == "1"
            self._set([todo] if done else [*self.todos, todo])

    def _update(self, arguments: Mapping[str, Any]) -> None:
        number = str(arguments.get("taskId") or arguments.get("task_id") or arguments.get("id") or "").lstrip("#")
        status = str(arguments.get("status") or "").lower()
        subject = str(arguments.get("subject") or "").strip()
        gone = status in ("deleted", "cancelled", "canceled")
        changed = (
            replace(todo, status=_STATUSES.get(status, todo.status), content=subject or todo.content)
            if todo.id == number
            else todo
            for todo in self.todos
            if todo.id != number or not gone
        )
        self._set([*changed])


def _todo(content: str, status: object = None, number: object = None) -> Todo:
    return Todo(content.strip(), _STATUSES.get(str(status or "").lower(), "pending"), str(number or ""))


def _todos(listed: Sequence[Any]) -> list[Todo]:
    items = [{"content": item} if isinstance(item, str) else item for item in listed]
    todos = [_todo(_content(item), item.get("status"), item.get("id")) for item in items if isinstance(item, Mapping)]
    return [todo for todo in todos if todo.content]


def _content(item: Mapping[str, Any]) -> str:
    keys = ("content", "step", "subject", "title", "text")
    return next((item[key] for key in keys if isinstance(item.get(key), str)), "")


def _as_known(content: str, known: str | None) -> str:
    """What a line of a list says, without the owner at its end, as far as it is known what it said before."""
    return known if known and content.startswith(f"{known} (") and content.endswith(")") else content


def _without_blockers(content: str) -> str:
    """What a line of a list says, without the tasks at its end that it waits for."""
    place = content.find(_BLOCKED, content.rfind("]", 0, -1) + 1)
    return content[:place] if place > 0 and content.endswith("]") else content


def _result(work: ActiveWork, content: str) -> str:
    return next((step.result for step in work.completed_steps if step.description == content), "")
