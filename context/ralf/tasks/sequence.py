"""The order in which tasks are done, as chains with checkpoints between their tasks: pure, and in time n log n.

A plan lies over the tasks: what they depend on stays in their files. docs/tasks.md says by which rules it is made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import chain as joined, pairwise

from ralf.errors import Cycle, UnknownDependency, UsageError
from ralf.tasks.model import Task, TaskState
from ralf.text.frozen import dataclass, field

SETTLED = ("completed", "cancelled")
"""Statuses of tasks for which nothing waits any more."""

BY_HAND, BY_TASK, BY_SYNC, BY_COUNT = "by hand", "by task", "by sync", "by count"
"""Who placed a checkpoint: a person in the plan (in any other words, too), the task's `checkpoint: true`, a dependency
on another chain, `every` or `budget`.
"""

AUTOMATIC = (BY_TASK, BY_SYNC, BY_COUNT)
"""Those that are placed anew whenever a plan is made; all others stay."""

GUESS = 20_000
"""Tokens that a task takes where no history says it."""

_ENOUGH = 3  # completed tasks of which a median is believed

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Chain:
    """What one role or route does, one task after the other.

    role      the role of its tasks; else `route`: the route of its tasks; both "" for tasks that name neither
    segments  ids in their order; a checkpoint lies between two segments
    placed    by whom each of these checkpoints was placed, one less than there are segments
    """

    role: str = ""
    route: str = ""
    segments: tuple[tuple[str, ...], ...] = ()
    placed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its role or route; "" for the chain of the tasks that name neither."""
        return self.role or self.route

    @property
    def key(self) -> _Key:
        """What tells it from all others."""
        return self.role, self.route

    @property
    def tasks(self) -> tuple[str, ...]:
        """The ids of all its tasks."""
        return tuple(joined.from_iterable(self.segments))


@dataclass(frozen=True, slots=True)
class Plan:
    """The chains of a project; to go through it gives the ids of its tasks.

    every   tasks between two checkpoints; None: not counted
    budget  tokens between two checkpoints; None: not counted
    notes   what whoever made it has to say
    """

    chains: tuple[Chain, ...] = ()
    every: int | None = None
    budget: int | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __iter__(self) -> Iterator[str]:
        return joined.from_iterable(chain.tasks for chain in self.chains)

    def keys(self) -> dict[str, _Key]:
        """The chain of each task, by its key."""
        return {task: chain.key for chain in self.chains for task in chain.tasks}


