"""The order of tasks: chains, checkpoints, sync points, cycles, and what stays when a plan is made again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from clocks import within
from examples import examples
from ralf.errors import Cycle, NotFound, UnknownDependency, UsageError
from ralf.tasks.model import Task, TaskState
from ralf.tasks.sequence import Chain, Plan, make_plan, tokens_of

HELD = ("pending", "failed")


def task(name: str, *after: str, **fields: object) -> Task:
    made: Task = replace(Task(id=name, title=f"Do {name}", after=after), **fields)
    return made


def tasks(names: str, **fields: object) -> list[Task]:
    return [task(name, **fields) for name in names.split()]


def drawn(plan: Plan) -> list[str]:
    """Each chain as `name: a b | c`."""
    return [f"{chain.name}: {' | '.join(' '.join(ids) for ids in chain.segments)}" for chain in plan.chains]


def with_status(status: str, names: str, all_: Sequence[Task]) -> list[Task]:
    return [replace(each, status=status) if each.id in names.split() else each for each in all_]


# ---- the order ----


def test_what_a_task_depends_on_comes_before_it() -> None:
    assert drawn(make_plan([task("a", "b"), task("b", "c"), task("c")])) == [": c b a"]


def test_of_tasks_that_may_come_next_the_highest_priority_does() -> None:
    known = [task("low", priority=1), task("high", priority=10), task("some"), task("needs", "low", priority=10)]
    assert drawn(make_plan(known)) == [": high some low needs"]


def test_of_tasks_with_one_priority_the_oldest_comes_first_then_the_lowest_id() -> None:
    known = [
        task("z", created="2026-01-02T00:00:00Z"),
        task("y", created="2026-01-01T00:00:00Z"),
        task("b"),
        task("a"),
    ]
    assert drawn(make_plan(known)) == [": y z a b"]


def test_the_order_in_which_tasks_are_given_changes_nothing() -> None:
    known = [*tasks("d e f", role="x"), task("a", "d"), task("b", "a", "e"), task("c", priority=9)]
    assert make_plan(known, every=2) == make_plan(known[::-1], every=2)


def test_roles_have_chains_of_their_own_then_routes_then_all_others_share_one() -> None:
    known = [task("a", role="r"), task("b", role="r", route="x"), task("c", route="r"), task("d"), task("e")]
    plan = make_plan(known)
    assert [(chain.role, chain.route, chain.segments) for chain in plan.chains] == [
        ("r", "", (("a", "b"),)),
        ("", "r", (("c",),)),
        ("", "", (("d", "e"),)),
    ]


def test_a_dependency_that_is_done_or_cancelled_holds_nobody_up() -> None:
    known = [task("a", status="completed"), task("b", status="cancelled"), task("c", "a", "b", priority=1), task("d")]
    assert drawn(make_plan(known)) == [": d c"]


def test_a_failed_task_stays_in_the_plan_before_what_needs_it() -> None:
    assert drawn(make_plan([task("a", status="failed"), task("b", "a", priority=10)])) == [": a b"]


def test_tasks_without_a_part_in_the_plan_are_known_and_left_out() -> None:
    assert drawn(make_plan([task("theirs"), task("ours", "theirs")], without={"theirs"})) == [": ours"]


def test_what_somebody_is_at_comes_first_unless_it_still_waits() -> None:
    known = [task("a"), task("b"), task("c"), task("d", "b")]
    assert drawn(make_plan(known, running={"c", "d"})) == [": c a b d"]


# ---- what cannot be ordered ----


def test_a_cycle_is_named_task_by_task() -> None:
    known = [task("A", "B"), task("B", "C"), task("C", "A"), task("D", "A"), task("E")]
    with pytest.raises(Cycle, match="A → B → C → A") as caught:
        make_plan(known)
    assert caught.value.path == ("A", "B", "C", "A")
    assert caught.value.exit_status == 2
    assert isinstance(caught.value, UsageError)


@pytest.mark.ci
def test_a_cycle_of_ten_thousand_tasks_is_named_whole() -> None:
    count = 10_000
    known = [task(f"T{number:05d}", f"T{(number + 1) % count:05d}") for number in range(count)]
    with pytest.raises(Cycle) as caught:
        make_plan(known)
    assert len(caught.value.path) == count + 1


def test_an_unknown_dependency_is_an_error_with_candidates() -> None:
    known = [task("TASK-7k3q"), task("TASK-zzzz"), task("TASK-b", "TASK-7k3p")]
    with pytest.raises(UnknownDependency, match=r"TASK-b: waits for TASK-7k3p.*closest: TASK-7k3q") as caught:
        make_plan(known)
    assert caught.value.closest[0] == "TASK-7k3q"
    assert isinstance(caught.value, NotFound)


@pytest.mark.parametrize("number", [0, -1, -100])
def test_a_checkpoint_every_zero_tasks_or_tokens_is_a_usage_error(number: int) -> None:
    with pytest.raises(UsageError, match="every: has to be 1 or more"):
        make_plan(tasks("a"), every=number)
    with pytest.raises(UsageError, match="budget: has to be 1 or more"):
        make_plan(tasks("a"), budget=number)


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


def test_the_budget_counts_what_tasks_of_each_role_take() -> None:
    known = [*tasks("a b c d", role="slow"), *tasks("e f g h", role="other")]
    plan = make_plan(known, budget=60_000, tokens={"slow": 60_000, "": 20_000})
    assert drawn(plan) == ["other: e f g | h", "slow: a | b | c | d"]


def test_a_task_that_asks_for_a_checkpoint_has_one_behind_it_and_the_count_begins_anew() -> None:
    known = [task("a"), task("b", checkpoint=True), task("c"), task("d"), task("e"), task("f", checkpoint=True)]
    plan = make_plan(known, every=2)
    assert drawn(plan) == [": a b | c d | e f"]
    known[0] = task("a", checkpoint=True)
    assert drawn(make_plan(known, every=2)) == [": a | b | c d | e f"]


def test_who_placed_a_checkpoint_is_said() -> None:
    assert make_plan(tasks("a b c d"), every=2).chains[0].placed == ("by count",)


# ---- sync points ----


def test_a_task_that_waits_for_another_chain_begins_after_a_sync_point() -> None:
    known = [*tasks("a1 a2", role="a"), *tasks("b1", role="b"), task("b2", "a2", role="b")]
    plan = make_plan(known)
    assert drawn(plan) == ["a: a1 a2", "b: b1 | b2"]
    assert plan.chains[1].placed == ("by sync",)


def test_what_an_earlier_sync_point_has_waited_for_needs_no_second_one() -> None:
    known = [
        *tasks("a1 a2", role="a"),
        task("b1", role="b"),
        task("b2", "a2", role="b"),
        task("b3", "a1", "b2", role="b"),
    ]
    assert drawn(make_plan(known))[1] == "b: b1 | b2 b3"


def test_the_first_task_of_a_chain_has_no_sync_point_before_it() -> None:
    known = [*tasks("a1", role="a"), task("b1", "a1", role="b"), task("b2", "a1", role="b")]
    assert drawn(make_plan(known)) == ["a: a1", "b: b1 b2"]


def test_chains_that_depend_on_each_other_in_turn_can_always_go_on() -> None:
    known = [
        task("a1", role="a"),
        task("b1", "a1", role="b"),
        task("a2", "b1", role="a"),
        task("b2", "a2", role="b"),
        task("a0", "b2", role="a", priority=10),
    ]
    plan = make_plan(known)
    assert drawn(plan) == ["a: a1 | a2 | a0", "b: b1 | b2"]


def test_a_dependency_that_contradicts_the_plan_is_held_by_a_new_one() -> None:
    known = tasks("a b c")
    plan = make_plan(known)
    known[0] = task("a", "c")
    again = make_plan(known, before=plan)
    assert drawn(again) == [": b c a"]


# ---- a plan that is made again ----


def test_tasks_that_are_done_keep_their_place_until_all_of_their_segment_are() -> None:
    known = tasks("a b c d e f g h")
    plan = make_plan(known, every=3)
    for done in ("a", "a b", "a b e"):
        again = make_plan(with_status("completed", done, known), every=3, before=plan)
        assert drawn(again) == [": a b c | d e f | g h"]
    again = make_plan(with_status("completed", "a b c", known), every=3, before=again)
    assert drawn(again) == [": d e f | g h"]
    again = make_plan(with_status("completed", "a b c d e f g h", known), every=3, before=again)
    assert again == Plan(every=3)


def test_a_new_task_comes_after_what_has_begun() -> None:
    known = [*with_status("completed", "a", tasks("a b c d e f")), task("new", priority=10)]
    plan = make_plan(tasks("a b c d e f"), every=3)
    again = make_plan(known, every=3, before=plan, running={"b"})
    assert drawn(again) == [": a b new | c d e | f"]


def test_a_plan_keeps_its_order_and_new_tasks_come_in_by_priority() -> None:
    plan = Plan((Chain("", "", (("d", "b", "a", "c"),)),))
    assert drawn(make_plan(tasks("a b c d"), before=plan)) == [": d b a c"]
    known = [*tasks("a b c"), task("d", priority=1), task("urgent", priority=9), task("last", priority=1)]
    assert drawn(make_plan(known, before=plan)) == [": urgent d b a c last"]


def test_a_plan_keeps_its_order_while_one_of_its_tasks_waits_for_another_chain() -> None:
    plan = Plan((Chain("x", "", (("b", "a"),)),))
    known = [task("a", role="x", priority=9), task("b", "c", role="x"), task("c", role="y", priority=1)]
    assert drawn(make_plan(known, before=plan)) == ["x: b a", "y: c"]


def test_the_order_of_a_plan_gives_way_to_a_dependency_alone() -> None:
    plan = Plan((Chain("", "", (("d", "c", "b", "a"),)),))
    known = [*tasks("a b d"), task("c", "a")]
    again = make_plan(known, before=plan)
    assert drawn(again) == [": d b a c"]
    assert make_plan(known, before=again) == again


def test_a_checkpoint_that_a_person_placed_stays_behind_its_task() -> None:
    plan = Plan((Chain("", "", (("a", "b"), ("c", "d")), ("please look",)),))
    again = make_plan([*tasks("a b c d"), task("new", priority=9)], before=plan)
    assert drawn(again) == [": new a b | c d"]
    assert again.chains[0].placed == ("please look",)
    assert drawn(make_plan(tasks("a b c d"), every=1, before=plan)) == [": a | b | c | d"]
    assert make_plan(tasks("a b c d"), every=1, before=plan).chains[0].placed[1] == "please look"
    assert drawn(make_plan(tasks("a b"), before=plan)) == [": a b"]


def test_a_task_stands_in_the_chain_of_its_role_wherever_a_person_has_put_it() -> None:
    plan = Plan((Chain("x", "", (("a", "b"),)),))
    known = [task("a", role="x"), task("b", role="y"), task("c", role="y")]
    assert drawn(make_plan(known, before=plan)) == ["x: a", "y: b c"]


def test_a_task_that_is_gone_leaves_the_plan() -> None:
    assert drawn(make_plan(tasks("a c"), before=make_plan(tasks("a b c"), every=2), every=2)) == [": a c"]


# ---- what a task takes ----


def took(role: str, *tokens: int, status: str = "completed") -> list[TaskState]:
    return [TaskState(task=Task(id=f"{role}{each}", role=role, status=status), tokens=each) for each in tokens]


def test_what_a_task_takes_is_the_median_of_its_role_and_of_all() -> None:
    states = [*took("x", 10, 20, 90), *took("y", 1_000, 2_000), *took("", 50)]
    assert tokens_of(states) == {"x": 20, "": 50}
    for few in ([], took("x", 10, 20), took("x", 10, 20, 30, status="failed"), took("x", 0, 0, 0)):
        assert tokens_of(few) == {}


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


@pytest.mark.ci
@settings(max_examples=examples(150), deadline=None)
@given(projects(), OPTIONS, st.none() | plans(), RUNNING)
def test_a_plan_made_twice_is_a_plan_made_once(
    known: list[Task], options: tuple[int | None, int | None], before: Plan | None, running: frozenset[str]
) -> None:
    every, budget = options
    plan = make_plan(known, every=every, budget=budget, before=before, running=running)
    assert make_plan(known, every=every, budget=budget, before=plan, running=running) == plan


@pytest.mark.ci
@settings(max_examples=examples(100), deadline=None)
@given(projects(), OPTIONS)
def test_doing_the_tasks_of_one_chain_in_their_order_shifts_no_checkpoint(
    known: list[Task], options: tuple[int | None, int | None]
) -> None:
    every, budget = options
    known = [replace(each, role="x", status="pending") for each in known]
    plan = make_plan(known, every=every, budget=budget)
    later, ends = plan, {ids[-1] for chain in plan.chains for ids in chain.segments}
    for each in [*plan]:
        known = with_status("completed", each, known)
        later = make_plan(known, every=every, budget=budget, before=later)
        assert {ids[-1] for chain in later.chains for ids in chain.segments} <= ends
        assert [*later] == [*plan][len([*plan]) - len([*later]) :]


# ---- time ----

MANY = 10_000


def in_a_line(number: int) -> tuple[str, ...]:
    return (f"T{number - 1}",) if number else ()


def backwards(number: int) -> tuple[str, ...]:
    return (f"T{number + 1}",) if number < MANY - 1 else ()


def on_the_first(number: int) -> tuple[str, ...]:
    return ("T0",) if number else ()


@pytest.mark.ci
@pytest.mark.parametrize("after", [in_a_line, backwards, on_the_first, lambda number: ()])
def test_ten_thousand_tasks_take_a_moment(after: object) -> None:
    assert callable(after)
    known = [task(f"T{number}", *after(number), role="xyz"[number % 3]) for number in range(MANY)]

    def planned_twice() -> None:
        plan = make_plan(known, every=5, budget=100_000)
        again = make_plan(known, every=5, budget=100_000, before=plan)
        assert len([*plan]) == len([*again]) == MANY

    within(1.5, planned_twice)  # 0.15 s on a machine that does nothing else
