"""The harness for runs of agents, as a person starts it: it finds nothing in ours; and its judges."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults import run_work

from examples import step
from test_fault_harnesses import faults, harness


@pytest.mark.release(seconds=15)
def test_a_run_finds_nothing(tmp_path: Path) -> None:
    done = harness("runs", "--step", 3 * step(), cwd=tmp_path)
    assert (faults(done), done.returncode) == ([], 0)


# ---- the judges ----


def note(what: str, **more: object) -> dict[str, object]:
    return {"what": what, "run": "r", **more}


ASK = {"iteration": 1, "call": "model", "key": "k"}


@pytest.mark.parametrize(
    ("notes", "fault"),
    [
        ([note("call", **ASK), note("answered", **ASK)], ""),
        ([note("call", **ASK), note("killed"), note("call", **ASK), note("answered", **ASK)], ""),
        ([note("call", **ASK), note("answered", **ASK), note("killed"), note("call", **ASK)], "repeated"),
        ([note("call", **ASK), note("call", **ASK)], "repeated"),
        ([note("call", **ASK), note("killed"), note("call", **ASK), note("call", **ASK)], "repeated"),
        ([note("killed"), note("call", **ASK), note("call", **ASK)], "repeated"),
        ([note("call", **ASK), note("killed"), note("call", **ASK | {"key": "other"})], "keys"),
    ],
)
def test_a_call_may_be_made_again_once_a_kill_and_never_after_its_answer(notes: list, fault: str) -> None:
    assert [kind for kind, _ in run_work.repeated(notes)] == ([fault] if fault else [])


@pytest.mark.parametrize(
    ("notes", "fault"),
    [
        (
            [note("began", iteration=1, loaded=0), note("decided", iteration=1), note("began", iteration=2, loaded=1)],
            "",
        ),
        ([note("began", iteration=1, loaded=0), note("killed"), note("began", iteration=2, loaded=1)], ""),
        ([note("began", iteration=number, loaded=0) for number in (1, 2, 3)], ""),
        ([note("began", iteration=number, loaded=0) for number in (1, 2, 1)], "iteration"),
        ([note("decided", iteration=1), note("began", iteration=1, loaded=1)], "iteration"),
        ([note("decided", iteration=1), note("began", iteration=4, loaded=1)], "iteration"),
        ([note("saved", iteration=1), note("began", iteration=1, loaded=0)], "older"),
    ],
)
def test_no_iteration_begins_behind_what_was_acknowledged(notes: list, fault: str) -> None:
    assert [kind for kind, _ in run_work.went_back(notes)] == ([fault] if fault else [])
