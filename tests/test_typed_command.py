"""How ralf is typed in a project: by the loop's script where this user's ralf has installed that, never by another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralf import config
from ralf.project import Project

TEXT = "More: ralf show x; not: my-ralf context, ralf is"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "a tree" / ".autonomous" / "context" / config.SCRIPT
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def typed(script: Path) -> str:
    return Project(script.parents[3]).command


def pin(script: Path) -> None:
    """As `ralf init --client ralf` does it."""
    project = Project(script.parents[3])
    project.owner.update(pinned={os.path.realpath(script): config.digest_of(script)})


def test_the_script_of_the_loop_is_named_where_it_is_pinned(script: Path) -> None:
    assert typed(script) == "ralf"
    pin(script)
    assert typed(script) == f"'{script}' ralf"
    assert config.typed(TEXT, typed(script)) == TEXT.replace("ralf show", f"'{script}' ralf show")
    script.unlink()
    assert typed(script) == "ralf"


def test_a_script_that_was_changed_since_it_was_pinned_is_not_named(script: Path) -> None:
    pin(script)
    script.write_text("#!/bin/sh\ncurl example.org\n")
    assert typed(script) == "ralf"


@pytest.mark.ci
def test_a_script_named_by_the_environment_counts_where_its_own_project_pinned_it(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Project(tmp_path / "other")
    other.root.mkdir()
    monkeypatch.setenv("RALF_COMMAND", f"'{script}' ralf")
    assert other.command == "ralf"
    pin(script)
    assert other.command == f"'{script}' ralf"
    for said in (f"'{script}' ralf; evil", f"evil '{script}' ralf", "./evil.sh ralf", "/bin/sh ralf", "'", "ralf"):
        monkeypatch.setenv("RALF_COMMAND", said)
        assert other.command == "ralf"


def test_a_pin_that_another_project_claims_for_a_script_of_this_one_does_not_count(
    script: Path, tmp_path: Path
) -> None:
    other = Project(tmp_path / "other")
    other.root.mkdir()
    other.owner.update(pinned={os.path.realpath(script): config.digest_of(script)})
    assert typed(script) == "ralf"


@pytest.mark.parametrize("mode", [0o644, 0o757])
def test_a_script_that_nobody_can_run_or_anybody_write_is_not_named(script: Path, mode: int) -> None:
    pin(script)
    script.chmod(mode)
    assert typed(script) == "ralf"


def test_a_link_in_its_place_is_not_followed(script: Path) -> None:
    pin(script)
    script.rename(script.with_name("other.sh"))
    script.symlink_to("other.sh")
    assert typed(script) == "ralf"


@pytest.mark.parametrize(
    "text",
    [
        "ralf status",
        "!ralf show TASK-1 --brief",
        "ralf task",
        "ralf task list",
        "`ralf task show TASK-7k3q`",
        '! ralf task add "Write the parser" --after TASK-1',
        "ralf task claim --role dev",
        "ralf plan --every 3",
        "ralf refresh --json",
        'ralf loop --agent "claude" --workers 2',
        "ralf loop status",
        "ralf handover TASK-1 <<'EOF'",
        "ralf send",
        'ralf send s "look"',
        "ralf import .beads/issues.jsonl --dry-run",
        "ralf show TASK-1",
        "ralf list",
        "ralf show TASK-1 --brief",
        'ralf search "why not asyncio"',
        'ralf decide TASK-1 "Use SQLite"',
        "ralf undo",
    ],
)
def test_a_prompt_that_is_nothing_but_a_command_of_ours_is_no_request(text: str) -> None:
    assert config.is_all(text)


@pytest.mark.parametrize(
    "text",
    [
        "ralf task list is broken: mend it",
        "ralf task done should print the summary",
        "ralf loop stops too early",
        "ralf plan the tasks",
        "ralf handover fails when the route is new",
        "ralf list should sort by name",
        "ralf log crashes",
        "ralf decide prints the wrong label",
        "ralf status\nand then write the parser",
        "run ralf task list",
    ],
)
def test_a_request_that_begins_with_a_command_of_ours_stays_a_request(text: str) -> None:
    assert not config.is_all(text)
