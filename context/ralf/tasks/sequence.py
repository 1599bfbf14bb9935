"""The order in which tasks are done, as chains with checkpoints between their tasks: pure, and in time n log n.

A plan lies over the tasks: what they depend on stays in their files. docs/sequence.md says by which rules it is made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import chain as joined, pairwise
from typing import NamedTuple

from ralf.errors import Cycle, UnknownDependency, UsageError
from ralf.tasks.model import Task, TaskState
from ralf.text.frozen import dataclass

SETTLED = ("completed", "cancelled")
"""Statuses of tasks for which nothing waits any more."""

BY_HAND, BY_TASK, BY_SYNC, BY_COUNT, BY_BUDGET = "by hand", "by task", "by sync", "by count", "by budget"
"""Who placed a checkpoint: a person in the plan, the task's `checkpoint: true`, a dependency on another chain, `every`,
`budget`. A person may say it in any other words, too.
"""

AUTOMATIC = (BY_TASK, BY_SYNC, BY_COUNT, BY_BUDGET)
"""Those that are placed anew whenever a plan is made; all others stay."""

GUESS = 20_000
"""Tokens that a task takes where no history says it."""

ENOUGH = 3
"""Completed tasks of which a median is believed."""

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Chain:
    """What one role or route does, one task after the other.

    role      the role of its tasks; else `route`: the route of its tasks; both "" for tasks that name neither
    segments  ids in their order; a checkpoint lies between two segments
    placed    by whom each of these checkpoints was placed, one less than there are segments
    tokens    what a task of it takes, as it was estimated for the budget; 0 where there is none
    guessed   whether no history says so
    """

    role: str = ""
    route: str = ""
    segments: tuple[tuple[str, ...], ...] = ()
    placed: tuple[str, ...] = ()
    tokens: int = 0
    guessed: bool = False

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

    every    tasks between two checkpoints; None: not counted
    budget   tokens between two checkpoints; None: not counted
    by_hand  whether a person has moved tasks: their order is kept
    notes    what whoever made it has to say
    """

    chains: tuple[Chain, ...] = ()
    every: int | None = None
    budget: int | None = None
    by_hand: bool = False
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __iter__(self) -> Iterator[str]:
        return joined.from_iterable(chain.tasks for chain in self.chains)

    def keys(self) -> dict[str, _Key]:
        """The chain of each task, by its key."""
        return {task: chain.key for chain in self.chains for task in chain.tasks}


class Estimates(NamedTuple):
    """Tokens that a task takes: of each role with enough history, and of any other task."""

    by_role: Mapping[str, int] = {}
    other: int = GUESS
    guessed: bool = True

    def of(self, role: str) -> tuple[int, bool]:
        """Tokens of a task of this role, and whether that is a guess."""
        return (self.by_role[role], False) if role in self.by_role else (self.other, self.guessed)


def learnt(states: Iterable[TaskState]) -> Estimates:
    """What completed tasks say of those to come: the median of each role, else of all, else a guess."""
    took: dict[str, list[int]] = defaultdict(list)
    for state in states:
        if state.task.status == "completed" and state.tokens > 0:
            took[state.task.role].append(state.tokens)
    by_role = {role: _middle(each) for role, each in sorted(took.items()) if role and len(each) >= ENOUGH}
    every = [*joined.from_iterable(took.values())]
    return Estimates(by_role, _middle(every), guessed=False) if len(every) >= ENOUGH else Estimates(by_role)


