"""`ralf task`: what each command prints, refuses and leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kit.command
import storekit
from ralf.tasks import editing

pytestmark = pytest.mark.ci


def ralf(root: Path, *arguments: object, **more: str) -> storekit.Ran:
    return storekit.process(*arguments, cwd=root, **more)


def added(root: Path, title: str, **fields: Any) -> str:
    """The id of a new task."""
    return editing.add(title, root=root, **fields).task.id


def listed(root: Path, *arguments: object) -> list[dict[str, Any]]:
    ran = ralf(root, "task", "list", "--json", *arguments)
    assert ran.status == 0, ran
    found: list[dict[str, Any]] = ran.json()
    return found


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose user has opted in; `root` is a copy of it."""
    made = tmp_path_factory.mktemp("empty")
    storekit.configure(made, "")
    return made


@pytest.fixture
def root(empty: Path, tmp_path: Path) -> Path:
    return storekit.copied(empty, tmp_path / "project")


# ---- add ----


def test_a_text_of_several_lines_comes_from_standard_input(root: Path) -> None:
    given = {"env": storekit.environment(root), "stdin": "## Steps\n- tag\n- push\n"}
    done = kit.command.run("task", "add", "Release", "--text", "-", cwd=root, **given)
    assert (done.status, done.err) == (0, "")
    assert listed(root)[0]["task"]["text"].strip() == "## Steps\n- tag\n- push"


# ---- list, show ----


def test_a_list_is_narrowed_by_state_status_and_role(root: Path) -> None:
    one = added(root, "Build", role="builder")
    added(root, "Review", role="reviewer", after=[one], tags=["web"])
    two = added(root, "Paint")
    ralf(root, "task", "claim", two, RALF_AGENT="a-1")
    ralf(root, "task", "fail", "no brush", "--task", two, RALF_AGENT="a-1")
    for arguments, title in (("--ready", "Build"), ("--status failed", "Paint"), ("--role reviewer", "Review")):
        assert [found["task"]["title"] for found in listed(root, *arguments.split())] == [title]
    assert [found["task"]["title"] for found in listed(root, "--tag", "web")] == ["Review"]


# ---- edit, split ----


def test_an_edit_by_options_changes_these_fields_and_no_other(root: Path) -> None:
    one = added(root, "Build", tags=["wood"], priority=3)
    two = added(root, "Paint", text="Twice.", role="painter")
    ran = ralf(root, "task", "edit", two, "--title", "Paint it red", "-p", 9, "--after", one, "--checkpoint", "--json")
    assert ran.status == 0, ran
    found = ran.json()["task"]
    assert (found["title"], found["priority"], found["after"], found["checkpoint"]) == ("Paint it red", 9, [one], True)
    assert (found["text"].strip(), found["role"]) == ("Twice.", "painter")
    cleared = ralf(root, "task", "edit", two, "--after", "", "--no-checkpoint", "--json").json()["task"]
    assert (cleared["after"], cleared["checkpoint"]) == ([], False)


def test_a_split_leaves_its_parts_in_a_row_and_what_waited_waits_for_the_last(root: Path) -> None:
    one = added(root, "Build", role="builder")
    added(root, "Paint", after=[one])
    ran = ralf(root, "task", "edit", one, "--into", "Saw", "--into", "Nail")
    assert ran.status == 0, ran
    assert [line.partition(": ")[2] for line in ran.lines] == ["Saw", "Nail"]
    saw, nail = (line.partition(": ")[0] for line in ran.lines)
    found = {each["task"]["title"]: each for each in listed(root, "--all")}
    assert (found["Nail"]["task"]["after"], found["Build"]["state"]) == ([saw], "cancelled")
    assert found["Paint"]["waits_for"] == [nail] or nail in found["Paint"]["waits_for"]
