"""Tasks as text and as JSON, and the tasks of a list."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from ralf import environment, project as projects
from ralf.errors import NotFound, RalfError
from ralf.tasks import store
from ralf.tasks.model import Attempt, Evidence, TaskState
from ralf.tasks.store import TaskList
from ralf.text.cleaning import clean, one_line, trimmed
from ralf_cli.output import so_many

_MOST = 50  # tasks that a list shows where nothing else is asked for
_TITLE, _NAMED = 60, 3  # characters of a title in the list; ids that are named in it
_COMPLETED = {"claimed": "not verified", "verified": "verified", "failed": "check failed", "stale": "edited since"}


def named(state: TaskState) -> str:
    """The id and the title of a task, and whether it is foreign."""
    return f"{state.task.id}{' (foreign)' * state.is_foreign}: {_title(state)}"


def _title(state: TaskState) -> str:
    return one_line(clean(state.task.title)) or "(no title)"


def state_of(state: TaskState) -> str:
    """The state of a task in one word: foreign, ready, waiting, claimed, or what its file says."""
    if state.is_foreign:
        return "foreign"
    if state.task.status != "pending":
        return state.task.status
    if state.claim is not None:
        return "claimed"
    return "waiting" if state.waits_for else "ready"


def _describe(state: TaskState) -> str:
    """The state of a task with its holder, the tasks that it waits for, or its evidence."""
    word = state_of(state)
    if word in ("claimed", "foreign") and state.claim is not None:
        return f"{'' if word == 'claimed' else 'foreign, '}claimed by {one_line(clean(state.claim.by))}"
    if word == "waiting":
        left = len(state.waits_for) - _NAMED
        return f"waits for {', '.join(state.waits_for[:_NAMED])}" + (f" and {left:,} more" if left > 0 else "")
    if word == "failed" and state.reason:
        return f"failed: {trimmed(one_line(clean(state.reason)), _TITLE)}"
    if word == "completed" and state.evidence is not None:
        return f"completed, {_COMPLETED.get(state.evidence.state, '')}"
    return f"ready, {so_many(state.failures, 'attempt')} failed" if word == "ready" and state.failures else word


def cells(state: TaskState) -> tuple[object, ...]:
    """Return a task's row in the list."""
    task = state.task
    label = f"{task.id} (foreign)" if state.is_foreign else task.id
    return label, task.priority, task.role or "-", trimmed(_title(state), _TITLE), _describe(state)


def claimed(state: TaskState, ralf: str) -> str:
    """The text for an agent that has claimed a task: all of the task, and the commands to end the claim.

    ralf  the command that is typed in place of `ralf`
    """
    id_ = state.task.id
    return "\n".join(
        (
            full(state),
            "",
            f"To read what came before: {ralf} task show {id_} --fresh",
            f"When it is done: {ralf} task done --task {id_} SUMMARY",
            f"If it cannot be done: {ralf} task fail --task {id_} REASON",
            f"To release it unfinished: {ralf} task release {id_}",
        )
    )