def _middle(numbers: Sequence[int]) -> int:
    """The lower median; `statistics` takes longer to load than all this."""
    return sorted(numbers)[(len(numbers) - 1) // 2]


def make_plan(
    tasks: Sequence[Task],
    *,
    every: int | None = None,
    budget: int | None = None,
    tokens: Estimates | None = None,
    before: Plan | None = None,
    running: Container[str] = (),
    without: Container[str] = (),
) -> Plan:
    """Put all open tasks into chains.

    tasks    all of the project, with settled ones: what a task depends on has to be among them
    every    how many tasks lie between two checkpoints
    budget   how many tokens lie between two checkpoints
    tokens   what a task takes; None: a guess
    before   the plan in force: what has begun keeps its place, and so does what a person did to it
    running  ids of tasks that somebody has
    without  ids of tasks that take no part: nothing waits for them by the plan

    Cycle where tasks wait for each other, UnknownDependency, and UsageError for a number below 1. The same arguments
    give the same plan.
    """
    for name, number in (("every", every), ("budget", budget)):
        if number is not None and (number < 1 or isinstance(number, bool)):
            raise UsageError(name, f"has to be 1 or more, not {number}")
    making = _Making(tasks, before or Plan(), without)
    rows = making.rows(running)
    placing = _Placing(making, rows, every, budget, tokens or Estimates())
    return Plan(tuple(map(placing.chain, sorted(rows, key=_place))), every, budget, making.by_hand)


def circle(error: CycleError, first: Container[str] = ()) -> tuple[str, ...]:
    """The path of tasks each of which waits for the next, from one back to itself: one of `first`, if it has one."""
    path: list[str] = error.args[1][:0:-1]
    at = next((place for place, id_ in enumerate(path) if id_ in first), path.index(min(path)))
    return (*path[at:], *path[:at], path[at])


def _place(key: _Key) -> tuple[int, str]:
    """Roles, then routes, then the chain of neither."""
    role, route = key
    return (0, role) if role else (1, route) if route else (2, "")


class _Making:
    """The tasks of a plan that is made.

    all   every task, by its id; `open`: those that take part, and for which others wait
    old   of the plan in force the chains, without segments of which nothing is left to do, and tasks that are gone
    """

    def __init__(self, tasks: Sequence[Task], before: Plan, without: Container[str]) -> None:
        self.before = before
        self.all = {task.id: task for task in tasks}
        self.open = {id_ for id_, one in self.all.items() if one.status not in SETTLED and id_ not in without}
        here = {id_ for id_ in self.all if id_ not in without}
        self.old = [
            (chain.key, [id_ for ids in chain.segments if self.open & {*ids} for id_ in ids if id_ in here])
            for chain in before.chains
        ]
        self.by_hand = before.by_hand and any(row for _, row in self.old)
        self._keys = {id_: key for key, row in self.old for id_ in row} if self.by_hand else {}

    def key(self, id_: str) -> _Key:
        """The chain of a task: where a person has put it, else by its role or route."""
        task = self.all[id_]
        return self._keys.get(id_) or ((task.role, "") if task.role else ("", task.route))

    def rows(self, running: Container[str]) -> dict[_Key, list[str]]:
        """The tasks of each chain in their order. What is settled stays where it is: behind the open task that it came
        after, or at the beginning.
        """
        rows: dict[_Key, list[str]] = defaultdict(list)
        behind: dict[str, list[str]] = defaultdict(list)
        for key, row in self.old:
            place = rows[key]
            for id_ in row:
                if id_ in self.open:
                    place = behind[id_]
                else:
                    place.append(id_)
        for id_ in self._order(running):
            rows[self.key(id_)] += [id_, *behind.get(id_, ())]
        return {key: row for key, row in rows.items() if self.open.intersection(row)}

    def _order(self, running: Container[str]) -> list[str]:
        """The open tasks in an order that holds all dependencies. Of those that may come next, what somebody is at
        comes first, then what ranks first: by priority, then age, then id.

        A person's order holds as far as no dependency contradicts it. Where one does, the first in the person's order
        that can comes next.
        """
        rank = {
            id_: (id_ not in running, -task.priority, not task.created, task.created, id_)
            for id_, task in self.all.items()
        }
        by_hand = [[id_ for id_ in row if id_ in self.open] for _, row in self.old] if self.by_hand else []
        turn = {id_: number for number, id_ in enumerate(joined.from_iterable(by_hand))}
        follows = {later: id_ for row in by_hand for id_, later in pairwise(row)}
        following = {id_: later for later, id_ in follows.items()}
        sorter = TopologicalSorter(self._needs())
        try:
            sorter.prepare()
        except CycleError as error:
            raise Cycle(circle(error)) from None
        free: list[tuple[bool, int, bool, str, str]] = []  # in their order
        behind: list[tuple[int, str]] = []  # those that a person has put behind one that is not placed yet
        able, placed = set[str](), dict[str, None]()
        while sorter.is_active():
            for id_ in sorter.get_ready():
                able.add(id_)
                if id_ in follows and follows[id_] not in placed:
                    heappush(behind, (turn[id_], id_))
                else:
                    heappush(free, rank[id_])
            one = heappop(free)[-1] if free else heappop(behind)[-1]
            if one in placed:
                continue
            placed[one] = None
            sorter.done(one)
            if (then := following.get(one)) in able and then is not None and then not in placed:
                heappush(free, rank[then])
        return [*placed]

    def _needs(self) -> dict[str, list[str]]:
        """The open tasks that each open task waits for."""
        needs = {}
        for id_ in sorted(self.open):
            after = self.all[id_].after
            for on in after:
                if on not in self.all:
                    from difflib import get_close_matches  # only for who names what is not there

                    raise UnknownDependency(id_, on, tuple(get_close_matches(on, sorted(self.all))))
            needs[id_] = [on for on in after if on in self.open]
        return needs


_TURNS = 4  # in which segments are taken out; then all that is settled is


class _Placing:
    """Places the checkpoints of each chain.

    by_hand  after which tasks a person has placed one, with their words; `synced`: the tasks before which a sync point
             lies in the plan in force
    """

    def __init__(
        self,
        making: _Making,
        rows: Mapping[_Key, Sequence[str]],
        every: int | None,
        budget: int | None,
        estimates: Estimates,
    ) -> None:
        self._making = making
        self._rows = rows
        self._every = every
        self._budget = budget
        self._estimates = estimates
        self._places = {id_: (key, number) for key, row in rows.items() for number, id_ in enumerate(row)}
        self._by_hand = dict[str, str]()
        self._synced = set[str]()
        for chain in making.before.chains:
            for (ids, following), who in zip(pairwise(chain.segments), chain.placed, strict=False):
                here = [id_ for id_ in ids if id_ in self._places]
                if who not in AUTOMATIC and here:
                    self._by_hand[here[-1]] = who
                elif who == BY_SYNC:
                    self._synced.update(following[:1])

    def chain(self, key: _Key) -> Chain:
        """One chain, whole. Segments of which nothing is left to do are taken out, which may move checkpoints."""
        tokens, guessed = self._tokens(key)
        row, is_open = self._rows[key], self._making.open.intersection
        for turn in range(_TURNS + 1):
            segments, placed = self._segments(key, row, tokens)
            if all(map(is_open, segments)):
                break
            left = joined.from_iterable(filter(is_open, segments))
            row = [id_ for id_ in left if turn < _TURNS - 1 or is_open((id_,))]
        return Chain(*key, tuple(map(tuple, segments)), tuple(placed), tokens, guessed)

    def _segments(self, key: _Key, row: Sequence[str], tokens: int) -> tuple[list[list[str]], list[str]]:
        segments, placed = [list[str]()], list[str]()
        awaited: dict[_Key, int] = {}
        for number, id_ in enumerate(row):
            syncs = self._syncs(id_, key, awaited)
            if number and (why := self._why(row[number - 1], len(segments[-1]), tokens, syncs)):
                segments.append([])
                placed.append(why)
            segments[-1].append(id_)
        return segments, placed

    def _tokens(self, key: _Key) -> tuple[int, bool]:
        """What a task takes. An estimate for this budget stays: a plan in force does not shift by itself."""
        if not self._budget:
            return 0, False
        before = self._making.before
        old = next((one for one in before.chains if one.key == key and one.tokens and not one.guessed), None)
        return (old.tokens, False) if old and before.budget == self._budget else self._estimates.of(key[0])

    def _why(self, last: str, count: int, tokens: int, syncs: bool) -> str:
        """Who places a checkpoint after a segment of so many tasks that ends so, if anybody does."""
        if last in self._by_hand:
            return self._by_hand[last]
        if self._making.all[last].checkpoint:
            return BY_TASK
        if syncs:
            return BY_SYNC
        if self._every and count >= self._every:
            return BY_COUNT
        return BY_BUDGET if self._budget and (count + 1) * tokens > self._budget else ""

    def _syncs(self, id_: str, key: _Key, awaited: dict[_Key, int]) -> bool:
        """Whether a task waits for a task of another chain for which no earlier one of its own chain waits."""
        found, making = False, self._making
        for needed in making.all[id_].after:
            if needed in making.open and id_ in making.open:
                other, number = self._places[needed]
                if other != key and number > awaited.get(other, -1):
                    awaited[other] = number
                    found = True
            elif id_ in self._synced and needed in making.all:
                found = found or making.key(needed) != key  # it was one when the plan was made, and stays
        return found
