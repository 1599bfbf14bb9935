"""Tasks as text and as JSON, for the commands on them and for `plain`, which answers without click."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ralf.errors import RalfError
from ralf.text.cleaning import clean, one_line, trimmed
from ralf_cli.tables import aligned, so_many

if TYPE_CHECKING:
    from pathlib import Path

    from ralf.project import Project
    from ralf.tasks.book import Book
    from ralf.tasks.model import Attempt, Evidence, TaskState
    from ralf.tasks.store import TaskList

MOST = 50
"""Tasks that a list shows where nothing else is asked for."""

LEASE = 900
"""Seconds that a claim lasts without a sign of life, where nothing else is asked for."""

REFRESH_TOKENS = 2_500
"""Tokens of what a fresh agent reads, where nothing else is asked for."""

HEADINGS = ("TASK", "PRIORITY", "ROLE", "TITLE", "STATE")
RIGHT = (1,)
"""The columns of the list of tasks, and those of them that are aligned right."""

_TITLE, _NAMED = 60, 3  # characters of a title in the list; ids that are named in it
_COMPLETED = {"claimed": "not verified", "verified": "verified", "failed": "check failed", "stale": "edited since"}

_MOST_OTHERS = 50  # tasks that one waits for, each on a line

_FIELD = 14  # columns of a field's name


def title_of(state: TaskState) -> str:
    """The title of a task as one line, whatever it holds."""
    return one_line(clean(state.task.title)) or "(no title)"


def named(state: TaskState) -> str:
    """A task as it is named in an answer: its id and title, and whether these are another's words."""
    return f"{state.task.id}{' (foreign)' * state.is_foreign}: {title_of(state)}"


def state_of(state: TaskState) -> str:
    """The state of a task in one word: foreign, ready, waiting, claimed, or what its file says."""
    if state.is_foreign:
        return "foreign"
    if state.task.status != "pending":
        return state.task.status
    if state.claim is not None:
        return "claimed"
    return "waiting" if state.waits_for else "ready"


def describe(state: TaskState) -> str:
    """The state of a task with who has it, what it waits for, or what says that it is done."""
    word = state_of(state)
    if word in ("claimed", "foreign") and state.claim is not None:
        return f"{'' if word == 'claimed' else 'foreign, '}claimed by {one_line(clean(state.claim.by))}"
    if word == "waiting":
        return f"waits for {_ids(state.waits_for)}"
    if word == "failed" and state.reason:
        return f"failed: {trimmed(one_line(clean(state.reason)), _TITLE)}"
    if word == "completed":
        return f"completed, {_COMPLETED.get(state.evidence.state, '')}" if state.evidence is not None else "completed"
    if word == "ready" and state.failures:
        return f"ready, {so_many(state.failures, 'attempt')} failed"
    return word


def cells(state: TaskState) -> tuple[object, ...]:
    """Return a task's row in the list."""
    task = state.task
    label = f"{task.id} (foreign)" if state.is_foreign else task.id
    return label, task.priority, task.role or "-", trimmed(title_of(state), _TITLE), describe(state)


def listed(states: Iterable[TaskState]) -> str:
    """Tasks as a table in a pipe."""
    return aligned(HEADINGS, map(cells, states), RIGHT) + "\n"


def claimed(state: TaskState, ralf: str) -> str:
    """What whoever has claimed a task reads: the task, the lease, how to go on and how to end it.

    ralf  what is typed in place of `ralf`
    """
    task, claim = state.task, state.claim
    lines = [named(state)]
    if claim is not None:
        lease = claim.lease(task.id)
        lasts = f"lasts {_lasts(claim.seconds)} without a sign of life"
        lines.append(_field("lease", f"RALF_LEASE={lease}  ({lasts})"))
    lines += [_field(name, value) for name, value in _work(state)]
    if body := clean(task.text).strip():
        lines += ["", body]
    lines += ["", f"To read what came before: {ralf} task show {task.id} --fresh"]
    lines += [f"When it is done: {ralf} task done --task {task.id} SUMMARY"]
    lines += [f"If it cannot be done: {ralf} task fail --task {task.id} REASON"]
    lines += [f"To release it unfinished: {ralf} task release {task.id}", ""]
    return "\n".join(lines)


