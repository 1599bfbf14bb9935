"""The runs of a project: listed, looked at, reopened, cancelled, forgotten."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from ralf import project as projects
from ralf.agent import contents, records, signals, states
from ralf.agent.model import ENDED, STATUSES, RunList, RunState, check_names
from ralf.agent.records import Body, body
from ralf.agent.steplog import StepLog, holder_name, prepare, reason_text
from ralf.document.index import NAME, Unusable, using
from ralf.errors import Damaged, Fenced, RunEnded, RunNotFound, UsageError
from ralf.project import Project
from ralf.storage.journal import Digest

Root = str | os.PathLike[str] | None

_MOST_NAMED = 5  # runs that a message names


def list_runs(*, status: str | None = None, root: Root = None) -> RunList:
    """All steps of all runs, by name; with `status` (one of `STATUSES`) only those. UsageError."""
    if status is not None and status not in STATUSES:
        raise UsageError(ascii(status), f"not a status of a run; choose one of: {', '.join(STATUSES)}")
    project = projects.find(root)
    found: list[RunState] = []
    damaged: list[tuple[str, str]] = []
    others: list[str] = []
    inboxes = set(project.store.streams(records.SIGNALS))
    for run, steps in sorted(_runs(project).items()):
        for step in steps:
            log = StepLog(project, run, step)
            try:
                if log.look().records:
                    sent = signals.count_of(project, run) if records.inbox_of(run) in inboxes else 0
                    found.append(log.told(sent, steps))
                elif project.store.is_foreign(log.stream):
                    others.append(f"{run}/{step}")
            except (Damaged, UsageError, OSError) as error:
                damaged.append((f"{run}/{step}", str(error)))
    counts = Counter(one.status for one in found)
    shown = tuple(one for one in found if status is None or one.status == status)
    return RunList(shown, dict(counts), tuple(damaged), tuple(others))


def get_run(run: str, step: str | None = None, *, root: Root = None) -> RunState:
    """A step of a run; None: its only one, or the one that was written last. RunNotFound names the closest runs."""
    project = projects.find(root)
    newest = max(_logs(project, run, step), key=lambda log: log.state.at)
    return newest.told(signals.count_of(project, run), _steps(project, run))


# ---- which runs there are ----


def _runs(project: Project, begin: str = records.RUNS) -> dict[str, tuple[str, ...]]:
    """The steps of the runs whose streams begin so, by run."""
    found: dict[str, tuple[str, ...]] = {}
    for stream in sorted(project.store.streams(begin)):
        run, _, step = stream.removeprefix(records.RUNS).partition("/")
        if step and "/" not in step:
            found[run] = (*found.get(run, ()), step)
    return found


def _steps(project: Project, run: str) -> tuple[str, ...]:
    return _runs(project, records.stream_of(run, "")).get(run, ())


def _logs(project: Project, run: str, step: str | None) -> list[StepLog]:
    """The steps of a run that are meant, as they are now. RunNotFound."""
    check_names(run, *([step] if step is not None else ()))
    logs = [StepLog(project, run, name) for name in (_steps(project, run) if step is None else (step,))]
    if found := [log for log in logs if log.look().records]:
        return found
    raise not_found(project, run, step or "")


def not_found(project: Project, run: str, step: str = "") -> RunNotFound:
    """The error for a run, or a step of one, that is not there."""
    import difflib  # only for who asks for what is not there

    steps = _steps(project, run)
    if steps and not any(StepLog(project, run, one).look().records for one in steps):
        return RunNotFound(run, foreign=True)
    if steps:
        return RunNotFound(f"{run}/{step}" if step else run, (run,))
    return RunNotFound(run, tuple(difflib.get_close_matches(run, _runs(project), _MOST_NAMED)))


# ---- what is done to a run from outside ----


def retry_run(run: str, step: str | None = None, *, by: str = "", root: Root = None) -> RunState:
    """Reopen a step that failed, is dead or was cancelled, or let one that waits or is paused go on at once; the
    iteration begins its first attempt, with its answers and its state.

    step  None: every step of the run that can be reopened

    RunNotFound; Claimed where a live process holds it; RunEnded where it has completed.
    """
    project = projects.find(root)
    name, logs = holder_name(project, by), _logs(project, run, step)

    def retried(log: StepLog) -> Body | None:
        is_held = log.is_held()
        if is_held and len(logs) == 1:
            raise log.claimed()
        return None if is_held or log.state.phase == "completed" else body("retried", by=name)

    return _changed(project, logs, name, retried)


def cancel_run(run: str, step: str | None = None, *, reason: str = "", by: str = "", root: Root = None) -> RunState:
    """End a step, or every open step of a run, as cancelled. Its holder learns it at its next write or wait:
    RunCancelled. RunNotFound; RunEnded where nothing is open.
    """
    project = projects.find(root)
    name, logs = holder_name(project, by), _logs(project, run, step)
    made = body("cancelled", by=name, reason=reason_text(project, reason) if reason else "")
    return _changed(project, logs, name, lambda log: None if log.state.phase in ENDED else made)


def _changed(project: Project, logs: list[StepLog], by: str, make: Callable[[StepLog], Body | None]) -> RunState:
    """Append to steps what `make` makes of their present states, None for nothing; the first that has changed.
    RunEnded where none has.
    """
    changed = []
    for log in logs:
        prepare(project, log.stream)
        if (before := log.write(lambda _, log=log: make(log), by)) is None:  # type: ignore[misc]
            continue
        changed.append(log)
        leases, holder = project.store.leases, before.holder
        if leases is not None and holder is not None:
            with suppress(Fenced):  # its claim is over: the next one need not wait until the holder notices
                told = f"{holder['by']} {holder['writer']}"
                leases.release(log.stream, leases.resume(log.stream, told))
    if not changed:
        raise RunEnded(logs[0].where, logs[0].state.phase or "running")
    run = changed[0].run
    return changed[0].told(signals.count_of(project, run), _steps(project, run))


def forget_run(run: str, *, root: Root = None) -> int:
    """Drop all that the store has of a run: records, states, output, inbox, stored results. Returns how many records
    and blobs went. Broken off, the same call completes it. RunNotFound; Claimed where a live process holds a step.
    """
    project = projects.find(root)
    check_names(run)
    store, steps = project.store, sorted(_steps(project, run), key=lambda step: step == "main")
    of_steps = [records.stream_of(run, step) for step in steps]  # the first one last: until then there is a run
    streams = [*store.streams(f"{records.OUTPUT}{run}/"), records.inbox_of(run), *of_steps]
    streams = [stream for stream in streams if store.head(stream) is not None]
    if not streams:
        raise not_found(project, run)
    for step in steps:
        log = StepLog(project, run, step)
        log.look()
        if log.is_held():
            raise log.claimed()
    count, blobs = 0, set[Digest]()
    for entry in (entry for stream in streams for entry in store.read(stream)):
        count += 1
        blobs.update(contents.blobs_in(entry.record))
    # The blobs first: until the records that name them are gone, the same call completes what was broken off.
    count += states.drop_blobs(project, blobs, but=frozenset(streams), grace=0.0)
    for stream in streams:
        store.drop(stream)
    with using(project.room_for(NAME)) as index, suppress(Unusable):
        if index is not None:  # names of calls and signals are words, too
            with index.database() as database:
                database.executemany("delete from row where name = ?", [(stream,) for stream in streams])
    return count
