"""Counts the sessions and runs that have worked on a route, and tells what they came to and which last got anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ralf.model import ActiveWork, Attempt, Checkpoint, Facts
from ralf.tree import from_tree, to_tree

if TYPE_CHECKING:
    from ralf.secrets.redact import Redactor

MOST_RUNS = 5
"""Runs whose end a route tells: the newest."""

UNSAID = "ended without a word"
"""What is said of a run that left nothing: begun, and killed or given up."""

_SUCCESS = "COMPLETE"


def counted(work: ActiveWork, session: str, history: Sequence[Checkpoint], known: Facts, new: Facts) -> ActiveWork:
    """The work with its attempts after one more stretch.

    session  that of the stretch; one that is not in `history`, the checkpoints before, begins a new attempt
    known    the route's facts before the stretch, `new` those of the stretch
    """
    attempt = 1 if work.attempts is None else work.attempts
    if history and session and all(entry.session != session for entry in history):
        attempt += 1
    progress = attempt if progressed(known, new) else work.last_progress
    return replace(work, attempts=attempt if attempt > 1 else work.attempts or None, last_progress=progress)


def with_documents(work: ActiveWork, history: Sequence[Checkpoint]) -> ActiveWork:
    """The work after documents were taken in that are of no run: nobody has tried anything by that."""
    return replace(work, attempts=0) if work.attempts is None and not history and not work.last_runs else work


def with_run(
    work: ActiveWork, tree: Mapping[str, Any], history: Sequence[Checkpoint], known: Facts, new: Facts
) -> ActiveWork:
    """The work after a record that tells of a run: a tree as `tree_of` has it.

    A run counts once, however many records are of it; what a later one says of its end takes the place of what was
    known. `history`, `known` and `new` are as for `counted`.
    """
    run = from_tree(Attempt, {key: value for key, value in tree.items() if key not in ("again", "digest")})
    before = int(bool(history or work.last_runs)) if work.attempts is None else work.attempts
    listed = {one.run: one for one in work.last_runs}
    told = listed.pop(run.run, None)
    number = told.number if told is not None else None
    attempts = before if tree.get("again") else before + 1
    if not tree.get("again"):
        number = attempts
    if told is not None:
        run = replace(run, outcome=run.outcome or told.outcome, timestamp=run.timestamp or told.timestamp)
        run = replace(run, said=run.said or told.said)
    runs = tuple(one for one in work.last_runs if one.run != run.run)
    if number is not None:  # else one of long ago, which is told no more
        runs = tuple(sorted((*runs, replace(run, number=number)), key=lambda one: one.number or 0))[-MOST_RUNS:]
    moved = progressed(known, new) or run.outcome == _SUCCESS
    progress = max(work.last_progress or 0, number) if moved and number is not None else work.last_progress
    outcome = run.outcome if number == attempts else work.outcome
    return replace(work, attempts=attempts, last_progress=progress, outcome=outcome, last_runs=runs)


def tree_of(run: Attempt, redactor: Redactor) -> dict[str, Any]:
    """A run as a record holds it; there with `again`, where the route has a record of it already.

    `digest` tells whether a later reading says the same: what was forgotten of it is not to come back. Under a key that
    is forgotten there is none.
    """
    tree = to_tree(replace(run, number=None))
    told = {} if redactor.problem else {"digest": redactor.digest(json.dumps(tree, sort_keys=True))}
    return {**redactor.tree(tree), **told}


def is_newest(work: ActiveWork, run: Attempt) -> bool:
    """Whether no later run is known: only then is what one says of the work still so."""
    others = (one for one in work.last_runs if one.run != run.run)
    return not run.timestamp or all(one.timestamp <= run.timestamp for one in others)


def progressed(known: Facts, new: Facts) -> bool:
    """Whether a stretch changed a file, made a commit, or saw a test's result that was not known."""
    results = {(test.command, test.result) for test in known.tests}
    return (
        any(set(path.did) - {"read"} for path in new.paths)
        or bool(new.commits)
        or any((test.command, test.result) not in results for test in new.tests)
    )


def idle(work: ActiveWork) -> int:
    """How many attempts there have been since one last got anywhere."""
    return (work.attempts or 0) - (work.last_progress or 0)


def said(work: ActiveWork) -> str:
    """One line for a route that has come back: "attempt 14; last outcome PARTIAL; nothing changed since attempt 9"."""
    parts = [f"attempt {work.attempts}"] if work.attempts else []
    if work.outcome:
        parts.append(f"last outcome {work.outcome}")
    if work.attempts is not None and work.last_progress is not None and work.last_progress < work.attempts:
        parts.append(f"nothing changed since attempt {work.last_progress}")
    elif work.attempts is not None and work.attempts > 1 and work.last_progress is None and work.last_runs:
        parts.append("nothing has changed in any")
    return "; ".join(parts)


def told(run: Attempt, *, ours: bool = False) -> str:
    """One line on a run: "attempt 4 (runs/executor/run-0018): PARTIAL: the tests of the loader still fail".

    ours  it is the one in which we are
    """
    if ours and not run.outcome:
        return f"attempt {run.number} ({run.run}): this one"
    number = f"attempt {run.number} " if run.number is not None else ""
    return ": ".join(filter(None, (f"{number}({run.run})", run.outcome or (UNSAID if not run.said else ""), run.said)))


def warned(work: ActiveWork, most: int) -> str:
    """What an agent is told that is about to try once more after `most` attempts that changed nothing; else ""."""
    count = idle(work)
    if work.attempts is None or work.attempts < 2 or count < most:
        return ""
    return f"{count} attempts have changed nothing: find out why before trying the same again, or say BLOCKED and stop"
