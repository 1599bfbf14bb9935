"""Who has which task: claims with a lease and a number that fences, and how they end.

A claim is a record that only one of many writers can append: the stream's head is compared. It changes no file, and
binds one store. A later claim of a task has a higher number, so whoever shows the number of an earlier one is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from ralf import environment
from ralf.errors import (
    Busy,
    DamagedPlan,
    NotFound,
    NothingReady,
    NotVerified,
    StaleLease,
    TaskNotFound,
    UsageError,
)
from ralf.redact import redactor_for
from ralf.tasks import elsewhere, folders, leases, origin, records, store
from ralf.tasks.book import Book
from ralf.tasks.model import ENDED_ITSELF, Claim, Evidence, TaskState
from ralf.tasks.store import Tasks
from ralf.tasks.writing import Writer
from ralf.text import cleaning

Root = str | os.PathLike[str] | None

OUTCOMES = ("released", "crashed", "killed", "hung", "unfinished", "limit", "handed-over", "lost")
"""How `release` may say that an attempt ended."""

_MOST_NAMED = 3  # tasks that a message names of each kind

_ANOTHER = "ralf task claim"  # what to type where somebody has the task that is wanted

_NONE = "no such task"

_LONGEST_LEASE = 366 * 86_400  # seconds


# ---- claiming ----


def claim(
    task: str | None = None,
    *,
    by: str = "",
    role: str | None = None,
    seconds: int = 900,
    process: int = 0,
    born: int = 0,
    keep: bool = False,
    root: Root = None,
) -> TaskState:
    """Claim a task, or the next one that is ready; its `claim` says the number of the lease.

    task     its id or unambiguous title; None: the one of highest priority, then the oldest
    by       the holder's name; "": what the environment says
    role     tasks of this role first, then those of none; "": only those of none; None: that of the task that the
             environment's lease is of, else any
    seconds  how long it lasts without a sign of life
    process  of the agent, and when it was `born` (`ralf.tasks.origin.born`): while it runs the claim lives, and when
             it is dead the claim is lost at once
    keep     whether this process renews the engine's lease until the claim has ended, where the store has leases. Only
             that lease counts there, on every machine: the task is free soon after this process has died. Else it lasts
             `seconds`, and `renew`, `progress` and `ralf.tasks.keeping` renew it

    Whoever has a task already gets the same claim again, and `warnings` say so: the command that claimed it may have
    died before it could tell. They also say where another clone has worked on the task. Claimed names who has it;
    NothingReady says what keeps each task; TaskNotFound; UsageError for a task that is foreign, or not pending;
    DamagedPlan; Fenced where the engine of the store cannot be reached.
    """
    tasks = store.at(root)
    name = store.holder(tasks.project, by)
    if not 1 <= seconds <= _LONGEST_LEASE:
        raise UsageError(str(seconds), f"a lease lasts 1 to {_LONGEST_LEASE} seconds")
    if process and not born:
        born = origin.born(process)
    machine = origin.machine() if process else ""
    wanted = Claim(by=name, seconds=seconds, process=process, born=born, machine=machine)

    def work(writer: Writer) -> TaskState:
        return _take(tasks, writer, _chosen(tasks, writer.book, task, wanted, role), wanted, keep=keep)

    made = tasks.write(work, near=None if task is None else [task])
    return elsewhere.noted(tasks.project, [made])[0]


def _chosen(tasks: Tasks, book: Book, task: str | None, wanted: Claim, role: str | None) -> str:
    """The task to claim: nobody has it but who wants it."""
    if book.plan[1]:
        path = tasks.folder / "plan.yaml"
        raise DamagedPlan(path, book.plan[1].removeprefix(f"{path}: "), f"mend the file in an editor: {path}")
    if task is not None:
        id_ = book.resolve(task)
        if not book.is_held(id_):
            _check_claimable(book, book.get(id_))
        elif not _is_same(book.claim(id_), wanted):
            book.check_free(id_, _ANOTHER)
        return id_
    found = {id_: one for id_ in book.claimed() if (one := book.claim(id_)) is not None}
    held = [id_ for _, id_ in sorted((one.number, id_) for id_, one in found.items() if book.is_held(id_))]
    if mine := [id_ for id_ in held if book.status(id_) and _is_same(found[id_], wanted)]:
        return mine[-1]
    if role is None:  # whoever works on a task goes on with those that it was chosen for
        now = book.task(environment.lease().rpartition(":")[0])
        role = now.role if now is not None else None
    for id_, one in found.items():  # a lease of one's own has run out
        if one.by == wanted.by and book.claimable_as(role, "id = ?", id_):
            return id_
    for id_ in book.claimable_as(role, limit=1):
        return id_
    raise NothingReady("tasks", _reasons(book, held, role), _way_out(book))


def _is_same(claim_: Claim | None, wanted: Claim) -> bool:
    """Whether a claim is of whoever wants one: the same name, and, where both say it, the same process."""
    if claim_ is None or claim_.by != wanted.by:
        return False
    same = (claim_.process, claim_.born, claim_.machine) == (wanted.process, wanted.born, wanted.machine)
    return same or not (claim_.process and wanted.process)


def _take(tasks: Tasks, writer: Writer, id_: str, wanted: Claim, *, keep: bool) -> TaskState:
    old = writer.book.claim(id_)
    process: dict[str, Any] = {"process": wanted.process, "born": wanted.born, "machine": wanted.machine}
    if old is not None and _is_same(old, wanted) and writer.book.is_held(id_):
        # The claim that its holder has, once more: a sign of life.
        leases.renew(tasks.project, id_, old, keep=keep)
        writer.append("renew", task=id_, lease=old.number, **process)
        return writer.state(id_, f"{id_}: you already hold this task, since {old.claimed}; this is the same claim")
    new = replace(wanted, number=writer.book.state.revision + (2 if old is not None else 1))
    with leases.taken(tasks.project, id_, new, is_free=old is None, keep=keep):
        if old is not None:
            note = f"no sign of life from {old.by}; claimed by {wanted.by}"
            writer.append("lost", task=id_, lease=old.number, note=note)
            leases.end_file(tasks.project, old.lease(id_))
        writer.append("claim", wanted.by, task=id_, seconds=wanted.seconds, **process)
    again = old is not None and old.by == wanted.by
    made = writer.state(id_, *([f"{id_}: your earlier lease had run out; this is a new one"] if again else []))
    is_seen = origin.is_running(wanted.process, wanted.born, wanted.machine)  # then its process is the sign of life
    if made.claim is not None and not is_seen and leases.of(tasks.project) is None:
        leases.begin_file(tasks.project, made.claim.lease(id_))
    return made


def _check_claimable(book: Book, state: TaskState) -> None:
    id_ = state.task.id
    if state.is_foreign:
        raise UsageError(state.path, store.FOREIGN, f"ralf trust {id_}")
    if state.task.status != "pending":
        hint = f"ralf task edit {id_} --status pending" if state.task.status == "failed" else f"ralf task show {id_}"
        raise UsageError(id_, f"is {state.task.status}", hint)
    if state.waits_for:
        reasons = _waits(book, id_, state.waits_for), *_never(state)
        raise NothingReady(id_, reasons, f"ralf task show {state.waits_for[0]}")


def _waits(book: Book, id_: str, ons: Sequence[str]) -> str:
    return f"{id_} waits for {_some([f'{on} ({book.status(on) or _NONE})' for on in ons])}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def _never(state: TaskState) -> list[str]:
    """What to type where a task waits for one that will never be completed."""
    return [warning for warning in state.warnings if warning.startswith(f"{state.task.id} waits for ")]


def _reasons(book: Book, held: Sequence[str], role: str | None) -> tuple[str, ...]:
    """What keeps each kind of task from being claimed."""
    counts, blocked = book.counts(), book.blocked()[:_MOST_NAMED]
    reasons = [_waits(book, id_, book.waits(id_)) for id_ in blocked]
    reasons += [line for state in book.states(blocked).values() for line in _never(state)]
    if counts["blocked"] > len(blocked):
        reasons.append(f"{counts['blocked'] - len(blocked)} more wait for others")
    kinds = {
        "claimed": [_who(book, id_, one) for id_ in held if (one := book.claim(id_)) is not None],
        "failed": book.ordered("status = 'failed'"),
        "foreign, not accepted yet": book.ordered("is_foreign"),
    }
    reasons += [f"{what}: {_some(ids)}" for what, ids in kinds.items() if ids]
    if role is not None and counts["ready"]:
        reasons.append(f"{counts['ready']} ready for other roles than {role or 'none'!r}")
    if problems := book.problems():
        reasons.append(f"{len(problems)} cannot be read: {problems[0][1]}")
    total = counts["completed"] + counts["cancelled"]
    return tuple(reasons or [f"all {total} are done" if total else "there are no tasks"])


def _who(book: Book, id_: str, claim_: Claim) -> str:
    """Who has a task, and until when, where its lease says that."""
    ends = leases.until(book.project, id_)
    return f"{id_} (by {claim_.by}{f', until {ends}' if ends else ''})"


def _way_out(book: Book) -> str:
    """What to type where nothing is ready: for the kind of task that a person has to see to, or for none at all."""
    if failed := book.ordered("status = 'failed'"):
        return f"ralf task show {failed[0]}"
    if book.ordered("is_foreign and status = 'pending'"):
        return "ralf trust"
    return "ralf task list" if any(book.counts().values()) or book.problems() else 'ralf task add "TITLE"'


# ---- signs of life ----


def _signs(tasks: Tasks, kind: str, held: Callable[[Book], Held], near: Sequence[str], **values: Any) -> TaskState:
    """Record what is a sign of life of a claim's holder, and show it to the engine, where the store has leases."""

    def work(writer: Writer) -> TaskState:
        state, number, _ = held(writer.book)
        if state.claim is not None and state.claim.number == number:
            leases.renew(tasks.project, state.task.id, state.claim)
        writer.append(kind, task=state.task.id, lease=number, **values)
        return writer.state(state.task.id)

    return tasks.write(work, near=near)


