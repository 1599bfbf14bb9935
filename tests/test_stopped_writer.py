"""A writer that stops within a write: who else writes is told after its time, hooks and readers do not wait."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit import command
from promises.user import User

pytestmark = pytest.mark.ci

STOPPED = """
import os, signal, sys
from ralf import project
from ralf.route.write import open_route
with open_route(project.find(sys.argv[1]), "tide") as writer:
    os.kill(os.getpid(), signal.SIGSTOP)
"""

WAIT = 10.0  # seconds for which a write waits for another one


@pytest.fixture
def user(tmp_path: Path) -> User:
    user = User.initialized(tmp_path)
    user.has_decided("tide", "Keep the old columns")
    return user


@pytest.fixture
def stopped(user: User) -> Iterator[int]:
    """The process of a writer of `tide` that has stopped."""
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", STOPPED, str(user.project)], user.environment())
    _, status = os.waitpid(child, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    yield child
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_write_to_the_same_document_ends_with_status_5_and_names_the_process(user: User, stopped: int) -> None:
    began = time.monotonic()
    ran = user.ralf("decide", "tide", "Go on")
    assert ran.status == 5
    assert f"process {stopped} " in ran.err
    assert WAIT <= time.monotonic() - began < 2 * WAIT


def test_other_documents_and_readers_do_not_wait(user: User, stopped: int) -> None:
    assert stopped
    began = time.monotonic()
    user.does("decide", "boat", "Paint it red")
    assert user.decisions("tide") == ["Keep the old columns"]
    for words in (("list",), ("search", "columns"), ("log", "tide"), ("status",)):
        user.does(*words)
    assert time.monotonic() - began < WAIT


def test_a_hook_that_is_due_answers_at_once_and_what_it_was_to_do_is_done_later(user: User) -> None:
    user.does("route", "tide")
    session = user.session()
    session.begins("Look after the columns")
    session.edits("src/tides.py")
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", STOPPED, str(user.project)], user.environment())
    os.waitpid(child, os.WUNTRACED)
    began = time.monotonic()
    session.hook("PreCompact", trigger="auto", settle=False)
    took = time.monotonic() - began
    os.kill(child, signal.SIGCONT)
    os.waitpid(child, 0)
    command.settle()
    session.hook("SessionEnd", reason="exit")
    assert took < WAIT / 2
    assert len(user.does("show", session.route, "--json").json()["checkpoints"]) == 1
