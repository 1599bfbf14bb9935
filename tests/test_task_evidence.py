"""Evidence that a task is done: the exit status of its own command, or the last test run after the last edit."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import storekit
from ralf import model
from ralf.config import local_config
from ralf.errors import UsageError
from ralf.maintenance import ownership
from ralf.model import ActiveWork, CommandFact, Facts, PathFact, RouteContext, WorkingTree
from ralf.project import Project
from ralf.tasks.evidence import verify
from ralf.tasks.model import Attempt, Evidence, Task, TaskState
from ralf.tasks.standing import current

PASSED = model.TestFact("pytest -q", "3 passed in 0.1s")
FAILED = model.TestFact("pytest -q", "1 failed, 2 passed in 0.1s")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "tide"
    root.mkdir()
    ownership.init(Project(root), share=False)
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("a = 1\n")
    return Project(root)


def allow(project: Project, more: str = "") -> None:
    path = project.local_config_file
    path.write_text(f"verify_commands: true\n{more}")
    storekit.allow(path)


def context(
    *tests: model.TestFact, files: tuple[str, ...] = ("src/a.py",), untested: tuple[str, ...] = (), **more: Any
) -> RouteContext:
    paths = tuple(PathFact(name, ("edited",)) for name in files)
    work = ActiveWork(git=WorkingTree(untested=untested))
    return RouteContext(facts=Facts(paths=paths, tests=tests, **more), active_work=work)


# ---- without `verify:` ----


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (context(), "claimed"),
        (context(PASSED), "verified"),
        (context(FAILED), "failed"),
        (context(FAILED, PASSED), "verified"),
        (context(PASSED, FAILED), "failed"),
        (context(PASSED, untested=("src/a.py",)), "claimed"),
        (context(FAILED, untested=("src/a.py",)), "claimed"),
        (context(PASSED, commands=(CommandFact("pytest -q", "failed", 1, 1, 1),)), "failed"),
        (context(replace(PASSED, extra={"origin": "import"})), "claimed"),  # a document says so
        (replace(context(PASSED), wholly_foreign=True), None),
    ],
)
def test_without_a_command_the_last_test_run_after_the_last_edit_counts(
    project: Project, found: RouteContext, state: str | None
) -> None:
    made = verify(project, Task("TASK-1"), found)
    assert (made and made.state) == state


# ---- with `verify:` ----


def test_a_file_that_is_not_as_the_user_allowed_it_allows_nothing_and_the_evidence_says_why(project: Project) -> None:
    allow(project)
    path = project.local_config_file
    path.write_text("verify_commands: true # and more\n")
    with pytest.raises(UsageError, match="nothing in it is run"):
        local_config.local_config_of(project)
    found = verify(project, Task("TASK-1", verify="touch ran"), None)
    assert found is not None and found.state == "claimed" and "is not as you allowed it" in found.output
    assert not (project.root / "ran").exists()


def test_a_command_runs_in_the_project_without_our_variables_and_without_keys(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(project, "environment: [TIDE_KEPT_TOKEN]\n")
    for name in ("RALF_LEASE", "GIT_DIR", "CLAUDECODE", "TIDE_API_KEY", "TIDE_KEPT_TOKEN", "TIDE_HOST"):
        monkeypatch.setenv(name, "there")
    told = "echo $PWD; env | cut -d= -f1 | grep -E '^(RALF_LEASE|GIT_DIR|CLAUDECODE|TIDE_)' | sort"
    found = verify(project, Task("TASK-1", verify=told), None)
    assert found is not None
    assert found.output.split() == [str(project.root), "TIDE_HOST", "TIDE_KEPT_TOKEN"]


def test_no_secret_of_the_output_or_of_the_command_is_kept(project: Project) -> None:
    allow(project)
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    found = verify(project, Task("TASK-1", verify=f"echo token {secret}"), None)
    assert found is not None and secret not in found.output + found.command
    assert "[REDACTED:" in found.output and "[REDACTED:" in found.command


@pytest.mark.ci
def test_a_command_that_takes_too_long_is_ended_with_all_its_processes(project: Project) -> None:
    allow(project, "verify_timeout: 3\n")
    command = "sleep 601 & echo $! > pid; echo begun; sleep 602"
    began = time.monotonic()
    found = verify(project, Task("TASK-1", verify=command), None)
    assert time.monotonic() - began < 3 + storekit.AT_ONCE
    assert found is not None and (found.state, found.exit_status) == ("failed", None)
    assert found.output.startswith("begun")
    gone(int((project.root / "pid").read_text()))


def gone(process: int) -> None:
    """Fails unless a process is gone, or will be at once."""
    deadline = time.monotonic() + storekit.AT_ONCE
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.01)
    pytest.fail(f"{process} lives")


# ---- the files ----


def done(id_: str, proof: Evidence | None, began: str = "") -> TaskState:
    attempts = (Attempt(1, "a", began),) if began else ()
    return TaskState(Task(id_, status="completed"), evidence=proof, attempts=attempts)


def stands(project: Project, first: Evidence | None, *later: TaskState) -> str:
    """What the evidence of a task is told to be, with tasks that were done after it."""
    (found,) = current(project, [done("TASK-1", first)], lambda: later)
    assert found.evidence is not None
    return found.evidence.state


def test_a_verified_task_is_stale_once_an_edited_file_is_another_one(project: Project) -> None:
    found = verify(project, Task("TASK-1"), context(PASSED, files=("src/a.py", "src/gone.py")))
    assert found is not None
    assert found.files == {"src/a.py": sha256(b"a = 1\n").hexdigest(), "src/gone.py": ""}
    assert stands(project, found) == "verified"
    os.utime(project.root / "src" / "a.py")
    assert stands(project, found) == "verified"
    (project.root / "src" / "a.py").write_text("a = 2\n")
    assert stands(project, found) == "stale"
    (project.root / "src" / "a.py").write_text("a = 1\n")
    assert stands(project, found) == "verified"
    (project.root / "src" / "gone.py").write_text("")
    assert stands(project, found) == "stale"


def test_a_task_that_began_after_the_change_and_passed_the_same_command_has_seen_it_too(project: Project) -> None:
    (project.root / "b.py").write_text("")
    first = verify(project, Task("TASK-1"), context(PASSED))
    other = verify(project, Task("TASK-2"), context(PASSED, files=("b.py",)))
    (project.root / "src" / "a.py").write_text("a = 2\n")
    assert stands(project, first, done("TASK-2", other, "2026-01-01T00:00:00Z")) == "stale"
    assert stands(project, first, done("TASK-2", other, "2126-01-01T00:00:00Z")) == "verified"
    (project.root / "src" / "a.py").unlink()
    assert stands(project, first, done("TASK-2", other, "2026-01-01T00:00:00Z")) == "stale"
    os.utime(project.root / "b.py", (0, 0))  # an older time than that of the change is not believed
    assert stands(project, other, done("TASK-3", first, "2026-01-01T00:00:00Z")) == "verified"
    (project.root / "b.py").write_text("b = 1\n")
    os.utime(project.root / "b.py", (0, 0))
    assert stands(project, other, done("TASK-3", first, "2026-01-01T00:00:00Z")) == "stale"
