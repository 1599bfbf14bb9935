"""Carries a route's work and facts from one segment to the next: attempts and runs, joined facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ralf.document.tree import from_tree, to_tree
from ralf.model import ActiveWork, Attempt, Checkpoint, Facts
from ralf.text.frozen import replace

if TYPE_CHECKING:
    from ralf.redact.redactor import Redactor

# ---- attempts ----

UNSAID = "ended without a word"
"""What is said of a run that left nothing: begun, and killed or given up."""

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
    """Whether a stretch changed a file, made a commit, or saw a test's result that was not known; or may have changed a
    file by a script, whose files are not read.
    """
    results = {(test.command, test.result) for test in known.tests}
    return (
        any(set(path.did) - {"read"} for path in new.paths)
        or bool(new.commits)
        or any("<<" in fact.command and fact.status == "passed" for fact in new.commands)
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

_PASSED = 5  # commands that passed and never failed which a route keeps

_TESTS = 5  # newest test results that a route keeps


KEYS: Mapping[str, Callable[[Any], object]] = {
    "paths": lambda fact: fact.path,
    "commands": lambda fact: (fact.command, fact.omitted),
    "errors": lambda fact: (fact.error, fact.command),
    "commits": lambda fact: fact.commit,
    "tests": lambda fact: fact.command,
    "requests": lambda fact: (fact.request, fact.omitted),
}
"""What tells a fact from others of its kind."""


class Collected:
    """Facts by kind, each once; what came last stands at the end."""

    def __init__(self, before: Facts = Facts()) -> None:  # noqa: B008  an immutable value
        self._found = {kind: {key(fact): fact for fact in getattr(before, kind)} for kind, key in KEYS.items()}

    def add(self, kind: str, fact: Any) -> None:
        """Add a fact; it takes the place of an older one of the same, and goes on counting."""
        key = KEYS[kind](fact)
        old = self._found[kind].pop(key, None)
        if old is not None and old.extra:
            fact = replace(fact, extra={**old.extra, **fact.extra})
        if old is not None and kind == "paths":
            fact = replace(fact, did=tuple(word for word in _DONE if word in (*old.did, *fact.did)))
        elif old is not None and kind == "commands":
            fact = replace(fact, runs=old.runs + fact.runs, failures=old.failures + fact.failures)
        self._found[kind][key] = fact

    def all(self, kind: str) -> Any:
        """The facts of a kind, oldest first."""
        return tuple(self._found[kind].values())


_DONE = ("created", "edited", "deleted", "read")


def without(facts: Facts, gone: Facts) -> Facts:
    """Those facts that are not among others."""
    left: dict[str, Any] = {}
    for kind, key in KEYS.items():
        keys = set(map(key, getattr(gone, kind)))
        left[kind] = tuple(fact for fact in getattr(facts, kind) if key(fact) not in keys)
    return Facts(**left)


def combine(before: Facts, new: Facts, retracted: Facts = Facts()) -> Facts:  # noqa: B008  an immutable value
    """A route's facts with those of a newer stretch, without what that took back: each once, what came last at the end.

    Errors are those that nothing has fixed; a command that only looked around counts once it has failed: it is what
    not to try again. When something came last is left to the journal: the order tells enough.
    """
    from ralf.facts.commands import only_looks  # a reader whose snapshot is new joins nothing

    made = Collected(without(before, retracted))
    ran = {fact.command for fact in before.commands}
    for kind in KEYS:
        for fact in getattr(new, kind):
            if kind != "commands" or fact.failures or fact.command in ran or not only_looks(fact.command):
                made.add(kind, replace(fact, last=""))
    kinds = {kind: made.all(kind) for kind in KEYS}
    old = [command for command in kinds["commands"] if not command.failures][:-_PASSED]
    kinds["commands"] = tuple(command for command in kinds["commands"] if command not in old)
    kinds["errors"] = tuple(error for error in kinds["errors"] if not error.fixed_by)
    kinds["tests"] = kinds["tests"][-_TESTS:]
    return replace(before, **kinds, names=new.names or before.names, extra={**before.extra, **new.extra})
