"""The text of a context: never over its budget in tokens or characters, what matters most is left out last, and what
is left out is said.
"""

from __future__ import annotations

import re

import pytest

from contexts import ruled
from ralf.model import (
    ActiveWork,
    Body,
    CommandFact,
    CommitFact,
    Decision,
    ErrorFact,
    Facts,
    Header,
    OpenFile,
    PathFact,
    RequestFact,
    RouteContext,
    Section,
    Todo,
)

pytestmark = pytest.mark.ci

GOAL = "Make the orchard water itself when the soil is dry for three days in a row"
FULL = RouteContext(
    context_checkpoint=Header(route="TASK-001", revision=7, checkpoint_count=3, last_checkpoint="2026-03-01T10:00:00Z"),
    goal=GOAL,
    active_work=ActiveWork(
        current_task="TASK-001",
        plan_step=3,
        total_steps=7,
        last_statement="The valve opens now. " * 9,
        next_steps=("Close the valve when the tank is empty",),
        todos=(Todo("Write the test of the pump", "in_progress"), Todo("Done already", "completed")),
        blockers=("The pump has no driver",),
        findings=("The sensor counts downwards",),
        open_files=(OpenFile("src/valve.py"),),
    ),
    decisions=(
        Decision("DEC-001", kind="rule", pinned=True, decision="Never water at noon", rationale="It burns the leaves"),
        *(
            Decision(f"DEC-{n:03d}", decision=f"Choose valve number {n} of the row", rationale="cheap")
            for n in range(2, 30)
        ),
        Decision("DEC-030", decision="Use a timer", status="superseded", superseded_by="DEC-031"),
        Decision("DEC-031", kind="failed-approach", decision="Polling the sensor every second"),
    ),
    facts=Facts(
        paths=tuple(PathFact(f"src/part{n}.py", ("edited",) if n % 2 else ("read",)) for n in range(40)),
        commands=tuple(CommandFact(f"pytest -k case{n}", ("passed", "failed")[n % 2]) for n in range(40)),
        errors=tuple(ErrorFact(f"ValveError: stuck at {n}", fixed_by="" if n % 3 else "oil") for n in range(20)),
        commits=tuple(CommitFact(f"abc{n:04d}", f"Add part {n}") for n in range(9)),
        requests=tuple(RequestFact(f"Please look after tree number {n} of the orchard") for n in range(20)),
    ),
    body=Body(sections=tuple(Section(n, f"Row {n}", ruled("what happened\n" * 9)) for n in (3, 2, 1))),
)


def test_of_the_decisions_the_newest_are_left_out_last() -> None:
    for budget in range(0, 1000, 50):
        found = [int(number) for number in re.findall(r"Choose valve number (\d+)", FULL.render(budget))]
        assert found == list(range(29, 29 - len(found), -1))


def test_a_query_brings_what_it_asks_for_and_keeps_goal_and_pinned_rules() -> None:
    plain, asked = FULL.render(400), FULL.render(400, query="case17 pytest")
    assert "case17 " not in plain
    assert "case17 " in asked
    assert all(words in asked for words in (GOAL[:60], "Never water at noon", "Close the valve"))
    assert FULL.with_defaults(400, "case17 pytest").render() == asked
