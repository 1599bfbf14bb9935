"""Opting in and out: one folder, hidden from git, and done twice it changes nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import ralf
from ralf import config, project
from ralf.errors import UsageError
from ralf.maintenance import ownership, trust
from ralf.project import Project
from ralf.storage import registry
from storekit import context_of, kept_bytes


def plain(steps: list[ownership.Step], root: Path) -> list[tuple[str, str]]:
    """Each step's file, below the store or as the registration, and what is done to it."""
    names = {registry.folder(): "registration"}
    return [
        (names.get(step.path) or step.path.relative_to(context_of(root)).as_posix(), step.what.split(":")[0])
        for step in steps
    ]


def test_init_makes_two_files_and_nothing_outside_its_folder(tmp_path: Path) -> None:
    steps = ownership.init(Project(tmp_path), share=False)
    assert plain(steps, tmp_path) == [("registration", "change"), ("config.yaml", "create"), (".gitignore", "create")]
    assert sorted(kept_bytes(tmp_path)) == [".gitignore", "config.yaml"]
    assert [path.name for path in tmp_path.iterdir()] == [".autonomous"]
    assert (context_of(tmp_path) / ".gitignore").read_text() == "*\n"
    assert config.load(context_of(tmp_path) / "config.yaml") == config.Config()


def test_init_done_twice_changes_nothing(tmp_path: Path) -> None:
    ownership.init(Project(tmp_path), share=False)
    (context_of(tmp_path) / "config.yaml").write_text("threshold: 9000\n")
    before = kept_bytes(tmp_path)
    assert ownership.init(Project(tmp_path), share=False) == []
    assert kept_bytes(tmp_path) == before


def test_hooks_are_switched_by_one_line_and_all_else_stays_as_it_is(tmp_path: Path) -> None:
    ownership.init(Project(tmp_path), share=False)
    path = context_of(tmp_path) / "config.yaml"
    before = "# mine\nthreshold: 9000   # so\nhooks:  on  # keep this\nwindow: 100000\n"
    path.write_text(before)
    assert ownership.switch(Project(tmp_path), on=False)
    assert path.read_text() == before.replace("hooks:  on", "hooks: off")
    assert config.load(path).hooks == "off"
    assert not ownership.switch(Project(tmp_path), on=False)
    assert ownership.switch(Project(tmp_path), on=True)
    assert path.read_text() == before.replace("hooks:  on", "hooks: on")
    path.write_text("threshold: 9000")
    assert ownership.switch(Project(tmp_path), on=False)
    assert path.read_text() == "threshold: 9000\nhooks: off\n"