def renew(lease: str = "", *, process: int = 0, born: int = 0, root: Root = None) -> TaskState:
    """Record a sign of life of a lease's holder. StaleLease where it holds no longer.

    lease    "": what the environment says
    process  the agent that goes on with it, where that is another one now
    """
    tasks = store.at(root)
    told = lease or environment.lease()
    if not told:
        raise UsageError(
            "lease", "name the lease that `ralf task claim` printed, such as TASK-7k3q:17", "ralf task claim"
        )
    start, machine = (born or origin.born(process), origin.machine()) if process else (0, "")
    held = partial(_held, tasks, task=None, lease=told, by="")
    return _signs(tasks, "renew", held, _near(None, told), process=process, born=start, machine=machine)


# ---- what a holder says ----


def progress(
    text: str, *, task: str | None = None, lease: str | None = None, by: str = "", root: Root = None
) -> TaskState:
    """Say how a task goes; it stands until something else is said. Errors as for `done`."""
    tasks = store.at(root)
    held = partial(_held, tasks, task=task, lease=lease, by=by)
    return _signs(tasks, "progress", held, _near(task, lease), text=_text(tasks, text, "progress"))


def done(
    summary: str,
    *,
    task: str | None = None,
    lease: str | None = None,
    by: str = "",
    tokens: int = 0,
    evidence: Evidence | None = None,
    for_person: bool = False,
    root: Root = None,
) -> TaskState:
    """Complete a task: record, then file.

    task, lease, by  which: the lease that is shown (None: `RALF_LEASE`), else this task, else the one that `by` has
    tokens           that it took, as far as that is known
    evidence         what says that it is done; None: what `ralf.tasks.evidence` finds, which may run its `verify:`
    for_person       whether that runs in a person's own process: then it has to be one that a person chose

    NotVerified where its `verify:` ran and did not pass: the task stays as it is, and its holder keeps it. StaleLease
    where the lease holds no longer, Claimed where another one has the task, TaskNotFound, NotFound where `by` has none,
    UsageError where it has several. Said twice by the same lease it is done once.
    """
    tasks = store.at(root)
    words = _text(tasks, summary, "summary")
    proof: Evidence | None = evidence

    def look(book: Book) -> Held:
        held = _held(tasks, book, task=task, lease=lease, by=by, closing="done")
        id_ = held.state.task.id
        if (
            not held.number and not held.has_ended
        ):  # whoever has it claimed it when it waited for nothing, before a pull
            store.check_ours(held.state)
            if unmet := book.unmet(id_):
                raise Busy(id_, _waits(book, id_, unmet).removeprefix(f"{id_} "), f"ralf task show {unmet[0]}")
        return held

    found = tasks.read(look, near=_near(task, lease))
    if evidence is None and not found.has_ended:  # before the lock is taken: a command may take long
        from ralf.tasks import evidence as proofs  # few commands complete a task

        proof = proofs.of_completed(tasks.project, found.state, for_person=for_person)
        if proof is not None and proofs.has_failed(tasks.project, found.state.task, proof):
            record_evidence(found.state.task.id, proof, root=root)
            status = "it took too long" if proof.exit_status is None else f"exit status {proof.exit_status}"
            raise NotVerified(found.state.task.id, f"is not done: its `verify:` did not pass: {status}", proof.output)
    tree = records.tree_of(_clean_evidence(tasks, proof)) if proof is not None else None
    made = _close(tasks, "done", look, _near(task, lease), by, "completed", summary=words, tokens=tokens, evidence=tree)
    if proof is not None and proof.state == "failed" and not found.has_ended:
        what = f"{made.task.id}: recorded as completed, but the last test run failed: {proof.command}"
        made = replace(made, warnings=(*made.warnings, what))
    return made


