"""The order in which tasks are done, as chains with checkpoints between their tasks: pure, and in time n log n.

A plan lies over the tasks: what they depend on stays in their files. docs/sequence.md says by which rules it is made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from heapq import heappop, heappush, nlargest
from itertools import chain as joined, pairwise
from operator import eq
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


# ---- what a plan is ----


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
    def key(self) -> tuple[str, str]:
        """What tells it from all others."""
        return self.role, self.route

    @property
    def tasks(self) -> tuple[str, ...]:
        """The ids of all its tasks."""
        return tuple(joined.from_iterable(self.segments))


class Place(NamedTuple):
    """Where a task is in a plan: numbers from 0, of its chain, within the chain, and of its segment."""

    chain: int
    number: int
    segment: int


class _Index(NamedTuple):
    places: dict[str, Place]
    rows: list[tuple[str, ...]]


class _Indexed:
    """Has a slot for what is made of the chains when it is first asked for: no field, and no part of the value."""

    __slots__ = ("_made",)

    _made: _Index


@dataclass(frozen=True, slots=True)
class Plan(_Indexed):
    """The chains of a project.

    every    tasks between two checkpoints; None: not counted
    budget   tokens between two checkpoints; None: not counted
    by_hand  whether a person has moved tasks: their order is kept
    notes    what whoever made it has to say

    `holds`, where a method has it, are the ids that can keep others waiting: those that are not settled. All others are
    passed over. None: every id.
    """

    chains: tuple[Chain, ...] = ()
    every: int | None = None
    budget: int | None = None
    by_hand: bool = False
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def _index(self) -> _Index:
        try:
            return self._made
        except AttributeError:
            places, rows = dict[str, Place](), list[tuple[str, ...]]()
        for which, chain in enumerate(self.chains):
            number = 0
            for segment, ids in enumerate(chain.segments):
                for task in ids:
                    places[task] = Place(which, number, segment)
                    number += 1
            rows.append(chain.tasks)
        made = _Index(places, rows)
        object.__setattr__(self, "_made", made)
        return made

    def __contains__(self, task: str) -> bool:
        return task in self._index.places

    def __iter__(self) -> Iterator[str]:
        return joined.from_iterable(self._index.rows)

    def place(self, task: str) -> Place | None:
        """Where the task is; None where the plan does not name it."""
        return self._index.places.get(task)

    def chain(self, task: str) -> Chain | None:
        """The chain of a task."""
        place = self.place(task)
        return None if place is None else self.chains[place.chain]

    def waits(self, task: str, holds: Container[str] | None = None) -> tuple[str, ...]:
        """The ids that must be completed before the task by the plan: the one before it in its chain, or none."""
        return next(((each,) for each in self.earlier(task) if holds is None or each in holds), ())

    def all_waits(self, holds: Container[str] | None = None) -> dict[str, str]:
        """For each task that waits by the plan the id that it waits for: `waits` for all of them, in linear time."""
        found = {}
        for row in self._index.rows:
            before = ""
            for task in row:
                if before:
                    found[task] = before
                if holds is None or task in holds:
                    before = task
        return found

    def earlier(self, task: str) -> Iterator[str]:
        """The ids before the task in its chain, the nearest first."""
        place = self.place(task)
        if place is not None:
            row = self._index.rows[place.chain]
            yield from (row[number] for number in range(place.number - 1, -1, -1))

    def later(self, task: str) -> Iterator[str]:
        """The ids after the task in its chain, the nearest first."""
        place = self.place(task)
        if place is not None:
            row = self._index.rows[place.chain]
            yield from (row[number] for number in range(place.number + 1, len(row)))

    def checkpoint_before(self, task: str, holds: Container[str] | None = None) -> str:
        """Who placed a checkpoint between the task and the one that it waits for; "" where there is none."""
        return next((self._between(before, task) for before in self.waits(task, holds)), "")

    def checkpoint_after(self, task: str, holds: Container[str] | None = None) -> str:
        """Who placed a checkpoint between the task and the next one of its chain; "" where there is none.

        If there is one, whoever completes the task hands over and ends.
        """
        following = (each for each in self.later(task) if holds is None or each in holds)
        return next((self._between(task, each) for each in following), "")

    def _between(self, task: str, later: str) -> str:
        places = self._index.places
        first, last = places[task], places[later]
        return "" if first.segment == last.segment else self.chains[first.chain].placed[last.segment - 1]


# ---- what a task takes ----


class Estimates(NamedTuple):
    """Tokens that a task takes: of each role with enough history, and of any other task."""

    by_role: Mapping[str, int]
    other: int
    guessed: bool

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
    enough = len(every) >= ENOUGH
    return Estimates(by_role, _middle(every) if enough else GUESS, not enough)


def _middle(numbers: Sequence[int]) -> int:
    """The lower median; `statistics` takes longer to load than all this."""
    return sorted(numbers)[(len(numbers) - 1) // 2]


def _estimates(tokens: Estimates | Mapping[str, int] | int | None) -> Estimates:
    if tokens is None:
        return Estimates({}, GUESS, guessed=True)
    if isinstance(tokens, Estimates):
        return tokens
    if isinstance(tokens, int):
        return Estimates({}, tokens, guessed=False)
    other = tokens.get("")
    return Estimates(tokens, GUESS if other is None else other, other is None)


# ---- making one ----


def make_plan(
    tasks: Sequence[Task],
    *,
    every: int | None = None,
    tokens: Estimates | Mapping[str, int] | int | None = None,
    budget: int | None = None,
    before: Plan | None = None,
    running: Container[str] = (),
    without: Container[str] = (),
) -> Plan:
    """Put all open tasks into chains.

    tasks    all of the project, with settled ones: what a task depends on has to be among them
    every    how many tasks lie between two checkpoints
    tokens   what a task takes: by role ("" for all others), or one number for all; None: a guess
    budget   how many tokens lie between two checkpoints
    before   the plan in force: what has begun keeps its place, and so does what a person did to it
    running  ids of tasks that somebody has
    without  ids of tasks that take no part: nothing waits for them by the plan

    Cycle where tasks wait for each other, UnknownDependency, and UsageError for a number below 1. The same arguments
    give the same plan.
    """
    for name, number in (("every", every), ("budget", budget)):
        if number is not None and (number < 1 or isinstance(number, bool)):
            raise UsageError(name, f"has to be 1 or more, not {number}")
    work = _Work(tasks, Plan() if before is None else before, running, without)
    rows = work.rows()
    placing = _Placing(work, rows, every, budget, _estimates(tokens))
    return Plan(tuple(placing.chain(key) for key in sorted(rows, key=_chain_order)), every, budget, work.by_hand)


def deadlock(plan: Plan, tasks: Sequence[Task]) -> tuple[str, ...]:
    """The path of tasks that wait for each other, because a dependency was added that the plan contradicts; () where
    there are none. A plan that is made anew has none.
    """
    held = {task.id: task for task in tasks if task.status not in SETTLED}
    before = plan.all_waits(held)
    needs = {name: [each for each in task.after if each in held] for name, task in held.items()}
    for name, each in before.items():
        if name in needs:
            needs[name].append(each)
    return _cycle(needs)


_Key = tuple[str, str]


def _key_of(task: Task) -> _Key:
    return (task.role, "") if task.role else ("", task.route)


def _chain_order(key: _Key) -> tuple[int, str]:
    """Roles, then routes, then the chain of neither."""
    role, route = key
    return (0, role) if role else (1, route) if route else (2, "")


class _Work:
    """The tasks of a plan that is made.

    all    every task, by its id
    nodes  the open ones that take part, by rank; their numbers are ranks
    old    of the plan in force the chains, without segments of which nothing is left to do, and tasks that are gone
    """

    def __init__(self, tasks: Sequence[Task], before: Plan, running: Container[str], without: Container[str]) -> None:
        self.all = {task.id: task for task in tasks}
        self.before = before
        self.nodes = sorted((each for each in self.all.values() if _takes_part(each, without)), key=_rank)
        self._number = {task.id: number for number, task in enumerate(self.nodes)}
        self._running = running
        self._old = list(_still_there(before, self.all, without))
        self.by_hand = before.by_hand and any(row for _, row in self._old)
        kept = [(each, key) for key, row in self._old for each in row] if self.by_hand else []
        self._keys = dict(kept)

    def is_open(self, task: str) -> bool:
        """Whether others wait for it."""
        return task in self._number

    def key(self, task: str) -> _Key:
        """The chain of a task: where a person has put it, else by its role or route."""
        return self._keys.get(task) or _key_of(self.all[task])

    def rows(self) -> dict[_Key, list[str]]:
        """The tasks of each chain in their order. What is settled stays where it is: behind the open task that it came
        after, or at the beginning.
        """
        rows: dict[_Key, list[str]] = defaultdict(list)
        behind: dict[str, list[str]] = defaultdict(list)
        for key, row in self._old:
            place = rows[key]
            for each in row:
                if each in self._number:
                    place = behind[each]
                else:
                    place.append(each)
        for number in self._order():
            each = self.nodes[number].id
            rows[self.key(each)] += [each, *behind.get(each, ())]
        return {key: row for key, row in rows.items() if any(map(self.is_open, row))}

    def _order(self) -> list[int]:
        """The numbers of all nodes in an order that holds all dependencies. Of those that may come next, what somebody
        is at comes first, then what ranks first.

        A person's order holds as far as no dependency contradicts it. Where one does, the first in the person's order
        that can comes next.
        """
        count = len(self.nodes)
        needs, out = [0] * count, [list[int]() for _ in range(count)]
        for first, last in self._dependencies():
            needs[last] += 1
            out[first].append(last)
        following, follows = self._persons_order()
        turn = {each: number for number, each in enumerate(following)}
        order, done = list[int](), [False] * count
        free = [each for each in range(count) if not needs[each] and not follows[each]]  # what is sorted is a heap
        able = [(turn[each], each) for each in following if not needs[each] and follows[each]]

        def put(one: int) -> None:
            order.append(one)
            done[one] = True
            for each in out[one]:
                needs[each] -= 1
                if not needs[each] and follows[each]:
                    heappush(able, (turn[each], each))
                elif not needs[each]:
                    heappush(free, each)
            then = following.get(one)
            if then is not None:
                follows[then] = False
                if not needs[then]:
                    heappush(free, then)

        for one in [each for each in range(count) if not needs[each] and self.nodes[each].id in self._running]:
            put(one)
        while free or able:
            one = heappop(free) if free else heappop(able)[1]
            if not done[one]:
                put(one)
        if len(order) < count:
            self._refuse_cycle(self.nodes[each].id for each in range(count) if not done[each])
        return order

    def _dependencies(self) -> Iterator[tuple[int, int]]:
        """Pairs of open tasks, of which the first comes before the second."""
        for last, task in enumerate(self.nodes):
            for needed in dict.fromkeys(task.after):
                first = self._number.get(needed)
                if first is not None:
                    yield first, last
                elif needed not in self.all:
                    raise UnknownDependency(task.id, needed, _closest(needed, self.all))

    def _persons_order(self) -> tuple[dict[int, int | None], list[bool]]:
        """The nodes that a person has put in an order, in it, each with the one that follows it in its chain, if one
        does; and of all nodes whether they follow one.
        """
        following, follows = dict[int, int | None](), [False] * len(self.nodes)
        for _, row in self._old if self.by_hand else ():
            numbers = [self._number[each] for each in row if each in self._number]
            for first, last in pairwise(numbers):
                following[first], follows[last] = last, True
            following.update((each, None) for each in numbers[-1:])
        return following, follows

    def _refuse_cycle(self, left: Iterable[str]) -> None:
        known = dict.fromkeys(left)
        raise Cycle(_cycle({each: [one for one in self.all[each].after if one in known] for each in known}))


def _takes_part(task: Task, without: Container[str]) -> bool:
    return task.status not in SETTLED and task.id not in without


def _rank(task: Task) -> tuple[int, bool, str, str]:
    """Priority, then age, then id."""
    return -task.priority, not task.created, task.created, task.id


def _still_there(plan: Plan, known: Mapping[str, Task], without: Container[str]) -> Iterator[tuple[_Key, list[str]]]:
    """The chains of a plan without the segments of which nothing is left to do, and without tasks that are gone."""
    for chain in plan.chains:
        row = list[str]()
        for ids in chain.segments:
            here = [each for each in ids if each in known and each not in without]
            if any(known[each].status not in SETTLED for each in here):
                row += here
        yield chain.key, row


def _closest(name: str, known: Mapping[str, Task]) -> tuple[str, ...]:
    """Ids that resemble one. Only those with the most characters in common are compared, for that takes long."""
    wanted = name.lower()
    alike = {each.lower(): each for each in sorted(known) if abs(len(each) - len(name)) <= 2}
    some = nlargest(100, alike, key=lambda each: sum(map(eq, each, wanted)) + sum(map(eq, each[::-1], wanted[::-1])))
    from difflib import get_close_matches  # only for who names what is not there

    return tuple(alike[each] for each in get_close_matches(wanted, some, n=3, cutoff=0.6))


def _cycle(needs: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A path of tasks each of which needs the next, from one back to itself, and none twice else; () where there is
    none. Every name that is needed is a key.
    """
    waiting = {name: len(each) for name, each in needs.items()}
    needed_by: dict[str, list[str]] = defaultdict(list)
    for name, each in needs.items():
        for one in each:
            needed_by[one].append(name)
    able = [name for name, count in waiting.items() if not count]
    while able:
        one = able.pop()
        del waiting[one]
        for name in needed_by[one]:
            waiting[name] -= 1
            if not waiting[name]:
                able.append(name)
    if not waiting:
        return ()
    seen: dict[str, int] = {}
    path = list[str]()
    at = min(waiting)
    while at not in seen:
        seen[at] = len(path)
        path.append(at)
        at = min(each for each in needs[at] if each in waiting)
    path = path[seen[at] :]
    first = path.index(min(path))
    return (*path[first:], *path[:first], path[first])


