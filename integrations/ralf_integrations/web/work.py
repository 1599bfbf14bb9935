"""What the pages of tasks, of the memory and of runs show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ralf import routing
from ralf.agent import RunList, RunState, list_runs
from ralf.errors import RalfError
from ralf.memory import writing
from ralf.memory.model import Item, Memory
from ralf.tasks import planfile as plans
from ralf.tasks.model import TaskState
from ralf.tasks.sequence import BY_SYNC, Chain, Plan
from ralf.tasks.store import TaskList, Tasks
from ralf.text import cleaning
from ralf_integrations.web.reading import Page, ViewedProject, paged

_MOST_TASKS = 2_000  # beside those of the plan


@dataclass(frozen=True, slots=True)
class Place:
    """A task in its sequence."""

    id: str
    state: TaskState | None
    chain: str | None  # the name of its chain where it is the first of one on the page
    checkpoint: str  # who placed the checkpoint before it, "" for none
    syncs: bool  # whether that is a sync point
    waits: tuple[str, ...]  # ids that the task waits for in other chains


@dataclass(frozen=True, slots=True)
class Sequence:
    """The tasks of a project: the plan in pages, the tasks beside it, and how many there are."""

    plan: Plan | None
    problem: str
    page: Page[Place]
    beside: Page[TaskState]
    listed: TaskList


def sequence(project: ViewedProject, number: int) -> Sequence:
    """The tasks in their order. DamagedJournal."""
    tasks = Tasks(project)
    problem, plan = "", None
    try:
        plan = plans.load(project)
    except RalfError as error:
        problem = str(error)
    found = tasks.list(limit=_MOST_TASKS)
    keys = plan.keys() if plan is not None else {}
    page = paged(list(_steps(plan)) if plan is not None else [], number)
    beside = paged([one for one in found.tasks if one.task.id not in keys], number)
    states = {one.task.id: one for one in tasks.as_told(list(tasks.states([id_ for id_, _, _ in page.items]).values()))}
    places, last = list[Place](), None
    for id_, chain, placed in page.items:
        state = states.get(id_)
        after = state.task.after if state is not None else ()
        waits = tuple(one for one in after if keys.get(one, chain.key) != chain.key)
        name = None if chain.key == last else chain.name or "without a role"
        places.append(Place(id_, state, name, placed, placed == BY_SYNC, waits))
        last = chain.key
    told = replace(beside, items=tasks.as_told(list(beside.items)))
    return Sequence(plan, problem, Page(places, page.number, page.last, page.first, page.total), told, found)


def _steps(plan: Plan) -> Iterator[tuple[str, Chain, str]]:
    """The tasks of a plan, each with its chain and who placed a checkpoint before it, "" for none."""
    for chain in plan.chains:
        for placed, ids in zip(("", *chain.placed), chain.segments, strict=True):
            yield from ((id_, chain, "" if number else placed) for number, id_ in enumerate(ids))


@dataclass(frozen=True, slots=True)
class Shown:
    """A task as its page shows it."""

    state: TaskState
    path: str  # of its file, in the project
    waits_for: dict[str, TaskState | None]  # the tasks that it comes after, by id; None: there is no such task
    route: str  # where its context is, "" where there is none yet


def task(project: ViewedProject, name: str) -> Shown:
    """A task by its id or its title. TaskNotFound, UsageError, DamagedJournal."""
    tasks = Tasks(project)
    (state,) = tasks.as_told([tasks.get(name)])
    ids = [*dict.fromkeys((*state.task.after, *state.waits_for))]
    known = tasks.states(ids)
    path = str(state.path.relative_to(project.root)) if state.path and state.path.is_relative_to(project.root) else ""
    route = routing.known(project, state.task.context_route) if cleaning.is_valid(state.task.context_route) else None
    return Shown(state, path, {id_: known.get(id_) for id_ in ids}, route or "")


@dataclass(frozen=True, slots=True)
class Remembered:
    """The memory of an agent in pages, the most valuable items first; `agents`: who has one."""

    agents: tuple[str, ...]
    memory: Memory
    page: Page[Item]
    kinds: dict[str, int]


def remembered(project: ViewedProject, agent: str, kind: str, number: int) -> Remembered:
    """The memory of an agent; "" for the first that has one. DamagedJournal, UsageError."""
    agents = tuple(writing.agents(project))
    found = writing.load(project, agent or (agents[0] if agents else "main"))
    kinds = Counter(item.kind for item in found.items)
    return Remembered(agents, found, paged(found.best(kind or None), number), kinds)


def runs(project: ViewedProject, number: int) -> tuple[Page[RunState], RunList]:
    """The steps of all runs in pages, those that have not ended first."""
    found = list_runs(root=project)
    return paged(sorted(found.runs, key=lambda one: (one.ended, one.run, one.step)), number), found
