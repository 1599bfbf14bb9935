"""What came of items that were handed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralf.memory import writing
from ralf.memory.harvest import judge
from ralf.memory.model import Item
from ralf.memory.records import new_item
from ralf.project import Project, find
from test_memory_harvest import REDIS, REFUSED, Step, edited, noted, ran

UP = "docker compose up -d redis"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a memory of one trap, one command and one fact."""
    made = find(tmp_path)
    items = [
        new_item("trap", command="npm test", error=REFUSED, resolution=UP, origin="mechanical"),
        new_item("command", command="npm test", purpose="test", origin="mechanical"),
        new_item("fact", text="The pool of src/db.py holds nine connections", origin="person"),
    ]
    writing.record(made, "main", items)
    return made


def judged(project: Project, *steps: Step, after: int = 0, route: str = "queue") -> dict[str, str]:
    """What came of the three items in a session of these steps."""
    noted(project.root, route, *steps)
    labels = ("trap-1", "command-1", "fact-1")
    return judge(project, route, agent="main", session=f"of-{route}", labels=labels, after=after)


def item(project: Project, label: str) -> Item:
    found = writing.load(project, "main").get(label)
    assert found is not None
    return found


def test_a_trap_whose_resolution_ran_and_a_command_that_ran_were_helpful(project: Project) -> None:
    assert judged(project, ran(UP), ran("npm test")) == {"trap-1": "helpful", "command-1": "helpful"}
    assert (item(project, "trap-1").helpful, item(project, "trap-1").uses) == (1, 1)
    assert item(project, "trap-1").confidence == pytest.approx(2 / 3)


def test_a_trap_whose_error_occurred_again_was_harmful(project: Project) -> None:
    steps = (ran(UP), ran("npm test", REFUSED, failed=True))
    assert judged(project, *steps)["trap-1"] == "harmful"
    assert item(project, "trap-1").harmful == 1


def test_an_error_after_which_the_resolution_was_followed_speaks_for_the_trap(project: Project) -> None:
    assert judged(project, *REDIS)["trap-1"] == "helpful"


def test_a_path_that_was_touched_speaks_for_what_names_it(project: Project) -> None:
    assert judged(project, edited("src/db.py")) == {"fact-1": "helpful"}


@pytest.mark.ci
def test_an_outcome_counts_once_for_each_session(project: Project) -> None:
    judged(project, ran("npm test"))
    assert judge(project, "queue", agent="main", session="of-queue", labels=["command-1"]) == {}
    assert item(project, "command-1").helpful == 1
    judged(project, ran("npm test"), route="other")
    assert item(project, "command-1").helpful == 2


def test_what_happened_before_it_was_handed_over_is_no_outcome(project: Project) -> None:
    assert judged(project, ran("npm test"), ran("ls"), after=3) == {}
