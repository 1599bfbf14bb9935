"""How ralf is typed in a project: by the loop's script where that is the user's own, never by one of a clone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ralf import command
from ralf.project import Project

TEXT = "More: ralf context show x; not: my-ralf context, ralf is"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "a tree" / ".autonomous" / "context" / command.SCRIPT
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def typed(script: Path) -> str:
    return Project(script.parents[3]).command


def test_the_script_of_the_loop_is_named_where_there_is_one(script: Path) -> None:
    assert typed(script) == f"'{script}' ralf"
    assert command.typed(TEXT, typed(script)) == TEXT.replace("ralf context show", f"'{script}' ralf context show")
    script.unlink()
    assert typed(script) == "ralf"


def test_a_script_that_came_with_a_clone_is_not_named(script: Path) -> None:
    root = script.parents[3]
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)  # noqa: S607  # whichever git there is
    assert typed(script) == f"'{script}' ralf"
    subprocess.run(["git", "add", "--force", script], cwd=root, check=True)  # noqa: S607  # whichever git there is
    assert typed(script) == "ralf"


@pytest.mark.parametrize("mode", [0o644, 0o757])
def test_a_script_that_nobody_can_run_or_anybody_write_is_not_named(script: Path, mode: int) -> None:
    script.chmod(mode)
    assert typed(script) == "ralf"


def test_a_link_in_its_place_is_not_followed(script: Path) -> None:
    script.rename(script.with_name("other.sh"))
    script.symlink_to("other.sh")
    assert typed(script) == "ralf"