def fail(
    reason: str, *, task: str | None = None, lease: str | None = None, by: str = "", root: Root = None
) -> TaskState:
    """Give a task up: what waits for it waits until it is tried again. Errors as for `done`."""
    tasks = store.at(root)

    def look(book: Book) -> Held:
        held = _held(tasks, book, task=task, lease=lease, by=by, closing="failed")
        if not held.number and not held.has_ended:
            if held.state.task.status in folders.CLOSED:
                raise UsageError(
                    held.state.task.id, f"is {held.state.task.status}", f"ralf task show {held.state.task.id}"
                )
            store.check_ours(held.state)
        return held

    return _close(tasks, "fail", look, _near(task, lease), by, "failed", reason=_text(tasks, reason, "reason"))


def release(
    task: str | None = None,
    *,
    lease: str | None = None,
    by: str = "",
    outcome: str = "released",
    note: str = "",
    root: Root = None,
) -> TaskState:
    """Give a claim back, so that the task can be claimed again. Errors as for `done`.

    outcome  how the attempt ended, one of `OUTCOMES`; note: what is to be known of it
    """
    tasks = store.at(root)
    if outcome not in OUTCOMES:
        raise UsageError(outcome, f"not an outcome; choose one of: {', '.join(OUTCOMES)}")

    def look(book: Book) -> Held:
        held = _held(tasks, book, task=task, lease=lease, by=by, closing=outcome)
        if not held.number and not held.has_ended:
            raise NotFound(held.state.task.id, "no one holds this task", f"ralf task show {held.state.task.id}")
        return held

    return _close(
        tasks, "release", look, _near(task, lease), "", outcome=outcome, note=_text(tasks, note, "note", empty=True)
    )