def full(state: TaskState) -> str:
    """All that is known of a task."""
    task, claim = state.task, state.claim
    foreign = f"its file was not written by your ralf: ralf trust {task.id}" if state.is_foreign else ""
    lease = ""
    if claim is not None:
        seconds = claim.seconds
        lasts = so_many(seconds // 60, "minute") if seconds % 60 == 0 else so_many(seconds, "second")
        lease = (
            f"RALF_LEASE={claim.lease(task.id)}  (since {_at(claim.claimed)}; expires after {lasts} without activity)"
        )
    fields = [
        ("state", _describe(state)),
        ("foreign", foreign),
        ("lease", lease),
        ("priority", str(task.priority)),
        ("tags", ", ".join(task.tags)),
        ("role", task.role),
        ("after", ", ".join(task.after)),
        ("waits for", ", ".join(id_ for id_ in state.waits_for if id_ not in task.after)),
        ("checkpoint", "hand over and exit after it: a fresh agent continues" if task.checkpoint else ""),
        ("verify", _verify(state) if task.verify else ""),
        ("progress", f"{state.progress}  ({_at(state.progress_at)})" if state.progress else ""),
        ("route", task.context_route),
        ("created", " by ".join(filter(None, (_at(task.created), task.created_by)))),
        ("finished", _at(state.finished)),
        ("summary", state.summary),
        ("reason", state.reason),
        ("evidence", _evidence(state.evidence) if state.evidence is not None else ""),
        *(("attempt", _attempt(number, one)) for number, one in enumerate(state.attempts, start=1)),
        ("file", str(state.path or "")),
    ]
    body = clean(task.text).strip()
    lines = [named(state), *(_field(name, value) for name, value in fields if value)]
    return "\n".join([*lines, *(["", body] if body else [])])


def ended(state: TaskState, ralf: str = "", *, checkpoint: bool = False) -> str:
    """The text for an agent that has ended a claim: the state of the task, its evidence, and the next command.

    ralf        the command that is typed in place of `ralf`; "": there is no next command
    checkpoint  whether a checkpoint comes after the task
    """
    lines = [f"{named(state)}: {_describe(state)}"]
    if state.evidence is not None and state.task.status == "completed":
        lines.append(_field("evidence", _evidence(state.evidence)))
    if checkpoint:
        lines += ["A checkpoint comes after it. Hand over and exit: a fresh agent continues.", _handover(state, ralf)]
    elif ralf:
        lines.append(f"Next: {ralf} task claim")
    return "\n".join(lines)


def as_json(state: TaskState) -> dict[str, Any]:
    """A task under the names of the Python API, with its state in one word and the lease of its claim."""
    lease = state.claim.lease(state.task.id) if state.claim is not None else ""
    return asdict(state) | {"state": state_of(state), "lease": lease, "failures": state.failures}


def _verify(state: TaskState) -> str:
    if not (state.has_edited_verify or state.has_agents_verify) or state.is_foreign:
        return state.task.verify
    again = f"accept it: ralf task edit {state.task.id} --verify 'COMMAND'"
    why = (
        "not run: an edit or an import brought it" if state.has_edited_verify else "no person chose it: no loop runs it"
    )
    return f"{state.task.verify}  ({why}; {again})"


def _evidence(evidence: Evidence) -> str:
    what = {
        "claimed": "reported done, not verified",
        "verified": "verified",
        "failed": "not verified: the check failed",
        "stale": "stale: files were edited after the check",
    }.get(evidence.state, evidence.state)
    if evidence.state == "claimed" and evidence.command:
        why = f": {evidence.output}" if evidence.output else " has not been run since the last edit"
        return f"{what} ({evidence.command}{why})"
    ran = f": {evidence.command}" if evidence.command else ""
    status = f" (exit status {evidence.exit_status})" if evidence.exit_status is not None else ""
    return f"{what}{ran}{status}" + (f", {_at(evidence.at)}" if evidence.at else "")


def _attempt(number: int, attempt: Attempt) -> str:
    ended_ = f" to {_at(attempt.ended)}" if attempt.ended else ""
    note = f": {attempt.note}" if attempt.note else ""
    return f"{number}. {attempt.outcome or 'continues'}, {attempt.by}, {_at(attempt.began)}{ended_}{note}"


def _at(time: str) -> str:
    return f"{time[:19]}Z" if len(time) > 20 and time.endswith("Z") else time


def _field(name: str, value: str) -> str:
    return f"{name:<14}{one_line(clean(value))}"


# ---- lists ----


def tasks_of(
    *, ready: bool, status: str | None, role: str | None, tag: str | None, every: bool, root: str | None
) -> TaskList:
    """The tasks of a list: unfinished ones unless a status is named; `every`: all, without a limit."""
    most = None if every or tag is not None else _MOST
    if every or ready or status:
        found = store.list_tasks(status=status, role=role, ready=ready, limit=most, root=root)
    else:
        tasks = store.at(root)
        found = tasks.read(lambda book: book.select(["pending", "failed"], role=role, limit=most))
        found = replace(found, tasks=tuple(tasks.as_told(found.tasks)))
    if tag is None:
        return found
    states = [state for state in found.tasks if tag in state.task.tags]
    shown = len(states) if every else _MOST
    return replace(found, tasks=tuple(states[:shown]), left=len(states[shown:]))


def nothing(root: str | None) -> str:
    """The line in place of a list without tasks."""
    found = store.at(root).counts()
    counts = [f"{found[name]:,} {name}" for name in ("pending", "failed", "completed", "cancelled") if found[name]]
    if not counts:
        return projects.find(root).nothing_here or 'no tasks yet; add one: ralf task add "TITLE"'
    return f"no task to list; of all tasks: {', '.join(counts)}: ralf task list --all"


# ---- a checkpoint behind a task ----


def is_at_checkpoint(state: TaskState, root: str | None) -> bool:
    """Whether a fresh agent continues after this task, by its file or by the plan."""
    if state.task.status != "completed" or state.task.checkpoint:
        return state.task.checkpoint
    with suppress(RalfError, OSError):  # the task is completed all the same
        return store.at(root).read(lambda book: book.is_at_checkpoint(state.task.id))
    return False


def check_may_claim(root: str | None) -> None:
    """NotFound if the agent has completed the task of its lease, and a checkpoint follows."""
    id_, _, number = environment.lease().rpartition(":")
    state = store.at(root).states([id_]).get(id_) if id_ else None
    if state is None or state.task.status != "completed" or not is_at_checkpoint(state, root):
        return
    if any(one.outcome == "done" and str(one.number) == number for one in state.attempts):
        why = "a checkpoint comes after it: hand over and exit; a fresh agent continues"
        raise NotFound(id_, why, _handover(state, "ralf"))


def _handover(state: TaskState, ralf: str) -> str:
    return f"{ralf} handover {state.task.context_route} <<'EOF'"