def full(state: TaskState, root: str | None) -> str:
    """All that is known of a task, with the titles of those that it waits for."""
    from ralf.tasks import store

    task, claim = state.task, state.claim
    after = set(task.after)
    waits = [id_ for id_ in state.waits_for if id_ not in after]
    others = (*task.after[:_MOST_OTHERS], *waits[:_MOST_OTHERS])
    known: Mapping[str, TaskState] = {}
    with suppress(RalfError, OSError):  # what was written is told all the same
        known = store.at(root).states(others) if others else {}
    fields = [("state", describe(state))]
    if state.is_foreign:
        fields.append(("foreign", f"its file was not written by your ralf: ralf trust {task.id}"))
    if claim is not None:
        fields.append(("lease", f"{claim.lease(task.id)}, since {_at(claim.claimed)}, lasts {_lasts(claim.seconds)}"))
    fields += [("priority", str(task.priority)), ("tags", ", ".join(task.tags)), ("role", task.role)]
    for name, ids in (("after", task.after), ("waits for", waits)):
        fields += [(name, _with_title(id_, known)) for id_ in ids[:_MOST_OTHERS]]
        fields += [(name, f"{len(ids) - _MOST_OTHERS:,} more")] * (len(ids) > _MOST_OTHERS)
    fields += [*_work(state), ("route", task.context_route)]
    fields += [("created", " by ".join(filter(None, (_at(task.created), task.created_by))))]
    fields += [("finished", _at(state.finished)), ("summary", state.summary), ("reason", state.reason)]
    if state.evidence is not None:
        fields.append(("evidence", _evidence(state.evidence)))
    fields += [("attempt", _attempt(number, one)) for number, one in enumerate(state.attempts, start=1)]
    fields.append(("file", str(state.path or "")))
    lines = [named(state), *(_field(name, value) for name, value in fields if value)]
    if body := clean(task.text).strip():
        lines += ["", body]
    return "\n".join([*lines, ""])


def ended(state: TaskState, ralf: str = "", *, checkpoint: bool = False) -> str:
    """What whoever has ended a claim reads: what became of the task, what says so, and what to do next.

    ralf        what is typed in place of `ralf`; "" where there is nothing to do next
    checkpoint  whether a checkpoint comes after the task
    """
    lines = [f"{named(state)}: {describe(state)}"]
    if state.evidence is not None and state.task.status == "completed":
        lines.append(_field("evidence", _evidence(state.evidence)))
    if checkpoint:
        lines.append("A checkpoint comes after it. Hand over, then end your session: a fresh agent goes on.")
        lines.append(_handover(state, ralf))
    elif ralf:
        lines.append(f"To go on: {ralf} task claim")
    return "\n".join([*lines, ""])


def as_json(state: TaskState) -> dict[str, Any]:
    """A task under the names of the Python API, with its state in one word and the lease of its claim."""
    lease = state.claim.lease(state.task.id) if state.claim is not None else ""
    return asdict(state) | {"state": state_of(state), "lease": lease, "failures": state.failures}


def warnings_of(found: TaskList) -> list[str]:
    """What is to be said beside a list: of the plan and the journal, and of each task in it."""
    return [*found.warnings, *(warning for state in found.tasks for warning in state.warnings)]


def more(found: TaskList, ralf: str = "ralf") -> str:
    """The line that says how many tasks a list leaves out, "" for none."""
    count = found.left + len(found.tasks)
    return f"{found.left:,} more of {count:,}: {ralf} task list --all" if found.left else ""


def nothing(root: str | None) -> str:
    """The line in place of a list without tasks."""
    from ralf import project as projects
    from ralf.tasks import store

    found = store.at(root).counts()
    counts = {name: found[name] for name in ("pending", "failed", "completed", "cancelled")}
    if not any(counts.values()):
        return projects.find(root).nothing_here or 'no tasks yet; add one: ralf task add "TITLE"'
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"no task to list; of all tasks: {told}: ralf task list --all"


def _work(state: TaskState) -> Iterator[tuple[str, str]]:
    """What matters to whoever does a task, beside its text."""
    task = state.task
    if task.checkpoint:
        yield "checkpoint", "hand over and end when it is done: a fresh agent goes on"
    if task.verify:
        again = f"; accept it: ralf task edit {task.id} --verify 'COMMAND'"
        edited = state.has_edited_verify and not state.is_foreign
        yield "verify", task.verify + f"  (not run: an edit of the file changed it{again})" * edited
    if state.progress:
        yield "progress", f"{state.progress}  ({_at(state.progress_at)})"