def _close(
    tasks: Tasks,
    kind: str,
    look: Callable[[Book], Held],
    near: Sequence[str],
    by: str,
    status: str = "",
    **values: Any,
) -> TaskState:
    """End a claim, and give its task a status; nothing where that is done."""

    def work(writer: Writer) -> TaskState:
        state, number, has_ended = look(writer.book)
        id_ = state.task.id
        if has_ended:
            return writer.state(id_, f"{id_}: already {status or 'released'}; nothing changed")
        changes = [writer.change_of(id_, status=status)] if status else []
        who = store.holder(tasks.project, by) if status else ""
        writer.append(kind, who, task=id_, lease=number, changes=changes, **values)
        leases.end(tasks.project, id_, number)
        return writer.state(id_)

    return tasks.write(work, near=near)


def retry(task: str, *, root: Root = None) -> TaskState:
    """Let a task be done again that failed, or that was closed. Claimed where somebody has it; TaskNotFound."""

    def work(writer: Writer) -> TaskState:
        state = writer.book.get(writer.book.resolve(task))
        id_ = state.task.id
        if state.task.status == "pending":
            return writer.state(id_, f"{id_}: already pending; nothing changed")
        writer.book.check_free(id_)
        store.check_ours(state)
        writer.append("retry", task=id_, changes=[writer.change_of(id_, status="pending")])
        return writer.state(id_)

    return store.at(root).write(work)