def test_hooks_of_a_project_that_has_not_opted_in_cannot_be_switched(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has not opted in"):
        ownership.switch(Project(tmp_path), on=False)
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_with_no_room_for_the_line_is_left_alone(tmp_path: Path) -> None:
    ownership.init(Project(tmp_path), share=False)
    path = context_of(tmp_path) / "config.yaml"
    path.write_text("{threshold: 9000}\n")
    with pytest.raises(UsageError, match="cannot be changed by a line"):
        ownership.switch(Project(tmp_path), on=False)
    assert path.read_text() == "{threshold: 9000}\n"


def test_a_plan_does_nothing(tmp_path: Path) -> None:
    assert len(ownership.plan_init(Project(tmp_path), share=True)) == 3
    assert ownership.plan_uninstall(Project(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_opting_in_after_the_first_write_keeps_what_is_there(tmp_path: Path) -> None:
    ralf.record_decision("tide", "One", root=tmp_path)
    before = kept_bytes(tmp_path)
    made = [("registration", "change"), ("config.yaml", "create")]
    assert plain(ownership.init(Project(tmp_path), share=False), tmp_path) == made
    after = kept_bytes(tmp_path)
    assert {name: after[name] for name in before} == before


def test_opting_out_removes_the_configuration_alone(tmp_path: Path) -> None:
    ownership.init(Project(tmp_path), share=False)
    ralf.record_decision("tide", "One", root=tmp_path)
    before = kept_bytes(tmp_path)
    gone = [("registration", "change"), ("config.yaml", "remove")]
    assert plain(ownership.uninstall(Project(tmp_path)), tmp_path) == gone
    assert kept_bytes(tmp_path) == {name: content for name, content in before.items() if name != "config.yaml"}
    assert ownership.uninstall(Project(tmp_path)) == []
    assert ralf.get_context("tide", root=tmp_path).decisions[0].decision == "One"


def _git(*args: str, cwd: Path) -> list[str]:
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    done = subprocess.run(["git", *args], cwd=cwd, capture_output=True, text=True, check=True)  # noqa: S607
    return done.stdout.splitlines()


def test_git_sees_nothing_of_it_or_with_share_the_route_files_alone(tmp_path: Path) -> None:
    _git("init", "-q", cwd=tmp_path)
    ownership.init(Project(tmp_path), share=False)
    ralf.record_decision("tide", "One", root=tmp_path)
    (context_of(tmp_path) / "config.local.yaml").write_text("key: secret\n")
    status = ("status", "--porcelain", "--untracked-files=all")
    assert _git(*status, cwd=tmp_path) == []
    assert plain(ownership.init(Project(tmp_path), share=True), tmp_path) == [(".gitignore", "change")]
    seen = sorted(line[3:] for line in _git(*status, cwd=tmp_path))
    assert seen == [".autonomous/context/routes/tide.md"]
    assert ownership.init(Project(tmp_path), share=True) == []


def test_a_clone_of_a_shared_project_reads_the_routes_and_goes_on(tmp_path: Path) -> None:
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    origin.mkdir()
    _git("init", "-q", cwd=origin)
    ownership.init(Project(origin), share=True)
    ralf.record_decision("tide", "Said at the origin", root=origin)
    _git("add", "-A", cwd=origin)
    _git(
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@localhost",
        "-c",
        "commit.gpgsign=false",
        "commit",
        "-qm",
        "x",
        cwd=origin,
    )
    _git("clone", "-q", str(origin), str(clone), cwd=tmp_path)
    found = ralf.get_context("tide", root=clone)
    assert (found.foreign, found.decisions[0].decision) == (True, "Said at the origin")
    ownership.init(Project(clone), share=True)
    ralf.record_decision("tide", "Said in the clone", root=clone)
    assert [decision.decision for decision in ralf.get_context("tide", root=clone).decisions] == ["Said in the clone"]
    trust.accept_route(Project(clone), "tide")
    said = {decision.decision: decision.origin for decision in ralf.get_context("tide", root=clone).decisions}
    assert said == {"Said at the origin": "import", "Said in the clone": "unknown"}
    assert (context_of(clone) / ".gitignore").read_text() == project.IGNORE_ALL_BUT_ROUTES


def test_a_deleted_gitignore_comes_back_as_this_user_wants_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)  # noqa: S607
    project = Project(tmp_path)
    ownership.init(project, share=True)
    ralf.record_decision("tide", "Use centimetres", root=tmp_path)
    shared = (project.folder / ".gitignore").read_bytes()
    subprocess.run(["git", "-C", tmp_path, "add", ".autonomous"], check=True)  # noqa: S607
    (project.folder / ".gitignore").unlink()
    ralf.record_decision("tide", "Count stations from zero", root=tmp_path)
    assert (project.folder / ".gitignore").read_bytes() == shared
    registry.update(tmp_path, share=False)
    subprocess.run(["git", "-C", tmp_path, "rm", "-qrf", "--cached", ".autonomous"], check=True)  # noqa: S607
    (project.folder / ".gitignore").unlink()
    ralf.record_decision("tide", "Count harbours from one", root=tmp_path)
    assert (project.folder / ".gitignore").read_bytes() == b"*\n"