def _evidence(evidence: Evidence) -> str:
    what = {
        "claimed": "claimed done: nothing has verified it",
        "verified": "verified",
        "failed": "not verified: the check failed",
        "stale": "stale: files were edited after it was verified",
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
    return f"{number}. {attempt.outcome or 'goes on'}, {attempt.by}, {_at(attempt.began)}{ended_}{note}"


def _at(time: str) -> str:
    """A time to the second, as far as it is one."""
    return f"{time[:19]}Z" if len(time) > 20 and time.endswith("Z") else time


def _lasts(seconds: int) -> str:
    """A lease as a person says it."""
    return so_many(seconds // 60, "minute") if seconds % 60 == 0 else so_many(seconds, "second")


def _with_title(id_: str, known: Mapping[str, TaskState]) -> str:
    found = known.get(id_)
    return id_ if found is None else f"{named(found)}  ({describe(found)})"


def _field(name: str, value: str) -> str:
    return f"{name:<{_FIELD}}{one_line(clean(value))}"


def _ids(ids: Sequence[str]) -> str:
    left = len(ids) - _NAMED
    return ", ".join(ids[:_NAMED]) + (f" and {left:,} more" if left > 0 else "")


def noted(state: TaskState) -> str:
    """What whoever has reported progress reads."""
    return f"{named(state)}: noted\n"


def tasks_of(
    *,
    ready: bool = False,
    status: str | None = None,
    role: str | None = None,
    tag: str | None = None,
    every: bool = False,
    root: str | None = None,
) -> TaskList:
    """The tasks that a list shows; `every`: finished ones too, however many."""
    from ralf.tasks import store

    most = None if every or tag is not None else MOST
    if every or ready or status:
        found = store.list_tasks(status=status, role=role, ready=ready, limit=most, root=root)
    else:
        found = _unfinished(role, root, most)
    return found if tag is None else _with_tag(found, tag, None if every else MOST)


def _with_tag(found: TaskList, tag: str, most: int | None) -> TaskList:
    states = [state for state in found.tasks if tag in state.task.tags]
    return replace(found, tasks=tuple(states[:most]), left=len(states[most:]) if most is not None else 0)


def _unfinished(role: str | None, root: str | None, most: int | None) -> TaskList:
    """The first tasks that are pending or failed."""
    from ralf.tasks import store

    tasks = store.at(root)

    def listed(book: Book) -> TaskList:
        found = book.select(["pending", "failed"], role=role, limit=most)
        return replace(found, tasks=tuple(tasks.as_told(found.tasks)))

    return tasks.read(listed)


def is_at_checkpoint(state: TaskState, root: str | None) -> bool:
    """Whether whoever has completed this task hands over and ends: its file says so, or a checkpoint of the plan."""
    from ralf import project as projects
    from ralf.tasks import store

    if state.task.status != "completed" or state.task.checkpoint:
        return state.task.checkpoint
    with suppress(RalfError, OSError):  # what was written is told all the same
        return store.Tasks(projects.find(root)).read(lambda book: book.is_at_checkpoint(state.task.id))
    return False


def ends_session(state: TaskState, root: str | None) -> bool:
    """As `is_at_checkpoint`, for a task that was just completed; a client's session that has no lease is remembered."""
    from ralf import project as projects
    from ralf.storage import files

    if not is_at_checkpoint(state, root):
        return False
    project = projects.find(root)
    path = _lease_of_session(project)
    done = [one.number for one in state.attempts if one.outcome == "done"]
    if path is not None and done:
        with suppress(RalfError, OSError):
            project.make_room(path)
            files.make(path.parent)
            path.write_text(f"{state.task.id}:{done[-1]}", encoding="utf-8")
    return True


def _lease_of_session(project: Project) -> Path | None:
    """The file with the lease before a checkpoint that this session ended last. None for an agent that a loop has
    started, whose variable says it, and for a person, who needs no fresh window.
    """
    from ralf import environment
    from ralf.text.cleaning import slug

    session = environment.session()
    return project.cache / "checkpoints" / slug(session) if session and not environment.lease() else None


def check_may_claim(root: str | None) -> None:
    """NotFound for an agent that has completed the task of its lease, or of its session, before a checkpoint."""
    from ralf import environment, project as projects
    from ralf.errors import NotFound
    from ralf.tasks import store

    lease = environment.lease()
    if not lease and environment.session():
        with suppress(OSError, ValueError):
            path = _lease_of_session(projects.find(root))
            lease = path.read_text(encoding="utf-8") if path is not None else ""
    id_, _, number = lease.rpartition(":")
    if not id_:
        return
    state = store.at(root).states([id_]).get(id_)
    ended_ = (one.outcome for one in (state.attempts if state else ()) if str(one.number) == number)
    is_done = state is not None and state.task.status == "completed" and "done" in ended_
    if state is not None and is_done and is_at_checkpoint(state, root):
        why = "a checkpoint comes after it: hand over, then end your session; a fresh agent goes on"
        raise NotFound(id_, why, _handover(state, "ralf"))


def _handover(state: TaskState, ralf: str) -> str:
    return f"{ralf} handover {state.task.context_route} <<'EOF'"