def record_evidence(task: str, evidence: Evidence, *, root: Root = None) -> TaskState:
    """Record what says that a task is done. TaskNotFound."""
    tasks = store.at(root)

    def work(writer: Writer) -> TaskState:
        id_ = writer.book.resolve(task)
        writer.append("evidence", task=id_, evidence=records.tree_of(_clean_evidence(tasks, evidence)))
        return writer.state(id_)

    return tasks.write(work)


# ---- whose a claim is ----


class Held(NamedTuple):
    """The task that is meant, the number of its claim (0: nobody's), and whether it has been ended so already."""

    state: TaskState
    number: int
    has_ended: bool = False


def _held(tasks: Tasks, book: Book, *, task: str | None, lease: str | None, by: str, closing: str = "") -> Held:
    """The task that is meant.

    closing  the outcome that is to be recorded
    """
    named = book.resolve(task) if task is not None else None
    told = lease if lease is not None else environment.lease()
    name = store.holder(tasks.project, by)
    if told and (named is not None or lease is not None or not _has_gone_on(book, told, name)):
        id_, number = leases.parsed(told)
        if named not in (None, id_) and lease is not None:
            raise UsageError(str(named), f"the lease is of {id_}", f"ralf task show {id_}")
        if named in (None, id_):
            try:
                return _by_lease(book, id_, number, closing)
            except TaskNotFound as error:
                error.hint = error.hint if lease is not None else "RALF_LEASE names it; to go without: unset RALF_LEASE"
                raise
    mine = [named] if named is not None else _mine(book, name)
    if not mine:
        raise NotFound(name, "holds no task", "ralf task claim")
    if len(mine) > 1:
        raise UsageError(name, f"holds several tasks: {', '.join(mine)}", "name one of them")
    state = book.states(mine, recorded=True)[mine[0]]
    number = state.claim.number if state.claim is not None else 0
    if state.claim is not None and state.claim.by != name:
        book.check_free(mine[0])
        number = number if closing in OUTCOMES else 0
    return Held(state, number, not number and state.task.status == {"done": "completed"}.get(closing, closing))


def _near(task: str | None, lease: str | None) -> list[str]:
    """The ids that are named of the task that is meant; none where it is one that its holder has."""
    told = lease if lease is not None else environment.lease()
    return [*filter(None, [task, told.rpartition(":")[0]])]


def _mine(book: Book, name: str) -> list[str]:
    found = book.states(book.claimed()).items()
    return [id_ for id_, one in found if one.claim is not None and one.claim.by == name]


def _has_gone_on(book: Book, lease: str, name: str) -> bool:
    """Whether the environment's lease is of a task that its holder has ended, and the holder has another task now."""
    id_, number = leases.parsed(lease)
    state = book.state_of(id_)
    ended = {one.number for one in state.attempts if one.outcome in ENDED_ITSELF} if state is not None else set()
    return number in ended and bool(_mine(book, name))


def _by_lease(book: Book, id_: str, number: int, closing: str) -> Held:
    state = book.state_of(book.resolve(id_), recorded=True)
    if state is None or state.task.id != id_:
        raise UsageError(id_, "a lease names a task by its id", "ralf task list")
    by = state.claim.by if state.claim is not None else ""
    if state.claim is not None and state.claim.number == number:
        return Held(state, number)
    ended = next((one for one in state.attempts if one.number == number), None)
    if ended is not None and closing and ended.outcome == closing:
        return Held(state, number, True)
    what = f"lease {id_}:{number} has ended"
    if ended is not None and ended.outcome:
        what += f": {ended.outcome} at {ended.ended}"
    what += f"; {by} holds the task now" if by else ""
    raise StaleLease(id_, what, by, f"ralf task show {id_}")


# ---- text ----


def _text(tasks: Tasks, text: str, what: str, *, empty: bool = False) -> str:
    """What somebody says, as it is recorded: without control characters and secrets."""
    words = redactor_for(tasks.project).text(cleaning.clean(text)).strip()
    if not words and not empty:
        raise UsageError(what, "is empty")
    return words


def _clean_evidence(tasks: Tasks, evidence: Evidence) -> Evidence:
    redact = redactor_for(tasks.project).text
    return replace(
        evidence,
        command=redact(cleaning.clean(evidence.command)),
        output=redact(cleaning.clean(evidence.output)),
        at=evidence.at or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