# ---- checkpoints ----

_TURNS = 4  # in which segments are taken out; then all that is settled is


class _Placing:
    """Places the checkpoints of each chain."""

    def __init__(
        self, work: _Work, rows: Mapping[_Key, Sequence[str]], every: int | None, budget: int | None, known: Estimates
    ) -> None:
        self._work = work
        self._rows = rows
        self._every = every
        self._budget = budget
        self._estimates = known
        self._numbers = {each: number for row in rows.values() for number, each in enumerate(row)}
        self._chains = {each: key for key, row in rows.items() for each in row}
        self._by_hand, self._synced = _placed_before(work.before, self._numbers)

    def chain(self, key: _Key) -> Chain:
        """One chain, whole. Segments of which nothing is left to do are taken out, which may move checkpoints."""
        tokens, guessed = self._tokens(key)
        row, is_open = self._rows[key], self._work.is_open
        for turn in range(_TURNS + 1):
            segments, placed = self._segments(key, row, tokens)
            whole = [any(map(is_open, ids)) for ids in segments]
            if all(whole):
                break
            left = (ids for ids, has_open in zip(segments, whole, strict=True) if has_open)
            row = [each for each in joined.from_iterable(left) if turn < _TURNS - 1 or is_open(each)]
        role, route = key
        return Chain(role, route, tuple(map(tuple, segments)), tuple(placed), tokens, guessed)

    def _segments(self, key: _Key, row: Sequence[str], tokens: int) -> tuple[list[list[str]], list[str]]:
        segments, placed = [list[str]()], list[str]()
        awaited: dict[_Key, int] = {}
        for number, each in enumerate(row):
            syncs = self._syncs(each, key, awaited)
            why = self._why(row[number - 1], segments[-1], tokens, syncs) if number else ""
            if why:
                segments.append([])
                placed.append(why)
            segments[-1].append(each)
        return segments, placed

    def _tokens(self, key: _Key) -> tuple[int, bool]:
        """What a task takes. An estimate for this budget stays: a plan in force does not shift by itself."""
        if not self._budget:
            return 0, False
        if self._work.before.budget == self._budget:
            for chain in self._work.before.chains:
                if chain.key == key and chain.tokens and not chain.guessed:
                    return chain.tokens, False
        return self._estimates.of(key[0])

    def _why(self, last: str, segment: Sequence[str], tokens: int, syncs: bool) -> str:
        """Who places a checkpoint after the last task of a segment, if anybody does."""
        if last in self._by_hand:
            return self._by_hand[last]
        if self._work.all[last].checkpoint:
            return BY_TASK
        if syncs:
            return BY_SYNC
        if self._every and len(segment) >= self._every:
            return BY_COUNT
        if self._budget and (len(segment) + 1) * tokens > self._budget:
            return BY_BUDGET
        return ""

    def _syncs(self, each: str, key: _Key, awaited: dict[_Key, int]) -> bool:
        """Whether a task waits for a task of another chain for which no earlier one of its own chain waits."""
        found = False
        task = self._work.all[each]
        for needed in task.after:
            if self._work.is_open(needed) and task.status not in SETTLED:
                other, number = self._chains[needed], self._numbers[needed]
                if other != key and number > awaited.get(other, -1):
                    awaited[other] = number
                    found = True
            elif each in self._synced and needed in self._work.all:
                found = found or self._work.key(needed) != key  # it was one when the plan was made, and stays
        return found


def _placed_before(plan: Plan, known: Collection[str]) -> tuple[dict[str, str], set[str]]:
    """Of the plan in force: after which tasks a person has placed a checkpoint, with their words; and the tasks before
    which a sync point lies.
    """
    by_hand, synced = dict[str, str](), set[str]()
    for chain in plan.chains:
        for ids, following, who in zip(chain.segments, chain.segments[1:], chain.placed, strict=False):
            if who not in AUTOMATIC:
                by_hand.update((each, who) for each in [*filter(known.__contains__, ids)][-1:])
            elif who == BY_SYNC:
                synced.update(following[:1])
    return by_hand, synced
