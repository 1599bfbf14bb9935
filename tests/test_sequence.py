"""The order of tasks: chains, checkpoints, sync points, cycles, and what stays when a plan is made again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from examples import examples
from ralf.errors import Cycle, NotFound, UnknownDependency, UsageError
from ralf.tasks.model import Task
from ralf.tasks.sequence import Chain, Plan, make_plan

HELD = ("pending", "failed")


def task(name: str, *after: str, **fields: object) -> Task:
    made: Task = replace(Task(id=name, title=f"Do {name}", after=after), **fields)
    return made


def tasks(names: str, **fields: object) -> list[Task]:
    return [task(name, **fields) for name in names.split()]


def drawn(plan: Plan) -> list[str]:
    """Each chain as `name: a b | c`."""
    return [f"{chain.name}: {' | '.join(' '.join(ids) for ids in chain.segments)}" for chain in plan.chains]


# ---- the order ----


def test_of_tasks_with_one_priority_the_oldest_comes_first_then_the_lowest_id() -> None:
    known = [
        task("z", created="2026-01-02T00:00:00Z"),
        task("y", created="2026-01-01T00:00:00Z"),
        task("b"),
        task("a"),
    ]
    assert drawn(make_plan(known)) == [": y z a b"]


def test_roles_have_chains_of_their_own_then_routes_then_all_others_share_one() -> None:
    known = [task("a", role="r"), task("b", role="r", route="x"), task("c", route="r"), task("d"), task("e")]
    plan = make_plan(known)
    assert [(chain.role, chain.route, chain.segments) for chain in plan.chains] == [
        ("r", "", (("a", "b"),)),
        ("", "r", (("c",),)),
        ("", "", (("d", "e"),)),
    ]


# ---- what cannot be ordered ----


def test_a_cycle_is_named_task_by_task() -> None:
    known = [task("A", "B"), task("B", "C"), task("C", "A"), task("D", "A"), task("E")]
    with pytest.raises(Cycle, match="A → B → C → A") as caught:
        make_plan(known)
    assert caught.value.path == ("A", "B", "C", "A")
    assert caught.value.exit_status == 2
    assert isinstance(caught.value, UsageError)


def test_an_unknown_dependency_is_an_error_with_candidates() -> None:
    known = [task("TASK-7k3q"), task("TASK-zzzz"), task("TASK-b", "TASK-7k3p")]
    with pytest.raises(UnknownDependency, match=r"TASK-b: waits for TASK-7k3p.*closest: TASK-7k3q") as caught:
        make_plan(known)
    assert caught.value.closest[0] == "TASK-7k3q"
    assert isinstance(caught.value, NotFound)


# ---- checkpoints ----


def test_a_checkpoint_lies_after_every_n_tasks_and_none_after_the_last() -> None:
    assert drawn(make_plan(tasks("a b c d e f"), every=2)) == [": a b | c d | e f"]
    assert drawn(make_plan(tasks("a b c d e f g"), every=3)) == [": a b c | d e f | g"]
    assert drawn(make_plan(tasks("a b"), every=5)) == [": a b"]


def test_a_checkpoint_lies_before_the_task_that_would_pass_the_budget() -> None:
    assert drawn(make_plan(tasks("a b c d e"), budget=50_000, tokens={"": 20_000})) == [": a b | c d | e"]
    assert drawn(make_plan(tasks("a b c d e"), budget=40_000, tokens={"": 20_000})) == [": a b | c d | e"]
    assert drawn(make_plan(tasks("a b c"), budget=1, tokens={"": 20_000})) == [": a | b | c"]
    assert drawn(make_plan(tasks("a b c"), budget=50_000)) == [": a b | c"]


# ---- sync points ----


def test_a_task_that_waits_for_another_chain_begins_after_a_sync_point() -> None:
    known = [*tasks("a1 a2", role="a"), *tasks("b1", role="b"), task("b2", "a2", role="b")]
    plan = make_plan(known)
    assert drawn(plan) == ["a: a1 a2", "b: b1 | b2"]
    assert plan.chains[1].placed == ("by sync",)


# ---- a plan that is made again ----


def test_a_checkpoint_that_a_person_placed_stays_behind_its_task() -> None:
    plan = Plan((Chain("", "", (("a", "b"), ("c", "d")), ("please look",)),))
    again = make_plan([*tasks("a b c d"), task("new", priority=9)], before=plan)
    assert drawn(again) == [": new a b | c d"]
    assert again.chains[0].placed == ("please look",)
    assert drawn(make_plan(tasks("a b c d"), every=1, before=plan)) == [": a | b | c | d"]
    assert make_plan(tasks("a b c d"), every=1, before=plan).chains[0].placed[1] == "please look"
    assert drawn(make_plan(tasks("a b"), before=plan)) == [": a b"]


# ---- properties ----

NAMES = [f"T{number}" for number in range(12)]


@st.composite
def projects(draw: st.DrawFn) -> list[Task]:
    """Tasks without a cycle: each depends on some before it in a hidden order."""
    names = draw(st.permutations(NAMES[: draw(st.integers(0, len(NAMES)))]))
    made = []
    for number, name in enumerate(names):
        after = draw(st.lists(st.sampled_from(names[:number]), max_size=3)) if number else []
        made.append(
            Task(
                id=name,
                after=tuple(after),
                priority=draw(st.integers(1, 3)),
                role=draw(st.sampled_from(["", "", "x", "y"])),
                route=draw(st.sampled_from(["", "r"])),
                created=draw(st.sampled_from(["", "2026-01-01", "2026-01-02"])),
                checkpoint=draw(st.integers(0, 4)) == 0,
                status=draw(st.sampled_from(["pending", "pending", "failed", "completed", "cancelled"])),
            )
        )
    return draw(st.permutations(made))


OPTIONS = st.tuples(st.sampled_from([None, 1, 2, 3]), st.sampled_from([None, 20_000, 45_000]))
WORDS = st.sampled_from(["by hand", "by task", "by sync", "by count", "look"])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any plan, as a person may have written it."""
    names = draw(st.permutations([*NAMES, "gone"]))
    chains = []
    for role, route in draw(st.lists(st.sampled_from([("x", ""), ("y", ""), ("", "r"), ("", "")]), unique=True)):
        segments = []
        for _ in range(draw(st.integers(1, 3))):
            size = draw(st.integers(1, 4))
            segments.append(tuple(names[:size]))
            names = names[size:]
        segments = [each for each in segments if each]
        if segments:
            placed = tuple(draw(WORDS) for _ in segments[1:])
            chains.append(Chain(role, route, tuple(segments), placed))
    every, budget = draw(OPTIONS)
    return Plan(tuple(chains), every, budget)


RUNNING = st.frozensets(st.sampled_from(NAMES), max_size=3)


@pytest.mark.ci
@settings(max_examples=examples(150), deadline=None)
@given(projects(), OPTIONS, st.none() | plans(), RUNNING)
def test_every_dependency_holds_and_every_open_task_is_there_once(
    known: list[Task], options: tuple[int | None, int | None], before: Plan | None, running: frozenset[str]
) -> None:
    every, budget = options
    plan = make_plan(known, every=every, budget=budget, before=before, running=running)
    order = [*plan]
    assert len(set(order)) == len(order)
    assert {each.id for each in known if each.status in HELD} <= set(order) <= {each.id for each in known}
    states = {each.id: each for each in known}
    for chain in plan.chains:
        row = chain.tasks
        assert len(chain.placed) == len(chain.segments) - 1
        for ids in chain.segments:
            assert any(states[each].status in HELD for each in ids)
        for number, each in enumerate(row):
            if states[each].status in HELD:
                assert not {one for one in states[each].after if states[one].status in HELD} & set(row[number:])
            if states[each].checkpoint and number < len(row) - 1:
                assert each in {ids[-1] for ids in chain.segments}
        if every:
            assert max(map(len, chain.segments)) <= every
