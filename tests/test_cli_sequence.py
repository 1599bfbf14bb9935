"""`ralf task show`, and signs of life of a claim."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import storekit
from ralf.tasks import claims, editing, leases, store
from ralf.text.cleaning import outside


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    storekit.configure(made, "")
    return made


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with six tasks; `six` is a copy of it."""
    made = tmp_path_factory.mktemp("parts")
    storekit.configure(made, "")
    for number in range(1, 7):
        editing.add(f"Part {number}", id=f"TASK-{number}", root=made)
    return made


@pytest.fixture
def six(parts: Path, tmp_path: Path) -> Path:
    return storekit.copied(parts, tmp_path / "project")


def ralf(root: Path, *arguments: object, **more: str) -> storekit.Ran:
    return storekit.process(*arguments, cwd=root, **more)


@pytest.mark.ci
def test_a_fresh_agent_reads_what_came_before_and_what_comes_next(six: Path) -> None:
    ralf(six, "plan", "--every", 2)
    for number in (1, 2):
        claims.claim(by="a-1", root=six)
        claims.done(f"Part {number} stands on pillar {number}", by="a-1", root=six)
    claims.claim(by="a-2", root=six)
    ran = ralf(six, "task", "show", RALF_AGENT="a-2")
    assert (ran.status, ran.err, outside(ran.out)) == (0, "", "")
    for words in ("a-2", "TASK-3", "pillar 1", "pillar 2", "TASK-4", "ralf task done"):
        assert words in ran.out, (words, ran.out)
    found = ralf(six, "task", "show", "--json", RALF_AGENT="a-2").json()
    assert (found["agent"], found["action"], found["task"]["task"]["id"]) == ("a-2", "work", "TASK-3")
    assert [one["id"] for one in found["before"]] == ["TASK-2", "TASK-1"]


@pytest.mark.ci
def test_every_command_of_whoever_holds_a_task_is_a_sign_of_life(six: Path) -> None:
    state = claims.claim("TASK-1", by="a-1", root=six)
    assert state.claim is not None
    lease = state.claim.lease("TASK-1")
    sign = leases.file_of(store.at(six).project, lease)
    for command in (("list",), ("list", "--json"), ("task", "list"), ("task", "show")):
        os.utime(sign, (1_000, 1_000))
        ralf(six, *command, RALF_LEASE=lease)
        assert time.time() - sign.stat().st_mtime < 60, command
    for odd in ("TASK-1:99", "../../x:1", ":", "x" * 5_000):
        assert ralf(six, "list", RALF_LEASE=odd).status == 0