def tokens_of(states: Iterable[TaskState]) -> dict[str, int]:
    """Tokens that a completed task took, the median of each role, and at "" of all; none where fewer than 3 say it."""
    took: dict[str, list[int]] = defaultdict(list)
    for state in states:
        if state.task.status == "completed" and state.tokens > 0:
            for role in {state.task.role, ""}:
                took[role].append(state.tokens)
    return {role: sorted(each)[(len(each) - 1) // 2] for role, each in took.items() if len(each) >= _ENOUGH}


def make_plan(
    tasks: Sequence[Task],
    *,
    every: int | None = None,
    budget: int | None = None,
    tokens: Mapping[str, int] | None = None,
    before: Plan | None = None,
    running: Container[str] = (),
    without: Container[str] = (),
) -> Plan:
    """Put all open tasks into chains.

    tasks    all of the project, with settled ones: what a task depends on has to be among them
    every    how many tasks lie between two checkpoints
    budget   how many tokens lie between two checkpoints
    tokens   what a task takes, as `tokens_of` says; a guess where it does not
    before   the plan in force: its order and its checkpoints by hand stay
    running  ids of tasks that somebody has
    without  ids of tasks that take no part: nothing waits for them by the plan

    Cycle where tasks wait for each other, UnknownDependency, and UsageError for a number below 1. The same arguments
    give the same plan.
    """
    for name, number in (("every", every), ("budget", budget)):
        if number is not None and (number < 1 or isinstance(number, bool)):
            raise UsageError(name, f"has to be 1 or more, not {number}")
    known = {task.id: task for task in tasks if task.id not in without}
    pending = {id_ for id_, task in known.items() if task.status not in SETTLED}
    _check_dependencies([*map(known.__getitem__, sorted(pending))], {task.id for task in tasks})
    old = before or Plan()
    rows: dict[_Key, list[str]] = defaultdict(list)
    for id_ in joined.from_iterable(ids for chain in old.chains for ids in chain.segments if pending & {*ids}):
        if id_ in known:
            rows[_key(known[id_])].append(id_)
    ordered = _ordered(known, pending, [*rows.values()], running)
    rows.clear()
    for id_ in ordered:
        rows[_key(known[id_])].append(id_)
    by_hand = {ids[-1]: who for one in old.chains for ids, who in zip(one.segments, one.placed, strict=False)
               if who not in AUTOMATIC}  # fmt: skip
    takes = tokens or {}

    def most(role: str) -> int:
        count = budget and max(1, budget // (takes.get(role) or takes.get("", GUESS)))
        return min(filter(None, (every, count)), default=len(known))

    places = {id_: (key, number) for key, row in rows.items() for number, id_ in enumerate(row)}
    chains = [
        _chain(key, rows[key], most(key[0]), known, pending, places, by_hand)
        for key in sorted(rows, key=lambda key: (not key[0], not key[1], key))
    ]
    return Plan(tuple(chain for chain in chains if chain.segments), every, budget)


def _key(task: Task) -> _Key:
    return (task.role, "") if task.role else ("", task.route)


def _check_dependencies(tasks: Iterable[Task], ids: Collection[str]) -> None:
    for task in tasks:
        for on in task.after:
            if on not in ids:
                from difflib import get_close_matches  # only for who names what is not there

                raise UnknownDependency(task.id, on, tuple(get_close_matches(on, sorted(ids))))


def _ordered(
    known: Mapping[str, Task], pending: Container[str], rows: Sequence[Sequence[str]], running: Container[str]
) -> list[str]:
    """The tasks of the rows and all pending ones, in an order that holds all dependencies.

    Of those that may come next, what somebody is at comes first, then what ranks first: by priority, then age, then id.
    A row keeps its order, unless dependencies contradict one of the rows: then a task comes as soon as it can.
    """
    needs = {
        id_: {on for on in task.after if on in pending and id_ in pending}
        for id_, task in known.items()
        if id_ in pending
    }
    rank: dict[str, tuple[object, ...]] = {
        id_: (id_ not in running, -known[id_].priority, not known[id_].created, known[id_].created, id_)
        for id_ in needs
    }
    for row in rows:
        worst: tuple[object, ...] = (-1,)
        for number, id_ in enumerate(row):
            worst = max(worst, rank.get(id_, (-1,)))  # so that a task never ranks before those that it comes after
            rank[id_] = (*worst, number)
            needs.setdefault(id_, set())
    follows = {id_: earlier for row in rows for earlier, id_ in pairwise(row)}
    for more in (follows, {}):
        sorter = TopologicalSorter({id_: {*on, *([more[id_]] if id_ in more else ())} for id_, on in needs.items()})
        try:
            sorter.prepare()
            break
        except CycleError as error:
            found = error
    else:
        raise Cycle(circle(found))
    order, heap = list[str](), list[tuple[tuple[object, ...], str]]()
    while sorter.is_active():
        for id_ in sorter.get_ready():
            heappush(heap, (rank[id_], id_))
        order.append(heappop(heap)[1])
        sorter.done(order[-1])
    return order


def circle(error: CycleError, first: Container[str] = ()) -> tuple[str, ...]:
    """The path of tasks each of which waits for the next, from one back to itself: one of `first`, if it has one."""
    path: list[str] = error.args[1][:0:-1]
    at = next((place for place, id_ in enumerate(path) if id_ in first), path.index(min(path)))
    return (*path[at:], *path[:at], path[at])


def _chain(
    key: _Key,
    row: Sequence[str],
    every: int,
    known: Mapping[str, Task],
    pending: set[str],
    places: Mapping[str, tuple[_Key, int]],
    by_hand: Mapping[str, str],
) -> Chain:
    """A chain with its checkpoints. Segments of which nothing is left to do are taken out."""
    segments, placed = list[list[str]](), list[str]()
    awaited: dict[_Key, int] = {}  # of each other chain, up to where an earlier task has waited for it
    for id_ in row:
        waits = [places[on] for on in known[id_].after if on in pending and id_ in pending and places[on][0] != key]
        syncs = any(number > awaited.get(other, -1) for other, number in waits)
        awaited |= {other: max(number, awaited.get(other, -1)) for other, number in sorted(waits)}
        last = segments[-1][-1] if segments else ""
        who = last and (
            by_hand.get(last)
            or (known[last].checkpoint and BY_TASK)
            or (syncs and BY_SYNC)
            or (len(segments[-1]) >= every and BY_COUNT)
        )
        if who:
            placed.append(str(who))
        if who or not segments:
            segments.append([])
        segments[-1].append(id_)
    if all(map(pending.intersection, segments)):
        return Chain(*key, tuple(map(tuple, segments)), tuple(placed))
    left = [*joined.from_iterable(filter(pending.intersection, segments))]
    return _chain(key, left, every, known, pending, places, by_hand)
