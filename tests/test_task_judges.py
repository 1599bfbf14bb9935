"""The judges of the harnesses for tasks can fail: each is fed a history that is whole, and the same one broken."""

from __future__ import annotations

from typing import Any

import pytest
from tests.faults import loops, tenure
from tests.faults.tenure import Span

TOLD = "TASK-1: claimed by racer-2 since 10:00; ralf task claim"


def kinds(faults: Any) -> list[str]:
    return [kind for kind, _ in faults]


def test_two_who_have_one_task_at_once_are_found_though_a_third_came_between() -> None:
    spans = [Span("A", "one", 0, 4), Span("A", "two", 4, 5), Span("B", "three", 1, 2)]
    assert kinds(tenure.overlapping(spans)) == []
    assert kinds(tenure.overlapping([*spans, Span("A", "four", 3.9, 4)])) == ["doubled"]
    assert kinds(tenure.overlapping([*spans, Span("A", "four", 1, 2), Span("A", "five", 3, 3.5)])) == ["doubled"] * 2


def stream(*kinds: str) -> list[dict[str, Any]]:
    """Records of one task; each end is that of the claim before it, but for one of `stale …`."""
    made: list[dict[str, Any]] = []
    lease = 0
    for number, kind in enumerate(kinds, 1):
        lease = number if kind == "claim" else lease
        ends = {"lease": 1 if kind.startswith("stale ") else lease} if kind != "claim" else {}
        made.append({"n": number, "kind": kind.removeprefix("stale "), "task": "A", **ends})
    return made


def test_a_stream_in_which_each_claim_ends_before_the_next_has_no_fault() -> None:
    whole = ["seen", "claim", "renew", "lost", "claim", "progress", "fail", "retry", "claim", "done", "evidence"]
    assert kinds(tenure.of_records(stream(*whole))) == []


@pytest.mark.parametrize(
    "broken",
    [
        ("claim", "claim"),
        ("claim", "done", "claim"),
        ("claim", "done", "done"),
        ("claim", "release", "claim", "renew", "claim"),
        ("claim", "lost", "claim", "stale lost", "claim"),
    ],
)
def test_a_stream_with_a_claim_inside_another_or_a_second_end_is_found(broken: tuple[str, ...]) -> None:
    assert "doubled" in kinds(tenure.of_records(stream(*broken)))


def test_a_stream_in_which_a_stale_holder_ends_the_task_or_a_number_comes_twice_is_found() -> None:
    assert "stale" in kinds(tenure.of_records(stream("claim", "lost", "claim", "stale done")))
    one, two = stream("claim", "done")
    assert "unfenced" in kinds(tenure.of_records([one, {**two, "n": 1}]))


# ---- a loop ----

SCHEDULE = loops.Schedule(
    (
        loops.Planned("Carry over table 0", acts=(("crash", 0.1), ("done", 0.1))),
        loops.Planned("Carry over table 1", after=(0,)),
    )
)
LOG = [
    (1.0, "begin", "A", 5, 100),
    (1.1, "beat", "A", 5, 100),
    (1.2, "begin", "A", 7, 101),
    (1.3, "ending", "A", 7, 101),
    (1.4, "beat", "A", 7, 101),
    (1.5, "end", "A", 7, 101),
    (1.6, "begin", "B", 9, 102),
    (1.7, "ending", "B", 9, 102),
    (1.8, "end", "B", 9, 102),
]

LIMITED = [*LOG[:2], (1.15, "limit", "A", 5, 100), *LOG[2:]]


def history(**changed: Any) -> loops.History:
    prompts = {"A.5": b"Carry over table 0", "A.7": b"Carry over table 0", "B.9": b"Carry over table 1"}
    known = {"statuses": {"A": "completed", "B": "completed"}, "completed": {"A", "B"}, "log": LOG, "exits": [-9, 0]}
    return loops.History(SCHEDULE, ["A", "B"], **{"prompts": prompts, **known, **changed})


def test_a_loop_that_did_what_it_should_has_no_fault() -> None:
    assert kinds(loops.judged(history())) == []


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"completed": {"A"}, "statuses": {"A": "completed", "B": "pending"}}, "false complete"),
        ({"exits": [1]}, "false incomplete"),
        ({"exits": [139]}, "failed"),
        ({"errors": "Traceback (most recent call last):"}, "failed"),
        ({"statuses": {"A": "completed"}}, "lost"),
        ({"statuses": {"A": "completed and pending", "B": "completed"}}, "doubled"),
        ({"statuses": {"A": "completed", "B": "completed", "C": "pending"}}, "invented"),
        ({"completed": {"B"}, "statuses": {"A": "failed", "B": "completed"}, "exits": [1]}, "wrong"),
        ({"log": sorted([*LOG, (1.25, "beat", "A", 5, 100)])}, "doubled"),
        ({"log": sorted([*LOG, (1.35, "child", "A", 5, 100)])}, "doubled"),  # and its claim had no process any more
        ({"log": [*LOG[:2], (1.15, "begin", "B", 6, 103), *LOG[2:]]}, "early"),
        ({"alive": [4711]}, "left"),
        ({"prompts": {"A.5": b"Carry over table 0", "A.7": b"Go on."}}, "unprompted"),
        ({"records": stream("claim", "claim")}, "doubled"),
        ({"log": LIMITED, "exits": [0]}, "miscounted"),
        (
            {"log": LIMITED, "records": [{"kind": "release", "task": "A", "n": 6, "lease": 5, "outcome": "crashed"}]},
            "miscounted",
        ),
    ],
)
def test_a_loop_that_did_not_is_found(changed: dict[str, Any], fault: str) -> None:
    assert fault in kinds(loops.judged(history(**changed)))
