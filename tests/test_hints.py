"""What a hint says to type next: it helps when it is typed, and it destroys nothing that nobody spoke of."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import forks
import storekit


def hint_of(ran: storekit.Ran) -> str:
    """The hint of an error; "" for none."""
    found = re.search(r"(?m)^hint: (.*)$", ran.err)
    return found[1] if found else ""


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("memory forget trap-3", "ralf memory drop trap-3"),
        ("memory rm trap-3", "ralf memory drop trap-3"),
        ("memory list", "ralf memory show"),
        ("memory prune", "ralf memory tidy"),
        ("memory forgett x", "ralf memory --help"),
        ("route forget tide", "ralf route --help"),
        ("route drop tide", "ralf route --help"),
        ("loop forget x", "ralf loop --help"),
        ("config forget threshold", "ralf config --help"),
        ("context cancel x", "ralf context --help"),
        ("task forget TASK-1", "ralf task edit TASK-1 --status cancelled"),
        ("context rm tide DEC-001", "ralf context drop tide DEC-001"),
        ("forget tide", "ralf context forget tide"),
        ("drop tide DEC-001", "ralf context drop tide DEC-001"),
    ],
)
def test_a_hint_names_no_command_of_another_group_that_cannot_be_taken_back(
    tmp_path: Path, typed: str, hint: str
) -> None:
    assert hint_of(forks.forked(*typed.split(), cwd=tmp_path)) == hint


def test_what_an_empty_memory_says_to_type_adds_an_item(tmp_path: Path) -> None:
    told = forks.forked("memory", cwd=tmp_path).err.strip()
    assert told.startswith("nothing is remembered yet")
    _, *command = shlex.split(told[told.rindex(": ") + 2 :])
    ran = forks.forked(*command, cwd=tmp_path)
    assert (ran.status, ran.err) == (0, ""), ran
