"""Makes the plan of a project's tasks of all that are open, writes it, and undoes that.

The file is written whole; what it was before lies in the cache, for `undo`. docs/sequence.md says by which rules.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from ralf import config
from ralf.errors import Busy, DamagedPlan, NotFound, UsageError
from ralf.project import Project, find
from ralf.storage import durable, files, locks, users_files
from ralf.storage.files import content_of
from ralf.tasks import planfile, store
from ralf.tasks.model import TaskState
from ralf.tasks.planfile import content_at, load as load, parse, path_of as path_of, render, some
from ralf.tasks.sequence import BY_HAND, SETTLED, Plan, learnt, make_plan

Root = str | os.PathLike[str] | None


def serialize(
    *,
    every: int | None = None,
    budget: int | None = None,
    anew: bool = False,
    dry_run: bool = False,
    root: Root = None,
) -> Plan:
    """Put all open tasks in an order, in chains with checkpoints, and write the plan.

    every, budget  tasks, and tokens, between two checkpoints. Neither: as in the plan in force, else as many tokens as
                   the configuration's `pressure` allows
    anew           forget the plan in force, with what a person did to it
    dry_run        change nothing

    Errors: Cycle, UnknownDependency, UsageError, DamagedPlan, Busy, OSError; nothing was changed then.
    """
    project = find(root)
    known = store.Tasks(project).list()
    plan = serialize_states(project, known.tasks, every=every, budget=budget, anew=anew, dry_run=dry_run)
    damaged = (f"left out, as it cannot be read: {path}" for path, _ in known.damaged)
    return replace(plan, notes=(*plan.notes, *damaged))


def serialize_states(
    project: Project,
    states: Sequence[TaskState],
    *,
    every: int | None = None,
    budget: int | None = None,
    anew: bool = False,
    dry_run: bool = False,
) -> Plan:
    """As `serialize`, of tasks that are known already; `states` are all tasks of the project."""
    path = path_of(project)
    if dry_run:
        return _planned(project, states, content_at(path), every, budget, anew=anew)[0]
    with _writing(project) as kept:
        for tries in range(_MOST_TRIES):
            before = content_at(path)
            plan, content = _planned(project, states, before, every, budget, anew=anew)
            try:
                if content is not None:
                    _write(project, before, content)
            except Busy:
                if tries == _MOST_TRIES - 1 or content_at(path) == before:
                    raise
            else:
                break
    return replace(plan, notes=(*kept, *plan.notes))


def _planned(
    project: Project,
    states: Sequence[TaskState],
    content: bytes | None,
    every: int | None,
    budget: int | None,
    *,
    anew: bool,
) -> tuple[Plan, bytes | None]:
    """The plan, and the file to write; None where the file that is there says the same."""
    path = path_of(project)
    before = None if content is None or anew else parse(content, path)
    if every is None and budget is None and before is not None:
        every, budget = before.every, before.budget
    elif every is None and budget is None:
        settings = config.of(project)
        budget = max(settings.window * settings.pressure // 100, 1)
    tasks = [state.task for state in states]
    plan = make_plan(
        tasks,
        every=every,
        budget=budget,
        tokens=learnt(states),
        before=before,
        running={state.task.id for state in states if state.claim is not None},
        without={state.task.id for state in states if state.is_foreign},
    )
    plan = replace(plan, notes=tuple(_notes(plan, before, states)))
    says_so = f"order: {BY_HAND if plan.by_hand else 'by priority'}\n".encode() in (content or b"")
    if (content is None and not plan.chains) or (before == plan and says_so):
        return plan, None
    made, items = render(plan, tasks), max((len(chain.tasks) + len(chain.placed) for chain in plan.chains), default=0)
    if len(made) > planfile.MOST_BYTES or items > planfile.MOST_ITEMS:
        raise UsageError(path, "more tasks than one plan can hold", "give them roles or routes")
    return plan, None if made == content else made


def _notes(plan: Plan, before: Plan | None, states: Sequence[TaskState]) -> Iterator[str]:
    if plan.by_hand:
        yield "a person has moved tasks: that order stays; to go by priority again: ralf serialize --anew"
    if guessed := next((chain.tokens for chain in plan.chains if chain.guessed), 0):
        yield f"no history says how many tokens a task takes: {guessed:,} is a guess"
    known = {state.task.id for state in states}
    if gone := [id_ for id_ in before or () if id_ not in known]:
        yield f"in the plan, but no such task, so left out: {some(gone)}"
    if foreign := sum(state.is_foreign and state.task.status not in SETTLED for state in states):
        yield f"left out, as they came with the repository: {foreign} of the tasks; to accept them: ralf task trust"


# ---- writing ----

_MOST_TRIES = 5

_ABSENT, _PRESENT = b"absent\n", b"present\n"

_MEMORIES = 20  # of `undo`


@contextmanager
def _writing(project: Project) -> Iterator[list[str]]:
    """Hold the lock of all who write the plan. Gives lines that name saves which a dead writer had displaced."""
    path = path_of(project)
    for folder in (path.parent, path.parent.parent):
        if folder.is_symlink():
            raise UsageError(folder, "is a symbolic link: not followed", "remove the link")
    project.prepare()
    with locks.locked(project.folder / "locks" / "plan.lock", str(path)):
        kept = []
        for displaced in durable.temporaries_of(path):
            content = displaced.read_bytes()
            if _memory(project, content).exists():  # a writer died before it could give the file its name
                displaced.unlink()
                continue
            place = path.with_name(f"plan.displaced-{_digest(content)[:8]}.yaml")
            displaced.rename(place)
            kept.append(f"{place}: was saved while the plan was written")
        yield kept


def _write(project: Project, before: bytes | None, content: bytes) -> None:
    """Write the plan, and what it was before for `undo`. Busy where a person has saved it meanwhile."""
    path, memory = path_of(project), _memory(project, content)
    files.make(memory.parent)
    durable.write(memory, _ABSENT if before is None else _PRESENT + before)
    with suppress(OSError):  # the newest are kept, and nothing that a dead writer left
        found = sorted(
            memory.parent.iterdir(), key=lambda one: (not durable.is_temporary(one.name), one.stat().st_mtime)
        )
        whole = [one for one in found if not durable.is_temporary(one.name)]
        for old in (*found[: -len(whole)], *whole[:-_MEMORIES]):
            old.unlink()
    if not path.parent.is_dir():
        files.make(path.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
        durable.sync_folder(path.parent.parent)
    users_files.replace(path, before, content, 0o644 if before is None else None)


def undo(root: Root = None) -> Plan | None:
    """Give the plan file the content that it had before `serialize` wrote it, or none; the plan that is in force then.

    Several times: one step back each. NotFound where what is there was not written by `serialize` here: then it may
    hold what a person did to it, and stays.
    """
    project = find(root)
    path = path_of(project)
    with _writing(project) as kept:
        now = content_at(path)
        try:
            memory = content_of(_memory(project, now))
        except OSError:
            what = "nothing to undo: `ralf serialize` did not write what is there"
            hint = "edit the file by hand" if now is not None else "ralf serialize"
            raise NotFound(path, what if now is not None else "nothing to undo: there is no plan", hint) from None
        if not memory.startswith(_PRESENT):
            durable.removed([path])
            return None
        before = memory.removeprefix(_PRESENT)
        users_files.replace(path, now, before, None)
    try:
        plan = parse(before, path)
    except DamagedPlan as error:  # as it was before
        plan = Plan(notes=(str(error),))
    return replace(plan, notes=(*kept, *plan.notes))


def _memory(project: Project, content: bytes | None) -> Path:
    """Where it is kept what the plan was before it became this one."""
    return project.cache / "plans" / (_digest(content) if content is not None else "absent")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
