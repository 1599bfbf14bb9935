"""What of a context another text does not say: only what a successor cannot do without, and nothing that is there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from contexts import contexts, quick
from ralf.model import (
    ActiveWork,
    CommandFact,
    Decision,
    ErrorFact,
    Facts,
    PathFact,
    RequestFact,
    RouteContext,
    Step,
    Todo,
)
from ralf.proof.recall import lost

FULL = RouteContext(
    goal="Make the orchard water itself when the soil is dry",
    active_work=ActiveWork(
        plan_step=0,
        total_steps=7,
        last_statement="I open the valve now",
        completed_steps=(Step(1, "Dig the trench to the well"),),
        todos=(Todo("Write the test of the pump"), Todo("Buy the pump of the well", "completed")),
        next_steps=("Close the valve when the tank is empty",),
        blockers=("The pump has no driver yet",),
    ),
    decisions=(
        Decision("DEC-001", decision="Water at night instead of at noon"),
        Decision("DEC-002", kind="failed-approach", decision="Polling the sensor every second drains it"),
        Decision("DEC-003", decision="Use a timer for the valve", status="superseded"),
    ),
    facts=Facts(
        paths=(PathFact("src/orchard/valve.py", ("edited",)), PathFact("README.md", ("read",))),
        commands=(CommandFact("make pump", "failed", 2), CommandFact("make valve", "passed")),
        errors=(ErrorFact("PumpError: no water"), ErrorFact("ValveError: stuck", fixed_by="oil")),
        requests=(RequestFact("And paint the shed of the orchard in green"),),
    ),
)


def test_a_text_that_says_nothing_has_lost_all_that_counts_and_nothing_else() -> None:
    left = lost(FULL, "")
    assert left is not None
    assert left.goal == FULL.goal
    assert left.active_work == replace(FULL.active_work, last_statement="", todos=FULL.active_work.todos[:1])
    assert [item.id for item in left.decisions] == ["DEC-001", "DEC-002"]
    assert [path.path for path in left.facts.paths] == ["src/orchard/valve.py"]
    assert [command.command for command in left.facts.commands] == ["make pump"]
    assert [error.error for error in left.facts.errors] == ["PumpError: no water"]


@pytest.mark.parametrize(
    ("said", "gone"),
    [
        ("The goal: Make the orchard water itself when the soil is dry.", lambda left: not left.goal),
        ("We are at step 0 of 7.", lambda left: left.active_work.plan_step is None),
        ("Water at night instead of at noon", lambda left: [d.id for d in left.decisions] == ["DEC-002"]),
        ("edited `valve.py`", lambda left: not left.facts.paths),
        ("make pump fails: PumpError: no water", lambda left: not left.facts.commands + left.facts.errors),
        ("Close the valve when the tank is empty", lambda left: not left.active_work.next_steps),
    ],
)
def test_what_the_text_says_is_not_lost(said: str, gone: object) -> None:
    left = lost(FULL, said)
    assert left is not None
    assert gone(left)  # type: ignore[operator]
    assert not gone(lost(FULL, said[: len(said) // 3]))  # type: ignore[operator]


def test_a_text_that_says_all_has_lost_nothing() -> None:
    assert lost(FULL, FULL.render(fenced=False)) is None


@quick
@given(contexts, st.text(max_size=200))
def test_whatever_a_context_holds_less_is_lost_to_more_words(context: RouteContext, text: str) -> None:
    left = lost(context, text)
    if left is not None:
        assert all(item in context.decisions for item in left.decisions)
        assert lost(left, text) is not None
